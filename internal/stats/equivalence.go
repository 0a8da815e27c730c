package stats

import "math"

// TOST is the p-value of two one-sided tests that a difference lies within
// ±margin (Schuirmann, Journal of Pharmacokinetics and Biopharmaceutics 15,
// 1987): equivalent at 5 % if p < 0.05, which is when the 90 % interval lies
// within the margin. For a ratio within 1/(1+m) and 1+m, the margin of its
// logarithm is ln(1+m).
func (d Difference) TOST(margin float64) float64 {
	return StudentCDF((math.Abs(d.Estimate)-margin)/d.SE, d.DF)
}

// ShareBelow is the p-value, one-sided, that the mean of the shares b lies less than
// margin above that of a. Launches that saw next to no events have next to no spread
// either, and t would call them the same as those that do see some. So b has the
// spread that it would have at the margin: that of n independent requests, and what
// launches differ beyond it in proportion to the mean (a score test, as Farrington and
// Manning's, Statistics in Medicine 9, 1990, for shares that spread as a
// beta-binomial law). n is 0 where it is not known. The p-value is 1 where nothing
// tells.
func ShareBelow(a, b []float64, n, margin float64) float64 {
	if len(a) < 2 || len(b) < 2 {
		return 1
	}
	ma, sa := Moments(a)
	mb, sb := Moments(b)
	if ma+mb > 1 { // of the rare ones: what a then has more than b
		ma, mb, sa, sb = 1-mb, 1-ma, sb, sa
		a, b = b, a
	}
	independent := func(share float64) float64 {
		if !(n > 0) {
			return 0
		}
		return max(0, share*(1-share)) / n
	}
	limit := ma + margin
	variance := independent(limit)
	if mb > 0 && limit > mb {
		variance += max(0, sb*sb-independent(mb)) * limit * limit / (mb * mb)
	}
	va, vb := max(sa*sa, independent(ma))/float64(len(a)), max(variance, sb*sb)/float64(len(b))
	if !(va+vb > 0) {
		return 1
	}
	df := (va + vb) * (va + vb) / (va*va/float64(len(a)-1) + vb*vb/float64(len(b)-1))
	return StudentCDF((mb-limit)/math.Sqrt(va+vb), df)
}
