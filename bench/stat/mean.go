package main

import (
	"fmt"
	"math"

	"pitot/bench/stat/alternative"
	"pitot/bench/stat/queue"
	"pitot/internal/stats"
)

func mean() table {
	return table{
		name: "mean",
		about: "How often the 95 % interval of mean TTFT holds it, one run of n requests at M/G/32. " +
			"Independent: t on single requests. Batch means: 10 batches. Bootstrap: moving blocks of n/20, 200 resamples.",
		header: []string{"utilisation", "n", "independent", "batch means", "bootstrap"},
		reps:   200,
		rows: func(reps int, seed uint64) (rows [][]string) {
			for _, utilisation := range []float64{0.5, 0.8, 0.9} {
				long := queue.New(32, utilisation, seed)
				long.Warm(warmup)
				truth, _ := stats.Moments(long.TTFTs(enough(5_000_000, reps)))
				for _, n := range []int{5_000, 20_000, 100_000} {
					var independent, batches, bootstrap tally
					for r := range reps {
						q := queue.New(32, utilisation, seed+uint64(1+r))
						q.Warm(warmup)
						xs := q.TTFTs(n)
						mean, sd := stats.Moments(xs)
						independent.count(math.Abs(mean-truth) <= 1.96*sd/math.Sqrt(float64(n)))
						b, _ := stats.BatchMeans(xs, 10, 0.95)
						batches.count(b.Contains(truth))
						if n <= 20_000 { // copies 200·n values
							s, _ := alternative.BlockBootstrap(xs, n/20, 200, 0.95, seed+uint64(r), average)
							bootstrap.count(s.Contains(truth))
						}
					}
					rows = append(rows, []string{number(utilisation), fmt.Sprint(n), independent.String(), batches.String(), bootstrap.String()})
				}
			}
			return rows
		},
	}
}

func average(xs []float64) float64 {
	m, _ := stats.Moments(xs)
	return m
}
