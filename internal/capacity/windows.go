package capacity

import (
	"math"
	"time"

	"pitot/internal/stats"
)

// Windows says how long a load of a curve is measured: so that what it gives is
// about the load, by the checks that a run makes of itself, and no longer.
type Windows struct {
	Residence float64 // seconds, about how long a request alone takes
	Closed    bool    // loads are numbers of users
	Free      bool    // time costs nothing: the target is simulated
	Timeout   float64 // seconds after which a request is given up, 0 for never
}

const (
	// LeastWindow is the shortest on a server: it has stalls of its own, and a
	// minute shows some of them.
	LeastWindow = time.Minute
	// MostWindow is the longest that is chosen on a server, so that a curve of
	// twelve loads ends within about two hours; the checks then say what is missing.
	MostWindow = 10 * time.Minute
	// A window has this many times what a request alone takes, so that a queue
	// that grows is distinguished from chance, and this many of the slowest request.
	windowResidences, windowSlowest = 1.1 * stats.MinResidences, 2.2
	// Where time costs nothing a window has enough for its intervals: residence
	// times under its load, and requests, as far as they are not too many.
	freeResidences, freeRequests, mostFreeRequests = 120, 1_150, 5_000
)

// Next gives the window of a load, after those of a curve that were seen.
func (w Windows) Next(load float64, seen []CurvePoint) time.Duration {
	takes, slowest := w.expectedTimes(load, seen)
	seconds := max(windowResidences*w.Residence, windowSlowest*slowest)
	if !w.Free {
		return roundSeconds(min(max(seconds, LeastWindow.Seconds()), MostWindow.Seconds()))
	}
	rate := load
	if w.Closed {
		rate = load / takes
	}
	most := mostFreeRequests / rate
	if w.Timeout > 0 && isHighest(load, seen) {
		// It may be beyond what is served: a queue that is given up at its end
		// faster than it grows would look like one that does not grow.
		most = min(most, w.Timeout/2)
	}
	return roundSeconds(max(seconds, freeRequests/rate, min(freeResidences*takes, most)))
}

// isHighest says that no load as high was served before.
func isHighest(load float64, seen []CurvePoint) bool {
	for i := range seen {
		if seen[i].Load >= load && !seen[i].IsUnstable() {
			return false
		}
	}
	return true
}

// expectedTimes is about what a request takes under a load, and the slowest of them, in
// seconds: as at the nearest load above that was served, or as at the nearest below,
// and longer by as much as the load is higher.
func (w Windows) expectedTimes(load float64, seen []CurvePoint) (takes, slowest float64) {
	takes, slowest = w.Residence, w.Residence
	below, above := 0., math.Inf(1)
	for i := range seen {
		p := &seen[i]
		if p.E2E <= 0 || p.Slowest <= 0 || p.IsUnstable() {
			continue
		}
		switch {
		case p.Load >= load && p.Load < above:
			above = p.Load
			takes, slowest = p.E2E/1e3, p.Slowest/1e3
		case p.Load < load && p.Load > below && math.IsInf(above, 1):
			below = p.Load
			takes, slowest = p.E2E/1e3*load/below, p.Slowest/1e3*load/below
		}
	}
	return max(takes, w.Residence), max(slowest, w.Residence)
}

// roundSeconds makes whole seconds of it, and of long windows whole tens of them.
func roundSeconds(seconds float64) time.Duration {
	unit := time.Second
	if seconds > 300 {
		unit = 10 * time.Second
	}
	return time.Duration(math.Ceil(min(seconds, 1e7)*float64(time.Second)/float64(unit))) * unit
}

// LeastWithin is the shortest window of a load of a curve whose windows are chosen, with a budget.
const LeastWithin = 10 * time.Second

// NextWindow returns the window of the next load of a curve that has some time left for so many
// loads, where one of a length is wanted; besides is what a load takes besides its window. Where
// the window is fixed it is as long as is wanted. It returns 0 where there is no time for a load.
func NextWindow(left time.Duration, loads int, besides, wanted time.Duration, fixed bool) time.Duration {
	if fixed {
		if left < wanted+besides {
			return 0
		}
		return wanted
	}
	least := min(LeastWithin, wanted)
	if left < least+besides {
		return 0
	}
	return max(least, min(wanted, left/time.Duration(max(loads, 1))-besides)).Truncate(time.Second / 10)
}
