package capacity

import (
	"context"
	"math"
	"slices"

	"pitot/internal/results/result"
	"pitot/internal/stats"
)

// CrossingOf says what the loads of a sweep tell of the highest load at which the SLO
// holds: bounds from single loads, as those of a search, and between them an estimate.
// nil without an SLO that is a claim on requests.
//
// A bound is a load that was measured. The lower one is asked from the lightest load up
// and the upper one from the highest down, and the first load that does not tell ends it:
// so the chance of a wrong one is that of a single test, 2.5 % each. How often both hold
// is shown by `go run ./bench/stat -only curve`.
func CrossingOf(points []result.Point) *result.Crossing {
	f, specs := fromSweep(points)
	if f == nil {
		return nil
	}
	c := &result.Crossing{Level: f.cfg.Level}
	for i := range points {
		if points[i].SLO != nil {
			c.SLO = points[i].SLO.Spec
		}
	}
	least, most := f.highestHolding(), f.lowestRefuted()
	if least > 0 && most > 0 && most <= least { // two tests that contradict each other: neither is believed
		c.Why = result.Reason{Code: result.MetAboveMissed, Low: least, High: most}
		return c
	}
	c.AtLeast, c.AtMost = KnownOrNil(least), KnownOrNil(most)
	met, next := f.neighbourLoads()
	switch {
	case next == 0:
		c.Why = result.Reason{Code: result.NoneMissed}
	case most == 0:
		c.Why = result.Reason{Code: result.NoneSurelyAbove, Low: next}
	case met == 0:
		c.Why = result.Reason{Code: result.NoneMet}
	case least == 0:
		c.Why = result.Reason{Code: result.NoneSurelyBelow, Needed: float64(f.leastLow(0))}
	default:
		at, claim := f.interpolateCrossing(met, next)
		if at < least || at > most {
			c.Why = result.Reason{Code: result.LoadsContradict, Low: met, High: next}
			break
		}
		c.Estimate, c.Binding = &at, specs[claim]
	}
	return c
}

// fromSweep is a sweep as a search sees it; nil where its points do not count the same
// claims.
func fromSweep(points []result.Point) (f *search, specs []string) {
	var cfg FindConfig
	for i := range points {
		if s := points[i].SLO; s != nil && len(specs) == 0 {
			for _, v := range s.Violations {
				specs, cfg.Eps = append(specs, v.Spec), append(cfg.Eps, v.Allowed)
			}
			cfg.Closed = points[i].Load.Concurrency != nil
			if e := points[i].Load.Expected; e != nil && !cfg.Closed {
				cfg.Traffic.Cycle = e.CycleS
			}
		}
	}
	if len(specs) == 0 {
		return nil, nil
	}
	f = newSearch(context.Background(), cfg, nil)
	for i := range points {
		p := &points[i]
		s := Seen{Load: p.Load.Value(), N: p.Requests.Due, Stability: p.Stability, Failed: p.Requests.OK == 0 || p.EndedEarly, Invalid: p.Verdict == result.Invalid,
			Errors: p.Requests.Due - p.Requests.OK, Due: make([]int, len(specs)), Violations: make([]int, len(specs)), Blocks: make([][]int, len(specs))}
		if p.SLO == nil || len(p.SLO.Violations) != len(specs) {
			continue // a damaged run
		}
		for k, v := range p.SLO.Violations {
			if v.Spec != specs[k] {
				return nil, nil
			}
			s.Blocks[k], s.Due[k] = v.Blocks, p.Requests.Due
			if v.Due != nil {
				s.Due[k] = *v.Due
			}
			for _, n := range v.Blocks {
				s.Violations[k] += n
			}
		}
		if c := p.SLO.Cluster; c != nil {
			s.Cluster = *c
			f.cfg.Sessions.Cluster = max(f.cfg.Sessions.Cluster, s.Cluster)
		}
		f.cap.Trail = append(f.cap.Trail, Step{Probe: Probe{Load: s.Load, Stage: CurveStage}, Seen: s})
	}
	return f, specs
}

// evidenceLoads are those with a window that counts, each once, ascending.
func (f *search) evidenceLoads() (list []float64) {
	for _, s := range f.cap.Trail {
		if s.Seen.IsEvidence() {
			list = append(list, s.Load)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// highestHolding is the highest load that is known not to be above the capacity, 0 if none is.
// Loads with too few requests to tell whatever they show are passed over.
func (f *search) highestHolding() (highest float64) {
	for _, load := range f.evidenceLoads() {
		switch held, enough := f.heldAt(load); {
		case held:
			highest = load
		case enough:
			return highest
		}
	}
	return highest
}

// heldAt says that no more requests violate any limit at a load than may, and whether its
// windows have the requests to say so. How much violations cluster is told by the windows
// not far above too: where there is none, more is assumed.
func (f *search) heldAt(load float64) (held, enough bool) {
	held, enough = true, true
	for _, claim := range f.cfg.claimIndices() {
		bad, n, violations, phi, cluster, flanked := 0, 0, 0, float64(lowPhi), 1., false
		for i := range f.cap.Trail {
			s := &f.cap.Trail[i].Seen
			above := math.Log(f.cap.Trail[i].Load / load)
			if !f.supportsBounds(&f.cap.Trail[i]) || above < 0 || above > bursty {
				continue
			}
			phi, cluster = max(phi, widestPhi(s.violationBlocks(claim), s.dueRequests(claim), f.boundLevel())), max(cluster, s.Cluster)
			violations += s.violationCount(claim)
			if above > 0 {
				flanked = true
				continue
			}
			bad, n = bad+s.violationCount(claim), n+s.dueRequests(claim)
			held = held && s.Stability != stats.Unstable
		}
		least := float64(lowPhi)
		if violations < telling {
			least *= cluster
		}
		phi = max(phi, least)
		if !flanked {
			least, phi = least*unflanked, phi*unflanked
		}
		upper := func(bad int, phi float64) float64 {
			return stats.ClopperPearson(bad, n, phi, stats.OneSided(f.boundLevel())).Hi
		}
		enough = enough && n > 0 && upper(0, least) <= f.cfg.allowedShare(claim)
		held = held && n > 0 && upper(bad, phi) <= f.cfg.allowedShare(claim)
	}
	return held && enough, enough
}

// neighbourLoads are the lowest load whose share of violations is above what is allowed, or
// whose queue grew, and the highest below it; 0 where there is none.
func (f *search) neighbourLoads() (met, next float64) {
	for _, load := range f.evidenceLoads() {
		over := f.exceededAt(load)
		for _, s := range f.cap.Trail {
			over = over || s.Load == load && s.Seen.Stability == stats.Unstable
		}
		if over {
			return met, load
		}
		met = load
	}
	return met, 0
}

// shareAt is the share of a claim's violations at a load, over all its windows.
func (f *search) shareAt(load float64, claim int) float64 {
	bad, n := 0, 0
	for _, s := range f.cap.Trail {
		if s.Load == load && s.Seen.IsEvidence() {
			bad, n = bad+s.Seen.violationCount(claim), n+s.Seen.dueRequests(claim)
		}
	}
	return float64(bad) / float64(max(n, 1))
}

// interpolateCrossing is where the first claim is reached between two neighbours: the odds of
// violating it rise by a power of the load. A share of none, or all, counts as half a
// request's.
func (f *search) interpolateCrossing(met, next float64) (at float64, binding int) {
	logit := func(load float64, claim int) float64 {
		n := 0
		for _, s := range f.cap.Trail {
			if s.Load == load && s.Seen.IsEvidence() {
				n += s.Seen.dueRequests(claim)
			}
		}
		half := 0.5 / float64(max(n, 1))
		p := min(max(f.shareAt(load, claim), half), 1-half)
		return math.Log(p / (1 - p))
	}
	at, binding = next, f.cfg.claimIndices()[0]
	for _, claim := range f.cfg.claimIndices() {
		eps := f.cfg.allowedShare(claim)
		low, high, goal := logit(met, claim), logit(next, claim), math.Log(eps/(1-eps))
		if high <= goal || high <= low {
			continue
		}
		if x := met * math.Pow(next/met, max(0, (goal-low)/(high-low))); x < at {
			at, binding = x, claim
		}
	}
	return at, binding
}
