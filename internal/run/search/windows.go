package search

import (
	"math"
	"time"

	"pitot/internal/stat"
)

// Windows says how long a load of a curve is measured: so that what it gives is
// about the load, by the checks that a run makes of itself, and no longer.
type Windows struct {
	Residence float64 // seconds, about how long a request alone takes
	Closed    bool    // loads are numbers of users
	Free      bool    // time costs nothing: the target is simulated
}

const (
	// leastWindow is the shortest on a server: it has stalls of its own, and a
	// minute shows some of them.
	leastWindow = time.Minute
	// A window has this many times what a request alone takes, so that a queue
	// that grows is told from chance, and this many of the slowest request.
	windowResidences, windowSlowest = 1.1 * stat.MinResidences, 2.2
	// Where time costs nothing a window has enough for its intervals: residence
	// times under its load, and requests, as far as they are not too many.
	freeResidences, freeRequests, mostFreeRequests = 120, 1_150, 5_000
)

// Next gives the window of a load, after those of a curve that were seen.
func (w Windows) Next(load float64, seen []CurvePoint) time.Duration {
	takes, slowest := w.expected(load, seen)
	seconds := max(windowResidences*w.Residence, windowSlowest*slowest)
	if !w.Free {
		return round(max(seconds, leastWindow.Seconds()))
	}
	rate := load
	if w.Closed {
		rate = load / takes
	}
	return round(max(seconds, freeRequests/rate, min(freeResidences*takes, mostFreeRequests/rate)))
}

// expected is about what a request takes under a load, and the slowest of them, in
// seconds: as at the nearest load above that was served, or as at the nearest below,
// and longer by as much as the load is higher.
func (w Windows) expected(load float64, seen []CurvePoint) (takes, slowest float64) {
	takes, slowest = w.Residence, w.Residence
	below, above := 0., math.Inf(1)
	for i := range seen {
		p := &seen[i]
		if p.E2E <= 0 || p.Slowest <= 0 || p.Unstable() {
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

// round makes whole seconds of it, and of long windows whole tens of them.
func round(seconds float64) time.Duration {
	unit := time.Second
	if seconds > 300 {
		unit = 10 * time.Second
	}
	return time.Duration(math.Ceil(min(seconds, 1e7)*float64(time.Second)/float64(unit))) * unit
}
