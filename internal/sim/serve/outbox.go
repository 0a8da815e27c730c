package serve

import (
	"net"
	"sync"
	"sync/atomic"
	"syscall"
)

// outbox writes to a connection without ever blocking the writer: each write
// is tried once, and what the socket does not take is left to a goroutine that
// lives until it is gone. Connections that have no socket use that way only.
type outbox struct {
	conn  net.Conn
	raw   syscall.RawConn // nil without a socket
	once  func(fd uintptr) bool
	spill *atomic.Int64 // counts writes that did not fit

	mu       sync.Mutex
	p        []byte // of the write that once tries
	took     int
	failed   bool
	rest     []byte // waits for the flusher
	flushing bool
	last     bool // close when rest is written
	dead     bool // closed, or no use writing
}

func newOutbox(c net.Conn, spill *atomic.Int64) *outbox {
	o := &outbox{conn: c, spill: spill}
	if tcp, ok := c.(*net.TCPConn); ok {
		if raw, err := tcp.SyscallConn(); err == nil {
			o.raw = raw
		}
	}
	o.once = func(fd uintptr) bool {
		o.took, o.failed = send(fd, o.p)
		return true // one try: never wait in the poller
	}
	return o
}

// write sends p, which may be used again when it returns.
func (o *outbox) write(p []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.dead || o.last {
		return
	}
	if o.raw != nil && !o.flushing {
		o.p, o.took, o.failed = p, 0, false
		if err := o.raw.Write(o.once); err != nil || o.failed {
			o.dead = true // the reader sees the same and cleans up
			return
		}
		if p = p[o.took:]; len(p) > 0 {
			o.spill.Add(1)
		}
	}
	if len(p) == 0 {
		return
	}
	o.rest = append(o.rest, p...)
	if !o.flushing {
		o.flushing = true
		go o.flush()
	}
}

// flush writes rest, blocking, until there is none.
func (o *outbox) flush() {
	for {
		o.mu.Lock()
		p := o.rest
		o.rest = nil
		if len(p) == 0 || o.dead {
			o.flushing = false
			if o.last && !o.dead {
				o.dead = true
				o.conn.Close()
			}
			o.mu.Unlock()
			return
		}
		o.mu.Unlock()
		if _, err := o.conn.Write(p); err != nil {
			o.mu.Lock()
			o.dead = true
			o.mu.Unlock()
		}
	}
}

// closeConn closes the connection: after what is still to be written, or at once.
func (o *outbox) closeConn(now bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.last = true
	if o.flushing && !now {
		return
	}
	o.dead = true
	o.conn.Close()
}

// reset closes the connection with a TCP reset where there is TCP.
func (o *outbox) reset() {
	if tcp, ok := o.conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	o.closeConn(true)
}
