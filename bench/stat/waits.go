package main

import (
	"fmt"
	"math"
	"slices"

	"pitot/bench/stat/queue"
	"pitot/internal/stat"
)

// waits is the interval of the mean TTFT alone, of many more runs than intervals has.
func waits() table {
	return table{
		name: "waits",
		about: "The 95 % interval of the mean TTFT of one run, in the systems of `intervals` but those of 256 servers, by the functions that measure takes it from; runs of fewer than 300 requests have none. " +
			"Batches: widest of the t intervals of 20, 10, 7 and 5 batches. Wider: times what its caution gives, on the logarithm. Pitot: the upper end at least that of what a queue adds, and of slow periods that were missed. " +
			"Each: the share of intervals that hold the truth, and the least of a system at a load; of 100 true shares of 95 %, the least that 300 runs give is about 92 %. Width: median of upper end ÷ lower one.",
		header: []string{"systems", "utilisation", "batches", "worst", "wider", "worst", "width", "Pitot", "worst", "width", "of the worst"},
		reps:   300,
		slow:   true,
		rows: func(reps int, seed uint64) (rows [][]string) {
			for _, of := range []group{chosen, reported, unseen} {
				rows = append(rows, waitRows(of, reps, seed)...)
			}
			return rows
		},
	}
}

// waitCase is a system at a load: intervals of each kind, of its runs.
type waitCase struct {
	of     string
	load   string
	holds  [3]tally
	widths [3][]float64
}

func waitRows(of group, reps int, seed uint64) (rows [][]string) {
	loads := []float64{0.15, 0.3, 0.5, 0.7, 0.85, 0.95}
	systems := slices.DeleteFunc(intervalSystems(of), func(s queueSystem) bool { return s.servers > 64 })
	cases := make([]*waitCase, len(systems)*len(loads))
	together(len(cases), func(i int) { cases[i] = systems[i/len(loads)].waits(loads[i%len(loads)], reps, seed+uint64(i)<<32) })
	for _, load := range loadGroups {
		var all waitCase
		var least [3]float64
		worst := ""
		for k := range least {
			least[k] = math.Inf(1)
		}
		for _, c := range cases {
			if c.load != load {
				continue
			}
			for k := range c.holds {
				all.holds[k].Held, all.holds[k].Of = all.holds[k].Held+c.holds[k].Held, all.holds[k].Of+c.holds[k].Of
				all.widths[k] = append(all.widths[k], c.widths[k]...)
				if share := float64(c.holds[k].Held) / float64(c.holds[k].Of); 2*c.holds[k].Of >= reps && share < least[k] {
					if least[k] = share; k == 2 {
						worst = c.of
					}
				}
			}
		}
		row := []string{[]string{"chosen on", "reported", "never seen"}[of], load}
		for k := range least {
			row = append(row, all.holds[k].String(), fmt.Sprintf("%.1f %%", 100*least[k]))
			if k > 0 {
				row = append(row, number(median(all.widths[k])))
			}
		}
		rows = append(rows, append(row, worst))
	}
	return rows
}

func (s queueSystem) waits(utilisation float64, reps int, seed uint64) *waitCase {
	c := &waitCase{of: fmt.Sprintf("%v, load %g", s, utilisation), load: loadGroup(utilisation)}
	jobs := 500_000
	if s.servers <= 4 { // the fewer servers, the longer they remember
		jobs = 2_000_000
	}
	q := queue.NewOf(s.law, s.servers, utilisation, seed)
	q.Warm(warmup)
	truth := 0.
	for range jobs {
		truth += q.Next().TTFT / float64(jobs)
	}
	window := max(s.window, 330/(utilisation*float64(s.servers)))
	for r := range reps {
		intervals, ok := waitIntervals(queue.NewOf(s.law, s.servers, utilisation, seed+uint64(1+r)), window)
		if !ok {
			continue
		}
		for k, v := range intervals {
			c.holds[k].count(v.Holds(truth))
			c.widths[k] = append(c.widths[k], v.Hi/v.Lo)
		}
	}
	return c
}

// waitIntervals are those of the mean TTFT of a run: by batches, wider, and as they
// are printed; as package measure makes them.
func waitIntervals(q *queue.Queue, window float64) (v [3]stat.Interval, ok bool) {
	var ttft []float64
	var sum, squares float64
	for j := q.Next(); j.Arrival < warmIntervals+window; j = q.Next() {
		if j.Arrival >= warmIntervals {
			ttft = append(ttft, j.TTFT)
			took := max(j.End-j.Arrival, j.TTFT)
			sum, squares = sum+took, squares+took*took
		}
	}
	n := float64(len(ttft))
	if n < 300 {
		return v, false
	}
	b := stat.NewBatches(int64(len(ttft)), stat.FineBatches)
	for _, x := range ttft {
		b.Add(x)
	}
	mean, half, _ := b.Widest(0.95)
	residence := sum / n
	variation := squares/n/(residence*residence) - 1
	wider := half * stat.Caution(stat.CautionOfTime(window/residence, variation), b.Memory())
	v[0] = stat.Interval{Lo: mean - half, Hi: mean + half}
	v[1] = stat.Interval{Lo: mean * math.Exp(-wider/mean), Hi: mean * math.Exp(wider/mean)}
	if wider > 20*mean {
		v[1] = stat.Interval{Lo: mean - wider, Hi: mean + wider}
	}
	stat.SortFloat64(ttft)
	v[2] = v[1]
	v[2].Hi = max(v[1].Hi, stat.UpperOfWait(mean, half, stat.Percentile(ttft, stat.LeastWait), stat.MissedWait(residence, window/residence, variation)))
	return v, true
}
