package decide

import (
	"math"
	"slices"

	"pitot/internal/stats"
)

// A launch is climbed: it is measured at the load that is wanted, then at loads of one
// ladder up or down from there, until two rungs next to each other are known, one within
// the limits and one not. The ladder is the same for all configurations and launches, so
// that they are compared at the same loads.

// Step is the factor from the load of a rung to the load of the next.
const Step = 1.15

// mostRungs is the maximum number of rungs in a climb, up or down: to about ten times the load, or
// a tenth.
const mostRungs = 16

// Rung is a load that was measured.
type Rung struct {
	Load   float64
	Claims []Violated // the share of requests that violates each claim of the limits
}

// Violated holds the share of requests that violate a claim, and the allowed share.
type Violated struct {
	Share, Allowed float64
	N              int // requests
}

// IsWithin says that no claim is violated by more requests than may.
func (r *Rung) IsWithin() bool {
	return !slices.ContainsFunc(r.Claims, func(v Violated) bool { return v.Share > v.Allowed })
}

// Next gives the load to measure next, of a launch that was measured at some already,
// where the contract wants a load; near is where the limits were reached before, 0 where
// nothing is known. more is false when the launch is done.
func Next(wanted, near float64, rungs []Rung) (load float64, more bool) {
	at := func(i int) float64 { return wanted * math.Pow(Step, float64(i)) }
	met, missed := math.MinInt, math.MaxInt // the highest rung within, and the lowest that is not
	measured := map[int]bool{}
	for i := range rungs {
		k := int(math.Round(math.Log(rungs[i].Load/wanted) / math.Log(Step)))
		measured[k] = true
		if rungs[i].IsWithin() {
			met = max(met, k)
		} else {
			missed = min(missed, k)
		}
	}
	next := 0
	switch {
	case !measured[0]:
	case met != math.MinInt && missed != math.MaxInt:
		if missed-met <= 1 { // by chance a rung may be missed below one that was met
			return 0, false
		}
		next = (met + missed) / 2
		if near > 0 { // beside where the others found it
			k := int(math.Floor(math.Log(near/wanted) / math.Log(Step)))
			next = min(max(next, min(k, missed-1)), max(k, met+1), missed-1)
			next = max(next, met+1)
		}
	case missed == math.MaxInt: // up
		next = 2*max(met, 0) + 1
		if k := math.Floor(math.Log(near/wanted) / math.Log(Step)); near > 0 {
			next = max(met+1, int(k)+1)
		}
	default: // down
		next = 2*min(missed, 0) - 1
		if k := math.Floor(math.Log(near/wanted) / math.Log(Step)); near > 0 {
			next = min(missed-1, int(k))
		}
	}
	if next = min(max(next, -mostRungs), mostRungs); measured[next] {
		return 0, false
	}
	return at(next), true
}

// Carried is the load at which a launch reaches its limits.
type Carried struct {
	Load    float64
	Claim   int  // that is reached first, -1 where none is known
	AtLeast bool // no load was measured that is over the limits
	AtMost  bool // none was that is within
}

// LoadAtLimits is where the limits are reached by what was measured: between the highest load
// within and the next above it, by the claim that is reached first. Shares are taken to
// grow with the load as a power of it between the two.
func LoadAtLimits(rungs []Rung) (c Carried, ok bool) {
	if len(rungs) == 0 {
		return c, false
	}
	sorted := slices.Clone(rungs)
	stats.SortStable(sorted, func(a, b Rung) int {
		if a.Load < b.Load {
			return -1
		}
		return 1
	})
	met := -1
	for i := range sorted { // the first that is over ends it
		if !sorted[i].IsWithin() {
			break
		}
		met = i
	}
	switch {
	case met < 0:
		return Carried{Load: sorted[0].Load, Claim: worstClaim(&sorted[0]), AtMost: true}, true
	case met == len(sorted)-1:
		return Carried{Load: sorted[met].Load, Claim: -1, AtLeast: true}, true
	}
	low, high := &sorted[met], &sorted[met+1]
	c = Carried{Load: math.Inf(1), Claim: -1}
	for i := range high.Claims {
		if high.Claims[i].Share <= high.Claims[i].Allowed {
			continue
		}
		a, b := logExcess(low.Claims[i]), logExcess(high.Claims[i])
		share := min(max(-a/(b-a), 0), 1)
		if load := low.Load * math.Pow(high.Load/low.Load, share); load < c.Load {
			c.Load, c.Claim = load, i
		}
	}
	return c, true
}

// LoadError is about how far ln of the load at which limits are reached is off, where so many
// requests are asked at a load and so many of them may violate the limit: as a share
// varies whose violations come in bursts, over how steeply it rises with the load.
func LoadError(requests int, allowed float64) float64 {
	const bursts, steepness, most = 5, 8, 0.15
	return min(math.Sqrt(bursts/(float64(requests)*allowed+1))/steepness, most)
}

// logExcess is ln of the violations over those that may be; one half is added to the count,
// so that none has a logarithm too.
func logExcess(v Violated) float64 {
	n := float64(max(v.N, 1))
	return math.Log((v.Share*n + .5) / (v.Allowed*n + .5))
}

// worstClaim is the claim of a rung that is violated the most.
func worstClaim(r *Rung) (at int) {
	for i := range r.Claims {
		if logExcess(r.Claims[i]) > logExcess(r.Claims[at]) {
			at = i
		}
	}
	return at
}
