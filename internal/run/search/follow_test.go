package search

import (
	"context"
	"math"
	"slices"
	"testing"
)

// Loads that follow one another go from the lightest on, with a whole warm-up for those alone that
// did not follow; one whose window was INVALID is measured again by itself, and one that makes those
// behind it pointless is the last of its row.
func TestFollow(t *testing.T) {
	const capacity, eps = 10., 0.01
	see := func(p Probe) Seen {
		share := eps * math.Pow(p.Load/capacity, 25)
		n := int(min(1, share) * float64(p.Requests))
		s := Seen{N: p.Requests, Violations: []int{n}, Residence: 1, Blocks: [][]int{make([]int, p.Blocks)}, JointBlock: make([]int, p.Blocks)}
		for i := range n {
			s.Blocks[0][i%p.Blocks]++
		}
		warmup := p.Residences
		if p.Follows > 0 {
			warmup = p.Follows
		}
		s.Seconds = warmup*p.Residence + float64(p.Requests)/p.Load
		return s
	}
	search := func(follow bool) (c Capacity, rows [][]Probe, again int) {
		cfg := FindConfig{Eps: []float64{eps}, Residence: 1, Budget: Budget{Seconds: 1800}, Seed: 3}
		spoilt := false
		if follow {
			cfg.Follow = func(_ context.Context, probes []Probe, took func(int, Seen) bool) error {
				row := []Probe{}
				for i, p := range probes {
					row = append(row, p)
					s := see(p)
					s.Followed = i > 0
					if p.Stage == Main && !spoilt { // the instrument stood still for a fifth of its window
						s.Invalid, s.Violations, spoilt = true, []int{p.Requests / 5}, true
					}
					if !took(i, s) {
						break
					}
				}
				rows = append(rows, row)
				return nil
			}
		}
		c, err := Find(t.Context(), cfg, func(_ context.Context, p Probe) (Seen, error) {
			s := see(p)
			if s.Seconds += Drain * p.Residence; p.Stage == Main && follow {
				again++
			}
			return s, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return c, rows, again
	}
	alone, _, _ := search(false)
	c, rows, again := search(true)
	if len(rows) < 3 || again != 1 {
		t.Fatalf("%d rows, %d loads measured again", len(rows), again)
	}
	for _, row := range rows {
		if !slices.IsSortedFunc(row, func(a, b Probe) int { return int(math.Copysign(1, a.Load-b.Load)) }) {
			t.Errorf("not from the lightest on: %+v", row)
		}
		if n := len(row); row[0].Stage == Main && n != mainLoads/legs && n != legLoads {
			t.Errorf("%d loads follow one another", n)
		}
		for i, p := range row {
			if i == 0 && (p.Residences != firstWarmup || p.Follows != 0) || i > 0 && (p.Residences != Warmup || p.Follows != alongWarmup) {
				t.Errorf("load %d warms up %v, and %v where it follows", i, p.Residences, p.Follows)
			}
		}
	}
	main := func(c *Capacity) (n int) {
		for _, s := range c.Trail {
			if s.Stage == Main && s.Seen.Counts() {
				n += s.Seen.N
			}
		}
		return n
	}
	if c.Seconds > 1800*1.03 || alone.Seconds > 1800*1.03 {
		t.Errorf("%.0f s, alone %.0f", c.Seconds, alone.Seconds)
	}
	if a, b := main(&c), main(&alone); float64(a) < 1.1*float64(b) {
		t.Errorf("%d requests in the windows that are fitted, alone %d", a, b)
	}
}
