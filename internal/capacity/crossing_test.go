package capacity

import (
	"context"
	"math/rand/v2"
	"testing"

	"pitot/internal/results/result"
	"pitot/internal/stats"
)

// sweepOf are windows of so many requests at loads of a target whose truth is known.
func sweepOf(of *truth, n int, loads ...float64) (points []result.Point) {
	for _, load := range loads {
		s, _ := of.probe(context.Background(), Probe{Load: load, Requests: n, Blocks: 10})
		p := result.Point{Load: result.Load{Rate: &load}, Verdict: result.Valid, Stability: stats.Stable, SLO: &result.SLO{Spec: "p99 ttft<1s, p99 tpot<1s"}}
		p.Requests.Due, p.Requests.OK = n, n-s.Errors
		for i, blocks := range s.Blocks {
			p.SLO.Violations = append(p.SLO.Violations, result.Violations{Spec: []string{"p99 ttft<1s", "p99 tpot<1s"}[i], Allowed: 0.01, Blocks: blocks})
		}
		points = append(points, p)
	}
	return points
}

// Both bounds hold together in 95 % of sweeps and more, and the estimate lies between them.
func TestCrossingHoldsTheTruth(t *testing.T) {
	const reps, capacity = 200, 37.0
	wrong, both := 0, 0
	for r := range reps {
		of := truthAt(capacity, 60)
		of.rng = rand.New(rand.NewPCG(5, uint64(r)))
		c := CrossingOf(sweepOf(of, 3000, 8, 16, 24, 28, 32, 34, 36, 38, 40, 44, 50, 64))
		low, high := valueOrZero(c.AtLeast), valueOrZero(c.AtMost)
		if low > capacity || high > 0 && high < capacity {
			wrong++
		}
		if low == 0 || high == 0 {
			continue
		}
		both++
		if x := valueOrZero(c.Estimate); x > 0 && (x < low || x > high || c.Binding != "p99 ttft<1s" && x < 45) {
			t.Errorf("%v %s between %v and %v", x, c.Binding, low, high)
		}
	}
	if wrong > 16 || both < reps/2 {
		t.Errorf("of %d: %d wrong, %d with both bounds", reps, wrong, both)
	}
}

// What is missing for an estimate is said.
func TestCrossingSaysWhatIsMissing(t *testing.T) {
	of := truthAt(37)
	for want, points := range map[result.ReasonCode][]result.Point{
		result.NoneMissed:      sweepOf(of, 3000, 5, 10, 20),
		result.NoneMet:         sweepOf(of, 3000, 80, 100, 120),
		result.NoneSurelyBelow: sweepOf(of, 300, 5, 10, 20, 60, 80),
		result.NoneSurelyAbove: sweepOf(of, 3000, 5, 10, 20, 39.5),
	} {
		c := CrossingOf(points)
		if c == nil || c.Estimate != nil || c.Why.Code != want {
			t.Errorf("%+v, not %q", c, want)
		}
	}
	if c := CrossingOf(sweepOf(of, 3000, 5, 10, 20)[:0]); c != nil {
		t.Errorf("%+v of nothing", c)
	}
	points := sweepOf(of, 3000, 5, 80)
	for i := range points {
		points[i].SLO.Violations = nil
	}
	if c := CrossingOf(points); c != nil {
		t.Errorf("%+v of no claim", c)
	}
	invalid := sweepOf(of, 3000, 5, 10, 20, 80, 100)
	for i := range invalid[:3] {
		invalid[i].Verdict = result.Invalid
	}
	if c := CrossingOf(invalid); c.AtLeast != nil {
		t.Errorf("%+v rests on INVALID windows", c)
	}
}
