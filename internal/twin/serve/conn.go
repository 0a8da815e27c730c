package serve

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"pitot/internal/clock"
	"pitot/internal/twin/serve/dialect"
	"pitot/internal/twin/serve/prom"
	"pitot/internal/wire/stamp"
)

// conn is one client connection. Its goroutine only reads: the next request,
// or the news that the client has gone.
type conn struct {
	s    *Server
	in   stamped
	br   *bufio.Reader
	body bytes.Buffer
	out  *outbox
	busy atomic.Bool   // an answer is under way
	now  *stream       // that answer, or the last one
	late time.Duration // how long nobody reads it at first
	free int64         // since when the next request could be answered
}

func newConn(s *Server, nc net.Conn) *conn {
	c := &conn{s: s, out: newOutbox(nc, &s.stats.short)}
	c.in = stamped{conn: nc, recv: stamp.NewReceiver(nc)}
	c.br = bufio.NewReaderSize(&c.in, 4<<10)
	return c
}

// stamped reads a connection and remembers when the bytes of the last read
// arrived, by the kernel where it tells.
type stamped struct {
	conn net.Conn
	recv *stamp.Receiver // nil: no kernel stamps
	at   int64
}

func (r *stamped) Read(p []byte) (n int, err error) {
	if r.recv != nil && len(p) > 0 {
		n, a, err := r.recv.Read(p)
		r.at = a.Time
		return n, err
	}
	n, err = r.conn.Read(p)
	r.at = clock.Now()
	return n, err
}

// serve answers requests until the connection ends.
func (c *conn) serve() {
	gone := false
	if c.late > 0 {
		time.Sleep(c.late)
		c.free = clock.Now()
	}
	for open := true; open; {
		// While an answer is under way this waits for the client to go.
		if _, err := c.br.Peek(1); err != nil {
			gone = true
			break
		}
		if c.now != nil {
			<-c.now.done
			c.now, c.free = nil, clock.Now()
		}
		open = c.request()
	}
	if c.now != nil {
		c.s.inbox.put(message{kind: abort, st: c.now})
	}
	c.out.shut(gone)
	c.s.mu.Lock()
	delete(c.s.conns, c)
	c.s.mu.Unlock()
	c.s.readers.Done()
}

// request reads and answers one request; false ends the connection.
func (c *conn) request() bool {
	req, err := http.ReadRequest(c.br)
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) {
		return false
	}
	if err != nil {
		c.refuse(dialect.NotHTTP)
		return false
	}
	defer req.Body.Close()
	if strings.EqualFold(req.Header.Get("Expect"), "100-continue") {
		c.out.write([]byte("HTTP/1.1 100 Continue\r\n\r\n"))
	}
	c.body.Reset()
	if _, err := c.body.ReadFrom(io.LimitReader(req.Body, maxBody+1)); err != nil {
		return false
	}
	if c.body.Len() > maxBody {
		c.refuse(dialect.TooLarge)
		return false
	}
	arrival := c.in.at
	now := clock.Now()
	if until := c.s.frozen(now); until > now {
		time.Sleep(time.Duration(until - now))
		c.free = until
	}

	last := req.Close || c.s.closing.Load()
	r, st := c.s.route(c, req, arrival)
	if st == nil {
		c.s.count(prom.Exchange{Route: req.URL.Path, Method: req.Method, Status: r.Status, In: req.ContentLength, Out: int64(len(r.Body)), Took: clock.Now() - arrival})
		c.answer(&r, last, req.Method == http.MethodHead)
		return !last
	}
	st.asked = req.ContentLength
	st.last = st.last || last
	c.body = bytes.Buffer{} // a long prompt is not needed while it is answered
	c.now = st
	c.busy.Store(true)
	st.begin()
	return true
}

// answer writes a whole response.
func (c *conn) answer(r *dialect.Reply, last, head bool) {
	b := c.s.replyHead(r, last)
	if !head {
		b = append(b, r.Body...)
	}
	c.out.write(b)
}

// refuse answers a request that was not read to its end. It goes on reading
// for a moment, since closing on unread bytes resets the connection, and the
// answer could be lost.
func (c *conn) refuse(p dialect.Problem) {
	r := c.s.dialect.Refuse(p)
	c.answer(&r, true, false)
	_ = c.in.conn.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
	_, _ = io.CopyN(io.Discard, c.in.conn, 1<<20)
}
