package stamp

import (
	"errors"
	"io"
	"net"
	"pitot/internal/clock"
	"testing"
	"time"
)

// loopback gives the two ends of a TCP connection.
func loopback(t testing.TB) (reads, writes net.Conn) {
	t.Helper()
	if !Kernel {
		t.Skip("no kernel stamps on this platform")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	prime := Prime()
	t.Cleanup(func() { prime.Close() })
	if writes, err = net.Dial("tcp", l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if reads, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { reads.Close(); writes.Close() })
	return reads, writes
}

// connected gives a connection with a receiver on its first end.
func connected(t testing.TB) (r *Receiver, reads, writes net.Conn) {
	t.Helper()
	reads, writes = loopback(t)
	if r = NewReceiver(reads); r == nil {
		t.Skip("this kernel has no receive stamps")
	}
	// The kernel takes a moment before it stamps for the first time.
	time.Sleep(5 * time.Millisecond)
	return r, reads, writes
}

// slack is how far apart two readings of the wall clock and of the monotonic
// clock may be taken.
const slack = int64(50 * time.Microsecond)

// A stamp lies between the moment before the bytes were sent and the moment
// after they were read, however long they lay there.
func TestReceiverStamps(t *testing.T) {
	r, _, writes := connected(t)
	buf := make([]byte, 64)
	stamped := 0
	for i := range 20 {
		before := clock.Now()
		if _, err := writes.Write([]byte{byte(i)}); err != nil {
			t.Fatal(err)
		}
		sent := clock.Now()
		if i%4 == 0 {
			time.Sleep(3 * time.Millisecond) // a reader that is late
		}
		n, a, err := r.Read(buf)
		after := clock.Now()
		if err != nil || n != 1 || buf[0] != byte(i) {
			t.Fatalf("read %d: %d bytes, %v", i, n, err)
		}
		if a.Time > after || a.Time < before-slack {
			t.Errorf("read %d: stamp %d, sent after %d, read before %d", i, a.Time, before, after)
		}
		if a.Kernel {
			// On loopback the bytes arrive while they are written.
			if stamped++; a.Time > sent+slack {
				t.Errorf("read %d: arrived %v after it was written", i, time.Duration(a.Time-sent))
			}
		}
	}
	if stamped < 15 {
		t.Errorf("%d of 20 reads had a kernel stamp", stamped)
	}
}

func TestReceiverEnds(t *testing.T) {
	t.Run("close by the other side", func(t *testing.T) {
		r, _, writes := connected(t)
		writes.Close()
		if n, _, err := r.Read(make([]byte, 8)); n != 0 || err != io.EOF {
			t.Errorf("%d bytes, %v", n, err)
		}
	})
	t.Run("reset", func(t *testing.T) {
		r, _, writes := connected(t)
		_ = writes.(*net.TCPConn).SetLinger(0)
		writes.Close()
		if n, _, err := r.Read(make([]byte, 8)); n != 0 || err == nil || err == io.EOF {
			t.Errorf("%d bytes, %v", n, err)
		}
	})
	t.Run("close by ourselves", func(t *testing.T) {
		r, reads, _ := connected(t)
		time.AfterFunc(5*time.Millisecond, func() { reads.Close() })
		if n, _, err := r.Read(make([]byte, 8)); n != 0 || !errors.Is(err, net.ErrClosed) {
			t.Errorf("%d bytes, %v", n, err)
		}
	})
	t.Run("deadline", func(t *testing.T) {
		r, reads, _ := connected(t)
		_ = reads.SetReadDeadline(time.Now().Add(5 * time.Millisecond))
		var ne net.Error
		if _, _, err := r.Read(make([]byte, 8)); !errors.As(err, &ne) || !ne.Timeout() {
			t.Error(err)
		}
	})
}

func TestNoReceiver(t *testing.T) {
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	if NewReceiver(a) != nil {
		t.Error("a pipe has no stamps")
	}
}

func BenchmarkReceiver(b *testing.B) {
	r, _, writes := connected(b)
	buf, out := make([]byte, 8<<10), make([]byte, 300)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := writes.Write(out); err != nil {
			b.Fatal(err)
		}
		if _, _, err := r.Read(buf); err != nil {
			b.Fatal(err)
		}
	}
}
