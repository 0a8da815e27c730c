package stats

import (
	"math"
	"slices"
)

// MannKendall tests for a trend (Mann, Econometrica 13, 1945; Kendall, "Rank
// Correlation Methods", 1975): s counts rises less falls over all pairs, z is
// s over its standard deviation without a trend, corrected for continuity and
// for ties. z is standard normal from about ten independent values on, and 0
// where there is nothing to compare.
func MannKendall(xs []float64) (s int, z float64) {
	for j := range xs {
		for i := range j {
			switch {
			case xs[j] > xs[i]:
				s++
			case xs[j] < xs[i]:
				s--
			}
		}
	}
	pairs := func(n int) float64 { return float64(n) * float64(n-1) * float64(2*n+5) / 18 }
	variance := pairs(len(xs))
	sorted := slices.Sorted(slices.Values(xs))
	for from, to := 0, 0; from < len(sorted); from = to {
		for to = from + 1; to < len(sorted) && sorted[to] == sorted[from]; to++ {
		}
		variance -= pairs(to - from)
	}
	switch {
	case variance <= 0 || s == 0:
		return s, 0
	case s > 0:
		return s, float64(s-1) / math.Sqrt(variance)
	}
	return s, float64(s+1) / math.Sqrt(variance)
}

// TheilSen is the median slope over all pairs of equally spaced values, a step
// apart (Sen, JASA 63, 1968). Fewer than two values have slope 0.
func TheilSen(ys []float64, step float64) float64 {
	var slopes []float64
	for j := range ys {
		for i := range j {
			slopes = append(slopes, (ys[j]-ys[i])/(float64(j-i)*step))
		}
	}
	return median(slopes)
}

// median sorts xs and gives the middle, or the mean of the two middle values;
// 0 for none.
func median(xs []float64) float64 {
	n := len(xs)
	if n == 0 {
		return 0
	}
	slices.Sort(xs)
	return (xs[(n-1)/2] + xs[n/2]) / 2
}
