package stat

import "math"

// Difference is how far one mean lies above another, or a mean above zero.
type Difference struct {
	Estimate, SE, DF float64
	P                float64 // two-sided, of no difference
	Interval
}

// Welch gives mean(b) − mean(a) of two independent samples, the variances of
// which may differ (Welch, Biometrika 34, 1947), with a t interval. For ratios
// of times or rates, give logarithms (see LogRatio). The samples are launches:
// requests of one run depend on each other, and two equal systems would differ.
//
// ok is false for fewer than two values in a sample, and without any spread.
func Welch(a, b []float64, level float64) (d Difference, ok bool) {
	if len(a) < 2 || len(b) < 2 {
		return Difference{}, false
	}
	ma, sa := Moments(a)
	mb, sb := Moments(b)
	va, vb := sa*sa/float64(len(a)), sb*sb/float64(len(b))
	df := (va + vb) * (va + vb) / (va*va/float64(len(a)-1) + vb*vb/float64(len(b)-1))
	return difference(mb-ma, math.Sqrt(va+vb), df, level)
}

// Paired gives mean(b − a) of pairs, as Welch does of independent samples.
func Paired(a, b []float64, level float64) (d Difference, ok bool) {
	if len(a) != len(b) || len(a) < 2 {
		return Difference{}, false
	}
	deltas := make([]float64, len(a))
	for i := range a {
		deltas[i] = b[i] - a[i]
	}
	mean, sd := Moments(deltas)
	return difference(mean, sd/math.Sqrt(float64(len(a))), float64(len(a)-1), level)
}

// LogRatio is Welch on the logarithms of positive values: the estimate of
// ln(b/a).
func LogRatio(a, b []float64, level float64) (d Difference, ok bool) {
	la, ok := logs(a)
	if !ok {
		return Difference{}, false
	}
	lb, ok := logs(b)
	if !ok {
		return Difference{}, false
	}
	return Welch(la, lb, level)
}

// Ratio is the difference of logarithms as a factor, with its interval.
func (d Difference) Ratio() (estimate float64, v Interval) {
	return math.Exp(d.Estimate), Interval{math.Exp(d.Lo), math.Exp(d.Hi)}
}

func logs(xs []float64) ([]float64, bool) {
	out := make([]float64, len(xs))
	for i, x := range xs {
		if !(x > 0) {
			return nil, false
		}
		out[i] = math.Log(x)
	}
	return out, true
}

func difference(estimate, se, df, level float64) (Difference, bool) {
	if !(se > 0) {
		return Difference{}, false
	}
	return Difference{
		Estimate: estimate, SE: se, DF: df,
		P:        2 * StudentCDF(-math.Abs(estimate)/se, df),
		Interval: studentInterval(estimate, se, df, level),
	}, true
}
