package choose

import (
	"math"
	"testing"

	"pitot/internal/slo"
)

// aCurve is one whose claims take so many times what is allowed at each load.
func aCurve(of ...func(rate float64) float64) (c curve) {
	for rate := 1.0; rate < 40; rate *= 1.1 {
		x := &served{Rate: rate}
		for _, f := range of {
			x.Worst = append(x.Worst, f(rate))
		}
		c = c.withLoad(x)
	}
	return c
}

// A claim that grows as a power of the load is crossed where the power says, also between
// the loads that were tried, and the first claim to be crossed is the capacity.
func TestCapacity(t *testing.T) {
	c := aCurve(func(r float64) float64 { return math.Pow(r/20, 2) }, func(r float64) float64 { return math.Pow(r/12.5, 5) })
	rate, claim, known := c.capacityAt(2, []float64{1, 1}, worstOf)
	if math.Abs(rate-12.5) > 1e-6 || claim != 1 || !known {
		t.Errorf("capacity %v by claim %d (known %v), want 12.5 by claim 1", rate, claim, known)
	}
	// An engine that is slow by k does at r what it would do at k·r with limits divided by
	// k: of a power p the capacity falls by k^(1+1/p).
	for _, k := range []float64{0.8, 1.25} {
		rate, _, _ := c.capacityAt(2, []float64{1, k}, worstOf)
		if want := min(12.5*math.Pow(k, -1-1./5), 20); math.Abs(rate/want-1) > 1e-6 {
			t.Errorf("slow by %v: capacity %v, want %v", k, rate, want)
		}
	}
	if _, _, known := c.capacityAt(1, []float64{0.1}, worstOf); known {
		t.Error("a load beyond all that were tried is said to be known")
	}
	if rate, _, _ := aCurve(func(float64) float64 { return 2 }).capacityAt(1, []float64{1}, worstOf); rate != 0 {
		t.Errorf("where the lightest load violates the claim the capacity is %v, not 0", rate)
	}
}

func TestRank(t *testing.T) {
	times := []float64{5, 1, 4, 2, 3}
	for share, want := range map[float64]float64{0.2: 4, 0.01: 5, 0.5: 3} {
		if got := rankOf(times, share); got != want {
			t.Errorf("of five, with %v violating, the rank is at %v, want %v", share, got, want)
		}
	}
	if got := rankOf(nil, 0.1); !math.IsInf(got, 1) {
		t.Errorf("of nothing the rank is at %v", got)
	}
}

// A curve that rests on few different requests is less well known than one of many.
func TestNoise(t *testing.T) {
	claims := []slo.Claim{{Share: 0.1}}
	of := func(n int) (c curve) {
		for _, rate := range []float64{1, 10, 12} {
			x := &served{Rate: rate, times: [][]float64{nil}}
			for i := range n {
				x.times[0] = append(x.times[0], rate/11*(0.5+float64(i*7919%n)/float64(n)))
			}
			x.Worst = []float64{rankOf(x.times[0], 0.1)}
			c = c.withLoad(x)
		}
		return c
	}
	few, many := of(50).capacityNoise(claims), of(5000).capacityNoise(claims)
	if !(few > many) || many > 0.02 {
		t.Errorf("the error of few requests is %v, of many %v", few, many)
	}
}

// Engines that missed the limits together are not reckoned with, whatever each carries.
func TestFewer(t *testing.T) {
	o := Option{Capacity: 6, Engines: 3, failed: 2, Whole: &Whole{Rate: 10, Met: true}}
	r := &race{wanted: &Wanted{Rate: 10}}
	if n := r.enginesNeeded(o.Capacity * o.poolingOfFewer()); n != 3 {
		t.Errorf("%d engines are enough, and 2 were not", n)
	}
	o.Whole.Capacity = 9 // less than was asked: what they carry together tells more
	if got := o.poolingOfFewer(); got != 0.5 {
		t.Errorf("scaled by %v, want 0.5", got)
	}
	o.Whole.Capacity = 20
	if n := r.enginesNeeded(o.Capacity * o.poolingOfFewer()); n != 3 {
		t.Errorf("%d engines are enough, and 2 were not", n)
	}
}

// One engine that is left has nobody to share a queue with, however much two carry together;
// and engines that were seen to miss the limits carry less than what was asked.
func TestWithout(t *testing.T) {
	o := Option{Capacity: 10, Engines: 2, Whole: &Whole{Rate: 20, Met: true, Capacity: 21}}
	if got := o.capacityAfterLoss(1); got != 10 {
		t.Errorf("one that is left carries %v, want 10", got)
	}
	if got := o.capacityAfterLoss(2); got != 0 {
		t.Errorf("none that is left carries %v", got)
	}
	o = Option{Capacity: 10, Engines: 5, Whole: &Whole{Rate: 20, Met: true, Capacity: 70}}
	if got := o.capacityAfterLoss(1); math.Abs(got-52) > 1e-9 { // by 1.3 together, where five do by 1.4
		t.Errorf("four of five carry %v, want 52", got)
	}
	if o.Whole.Capacity = 40; o.capacityAfterLoss(1) != 32 { // a router that loses some
		t.Errorf("four of five carry %v, want 32", o.capacityAfterLoss(1))
	}
	if o.failed = 4; o.capacityAfterLoss(1) >= 20 {
		t.Errorf("four of five carry %v, and missed the limits at 20", o.capacityAfterLoss(1))
	}
}

// A capacity lies anywhere between two loads.
func TestStep(t *testing.T) {
	c := curve{{Rate: 1}, {Rate: 2}, {Rate: 3}}
	if got := c.logStep(2); got != math.Log(1.5) {
		t.Errorf("step %v, want log 1.5", got)
	}
	if got := c.logStep(3); got != 0 {
		t.Errorf("beyond all loads the step is %v", got)
	}
}
