package serve

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"pitot/internal/client/stamp"
	"pitot/internal/clock"
	"pitot/internal/sim/serve/dialect"
	"pitot/internal/sim/serve/prom"
)

// conn is one client connection. Its goroutine only reads: the next request,
// or the news that the client has gone.
type conn struct {
	s    *Server
	in   stamped
	br   *bufio.Reader
	body bytes.Buffer
	out  *outbox

	busy atomic.Bool   // a request has begun, and is not answered to its end; set under s.mu
	now  *stream       // that answer, or the last one
	late time.Duration // how long it is not read at first
	free int64         // since when the next request could be answered
}

// readBuffer has room for the head of most requests. Each stream keeps one while
// it is answered; bodies are read past it.
const readBuffer = 1 << 10

func newConn(s *Server, nc net.Conn) *conn {
	c := &conn{s: s, out: newOutbox(nc, &s.stats.short)}
	c.in = stamped{conn: nc, recv: stamp.NewReceiver(nc)}
	c.br = bufio.NewReaderSize(&c.in, readBuffer)
	return c
}

// stamped reads a connection and remembers when the bytes of the last read
// arrived, by the kernel where it tells.
type stamped struct {
	conn net.Conn
	recv *stamp.Receiver // nil: no kernel stamps
	at   int64
	head headGuard // follows what is read
	err  error     // that reading ended with
}

func (r *stamped) Read(p []byte) (n int, err error) {
	if r.head.over { // a parser may go on behind the first error
		return 0, errHeadTooLarge
	}
	if r.recv != nil && len(p) > 0 {
		var a stamp.Arrival
		n, a, err = r.recv.Read(p)
		r.at = a.Time
	} else {
		n, err = r.conn.Read(p)
		r.at = clock.Now()
	}
	if err != nil {
		r.err = err
	}
	if r.head.on {
		if large := r.head.countBytes(p[:n]); large != nil {
			return 0, large
		}
	}
	return n, err
}

// setTimeout bounds how long what is read may take: 0 for as long as it likes, less
// for no longer.
func (r *stamped) setTimeout(d time.Duration) {
	var at time.Time
	if d != 0 {
		at = time.Now().Add(d)
	}
	_ = r.conn.SetReadDeadline(at)
}

// serve answers requests until the connection ends.
func (c *conn) serve() {
	if c.late > 0 {
		time.Sleep(c.late)
		c.free = clock.Now()
	}
	gone := c.serveRequests()
	if c.now != nil {
		c.s.inbox.post(message{kind: abort, st: c.now})
	}
	c.out.closeConn(gone)
	c.s.mu.Lock()
	delete(c.s.conns, c)
	c.s.mu.Unlock()
	c.s.readers.Done()
}

// serveRequests answers one request after the other. It reports whether the client has gone.
func (c *conn) serveRequests() (gone bool) {
	for open := true; open; {
		// While an answer is under way this waits for the client to go.
		if _, err := c.br.Peek(1); err != nil {
			return !errors.Is(err, os.ErrDeadlineExceeded) // that is how a shutdown ends idle connections
		}
		if c.now != nil {
			<-c.now.done
			c.now, c.free = nil, clock.Now()
		}
		c.beginRequest()
		if open = c.answerRequest(); c.now == nil { // it is answered
			c.busy.Store(false)
			open = open && !c.s.closing.Load()
		}
	}
	return false
}

// beginRequest notes that a request has begun, which a shutdown waits for.
func (c *conn) beginRequest() {
	c.s.mu.Lock()
	c.busy.Store(true)
	c.s.mu.Unlock()
	if c.s.closing.Load() { // the shutdown found it idle
		c.in.setTimeout(0)
	}
}

// answerRequest reads and answers one request, or begins to; false ends the
// connection. Who has no key is refused before the body is read.
func (c *conn) answerRequest() bool {
	req, err := c.readHead()
	if err != nil && c.in.err != nil { // the client has gone, or is too slow
		return false
	}
	if err != nil {
		c.refuseUnread(dialect.NotHTTP)
		return false
	}
	if !c.s.hasValidKey(req) {
		return c.turnAway(req)
	}
	if strings.EqualFold(req.Header.Get("Expect"), "100-continue") {
		c.out.write([]byte("HTTP/1.1 100 Continue\r\n\r\n"))
	}
	if !c.readBody(req) {
		return false
	}
	arrival := c.in.at
	c.waitForThaw()

	last := req.Close || c.s.closing.Load()
	r, st := c.s.route(c, req, arrival)
	if st == nil {
		c.s.countExchange(prom.Exchange{Route: req.URL.Path, Method: req.Method, Status: r.Status, In: req.ContentLength, Out: int64(len(r.Body)), Took: clock.Now() - arrival})
		c.writeReply(&r, last, req.Method == http.MethodHead)
		return !last
	}
	c.s.web.Begin(req.URL.Path, req.Method)
	st.asked = req.ContentLength
	st.last = st.last || last
	c.body = bytes.Buffer{} // a long prompt is not needed while it is answered
	c.now = st
	st.begin()
	return true
}

// readHead reads the beginning of a request, which may neither be endless nor take
// for ever.
func (c *conn) readHead() (*http.Request, error) {
	c.in.head = headGuard{on: true}
	begun, _ := c.br.Peek(c.br.Buffered())
	if err := c.in.head.countBytes(begun); err != nil {
		return nil, err
	}
	if c.in.head.on { // there is more to come
		c.in.setTimeout(headTimeout)
		defer c.in.setTimeout(0)
	}
	req, err := http.ReadRequest(c.br)
	c.in.head.on = false
	return req, err
}

// readBody reads the body of a request; false ends the connection.
func (c *conn) readBody(req *http.Request) bool {
	if c.body.Cap() > keptBody {
		c.body = bytes.Buffer{}
	}
	c.body.Reset()
	if req.ContentLength == 0 {
		return true
	}
	c.in.setTimeout(bodyTimeout)
	most := c.s.mostBody()
	if req.ContentLength <= most {
		if _, err := c.body.ReadFrom(io.LimitReader(req.Body, most+1)); err != nil {
			return false
		}
	}
	if req.ContentLength > most || int64(c.body.Len()) > most {
		c.refuseUnread(dialect.TooLarge)
		return false
	}
	c.in.setTimeout(0)
	return true
}

// mostBody returns how many bytes the body of a request may have: what fits into the model's
// context takes no more, however long its words are.
func (s *Server) mostBody() int64 {
	const besides, ofToken = 4 << 20, 64
	return min(maxBody, besides+ofToken*int64(s.cfg.MaxModelLen))
}

// keptBody is the maximum size of a body buffer that is kept for the next request.
const keptBody = 1 << 20

// turnAway refuses a request without a key. It reads past the body without
// keeping it, so that the next request can come.
func (c *conn) turnAway(req *http.Request) bool {
	c.waitForThaw()
	if req.Close || c.s.closing.Load() || req.Header.Get("Expect") != "" || req.ContentLength > maxBody {
		c.refuseUnread(dialect.NoKey)
		return false
	}
	r := c.s.dialect.Refuse(dialect.NoKey)
	c.writeReply(&r, false, req.Method == http.MethodHead)
	c.in.setTimeout(headTimeout)
	n, err := io.Copy(io.Discard, io.LimitReader(req.Body, maxBody+1))
	c.in.setTimeout(0)
	return err == nil && n <= maxBody
}

// waitForThaw waits for the end of a freeze of the whole server.
func (c *conn) waitForThaw() {
	now := clock.Now()
	if until := c.s.freezeEnd(now); until > now {
		time.Sleep(time.Duration(until - now))
		c.free = until
	}
}

// writeReply writes a whole response.
func (c *conn) writeReply(r *dialect.Reply, last, head bool) {
	b := c.s.replyHead(r, last)
	if !head {
		b = append(b, r.Body...)
	}
	c.out.write(b)
}

// refuseUnread answers a request that was not read to its end. It goes on reading
// for a moment, since closing on unread bytes resets the connection, and the
// answer could be lost.
func (c *conn) refuseUnread(p dialect.Problem) {
	r := c.s.dialect.Refuse(p)
	c.writeReply(&r, true, false)
	_ = c.in.conn.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
	_, _ = io.CopyN(io.Discard, c.in.conn, 1<<20)
}
