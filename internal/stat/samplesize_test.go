package stat

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestValuesNeeded(t *testing.T) {
	for _, sd := range []float64{.01, .05, .3} {
		for _, delta := range []float64{.02, -.05, .2} {
			k, ok := ValuesNeeded(delta, sd, .95, .8)
			if !ok {
				t.Fatalf("sd %g, difference %g: nothing", sd, delta)
			}
			least, _ := MinDetectable(sd, k, .95, .8)
			before, more := MinDetectable(sd, k-1, .95, .8)
			if least > math.Abs(delta) || more && before <= math.Abs(delta) {
				t.Errorf("sd %g, difference %g: %d find %g, one fewer %g", sd, delta, k, least, before)
			}
		}
	}
	for _, c := range [][2]float64{{0, 1}, {1, 0}, {1e-6, 1}, {math.NaN(), 1}} {
		if k, ok := ValuesNeeded(c[0], c[1], .95, .8); ok {
			t.Errorf("difference %g, sd %g: %d", c[0], c[1], k)
		}
	}
}

// The interval of a difference is Welch's where both are symmetric, and holds
// the difference of skewed ones as often as they hold their own.
func TestIntervalOfDifference(t *testing.T) {
	v := IntervalOfDifference(10, 13, Interval{7, 13}, Interval{9, 17})
	if v != (Interval{3 - 5, 3 + 5}) {
		t.Errorf("%v", v)
	}
	rng := rand.New(rand.NewPCG(1, 1))
	const n = 40
	var held tally
	mean := func() (float64, Interval) { // of exponential draws, of mean 1: 2·Σ is χ² with 2n
		sum := 0.
		for range n {
			sum += rng.ExpFloat64()
		}
		m := sum / n
		lo, hi := m/(1+1.96/math.Sqrt(n)+1.96*1.96/(3*n)), m/(1-1.96/math.Sqrt(n)+1.96*1.96/(3*n))
		return m, Interval{lo, hi}
	}
	for range 4000 {
		a, va := mean()
		b, vb := mean()
		held.add(IntervalOfDifference(a, b, va, vb).Holds(0))
	}
	held.within(t, "held", .935, .965)
}
