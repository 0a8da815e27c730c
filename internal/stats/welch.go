package stats

import "math"

// Difference is the distance of one mean above another.
type Difference struct {
	Estimate, SE, DF float64
	P                float64 // two-sided, of no difference
	Interval
}

// Welch gives mean(b) − mean(a) of two independent samples, the variances of
// which may differ (Welch, Biometrika 34, 1947), with a t interval. For ratios
// of times or rates, give logarithms. The samples are launches:
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
	se := math.Sqrt(va + vb)
	if !(se > 0) {
		return Difference{}, false
	}
	d = Difference{Estimate: mb - ma, SE: se, DF: df}
	d.P = 2 * StudentCDF(-math.Abs(d.Estimate)/se, df)
	d.Interval = studentInterval(d.Estimate, se, df, level)
	return d, true
}
