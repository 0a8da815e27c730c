package serve

import (
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// reply is a response that is known as a whole.
type reply struct {
	status int
	kind   string // content type; JSON if empty
	extra  string // further header lines, each with its CRLF
	body   []byte
}

// head is the response's status line and header.
func (r reply) head(last bool) []byte {
	b := appendHead(nil, "HTTP/1.1", r.status)
	if len(r.body) > 0 {
		kind := r.kind
		if kind == "" {
			kind = "application/json"
		}
		b = append(append(append(b, "content-type: "...), kind...), "\r\n"...)
	}
	b = append(b, "content-length: "...)
	b = strconv.AppendInt(b, int64(len(r.body)), 10)
	b = append(append(b, "\r\n"...), r.extra...)
	if last {
		b = append(b, "connection: close\r\n"...)
	}
	return append(b, "\r\n"...)
}

// appendHead appends the lines that every response begins with.
func appendHead(b []byte, version string, status int) []byte {
	b = fmt.Appendf(b, "%s %d %s\r\ndate: ", version, status, http.StatusText(status))
	b = time.Now().UTC().AppendFormat(b, http.TimeFormat)
	return append(b, "\r\nserver: pitot-mock\r\n"...)
}

// ok is v as a JSON response.
func ok(v any) reply { return reply{status: http.StatusOK, body: marshal(v)} }

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

// failure is an error response.
func failure(status int, message string) reply {
	return reply{status: status, body: failureJSON(status, message, "")}
}

// rejection is a 400 that names the parameter at fault.
func rejection(param, format string, args ...any) *reply {
	return &reply{
		status: http.StatusBadRequest,
		body:   failureJSON(http.StatusBadRequest, fmt.Sprintf(format, args...), param),
	}
}

func failureJSON(status int, message, param string) []byte {
	e := failureError{Message: message, Type: failureType(status), Code: status}
	if param != "" {
		e.Param = &param
	}
	return marshal(failureBody{e})
}

// detail is an error of the web framework under vLLM, for what no route takes.
func detail(status int, message string) reply {
	return reply{status: status, body: marshal(map[string]string{"detail": message})}
}

// failureType is the name that goes with a status.
func failureType(status int) string {
	switch status {
	case http.StatusUnauthorized:
		return "AuthenticationError"
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
