package stat

import "math"

// TOST is the p-value of two one-sided tests that a difference lies within
// ±margin (Schuirmann, Journal of Pharmacokinetics and Biopharmaceutics 15,
// 1987): equivalent at 5 % if p < 0.05, which is when the 90 % interval lies
// within the margin. For a ratio within 1/(1+m) and 1+m, the margin of its
// logarithm is ln(1+m).
func (d Difference) TOST(margin float64) float64 {
	return StudentCDF((math.Abs(d.Estimate)-margin)/d.SE, d.DF)
}

// MinDetectable is the difference that a two-sided t test at the given level
// finds with the given power, for k values a side of standard deviation sd:
// (t_{1−α/2} + t_power)·sd·√(2/k) with t on 2(k−1) (Cohen, "Statistical Power
// Analysis", 1988, as approximated with the central t). On logarithms it is
// nearly a relative difference. ok is false below two a side.
func MinDetectable(sd float64, k int, level, power float64) (delta float64, ok bool) {
	if k < 2 {
		return 0, false
	}
	df := float64(2 * (k - 1))
	return (StudentQuantile(1-tail(level), df) + StudentQuantile(power, df)) * sd * math.Sqrt(2/float64(k)), true
}
