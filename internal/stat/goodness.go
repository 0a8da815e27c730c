package stat

import (
	"math"
	"slices"
)

// Limits of the adjusted A² of AndersonDarling (Stephens, JASA 69, 1974).
const (
	AndersonDarling5 = 1.321 // exceeded by 5 % of exponential samples
	AndersonDarling1 = 1.959 // by 1 %
)

// AndersonDarling measures how far gaps are from exponential ones with their
// own mean, with weight on both tails:
// A² = −n − Σ(2i−1)[ln F(x₍ᵢ₎) + ln(1−F(x₍ₙ₊₁₋ᵢ₎))]/n; adjusted is
// A²(1 + 0.6/n). With over 10,000 gaps it also rejects the timer's noise.
//
// ok is false without gaps and if one is not positive.
func AndersonDarling(gaps []float64) (a2, adjusted float64, ok bool) {
	xs, ok := byMean(gaps)
	if !ok || xs[0] == 0 {
		return 0, 0, false
	}
	n := float64(len(xs))
	a2 = -n
	for i, x := range xs {
		a2 -= float64(2*i+1) / n * (math.Log(-math.Expm1(-x)) - xs[len(xs)-1-i])
	}
	return a2, a2 * (1 + 0.6/n), true
}

// byMean gives xs sorted and divided by their mean.
func byMean(xs []float64) ([]float64, bool) {
	mean, _ := Moments(xs)
	if !(mean > 0) {
		return nil, false
	}
	out := slices.Sorted(slices.Values(xs))
	if out[0] < 0 {
		return nil, false
	}
	for i := range out {
		out[i] /= mean
	}
	return out, true
}
