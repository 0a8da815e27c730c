// Package ks has the chance of a Kolmogorov-Smirnov distance.
package ks

import "math"

// P is the probability of at least such a distance of samples of n and m values, where both
// come of one distribution and the values are independent: Kolmogorov's limit, with
// Stephens' correction (Stephens, Use of the Kolmogorov-Smirnov, Cramér-von Mises and
// related statistics, JRSS B 32, 1970).
func P(d float64, n, m int) float64 {
	e := math.Sqrt(float64(n) * float64(m) / float64(n+m))
	x := (e + 0.12 + 0.11/e) * d
	if x < 0.2 {
		return 1
	}
	sum := 0.0
	for k := 1.0; k < 101; k++ {
		term := math.Exp(-2 * k * k * x * x)
		if int(k)%2 == 0 {
			term = -term
		}
		if sum += 2 * term; math.Abs(term) < 1e-12 {
			break
		}
	}
	return min(max(sum, 0), 1)
}
