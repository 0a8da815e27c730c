package stat

import "math"

// MoreOften is how likely at least k of n trials succeed where both k of n and j of m are of
// one chance: Fisher's exact test, one-sided (Fisher, "Statistical Methods for Research
// Workers", section 21.02). It is 1 where either has no trials.
func MoreOften(k, n, j, m int) (p float64) {
	if n == 0 || m == 0 {
		return 1
	}
	hits, all := k+j, n+m
	whole := choose(all, hits)
	for x := k; x <= min(n, hits); x++ {
		if hits-x <= m {
			p += math.Exp(choose(n, x) + choose(m, hits-x) - whole)
		}
	}
	return min(p, 1)
}

// choose is the logarithm of the binomial coefficient.
func choose(n, k int) float64 {
	return lgamma(float64(n+1)) - lgamma(float64(k+1)) - lgamma(float64(n-k+1))
}
