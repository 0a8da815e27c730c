package record

import (
	"strconv"
	"strings"
)

// Error classes: what went wrong with a request, in one word. They are part
// of the contract of run.json and requests.parquet.
const (
	ErrDNS           = "dns"            // the name did not resolve
	ErrConnect       = "connect"        // refused or unreachable
	ErrTLS           = "tls"            // handshake or certificate
	ErrHTTP2         = "http2"          // the server speaks only HTTP/2
	ErrProxy         = "proxy"          // the CONNECT proxy refused
	ErrReset         = "reset"          // connection reset
	ErrClosed        = "closed"         // connection closed cleanly before the answer's end
	ErrTimeout       = "timeout"        // not ended within --timeout
	ErrInterrupted   = "interrupted"    // the run was stopped first
	ErrAuth          = "auth"           // 401, 403
	ErrNotFound      = "not_found"      // 404: wrong path or model
	ErrRateLimited   = "rate_limited"   // 429
	ErrContextLength = "context_length" // 400, 413 or 422 that speaks of the context or a length
	ErrBadRequest    = "bad_request"    // any other 4xx
	ErrStream        = "stream_error"   // an error event inside a 200 stream
	ErrMalformed     = "malformed"      // HTTP, SSE or JSON that cannot be read
	ErrUnfinished    = "unfinished"     // the answer ended without finish_reason or end mark
	ErrEmpty         = "empty"          // a complete answer without a single token
	ErrContentFilter = "content_filter" // a content filter stopped the response
	ErrRedirect      = "redirect"       // 3xx: Pitot does not follow
	ErrOversized     = "oversized"      // larger than what was asked for can be: events, bytes, choices, headers
	ErrBug           = "bug"            // ours
	ErrWorkerLost    = "worker_lost"    // the worker that had it was lost, or the one that was to send it: see [Row.LostWithWorker]
	ErrOwnFiles      = "client_files"   // this process, or its machine, has no descriptors left
	ErrOwnPorts      = "client_ports"   // this machine has no local ports left to connect from
	ErrOwnMemory     = "client_memory"  // the answers under way hold all that this process gives them
)

// IsOwn says that a class is of this client's own failures: no request of it
// says anything of the server.
func IsOwn(class string) bool {
	switch class {
	case ErrBug, ErrWorkerLost, ErrOwnFiles, ErrOwnPorts, ErrOwnMemory:
		return true
	}
	return false
}

// UsageDoubt begins the detail of a request that was answered, but with a
// usage that cannot be: what follows says why. The counts that were not
// believed are not in its row.
const UsageDoubt = "usage not believed: "

// serverStatus begins the classes of HTTP's server errors.
const serverStatus = "http_"

// ServerError is the error class of a status of 500 or more, as http_503. Each
// is one of its own: a server that is overloaded, one that is broken and a proxy
// in front of none ask for different remedies.
func ServerError(status int) string { return serverStatus + strconv.Itoa(status) }

// IsServerError says that a class is of HTTP's server errors, whichever.
func IsServerError(class string) bool { return strings.HasPrefix(class, serverStatus) }
