package stats

import "math"

// MoreOften returns the probability that at least k of n trials succeed. It assumes that k of n and
// j of m have the same chance. This is Fisher's exact test, one-sided (Fisher, "Statistical Methods
// for Research Workers", section 21.02). It is 1 where either has no trials.
func MoreOften(k, n, j, m int) (p float64) {
	if n == 0 || m == 0 {
		return 1
	}
	hits, all := k+j, n+m
	whole := logChoose(all, hits)
	for x := k; x <= min(n, hits); x++ {
		if hits-x <= m {
			p += math.Exp(logChoose(n, x) + logChoose(m, hits-x) - whole)
		}
	}
	return min(p, 1)
}

// DetectableShare returns the least probability of success of n trials at which [MoreOften],
// compared with j successes in m trials, is below alpha with the given power. ok is false where
// no number of successes is enough.
func DetectableShare(n, j, m int, alpha, power float64) (chance float64, ok bool) {
	few, enough := 0, n+1 // successes that do not tell, and that do
	for enough-few > 1 {
		if k := (few + enough) / 2; MoreOften(k, n, j, m) < alpha {
			enough = k
		} else {
			few = k
		}
	}
	if enough > n || m == 0 {
		return 1, false
	}
	lo, hi := 0., 1.
	for range 50 {
		p := (lo + hi) / 2
		tail := 0. // of at least so many successes
		for x := enough; x <= n; x++ {
			tail += math.Exp(logChoose(n, x) + float64(x)*math.Log(p) + float64(n-x)*math.Log1p(-p))
		}
		if tail < power {
			lo = p
		} else {
			hi = p
		}
	}
	return hi, true
}

// Compared is k of n trials of one group that succeeded, and j of m of another.
type Compared struct{ K, N, J, M int }

// MoreOftenIn is [MoreOften] over strata of different chances: how likely at least as many of
// the first groups' trials succeed in all, where in each stratum both groups have one chance
// (the exact test of Cochran, Mantel and Haenszel, one-sided: Agresti, "Categorical Data
// Analysis", section 7.3.5). It is 1 where no stratum has trials of both.
func MoreOftenIn(strata []Compared) float64 {
	sums, least, seen := []float64{1}, 0, 0 // of the first groups' successes, from least on
	for _, s := range strata {
		if s.N == 0 || s.M == 0 {
			continue
		}
		hits, all := s.K+s.J, s.N+s.M
		from, to := max(0, hits-s.M), min(s.N, hits)
		next := make([]float64, len(sums)+to-from)
		for x := from; x <= to; x++ {
			p := math.Exp(logChoose(s.N, x) + logChoose(s.M, hits-x) - logChoose(all, hits))
			for i, q := range sums {
				next[i+x-from] += p * q
			}
		}
		sums, least, seen = next, least+from, seen+s.K
	}
	p := 0.
	for i, q := range sums {
		if least+i >= seen {
			p += q
		}
	}
	return min(p, 1)
}

// logChoose is the logarithm of the binomial coefficient.
func logChoose(n, k int) float64 {
	return lgamma(float64(n+1)) - lgamma(float64(k+1)) - lgamma(float64(n-k+1))
}
