package arrival

import (
	"math"

	"pitot/internal/workload/seed"
)

// poisson keeps the time as whole nanoseconds and a fraction below one, so
// that a long run loses no precision.
type poisson struct {
	draws    seed.Rand
	mean     float64 // gap in nanoseconds
	whole    int64
	fraction float64
}

// NewPoisson is a Poisson process: gaps are exponential with mean 1/rate, and
// the first request is due one such gap after the start. The same rate and
// seed give the same times for ever; another rate stretches the same gaps.
func NewPoisson(rate float64, start uint64) (Process, error) {
	if err := checkRate(rate); err != nil {
		return nil, err
	}
	return &poisson{draws: seed.Rand(seed.Mix(start)), mean: 1e9 / rate}, nil
}

func (p *poisson) Next() int64 {
	// The conversion keeps the compiler from fusing the product with the sum,
	// which would round differently on other processors.
	gap := float64(-math.Log(seed.Float(p.draws.Uint64())) * p.mean)
	whole, fraction := math.Modf(p.fraction + gap)
	if whole >= float64(math.MaxInt64-p.whole) {
		p.whole = math.MaxInt64
		return p.whole
	}
	p.whole += int64(whole)
	p.fraction = fraction
	return p.whole
}
