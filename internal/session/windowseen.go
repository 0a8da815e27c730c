package session

import (
	"pitot/internal/metrics"
	"pitot/internal/results/record"
	"pitot/internal/slo"
)

// windowSeen is a window of an open loop that is looked at while its requests come due and
// end. It stands before the arrivals of its load.
type windowSeen struct {
	t0, t1     int64 // nanoseconds
	arrivals   interface{ Next() int64 }
	claims     []slo.Claim
	violations []int // of each claim, so far
	decide     func(violations []int, left int) bool
	stop       func() // ends the load once it is decided; nil: it is asked for elsewhere

	due, ended int
	complete   bool  // all of its requests are known
	took       int64 // nanoseconds, of those that ended
	decided    bool
}

// watchWindow returns a watch on the window of a point.
func (s *PointSpec) watchWindow() *windowSeen {
	t0 := int64(s.Warmup)
	return &windowSeen{t0: t0, t1: t0 + int64(s.Duration), claims: s.Claims, violations: make([]int, len(s.Claims)), decide: s.Decided}
}

// Next gives the next arrival.
func (w *windowSeen) Next() int64 {
	at := w.arrivals.Next()
	switch {
	case at >= w.t1:
		w.complete = true
	case at >= w.t0:
		w.due++
	}
	return at
}

// addEnded takes in a request that has ended.
func (w *windowSeen) addEnded(r *record.Row) {
	if r.Due < w.t0 || r.Due >= w.t1 || w.decided {
		return
	}
	w.ended++
	w.took += r.Done - r.Due
	request := metrics.OfRow(r)
	for i, c := range w.claims {
		if c.ViolatedBy(request) {
			w.violations[i]++
		}
	}
	if w.stop != nil && w.decide(w.violations, w.remainingRequests()) {
		w.decided = true
		w.stop()
	}
}

// remainingRequests returns the number of its requests that have not ended, -1 while more are to
// come.
func (w *windowSeen) remainingRequests() int {
	if !w.complete {
		return -1
	}
	return w.due - w.ended
}

// meanResidence returns the mean time that its ended requests took, in seconds.
func (w *windowSeen) meanResidence() float64 { return float64(w.took) / float64(max(w.ended, 1)) / 1e9 }
