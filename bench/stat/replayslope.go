package main

import (
	"fmt"
	"math"
	"slices"

	"pitot/internal/run/search"
	"pitot/internal/stat"
)

// replaySlopes says how far the slope of a twin, slowed until it violates as often as the server
// at the server's capacity, is from the server's.
func replaySlopes(name string, half group) table {
	return table{
		name: name, slow: true, reps: 36,
		about: "How steeply violations rise with the load on a twin that is slowed until, at the server's capacity, as many of its requests violate the limit as of the server's: " +
			"ln of d logit P / d ln load there, less the server's, by long runs of queues for seats (as for `-only replay`). Repetitions are systems. " +
			"Root mean square: of all differences; within: half, and nine of ten, of them in size. Spread: of ln of the servers' own slopes about their mean, which is what a guess without a twin is off by; least and most: of those slopes.",
		header: []string{"twin", "systems", "mean", "root mean square", "half within", "nine of ten within", "least", "most", "spread", "servers' least", "servers' most"},
		rows: func(reps int, seed uint64) [][]string {
			off := map[twinned][]float64{}
			var own []float64
			for i := range uint64(reps) {
				r := drawRival(i + drawnFrom(half, seed))
				if r.Capacity == 0 || r.SE > 0.01 {
					continue
				}
				own = append(own, math.Log(r.Slope))
				for _, by := range replayBy[1:] {
					if b, ok := r.slopeOf(r.twinBy(by)); ok {
						off[by] = append(off[by], math.Log(b/r.Slope))
					}
				}
			}
			_, spread := stat.Moments(own)
			var rows [][]string
			for _, by := range replayBy[1:] {
				if len(off[by]) == 0 {
					continue
				}
				mean, _ := stat.Moments(off[by])
				var square float64
				var size []float64
				for _, x := range off[by] {
					square += x * x / float64(len(off[by]))
					size = append(size, math.Abs(x))
				}
				slices.Sort(size)
				rows = append(rows, []string{string(by), fmt.Sprint(len(size)), two(mean), two(math.Sqrt(square)), two(median(size)), two(size[len(size)*9/10]),
					two(slices.Min(off[by])), two(slices.Max(off[by])), two(spread), number(math.Exp(slices.Min(own))), number(math.Exp(slices.Max(own)))})
			}
			return rows
		},
	}
}

func two(x float64) string { return fmt.Sprintf("%.2f", x) }

// slopeOf is that of a twin at the server's capacity, slowed so that it violates as often there.
func (r *rival) slopeOf(twin *rivalTwin) (slope float64, ok bool) {
	const n = 40_000
	for _, users := range []float64{1, 2, 4} { // as a search begins
		twin.loads = append(twin.loads, r.probe(&search.Probe{Load: users / r.Residence / 4, Requests: 60, Blocks: 1}, uint64(users)))
	}
	twin.choose()
	want := (r.Share - r.Fails) / (1 - r.Fails)
	share := func(load, lnk float64) float64 {
		bad := 0
		l, from := r.draw(load, float64(n/8)/load, n, 77)
		for _, x := range twin.seats.serve(l, math.Exp(lnk), 78)[from:] {
			if r.times(x) >= 1 {
				bad++
			}
		}
		return (float64(bad) + 0.5) / (n + 1)
	}
	lo, hi := -math.Log(6), math.Log(6)
	if share(r.Capacity, lo) > want || share(r.Capacity, hi) < want {
		return 0, false
	}
	for range 14 {
		if middle := (lo + hi) / 2; share(r.Capacity, middle) < want {
			lo = middle
		} else {
			hi = middle
		}
	}
	var points []stat.Share
	for i := -3; i <= 3; i++ {
		load := r.Capacity * math.Exp(0.2*float64(i)/r.Slope)
		points = append(points, stat.Share{Load: load, N: n, Violations: int(share(load, lo) * n)})
	}
	fit := stat.FitLogistic(points, stat.Prior{})
	return fit.B, fit.Reason == "" && fit.B > 0
}
