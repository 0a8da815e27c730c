package loadgen

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// times is a schedule written down; after its end nothing is due.
type times []int64

func (t *times) Next() int64 {
	if len(*t) == 0 {
		return Never
	}
	due := (*t)[0]
	*t = (*t)[1:]
	return due
}

func dueAt(due ...int64) *times { t := times(due); return &t }

// every is due each gap from first on, for ever.
type every struct{ next, gap int64 }

func (e *every) Next() int64 {
	due := e.next
	e.next += e.gap
	return due
}

// script drives a Core by hand and writes actions down as words: "start 3"
// where due and eligible are now, else with what differs.
type script struct {
	t *testing.T
	c *Core
}

func (s script) want(now int64, events []Event, want ...string) {
	s.t.Helper()
	var got []string
	for _, a := range s.c.Advance(now, events) {
		got = append(got, words(a, now))
	}
	if !slices.Equal(got, want) {
		s.t.Errorf("at %d:\n got %q\nwant %q", now, got, want)
	}
}

func (s script) wake(want int64) {
	s.t.Helper()
	if got := s.c.NextWake(); got != want {
		s.t.Errorf("wakes at %d, want %d", got, want)
	}
}

func (s script) window(t0, t1 int64) {
	s.t.Helper()
	if g0, g1 := s.c.MeasuredWindow(); g0 != t0 || g1 != t1 {
		s.t.Errorf("window [%d, %d), want [%d, %d)", g0, g1, t0, t1)
	}
}

func (s script) over() {
	s.t.Helper()
	if !s.c.Over() {
		s.t.Error("it is not over")
	}
}

func words(a Action, now int64) string {
	w := fmt.Sprintf("%s %d", [...]string{"start", "cancel", "drop", "prepare", "forget", "again", "settle"}[a.Kind], a.ID)
	if a.Kind != Cancel && a.Due != now {
		w += fmt.Sprintf(" due %d", a.Due)
	}
	if a.Kind == Start && a.Eligible != a.Due {
		w += fmt.Sprintf(" eligible %d", a.Eligible)
	}
	return strings.TrimSpace(w + " " + a.Class)
}

func ended(pairs ...int64) (e []Event) {
	for i := 0; i < len(pairs); i += 2 {
		e = append(e, Event{ID: pairs[i], At: pairs[i+1]})
	}
	return e
}

func TestOpenLoop(t *testing.T) {
	s := script{t, NewCore(Config{Arrivals: dueAt(10, 20, 30, 40, 55), Warmup: 15, Window: 30, Timeout: 1000})}
	s.wake(10)
	s.want(5, nil)
	s.want(10, nil, "start 0")
	s.want(33, ended(0, 25), "start 1 due 20", "start 2 due 30") // late: what is due stays due
	s.wake(40)
	s.want(40, nil, "start 3")
	s.wake(55)
	s.want(45, ended(1, 44)) // the window is over, its cohort is not
	s.want(55, nil, "start 4")
	s.want(60, ended(2, 57))
	s.want(70, ended(3, 68), "cancel 4 interrupted") // now it is
	s.wake(Never)
	s.want(70, ended(4, 70))
	s.over()
	s.window(15, 45)
}

// An empty window ends without anything in it.
func TestWindowWithoutRequests(t *testing.T) {
	s := script{t, NewCore(Config{Arrivals: dueAt(100), Warmup: 5, Window: 10})}
	s.wake(15)
	s.want(15, nil)
	s.over()
}

func TestCap(t *testing.T) {
	s := script{t, NewCore(Config{Arrivals: dueAt(1, 2, 3, 4, 5, 30), Cap: 2, Window: 20, Timeout: 1000})}
	s.want(5, nil, "start 0 due 1", "start 1 due 2")
	if s.c.Held() != 3 || s.c.InFlight() != 2 {
		t.Errorf("%d held, %d in flight", s.c.Held(), s.c.InFlight())
	}
	s.want(10, ended(1, 9), "start 2 due 3 eligible 9")
	s.want(25, ended(0, 21, 2, 15), "start 3 due 4 eligible 15", "start 4 due 5 eligible 21")
	s.want(30, nil) // held behind the cap, after the window
}

// Held requests of the window stay in the cohort.
func TestHeldCohort(t *testing.T) {
	s := script{t, NewCore(Config{Arrivals: dueAt(1, 2, 30), Cap: 1, Window: 10, Timeout: 1000})}
	s.want(2, nil, "start 0 due 1")
	s.want(15, ended(0, 14), "start 1 due 2 eligible 14")
	s.wake(30)
	s.want(30, nil)
	s.want(40, ended(1, 39), "start 2 due 30 eligible 39", "cancel 2 interrupted")
}

func TestClosedLoop(t *testing.T) {
	think := func(id int64) int64 { return 5 + id }
	s := script{t, NewCore(Config{Users: 2, Think: think, Window: 40, Timeout: 1000})}
	s.wake(0)
	s.want(0, nil, "start 0", "start 1")
	s.want(11, ended(1, 10))                                     // user of 1 thinks until 16
	s.want(30, ended(0, 13), "start 2 due 16", "start 3 due 18") // late again
	s.want(31, ended(2, 31, 3, 30))                              // due 38 both
	s.want(38, nil, "start 4", "start 5")
	s.want(50, ended(4, 44, 5, 50))
	s.over()
}

// Events that are heard of together are taken in the order they happened.
func TestOrderOfEvents(t *testing.T) {
	s := script{t, NewCore(Config{Users: 2, Cap: 1, Window: 100, Timeout: 1000})}
	s.want(0, nil, "start 0")
	s.want(10, ended(0, 7), "start 1 due 0 eligible 7")
	s.want(20, ended(1, 15), "start 2 due 7 eligible 15")
}

func TestRequests(t *testing.T) {
	s := script{t, NewCore(Config{Arrivals: &every{gap: 10}, Warmup: 15, Requests: 3, Timeout: 1000})}
	s.window(15, Never)
	s.want(45, nil, "start 0 due 0", "start 1 due 10", "start 2 due 20", "start 3 due 30", "start 4 due 40")
	s.want(46, ended(2, 46, 3, 46, 4, 46)) // all three ended, but the fourth is not due yet
	s.wake(50)
	s.want(50, nil, "start 5", "cancel 0 interrupted", "cancel 1 interrupted", "cancel 5 interrupted")
	s.window(15, 50)
}

// Users who ask at the same time are told apart, so that exactly as many are
// due in the window as were asked for.
func TestRequestsThatTie(t *testing.T) {
	s := script{t, NewCore(Config{Users: 4, Requests: 6, Timeout: 1000})}
	s.want(0, nil, "start 0", "start 1", "start 2", "start 3")
	s.want(10, ended(0, 10, 1, 10, 2, 10, 3, 10), "start 4", "start 5")
	s.wake(11)
	s.want(11, nil, "start 6", "start 7")
	s.window(0, 11)
	// An answer that was heard of late does not reach back into the window.
	s.want(20, ended(6, 10), "start 8 due 11")
}

// A list of arrivals that ends before the window has its count.
func TestArrivalsThatEnd(t *testing.T) {
	s := script{t, NewCore(Config{Arrivals: dueAt(1, 2), Requests: 9})}
	s.want(2, nil, "start 0 due 1", "start 1")
	s.wake(Never)
	s.want(8, ended(0, 7, 1, 8))
	s.over()
	s.window(0, 8)
}

func TestTimeout(t *testing.T) {
	s := script{t, NewCore(Config{Arrivals: dueAt(0, 10, 200), Window: 100, Timeout: 50})}
	s.want(10, nil, "start 0 due 0", "start 1")
	s.wake(50)
	s.want(50, nil, "cancel 0 timeout")
	s.wake(60)
	s.want(52, ended(0, 51)) // what it gave in between does not matter
	s.want(61, nil, "cancel 1 timeout")
	s.wake(200) // not before 1 has ended
	s.want(62, ended(1, 62))
	s.wake(100)
	s.want(100, nil)
	s.over()
}

// A request held for the whole timeout is dropped, and the time at which it is
// does not depend on when the pacer looks.
func TestHeldTooLong(t *testing.T) {
	s := script{t, NewCore(Config{Arrivals: dueAt(0, 1, 40, 300), Cap: 1, Window: 100, Timeout: 50})}
	s.want(40, nil, "start 0 due 0")
	s.want(90, ended(0, 60), "drop 1 due 1 timeout", "start 2 due 40 eligible 60")
	s.want(100, ended(2, 99))
	s.over()
}

func TestHeldUserGoesOn(t *testing.T) {
	s := script{t, NewCore(Config{Users: 2, Cap: 1, Think: func(int64) int64 { return 7 }, Window: 100, Timeout: 50})}
	s.want(0, nil, "start 0")
	s.wake(50)
	s.want(50, nil, "drop 1 due 0 timeout", "cancel 0 timeout") // users go on at 57 and at 59
	s.want(59, ended(0, 52), "start 2 due 57")
	s.wake(107)
}

func TestInterrupt(t *testing.T) {
	s := script{t, NewCore(Config{Arrivals: &every{gap: 10}, Cap: 2, Warmup: 5, Window: 100, Timeout: 1000})}
	s.want(30, nil, "start 0 due 0", "start 1 due 10")
	s.c.Interrupt(42)
	s.want(42, ended(0, 35), "drop 2 due 20 interrupted", "drop 3 due 30 interrupted", "drop 4 due 40 interrupted", "cancel 1 interrupted")
	s.window(5, 42)
	s.wake(Never)
	s.want(43, ended(1, 43))
	s.over()
}

// An interruption is heard of before what came due until then: the window has no more
// than it counts all the same, also of requests that are due at one time (found by
// TestAnyWorld with -rapid.seed=2265613554528562842).
func TestInterruptOfRequestsThatTie(t *testing.T) {
	s := script{t, NewCore(Config{Arrivals: dueAt(1, 1, 1, 9), Requests: 1, Timeout: 1000})}
	s.c.Interrupt(5)
	s.want(5, nil, "drop 0 due 1 interrupted", "drop 1 due 2 interrupted", "drop 2 due 2 interrupted")
	s.window(0, 2)
	s.over()
}

func TestInterruptInWarmup(t *testing.T) {
	s := script{t, NewCore(Config{Users: 1, Warmup: 50, Requests: 9, Timeout: 1000})}
	s.want(0, nil, "start 0")
	s.c.Interrupt(20)
	s.want(20, nil, "cancel 0 interrupted")
	s.window(50, 50) // nothing was measured
}

func TestInterruptBeforeTheLoad(t *testing.T) {
	s := script{t, NewCore(Config{Users: 1, Window: 50})}
	s.c.Interrupt(-5)
	s.want(-5, nil)
	s.over()
	s.window(0, 0)
}

// A timeout that never comes does not overflow.
func TestNoTimeout(t *testing.T) {
	for _, timeout := range []int64{0, Never} {
		s := script{t, NewCore(Config{Arrivals: dueAt(5, 6), Cap: 1, Window: 50, Timeout: timeout})}
		s.want(6, nil, "start 0 due 5")
		s.wake(Never)
		s.want(1e18, nil)
	}
}

// Run interrupts once, and waits for what it has cancelled.
func TestRunInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	w := &slowWorld{stop: cancel, at: 25}
	c := NewCore(Config{Arrivals: &every{gap: 10}, Window: 1000, Timeout: 1000})
	Run(ctx, c, w)
	want := []string{"start 0", "start 1", "start 2", "cancel 0", "cancel 1", "cancel 2"}
	if !slices.Equal(w.did, want) {
		t.Errorf("%q, want %q", w.did, want)
	}
	if _, t1 := c.MeasuredWindow(); t1 != 25 {
		t.Errorf("the window ends at %d", t1)
	}
}

// slowWorld answers nothing, calls stop at a time, and takes 3 for a cancel.
type slowWorld struct {
	now, at int64
	stop    func()
	did     []string
	dying   []Event
}

func (w *slowWorld) Now() int64 { return w.now }

func (w *slowWorld) Do(a Action) {
	w.did = append(w.did, fmt.Sprintf("%s %d", [...]string{"start", "cancel", "drop"}[a.Kind], a.ID))
	if a.Kind == Cancel {
		w.dying = append(w.dying, Event{ID: a.ID, At: w.now + 3})
	}
}

func (w *slowWorld) Wait(ctx context.Context, until int64) []Event {
	if ctx.Err() != nil {
		return nil
	}
	if len(w.dying) > 0 {
		e := w.dying[:1]
		w.dying = w.dying[1:]
		w.now = e[0].At
		return e
	}
	if until > w.at && w.stop != nil {
		w.now = w.at
		w.stop()
		w.stop = nil
		return nil
	}
	w.now = until
	return nil
}

// What is due in the span of a burst is due at its end: arrivals, and what follows an answer.
func TestBurst(t *testing.T) {
	turn := func(item int64, e Event) []Ask {
		if item >= 100 {
			return nil
		}
		return []Ask{{Due: e.At + 10, Item: item + 100}}
	}
	s := script{t, NewCore(Config{Arrivals: dueAt(5, 19, 20, 29, 30, 41), Follow: turn, Burst: [2]int64{20, 30}, Warmup: 40, Window: 10})}
	s.want(5, nil, "start 0")
	s.want(12, ended(0, 11), "prepare -1 due 30") // it would be at 21
	s.want(19, nil, "start 1")
	s.wake(30)
	s.want(30, nil, "start 2", "start 3", "start 4", "start 5")
	s.wake(41)
}
