package stats

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

func TestValuesNeeded(t *testing.T) {
	for _, sd := range []float64{.01, .05, .3} {
		for _, delta := range []float64{.02, -.05, .2} {
			k, ok := ValuesNeeded(delta, sd, 8, .95, .8)
			if !ok {
				t.Fatalf("sd %g, difference %g: nothing", sd, delta)
			}
			power := func(k int) float64 { return testOf(k, .95).averagePower(math.Abs(delta)/sd, chiRatios(8)) }
			if at := power(k); at < .8 || k > 2 && power(k-1) >= .8 {
				t.Errorf("sd %g, difference %g: %d find it in %g", sd, delta, k, at)
			}
		}
	}
	for _, c := range [][2]float64{{0, 1}, {1, 0}, {1e-6, 1}, {math.NaN(), 1}} {
		if k, ok := ValuesNeeded(c[0], c[1], 8, .95, .8); ok {
			t.Errorf("difference %g, sd %g: %d", c[0], c[1], k)
		}
	}
	// Of a known spread, a table's: 17 a side find 1 of sd 1 with 80 % power, 64 find 0.5.
	for delta, want := range map[float64]int{1: 17, .5: 64} {
		if k, _ := ValuesNeeded(delta, 1, 1e6, .95, .8); k != want {
			t.Errorf("difference %g of a known spread: %d, want %d", delta, k, want)
		}
	}
}

// As many values as are said to be needed, by the spread of a few, do find the
// difference as often as is said.
func TestValuesNeededFindIt(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 6))
	for _, launches := range []int{3, 5, 10} {
		df := float64(2 * (launches - 1))
		for _, delta := range []float64{1, 2} {
			needed := map[float64]int{} // by the estimated spread, in steps
			var found tally
			for range 600 {
				sum := 0.
				for range int(df) {
					x := rng.NormFloat64()
					sum += x * x
				}
				sd := math.Exp(math.Ceil(50*math.Log(math.Sqrt(sum/df))) / 50)
				k, known := needed[sd]
				if !known {
					k, _ = ValuesNeeded(delta, sd, df, .95, .8)
					needed[sd] = k
				}
				a, b := make([]float64, k), make([]float64, k)
				for i := range k {
					a[i], b[i] = rng.NormFloat64(), delta+rng.NormFloat64()
				}
				d, ok := Welch(a, b, .95)
				found.add(ok && d.P < .05)
			}
			t.Logf("%d launches, %g sd: %.3f", launches, delta, float64(found.held)/float64(found.of))
			found.within(t, fmt.Sprintf("%d launches, difference %g", launches, delta), .76, .95)
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
		held.add(IntervalOfDifference(a, b, va, vb).Contains(0))
	}
	held.within(t, "held", .935, .965)
}
