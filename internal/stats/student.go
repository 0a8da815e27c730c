package stats

import "math"

// StudentCDF is P(T ≤ t) of Student's t distribution; df > 0 may be a
// fraction.
func StudentCDF(t, df float64) float64 {
	if t < 0 {
		return beyondStudent(-t, df)
	}
	return 1 - beyondStudent(t, df)
}

// beyondStudent is P(T > t) for t ≥ 0: I_x(df/2, 1/2)/2 with x = df/(df+t²).
func beyondStudent(t, df float64) float64 {
	return IncompleteBeta(df/(df+t*t), df/2, 0.5) / 2
}

// StudentQuantile is the t with P(T ≤ t) = p; p = 0 and p = 1 give infinities.
//
// It is Newton's method on the upper tail from the normal quantile, which lies
// left of the root. The tail is convex there, so every step stays left of it.
func StudentQuantile(p, df float64) float64 {
	if p < 0.5 {
		return -upperStudent(p, df)
	}
	return upperStudent(1-p, df)
}

func upperStudent(q, df float64) float64 {
	t := upperNormal(q)
	if t == 0 || math.IsInf(t, 1) {
		return t
	}
	scale := lgamma((df+1)/2) - lgamma(df/2) - math.Log(df*math.Pi)/2
	for range 1000 {
		density := math.Exp(scale - (df+1)/2*math.Log1p(t*t/df))
		step := (beyondStudent(t, df) - q) / density
		t += step
		if math.Abs(step) <= 1e-13*t {
			break
		}
	}
	return t
}
