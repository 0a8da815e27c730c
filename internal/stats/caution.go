package stats

import "math"

// The interval of a mean from the batches of one run is too narrow near
// saturation: where the queue remembers for longer than a batch, the batches
// look alike. A run that met no slow period looks best, and is the one that is
// wrong. So the window must be long beside what the queue remembers.

// FineBatches is the number of batches that show how long a series remembers. They merge into each
// of the numbers that a spread is taken from.
const FineBatches = 140

// spreads are numbers of batches: of many the spread is well known and too
// small where batches depend on each other, of few it is the other way round.
var spreads = [...]int{20, 10, 7, 5}

const (
	// What differences of pairs and intervals of whole conversations and of rates are wider by was
	// chosen on one half of simulated queues.
	cautionMemory, cautionTime, mostCaution = 50, 40, 5

	mostMemory = .995 // a correlation of fine batches above it is taken for it
)

// WidestInterval is the widest half-width of the t intervals of the mean from 20, 10, 7
// and 5 batches of [FineBatches]. ok is false for fewer than two values in each
// of the fine ones.
func (b *Batches) WidestInterval(level float64) (mean, half float64, ok bool) {
	if _, ok := b.batchMeans(); !ok || len(b.sums) != FineBatches {
		return 0, 0, false
	}
	for _, k := range spreads {
		m, _ := b.MergeTo(k).Mean(level)
		mean, half = m.Mean, max(half, m.Hi-m.Mean)
	}
	return mean, half, true
}

// WidestDispersion is likewise the largest [Batches.Overdispersion], at least 1,
// each with what t adds to it over the normal distribution for few batches.
func (b *Batches) WidestDispersion(level float64) (phi float64, ok bool) {
	if _, ok := b.batchMeans(); !ok || len(b.sums) != FineBatches {
		return 0, false
	}
	phi = 1
	for _, k := range spreads {
		own, ok := b.MergeTo(k).Overdispersion()
		if !ok {
			return 0, false
		}
		t := StudentQuantile(1-tailProbability(level), float64(k-1)) / NormalQuantile(1-tailProbability(level))
		phi = max(phi, own*t*t)
	}
	return phi, true
}

// DispersionOf is [Batches.WidestDispersion] of 0s and 1s that are in memory, from as many
// batches of it as have two values each. ok is false for fewer than two such numbers of
// batches, and for values that are all alike.
func DispersionOf(hits []float64, level float64) (phi float64, ok bool) {
	phi = 1
	n := 0
	for _, k := range spreads {
		own, ok := batchesOf(hits, k).Overdispersion()
		if !ok {
			continue
		}
		n++
		t := StudentQuantile(1-tailProbability(level), float64(k-1)) / NormalQuantile(1-tailProbability(level))
		phi = max(phi, own*t*t)
	}
	return phi, n > 1
}

// WidestOf is the half-width of [Batches.WidestInterval] for counts in equal blocks of
// time, a multiple of 20 of them, of their mean.
func WidestOf(counts []float64, level float64) (mean, half float64) {
	mean, _ = Moments(counts)
	for _, k := range spreads {
		if len(counts)%k != 0 {
			continue
		}
		means, each := make([]float64, k), len(counts)/k
		for i, x := range counts {
			means[i/each] += x / float64(each)
		}
		_, sd := Moments(means)
		half = max(half, StudentQuantile(1-tailProbability(level), float64(k-1))*sd/math.Sqrt(float64(k)))
	}
	return mean, half
}

// MemoryLength is [SeriesMemory] of the batches.
func (b *Batches) MemoryLength() float64 {
	means, _ := b.batchMeans()
	return SeriesMemory(means)
}

// SeriesMemory returns how long a series remembers, as a share of it: of an autoregressive
// series, the time in which its correlation falls to 1/e, twice. It is that of
// the correlation r between neighbouring means of blocks, 2r/(1−r) of the length of one;
// 0 where it has none.
func SeriesMemory(means []float64) float64 {
	r := min(AutoCorrelation(means), mostMemory)
	if !(r > 0) {
		return 0
	}
	return 2 * r / (1 - r) / float64(len(means))
}

// AutoCorrelation is the lag-1 autocorrelation, 0 for a constant.
func AutoCorrelation(xs []float64) float64 {
	var l Lag
	for _, x := range xs {
		l.Add(x)
	}
	return l.Correlation()
}

// Lag sums up what the lag-1 autocorrelation of a series is made of, so that the
// series need not be kept.
type Lag struct {
	n                     int64
	first, last           float64 // last: from the first on, as all that is summed
	sum, square, products float64
}

// Add takes in the next value.
func (l *Lag) Add(x float64) {
	if l.n == 0 {
		l.first = x
	}
	x -= l.first
	l.sum += x
	l.square += x * x
	l.products += x * l.last
	l.last = x
	l.n++
}

// Correlation returns the likeness of each value to the one before it: the lag-1 autocorrelation, 0
// where there is none.
func (l *Lag) Correlation() float64 {
	n := float64(l.n)
	if l.n < 3 {
		return 0
	}
	mean := l.sum / n
	// Σ(x−m)² and Σ(x−m)(y−m) over neighbours, of which the first value is 0.
	square := l.square - n*mean*mean
	product := l.products - mean*(2*l.sum-l.last) + (n-1)*mean*mean
	if !(square > 1e-12*l.square) {
		return 0
	}
	return product / square
}

// CautionOfTime is by how much the intervals of a window must be wider however
// its series look: it may have met no burst at all. Bursts are the rarer the more
// residences vary, and the fewer of them a window has: residences is the window
// over the mean residence time, variation the squared coefficient of variation of
// residence times.
func CautionOfTime(residences, variation float64) float64 {
	if !(residences > 0) {
		return mostCaution
	}
	return min(mostCaution, 1+cautionTime*(1+variation)/residences)
}

// WideningFactor is by how much the interval of a series must be wider, 5 times at most:
// by [CautionOfTime], and by how long the series remembers.
func WideningFactor(ofTime, memory float64) float64 {
	return min(mostCaution, ofTime+cautionMemory*memory)
}
