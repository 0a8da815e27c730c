package stats

import (
	"math"
	"sort"
)

// RankInterval gives the ranks, counted from 1, of the order statistics that
// hold the p-quantile of n independent samples between them with at least the
// given level and equal tails: the largest lo with P(B < lo) ≤ (1−level)/2 and
// the smallest hi with P(B ≥ hi) ≤ (1−level)/2, for B ~ Bin(n, p). lo = 0 and
// hi = n+1 are open ends: no observed value bounds the quantile there.
//
// The interval needs no assumption on the distribution (David and Nagaraja,
// "Order Statistics", 2003, section 7.1). Latencies under load are not
// independent: see EffectiveRankInterval.
func RankInterval(n int64, p, level float64) (lo, hi int64) {
	if n < 1 {
		return 0, 1
	}
	first := func(reached func(k int64) bool) int64 {
		return int64(sort.Search(int(n), func(k int) bool { return reached(int64(k)) }))
	}
	lo = first(func(k int64) bool { return BinomialCDF(k, n, p) > tailProbability(level) })
	hi = 1 + first(func(k int64) bool { return BinomialTail(k, n, p) <= tailProbability(level) })
	return lo, hi
}

// EffectiveRankInterval is RankInterval for n samples that say as much as
// `effective` independent ones, n/φ with the over-dispersion φ of "x exceeds
// the quantile" (see Overdispersion). The ranks among ⌊effective⌋ are spread
// over n: lo downwards, hi upwards.
func EffectiveRankInterval(n int64, effective, p, level float64) (lo, hi int64) {
	m := int64(min(effective, float64(n)))
	if m < 1 {
		return 0, n + 1
	}
	lo, hi = RankInterval(m, p, level)
	if hi > m {
		hi = n + 1
	} else {
		hi = int64(math.Ceil(float64(hi) * float64(n) / float64(m)))
	}
	return int64(float64(lo) * float64(n) / float64(m)), hi
}
