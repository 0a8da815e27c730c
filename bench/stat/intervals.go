package main

import (
	"fmt"
	"math"
	"slices"
	"strings"

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
	return intervalTable("intervals", reported, "The constants were chosen on one half of these systems, which has every number of servers and every law as well; this is the other. (The form of the rule was found on all of them, with other draws.)")
}

// unseenIntervals are those of queues that nothing was chosen on.
func unseenIntervals() table {
	t := intervalTable("intervals-unseen", unseen, "Nothing was chosen on these systems.")
	t.about = strings.Replace(t.about, ofHalves, "1 to 64 servers; hyperexponential gaps of squared coefficient of variation 4, gamma(0.25) ones with services of coefficient of variation 2, and services that are all alike", 1)
	return t
}

const ofHalves = "1, 4, 16, 64 and 256 servers; " +
	"services of coefficient of variation 1, 0.3 and 2 with Poisson arrivals, and of 1 with arrivals in bursts (gamma(0.25))"

func intervalTable(name string, of group, chosen string) table {
	return table{
		name: name,
		about: "All intervals that a sweep prints, by the code that measures, in M/G/c queues from empty: " + ofHalves + "; " +
			"windows of 100 and 300 times what a request takes alone, longer where they had fewer than 330 requests. " + chosen +
			" Shown: the share of runs whose interval is shown. Holds: of these, how many hold the truth. " +
			"Worst: the least of these shares among systems and loads, of those with half of them shown; of 100 true shares of 95 %, the least that 80 runs give is about 89 %, 40 runs 85 %; `waits` has more of them for the mean TTFT. Width: median of the interval's upper end ÷ its lower one.",
		header: []string{"utilisation", "of", "shown", "holds", "worst", "width"},
		reps:   40,
		slow:   true,
		rows:   func(reps int, seed uint64) [][]string { return intervalRows(of, reps, seed) },
	}
}

// chosenIntervals are those of the half that constants are chosen on, system by
// system: here alone one may look for what goes wrong.
func chosenIntervals() table {
	return table{
		name: "intervals-chosen",
		about: "The interval of the mean TTFT of a run, in each of the systems that the constants are chosen on. " +
			"Below and above: the share of intervals that lie wholly below or above the truth. Width: median of upper end ÷ lower one.",
		header: []string{"system", "utilisation", "shown", "holds", "below", "above", "width"},
		reps:   80,
		slow:   true,
		rows: func(reps int, seed uint64) (rows [][]string) {
			systems := intervalSystems(chosen)
			for i, found := range eachIntervals(systems, reps, seed) {
				for _, c := range found {
					if c.Of == "TTFT mean" {
						rows = append(rows, []string{systems[i].String(), number(c.Utilisation), c.Shown.String(), c.Holds.String(), c.Below.String(), c.Above.String(), number(median(c.Widths))})
					}
				}
			}
			return rows
		},
	}
}

// queueSystem is a queue, and how long it is looked at.
type queueSystem struct {
	law     queue.Law
	servers int
	window  float64 // in what a request takes alone
}

func (s queueSystem) String() string {
	arrivals := "Poisson"
	switch {
	case s.law.Phases > 0:
		arrivals = fmt.Sprintf("hyperexponential(%g)", s.law.Phases)
	case s.law.Arrivals != 1:
		arrivals = fmt.Sprintf("gamma(%g)", s.law.Arrivals)
	}
	return fmt.Sprintf("%d servers, %s, services %g, window %g", s.servers, arrivals, s.law.Services, s.window)
}

// group is what a system is for.
type group int

const (
	chosen   group = iota // constants are chosen on it
	reported              // and what they do is reported of these
	unseen                // and of these, of laws that are in neither
)

// intervalSystems are those of a group. The two halves are a chequerboard of
// servers and laws: both have each of them, and neither has a system of the other.
func intervalSystems(of group) (systems []queueSystem) {
	add := func(servers int, law queue.Law) {
		for _, window := range []float64{100, 300} {
			if servers < 256 || window == 100 {
				systems = append(systems, queueSystem{law, servers, window})
			}
		}
	}
	if of == unseen {
		add(1, queue.Law{Services: 0, Arrivals: 1})
		add(1, queue.Law{Services: 2, Phases: 4})
		add(4, queue.Law{Services: 1, Phases: 4})
		add(16, queue.Law{Services: 2, Arrivals: 0.25})
		add(64, queue.Law{Services: 0.3, Phases: 4})
		add(2, queue.Law{Services: 1, Phases: 4})
		add(8, queue.Law{Services: 2, Arrivals: 0.25})
		add(32, queue.Law{Services: 2, Phases: 4})
		return systems
	}
	for i, servers := range []int{1, 4, 16, 64, 256} {
		for k, law := range []queue.Law{queue.Usual, {Services: 0.3, Arrivals: 1}, {Services: 2, Arrivals: 1}, {Services: 1, Arrivals: 0.25}} {
			if group((i+k)%2) == of {
				add(servers, law)
			}
		}
	}
	return systems
}

// intervalCase counts one value at one load of one system.
type intervalCase struct {
	Load, Of     string // Load: the group it is in
	Utilisation  float64
	Shown, Holds tally
	Below, Above tally // that the interval lies wholly below the truth, or above
	Widths       []float64
}

// eachIntervals are the cases of each system.
func eachIntervals(systems []queueSystem, reps int, seed uint64) [][]*intervalCase {
	found := make([][]*intervalCase, len(systems))
	together(len(systems), func(i int) {
		found[i] = piece(fmt.Sprintf("intervals %v %d %d %d", systems[i], reps, seed, i), func() []*intervalCase { return systems[i].intervals(reps, seed+uint64(i)<<32) })
	})
	return found
}

func intervalRows(group group, reps int, seed uint64) (rows [][]string) {
	found := eachIntervals(intervalSystems(group), reps, seed)
	var order []string
	of := map[string][]*intervalCase{}
	for _, list := range found {
		for _, c := range list {
			key := c.Load + "|" + c.Of
			if of[key] == nil {
				order = append(order, key)
			}
			of[key] = append(of[key], c)
		}
	}
	slices.SortStableFunc(order, func(a, b string) int {
		return slices.Index(intervalOrder, of[a][0].Of) - slices.Index(intervalOrder, of[b][0].Of)
	})
	for _, key := range order {
		var shown, holds tally
		var widths []float64
		worst := math.Inf(1)
		for _, c := range of[key] {
			shown.Held, shown.Of = shown.Held+c.Shown.Held, shown.Of+c.Shown.Of
			holds.Held, holds.Of = holds.Held+c.Holds.Held, holds.Of+c.Holds.Of
			widths = append(widths, c.Widths...)
			if 2*c.Holds.Of >= c.Shown.Of {
				worst = min(worst, float64(c.Holds.Held)/float64(c.Holds.Of))
			}
		}
		row := []string{of[key][0].Load, of[key][0].Of, shown.String(), holds.String(), "none", "none"}
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

// loadGroups are the loads that are reported together.
var loadGroups = []string{"0.15 to 0.5", "0.7 and 0.85", "0.95"}

func loadGroup(utilisation float64) string {
	switch {
	case utilisation > 0.9:
		return loadGroups[2]
	case utilisation > 0.5:
		return loadGroups[1]
	}
	return loadGroups[0]
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
	const jobs = 500_000
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
	name := loadGroup(utilisation)
	l.cases = map[string]*intervalCase{}
	for _, of := range intervalOrder {
		l.cases[of] = &intervalCase{Load: name, Of: of, Utilisation: utilisation}
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
	c.Shown.count(shown)
	c.Holds.addIf(shown, v[0] <= truth && truth <= v[1])
	c.Below.addIf(shown, v[1] < truth)
	c.Above.addIf(shown, v[0] > truth)
	if shown && v[0] > 0 {
		c.Widths = append(c.Widths, v[1]/v[0])
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
