package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"pitot/internal/capacity"
	"pitot/internal/results/result"
	"pitot/internal/stats"
)

// crossings are the bounds of a capacity that a sweep prints.
func crossings() table {
	return table{
		name: "curve", slow: true, reps: 100,
		about: "What `pitot sweep` says of the capacity (search.CrossingOf), in the systems of `bounds`: twelve loads, six from a fifth to one and a half of the capacity and six around it, all at random places; " +
			"where no load meets the limit, around 12 a second. Requests: of each window. At least, at most: the share of sweeps that have the bound, and of all the share whose bound holds or that have none. " +
			"Both: neither is wrong. Estimate: the share that has one. Error: median of |estimate ÷ truth − 1|. Wide: median of at most ÷ at least.",
		header: []string{"system", "requests", "at least", "holds", "at most", "holds", "both", "estimate", "error", "wide"},
		rows: func(reps int, seed uint64) (rows [][]string) {
			all := map[int]*crossed{}
			sizes := []int{1_150, 5_000}
			for _, s := range bounded() {
				for _, n := range sizes {
					c := piece(fmt.Sprintf("curve %s %v %v %d %d %d", s.about, s.capacity, s.allowed, n, reps, seed), func() *crossed { return sweeps(s, n, reps, seed) })
					if c == nil {
						continue
					}
					rows = append(rows, append([]string{s.name, fmt.Sprint(n)}, c.row()...))
					if all[n] == nil {
						all[n] = &crossed{}
					}
					all[n].merge(c)
				}
			}
			for _, n := range sizes {
				if all[n] != nil {
					rows = append(rows, append([]string{"all", fmt.Sprint(n)}, all[n].row()...))
				}
			}
			return rows
		},
	}
}

// crossed is how sweeps of a system came out.
type crossed struct {
	Least, LeastHolds, Most, MostHolds, Both, Estimated tally
	Errors, Wide                                        []float64
}

func sweeps(s system, n, reps int, seed uint64) *crossed {
	found := make([]*result.Crossing, reps)
	together(reps, func(r int) {
		rng := rand.New(rand.NewPCG(seed, uint64(r)))
		at := s.capacity
		if at == 0 { // of 16 and of 32 servers, whose services take a second
			at = 12
		}
		var points []result.Point
		for i := range 12 {
			load := at * 0.2 * math.Pow(1.5/0.2, (float64(i)+rng.Float64())/6)
			if i >= 6 {
				load = at * math.Exp(0.5*rng.Float64()-0.3)
			}
			p := capacity.Probe{Load: load, Requests: n, Residences: 5, Residence: s.residence, Blocks: 10}
			points = append(points, pointOf(s, s.probe(p, rng.Uint64())))
		}
		found[r] = capacity.CrossingOf(points)
	})
	c := &crossed{}
	for _, x := range found {
		c.count(s, x)
	}
	return c
}

// pointOf is a window as a sweep's point has it.
func pointOf(s system, seen capacity.Seen) result.Point {
	p := result.Point{Load: result.Load{Rate: &seen.Load}, Verdict: result.Valid, Stability: stats.Undecided}
	p.Requests.Due, p.Requests.OK = seen.N, seen.N-seen.Errors
	p.SLO = &result.SLO{}
	for i := range s.limits {
		p.SLO.Violations = append(p.SLO.Violations, result.Violations{Spec: fmt.Sprint(i), Allowed: s.allowed, Blocks: slices.Clone(seen.Blocks[i])})
	}
	return p
}

func (c *crossed) count(s system, x *result.Crossing) {
	none := s.capacity == 0
	least := x.AtLeast == nil || !none && *x.AtLeast <= s.capacity
	most := x.AtMost == nil || *x.AtMost >= s.capacity
	c.Least.count(x.AtLeast != nil)
	c.LeastHolds.count(least)
	c.Most.count(x.AtMost != nil)
	c.MostHolds.count(most)
	c.Both.count(least && most)
	c.Estimated.count(x.Estimate != nil)
	if x.Estimate != nil && !none {
		c.Errors = append(c.Errors, math.Abs(*x.Estimate/s.capacity-1))
	}
	if x.AtLeast != nil && x.AtMost != nil {
		c.Wide = append(c.Wide, *x.AtMost / *x.AtLeast)
	}
}

func (c *crossed) merge(o *crossed) {
	for _, t := range [][2]*tally{{&c.Least, &o.Least}, {&c.LeastHolds, &o.LeastHolds}, {&c.Most, &o.Most}, {&c.MostHolds, &o.MostHolds}, {&c.Both, &o.Both}, {&c.Estimated, &o.Estimated}} {
		t[0].Held, t[0].Of = t[0].Held+t[1].Held, t[0].Of+t[1].Of
	}
	c.Errors, c.Wide = append(c.Errors, o.Errors...), append(c.Wide, o.Wide...)
}

func (c *crossed) row() []string {
	wide := "none"
	if len(c.Wide) > 0 {
		wide = fmt.Sprintf("%.2f", median(c.Wide))
	}
	return []string{c.Least.String(), c.LeastHolds.String(), c.Most.String(), c.MostHolds.String(), c.Both.String(), c.Estimated.String(), percent(c.Errors), wide}
}
