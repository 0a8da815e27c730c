package main

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"

	"pitot/internal/capacity"
)

// continued shows what a search is worth that goes on with earlier ones, on the same launch
// of a server and over restarts.
func continued() table {
	return table{
		name: "continued", slow: true, reps: 40,
		about: "`pitot find --continue`: searches of 10,000 requests each, of which each goes on with those before it, over the systems of `bounds` that have a capacity. " +
			"Spread: standard deviation of the logarithm of a launch's speed; same: all are of one launch. Searches: so many, one after the other. " +
			"The truth is the capacity of a launch of the mean logarithm. Interval: the share that has an estimate, and of these the share whose interval holds the truth; worst: the least of a system. " +
			"Width: median of the interval's half-width. At least: the share that has the bound, and of all those whose bound holds or that have none, of the truth. Half: whether constants were chosen on it.",
		header: []string{"spread", "half", "searches", "interval", "holds", "worst", "width", "at least", "holds"},
		rows: func(reps int, seed uint64) (rows [][]string) {
			for _, spread := range []float64{0, 0.035} {
				var halves [2][]continuedCount // of each half's systems, by number of searches
				for i, s := range bounded() {
					if s.capacity == 0 {
						continue
					}
					c := piece(fmt.Sprintf("continued %s %v %v %d %d", s.about, s.capacity, spread, reps, seed), func() []continuedCount {
						return continuedSearches(s, spread, reps, seed)
					})
					if c == nil {
						continue
					}
					if halves[i%2] == nil {
						halves[i%2] = make([]continuedCount, len(c))
					}
					for k := range c {
						halves[i%2][k].merge(&c[k])
					}
				}
				name := fmt.Sprintf("%.3g %%", 100*spread)
				if spread == 0 {
					name = "same"
				}
				for half, counts := range halves {
					for k := range counts {
						rows = append(rows, append([]string{name, []string{"chosen on", "reported"}[half], fmt.Sprint(k + 1)}, counts[k].row()...))
					}
				}
			}
			return rows
		},
	}
}

const mostContinued = 3

type continuedCount struct {
	Answered, Holds, Least, LeastHolds tally
	Worst                              float64
	Widths                             []float64
}

func (c *continuedCount) merge(o *continuedCount) {
	for _, t := range [][2]*tally{{&c.Answered, &o.Answered}, {&c.Holds, &o.Holds}, {&c.Least, &o.Least}, {&c.LeastHolds, &o.LeastHolds}} {
		t[0].Held, t[0].Of = t[0].Held+t[1].Held, t[0].Of+t[1].Of
	}
	if o.Holds.Of > 0 {
		if x := float64(o.Holds.Held) / float64(o.Holds.Of); c.Worst == 0 || x < c.Worst {
			c.Worst = x
		}
	}
	c.Widths = append(c.Widths, o.Widths...)
}

func (c *continuedCount) row() []string {
	width, worst := "none", "none"
	if len(c.Widths) > 0 {
		width, worst = fmt.Sprintf("%.1f %%", 100*median(c.Widths)), fmt.Sprintf("%.1f %%", 100*c.Worst)
	}
	return []string{c.Answered.String(), c.Holds.String(), worst, width, c.Least.String(), c.LeastHolds.String()}
}

// continuedSearches counts how searches that go on come out, by how many there were.
func continuedSearches(s system, spread float64, reps int, seed uint64) []continuedCount {
	found := make([][mostContinued]capacity.Found, reps)
	together(reps, func(r int) {
		rng := rand.New(rand.NewPCG(seed, uint64(r)))
		var earlier []capacity.Step
		for k := range mostContinued {
			speed := math.Exp(spread * rng.NormFloat64())
			cfg := capacity.FindConfig{Eps: s.eps(), Residence: s.residence, Budget: capacity.Budget{Requests: 10_000}, Seed: rng.Uint64(), Earlier: earlier}
			if spread > 0 {
				cfg.Launch = k
			}
			c, err := capacity.Find(context.Background(), cfg, func(_ context.Context, p capacity.Probe) (capacity.Seen, error) {
				q := p // a launch of another speed is the same with another unit of time
				q.Load, q.Residence = p.Load/speed, p.Residence*speed
				seen := s.probe(q, rng.Uint64())
				seen.Load, seen.Residence, seen.Seconds = p.Load, seen.Residence/speed, seen.Seconds/speed
				return seen, nil
			})
			if err != nil {
				panic(err)
			}
			found[r][k] = c
			earlier = c.Trail
		}
	})
	counts := make([]continuedCount, mostContinued)
	for r := range found {
		for k := range counts {
			c, n := &found[r][k], &counts[k]
			n.Answered.count(c.Estimate > 0)
			n.Least.count(c.AtLeast > 0)
			n.LeastHolds.count(c.AtLeast <= s.capacity)
			if c.Estimate > 0 {
				n.Holds.count(c.Interval.Contains(s.capacity))
				n.Widths = append(n.Widths, (c.Interval.Hi-c.Interval.Lo)/2/c.Estimate)
			}
		}
	}
	return counts
}
