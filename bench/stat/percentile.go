package main

import (
	"fmt"
	"slices"

	"pitot/bench/stat/queue"
	"pitot/internal/stats"
)

// warmup, in mean service times, is several times what the queues below take
// to settle.
const warmup = 100

func percentile() table {
	return table{
		name: "percentile",
		about: "How often the 95 % interval of a percentile of TTFT holds it, one run of n requests at M/G/32. " +
			"An open end counts as holding. Independent: exact binomial ranks, as if no request depended on another. " +
			"Own: with the run's own over-dispersion φ of ten batches. " +
			"Pooled: with the largest φ of this load and two neighbours 8 % away. " +
			"Closed is the share of intervals with two ends, and how many of these hold it. " +
			"Gated is the trap: shown only where the run's own n/φ is large enough.",
		header: []string{"utilisation", "percentile", "n", "independent", "own", "pooled", "pooled closed", "of these hold", "gated shown", "of these hold"},
		reps:   400,
		rows: func(reps int, seed uint64) (rows [][]string) {
			for _, utilisation := range []float64{0.5, 0.7, 0.8, 0.9} {
				rows = append(rows, percentileRows(utilisation, reps, seed)...)
			}
			return rows
		},
	}
}

// enough returns how many requests of a queue tell the truth: fewer where a table has few
// repetitions.
func enough(most, reps int) int { return min(most, 100_000*reps) }

// percentileCase is a row while it is counted.
type percentileCase struct {
	p, truth                                               float64
	n                                                      int
	iid, own, pooled, closed, closedHold, gated, gatedHold tally
}

func percentileRows(utilisation float64, reps int, seed uint64) (rows [][]string) {
	long := queue.New(32, utilisation, seed)
	long.Warm(warmup)
	truth := long.TTFTs(enough(2_000_000, reps))
	stats.SortFloat64(truth)
	const longest = 20_000
	var cases []*percentileCase
	for _, p := range []float64{0.5, 0.99} {
		for _, n := range []int{longest / 4, longest} {
			cases = append(cases, &percentileCase{p: p, n: n, truth: stats.Percentile(truth, p)})
		}
	}
	for r := range reps {
		var runs [3][]float64 // here, and 8 % away on either side
		for i, load := range []float64{1, 0.92, 1.08} {
			q := queue.New(32, utilisation*load, seed+uint64(1+3*r+i))
			q.Warm(warmup)
			runs[i] = q.TTFTs(longest)
		}
		for _, c := range cases {
			c.judgeRuns(runs)
		}
	}
	for _, c := range cases {
		rows = append(rows, []string{number(utilisation), number(c.p), fmt.Sprint(c.n), c.iid.String(), c.own.String(),
			c.pooled.String(), c.closed.String(), c.closedHold.String(), c.gated.String(), c.gatedHold.String()})
	}
	return rows
}

// judgeRuns judges the first n requests of the runs.
func (c *percentileCase) judgeRuns(runs [3][]float64) {
	var phis []float64
	var here []float64
	for i, run := range runs {
		sorted := slices.Clone(run[:c.n])
		stats.SortFloat64(sorted)
		phi, _ := overdispersion(stats.MarkExceeding(run[:c.n], stats.Percentile(sorted, c.p)))
		phis = append(phis, phi)
		if i == 0 {
			here = sorted
		}
	}
	hold := func(phi float64) (holds, closed bool) {
		lo, hi := stats.EffectiveRankInterval(int64(c.n), float64(c.n)/max(phi, 1), c.p, 0.95)
		holds = (lo == 0 || here[lo-1] <= c.truth) && (hi > int64(c.n) || c.truth <= here[hi-1])
		return holds, lo > 0 && hi <= int64(c.n)
	}
	iid, _ := hold(1)
	c.iid.count(iid)
	own, shown := hold(phis[0])
	c.own.count(own)
	c.gated.count(shown)
	c.gatedHold.addIf(shown, own)
	pooled, closed := hold(stats.PooledOverdispersion(phis...))
	c.pooled.count(pooled)
	c.closed.count(closed)
	c.closedHold.addIf(closed, pooled)
}
