package capacity

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"
)

// A budget of time may end anywhere in a search or a verification, also where a drain takes far
// longer than expected: what is known by then is concluded, and the budget is kept.
func TestBudgetEndsAnywhere(t *testing.T) {
	for seed := range uint64(600) {
		rng := rand.New(rand.NewPCG(seed, 1))
		capacity, eps := math.Exp(rng.Float64()*4-1), []float64{0.01, 0.05}[rng.IntN(2)]
		cfg := FindConfig{Eps: []float64{eps}, Residence: math.Exp(rng.Float64()*4 - 1), Seed: seed}
		cfg.Budget.Seconds = cfg.Residence * math.Exp(2+rng.Float64()*6)
		slows, drain := rng.Float64()*3, 1+rng.Float64()*20
		window := func(p Probe) Seen {
			warmup := p.Residences
			due := p.Requests
			if p.WindowBy > 0 {
				due = max(0, min(due, int((p.WindowBy-warmup*p.Residence)*p.Load)))
			}
			n := int(min(1, eps*math.Pow(p.Load/capacity, 15)) * float64(due))
			s := Seen{N: due, Violations: []int{n}, Residence: cfg.Residence * (1 + slows*min(3, p.Load/capacity)), Blocks: [][]int{make([]int, p.Blocks)}, JointBlock: make([]int, p.Blocks)}
			for range n {
				s.Blocks[0][rng.IntN(p.Blocks)]++
			}
			s.Seconds = warmup*p.Residence + float64(due)/p.Load
			return s
		}
		drained := func(p Probe, s Seen) Seen {
			if s.Seconds += Drain * p.Residence; p.Load > capacity {
				s.Seconds += drain * p.Residence
			}
			if p.EndBy > 0 {
				s.Seconds = min(s.Seconds, p.EndBy)
			}
			return s
		}
		probe := func(_ context.Context, p Probe) (Seen, error) { return drained(p, window(p)), nil }
		var c Found
		var err error
		if seed%3 == 0 {
			c, err = Verify(t.Context(), cfg, capacity*math.Exp(rng.Float64()*2-1.5), probe)
		} else {
			c, err = Find(t.Context(), cfg, probe)
		}
		if err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
		if most := 1.06*cfg.Budget.Seconds + 20*cfg.Residence*(1+3*slows); c.Seconds > most {
			t.Errorf("seed %d: %.0f s of %.0f, a request takes %.2f", seed, c.Seconds, cfg.Budget.Seconds, cfg.Residence)
		}
	}
}
