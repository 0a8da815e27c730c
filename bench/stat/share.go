package main

import (
	"fmt"

	"pitot/bench/stat/alternative"
	"pitot/bench/stat/queue"
	"pitot/internal/stats"
)

// The capacity of M/G/32 under "1 % of TTFTs at most exceed 1": the highest
// utilisation that meets it, to ±0.1 %.
const (
	limit        = 1.0
	epsilon      = 0.01
	trueCapacity = queue.Capacity
)

func share() table {
	return table{
		name: "share",
		about: "How often one run of n requests is reported to meet \"1 % at most over the limit\" because the one-sided 95 % upper limit of its share of violations does not exceed 1 %. " +
			"At capacity and above, 5 % is what a sound limit allows. " +
			"Naive: the share itself is at most 1 %. Independent: Clopper-Pearson as if no request depended on another. " +
			"Ten blocks: t on batch means. Pooled: Clopper-Pearson and Wilson with the largest φ of this load and neighbours 8 % away.",
		header: []string{"load ÷ capacity", "n", "naive", "independent", "ten blocks", "Clopper-Pearson pooled", "Wilson pooled"},
		reps:   300,
		rows: func(reps int, seed uint64) (rows [][]string) {
			for _, load := range []float64{0.8, 0.9, 1, 1.03} {
				for _, n := range []int{5_000, 20_000} {
					rows = append(rows, shareRow(load, n, reps, seed))
				}
			}
			return rows
		},
	}
}

func shareRow(load float64, n, reps int, seed uint64) []string {
	var naive, independent, blocks, exact, score tally
	level := stats.OneSided(0.95)
	for r := range reps {
		var phis []float64
		var here []float64
		for i, step := range []float64{0.92, 1, 1.08} {
			q := queue.New(32, trueCapacity*load*step, seed+uint64(3*r+i))
			q.Warm(warmup)
			hits := stats.MarkExceeding(q.TTFTs(n), limit)
			if phi, ok := overdispersion(hits); ok {
				phis = append(phis, phi)
			}
			if i == 1 {
				here = hits
			}
		}
		violations := int(average(here)*float64(n) + 0.5)
		phi := stats.PooledOverdispersion(phis...)
		naive.count(float64(violations) <= epsilon*float64(n))
		independent.count(stats.ClopperPearson(violations, n, 1, level).Hi <= epsilon)
		b, _ := stats.BatchMeans(here, 10, level)
		blocks.count(b.Hi <= epsilon)
		exact.count(stats.ClopperPearson(violations, n, phi, level).Hi <= epsilon)
		score.count(alternative.Wilson(violations, n, phi, level).Hi <= epsilon)
	}
	return []string{number(load), fmt.Sprint(n), naive.String(), independent.String(), blocks.String(), exact.String(), score.String()}
}

// overdispersion is that of 0s and 1s in ten batches.
func overdispersion(hits []float64) (phi float64, ok bool) {
	b := stats.NewBatches(int64(len(hits)), 10)
	for _, x := range hits {
		b.Add(x)
	}
	return b.Overdispersion()
}
