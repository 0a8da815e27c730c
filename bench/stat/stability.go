package main

import (
	"pitot/bench/stat/queue"
	"pitot/internal/stat"
)

func stability() table {
	return table{
		name: "stability",
		about: "How often a queue is called unstable, M/G/32 from empty, 3 residence times W discarded, one look after a window. " +
			"Below a utilisation of 1 that is a false alarm, above it is right. " +
			"The rule is Mann-Kendall at 5 % on 12 block means of the requests in flight, and a deficit above 2 %; below 30 W it answers \"undecided\", and the column shows what it would have said. " +
			"Trend alone leaves the deficit out.",
		header: []string{"utilisation", "15 W, rule", "30 W, rule", "60 W, rule", "60 W, trend alone"},
		reps:   400,
		rows: func(reps int, seed uint64) (rows [][]string) {
			for _, utilisation := range []float64{0.5, 0.8, 0.9, 0.95, 1.05, 1.1, 1.3} {
				row := []string{number(utilisation)}
				var trend tally
				for _, window := range []float64{15, 30, 60} {
					var alarms tally
					for r := range reps {
						q := queue.New(32, utilisation, seed+uint64(r))
						b := stat.JudgeBacklog(q.InFlight(3, window, stat.BacklogBlocks), window, q.Rate, 0)
						alarms.add(b.Verdict == stat.Unstable)
						if window == 60 {
							trend.add(b.Z > stat.NormalQuantile(0.95))
						}
					}
					row = append(row, alarms.String())
				}
				rows = append(rows, append(row, trend.String()))
			}
			return rows
		},
	}
}
