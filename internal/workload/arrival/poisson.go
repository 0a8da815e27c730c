package arrival

import (
	"math"

	"pitot/internal/workload/seed"
)

// poisson keeps the time as whole nanoseconds and a fraction below one, so
// that a long run loses no precision.
type poisson struct {
	draws seed.Rand
	mean  float64 // gap in nanoseconds
	at    instant
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
	return p.at.addGap(gap)
}

// instant is a time that gaps are added to without loss.
type instant struct {
	whole    int64   // nanoseconds
	fraction float64 // of one
}

// addGap adds a gap, in nanoseconds; at the end of time it stays there.
func (t *instant) addGap(gap float64) int64 {
	whole, fraction := math.Modf(t.fraction + gap)
	if whole >= float64(math.MaxInt64-t.whole) {
		t.whole = math.MaxInt64
		return t.whole
	}
	t.whole += int64(whole)
	t.fraction = fraction
	return t.whole
}
