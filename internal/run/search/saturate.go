package search

import (
	"cmp"
	"slices"

	"pitot/internal/data/result"
	"pitot/internal/stat"
)

// Carried is how many requests a second a server carries, with the 95 % interval of the rate.
// The zero value is not known.
type Carried struct {
	Rate     float64
	Interval stat.Interval
}

// CarriedAt returns what the server carried at a point whose queue grew, zero at any other.
func CarriedAt(p CurvePoint) (c Carried) {
	if !p.Unstable() && !p.Behind() {
		return c
	}
	s := saturationOf([]CurvePoint{p}, false)
	if s == nil || s.CI95 == nil {
		return c
	}
	return Carried{s.RequestsPerS, stat.Interval{Lo: s.CI95[0], Hi: s.CI95[1]}}
}

// saturationOf returns the most that points served, nil where none reached it.
func saturationOf(sorted []CurvePoint, closed bool) *result.Saturation {
	p := saturation(sorted, closed)
	if p == nil {
		return nil
	}
	return &result.Saturation{Load: p.Load, RequestsPerS: p.RequestsPerS, OutputTokensPerS: Known(p.OutputTokensPerS), CI95: p.servedCI()}
}

// Loads that are measured where the server saturates before a limit is violated.
const (
	// The overload is this many times the load at which the queue grew: the server is full for all
	// of the second half of the window, which is what is read.
	overload = 1.25
	// An overload has at most this many requests: they give the rate within 1 or 2 %. At least, they
	// give it within about 5 %.
	mostOverload, leastOverload = 3000, 200
	// Most of a budget is kept for the load that is verified.
	overloadShare = 0.4
)

// belowCarried are the shares of what the server carries at which a load is verified, until one
// passes. At 0.9 of it queues settle within a window that the budget pays for; where arrivals
// come in long bursts they do not.
var belowCarried = []float64{0.9, 0.8, 0.6}

// saturate measures what the server carries, where its queue grows before a limit is violated, and
// verifies a load below that. No heavier load is sustainable, so it bounds the capacity from above.
func (f *search) saturate() {
	f.cap.Reason = ""
	p := Probe{Load: f.whole(f.hi * overload), Stage: Saturating}
	p.Residences = hastyWarmup * f.residence / f.memoryAt(p.Load) // of one request alone
	p.Requests = min(mostOverload, f.affordableIn(&p, 1-overloadShare))
	if p.Requests >= leastOverload {
		if _, ok := f.look(p); !ok {
			return
		}
	}
	if f.violated() { // the longer overload violates a limit: it is no saturation
		f.cap.Reason = "limits are violated only at loads beyond what is served"
		return
	}
	f.cap.Carried = f.mostCarried()
	if f.cap.Carried.Rate == 0 {
		f.cap.Reason = "the queue grows before a limit is violated, and what the server carries is not known"
		return
	}
	for _, share := range belowCarried {
		load := f.below(share * f.cap.Carried.Interval.Lo)
		p := f.looking(load)
		if least := f.leastLow(load); p.Requests < least {
			return
		} else {
			p.Requests = min(p.Requests, mostLow*least)
		}
		s, ok := f.look(p)
		if !ok || !s.Counts() {
			return
		}
		v, binding := f.judgeLow(load, &s, 1)
		if f.cap.Verified, f.cap.Binding = v, binding; v.Passed {
			f.cap.Quote = load
			f.show(&p)
			return
		}
	}
}

// mostCarried returns the rate of the window that shows it most precisely.
func (f *search) mostCarried() (best Carried) {
	var all []Carried
	for _, s := range f.ofLaunch() {
		if f.tells(&s) && s.Seen.Carried.Rate > 0 {
			all = append(all, s.Seen.Carried)
		}
	}
	if len(all) == 0 {
		return best
	}
	return slices.MinFunc(all, func(a, b Carried) int {
		return cmp.Compare(a.Interval.Hi/a.Interval.Lo, b.Interval.Hi/b.Interval.Lo)
	})
}

// violated reports whether any window has more violations of a limit than it may.
func (f *search) violated() bool {
	return slices.ContainsFunc(f.cap.Trail, func(s Step) bool { return f.exceeds(&s.Seen, 1) })
}

// growsFrom returns the lightest load of a window whose queue grew, 0 if none did. No window from
// there on gives a lower bound: what it shows does not last.
func (f *search) growsFrom() (load float64) {
	for _, s := range f.ofLaunch() {
		if f.tells(&s) && s.Seen.Stability == stat.Unstable && (load == 0 || s.Load < load) {
			load = s.Load
		}
	}
	return load
}
