package stats

import "math"

// IncompleteBeta is the regularised incomplete beta function I_x(a, b), the
// CDF of the beta distribution, for a, b > 0. It is the continued fraction
// 8.17.22 of the NIST Digital Library of Mathematical Functions, evaluated by
// Lentz's method; it takes about √max(a, b) terms.
func IncompleteBeta(x, a, b float64) float64 {
	switch {
	case !(x > 0):
		return 0
	case x >= 1:
		return 1
	case x > (a+1)/(a+b+2): // where the fraction converges slowly, I_x(a, b) = 1 − I_{1−x}(b, a)
		return 1 - betaFraction(1-x, b, a)
	}
	return betaFraction(x, a, b)
}

func betaFraction(x, a, b float64) float64 {
	const tiny = 1e-300 // in place of a zero denominator
	front := math.Exp(lgamma(a+b)-lgamma(a)-lgamma(b)+a*math.Log(x)+b*math.Log1p(-x)) / a
	if front == 0 {
		return 0
	}
	f, c, d := 1.0, 1.0, 0.0
	for i := range 1_000_000 {
		m := float64(i / 2)
		var coefficient float64
		switch {
		case i == 0:
			coefficient = 1
		case i%2 == 0:
			coefficient = m * (b - m) * x / ((a + 2*m - 1) * (a + 2*m))
		default:
			coefficient = -(a + m) * (a + b + m) * x / ((a + 2*m) * (a + 2*m + 1))
		}
		d = 1 / orNonzero(1+coefficient*d, tiny)
		c = orNonzero(1+coefficient/c, tiny)
		f *= c * d
		if math.Abs(c*d-1) < 1e-15 {
			break
		}
	}
	return front * (f - 1)
}

func orNonzero(x, instead float64) float64 {
	if x == 0 {
		return instead
	}
	return x
}

func lgamma(x float64) float64 {
	l, _ := math.Lgamma(x)
	return l
}

// BetaQuantile is the x with I_x(a, b) = p, found by bisection.
func BetaQuantile(p, a, b float64) float64 {
	lo, hi := 0.0, 1.0
	for range 1200 { // as many halvings as a float64 has below 1
		x := lo + (hi-lo)/2
		if IncompleteBeta(x, a, b) < p {
			lo = x
		} else {
			hi = x
		}
		if hi-lo <= 1e-15*hi {
			break
		}
	}
	return lo + (hi-lo)/2
}
