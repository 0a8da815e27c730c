package clock

import (
	"errors"
	"io"
	"net"
	"testing"
	"time"
)

// pair of loopback connections, the first with a receiver on it.
func connected(t testing.TB) (r *Receiver, reads, writes net.Conn) {
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
		before := Now()
		if _, err := writes.Write([]byte{byte(i)}); err != nil {
			t.Fatal(err)
		}
		sent := Now()
		if i%4 == 0 {
			time.Sleep(3 * time.Millisecond) // a reader that is late
		}
		n, at, kernel, err := r.Read(buf)
		after := Now()
		if err != nil || n != 1 || buf[0] != byte(i) {
			t.Fatalf("read %d: %d bytes, %v", i, n, err)
		}
		if at > after || at < before-slack {
			t.Errorf("read %d: stamp %d, sent after %d, read before %d", i, at, before, after)
		}
		if kernel {
			// On loopback the bytes arrive while they are written.
			if stamped++; at > sent+slack {
				t.Errorf("read %d: arrived %v after it was written", i, time.Duration(at-sent))
			}
		}
	}
	if stamped < 15 {
		t.Errorf("%d of 20 reads had a kernel stamp", stamped)
	}
}

func TestReceiverRun(t *testing.T) {
	r, _, writes := connected(t)
	go func() {
		for _, s := range []string{"one", "two", "three"} {
			_, _ = io.WriteString(writes, s)
			time.Sleep(2 * time.Millisecond)
		}
		writes.Close()
	}()
	got, last := "", int64(0)
	var end error
	buf := make([]byte, 4) // smaller than the longest
	r.Run(buf, func(b []byte, at int64, kernel, more bool, err error) bool {
		got += string(b)
		if at < last {
			t.Errorf("%d after %d", at, last)
		}
		if last, end = at, err; err == nil && len(got) == 10 && !more {
			t.Error("the rest of a long segment is said not to be there")
		}
		return true
	})
	if got != "onetwothree" || end != io.EOF {
		t.Errorf("%q, %v", got, end)
	}
}

// take can stop a Run.
func TestReceiverRunStops(t *testing.T) {
	r, _, writes := connected(t)
	_, _ = io.WriteString(writes, "x")
	calls := 0
	r.Run(make([]byte, 8), func([]byte, int64, bool, bool, error) bool { calls++; return false })
	if calls != 1 {
		t.Errorf("%d calls", calls)
	}
}

func TestReceiverEnds(t *testing.T) {
	t.Run("close by the other side", func(t *testing.T) {
		r, _, writes := connected(t)
		writes.Close()
		if n, _, _, err := r.Read(make([]byte, 8)); n != 0 || err != io.EOF {
			t.Errorf("%d bytes, %v", n, err)
		}
	})
	t.Run("reset", func(t *testing.T) {
		r, _, writes := connected(t)
		_ = writes.(*net.TCPConn).SetLinger(0)
		writes.Close()
		if n, _, _, err := r.Read(make([]byte, 8)); n != 0 || err == nil || err == io.EOF {
			t.Errorf("%d bytes, %v", n, err)
		}
	})
	t.Run("close by ourselves", func(t *testing.T) {
		r, reads, _ := connected(t)
		time.AfterFunc(5*time.Millisecond, func() { reads.Close() })
		if n, _, _, err := r.Read(make([]byte, 8)); n != 0 || !errors.Is(err, net.ErrClosed) {
			t.Errorf("%d bytes, %v", n, err)
		}
	})
	t.Run("deadline", func(t *testing.T) {
		r, reads, _ := connected(t)
		_ = reads.SetReadDeadline(time.Now().Add(5 * time.Millisecond))
		var ne net.Error
		if _, _, _, err := r.Read(make([]byte, 8)); !errors.As(err, &ne) || !ne.Timeout() {
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
		if _, _, _, err := r.Read(buf); err != nil {
			b.Fatal(err)
		}
	}
}
