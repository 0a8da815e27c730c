package stats

import "math"

// Moments are the mean and the standard deviation (n−1 in the denominator) of
// xs, in two passes so that a large mean does not swallow a small spread. No
// data gives NaN for both, one sample NaN for the deviation.
func Moments[T Number](xs []T) (mean, sd float64) {
	n := float64(len(xs))
	if n == 0 {
		return math.NaN(), math.NaN()
	}
	var sum float64
	for _, x := range xs {
		sum += float64(x)
	}
	mean = sum / n
	if n < 2 {
		return mean, math.NaN()
	}
	var squares float64
	for _, x := range xs {
		d := float64(x) - mean
		squares += d * d
	}
	return mean, math.Sqrt(squares / (n - 1))
}
