package serve

import (
	"errors"
	"time"
)

// Bounds on a request. Those of its head hold before anyone knows whose it is:
// who opens thousands of connections and sends a beginning on each gets no more
// memory and no more time than this.
const (
	maxHead     = 16 << 10 // bytes of a request's line and header
	maxLines    = 256      // of it; vLLM's default for header lines
	headTimeout = 5 * time.Second

	maxBody     = 64 << 20
	bodyTimeout = time.Minute
)

// errHeadTooLarge ends a request whose head goes on and on.
var errHeadTooLarge = errors.New("the head of the request is too large")

// headGuard follows the bytes of a request's head as they are read.
type headGuard struct {
	on    bool // the head has not ended
	size  int
	lines int
	line  int // bytes of the line so far
	last  byte
	over  bool // it was too large: nothing more is read
}

// countBytes counts bytes that were read. What follows the empty line that ends the
// head is not its affair.
func (h *headGuard) countBytes(p []byte) error {
	for i := 0; h.on && i < len(p); i++ {
		h.size++
		if p[i] == '\n' {
			h.lines++
			h.on = h.line > 1 || h.line == 1 && h.last != '\r'
			h.line = 0
		} else {
			h.line++
		}
		h.last = p[i]
		h.over = h.over || h.size > maxHead || h.lines > maxLines
	}
	if h.over {
		return errHeadTooLarge
	}
	return nil
}
