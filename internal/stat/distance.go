package stat

import (
	"cmp"
	"math"
)

// Distance is Kolmogorov and Smirnov's of two sorted samples: the most by which their
// shares of values up to any one differ, from 0 to 1. It is 0 where one of them is empty.
func Distance[T cmp.Ordered](x, y []T) (most float64) {
	for i, k := 0, 0; i < len(x) && k < len(y); {
		v := min(x[i], y[k])
		for i < len(x) && x[i] <= v {
			i++
		}
		for k < len(y) && y[k] <= v {
			k++
		}
		most = max(most, math.Abs(float64(i)/float64(len(x))-float64(k)/float64(len(y))))
	}
	return most
}

// DistanceFrom is Kolmogorov and Smirnov's distance of a sorted sample from a continuous
// distribution, by its cumulative function.
func DistanceFrom(x []float64, cdf func(float64) float64) (most float64) {
	n := float64(len(x))
	for i, v := range x {
		f := cdf(v)
		most = max(most, math.Abs(f-float64(i)/n), math.Abs(f-float64(i+1)/n))
	}
	return most
}
