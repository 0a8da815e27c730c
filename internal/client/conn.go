package client

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"pitot/internal/client/stamp"
	"pitot/internal/clock"
)

// readSize is the size of a read. Small reads keep merged arrivals apart; an
// event takes 200 to 400 bytes.
const readSize = 8 << 10

// grace is the time that the end of the HTTP body may take after the answer's end mark.
const grace = time.Second

// source reads a connection that has a goroutine of its own.
type source interface {
	read(p []byte) (n int, a stamp.Arrival, err error)
}

// newSource gives the most precise source for a connection.
func newSource(c net.Conn) source {
	if r := stamp.NewReceiver(c); r != nil {
		return &kernelSource{r}
	}
	return &plainSource{c: c}
}

// kernelSource reads with the kernel's stamps.
type kernelSource struct{ r *stamp.Receiver }

func (s *kernelSource) read(p []byte) (int, stamp.Arrival, error) { return s.r.Read(p) }

// plainSource stamps each read when it returns.
type plainSource struct{ c net.Conn }

func (s *plainSource) read(p []byte) (int, stamp.Arrival, error) {
	n, err := s.c.Read(p)
	return n, stamp.Arrival{Time: clock.Now(), More: n == len(p)}, err
}

// tlsSource reads a TLS connection. Under it, recordConn gives crypto/tls one
// record at a time and keeps the stamp of the segment that completed it.
type tlsSource struct {
	c   *tls.Conn
	raw *recordConn
}

func (s *tlsSource) read(p []byte) (int, stamp.Arrival, error) {
	n, err := s.c.Read(p)
	a := s.raw.arrival
	a.More = a.More || n == len(p) || len(s.raw.buf) > 0
	return n, a, err
}

// recordConn hands out the bytes of a connection so that no read reaches
// over the end of a TLS record. Otherwise crypto/tls would buffer several
// records of one arrival, and it would be lost that they came together.
type recordConn struct {
	net.Conn
	src     source
	buf     []byte // bytes read and not handed out
	space   [readSize]byte
	left    int // bytes left of the current record, its header included
	arrival stamp.Arrival
}

// Read implements net.Conn for crypto/tls.
func (c *recordConn) Read(p []byte) (int, error) {
	const header = 5 // type, version, length (RFC 8446 5.1)
	for len(c.buf) == 0 || c.left == 0 && len(c.buf) < header {
		rest := copy(c.space[:], c.buf)
		n, a, err := c.src.read(c.space[rest:])
		if n <= 0 {
			c.buf = c.space[:rest]
			return 0, err
		}
		c.arrival = a
		c.buf = c.space[:rest+n]
	}
	if c.left == 0 {
		c.left = header + int(c.buf[3])<<8 + int(c.buf[4])
	}
	n := copy(p, c.buf[:min(len(c.buf), c.left)])
	c.buf, c.left = c.buf[n:], c.left-n
	return n, nil
}

// Conn is one connection. It is read all the time, so that a server's close
// of an idle connection is noticed when it happens: by [stamp.Readers] where
// the kernel's stamps are available and there is no TLS, else by a goroutine of its
// own.
type Conn struct {
	Times Times
	Uses  int // requests it has carried

	retransmits int // segments sent again by the last request's end

	readers *stamp.Readers // who may read it; nil for a goroutine
	socket  *stamp.Socket  // as they read it
	src     source         // what a goroutine reads
	conn    io.Writer      // what is written to
	raw     transport      // what is under it
	cur     atomic.Pointer[Exchange]
	dead    atomic.Bool
	done    func(*Conn, *Exchange, bool)

	writing sync.Mutex            // held while a request is written
	broken  atomic.Pointer[error] // why the last write failed

	expecting bool  // the first token has not come, and the socket's arrivals are looked out for
	limited   bool  // the end mark has come: the rest may take grace
	end       int64 // when and why the reading ended
	endErr    error
	warmed    byte // keeps the compiler from leaving Warm out
}

// transport holds the methods that a connection needs of its socket besides reading and writing.
type transport interface {
	io.Closer
	SetReadDeadline(time.Time) error
}

// startTLS does the handshake.
func (c *Conn) startTLS(ctx context.Context, e Endpoint, under net.Conn) error {
	cfg := e.Config.Clone()
	if cfg == nil {
		cfg = &tls.Config{}
	}
	if cfg.ServerName == "" {
		cfg.ServerName, _, _ = net.SplitHostPort(e.Addr)
	}
	cfg.NextProtos = []string{"http/1.1"}
	raw := &recordConn{Conn: under, src: c.src}
	begin := time.Now()
	t := tls.Client(raw, cfg)
	if err := t.HandshakeContext(ctx); err != nil {
		return err
	}
	c.Times.TLS = int64(time.Since(begin))
	c.conn, c.src = t, &tlsSource{t, raw}
	return nil
}

// IsAlive says whether an idle connection can still carry a request.
func (c *Conn) IsAlive() bool { return !c.dead.Load() }

// StartReading begins to read. Bytes go to the exchange that Send has set; done is
// called for each exchange that ends, from the reading goroutine, which it must not
// block, or from Send's; reusable says whether the connection can carry another.
func (c *Conn) StartReading(done func(c *Conn, x *Exchange, reusable bool)) {
	c.done = done
	if raw, ok := c.raw.(net.Conn); ok {
		c.socket = c.readers.Add(raw)
	}
	if c.socket == nil {
		go c.readLoop()
		return
	}
	c.conn, c.raw, c.src = c.socket, c.socket, nil
	c.socket.Start((*owner)(c))
}

// owner is a connection as its socket knows it.
type owner Conn

// Arrived implements [stamp.Owner].
func (o *owner) Arrived(b []byte, a stamp.Arrival, err error) bool {
	return (*Conn)(o).handleRead(b, a, err)
}

// Warm implements [stamp.Owner].
func (o *owner) Warm() {
	if x := o.cur.Load(); x != nil {
		o.warmed += x.prefetch()
	}
}

func (c *Conn) readLoop() {
	defer c.raw.Close()
	buf := make([]byte, readSize)
	for goOn := true; goOn; {
		n, a, err := c.src.read(buf)
		goOn = c.handleRead(buf[:n], a, err)
	}
}

// handleRead takes what was read. It returns false if the connection cannot be used any
// more and must not be read again.
func (c *Conn) handleRead(b []byte, a stamp.Arrival, err error) bool {
	if c.takeOver(b, a, err) {
		return true
	}
	if x := c.cur.Swap(nil); x != nil { // Send came in between
		c.Abort()
		x.Close(c.end, c.endErr)
		c.finishExchange(x, false)
	}
	return false
}

func (c *Conn) takeOver(b []byte, a stamp.Arrival, err error) bool {
	x := c.cur.Load()
	if x == nil { // closed while idle, or bytes that were not asked for
		if err == nil && isHTTP2Frame(b) {
			err = errOnlyHTTP2
		}
		c.end, c.endErr = a.Time, err
		c.dead.Store(true)
		return false
	}
	ended := len(b) > 0 && x.Feed(b, a)
	if c.expecting && (ended || x.HasFirstToken()) {
		c.expecting = false
		c.socket.Forget()
	}
	if err != nil && !ended {
		// The error of a failed write says more than the end that the read sees.
		if cause := c.broken.Load(); cause != nil && (errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, io.EOF)) {
			err = *cause
		}
		x.Close(a.Time, err)
		ended = true
	}
	if !ended {
		if x.Answered() && !c.limited {
			c.limited = true
			c.setReadDeadline()
		}
		return true
	}
	if c.limited {
		c.limited = false
		c.setReadDeadline()
	}
	keep := err == nil && x.IsReusable() && c.broken.Load() == nil
	if !keep {
		c.dead.Store(true)
	}
	c.cur.Store(nil)
	c.finishExchange(x, keep)
	return keep
}

// setReadDeadline sets how long the next read may wait.
func (c *Conn) setReadDeadline() {
	t := time.Time{}
	if c.limited || c.broken.Load() != nil {
		t = time.Now().Add(grace)
	}
	_ = c.raw.SetReadDeadline(t)
}

// finishExchange hands the exchange to done once its request is no longer being
// written: a server may answer before it has read the whole request, and may never
// read the rest.
func (c *Conn) finishExchange(x *Exchange, keep bool) {
	if c.writing.TryLock() {
		c.writing.Unlock()
		c.done(c, x, keep)
		return
	}
	go func() {
		t := time.AfterFunc(grace, c.Abort)
		c.writing.Lock()
		t.Stop()
		c.writing.Unlock()
		if c.broken.Load() != nil {
			keep = false
			c.dead.Store(true)
		}
		c.done(c, x, keep)
	}()
}

// inline is the size up to which a request is written by the pacer itself: it
// fits into any socket's send buffer, so that the write cannot block. Larger
// ones are written by a goroutine of their own.
const inline = 32 << 10

// Send stamps and writes the exchange's request. It returns at once; errors are
// reported through the callback given to Start.
func (c *Conn) Send(x *Exchange) {
	if c.Uses++; c.Uses == 1 {
		c.retransmits = c.sentAgain() // while it connected
	}
	if len(x.Request) <= inline {
		c.sendRequest(x)
	} else {
		go c.sendRequest(x)
	}
}

func (c *Conn) sendRequest(x *Exchange) {
	c.writing.Lock()
	if c.socket != nil {
		c.expecting = true
		c.socket.Expect()
	}
	x.MarkSent(clock.Now())
	c.cur.Store(x)
	if c.dead.Load() {
		c.writing.Unlock()
		if c.cur.CompareAndSwap(x, nil) { // the reader has gone without seeing it
			x.Close(clock.Now(), c.endErr)
			c.done(c, x, false)
		}
		return
	}
	if _, err := c.conn.Write(x.Request); err != nil { // what the server sent before it closed may still be there to read
		c.broken.Store(&err)
		_ = c.raw.SetReadDeadline(time.Now().Add(grace))
	}
	c.writing.Unlock()
}

// Abort closes the connection; an exchange that runs on it ends.
func (c *Conn) Abort() {
	c.raw.Close()
}
