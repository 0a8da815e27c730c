package search

import (
	"fmt"
	"math"

	"pitot/internal/stat"
)

// Replayed says what a replay of the search on the twin explains of its violations.
type Replayed struct {
	Claim int
	K     float64 // how much slower than the twin the server is
	// Rho is the correlation, over windows, of what the server and the twin violated
	// beyond what their loads lead to expect: what the schedule explains.
	Rho        float64
	Weight     float64 // of what the twin violated so, as it is taken off the server's violations
	Windows    int     // of which it is taken off: their expected share is near what may violate
	Requests   int     // in them
	Violations int     // of them, without errors
	Errors     int     // likewise, that the twin does not make
	TwinError  float64 // standard error of ln Estimate by the twin's own
	// Alone is what the counts say without the twin.
	Alone  stat.Inverse
	Reason string // why nothing is taken off; empty if something is
}

const (
	// Windows are adjusted whose expected share on the twin is within adjustedNear times
	// the odds of what may violate, to either side, if there are leastAdjusted of them or
	// more and the correlation is leastRho. Of fewer windows chance alone correlates as
	// much: with 4, three times as many searches of 3,000 requests were adjusted, and
	// those were no narrower. Chosen on the systems that `go run ./bench/stat -only replay` has
	// for design.
	adjustedNear  = 20
	leastAdjusted = 8
	leastRho      = 0.5
	mostWeight    = 1.5
)

// explanation is how much of a claim's violations the twin explains.
type explanation struct {
	Replayed
	violations []float64 // how many of each step are explained; of later steps none
}

// explain replays the search on the twin, and takes from the violations of each window what
// the twin violates there beyond what it does in the long run at that load. That is a control
// variate (Lavenberg and Welch, Management Science 27, 1981): on average it is nothing,
// whatever the twin, so that a poor one takes little off. And short windows that begin with an
// empty system have too few violations on both. The twin's slope says nothing of the server's:
// where it was taken for a guess of it, intervals of servers with another one were too narrow.
func (f *search) explain() {
	if f.cfg.Twin == nil || f.cfg.Closed || f.err != nil || f.died {
		return
	}
	if f.replayer == nil {
		f.replayer = newReplayer(f.ctx, &f.cfg)
	}
	f.explained = nil // what is expected of the server is by its counts alone
	found := map[int]*explanation{}
	for _, claim := range f.cfg.claims() {
		e := f.explanationOf(claim)
		if r := f.replayer; r.err != nil {
			e = &explanation{Replayed: Replayed{Claim: claim, Reason: "the twin failed: " + r.err.Error()}}
		}
		found[claim] = e
	}
	f.explained = found
}

// explanationOf is that of a claim.
func (f *search) explanationOf(claim int) *explanation {
	r, e := f.replayer, &explanation{Replayed: Replayed{Claim: claim}}
	r.trail = f.cap.Trail[f.begun:]
	use, eps, lnk, ok := r.agree(claim, &e.Replayed)
	if !ok {
		return e
	}
	twin, ok := r.longCurve(claim, eps, lnk)
	if !ok {
		e.Reason = "the twin's own capacity is not known: " + twin.Reason
		return e
	}
	e.K = math.Exp(lnk)
	var near []window
	var expected []float64
	e.Requests, e.Violations, e.Errors = 0, 0, 0
	for _, w := range use {
		if x := twin.expect(w.load); x >= eps/adjustedNear && x <= odds(eps, adjustedNear) {
			near, expected = append(near, w), append(expected, x*float64(w.n))
			e.Requests, e.Violations, e.Errors = e.Requests+w.n, e.Violations+int(w.seen), e.Errors+w.errors
		}
	}
	if e.Windows = len(near); e.Windows < leastAdjusted {
		e.Reason = fmt.Sprintf("%d windows are near the limit, it takes %d", len(near), leastAdjusted)
		return e
	}
	// What is expected of the server is by its own curve, as far as it is known.
	own := f.curveOf(claim, Centre, Main, Verifying)
	var tt, st, ss float64 // of the standardised excess on twin and server
	excess := make([][2]float64, len(near))
	again := r.slowed(claim, near, lnk)
	for i, w := range near {
		mine := expected[i]
		if own.Reason == "" && own.B > 0 {
			mine = max(float64(w.n)*own.ShareAt(w.load)-float64(w.errors), 1e-9)
		}
		t, s := (again[i]-expected[i])/math.Sqrt(expected[i]), (w.seen-mine)/math.Sqrt(mine)
		excess[i] = [2]float64{t, s}
		tt, st, ss = tt+t*t, st+s*t, ss+s*s
	}
	if e.Rho = st / math.Sqrt(tt*ss); !(e.Rho >= leastRho) {
		e.Reason = fmt.Sprintf("the twin explains too little: a correlation of %.2f, it takes %.1f", e.Rho, leastRho)
		return e
	}
	// The weight of a window is that of the others, for its own would be fitted to its luck.
	weight := func(st, tt float64) float64 {
		if x := st / tt; x > 0 { // not where no other window varies
			return min(mostWeight, x)
		}
		return 0
	}
	e.Weight = weight(st, tt)
	e.TwinError = e.Weight * twin.se
	e.violations = make([]float64, len(f.cap.Trail))
	for i, w := range near {
		t, s := excess[i][0], excess[i][1]
		e.violations[f.begun+w.step] = weight(st-s*t, tt-t*t) * (again[i] - expected[i])
	}
	return e
}

// ofStep is how many of a step's violations are explained.
func (e *explanation) ofStep(step int) float64 {
	if e == nil || step >= len(e.violations) {
		return 0
	}
	return e.violations[step]
}

// withTwinError widens what is read off counts from which the twin's were taken.
func (f *search) withTwinError(claim int, v stat.Inverse, level, alpha float64) stat.Inverse {
	e := f.explained[claim]
	if e == nil || e.Reason != "" || v.Reason != "" {
		return v
	}
	wider := func(end, level float64) float64 {
		x := math.Log(end / v.Load)
		return v.Load * math.Exp(math.Copysign(math.Hypot(x, stat.NormalQuantile(level)*e.TwinError), x))
	}
	v.SE = math.Hypot(v.SE, e.TwinError)
	v.Lo, v.Hi = wider(v.Lo, (1+level)/2), wider(v.Hi, (1+level)/2)
	v.Lower = wider(v.Lower, 1-alpha)
	return v
}

// keepReplayed keeps what the twin explains of a claim, beside what the counts say without it.
func (f *search) keepReplayed(claim int) {
	e := f.explained[claim]
	if e == nil || f.ctx.Err() != nil {
		return
	}
	kept, out := f.explained, e.Replayed
	f.explained = nil
	out.Alone, _ = f.crossingNear(claim)
	f.explained, f.cap.Replayed = kept, &out
}
