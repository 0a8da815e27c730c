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
	// beyond what their loads lead to expect: what the schedule explains of a window by
	// what it does of the others, see [weigh].
	Rho        float64
	Weight     float64 // of what the twin violated so, as it is taken off the server's violations
	Windows    int     // of which it is taken off: their expected share is near what may violate
	Requests   int     // in them
	Violations int     // of them, without errors
	Errors     int     // likewise, that the twin does not make
	TwinError  float64 // standard error of ln Estimate by the twin's own and by Weight's
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

const noNarrower = "the interval would be no narrower: windows differ in how much the twin explains of them"

// explanation is how much of a claim's violations the twin explains.
type explanation struct {
	Replayed
	violations []float64 // how many of each step are explained; of later steps none
}

// explain replays the search on the twin, and takes from the violations of each window what
// the twin violates there beyond what it does in the long run at that load. That is a control
// variate (Lavenberg and Welch, Management Science 27, 1981): on average it is nothing,
// whatever the twin, so that a poor one takes little off. And short windows that begin with an
// empty system have too few violations on both. The twin's slope says nothing of the server's,
// not even slowed until it violates as often at the server's capacity: one that is not named is no nearer than a
// guess without any (`go run ./bench/stat -only replay-slopes`), and where it was taken for one, intervals of servers
// with another slope were too narrow.
func (f *search) explain() {
	if f.cfg.Twin == nil || f.cfg.Closed || f.err != nil || f.died {
		return
	}
	if f.replayer == nil {
		f.replayer = newReplayer(f.ctx, &f.cfg, f.cap.Requests)
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
	list := f.excesses(claim, near, expected, r.slowed(claim, near, lnk))
	w := weigh(list)
	if e.Rho, e.Weight = w.rho, w.weight; !(w.weight > 0 && w.rho >= leastRho) {
		e.Reason = fmt.Sprintf("the twin explains too little: a correlation of %.2f in windows that it was not fitted to, it takes %.1f", e.Rho, leastRho)
		return e
	}
	take := func(more float64) []float64 {
		violations := make([]float64, len(f.cap.Trail))
		for i := range near {
			violations[f.begun+near[i].step] = (w.weights[i] + more) * list[i].twin
		}
		return violations
	}
	e.violations = take(0)
	more, less := f.given(claim, take(w.se), 0), f.given(claim, take(-w.se), 0)
	e.TwinError = math.Hypot(e.Weight*twin.se, math.Log(more.Load/less.Load)/2)
	alone, _ := f.crossingNear(claim)
	with := f.given(claim, e.violations, e.TwinError)
	if !(e.TwinError < stat.MaxInverseSE) || alone.Reason == "" && !(with.Reason == "" && with.Hi/with.Lo < alone.Hi/alone.Lo) {
		e.Reason, e.violations = noNarrower, nil
	}
	return e
}

// given is what counts say of a claim where so many violations of each step are explained.
func (f *search) given(claim int, violations []float64, twinError float64) stat.Inverse {
	kept := f.explained
	f.explained = map[int]*explanation{claim: {violations: violations, Replayed: Replayed{TwinError: twinError}}}
	v, _ := f.crossingNear(claim)
	f.explained = kept
	return v
}

// excess is what a window has of violations beyond what its load leads to expect.
type excess struct {
	twin, server float64
	expected     float64 // of the server
	x            float64 // logarithm of the load
}

// excesses are those of windows. What is expected of the server is by its own curve, as far as
// it is known.
func (f *search) excesses(claim int, near []window, expected, again []float64) []excess {
	own := f.curveOf(claim, Centre, Main, Verifying)
	list := make([]excess, len(near))
	for i, w := range near {
		mine := expected[i]
		if own.Reason == "" && own.B > 0 {
			mine = max(float64(w.n)*own.ShareAt(w.load)-float64(w.errors), float64(w.n)*f.cfg.eps(claim)/adjustedNear)
		}
		list[i] = excess{again[i] - expected[i], w.seen - mine, mine, math.Log(w.load)}
	}
	return list
}

// weighed is with which weight the twin's excess is taken off the server's.
type weighed struct {
	weight, se float64   // by all windows, its standard error by a jackknife
	weights    []float64 // of each window, by the others
	rho        float64   // correlation in windows that the weight was not fitted to
}

// weigh fits the weight of the twin's excess beside what the level and the slope of the
// server's curve take up of it, so that it is that of a fit of all three (Frisch and Waugh,
// Econometrica 1, 1933), windows by the violations that are expected in them.
//
// How much the twin explains is asked of each window by a fit to the others, for a weight that
// was fitted to a window's luck explains it whatever the twin: ρ² is by how much the twin makes
// smaller the sum of squares of what is predicted of windows left out (PRESS: Allen,
// Technometrics 16, 1974), 0 where it makes it larger. What is taken off a window has the weight of
// the others too (splitting: Nelson, "Control-variate remedies", Operations Research 38, 1990),
// between 0 and mostWeight. A fit without a window is the fit of all less its
// residual ÷ (1 − leverage) (Belsley, Kuh and Welsch, "Regression Diagnostics", 1980).
func weigh(list []excess) weighed {
	n := len(list)
	server, twin, level, slope := make([]float64, n), make([]float64, n), make([]float64, n), make([]float64, n)
	for i, e := range list {
		scale := math.Sqrt(e.expected)
		server[i], twin[i], level[i], slope[i] = e.server/scale, e.twin/scale, scale, scale*e.x
	}
	takeOff(slope, level)
	leverage := make([]float64, n) // without the twin
	for _, column := range [][]float64{level, slope} {
		norm := dot(column, column)
		if norm == 0 { // all windows are of one load
			continue
		}
		for i, c := range column {
			leverage[i] += c * c / norm
		}
		takeOff(server, column)
		takeOff(twin, column)
	}
	tt := dot(twin, twin)
	if tt == 0 || dot(server, server) == 0 {
		return weighed{}
	}
	w := weighed{weight: dot(server, twin) / tt, weights: make([]float64, n)}
	var with, without, mean float64
	for i := range list {
		left := (server[i] - w.weight*twin[i]) / max(1-leverage[i]-twin[i]*twin[i]/tt, 1e-9)
		alone := server[i] / max(1-leverage[i], 1e-9)
		with, without = with+left*left, without+alone*alone
		w.weights[i] = w.weight - twin[i]*left/tt
		mean += w.weights[i] / float64(n)
	}
	for i, x := range w.weights {
		w.se += (x - mean) * (x - mean) * float64(n-1) / float64(n)
		w.weights[i] = min(mostWeight, max(0, x))
	}
	w.se, w.weight = math.Sqrt(w.se), min(mostWeight, w.weight)
	w.rho = math.Sqrt(max(0, 1-with/without))
	return w
}

func dot(a, b []float64) (sum float64) {
	for i := range a {
		sum += a[i] * b[i]
	}
	return sum
}

// takeOff takes off what of a lies along b.
func takeOff(a, b []float64) {
	x := dot(a, b) / dot(b, b)
	for i := range a {
		a[i] -= x * b[i]
	}
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
