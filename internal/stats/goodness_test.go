package stats

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestAndersonDarling(t *testing.T) {
	quantiles := make([]float64, 10)
	for i := range quantiles {
		quantiles[9-i] = -math.Log(1 - (float64(i)+.5)/10)
	}
	a2, adjusted, ok := andersonDarling(quantiles)
	if !ok || math.Abs(a2-.081586) > 1e-6 || math.Abs(adjusted-.086481) > 1e-6 {
		t.Errorf("%g, %g", a2, adjusted)
	}
	if _, adjusted, _ := andersonDarling([]float64{1, 1, 1, 1, 1.1, 1, 1, 1, 1, 1}); math.Abs(adjusted-4.7198) > 1e-4 {
		t.Errorf("nearly constant gaps: %g", adjusted)
	}
	for _, gaps := range [][]float64{nil, {0, 1}, {-1, 3}, {0, 0}} {
		if a2, adjusted, ok := andersonDarling(gaps); ok || a2 != 0 || adjusted != 0 {
			t.Errorf("%v: %g, %g, %v", gaps, a2, adjusted, ok)
		}
	}
}

func TestAndersonDarlingLimits(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	var five, one tally
	for range 2000 {
		gaps := make([]float64, 100)
		for i := range gaps {
			gaps[i] = 7 * rng.ExpFloat64()
		}
		_, a2, _ := andersonDarling(gaps)
		five.add(a2 > AndersonDarling5)
		one.add(a2 > AndersonDarling1)
	}
	five.within(t, "beyond the limit of 5 %", .035, .065)
	one.within(t, "beyond the limit of 1 %", .004, .018)
}

// andersonDarling is that of gaps in any order.
func andersonDarling(gaps []float64) (a2, adjusted float64, ok bool) {
	mean, _ := Moments(gaps)
	return AndersonDarling(slices.Values(slices.Sorted(slices.Values(gaps))), int64(len(gaps)), mean)
}
