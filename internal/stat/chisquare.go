package stat

import "math"

// ChiSquareCDF is P(X ≤ x) of the chi-square distribution with df > 0 degrees
// of freedom: the regularised incomplete gamma function P(df/2, x/2).
func ChiSquareCDF(x, df float64) float64 {
	if !(x > 0) {
		return 0
	}
	a, x := df/2, x/2
	front := math.Exp(a*math.Log(x) - x - lgamma(a))
	if x < a+1 {
		return front * gammaSeries(a, x)
	}
	return 1 - front*gammaFraction(a, x)
}

// gammaSeries is Σ x^k / (a(a+1)…(a+k)), DLMF 8.11.4.
func gammaSeries(a, x float64) float64 {
	term := 1 / a
	sum := term
	for k := 1.0; term > 1e-16*sum; k++ {
		term *= x / (a + k)
		sum += term
	}
	return sum
}

// gammaFraction is the even part of the continued fraction DLMF 8.9.2, for
// x > a, by Lentz's method: 1/(x+1−a − 1(1−a)/(x+3−a − 2(2−a)/(x+5−a − …))).
func gammaFraction(a, x float64) float64 {
	const tiny = 1e-300
	b := x + 1 - a
	d := 1 / b
	c, f := 1/tiny, d
	for k := 1.0; k < 1e6; k++ {
		coefficient := -k * (k - a)
		b += 2
		d = 1 / nonzero(coefficient*d+b, tiny)
		c = nonzero(b+coefficient/c, tiny)
		f *= c * d
		if math.Abs(c*d-1) < 1e-15 {
			break
		}
	}
	return f
}
