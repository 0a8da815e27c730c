package main

import (
	"fmt"

	"pitot/bench/stat/queue"
	"pitot/internal/stats"
)

func stability() table {
	return table{
		name: "stability",
		about: "How often a queue is called unstable, M/G/c from empty, 3 residence times W discarded, one look after a window. " +
			"Below a utilisation of 1 that is a false alarm, above it is right. " +
			"The rule is Mann-Kendall at 5 % on 12 block means of the requests in flight, a deficit above 2 %, and a rise of more than chance gives; below 30 W it answers \"undecided\", and the column shows what it would have answered. " +
			"Trend alone leaves the deficit out.",
		header: []string{"servers", "utilisation", "15 W, rule", "30 W, rule", "60 W, rule", "60 W, trend alone"},
		reps:   400,
		rows: func(reps int, seed uint64) (rows [][]string) {
			for _, c := range []struct {
				servers     int
				utilisation float64
			}{{32, 0.5}, {32, 0.8}, {32, 0.9}, {32, 0.95}, {32, 1.05}, {32, 1.1}, {32, 1.3}, {4, 0.8}, {4, 0.9}, {4, 1.1}, {4, 1.5}, {1, 0.8}, {1, 0.9}, {1, 1.1}, {1, 1.5}, {1, 2}} {
				row := []string{number(float64(c.servers)), number(c.utilisation)}
				var trend tally
				for _, window := range []float64{15, 30, 60} {
					var alarms tally
					for r := range reps {
						q := queue.New(c.servers, c.utilisation, seed+uint64(r))
						b := stats.JudgeBacklog(q.InFlight(3, window, stats.BacklogBlocks), window, q.Rate, 0)
						alarms.count(b.Verdict == stats.Unstable)
						if window == 60 {
							trend.count(b.Z > stats.NormalQuantile(0.95))
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

// missed is how often a load that a report says may look stable is called what.
func missed() table {
	return table{
		name: "missed",
		about: "What a load is called that is as much above what is served as a report of a stable queue says may not show, M/G/c from empty, 3 residence times W discarded. " +
			"Services have a coefficient of variation of 1 (usual), or of 2 (long), or arrivals come in bursts (gamma(0.25)).",
		header: []string{"law", "servers", "window", "above", "unstable", "undecided", "stable"},
		reps:   400,
		rows: func(reps int, seed uint64) (rows [][]string) {
			for _, law := range []struct {
				name string
				queue.Law
			}{{"usual", queue.Usual}, {"long", queue.Law{Services: 2, Arrivals: 1}}, {"bursts", queue.Law{Services: 1, Arrivals: 0.25}}} {
				for _, servers := range []int{1, 8, 64} {
					for _, window := range []float64{30, 120} {
						above, ok := stats.MissedOverload(window * float64(servers))
						if !ok {
							continue
						}
						var verdicts [3]tally
						for r := range reps {
							q := queue.NewOf(law.Law, servers, 1+above, seed+uint64(r))
							b := stats.JudgeBacklog(q.InFlight(3, window, stats.BacklogBlocks), window, q.Rate, 1)
							for i, v := range []stats.Stability{stats.Unstable, stats.Undecided, stats.Stable} {
								verdicts[i].count(b.Verdict == v)
							}
						}
						rows = append(rows, []string{law.name, fmt.Sprint(servers), fmt.Sprintf("%g W", window), fmt.Sprintf("%.0f %%", 100*above), verdicts[0].String(), verdicts[1].String(), verdicts[2].String()})
					}
				}
			}
			return rows
		},
	}
}
