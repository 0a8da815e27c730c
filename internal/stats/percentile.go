// Package stats holds the statistics of a measurement as pure functions: order
// statistics, moments and fast sorting; intervals that know of dependence
// between requests; capacity from shares of violations; trends, knees and
// fronts; comparison of launches. It has no clock, no file and no socket.
//
// What cannot be had is ok = false or a Reason in words, never a NaN. How often
// each interval holds and each test errs is shown by `go run ./bench/stat`.
package stats

import (
	"cmp"
	"math"
)

// Rank is ⌈np⌉ for n samples, at least 1 and at most n: the rank, counted
// from 1, of the p-quantile as an order statistic (type 1 of Hyndman and Fan,
// "Sample Quantiles in Statistical Packages", 1996).
//
// n·p is taken a little lower than computed, so that a p which binary
// fractions cannot hold (0.99, 0.999) does not push an exact product over
// the next integer.
func Rank(n int64, p float64) int64 {
	x := float64(n) * p
	r := int64(math.Ceil(x - x*1e-14))
	return min(max(r, 1), max(n, 1))
}

// Percentile is the order statistic X(⌈np⌉) of sorted data, an observed
// value. No data gives zero.
func Percentile[T cmp.Ordered](sorted []T, p float64) T {
	if len(sorted) == 0 {
		var zero T
		return zero
	}
	return sorted[Rank(int64(len(sorted)), p)-1]
}

// Number is a type whose values have moments.
type Number interface {
	~int | ~int32 | ~int64 | ~uint32 | ~uint64 | ~float32 | ~float64
}

// LinearRank is where the percentile lies that interpolates between neighbours
// (type 7 of Hyndman and Fan, the default of numpy.percentile):
// X(i) + frac·(X(i+1) − X(i)) with ranks counted from 1. frac is 0 whenever i
// is n.
func LinearRank(n int64, p float64) (i int64, frac float64) {
	h := float64(n-1) * min(max(p, 0), 1)
	floor := math.Floor(h)
	i, frac = int64(floor)+1, h-floor
	if i >= n {
		return max(n, 1), 0
	}
	return i, frac
}

// SamplesNeeded says how many samples the p-quantile needs: from few = 1/(1−p) on
// at least one sample is expected beyond it, from full = 10/(1−p) on ten are.
func SamplesNeeded(p float64) (few, full int64) {
	q := 1 - p
	if !(q > 0) {
		return math.MaxInt64, math.MaxInt64
	}
	ceil := func(x float64) int64 {
		if x >= math.MaxInt64 {
			return math.MaxInt64
		}
		return int64(math.Ceil(x - x*1e-12))
	}
	return ceil(1 / q), ceil(10 / q)
}
