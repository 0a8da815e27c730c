package stats

import "math"

// Mean is an estimated mean with its standard error and a t interval.
type Mean struct {
	N        int
	Mean, SE float64
	DF       int
	Interval
}

// Batches are the sums of consecutive batches of a series, whose sizes differ by
// one at most. It keeps the sums alone: a series may be longer than memory.
type Batches struct {
	n, at int64
	batch int
	sums  []float64
	sum   float64
}

// NewBatches is for a series of n values, which come by Add.
func NewBatches(n int64, batches int) *Batches {
	return &Batches{n: n, sums: make([]float64, max(batches, 0))}
}

// Add takes in the next value.
func (b *Batches) Add(x float64) {
	for b.batch < len(b.sums)-1 && b.at >= b.batchEnd(b.batch) {
		b.batch++
	}
	b.at++
	b.sum += x
	if b.batch < len(b.sums) {
		b.sums[b.batch] += x
	}
}

// batchEnd is the index behind a batch.
func (b *Batches) batchEnd(i int) int64 { return int64(i+1) * b.n / int64(len(b.sums)) }

// batchMeans are those of the batches; ok is false for fewer than two batches or fewer
// than two values in each.
func (b *Batches) batchMeans() (means []float64, ok bool) {
	if len(b.sums) < 2 || b.n < 2*int64(len(b.sums)) || b.at != b.n {
		return nil, false
	}
	means, from := make([]float64, len(b.sums)), int64(0)
	for i, sum := range b.sums {
		means[i] = sum / float64(b.batchEnd(i)-from)
		from = b.batchEnd(i)
	}
	return means, true
}

// Mean estimates the mean of a stationary, correlated series from the spread of
// the means of its batches (Law, "Simulation Modeling and Analysis", 2015, section
// 9.5.3): se² = s²/batches, t on batches−1. It holds when a batch is much longer
// than the correlation; 10 batches are usual.
//
// ok is false for fewer than two batches or fewer than two samples in each.
func (b *Batches) Mean(level float64) (m Mean, ok bool) {
	means, ok := b.batchMeans()
	if !ok {
		return Mean{}, false
	}
	_, sd := Moments(means)
	m = Mean{N: int(b.n), Mean: b.sum / float64(b.n), SE: sd / math.Sqrt(float64(len(means))), DF: len(means) - 1}
	m.Interval = studentInterval(m.Mean, m.SE, float64(m.DF), level)
	return m, true
}

// MergeTo are fewer batches of the same series; the number must divide the present
// one.
func (b *Batches) MergeTo(batches int) *Batches {
	m := &Batches{n: b.n, at: b.at, sum: b.sum, sums: make([]float64, batches)}
	each := len(b.sums) / batches
	for i, sum := range b.sums[:each*batches] {
		m.sums[i/each] += sum
	}
	return m
}

// Overdispersion is, of a series of 0s and 1s, how many times larger the variance
// of their share is than if they were independent: φ = m·s²/(p(1−p)), with s² the
// variance of the means of batches of size m and p the share. n/φ is then the
// effective number of samples.
//
// Never decide by a run's own φ whether its interval is shown: a run that met
// no slow period has a small φ, and is the one that is wrong. Take
// PooledOverdispersion over neighbouring loads.
//
// ok is false where no φ can be had: too few samples, or all 0 or all 1.
func (b *Batches) Overdispersion() (phi float64, ok bool) {
	means, ok := b.batchMeans()
	p := b.sum / float64(b.n)
	if !ok || p <= 0 || p >= 1 {
		return 0, false
	}
	_, sd := Moments(means)
	return sd * sd * float64(b.n) / float64(len(means)) / (p * (1 - p)), true
}

// BatchMeans is the mean of a series by its batches, see [Batches.Mean].
func BatchMeans(xs []float64, batches int, level float64) (m Mean, ok bool) {
	return batchesOf(xs, batches).Mean(level)
}

func batchesOf(xs []float64, batches int) *Batches {
	b := NewBatches(int64(len(xs)), batches)
	for _, x := range xs {
		b.Add(x)
	}
	return b
}

// studentInterval is estimate ± t·se.
func studentInterval(estimate, se, df, level float64) Interval {
	half := StudentQuantile(1-tailProbability(level), df) * se
	return Interval{estimate - half, estimate + half}
}

// MarkExceeding marks the values above a limit with 1, the others with 0.
func MarkExceeding(xs []float64, limit float64) []float64 {
	hits := make([]float64, len(xs))
	for i, x := range xs {
		if x > limit {
			hits[i] = 1
		}
	}
	return hits
}

// PooledOverdispersion is the largest φ of neighbouring loads, at least 1.
func PooledOverdispersion(phis ...float64) float64 {
	phi := 1.0
	for _, x := range phis {
		phi = max(phi, x)
	}
	return phi
}
