package stats

import (
	"math"
	"math/rand/v2"
	"testing"
)

// Over many random walks the deficit has the standard deviation that it is taken to have; a steady
// queue's limit is far below, and a saturated one's no smaller than what it has.
func TestDeficitSD(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	const n, blocks, each = 1200, 12, 100
	var deficits []float64
	narrow := 0
	for range 400 {
		level, inFlight := 1000., make([]float64, blocks)
		for i := range inFlight {
			for range each {
				level += math.Sqrt2 * rng.NormFloat64() // Poisson arrivals, exponential services
				inFlight[i] += level / each
			}
		}
		deficits = append(deficits, JudgeBacklog(inFlight, n, 1, 1).Deficit)
		if SteadyDeficitSD(inFlight, n) < math.Sqrt(1.2*2./n) {
			narrow++
		}
	}
	if _, sd := Moments(deficits); math.Abs(1.6*sd/DeficitSD(n)-1) > .1 {
		t.Errorf("%.4f, a 1.6th of %.4f is expected", sd, DeficitSD(n))
	}
	if narrow > 2 {
		t.Errorf("%d of 400 saturated queues are taken for steady ones", narrow)
	}
	if sd := SteadyDeficitSD([]float64{4, 4.5, 4.2, 3.9, 4.1, 4.3, 4, 4.4, 3.8, 4, 4.1, 4.2}, n); sd > .01 {
		t.Errorf("a steady queue: %.4f", sd)
	}
}
