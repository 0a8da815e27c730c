package stat

import "math"

// Mean is an estimated mean with its standard error and a t interval.
type Mean struct {
	N        int
	Mean, SE float64
	DF       int
	Interval
}

// BatchMeans estimates the mean of a stationary, correlated series from the
// spread of the means of consecutive batches (Law, "Simulation Modeling and
// Analysis", 2015, section 9.5.3): se² = s²/batches, t on batches−1. It holds
// when a batch is much longer than the correlation; 10 batches are usual.
//
// ok is false for fewer than two batches or fewer than two samples in each.
func BatchMeans(xs []float64, batches int, level float64) (m Mean, ok bool) {
	means, ok := batchMeans(xs, batches)
	if !ok {
		return Mean{}, false
	}
	_, sd := Moments(means)
	m = Mean{N: len(xs), SE: sd / math.Sqrt(float64(batches)), DF: batches - 1}
	m.Mean, _ = Moments(xs)
	m.Interval = studentInterval(m.Mean, m.SE, float64(m.DF), level)
	return m, true
}

// studentInterval is estimate ± t·se.
func studentInterval(estimate, se, df, level float64) Interval {
	half := StudentQuantile(1-tail(level), df) * se
	return Interval{estimate - half, estimate + half}
}

// batchMeans cuts xs into consecutive batches whose sizes differ by one at most.
func batchMeans(xs []float64, batches int) (means []float64, ok bool) {
	if batches < 2 || len(xs) < 2*batches {
		return nil, false
	}
	means = make([]float64, batches)
	for i := range means {
		means[i], _ = Moments(xs[i*len(xs)/batches : (i+1)*len(xs)/batches])
	}
	return means, true
}

// Overdispersion is how many times larger the variance of a share is than if
// the 0s and 1s it counts were independent: φ = m·s²/(p(1−p)), with s² the
// variance of the means of batches of size m and p the share. n/φ is then the
// effective number of samples.
//
// Never decide by a run's own φ whether its interval is shown: a run that met
// no slow period has a small φ, and is the one that is wrong. Take
// PooledOverdispersion over neighbouring loads.
//
// ok is false where no φ can be had: too few samples, or all 0 or all 1.
func Overdispersion(hits []float64, batches int) (phi float64, ok bool) {
	means, ok := batchMeans(hits, batches)
	if !ok {
		return 0, false
	}
	p, _ := Moments(hits)
	_, sd := Moments(means)
	if p <= 0 || p >= 1 {
		return 0, false
	}
	return sd * sd * float64(len(hits)) / float64(batches) / (p * (1 - p)), true
}

// Exceeding marks the values above a limit with 1, the others with 0.
func Exceeding(xs []float64, limit float64) []float64 {
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
