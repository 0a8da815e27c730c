package capacity

import (
	"math"

	"pitot/internal/results/result"
	"pitot/internal/stats"
)

// Carried is the number of requests a second that a server carries, with the 95 % interval of the
// rate. The zero value is not known.
type Carried struct {
	Rate     float64
	Interval stats.Interval
}

// inStep is by how much, as a share, what a server carries depends on how it filled. Where all
// responses are of one length its seats fall into step in one of several ways, and stay so. A twin
// of 16 seats carried 11.24, 11.35, 11.56 and 11.67/s over 10,000 requests at four loads.
const inStep = 0.03

// blocksAlike is by how much wider the interval is than its ten blocks make it, in ln: neighbouring
// blocks share long requests. Without it intervals hold in 87 % of the searches of servers that
// `go run ./bench/stat -only drawn -seed 20261128` draws.
const blocksAlike = 1.3

// CarriedAt returns what the server carried at a point whose queue grew, zero at any other.
func CarriedAt(p CurvePoint) (c Carried) {
	if !p.IsUnstable() && !p.IsBehind() {
		return c
	}
	s := saturationOf([]CurvePoint{p}, false)
	if s == nil || s.CI95 == nil {
		return c
	}
	e := math.Exp(math.Hypot(blocksAlike*math.Log(s.CI95[1]/s.CI95[0])/2, inStep))
	return Carried{s.RequestsPerS, stats.Interval{Lo: s.RequestsPerS / e, Hi: s.RequestsPerS * e}}
}

// saturationOf returns the most that points served, nil where none reached it.
func saturationOf(sorted []CurvePoint, closed bool) *result.Saturation {
	p := saturationPoint(sorted, closed)
	if p == nil {
		return nil
	}
	return &result.Saturation{Load: p.Load, RequestsPerS: p.RequestsPerS, OutputTokensPerS: KnownOrNil(p.OutputTokensPerS), CI95: p.servedCI()}
}

// The load beyond what is served that tells what that is.
const (
	// The load is this many times what the server seems to carry. The queue then grows by a fifth
	// of the time that the load lasts, which is to stay below the timeout of requests.
	overload = 1.25
	// It lasts this many residence times of a request alone. The second half is read.
	overloadTakes               = 100
	mostOverload, leastOverload = 3000, 200 // requests
	// Where no queue grows there the server carries more than it seemed to: the load rises once
	// more, and again.
	mostOverloads = 3
	// Most of a budget is kept for the load that is verified.
	overloadShare = 0.4
)

// belowCarried are the shares of what the server carries at which a load is verified, until one
// passes. At 0.9 of it queues settle within a window that the budget pays for; where arrivals
// come in long bursts they do not.
var belowCarried = []float64{0.9, 0.8, 0.6}

// measureSaturation measures what the server carries, where its queue grows before a limit is
// violated, and verifies a load below that. No heavier load is sustainable, so it bounds the
// capacity from above.
func (f *search) measureSaturation() {
	f.cap.Reason = result.Reason{}
	load := f.hi
	if c := f.mostCarried().Interval; c.Hi > 0 {
		load = min(load, c.Hi)
	}
	for try := 0; try < mostOverloads && !f.carriedKnown(); try++ {
		load = f.roundLoad(load * overload)
		p := Probe{Load: load, Stage: Saturating}
		p.Residences = hastyWarmup * f.residence / f.memoryAt(load) // of one request alone
		p.Requests = max(leastOverload, int(overloadTakes*f.residence*load))
		p.Requests = min(p.Requests, mostOverload, f.affordableIn(&p, 1-overloadShare))
		if p.Requests < leastOverload {
			break
		}
		s, ok := f.measureLoad(p)
		if !ok {
			return
		}
		if !s.IsEvidence() || f.hasOutgrown(&s) {
			break
		}
	}
	if f.isViolated() { // the longer overload violates a limit
		f.cap.Reason = result.Reason{Code: result.LongWindowMissed}
		return
	}
	f.cap.Carried = f.mostCarried()
	if f.cap.Carried.Rate == 0 {
		f.cap.Reason = result.Reason{Code: result.CarriedUnknown}
		return
	}
	for _, share := range belowCarried {
		load := f.allowedBelow(share * f.cap.Carried.Interval.Lo)
		p := f.longLook(load)
		if least := f.leastLow(load); p.Requests < least {
			return
		} else {
			p.Requests = min(p.Requests, mostLow*least)
		}
		s, ok := f.measureLoad(p)
		if !ok || !s.IsEvidence() {
			return
		}
		v, binding := f.judgeLow(load, &s, 1)
		if f.cap.Verified, f.cap.Binding = v, binding; v.Passed {
			f.cap.Quote = load
			f.recordLoads(&p)
			return
		}
		if f.isViolated() { // as by failures in bursts, which the short windows missed
			f.cap.Carried, f.cap.Reason = Carried{}, result.Reason{Code: result.LongWindowMissed}
			return
		}
	}
}

// carriedKnown reports whether a budget of time leaves it at what the bracket shows of what the
// server carries.
func (f *search) carriedKnown() bool {
	x := f.mostCarried().Interval
	return f.cfg.Budget.Seconds > 0 && x.Lo > 0 && x.Hi <= roughly*x.Lo
}

// roughly is within which factor that is known then.
const roughly = 1.5

// mostCarried returns the rate of the longest window that shows it. The most precise one would be
// chosen by chance.
func (f *search) mostCarried() (best Carried) {
	most := 0
	for _, s := range f.ofLaunch() {
		if f.supportsBounds(&s) && f.hasOutgrown(&s.Seen) && s.Seen.Carried.Rate > 0 && s.Seen.N > most {
			best, most = s.Seen.Carried, s.Seen.N
		}
	}
	return best
}

// isViolated reports whether any window has more violations of a limit than it may. Timeouts under
// a load that the server does not carry are its queue, which is as long as the load lasts.
func (f *search) isViolated() bool {
	for _, claim := range f.cfg.claimIndices() {
		for i := range f.cap.Trail {
			s := &f.cap.Trail[i].Seen
			bad := s.violationCount(claim)
			if f.hasOutgrown(s) {
				bad -= s.TimedOut
			}
			if float64(bad) > f.cfg.allowedShare(claim)*float64(s.dueRequests(claim)) {
				return true
			}
		}
	}
	return false
}

// growsFrom returns the lightest load of a window whose queue grew, 0 if none did. No window from
// there on gives a lower bound: what it shows does not last.
func (f *search) growsFrom() (load float64) {
	for _, s := range f.ofLaunch() {
		if f.supportsBounds(&s) && f.hasOutgrown(&s.Seen) && (load == 0 || s.Load < load) {
			load = s.Load
		}
	}
	return load
}
