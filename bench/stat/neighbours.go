package main

import (
	"pitot/bench/stat/queue"
	"pitot/internal/data/metric"
	"pitot/internal/data/record"
	"pitot/internal/data/result"
	"pitot/internal/measure"
	"pitot/internal/stat"
)

// neighbours is what a sweep prints: the intervals of its points, those of the
// 99th percentile with the over-dispersion of the loads next to each.
func neighbours() table {
	return table{
		name: "sweep",
		about: "The intervals that a sweep of seven loads prints for E2E at M/G/32, by the code that measures: windows of 150 residence times, loads from 0.15 to 1.05 of capacity. " +
			"Shown: the share of points that get an interval. Holds: of these, how many hold the truth. What is not shown says why.",
		header: []string{"utilisation", "mean shown", "holds", "p50 shown", "holds", "p99 shown", "holds"},
		reps:   300,
		rows:   neighbourRows,
	}
}

func neighbourRows(reps int, seed uint64) (rows [][]string) {
	const warm, window = 40, 150 // residence times without a queue, of a second each
	utilisations := []float64{0.15, 0.3, 0.45, 0.6, 0.75, 0.9, 1.05}
	keys := []string{"mean", "p50", "p99"}
	truth := make([]map[string]float64, len(utilisations))
	for i, u := range utilisations {
		if u >= 1 {
			continue // there is none
		}
		long := queue.New(32, u, seed)
		long.Warm(warmup)
		e2e := make([]float64, 1_000_000)
		for k := range e2e {
			j := long.Next()
			e2e[k] = (j.End - j.Arrival) * 1e3
		}
		mean, _ := stat.Moments(e2e)
		stat.SortFloat64(e2e)
		truth[i] = map[string]float64{"mean": mean, "p50": stat.Percentile(e2e, 0.5), "p99": stat.Percentile(e2e, 0.99)}
	}
	type cell struct{ shown, holds tally }
	cells := make([][]cell, len(utilisations))
	for i := range cells {
		cells[i] = make([]cell, len(keys))
	}
	for r := range reps {
		folds := make([]*measure.Fold, len(utilisations))
		points := make([]result.Point, len(utilisations))
		together(len(utilisations), func(i int) {
			rate := 32 * utilisations[i]
			folds[i] = measure.NewFold(measure.Setup{T0: warm * 1e9, T1: (warm + window) * 1e9, Residence: 1e9, Load: result.Load{Loop: "open", Rate: &rate}})
			folds[i].Add(record.Frame{Rows: recorded(queue.New(32, utilisations[i], seed+uint64(1+r*len(utilisations)+i)), warm+window)})
			points[i] = folds[i].Point()
		})
		for i, p := range measure.Pool(points) {
			folds[i].Pool(p)
			e2e := folds[i].Point().Metrics.SummaryOf(metric.E2E)
			for k, key := range keys {
				v, ok := e2e.CI95[key]
				cells[i][k].shown.count(ok)
				if truth[i] != nil {
					cells[i][k].holds.addIf(ok, v[0] <= truth[i][key] && truth[i][key] <= v[1])
				}
			}
		}
	}
	for i, u := range utilisations {
		row := []string{number(u)}
		for k := range keys {
			row = append(row, cells[i][k].shown.String(), cells[i][k].holds.String())
		}
		rows = append(rows, row)
	}
	return rows
}

// recorded are the jobs of a queue that arrive before a time, as records: a
// mean service is a second.
func recorded(q *queue.Queue, until float64) (rows []record.Row) {
	for j := q.Next(); j.Arrival < until; j = q.Next() {
		rows = append(rows, rowOf(j, int64(len(rows))))
	}
	return rows
}

// rowOf is a job as a record.
func rowOf(j queue.Job, id int64) record.Row {
	r := record.BlankRow()
	r.ID, r.Stream, r.Outcome, r.Status = id, true, record.OK, 200
	r.Due = int64(j.Arrival * 1e9)
	r.Eligible, r.Ready, r.Sent = r.Due, r.Due, r.Due
	r.FirstToken, r.LastToken = r.Due+int64(j.TTFT*1e9), max(int64(j.End*1e9), r.Due+int64(j.TTFT*1e9))
	r.FirstAnswer, r.Headers, r.Done = r.FirstToken, r.FirstToken, r.LastToken
	r.CompletionTokens, r.Chunks = 100, 100
	return r
}
