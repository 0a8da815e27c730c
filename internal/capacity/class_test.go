package capacity

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"pitot/internal/stats"
)

// A limit about a quarter of the requests is searched for among these: of the others
// nothing is known. The truth lies where 5 % of the quarter violate it.
func TestFindOfAClass(t *testing.T) {
	const capacity, of, eps = 40., .25, .05
	held, off := 0, 0.
	const searches = 12
	for seed := range uint64(searches) {
		rng := rand.New(rand.NewPCG(seed, 1))
		probe := func(_ context.Context, p Probe) (Seen, error) {
			x := math.Log(eps/(1-eps)) + 20*math.Log(p.Load/capacity)
			share := 1 / (1 + math.Exp(-x))
			s := Seen{Load: p.Load, N: p.Requests, Due: []int{0, p.Requests}, Violations: []int{0, 0}, Stability: stats.Stable,
				Residence: .5, Seconds: float64(p.Requests) / p.Load, JointBlock: make([]int, p.Blocks)}
			var bad []bool
			for range p.Requests {
				if rng.Float64() < of {
					bad = append(bad, rng.Float64() < share)
				}
			}
			s.Due[0] = len(bad)
			s.Blocks = [][]int{make([]int, min(p.Blocks, len(bad))), make([]int, p.Blocks)}
			for i, b := range bad {
				if b {
					s.Violations[0]++
					s.Blocks[0][i*len(s.Blocks[0])/len(bad)]++
				}
			}
			return s, nil
		}
		c, err := Find(context.Background(), FindConfig{Eps: []float64{eps, eps}, Of: []float64{of, 1}, Residence: .5, Seed: seed, Budget: Budget{Requests: 100_000}}, probe)
		if err != nil {
			t.Fatal(err)
		}
		if c.Estimate == 0 || c.Binding != 0 {
			t.Errorf("seed %d: no estimate, or of limit %d: %v", seed, c.Binding, c.Reason)
			continue
		}
		if c.Interval.Lo <= capacity && capacity <= c.Interval.Hi {
			held++
		}
		if c.Quote > capacity {
			t.Errorf("seed %d: %g is quoted", seed, c.Quote)
		}
		if v := c.Verified; v.N > 0 && math.Abs(float64(v.N)/(of*float64(c.Trail[len(c.Trail)-1].Seen.N))-1) > .1 {
			t.Errorf("seed %d: verified by %d requests", seed, v.N)
		}
		off += math.Abs(c.Estimate/capacity-1) / searches
	}
	if held < searches-2 || off > .03 {
		t.Errorf("%d of %d intervals hold the truth, estimates are %.3g off", held, searches, off)
	}
}
