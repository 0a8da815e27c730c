package stats

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
		v.Lo = BetaQuantile(tailProbability(level), k, misses+1)
	}
	if hits < n {
		v.Hi = BetaQuantile(1-tailProbability(level), k+1, misses)
	}
	return v
}
