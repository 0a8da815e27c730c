package stat

import "math"

// Wilson is the score interval of a share of hits among n (Wilson, JASA 22,
// 1927), with n taken as n/phi for over-dispersed counts; phi below 1 counts
// as 1. For a one-sided limit, see OneSided. No samples give [0, 1].
func Wilson(hits, n int, phi, level float64) Interval {
	if n < 1 {
		return Interval{0, 1}
	}
	m := float64(n) / max(phi, 1)
	p := float64(hits) / float64(n)
	z := NormalQuantile(1 - tail(level))
	centre := (p + z*z/(2*m)) / (1 + z*z/m)
	half := z / (1 + z*z/m) * math.Sqrt(p*(1-p)/m+z*z/(4*m*m))
	v := Interval{max(0, centre-half), min(1, centre+half)}
	if hits == 0 {
		v.Lo = 0 // exactly, not but for rounding
	}
	if hits == n {
		v.Hi = 1
	}
	return v
}

// ClopperPearson is the interval of a share from exact binomial tails (Clopper
// and Pearson, Biometrika 26, 1934). It never covers less than its level for
// independent samples. For over-dispersed counts hits and n are both divided
// by phi, as survey statistics does (Korn and Graubard, "Survey Methodology"
// 24, 1998); phi below 1 counts as 1. For a one-sided limit, see OneSided. No
// samples give [0, 1].
func ClopperPearson(hits, n int, phi, level float64) Interval {
	phi = max(phi, 1)
	k, misses := float64(hits)/phi, float64(n-hits)/phi
	v := Interval{0, 1}
	if hits > 0 {
		v.Lo = BetaQuantile(tail(level), k, misses+1)
	}
	if hits < n {
		v.Hi = BetaQuantile(1-tail(level), k+1, misses)
	}
	return v
}
