package loadgen

import (
	"slices"
	"testing"
)

// A window that is too short gets a later end; what came due meanwhile belongs
// to it, and the load goes on while nobody knows yet.
func TestExtend(t *testing.T) {
	var extended []int64
	ready := false
	extend := func(_, t1 int64) (int64, bool) {
		extended = append(extended, t1)
		if t1 == 30 {
			return 60, ready
		}
		return t1, true
	}
	s := script{t, NewCore(Config{Arrivals: dueAt(10, 20, 40, 50, 1e8), Window: 30, Timeout: 1e9, Extend: extend})}
	s.want(20, nil, "start 0 due 10", "start 1")
	s.want(35, ended(0, 25, 1, 32)) // asked, not known yet
	s.want(40, nil, "start 2")
	s.wake(50)
	s.want(50, nil, "start 3")
	s.wake(50 + askAgain)
	ready = true
	s.want(55, ended(2, 52)) // known: 3 is one of the window, and is waited for
	s.want(70, nil)
	s.want(80, ended(3, 75))
	s.over()
	s.window(0, 60)
	if !slices.Equal(extended, []int64{30, 30, 30, 30, 60}) {
		t.Errorf("asked about %v", extended)
	}
}

// A load that has only so much time ends with what had time to end: what came before as much as the
// longest request took that ended. One that came before and has not ended is cut off, and still one
// of the window.
func TestEndBy(t *testing.T) {
	arrivals := []int64{5, 20, 40, 60, 80, 100, 120, 140}
	cfg := func() Config {
		return Config{Arrivals: dueAt(arrivals...), Warmup: 10, Requests: 100, WindowBy: 90, EndBy: 110, Timeout: 1e6}
	}
	s := script{t, NewCore(cfg())}
	s.want(85, ended(1, 45, 3, 70), "start 0 due 5", "start 1 due 20", "start 2 due 40", "start 3 due 60", "start 4 due 80")
	s.wake(100)
	s.want(100, nil, "start 5")
	s.wake(110)
	s.want(110, nil, "cancel 0 interrupted", "cancel 2 interrupted", "cancel 4 interrupted", "cancel 5 interrupted")
	s.window(10, 85)
	if n := s.c.cohort; n != 4 { // the one that was due at 40 and still runs is one of them
		t.Errorf("%d requests in the window", n)
	}

	s = script{t, NewCore(cfg())} // no request need be cut off
	s.want(85, ended(1, 45, 2, 50, 3, 70), "start 0 due 5", "start 1 due 20", "start 2 due 40", "start 3 due 60", "start 4 due 80")
	s.want(105, ended(4, 102), "start 5 due 100", "cancel 0 interrupted", "cancel 5 interrupted")
	s.window(10, 90)

	s = script{t, NewCore(cfg())} // nothing is known
	s.want(110, nil, "start 0 due 5", "start 1 due 20", "start 2 due 40", "start 3 due 60", "start 4 due 80", "start 5 due 100",
		"cancel 0 interrupted", "cancel 1 interrupted", "cancel 2 interrupted", "cancel 3 interrupted", "cancel 4 interrupted", "cancel 5 interrupted")
	s.window(10, 20)
}

// A load with no use in going on ends where that is seen, and what is under way
// is not waited for.
func TestGiveUp(t *testing.T) {
	var seen [][]float64
	giveUp := func(elapsed int64, underWay []float64) bool {
		seen = append(seen, underWay)
		return elapsed >= 600
	}
	s := script{t, NewCore(Config{Arrivals: dueAt(0, 100, 200, 300, 400, 500, 600, 700, 2000), Warmup: 96, Window: 960, Expect: 960, Timeout: 1e6, GiveUp: giveUp})}
	s.want(500, nil, "start 0 due 0", "start 1 due 100", "start 2 due 200", "start 3 due 300", "start 4 due 400", "start 5")
	s.wake(96 + 480)
	s.want(580, nil)
	s.want(700, ended(0, 590), "start 6 due 600", "start 7",
		"cancel 1 interrupted", "cancel 2 interrupted", "cancel 3 interrupted", "cancel 4 interrupted", "cancel 5 interrupted", "cancel 6 interrupted", "cancel 7 interrupted")
	s.window(96, 700)
	if !s.c.GaveUp() || len(seen) != 2 || len(seen[0]) != lookBlocks || !slices.IsSorted(seen[0]) {
		t.Errorf("told %v", seen)
	}
	// Blocks of 40 from 96 on: two are under way but for the first 4.
	if seen[0][0] != 1.9 || seen[0][1] != 2 {
		t.Errorf("told %v", seen[0])
	}
}
