package serve

import (
	"cmp"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"pitot/internal/sim/serve/dialect"
)

// replyHead is the status line and the header of a reply.
func (s *Server) replyHead(r *dialect.Reply, last bool) []byte {
	b := appendHead(nil, "HTTP/1.1", r.Status)
	if !r.Bare {
		b = append(b, s.dialect.Header()...)
	}
	if len(r.Body) > 0 {
		b = append(append(append(b, "content-type: "...), cmp.Or(r.Type, jsonType)...), "\r\n"...)
	}
	b = append(b, "content-length: "...)
	b = strconv.AppendInt(b, int64(len(r.Body)), 10)
	b = append(append(b, "\r\n"...), r.Header...)
	if last {
		b = append(b, "connection: close\r\n"...)
	}
	return append(b, "\r\n"...)
}

// jsonType is the content type of answers that do not stream, unless they say
// otherwise.
const jsonType = "application/json"

// appendHead appends the lines that every response begins with.
func appendHead(b []byte, version string, status int) []byte {
	b = fmt.Appendf(b, "%s %d %s\r\ndate: ", version, status, http.StatusText(status))
	b = time.Now().UTC().AppendFormat(b, http.TimeFormat)
	return append(b, "\r\nserver: pitot-mock\r\n"...)
}
