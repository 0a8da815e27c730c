package stats

import (
	"iter"
	"math"
)

// Limits of the adjusted A² of AndersonDarling (Stephens, JASA 69, 1974).
const (
	AndersonDarling5 = 1.321 // exceeded by 5 % of exponential samples
	AndersonDarling1 = 1.959 // by 1 %
)

// AndersonDarling measures how far n gaps are from exponential ones with their own mean,
// with weight on both tails:
// A² = −n − Σ(2i−1)[ln F(x₍ᵢ₎) + ln(1−F(x₍ₙ₊₁₋ᵢ₎))]/n; adjusted is
// A²(1 + 0.6/n). With over 10,000 gaps it also rejects the timer's noise. The gaps come in
// order: they may be more than memory holds.
//
// ok is false without gaps and if one is not positive.
func AndersonDarling(gaps iter.Seq[float64], n int64, mean float64) (a2, adjusted float64, ok bool) {
	if !(mean > 0) {
		return 0, 0, false
	}
	a2 = -float64(n)
	i := int64(0)
	for x := range gaps {
		if x <= 0 {
			return 0, 0, false
		}
		x /= mean
		a2 -= (float64(2*i+1)*math.Log(-math.Expm1(-x)) - float64(2*(n-1-i)+1)*x) / float64(n)
		i++
	}
	return a2, a2 * (1 + 0.6/float64(n)), true
}
