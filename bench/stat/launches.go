package main

import (
	"math"
	"math/rand/v2"

	"pitot/bench/stat/queue"
	"pitot/internal/stats"
)

func launches() table {
	return table{
		name: "launches",
		about: "How often two systems are called different at 5 %, M/G/32, 3,000 requests a launch, and launches that differ by 3 % (standard deviation) in speed. " +
			"B is as fast as A, or 20 % slower to answer. " +
			"Requests: Welch on single TTFTs of one launch each. Batches: Welch on 10 batch means of one launch each. " +
			"Launches: Welch and Hodges-Lehmann (its interval leaves 0 out) on the log mean TTFT of 5 launches a side, and equivalence within 10 %.",
		header: []string{"utilisation", "B ÷ A", "requests", "batches", "Welch, launches", "Hodges-Lehmann", "equivalent"},
		reps:   200,
		rows: func(reps int, seed uint64) (rows [][]string) {
			for _, utilisation := range []float64{0.5, 0.8, 0.9} {
				for _, factor := range []float64{1, 1.2} {
					rows = append(rows, launchRow(utilisation, factor, reps, seed))
				}
			}
			return rows
		},
	}
}

func launchRow(utilisation, factor float64, reps int, seed uint64) []string {
	const each = 5
	var requests, batches, welch, shift, equivalent tally
	for r := range reps {
		rng := rand.New(rand.NewPCG(seed, uint64(r)))
		launch := func(factor float64) []float64 {
			q := queue.New(32, utilisation, rng.Uint64())
			q.Warm(warmup)
			xs := q.TTFTs(3_000)
			factor *= math.Exp(0.03 * rng.NormFloat64())
			for i := range xs {
				xs[i] *= factor
			}
			return xs
		}
		var a, b [each]float64
		for i := range each {
			xs, ys := launch(1), launch(factor)
			a[i], b[i] = math.Log(average(xs)), math.Log(average(ys))
			if i > 0 {
				continue
			}
			d, _ := stats.Welch(xs, ys, 0.95)
			requests.count(d.P < 0.05)
			d, _ = stats.Welch(thin(xs), thin(ys), 0.95)
			batches.count(d.P < 0.05)
		}
		d, _ := stats.Welch(a[:], b[:], 0.95)
		welch.count(d.P < 0.05)
		equivalent.count(d.TOST(math.Log(1.1)) < 0.05)
		shift.count(!stats.HodgesLehmann(a[:], b[:], 0.95).Contains(0))
	}
	return []string{number(utilisation), number(factor), requests.String(), batches.String(), welch.String(), shift.String(), equivalent.String()}
}

// thin gives the means of ten batches.
func thin(xs []float64) []float64 {
	const batches = 10
	out := make([]float64, batches)
	for i := range out {
		out[i] = average(xs[i*len(xs)/batches : (i+1)*len(xs)/batches])
	}
	return out
}
