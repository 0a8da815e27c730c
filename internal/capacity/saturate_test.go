package capacity

import (
	"context"
	"math/rand/v2"
	"testing"

	"pitot/internal/stats"
)

// A server whose seats end before a limit is reached: no window has a violation, the queue grows
// beyond what it carries, and a window just beyond that may look stable.
func TestSaturatesBeforeALimit(t *testing.T) {
	const carries = 30.3
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 5))
		cfg := FindConfig{Eps: []float64{0.01}, Residence: 0.35, Budget: Budget{Requests: 20_000}, Seed: seed}
		if seed%2 == 1 { // as of a simulated server
			cfg.Budget, cfg.Count = Budget{Requests: EnoughRequests, Work: 40_000}, true
		}
		probe := func(_ context.Context, p Probe) (Seen, error) {
			s := Seen{N: p.Requests, Violations: []int{0}, Residence: cfg.Residence, Blocks: [][]int{make([]int, p.Blocks)}, JointBlock: make([]int, p.Blocks)}
			s.Stability, s.Seconds = stats.Stable, float64(p.Requests)/p.Load
			if p.Load > carries {
				over := p.Load/carries - 1
				s.Residence += over * s.Seconds / 2
				if s.Stability = stats.Unstable; over < 0.1 && rng.Float64() < 0.5 {
					s.Stability = stats.Undecided
				} else if !p.Counted {
					if e := 0.01 * rng.NormFloat64(); e != 0 {
						s.Carried = Carried{carries * (1 + e), stats.Interval{Lo: carries * (1 + e - 0.02), Hi: carries * (1 + e + 0.02)}}
					}
				}
			}
			s.Sent, s.Work = p.Requests, float64(p.Requests)
			if p.Counted {
				s.Work *= CountedWork
			}
			return s, nil
		}
		c, err := Find(t.Context(), cfg, probe)
		if err != nil {
			t.Fatal(err)
		}
		if c.AtLeast > carries || c.AtLeast < carries/2 || !(c.AtMost < 1.1*carries) || c.Carried.Rate == 0 || !c.Reason.IsNone() || c.More {
			t.Errorf("seed %d: %.3g to %.3g, carries %+v, %v", seed, c.AtLeast, c.AtMost, c.Carried, c.Reason)
		}
	}
}

// Failures that come in a burst, in the long look alone: nothing is said of saturation then.
func TestBurstInTheLongLook(t *testing.T) {
	cfg := FindConfig{Eps: []float64{0.01}, Residence: 0.35, Budget: Budget{Requests: 20_000}, Seed: 1}
	probe := func(_ context.Context, p Probe) (Seen, error) {
		s := Seen{N: p.Requests, Violations: []int{0}, Residence: cfg.Residence, Blocks: [][]int{make([]int, p.Blocks)}, JointBlock: make([]int, p.Blocks), Stability: stats.Stable}
		s.Seconds = float64(p.Requests) / p.Load
		if p.Load > 30 {
			s.Stability, s.Carried = stats.Unstable, Carried{30, stats.Interval{Lo: 29, Hi: 31}}
		}
		if p.Stage == Verifying {
			s.Violations[0] = p.Requests / 20
			s.Blocks[0][0] = s.Violations[0]
		}
		return s, nil
	}
	c, err := Find(t.Context(), cfg, probe)
	if err != nil {
		t.Fatal(err)
	}
	if c.Carried.Rate != 0 || c.Quote != 0 || c.AtLeast != 0 || c.Reason.IsNone() {
		t.Errorf("%+v, quote %v, at least %v, %v", c.Carried, c.Quote, c.AtLeast, c.Reason)
	}
}

// A window whose queue grows gives no lower bound, and nor does any heavier load.
func TestGrowingQueueGivesNoLowerBound(t *testing.T) {
	step := func(load float64, s stats.Stability) Step {
		blocks := [][]int{make([]int, Blocks)}
		return Step{Probe: Probe{Load: load, Stage: Verifying, Counted: true}, Seen: Seen{Load: load, N: 5000, Violations: []int{0}, Blocks: blocks, JointBlock: blocks[0], Stability: s}}
	}
	f := newSearch(t.Context(), FindConfig{Eps: []float64{0.01}, Residence: 1, Count: true, Earlier: nil}, nil)
	f.cap.Trail = []Step{step(10, stats.Stable), step(20, stats.Stable), step(30, stats.Unstable), step(40, stats.Stable)}
	if got := f.metByAll(); got != 20 {
		t.Errorf("the limit is met up to %v", got)
	}
	f.cap.Trail[1].Seen.Stability = stats.Unstable
	if got := f.metByAll(); got != 10 {
		t.Errorf("the limit is met up to %v", got)
	}
}
