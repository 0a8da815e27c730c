package capacity

import (
	"context"
	"slices"
	"testing"

	"pitot/internal/stats"
)

// A cluster of violations is in a part of the window; what a load causes is in all of it.
func TestThroughout(t *testing.T) {
	for name, c := range map[string]struct {
		n         int
		blocks    []int
		stability stats.Stability
		residence float64 // times that of a request alone
		want      bool
	}{
		"few requests":         {n: 50, blocks: []int{5, 5, 5, 5, 5, 5, 5, 5, 5, 5}},
		"a cluster":            {n: 240, blocks: []int{0, 0, 0, 12, 22, 4, 0, 0, 0, 0}},
		"a cluster at an edge": {n: 240, blocks: []int{0, 0, 0, 0, 0, 0, 0, 1, 22, 24}},
		"all of it":            {n: 240, blocks: []int{2, 3, 1, 4, 2, 3, 2, 2, 3, 3}, want: true},
		"two clusters":         {n: 240, blocks: []int{20, 0, 0, 0, 0, 0, 0, 0, 20, 0}, want: true},
		"the queue grows":      {n: 50, blocks: make([]int, 10), stability: stats.Unstable, want: true},
		"all are slower":       {n: 50, blocks: []int{0, 0, 0, 0, 4, 4, 0, 0, 0, 0}, residence: 2, want: true},
		"no blocks":            {n: 240},
	} {
		f := newSearch(t.Context(), search80k(), nil)
		bad := 0
		for _, v := range c.blocks {
			bad += v
		}
		s := Seen{Load: 1, N: c.n, Violations: []int{bad}, Blocks: [][]int{c.blocks}, Stability: c.stability, Residence: c.residence * f.residence}
		if got := f.isBeyondThroughout(&s); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// A cluster of violations at a light load does not end the bracket there, and one that comes again
// does.
func TestBracketAsksAgain(t *testing.T) {
	const cluster, limit = 14, 20.
	cfg := search80k()
	light := cfg.lightLoad()
	for name, c := range map[string]struct {
		at           []int // probes that meet a cluster, from 0
		least, above float64
	}{
		"none":              {least: limit / 2, above: 2 * limit},
		"at the first":      {at: []int{0}, least: limit / 2, above: 2 * limit},
		"at a later one":    {at: []int{2}, least: limit / 2, above: 2 * limit},
		"at the first two":  {at: []int{0, 1}, above: light},
		"in one of further": {at: []int{2, 4}, least: light, above: 4 * light},
	} {
		probes := 0
		f := newSearch(t.Context(), cfg, func(_ context.Context, p Probe) (Seen, error) {
			s := Seen{Load: p.Load, N: p.Requests, Violations: []int{0}, Blocks: [][]int{make([]int, p.Blocks)}, Residence: cfg.Residence, Seconds: 1, Stability: stats.Undecided}
			each := 0
			if p.Load > limit {
				each = p.Requests / p.Blocks
			}
			for i := range s.Blocks[0] {
				s.Blocks[0][i] = each
				s.Violations[0] += each
			}
			if slices.Contains(c.at, probes) {
				s.Violations[0], s.Blocks[0][3] = s.Violations[0]+cluster, s.Blocks[0][3]+cluster
			}
			probes++
			return s, nil
		})
		f.bracketLimit()
		if f.hi > c.above || f.hi <= c.least || f.lo >= f.hi {
			t.Errorf("%s: between %v and %v", name, f.lo, f.hi)
		}
	}
}
