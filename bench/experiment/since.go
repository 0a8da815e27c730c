package main

import (
	"fmt"
	"math"
	"math/rand/v2"

	"pitot/internal/experiment"
)

// What records say of each other, where it is known whether anything changed.

// metrics of a record that is simulated: the first is what is carried.
var metrics = []string{"capacity", "p95 ttft", "p95 tpot", "p50 ttft", "p50 tpot", "output tok/s"}

// recorded is a record of configurations that are measured in blocks, which differ by
// themselves and whose launches differ; change is ln of what each metric is times 100.
func recorded(r *rand.Rand, when string, configurations, blocks int, hours, launches, change float64) *experiment.Record {
	out := &experiment.Record{Contract: experiment.ContractRecord{Confidence: .95}, Rows: []experiment.RowRecord{{Name: "F"}}, Sittings: []experiment.SittingRecord{{Began: when}}}
	for _, m := range metrics {
		levels := make([]float64, blocks)
		for b := range levels {
			levels[b] = hours * r.NormFloat64()
		}
		for c := range configurations {
			l := experiment.LineRecord{Row: "F", Metric: m, Configuration: fmt.Sprint(c), Higher: true}
			for _, level := range levels {
				x := 100 * math.Exp(change+level+launches*r.NormFloat64())
				l.Values = append(l.Values, &x)
			}
			out.Lines = append(out.Lines, l)
		}
	}
	return out
}

// printSince holds records against each other: in how many pairs any change is claimed where
// there is none, and in how many a change of a tenth and of a fifth is seen.
func printSince(pairs int, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 41))
	fmt.Printf("%d pairs of records of %d metrics, launches differ by %.1f %%\n\n%-16s %9s %9s %9s %9s %9s\n", pairs, len(metrics), 100*spread, "configurations", "launches", "hours by", "claimed", "10 % seen", "20 % seen")
	for _, configurations := range []int{2, 5} {
		for _, blocks := range []int{2, 3, 6} {
			for _, hours := range []float64{0, spread, 2 * spread} {
				var seen [3]int
				for range pairs {
					then := recorded(r, "2026-01-01T00:00:00Z", configurations, blocks, hours, spread, 0)
					for i, change := range []float64{0, .1, .2} {
						s := experiment.CompareRecords("then", then, recorded(r, "2026-01-02T00:00:00Z", configurations, blocks, hours, spread, -change))
						if s.Worse > 0 || i == 0 && s.Better > 0 {
							seen[i]++
						}
					}
				}
				share := func(i int) float64 { return 100 * float64(seen[i]) / float64(pairs) }
				fmt.Printf("%-16d %9d %8.1f%% %8.1f%% %8.1f%% %8.1f%%\n", configurations, blocks, 100*hours, share(0), share(1), share(2))
			}
		}
	}
	fmt.Printf("\n%-16s %9s %9s %9s\n", "nights", "like last", "claimed", "20 % seen")
	for _, nights := range []int{8, 14, 30} {
		for _, like := range []float64{0, .3, .6} {
			var seen [2]int
			for range pairs / 4 {
				for i, change := range []float64{0, -.2} {
					if len(nightly(r, nights, like, change).Changes) > 0 {
						seen[i]++
					}
				}
			}
			fmt.Printf("%-16d %9.1f %8.1f%% %8.1f%%\n", nights, like, 400*float64(seen[0])/float64(pairs), 400*float64(seen[1])/float64(pairs))
		}
	}
}

// nightly is the trend over nights that differ by as much as launches do, and are like the
// night before; from two thirds on there is a change.
func nightly(r *rand.Rand, nights int, like, change float64) *experiment.Trend {
	const configurations, blocks = 2, 3
	var records []*experiment.Record
	night := r.NormFloat64()
	for n := range nights {
		at := 0.0
		if n >= nights*2/3 {
			at = change
		}
		night = like*night + math.Sqrt(1-like*like)*r.NormFloat64()
		records = append(records, recorded(r, fmt.Sprintf("2026-01-%02dT00:00:00Z", n+1), configurations, blocks, 0, spread, at+spread*night))
	}
	return experiment.TrendOf(make([]string, nights), records)
}
