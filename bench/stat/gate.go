package main

import (
	"fmt"

	"pitot/bench/stat/queue"
	"pitot/internal/stats"
)

func gate() table {
	return table{
		name: "gate",
		about: "How often the 95 % interval of TTFT holds it where only some are shown, one run of n requests at M/G/32. " +
			"All: whatever came out; an open end counts as holding. " +
			"Own: the trap, shown where the run's own over-dispersion φ leaves n/φ large enough: 100 for means and medians, and for p99 as many as close its interval. " +
			"Shown is the share of runs.",
		header: []string{"utilisation", "of", "n", "all", "own shown", "of these hold"},
		reps:   400,
		rows: func(reps int, seed uint64) (rows [][]string) {
			rows = gateRows(0.5, 20_000, reps, seed)
			for _, n := range []int{5_000, 20_000} {
				rows = append(rows, gateRows(0.9, n, reps, seed)...)
			}
			return rows
		},
	}
}

// gateCase is a row while it is counted.
type gateCase struct {
	of                 string
	p, truth           float64 // p: 0 for the mean
	all, own, ownHolds tally
}

// ownEnough is how many independent samples the trap asks a run to have.
const ownEnough = 100

func gateRows(utilisation float64, n, reps int, seed uint64) (rows [][]string) {
	long := queue.New(32, utilisation, seed)
	long.Warm(warmup)
	truth := long.TTFTs(enough(3_000_000, reps))
	average, _ := stats.Moments(truth)
	stats.SortFloat64(truth)
	cases := []*gateCase{{of: "mean", truth: average}, {of: "p50", p: 0.5, truth: stats.Percentile(truth, 0.5)}, {of: "p99", p: 0.99, truth: stats.Percentile(truth, 0.99)}}
	for r := range reps {
		q := queue.New(32, utilisation, seed+uint64(1+r))
		q.Warm(warmup)
		ttft := q.TTFTs(n)
		for _, c := range cases {
			c.judgeRun(ttft)
		}
	}
	for _, c := range cases {
		rows = append(rows, []string{number(utilisation), c.of, fmt.Sprint(n), c.all.String(), c.own.String(), c.ownHolds.String()})
	}
	return rows
}

// judgeRun judges one run.
func (c *gateCase) judgeRun(ttft []float64) {
	n := len(ttft)
	var holds, enough bool
	if c.p == 0 {
		b, _ := stats.BatchMeans(ttft, 10, 0.95)
		_, sd := stats.Moments(ttft)
		holds, enough = b.Contains(c.truth), sd*sd/(b.SE*b.SE) >= ownEnough // n/φ is the variance of one over that of the mean
	} else {
		sorted := append([]float64(nil), ttft...)
		stats.SortFloat64(sorted)
		phi, _ := overdispersion(stats.MarkExceeding(ttft, stats.Percentile(sorted, c.p)))
		effective := float64(n) / max(phi, 1)
		lo, hi := stats.EffectiveRankInterval(int64(n), effective, c.p, 0.95)
		closed := lo > 0 && hi <= int64(n)
		holds = (lo == 0 || sorted[lo-1] <= c.truth) && (hi > int64(n) || c.truth <= sorted[hi-1])
		enough = closed && (c.p > 0.5 || effective >= ownEnough)
	}
	c.all.count(holds)
	c.own.count(enough)
	c.ownHolds.addIf(enough, holds)
}
