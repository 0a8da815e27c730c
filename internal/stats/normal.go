package stats

import "math"

// NormalCDF is P(Z ≤ z) of the standard normal distribution.
func NormalCDF(z float64) float64 { return math.Erfc(-z/math.Sqrt2) / 2 }

// NormalQuantile is the z with P(Z ≤ z) = p; p = 0 and p = 1 give infinities.
//
// It is Newton's method on the logarithm of the upper tail, which is concave,
// so that from the right of the root every step stays there. The start is the
// Chernoff bound P(Z > z) ≤ exp(−z²/2)/2.
func NormalQuantile(p float64) float64 {
	if p < 0.5 {
		return -upperNormal(p)
	}
	return upperNormal(1 - p)
}

// upperNormal is the z ≥ 0 with P(Z > z) = q, for q ≤ 1/2.
func upperNormal(q float64) float64 {
	if q <= 0 {
		return math.Inf(1)
	}
	z := math.Sqrt(max(0, -2*math.Log(2*q)))
	for range 100 {
		beyond := NormalCDF(-z)
		density := math.Exp(-z*z/2) / math.Sqrt(2*math.Pi)
		step := math.Log(beyond/q) * beyond / density
		z += step
		if math.Abs(step) <= 1e-15*z {
			break
		}
	}
	return z
}
