package client

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pitot/internal/client/api"
	"pitot/internal/client/stamp"
	"pitot/internal/clock"
	"pitot/internal/results/record"
)

// ending is what a connection tells of an exchange.
type ending struct {
	x        *Exchange
	reusable bool
}

// started gives a reading connection over a pipe or socket.
func started(c net.Conn) (*Conn, chan ending) {
	ended := make(chan ending, 16)
	conn := &Conn{conn: c, raw: c, src: newSource(c)}
	conn.StartReading(func(_ *Conn, x *Exchange, reusable bool) { ended <- ending{x, reusable} })
	return conn, ended
}

func asked(path string, size int) *Exchange {
	x := NewExchange(api.Chat)
	x.Sink = discard{}
	x.Begin(blank(true, false))
	x.Request = append(AppendHead(nil, "POST", "h", path, nil, size), make([]byte, size)...)
	return x
}

// serveChat answers requests on a connection until it is closed.
func serveChat(c net.Conn) {
	for {
		head, err := readHead(c)
		if err != nil {
			return
		}
		var size int
		_, after, _ := strings.Cut(head, "Content-Length: ")
		_, _ = fmt.Sscan(after, &size)
		if _, err := io.CopyN(io.Discard, c, int64(size)); err != nil {
			return
		}
		if _, err := io.WriteString(c, streamed(textEvent("a"), finish("stop"), done)); err != nil {
			return
		}
	}
}

func TestConnIsUsedAgain(t *testing.T) {
	addr := listen(t, "tcp", "127.0.0.1:0", serveChat)
	d := &Dialer{Endpoint: Endpoint{Addr: addr, Host: addr}, Stamps: true}
	c, err := d.Connect(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Abort()
	ended := make(chan ending, 1)
	c.StartReading(func(_ *Conn, x *Exchange, reusable bool) { ended <- ending{x, reusable} })
	for i, size := range []int{0, 10, inline + 1, 3 << 20, 5} {
		x := asked("/x", size)
		c.Send(x)
		e := <-ended
		if r := e.x.Row; e.x != x || !e.reusable || r.Outcome != record.OK || r.Chunks != 1 || r.Sent > r.Headers || r.BytesOut != int64(len(x.Request)) || c.Uses != i+1 || !c.IsAlive() {
			t.Errorf("request of %d bytes: %+v", size, r)
		}
	}
}

func TestConnNoticesTheServersClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, client := net.Pipe()
		c, ended := started(client)
		server.Close()
		synctest.Wait()
		if c.IsAlive() {
			t.Error("alive")
		}
		x := asked("/", 0)
		x.Row.Reused = true
		c.Send(x)
		if e := <-ended; e.x != x || e.reusable || !x.IsStale() {
			t.Errorf("%+v", x.Row)
		}
	})
}

func TestUnrequestedBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, client := net.Pipe()
		defer server.Close()
		c, ended := started(client)
		_, _ = io.WriteString(server, "HTTP/1.1 408 Request Timeout\r\n\r\n")
		synctest.Wait()
		if c.IsAlive() || len(ended) != 0 {
			t.Error("alive")
		}
	})
}

// Whoever wins, the reader that sees the close or the sender, an exchange
// ends once.
func TestSendOnADyingConnectionEndsOnce(t *testing.T) {
	for i := range 400 {
		server, client := net.Pipe()
		var n atomic.Int32
		ended := make(chan struct{}, 2)
		c := &Conn{conn: client, raw: client, src: newSource(client)}
		c.StartReading(func(*Conn, *Exchange, bool) { n.Add(1); ended <- struct{}{} })
		x := asked("/", (i%2)*(inline+1))
		go server.Close()
		if i%3 == 0 {
			go c.Abort()
		}
		c.Send(x)
		<-ended
		if x.Row.Outcome != record.Failed || x.Row.Done < x.Row.Sent || n.Load() != 1 {
			t.Fatalf("%d endings, %+v", n.Load(), x.Row)
		}
	}
}

func TestConnAbandon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, client := net.Pipe()
		defer server.Close()
		go func() { _, _ = io.Copy(io.Discard, server) }()
		c, ended := started(client)
		x := asked("/", 0)
		c.Send(x)
		synctest.Wait()
		x.RequestAbandon(record.ErrTimeout)
		c.Abort()
		if e := <-ended; e.reusable || x.Row.Outcome != record.Cut || x.Row.Error != record.ErrTimeout || c.IsAlive() {
			t.Errorf("%+v", x.Row)
		}
	})
}

// After the end mark a server has a second to end its answer.
func TestGrace(t *testing.T) {
	for _, c := range []struct {
		late     time.Duration
		reusable bool
	}{{grace / 2, true}, {2 * grace, false}} {
		synctest.Test(t, func(t *testing.T) {
			server, client := net.Pipe()
			defer server.Close()
			conn, ended := started(client)
			defer conn.Abort()
			go func() {
				_, _ = readHead(server)
				_, _ = io.WriteString(server, strings.TrimSuffix(streamed(textEvent("a"), done), lastChunk))
				time.Sleep(c.late)
				_, _ = io.WriteString(server, lastChunk)
			}()
			begin := time.Now()
			x := asked("/", 0)
			x.Origin = clock.Now()
			conn.Send(x)
			e := <-ended
			if e.reusable != c.reusable || x.Row.Outcome != record.OK || time.Since(begin) > grace {
				t.Errorf("%v late: reusable %v after %v, %+v", c.late, e.reusable, time.Since(begin), x.Row)
			}
			// The answer itself ended when its last token came.
			if waited := min(c.late, grace); x.Row.LastToken != x.Row.FirstToken || time.Duration(x.Row.Done-x.Row.LastToken) < waited {
				t.Errorf("%v late: %+v", c.late, x.Row)
			}
			time.Sleep(10 * grace)
			synctest.Wait()
			if conn.IsAlive() != c.reusable { // the deadline is gone with the answer
				t.Errorf("%v late: alive is %v", c.late, conn.IsAlive())
			}
		})
	}
}

// A server may answer before it has read the request. The exchange, whose
// buffers are used again, has ended only when nobody writes it any more.
func TestAnswerBeforeTheRequestIsRead(t *testing.T) {
	t.Parallel() // the grace period passes
	server, client := net.Pipe()
	defer server.Close()
	c, ended := started(client)
	x := asked("/", 10*inline)
	c.Send(x)
	_, _ = readHead(server)
	_, _ = io.WriteString(server, answered("413 Too Large", "text/plain", "no"))
	e := <-ended
	clear(x.Request) // a race if it were still being written
	if e.reusable || x.Row.Status != 413 || x.Row.Error != record.ErrBadRequest || c.IsAlive() {
		t.Errorf("reusable %v, %+v", e.reusable, x.Row)
	}
}

// A server that refuses a request and closes is heard, though the write fails.
func TestAnswerOfAServerThatStopsReading(t *testing.T) {
	addr := listen(t, "tcp", "127.0.0.1:0", func(c net.Conn) {
		_, _ = readHead(c)
		_, _ = io.WriteString(c, answered("413 Too Large", "text/plain", "no"))
		_ = c.(*net.TCPConn).CloseWrite()
		time.Sleep(10 * time.Millisecond)
	})
	raw, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	c, ended := started(raw)
	x := asked("/", 8<<20)
	c.Send(x)
	if e := <-ended; e.reusable || x.Row.Status != 413 {
		t.Errorf("%+v", x.Row)
	}
}

// scripted is a source whose reads are given.
type scripted struct {
	net.Conn
	reads []read
}

func (s *scripted) read(p []byte) (int, stamp.Arrival, error) {
	if len(s.reads) == 0 {
		return 0, stamp.Arrival{}, io.EOF
	}
	r := &s.reads[0]
	n := copy(p, r.text)
	a := stamp.Arrival{Time: r.at, Kernel: true, More: r.more}
	if r.text = r.text[n:]; r.text == "" {
		s.reads = s.reads[1:]
	} else {
		a.More = true
	}
	return n, a, nil
}

func tlsRecord(n int) string {
	return string([]byte{23, 3, 3, byte(n >> 8), byte(n)}) + strings.Repeat("x", n)
}

// No read of crypto/tls crosses the end of a record, however records and
// segments lie, and the stamp is of the segment that ends the record.
func TestRecordConn(t *testing.T) {
	a, b, long := tlsRecord(10), tlsRecord(300), tlsRecord(16384)
	for _, c := range []struct {
		name  string
		reads []read
		want  string // of each record: its length, stamp, and + if more waits
	}{
		{"one each", []read{{a, 10, false}, {b, 20, false}}, "15@10 305@20"},
		{"two in a segment", []read{{a + b, 10, false}}, "15@10+ 305@10"},
		{"a part behind", []read{{a + b[:100], 10, false}, {b[100:], 20, false}}, "15@10+ 305@20"},
		{"a part of a header behind", []read{{a + b[:3], 10, false}, {b[3:], 20, false}}, "15@10+ 305@20"},
		{"more in the socket", []read{{a, 10, true}, {b, 10, false}}, "15@10+ 305@10"},
		{"byte by byte", []read{{a[:1], 1, false}, {a[1:2], 2, false}, {a[2:5], 3, false}, {a[5:], 4, false}}, "15@4"},
		{"longer than a read", []read{{long + a, 10, false}}, "16389@10+ 15@10"},
	} {
		src := &scripted{reads: c.reads}
		rc := &recordConn{src: src}
		var got []string
		p := make([]byte, 4096)
		for size := 0; ; {
			n, err := rc.Read(p)
			if err != nil {
				break
			}
			if size += n; rc.left > 0 {
				continue
			}
			s := fmt.Sprintf("%d@%d", size, rc.arrival.Time)
			if rc.arrival.More || len(rc.buf) > 0 {
				s += "+"
			}
			got, size = append(got, s), 0
		}
		if s := strings.Join(got, " "); s != c.want {
			t.Errorf("%s: %s, want %s", c.name, s, c.want)
		}
	}
}

// batched is a connection whose writes leave together.
type batched struct {
	net.Conn
	held []byte
	hold bool
}

func (b *batched) Write(p []byte) (int, error) {
	if b.hold {
		b.held = append(b.held, p...)
		return len(p), nil
	}
	return b.Conn.Write(p)
}

// Records that come in one segment are told from records that come apart.
func TestTLSRecordsOfOneSegment(t *testing.T) {
	cert, pool := selfSigned(t)
	addr := listen(t, "tcp", "127.0.0.1:0", func(raw net.Conn) {
		b := &batched{Conn: raw}
		c := tls.Server(b, &tls.Config{Certificates: []tls.Certificate{cert}})
		if _, err := readHead(c); err != nil {
			return
		}
		b.hold = true
		for _, s := range []string{streamHead, chunk(event(textEvent("a"))), chunk(event(textEvent("b"))), chunk(event(textEvent("c")))} {
			_, _ = io.WriteString(c, s)
		}
		b.hold = false
		_, _ = raw.Write(b.held)
		_, _ = io.Copy(io.Discard, c) // until the client has seen them
	})
	d := &Dialer{Endpoint: Endpoint{TLS: true, Addr: addr, Host: addr, Config: &tls.Config{RootCAs: pool}}, Stamps: true}
	c, err := d.Connect(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if c.Times.TLS <= 0 {
		t.Error("no time of the handshake")
	}
	sink := &seen{n: make(chan struct{}, 3)}
	x := asked("/", 0)
	x.Sink = sink
	ended := make(chan struct{})
	c.StartReading(func(*Conn, *Exchange, bool) { close(ended) })
	c.Send(x)
	for range 3 {
		<-sink.n
	}
	c.Abort()
	<-ended
	k := sink.chunks
	if k[0].Earliest == k[0].T || k[1].Earliest == k[1].T || k[2].Earliest != k[2].T || k[0].T != k[2].T || x.Row.Arrivals != 1 || x.Row.Merged != 2 {
		t.Errorf("%+v, %+v", k, x.Row)
	}
}

// seen is a sink that tells of chunks.
type seen struct {
	kept
	n chan struct{}
}

func (s *seen) Chunk(c record.Chunk) { s.kept.Chunk(c); s.n <- struct{}{} }

// A close and a reset are seen even when they come right behind data, so that
// one wake-up of the reader covers both.
func TestEndRightBehindData(t *testing.T) {
	readers := stamp.NewReaders()
	defer readers.Close()
	for _, reset := range []bool{false, true} {
		addr := listen(t, "tcp", "127.0.0.1:0", func(c net.Conn) {
			_, _ = readHead(c)
			if reset {
				_ = c.(*net.TCPConn).SetLinger(0)
			}
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n5\r\ndata:\r\n")
		})
		const n = 200
		all := make(chan ending, n)
		for range n {
			raw, err := net.Dial("tcp", addr)
			if err != nil {
				t.Fatal(err)
			}
			c := &Conn{conn: raw, raw: raw, src: newSource(raw), readers: readers}
			c.StartReading(func(_ *Conn, x *Exchange, reusable bool) { all <- ending{x, reusable} })
			c.Send(asked("/", 0))
		}
		for range n {
			e := <-all
			if r := e.x.Row; r.Outcome != record.Failed || r.Error != record.ErrClosed && r.Error != record.ErrReset {
				t.Errorf("reset %v: %v %q", reset, r.Outcome, r.Error)
			}
		}
	}
}
