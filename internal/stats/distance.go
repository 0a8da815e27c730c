package stats

import (
	"cmp"
	"math"
)

// KSDistance is Kolmogorov and Smirnov's of two sorted samples: the most by which their
// shares of values up to any one differ, from 0 to 1. It is 0 where one of them is empty.
func KSDistance[T cmp.Ordered](x, y []T) (most float64) {
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
