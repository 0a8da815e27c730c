package main

import (
	"fmt"
	"math"
	"slices"

	"pitot/bench/stat/queue"
	"pitot/internal/data/metric"
	"pitot/internal/data/record"
	"pitot/internal/data/result"
	"pitot/internal/measure"
	"pitot/internal/slo"
	"pitot/internal/stat"
)

// intervals are all that a sweep prints, over queues whose constants they were
// not chosen on.
func intervals() table {
	return table{
		name: "intervals",
		about: "All intervals that a sweep prints, by the code that measures, in M/G/c queues from empty: 1, 4, 16, 64 and 256 servers; " +
			"services of coefficient of variation 1, 0.3 and 2 with Poisson arrivals, and of 1 with arrivals in bursts (gamma(0.25)); " +
			"windows of 100 and 300 times what a request takes alone, longer where they had fewer than 330 requests. " +
			"The constants were chosen on one half of these systems; this is the other. (The form of the rule was found on all of them, with other draws.) " +
			"Shown: the share of runs whose interval is shown. Holds: of these, how many hold the truth. " +
			"Worst: the least of these shares among systems and loads, of those with half of them shown; of 100 true shares of 95 %, the least that 80 runs give is about 89 %. Width: median of the interval's upper end ÷ its lower one.",
		header: []string{"utilisation", "of", "shown", "holds", "worst", "width"},
		reps:   40,
		slow:   true,
		rows:   intervalRows,
	}
}

// system is a queue, and how long it is looked at.
type queueSystem struct {
	law     queue.Law
	servers int
	window  float64 // in what a request takes alone
}

// intervalSystems are the half that the constants were chosen on, or the other.
func intervalSystems(chosen bool) (half []queueSystem) {
	mix := uint64(0)
	for _, servers := range []int{1, 4, 16, 64, 256} {
		for _, law := range []queue.Law{queue.Usual, {Services: 0.3, Arrivals: 1}, {Services: 2, Arrivals: 1}, {Services: 1, Arrivals: 0.25}} {
			for _, window := range []float64{100, 300} {
				mix++
				if servers == 256 && window > 100 {
					continue
				}
				if ofHalf(mix) == chosen {
					half = append(half, queueSystem{law, servers, window})
				}
			}
		}
	}
	return half
}

// ofHalf draws a half by the number of a system.
func ofHalf(x uint64) bool {
	x *= 0x9e3779b97f4a7c15
	x ^= x >> 29
	x *= 0xbf58476d1ce4e5b9
	return x>>40&1 == 0
}

// intervalCase counts one value at one load of one system.
type intervalCase struct {
	load, of     string // load: the group it is in
	shown, holds tally
	widths       []float64
}

func intervalRows(reps int, seed uint64) (rows [][]string) {
	systems := intervalSystems(false)
	found := make([][]*intervalCase, len(systems))
	together(len(systems), func(i int) { found[i] = systems[i].intervals(reps, seed+uint64(i)<<32) })
	var order []string
	of := map[string][]*intervalCase{}
	for _, list := range found {
		for _, c := range list {
			key := c.load + "|" + c.of
			if of[key] == nil {
				order = append(order, key)
			}
			of[key] = append(of[key], c)
		}
	}
	slices.SortStableFunc(order, func(a, b string) int {
		return slices.Index(intervalOrder, of[a][0].of) - slices.Index(intervalOrder, of[b][0].of)
	})
	for _, key := range order {
		var shown, holds tally
		var widths []float64
		worst := math.Inf(1)
		for _, c := range of[key] {
			shown.held, shown.of = shown.held+c.shown.held, shown.of+c.shown.of
			holds.held, holds.of = holds.held+c.holds.held, holds.of+c.holds.of
			widths = append(widths, c.widths...)
			if 2*c.holds.of >= c.shown.of {
				worst = min(worst, float64(c.holds.held)/float64(c.holds.of))
			}
		}
		row := []string{of[key][0].load, of[key][0].of, shown.String(), holds.String(), "none", "none"}
		if !math.IsInf(worst, 1) {
			row[4] = fmt.Sprintf("%.1f %%", 100*worst)
		}
		if len(widths) > 0 {
			row[5] = fmt.Sprintf("%.2f", median(widths))
		}
		rows = append(rows, row)
	}
	return rows
}

var intervalOrder = []string{"TTFT mean", "TTFT p50", "TTFT p99", "E2E mean", "E2E p50", "E2E p99", "requests/s", "output tok/s", "SLO attained"}

// intervalLoad is a load of a system, and what is counted of it.
type intervalLoad struct {
	utilisation, rate, window float64
	limit                     slo.Spec
	truth                     map[string]float64 // nil beyond saturation
	cases                     map[string]*intervalCase
}

// warmIntervals is from when on an empty queue is measured, in what a request
// takes alone.
const warmIntervals = 15

// intervals measures sweeps of a system.
func (s queueSystem) intervals(reps int, seed uint64) (cases []*intervalCase) {
	var loads []*intervalLoad
	for _, u := range []float64{0.15, 0.3, 0.5, 0.7, 0.85, 0.95, 1.05} {
		l := s.load(u, seed)
		loads = append(loads, l)
		for _, of := range intervalOrder {
			if c := l.cases[of]; c != nil {
				cases = append(cases, c)
			}
		}
	}
	for r := range reps {
		folds, points := make([]*measure.Fold, len(loads)), make([]result.Point, len(loads))
		for i, l := range loads {
			folds[i] = measure.NewFold(measure.Setup{
				T0: warmIntervals * 1e9, T1: int64((warmIntervals + l.window) * 1e9),
				Residence: 1e9, SLO: l.limit, Load: result.Load{Loop: "open", Rate: &l.rate},
			})
			q := queue.NewOf(s.law, s.servers, l.utilisation, seed+uint64(1+r*len(loads)+i))
			folds[i].Add(answered(q, warmIntervals+l.window))
			points[i] = folds[i].Point()
		}
		for i, pooled := range measure.Pool(points) {
			if l := loads[i]; l.truth != nil {
				folds[i].Pool(pooled)
				p := folds[i].Point()
				l.count(&p)
			}
		}
	}
	return cases
}

// load is one of a system, with the truth of a long run of it.
func (s queueSystem) load(utilisation float64, seed uint64) *intervalLoad {
	const jobs = 1_000_000
	l := &intervalLoad{utilisation: utilisation, rate: utilisation * float64(s.servers)}
	l.window = max(s.window, 330/l.rate)
	if utilisation > 1 {
		return l
	}
	q := queue.NewOf(s.law, s.servers, utilisation, seed)
	q.Warm(warmup)
	ttft, e2e := make([]float64, jobs), make([]float64, jobs)
	for i := range jobs {
		j := q.Next()
		ttft[i], e2e[i] = j.TTFT, max(j.End-j.Arrival, j.TTFT)
	}
	l.truth = map[string]float64{"requests/s": l.rate, "output tok/s": tokensOfService * l.rate, "SLO attained": 0.95}
	for name, xs := range map[string][]float64{"TTFT": ttft, "E2E": e2e} {
		mean, _ := stat.Moments(xs)
		stat.SortFloat64(xs)
		l.truth[name+" mean"], l.truth[name+" p50"], l.truth[name+" p99"] = mean*1e3, stat.Percentile(xs, 0.5)*1e3, stat.Percentile(xs, 0.99)*1e3
	}
	l.limit, _ = slo.Parse(fmt.Sprintf("p95 ttft<%.6fms", 1e3*stat.Percentile(ttft, 0.95)))
	name := "0.15 to 0.5"
	switch {
	case utilisation > 0.9:
		name = "0.95"
	case utilisation > 0.5:
		name = "0.7 and 0.85"
	}
	l.cases = map[string]*intervalCase{}
	for _, of := range intervalOrder {
		l.cases[of] = &intervalCase{load: name, of: of}
	}
	return l
}

// count takes in what a point prints.
func (l *intervalLoad) count(p *result.Point) {
	of := map[string]map[string][2]float64{"TTFT ": p.Metrics.SummaryOf(metric.TTFT).CI95, "E2E ": p.Metrics.SummaryOf(metric.E2E).CI95}
	for name, of := range of {
		for _, key := range []string{metric.Mean, "p50", "p99"} {
			v, ok := of[key]
			l.countInterval(name+key, v, ok)
		}
	}
	v, ok := p.Throughput.CI95["requests_per_s"]
	l.countInterval("requests/s", v, ok)
	v, ok = p.Throughput.CI95["output_tokens_per_s"]
	l.countInterval("output tok/s", v, ok)
	if v := p.SLO.CI95; v != nil {
		l.countInterval("SLO attained", *v, true)
	} else {
		l.countInterval("SLO attained", [2]float64{}, false)
	}
}

func (l *intervalLoad) countInterval(of string, v [2]float64, shown bool) {
	c, truth := l.cases[of], l.truth[of]
	c.shown.count(shown)
	c.holds.addIf(shown, v[0] <= truth && truth <= v[1])
	if shown && v[0] > 0 {
		c.widths = append(c.widths, v[1]/v[0])
	}
}

// tokensOfService is how many a request gets in a mean service.
const tokensOfService = 100

// answered are the jobs of a queue that arrive before a time, as records: a mean
// service is a second, and the tokens come with the end of theirs.
func answered(q *queue.Queue, until float64) (f record.Frame) {
	for j := q.Next(); j.Arrival < until; j = q.Next() {
		r := rowOf(j, int64(len(f.Rows)))
		r.CompletionTokens, r.Chunks = max(int32(math.Round(tokensOfService*(j.End-j.Start))), 1), 1
		f.Chunks = append(f.Chunks, record.Chunk{Request: r.ID, T: r.LastToken, Earliest: r.LastToken, Tokens: r.CompletionTokens})
		f.Rows = append(f.Rows, r)
	}
	return f
}
