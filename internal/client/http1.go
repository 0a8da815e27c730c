package client

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"pitot/internal/results/record"
)

// errHTTP is the error of an answer that is not HTTP/1.1.
var errHTTP = errors.New("malformed HTTP")

// errHeaders is the error of headers, of chunks and trailers too, that exceed maxHeader.
var errHeaders = fmt.Errorf("the headers of the response exceed %d KiB", maxHeader>>10)

// encodingError is a content encoding that is not read.
type encodingError struct{ name string }

func (e *encodingError) Error() string {
	return fmt.Sprintf("content encoding %q is not supported, and was not requested", e.name)
}

// response reads one HTTP/1.1 response, push-style (RFC 9112).
// It keeps no body: what arrives is handed on in place.
type response struct {
	state      state
	minor      uint8 // HTTP/1.minor
	chunked    bool
	gzip       bool
	close      bool // the server closes afterwards
	document   bool // the body is JSON or HTML, by its type: no stream of events
	retryAfter int32
	retryAt    string // Retry-After where it is a time of day

	retryAfterMS int64 // 0 if none
	shouldRetry  *bool // nil: not said
	status       int
	left         int64  // bytes left of the chunk or body
	head         int    // bytes of headers (interim answers' too), of a chunk's framing or of trailers so far
	line         []byte // an incomplete line carried over from the last read
	length       int64  // Content-Length, -1 if none
	location     string
	date         string    // of the answer
	requests     allowance // rate limits
	tokens       allowance
	secret       string // what no message may repeat
}

type state uint8

const (
	inStatus state = iota
	inHeaders
	inBody      // left bytes remain
	inBodyClose // until the connection closes
	inChunkSize
	inChunk    // left bytes remain
	inChunkEnd // the CRLF after a chunk
	inTrailers
	ended
)

// reset prepares for the next response on the same connection.
func (r *response) reset() {
	*r = response{line: r.line[:0], length: -1, retryAfter: record.Unset, secret: r.secret, requests: unlimitedAllowance, tokens: unlimitedAllowance}
}

// feed takes bytes and hands stretches of body to body. It stops at the end
// of the response and gives the number of bytes it used.
func (r *response) feed(b []byte, body func([]byte) error) (used int, err error) {
	n := len(b)
	for len(b) > 0 && r.state != ended {
		switch r.state {
		case inBody, inChunk:
			k := min(int64(len(b)), r.left)
			if err := body(b[:k]); err != nil {
				return n - len(b), err
			}
			b = b[k:]
			if r.left -= k; r.left == 0 {
				if r.state == inBody {
					r.state = ended
				} else {
					r.state = inChunkEnd
				}
			}
		case inBodyClose:
			if err := body(b); err != nil {
				return n - len(b), err
			}
			b = nil
		case inChunkEnd:
			if len(r.line) == 0 && len(b) >= 2 && b[0] == '\r' && b[1] == '\n' { // as ever, but where a read ends between
				r.state, r.head = inChunkSize, 0
				b = b[2:]
				continue
			}
			fallthrough
		default:
			i := bytes.IndexByte(b, '\n')
			if i < 0 {
				if r.head+len(r.line)+len(b) > maxHeader {
					return n, errHeaders
				}
				r.line = append(r.line, b...)
				if r.state == inStatus && isHTTP2Frame(r.line) {
					return n, errOnlyHTTP2
				}
				if r.state == inStatus && isTLSAlert(r.line) {
					return n, errSpeaksTLS
				}
				return n, nil
			}
			line := b[:i]
			if len(r.line) > 0 {
				r.line = append(r.line, line...)
				line = r.line
			}
			b = b[i+1:]
			err := r.takeLine(line)
			r.line = r.line[:0]
			if err != nil {
				return n - len(b), err
			}
		}
	}
	return n - len(b), nil
}

// takeLine handles one line outside the body.
func (r *response) takeLine(line []byte) error {
	if r.head += len(line) + 1; r.head > maxHeader {
		return errHeaders
	}
	if n := len(line); n > 0 && line[n-1] == '\r' {
		line = line[:n-1]
	}
	switch r.state {
	case inStatus:
		if len(line) == 0 { // RFC 9112 2.2: tolerate an empty line before
			return nil
		}
		return r.statusLine(line)
	case inHeaders:
		if len(line) == 0 {
			r.requests.resolveReset(r.date)
			r.tokens.resolveReset(r.date)
			r.retryDate()
			return r.bodyBegins()
		}
		return r.takeHeader(line)
	case inChunkSize:
		return r.chunkSize(line)
	case inChunkEnd:
		if len(line) != 0 {
			return fmt.Errorf("%w: no line end after a chunk", errHTTP)
		}
		r.state, r.head = inChunkSize, 0
	case inTrailers:
		if len(line) == 0 {
			r.state = ended
		}
	}
	return nil
}

func (r *response) statusLine(line []byte) error {
	s := string(line)
	version, rest, _ := strings.Cut(s, " ")
	code, _, _ := strings.Cut(rest, " ")
	n, err := strconv.Atoi(code)
	if isHTTP2Frame(line) {
		return errOnlyHTTP2
	}
	if isTLSAlert(line) {
		return errSpeaksTLS
	}
	if err != nil || n < 100 || len(code) != 3 || version != "HTTP/1.1" && version != "HTTP/1.0" {
		return r.malformed("status line", s, 60)
	}
	r.status, r.minor = n, version[7]-'0'
	r.close = r.minor == 0
	r.state = inHeaders
	return nil
}

func (r *response) takeHeader(line []byte) error {
	if line[0] == ' ' || line[0] == '\t' {
		return nil // a folded line (RFC 9112 5.2): no field that matters is ever folded
	}
	name, value, ok := bytes.Cut(line, []byte{':'})
	if !ok || len(name) == 0 || bytes.ContainsAny(name, " \t") {
		return r.malformed("header line", string(line), 60)
	}
	v := strings.TrimSpace(string(value))
	switch low := strings.ToLower(string(name)); low {
	case "content-length":
		u, err := strconv.ParseUint(v, 10, 63)
		if n := int64(u); err != nil || r.length >= 0 && r.length != n {
			return r.malformed("content-length", v, 30)
		}
		r.length = int64(u)
	case "transfer-encoding":
		r.chunked = strings.EqualFold(v, "chunked")
		if !r.chunked && !strings.EqualFold(v, "identity") {
			return r.malformed("transfer-encoding", v, 30)
		}
	case "content-encoding":
		r.gzip = strings.EqualFold(v, "gzip") || strings.EqualFold(v, "x-gzip")
		if !r.gzip && v != "" && !strings.EqualFold(v, "identity") {
			return &encodingError{r.quoteLine(v, 30)}
		}
	case "content-type":
		kind, _, _ := strings.Cut(strings.ToLower(v), ";")
		kind = strings.TrimSpace(kind)
		r.document = kind == "application/json" || kind == "application/problem+json" || kind == "text/html"
	case "connection":
		for token := range strings.SplitSeq(strings.ToLower(v), ",") {
			switch strings.TrimSpace(token) {
			case "close":
				r.close = true
			case "keep-alive":
				r.close = false
			}
		}
	case "retry-after":
		if n, err := strconv.Atoi(v); err == nil && n >= 0 {
			r.retryAfter, r.retryAt = int32(min(n, 1<<30)), ""
		} else {
			r.retryAt = v // a time of day, held until the Date is known
		}
	case "retry-after-ms": // OpenAI's and Azure's
		if n, err := strconv.ParseFloat(v, 64); err == nil && n >= 0 && n < 1e9 {
			r.retryAfterMS = int64(n)
		}
	case "x-should-retry":
		if is, err := strconv.ParseBool(v); err == nil {
			r.shouldRetry = &is
		}
	case "location":
		r.location = v
	case "date":
		r.date = v
	default:
		r.rateHeader(low, v)
	}
	return nil
}

// bodyBegins decides how the body is delimited (RFC 9112 6.3).
func (r *response) bodyBegins() error {
	switch {
	case r.status < 200: // an interim answer: the real one follows
		line, head := r.line, r.head
		r.reset()
		r.line, r.head = line, head // an endless row of them is bounded too
	case r.status == 204 || r.status == 304:
		r.state = ended
	case r.chunked:
		r.state, r.head = inChunkSize, 0
	case r.length > 0:
		r.state, r.left = inBody, r.length
	case r.length == 0:
		r.state = ended
	default:
		r.state, r.close = inBodyClose, true
	}
	return nil
}

func (r *response) chunkSize(line []byte) error {
	size, _, _ := bytes.Cut(line, []byte{';'}) // what follows is an extension
	size = bytes.TrimSpace(size)
	n, err := strconv.ParseUint(string(size), 16, 60)
	if err != nil || len(size) > 15 {
		return r.malformed("chunk size", string(line), 30)
	}
	if r.left, r.state = int64(n), inChunk; n == 0 {
		r.state = inTrailers
	}
	return nil
}

// headersDone says whether the headers have been read.
func (r *response) headersDone() bool { return r.state > inHeaders }

// connectionClosed takes the end of the connection, and says whether the response was
// complete with it.
func (r *response) connectionClosed(cleanly bool) bool {
	if r.state == inBodyClose && cleanly {
		r.state = ended
	}
	return r.state == ended
}

// retryDate makes a Retry-After that is a time of day the seconds after the Date of the response
// (RFC 9110, 10.2.3), when all headers are read. One that has passed says nothing.
func (r *response) retryDate() {
	if r.retryAt == "" || r.retryAfter != record.Unset {
		return
	}
	now, err := http.ParseTime(r.date)
	if err != nil {
		now = time.Now()
	}
	if at, err := http.ParseTime(r.retryAt); err == nil && at.After(now) {
		r.retryAfter = int32(min(math.Ceil(at.Sub(now).Seconds()), 1<<30))
	}
}

// malformed is the error of a part of a response that is not HTTP/1.1.
func (r *response) malformed(what, text string, n int) error {
	return fmt.Errorf("%w: %s %q", errHTTP, what, r.quoteLine(text, n))
}

// quoteLine gives the part of a line that an error message may repeat.
func (r *response) quoteLine(s string, n int) string { return oneLine(s, r.secret, n) }

// cutBytes shortens valid UTF-8 to at most n bytes for a message.
func cutBytes(s string, n int) string {
	if len(s) <= n {
		return s
	}
	const dots = "…"
	return strings.ToValidUTF8(s[:n-len(dots)], "") + dots
}
