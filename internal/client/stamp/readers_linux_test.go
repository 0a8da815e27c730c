package stamp

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"pitot/internal/clock"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// piece is what a socket's owner was handed.
type piece struct {
	text string
	Arrival
	err error
}

// inbox keeps what a socket is handed.
type inbox struct {
	pieces chan piece
	stop   string // the text after which it wants no more
}

func (in *inbox) Warm() {}

func (in *inbox) Arrived(b []byte, a Arrival, err error) bool {
	in.pieces <- piece{string(b), a, err}
	return in.stop == "" || string(b) != in.stop
}

// owner is a function that wants bytes and errors.
type owner func(b []byte, err error) bool

func (o owner) Warm() {}

func (o owner) Arrived(b []byte, _ Arrival, err error) bool { return o(b, err) }

// next gives the next piece.
func (in *inbox) next(t *testing.T) piece {
	t.Helper()
	select {
	case p := <-in.pieces:
		return p
	case <-time.After(time.Minute):
		t.Fatal("nothing arrives")
		return piece{}
	}
}

func none(t *testing.T, in *inbox) {
	t.Helper()
	select {
	case p := <-in.pieces:
		t.Errorf("%+v", p)
	case <-time.After(5 * time.Millisecond):
	}
}

func readers(t testing.TB) *Readers {
	t.Helper()
	rs := NewReaders()
	if rs == nil {
		t.Skip("no readers on this system")
	}
	t.Cleanup(rs.Close)
	return rs
}

// read begins to read a new connection.
func read(t *testing.T, rs *Readers, stop string) (*Socket, *inbox, net.Conn) {
	t.Helper()
	near, far := loopback(t)
	s := rs.Add(near)
	if s == nil {
		t.Skip("this kernel has no receive stamps")
	}
	in := &inbox{pieces: make(chan piece, 1<<10), stop: stop}
	s.Start(in)
	time.Sleep(5 * time.Millisecond) // the kernel takes a moment before it stamps for the first time
	return s, in, far
}

// Each arrival is handed on once, with a stamp between its writing and its
// reading.
func TestReadersStamp(t *testing.T) {
	_, in, far := read(t, readers(t), "")
	last, stamped := int64(0), 0
	for i := range 20 {
		before := clock.Now()
		if _, err := far.Write([]byte{byte('a' + i)}); err != nil {
			t.Fatal(err)
		}
		sent := clock.Now()
		p := in.next(t)
		after := clock.Now()
		if p.text != string(rune('a'+i)) || p.err != nil || p.More {
			t.Errorf("%+v", p)
		}
		latest := after
		if p.Kernel { // on loopback the bytes arrive while they are written
			stamped++
			latest = min(after, sent+slack)
		}
		if p.Time < max(before-slack, last) || p.Time > latest {
			t.Errorf("written between %d and %d, stamped %d, read by %d", before, sent, p.Time, after)
		}
		last = p.Time
	}
	if stamped < 15 {
		t.Errorf("%d of 20 reads had a kernel stamp", stamped)
	}
	none(t, in)
}

// What is longer than a read comes in several, and all but the last say so.
func TestReadersLongArrival(t *testing.T) {
	_, in, far := read(t, readers(t), "")
	sent := bytes.Repeat([]byte("0123456789abcde\n"), 1<<16)
	go func() { _, _ = far.Write(sent); far.Close() }()
	var got []byte
	for {
		p := in.next(t)
		got = append(got, p.text...)
		if p.More != (len(p.text) == readSize) {
			t.Errorf("%d bytes, more %v", len(p.text), p.More)
		}
		if p.err != nil {
			if p.err != io.EOF {
				t.Error(p.err)
			}
			break
		}
	}
	if !bytes.Equal(got, sent) {
		t.Errorf("%d bytes of %d", len(got), len(sent))
	}
}

// An owner that wants no more is asked no more, and its socket is closed.
func TestReadersStop(t *testing.T) {
	_, in, far := read(t, readers(t), "stop")
	_, _ = io.WriteString(far, "stop")
	in.next(t)
	if n, err := far.Read(make([]byte, 1)); n != 0 || err == nil {
		t.Errorf("%d bytes, %v", n, err)
	}
	none(t, in)
}

func TestReadersEnd(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(s *Socket, rs *Readers, far net.Conn)
		want error
	}{
		"close by the other side": {func(_ *Socket, _ *Readers, far net.Conn) { far.Close() }, io.EOF},
		"reset": {func(_ *Socket, _ *Readers, far net.Conn) {
			_ = far.(*net.TCPConn).SetLinger(0)
			far.Close()
		}, syscall.ECONNRESET},
		"close by ourselves":    {func(s *Socket, _ *Readers, _ net.Conn) { s.Close(); s.Close() }, net.ErrClosed},
		"close of all":          {func(_ *Socket, rs *Readers, _ net.Conn) { rs.Close(); rs.Close() }, net.ErrClosed},
		"deadline":              {func(s *Socket, _ *Readers, _ net.Conn) { _ = s.SetReadDeadline(time.Now().Add(time.Millisecond)) }, os.ErrDeadlineExceeded},
		"deadline that is past": {func(s *Socket, _ *Readers, _ net.Conn) { _ = s.SetReadDeadline(time.Unix(1, 0)) }, os.ErrDeadlineExceeded},
		"deadline that was moved": {func(s *Socket, _ *Readers, _ net.Conn) {
			_ = s.SetReadDeadline(time.Now().Add(time.Hour))
			_ = s.SetReadDeadline(time.Now().Add(time.Millisecond))
		}, os.ErrDeadlineExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			rs := readers(t)
			s, in, far := read(t, rs, "")
			_, _ = io.WriteString(far, "x")
			in.next(t)
			c.end(s, rs, far)
			if p := in.next(t); p.text != "" || !errors.Is(p.err, c.want) {
				t.Errorf("%q, %v", p.text, p.err)
			}
			none(t, in)
			_, err := s.Write([]byte("y"))
			for until := time.Now().Add(5 * time.Second); err == nil && time.Now().Before(until); _, err = s.Write([]byte("y")) {
				time.Sleep(time.Millisecond) // the owner hears of the end before the socket is closed
			}
			if err == nil {
				t.Error("a closed socket is written")
			}
			s.Control(func(uintptr) { t.Error("a closed socket has a descriptor") })
		})
	}
}

// A deadline that was lifted does not end anything.
func TestReadersDeadlineLifted(t *testing.T) {
	s, in, far := read(t, readers(t), "")
	_ = s.SetReadDeadline(time.Now().Add(2 * time.Millisecond))
	_ = s.SetReadDeadline(time.Time{})
	none(t, in)
	_, _ = io.WriteString(far, "x")
	if p := in.next(t); p.text != "x" {
		t.Errorf("%+v", p)
	}
}

// A socket that is started when all is over is told so.
func TestReadersStartTooLate(t *testing.T) {
	rs := readers(t)
	near, _ := loopback(t)
	s := rs.Add(near)
	if s == nil {
		t.Skip("this kernel has no receive stamps")
	}
	rs.Close()
	in := &inbox{pieces: make(chan piece, 4)}
	s.Start(in)
	if p := in.next(t); !errors.Is(p.err, net.ErrClosed) {
		t.Errorf("%+v", p)
	}
	none(t, in)
}

func TestReadersTakeTCPOnly(t *testing.T) {
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	if readers(t).Add(a) != nil || (*Readers)(nil).Add(a) != nil {
		t.Error("a pipe has no stamps")
	}
}

// A write waits for the other side to read, and for nothing else; a close
// ends the wait.
func TestSocketWrite(t *testing.T) {
	s, in, far := read(t, readers(t), "")
	sent := bytes.Repeat([]byte("0123456789abcde\n"), 1<<19) // more than any send buffer
	wrote := make(chan error, 1)
	go func() { _, err := s.Write(sent); wrote <- err }()
	_, _ = io.WriteString(far, "meanwhile")
	if p := in.next(t); p.text != "meanwhile" {
		t.Errorf("%+v", p)
	}
	got := make([]byte, len(sent))
	if _, err := io.ReadFull(far, got); err != nil || !bytes.Equal(got, sent) {
		t.Errorf("%v", err)
	}
	if err := <-wrote; err != nil {
		t.Error(err)
	}
	go func() {
		var err error
		for err == nil { // the buffers of both sides have grown, and may hold one
			_, err = s.Write(sent)
		}
		wrote <- err
	}()
	time.Sleep(5 * time.Millisecond)
	s.Close()
	select {
	case <-wrote:
	case <-time.After(time.Minute):
		t.Error("a closed socket is written")
	}
}

// More sockets than a batch are all read, each in order, whoever else writes.
func TestReadersMany(t *testing.T) {
	rs := readers(t)
	const n, rounds = 3 * batch, 50
	var all sync.WaitGroup
	var got [n][]byte
	for i := range n {
		near, far := loopback(t)
		s := rs.Add(near)
		if s == nil {
			t.Skip("this kernel has no receive stamps")
		}
		all.Add(1)
		s.Start(owner(func(b []byte, err error) bool {
			got[i] = append(got[i], b...)
			if err != nil {
				all.Done()
			}
			return true
		}))
		go func() {
			for r := range rounds {
				_, _ = far.Write([]byte{byte(r)})
			}
			far.Close()
		}()
	}
	all.Wait()
	for i := range n {
		if len(got[i]) != rounds || got[i][0] != 0 || got[i][rounds-1] != rounds-1 {
			t.Fatalf("socket %d: %v", i, got[i])
		}
	}
}

// What a full batch leaves is reported again, also where the reader's own eventfd stands
// behind it: then nothing further needs to arrive. The epoll around the reader's is what the
// runtime's poller is to it.
func TestReadersGoOnBehindAFullBatch(t *testing.T) {
	r, err := newReader()
	if err != nil {
		t.Skip("no readers on this system")
	}
	rs := &Readers{readers: []*reader{r}} // whose goroutine is this test's
	t.Cleanup(func() { rs.Close(); r.run() })
	around, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(around)
	if err := unix.EpollCtl(around, unix.EPOLL_CTL_ADD, r.epoll, &unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLET}); err != nil {
		t.Fatal(err)
	}
	var events [1]unix.EpollEvent
	goOn := func() {
		for pollReady(around, events[:]) > 0 {
			r.readReady()
		}
	}

	handed := 0
	begin := func() {
		near, far := loopback(t)
		s := rs.Add(near)
		if s == nil {
			t.Skip("this kernel has no receive stamps")
		}
		if _, err := far.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
		there := []unix.PollFd{{Fd: int32(s.fd), Events: unix.POLLIN}}
		for {
			if n, err := unix.Poll(there, -1); n == 1 {
				break
			} else if err != nil && err != syscall.EINTR {
				t.Fatal(err)
			}
		}
		s.Start(owner(func(b []byte, err error) bool {
			handed += len(b)
			return err == nil
		}))
	}
	const first = batch + batch/2
	for range first {
		begin()
	}
	if pollReady(around, events[:]) != 1 {
		t.Fatal("nobody hears of the first sockets")
	}
	r.readReady() // begins with them, and so has all of them ready
	begin()       // its letter stands behind them
	goOn()
	if handed != first+1 {
		t.Errorf("%d of %d sockets were read, and nothing more is to come", handed, first+1)
	}
}

func BenchmarkReaders(b *testing.B) {
	near, far := loopback(b)
	s := readers(b).Add(near)
	if s == nil {
		b.Skip("this kernel has no receive stamps")
	}
	arrived := make(chan struct{}, 1)
	s.Start(owner(func([]byte, error) bool { arrived <- struct{}{}; return true }))
	out := make([]byte, 300)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := far.Write(out); err != nil {
			b.Fatal(err)
		}
		<-arrived
	}
}

// A writer that waits for room is woken, though its socket's reader had its
// turn cut meanwhile.
func TestSocketWriteWhileMuchArrives(t *testing.T) {
	s, in, far := read(t, readers(t), "")
	go func() {
		for range in.pieces {
		}
	}()
	wrote := make(chan error, 1)
	go func() { _, err := s.Write(bytes.Repeat([]byte("x"), 16<<20)); wrote <- err }()
	time.Sleep(20 * time.Millisecond) // it waits
	if _, err := far.Write(bytes.Repeat([]byte("y"), 2*maxReads*readSize)); err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = io.Copy(io.Discard, far) }()
	select {
	case err := <-wrote:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Error("the writer waits for ever")
	}
}
