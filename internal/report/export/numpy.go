package export

import (
	"math"

	"pitot/internal/stats"
)

// spread is a sample as the Python tools describe one: numpy's mean, its
// standard deviation (divided by n) and its percentiles, which interpolate
// between neighbours. Of no sample they all write zero, and so does this.
type spread struct {
	n        int
	mean, sd float64
	min, max float64
	at       func(p float64) float64 // p in percent
}

// spreadOf describes sorted values; unit is what one of the result is of them.
func spreadOf[T stats.Number](sorted []T, unit float64) spread {
	n := len(sorted)
	if n == 0 {
		return spread{at: func(float64) float64 { return 0 }}
	}
	sum := 0.0
	for _, x := range sorted {
		sum += float64(x)
	}
	mean, squares := sum/float64(n), 0.0
	for _, x := range sorted {
		d := float64(x) - mean
		squares += d * d
	}
	return spread{
		n: n, mean: mean / unit, sd: math.Sqrt(squares/float64(n)) / unit,
		min: float64(sorted[0]) / unit, max: float64(sorted[n-1]) / unit,
		at: func(p float64) float64 {
			i, frac := stats.LinearRank(int64(n), p/100)
			x := float64(sorted[i-1])
			if frac > 0 {
				x += frac * (float64(sorted[i]) - x)
			}
			return x / unit
		},
	}
}
