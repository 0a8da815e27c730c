package main

import (
	"fmt"
	"math"
	"math/rand/v2"

	"pitot/internal/capacity"
)

// drawnCurve is a server of which only the violations are simulated, by a curve that is known
// exactly: a share violates the limit whatever the load, and the odds of the others rise with a
// power of the load. Both come in clusters of requests that follow one another.
type drawnCurve struct {
	Slope, Allowed, Capacity  float64
	Floor                     float64 // share of all requests that violate without a load
	FloorCluster, LoadCluster float64 // mean numbers of requests in a cluster
}

// drawCurve draws one. The same seed is the same curve.
func drawCurve(seed uint64) drawnCurve {
	rng := rand.New(rand.NewPCG(seed, 0x636c7573746572))
	one := func(list ...float64) float64 { return list[rng.IntN(len(list))] }
	c := drawnCurve{Slope: 2 * math.Pow(30, rng.Float64()), Allowed: one(.01, .01, .05), Capacity: 20 * math.Exp(rng.Float64())}
	c.LoadCluster = one(1, 1, 8, 40, 500)
	if seed%3 > 0 { // two of three
		c.Floor, c.FloorCluster = c.Allowed*(0.25+0.5*rng.Float64()), one(1, 10, 10, 30)
	}
	return c
}

// kind is what searches of several curves are counted together by.
func (c *drawnCurve) kind() (floor, load string) {
	floor, load = "none", "alone"
	switch {
	case c.Floor > 0 && c.FloorCluster > 1:
		floor = "in clusters"
	case c.Floor > 0:
		floor = "alone"
	}
	switch {
	case c.LoadCluster > 100:
		load = "of 500"
	case c.LoadCluster > 1:
		load = "of 8 or 40"
	}
	return floor, load
}

// share is what the load makes violate.
func (c *drawnCurve) share(load float64) float64 {
	p := (c.Allowed - c.Floor) / (1 - c.Floor)
	return 1 / (1 + (1-p)/p*math.Pow(c.Capacity/load, c.Slope))
}

func (c *drawnCurve) system() system {
	return system{fmt.Sprintf("%+v", *c), fmt.Sprintf("%+v", *c), c.Capacity, 1, 1, c.Allowed, c.measure, capacity.Sessions{}, capacity.Traffic{Allowed: c.Allowed}}
}

func (c *drawnCurve) measure(p capacity.Probe, seed uint64) counted {
	rng := rand.New(rand.NewPCG(seed, 5))
	out := counted{violations: make([]uint8, p.Requests), residence: 1, seconds: float64(p.Requests)/p.Load + p.Residences*p.Residence}
	inClusters(rng, out.violations, c.share(p.Load), c.LoadCluster)
	inClusters(rng, out.violations, c.Floor, c.FloorCluster)
	for _, v := range out.violations {
		if v > 0 && c.Floor > 0 && rng.Float64() < 0.5 { // some of them are errors
			out.errors++
		}
	}
	return out
}

// inClusters marks a share of requests in runs of so many on average: a chain of two states, in
// which the runs of both are geometric.
func inClusters(rng *rand.Rand, marks []uint8, share, cluster float64) {
	if share <= 0 {
		return
	}
	run := func(mean float64) int {
		if mean <= 1 {
			return 1
		}
		return 1 + int(min(1e9, math.Log(1-rng.Float64())/math.Log1p(-1/mean)))
	}
	cluster = max(cluster, 1/(1-share)) // none is so short that all that is between is less than one
	for i, in := 0, rng.Float64() < share; i < len(marks); in = !in {
		if !in {
			i += run(cluster * (1 - share) / share)
			continue
		}
		for n := run(cluster); n > 0 && i < len(marks); n, i = n-1, i+1 {
			marks[i] = 1
		}
	}
}

// clustered is how often bounds hold where what violates the limit does so in clusters, and some
// without any load, of curves that nothing was chosen on: another seed draws others.
func clustered() table { return clustersOf("clusters", "Nothing was chosen on them.", reported) }

// chosenClusters is the same of the curves that constants were chosen on.
func chosenClusters() table {
	return clustersOf("clusters-chosen", "Constants were chosen on them.", chosen)
}

func clustersOf(name, about string, half group) table {
	return table{
		name: name, slow: true, reps: 20,
		about: fmt.Sprintf("What `pitot find` says of servers whose violations come in clusters: %d curves that are drawn, of slope 2 to 60, of which 1 or 5 %% of the requests may violate; of two in three a quarter to three quarters of these do without any load. ", drawnCurves) + about + " " +
			"Floor: whether these come alone or in clusters of 10 or 30 requests on average; load: those that it causes. All searches that were started count. " +
			"Interval: the share with an estimate. Of these holds: the share whose interval holds the truth; above, below: the share whose interval lies there; half-width: its median. " +
			"At least, at most: the share that has the bound, and of all the share whose bound holds or that have none.",
		header: []string{"floor", "load", "budget", "searches", "interval", "holds", "above", "below", "half-width", "at least", "holds", "at most", "holds"},
		rows: func(reps int, seed uint64) [][]string {
			if half == chosen {
				return clusterRows(0, reps, seed)
			}
			return clusterRows(1000*seed, reps, seed)
		},
	}
}

// drawnCurves is how many curves each half has.
const drawnCurves = 60

func clusterRows(from uint64, reps int, seed uint64) (rows [][]string) {
	type key struct {
		floor, load string
		budget      int
	}
	counts, budgets := map[key]*clusterCount{}, []int{3_000, 10_000, 40_000}
	for i := range uint64(drawnCurves) {
		c := drawCurve(from + i)
		floor, load := c.kind()
		for _, budget := range budgets {
			of := piece(fmt.Sprintf("clusters %+v %d %d %d", c, budget, reps, seed), func() *clusterCount {
				n := &clusterCount{}
				n.search(&c, budget, reps, seed<<32+i)
				return n
			})
			if of == nil { // there was no time for it
				continue
			}
			for _, k := range []key{{floor, load, budget}, {"all", "all", budget}} {
				if counts[k] == nil {
					counts[k] = &clusterCount{}
				}
				counts[k].merge(of)
			}
		}
	}
	for _, floor := range []string{"none", "alone", "in clusters", "all"} {
		for _, load := range []string{"alone", "of 8 or 40", "of 500", "all"} {
			for _, budget := range budgets {
				if c := counts[key{floor, load, budget}]; c != nil {
					rows = append(rows, append([]string{floor, load, fmt.Sprint(budget)}, c.row()...))
				}
			}
		}
	}
	return rows
}

// clusterCount is how searches of some curves came out.
type clusterCount struct {
	Given, Holds, Above, Below, Least, LeastHolds, Most, MostHolds tally
	Widths                                                         []float64
}

func (n *clusterCount) search(c *drawnCurve, budget, reps int, seed uint64) {
	for _, f := range searches(c.system(), budget, reps, seed) {
		n.Given.count(f.Estimate > 0)
		n.Least.count(f.AtLeast > 0)
		n.LeastHolds.count(f.AtLeast <= c.Capacity)
		n.Most.count(f.AtMost > 0)
		n.MostHolds.count(f.AtMost == 0 || f.AtMost >= c.Capacity)
		if f.Estimate > 0 {
			n.Holds.count(f.Interval.Contains(c.Capacity))
			n.Above.count(f.Interval.Lo > c.Capacity)
			n.Below.count(f.Interval.Hi < c.Capacity)
			n.Widths = append(n.Widths, (f.Interval.Hi-f.Interval.Lo)/2/f.Estimate)
		}
	}
}

func (n *clusterCount) merge(o *clusterCount) {
	for _, t := range [][2]*tally{{&n.Given, &o.Given}, {&n.Holds, &o.Holds}, {&n.Above, &o.Above}, {&n.Below, &o.Below},
		{&n.Least, &o.Least}, {&n.LeastHolds, &o.LeastHolds}, {&n.Most, &o.Most}, {&n.MostHolds, &o.MostHolds}} {
		t[0].Held, t[0].Of = t[0].Held+t[1].Held, t[0].Of+t[1].Of
	}
	n.Widths = append(n.Widths, o.Widths...)
}

func (n *clusterCount) row() []string {
	return []string{fmt.Sprint(n.Given.Of), n.Given.String(), n.Holds.String(), n.Above.String(), n.Below.String(), percent(n.Widths),
		n.Least.String(), n.LeastHolds.String(), n.Most.String(), n.MostHolds.String()}
}

// group is what a system is for.
type group int

const (
	chosen   group = iota // constants are chosen on it
	reported              // and what they do is reported of these
)
