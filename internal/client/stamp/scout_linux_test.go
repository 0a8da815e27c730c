package stamp

import (
	"io"
	"pitot/internal/clock"
	"slices"
	"strings"
	"testing"
	"time"
)

// held gives a socket whose reader's goroutine waits until release is called,
// so that what arrives lies there; the test plays the scout.
func held(t *testing.T) (s *Socket, in *inbox, write func(string), release func()) {
	rs := readers(t)
	s, in, far := read(t, rs, "")
	near, nudge := loopback(t)
	other := rs.Add(near)
	for other.r != s.r { // the readers take sockets in turn
		near, nudge = loopback(t)
		other = rs.Add(near)
	}
	holding, free := make(chan struct{}), make(chan struct{})
	other.Start(owner(func([]byte, error) bool { close(holding); <-free; return false }))
	_, _ = io.WriteString(nudge, "x")
	<-holding
	return s, in, func(text string) {
		_, _ = io.WriteString(far, text)
		time.Sleep(2 * time.Millisecond)
	}, func() { close(free) }
}

// scouted has the reader look, whenever it last did.
func scouted(s *Socket) {
	s.r.scout.due = 0
	s.r.peekScouts(time.Now())
}

// What a scout saw arrive keeps its time, though more came before it was read.
func TestScoutKeepsTheFirstArrival(t *testing.T) {
	s, in, write, release := held(t)
	s.Expect()
	before := clock.Now()
	write("first ")
	seen := clock.Now()
	scouted(s)
	second := clock.Now()
	write("second")
	release()
	a, b := in.next(t), in.next(t)
	if a.text != "first " || b.text != "second" || !a.Kernel || a.More || b.More {
		t.Fatalf("%+v %+v", a, b)
	}
	if a.Time < before-slack || a.Time > seen+slack {
		t.Errorf("the first arrived at %d, sent from %d to %d", a.Time, before, seen)
	}
	if b.Time < second-slack {
		t.Errorf("the second arrived %v before it was sent", time.Duration(second-b.Time))
	}
}

// Several arrivals are kept apart; what came after the last look has the
// read's own stamp. Forgotten sockets are not looked at.
func TestScoutSeveral(t *testing.T) {
	s, in, write, release := held(t)
	s.Expect()
	s.Expect()
	for _, text := range []string{"abc", "defgh"} {
		write(text)
		scouted(s)
	}
	scouted(s) // nothing new
	s.Forget()
	s.Forget()
	write("ij")
	scouted(s)
	write("k")
	release()
	got := ""
	var times []int64
	for !strings.Contains(got, "k") {
		p := in.next(t)
		got += p.text + "|"
		times = append(times, p.Time)
	}
	if got != "abc|defgh|ijk|" || !slices.IsSorted(times) {
		t.Errorf("%q at %v", got, times)
	}
}
