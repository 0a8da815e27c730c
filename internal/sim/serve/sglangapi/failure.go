package sglangapi

import (
	"net/http"
	"strconv"

	"pitot/internal/sim/serve/dialect"
)

// What SGLang calls the kinds of errors.
const (
	badRequest = "BadRequestError" // what a request says is not possible
	unreadable = "Bad Request"     // it is not of the form that a request has
)

// failureBody is an error: the whole of an answer, and in a stream what "error" says.
type failureBody struct {
	Object  string  `json:"object"`
	Message string  `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"`
	Code    int     `json:"code"`
}

func errorReply(status int, kind, message string) dialect.Reply {
	return dialect.JSON(status, failureBody{Object: "error", Message: message, Type: kind, Code: status})
}

// rejectedReply is a request that cannot be done.
func rejectedReply(message string) *dialect.Reply {
	r := errorReply(http.StatusBadRequest, badRequest, message)
	return &r
}

// misreadReply is a request that is not one.
func misreadReply(message string) *dialect.Reply {
	r := errorReply(http.StatusBadRequest, unreadable, message)
	return &r
}

// engineFailed is the message for an engine that fails.
const engineFailed = "Internal server error: the engine failed"

// Refuse implements [dialect.Dialect].
func (a *api) Refuse(p dialect.Problem) dialect.Reply {
	switch p {
	case dialect.NoRoute:
		return dialect.JSON(http.StatusNotFound, map[string]string{"detail": "Not Found"})
	case dialect.NoMethod:
		return dialect.JSON(http.StatusMethodNotAllowed, map[string]string{"detail": "Method Not Allowed"})
	case dialect.NoKey:
		return dialect.JSON(http.StatusUnauthorized, map[string]string{"error": "Unauthorized"})
	case dialect.TooLarge:
		return errorReply(http.StatusRequestEntityTooLarge, badRequest, "The request body is too large.")
	case dialect.TooMany:
		return errorReply(http.StatusTooManyRequests, strconv.Itoa(http.StatusTooManyRequests), "Too many requests.")
	case dialect.EngineFailed:
		return errorReply(http.StatusInternalServerError, "InternalServerError", engineFailed)
	case dialect.Overloaded:
		return errorReply(http.StatusServiceUnavailable, strconv.Itoa(http.StatusServiceUnavailable), "The request queue is full.")
	case dialect.Loading, dialect.ShuttingDown, dialect.NoEngine:
		return errorReply(http.StatusServiceUnavailable, strconv.Itoa(http.StatusServiceUnavailable), "No engine takes requests.")
	}
	return dialect.Reply{Status: http.StatusBadRequest, Type: "text/plain; charset=utf-8", Bare: true, Body: []byte("Invalid HTTP request received.")}
}
