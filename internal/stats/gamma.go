package stats

import "math"

// IncompleteGamma is the regularised incomplete gamma function P(k, x), the CDF of the gamma
// distribution of shape k, for k > 0: the series below k+1, and the continued fraction above
// (Numerical Recipes 6.2). Products are rounded before they are added, so that every
// processor gives the same.
func IncompleteGamma(k, x float64) float64 {
	if x <= 0 {
		return 0
	}
	lg, _ := math.Lgamma(k)
	front := math.Exp(float64(k*math.Log(x)) - x - lg)
	if x < k+1 {
		term := 1 / k
		sum := term
		for i := 1; i < 100_000 && term > sum*1e-15; i++ {
			term *= x / (k + float64(i))
			sum += term
		}
		return front * sum
	}
	const tiny = 1e-300
	b := x + 1 - k
	c, d := 1/tiny, 1/b
	h := d
	for i := 1; i < 100_000; i++ {
		a := -float64(i) * (float64(i) - k)
		b += 2
		if d = float64(a*d) + b; math.Abs(d) < tiny {
			d = tiny
		}
		if c = b + a/c; math.Abs(c) < tiny {
			c = tiny
		}
		d = 1 / d
		h *= d * c
		if math.Abs(float64(d*c)-1) < 1e-15 {
			break
		}
	}
	return 1 - float64(front*h)
}
