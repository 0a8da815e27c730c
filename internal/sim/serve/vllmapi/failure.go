package vllmapi

import (
	"fmt"
	"net/http"

	"pitot/internal/sim/serve/dialect"
)

// engineFailed is the message for an engine that fails.
const engineFailed = "EngineCore encountered an issue."

// Refuse implements [dialect.Dialect].
func (a *api) Refuse(p dialect.Problem) dialect.Reply {
	switch p {
	case dialect.NoRoute:
		return detailReply(http.StatusNotFound, "Not Found")
	case dialect.NoMethod:
		return detailReply(http.StatusMethodNotAllowed, "Method Not Allowed")
	case dialect.NoKey:
		return dialect.Reply{Status: http.StatusUnauthorized, Bare: true, Body: []byte(`{"error":"Unauthorized"}`)}
	case dialect.TooLarge:
		return errorReply(http.StatusRequestEntityTooLarge, "The request body is too large.")
	case dialect.Loading:
		return errorReply(http.StatusServiceUnavailable, "The model is still being loaded.")
	case dialect.ShuttingDown:
		return errorReply(http.StatusServiceUnavailable, "The server is shutting down.")
	case dialect.TooMany:
		return errorReply(http.StatusTooManyRequests, "Rate limit reached. Please try again later.")
	case dialect.EngineFailed:
		return errorReply(http.StatusInternalServerError, engineFailed)
	case dialect.NoEngine:
		return errorReply(http.StatusServiceUnavailable, "No engine is available.")
	case dialect.Overloaded:
		return errorReply(http.StatusServiceUnavailable, "The server is overloaded.")
	}
	return dialect.Reply{Status: http.StatusBadRequest, Type: "text/plain; charset=utf-8", Bare: true, Body: []byte("Invalid HTTP request received.")}
}

// failureBody is an error as vLLM writes it, in a response or in a stream.
type failureBody struct {
	Error failureError `json:"error"`
}

type failureError struct {
	Message string  `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"`
	Code    int     `json:"code"`
}

// errorReply is an error response.
func errorReply(status int, message string) dialect.Reply {
	return dialect.Reply{Status: status, Body: failureJSON(status, message, "")}
}

func failureJSON(status int, message, param string) []byte {
	e := failureError{Message: message, Type: failureType(status), Code: status}
	if param != "" {
		e.Param = &param
	}
	return dialect.Marshal(failureBody{e})
}

// failureType is the name that goes with a status.
func failureType(status int) string {
	switch status {
	case http.StatusUnauthorized:
		return "AuthenticationError"
	case http.StatusForbidden:
		return "PermissionDeniedError"
	case http.StatusNotFound:
		return "NotFoundError"
	case http.StatusTooManyRequests:
		return "RateLimitError"
	case http.StatusServiceUnavailable:
		return "ServiceUnavailableError"
	}
	if status >= 500 {
		return "InternalServerError"
	}
	return "BadRequestError"
}

// rejectionReply is a 400 that names the parameter at fault.
func rejectionReply(param, format string, args ...any) *dialect.Reply {
	return &dialect.Reply{
		Status: http.StatusBadRequest,
		Body:   failureJSON(http.StatusBadRequest, fmt.Sprintf(format, args...), param),
	}
}

// parameterReply is a 400 that names the parameter at fault and, where there is
// one, its value, in the message too.
func parameterReply(param string, value any, format string, args ...any) *dialect.Reply {
	tail := " (parameter=" + param
	if value != "" {
		tail += fmt.Sprintf(", value=%v", value)
	}
	return rejectionReply(param, "%s", fmt.Sprintf(format, args...)+tail+")")
}

// refusalReply is a 400 of a kind that its status does not tell.
func refusalReply(kind, param, message string) *dialect.Reply {
	e := failureError{Message: message, Type: kind, Code: http.StatusBadRequest}
	if param != "" {
		e.Param = &param
	}
	return &dialect.Reply{Status: http.StatusBadRequest, Body: dialect.Marshal(failureBody{e})}
}

// detailReply is an error of the web framework under vLLM, for what no route takes.
func detailReply(status int, message string) dialect.Reply {
	return dialect.JSON(status, map[string]string{"detail": message})
}
