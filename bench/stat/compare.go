package main

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"pitot/bench/stat/queue"
	"pitot/internal/analysis/compare"
	"pitot/internal/results/metric"
	"pitot/internal/results/result"
	"pitot/internal/stats"
)

func comparison() table {
	return table{
		name: "compare",
		about: "What pitot compare says of M/G/32, 3,000 requests a launch, and launches that differ by 3 % (standard deviation) in speed. " +
			"B is as fast as A, or 20 % slower to answer. " +
			"Any: some metric (p50 and p99 of TTFT and E2E) is called slower or faster. Any t test: without correction, and from 2 launches on. " +
			"p99 TTFT: it is called so, as one of all; primary: where it is the one that --primary names; others: any of the others then; fires: --fail-if for 5 %. " +
			"Equivalent: p50 E2E is called so, within 5 %. " +
			"Needed: median of the launches a side that it says would tell p99 TTFT.",
		header: []string{"utilisation", "launches", "B ÷ A", "any", "any t test", "p99 TTFT", "primary", "others", "fires", "equivalent", "needed"},
		reps:   200,
		rows: func(reps int, seed uint64) (rows [][]string) {
			for _, utilisation := range []float64{0.5, 0.8, 0.9} {
				for _, launches := range []int{1, 3, 5, 10} {
					for _, factor := range []float64{1, 1.2} {
						rows = append(rows, compareRow(utilisation, launches, factor, reps, seed))
					}
				}
			}
			return rows
		},
	}
}

func compareRow(utilisation float64, launches int, factor float64, reps int, seed uint64) []string {
	clauses, err := compare.ParseClauses("p99 ttft slower by 5%")
	if err != nil {
		panic(err)
	}
	primary, err := compare.ParsePrimary("p99 ttft")
	if err != nil {
		panic(err)
	}
	var some, uncorrected, tail, named, others, fires, equivalent tally
	var needed []int
	for r := range reps {
		rng := rand.New(rand.NewPCG(seed, uint64(r)))
		a, b := compare.Side{Name: "A"}, compare.Side{Name: "B"}
		for i := range launches {
			a.Runs = append(a.Runs, compare.Source{Run: measuredLaunch(i, utilisation, 1, rng)})
			b.Runs = append(b.Runs, compare.Source{Run: measuredLaunch(i, utilisation, factor, rng)})
		}
		plain := sidesCompared(a, b, compare.Options{}).Pairs[0].Rows
		changed, below, same := false, false, false
		for _, row := range plain {
			different := row.Verdict == compare.Slower || row.Verdict == compare.Faster
			changed = changed || different
			below = below || row.P != nil && *row.P < 0.05
			same = same || row.Metric == "p50 e2e" && row.Verdict == compare.Equivalent
			if row.Metric == "p99 ttft" {
				tail.count(different)
				if row.Needed != nil {
					needed = append(needed, *row.Needed)
				}
			}
		}
		some.count(changed)
		uncorrected.count(below)
		equivalent.count(same)
		fires.count(sidesCompared(a, b, compare.Options{Clauses: clauses}).AnyFired())
		rows := sidesCompared(a, b, compare.Options{Primary: primary}).Pairs[0].Rows
		different := func(row compare.Row) bool { return row.Verdict == compare.Slower || row.Verdict == compare.Faster }
		named.count(different(rows[0]))
		others.count(slices.ContainsFunc(rows[1:], different))
	}
	text := "none"
	if len(needed) > 0 {
		slices.Sort(needed)
		text = fmt.Sprint(needed[len(needed)/2])
	}
	return []string{
		number(utilisation), fmt.Sprint(launches), number(factor), some.String(), uncorrected.String(),
		tail.String(), named.String(), others.String(), fires.String(), equivalent.String(), text,
	}
}

func sidesCompared(a, b compare.Side, o compare.Options) *compare.Comparison {
	o.Within = 0.05
	c, err := compare.Compare([]compare.Side{a, b}, o)
	if err != nil {
		panic(err)
	}
	return c
}

// measuredLaunch is a run of one launch: times of the queue as TTFT, and the
// same with a service of its own as E2E.
func measuredLaunch(id int, utilisation, factor float64, rng *rand.Rand) *result.Run {
	const n = 3_000
	q := queue.New(32, utilisation, rng.Uint64())
	q.Warm(warmup)
	factor *= math.Exp(0.03 * rng.NormFloat64())
	first, all := make([]float64, n), make([]float64, n)
	for i := range first {
		j := q.Next()
		first[i], all[i] = factor*j.TTFT, factor*(j.TTFT+j.End-j.Start)
	}
	rate, good := 32*utilisation, 0
	for _, x := range first {
		if x < 1 {
			good++
		}
	}
	share := float64(good) / n
	p := result.Point{
		Load: result.Load{Loop: "open", Rate: &rate, Arrival: "poisson"}, Requests: result.Requests{Due: n, OK: n},
		Metrics:   result.MetricsOf(map[metric.Name]*result.Summary{metric.TTFT: distribution(first), metric.E2E: distribution(all)}),
		SLO:       &result.SLO{Spec: "ttft<1s @99%", Attained: &share},
		Stability: stats.Stable, Verdict: result.Valid,
	}
	return &result.Run{
		Schema: result.Schema, Launch: fmt.Sprint(id), Workload: json.RawMessage(`{"kind":"random"}`),
		Points: []result.Point{p}, Verdict: result.Valid,
	}
}

func distribution(xs []float64) *result.Summary {
	slices.Sort(xs)
	percentileMS := func(p float64) *float64 {
		x := 1e3 * stats.Percentile(xs, p)
		return &x
	}
	mean := 1e3 * average(xs)
	return &result.Summary{N: int64(len(xs)), Mean: &mean, P50: percentileMS(0.5), P90: percentileMS(0.9), P95: percentileMS(0.95), P99: percentileMS(0.99)}
}
