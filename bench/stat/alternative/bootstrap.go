package alternative

import (
	"math"
	"math/rand/v2"
	"slices"

	"pitot/internal/stats"
)

// Bootstrap is a statistic with what resampling says of its error.
type Bootstrap struct {
	Estimate, SE float64
	stats.Interval
}

// BlockBootstrap resamples a stationary, correlated series in overlapping
// blocks of consecutive samples (the moving-blocks bootstrap of Künsch, Annals
// of Statistics 17, 1989) and gives the percentile interval of the statistic,
// widened for the number of blocks as t is for that of values (the expanded
// percentile interval of Hesterberg, The American Statistician 69, 2015).
// It serves means, ratios and areas; a tail percentile of one run it does not:
// no resample goes beyond the largest sample seen. A block must be much longer
// than the correlation, and there should be 20 of them at least.
//
// statistic gets a slice that is reused and may be sorted. ok is false for
// fewer than two blocks or two resamples.
func BlockBootstrap(xs []float64, block, resamples int, level float64, seed uint64, statistic func([]float64) float64) (b Bootstrap, ok bool) {
	if block < 1 || len(xs) < 2*block || resamples < 2 {
		return Bootstrap{}, false
	}
	rng := rand.New(rand.NewPCG(seed, 0))
	b.Estimate = statistic(slices.Clone(xs))
	sample, replicates := make([]float64, len(xs)), make([]float64, resamples)
	for i := range replicates {
		for at := 0; at < len(sample); at += block {
			from := rng.IntN(len(xs) - block + 1)
			copy(sample[at:], xs[from:from+block])
		}
		replicates[i] = statistic(sample)
	}
	_, b.SE = stats.Moments(replicates)
	slices.Sort(replicates)
	blocks := float64(len(xs) / block)
	outside := stats.NormalCDF(-stats.StudentQuantile(1-(1-level)/2, blocks-1) * math.Sqrt(blocks/(blocks-1)))
	b.Interval = stats.Interval{Lo: stats.Percentile(replicates, outside), Hi: stats.Percentile(replicates, 1-outside)}
	return b, true
}
