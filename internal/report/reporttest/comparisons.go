package reporttest

import (
	"fmt"
	"pitot/internal/data/metric"
	"pitot/internal/data/result"
	"pitot/internal/stat"
	"pitot/internal/study/compare"
	"pitot/internal/study/tools"
	"testing"
)

// LaunchSide are runs of a side, with all times slower by a factor, and launches
// that differ a little.
func LaunchSide(name string, n int, factor float64, edit func(run *result.Run, i int)) compare.Side {
	s := compare.Side{Name: name}
	for i := range n {
		f := factor * (1 + 0.01*float64(i%3-1))
		run := ServerRun(20_000)
		run.Launch, run.Started = fmt.Sprint(i+1), "measured on side "+name
		p := &run.Points[0]
		p.Metrics.SetSummary(metric.TTFT, SummaryAround(20_000, 87.3*f))
		p.Metrics.SetSummary(metric.TPOT, SummaryAround(20_000, 8.41))
		p.Metrics.SetSummary(metric.E2E, SummaryAround(20_000, 1155.2*f))
		p.Metrics.SetSummary(metric.Stall, SummaryAround(20_000, 11.6*(1+0.2*float64(i%2))))
		attained := 0.995 - 0.001*float64(i)
		p.SLO = &result.SLO{Spec: "ttft<200ms @99%", Attained: &attained}
		if edit != nil {
			edit(run, i)
		}
		s.Runs = append(s.Runs, compare.Source{Path: fmt.Sprintf("runs/%s/%d", name, i+1), Run: run})
	}
	return s
}

// Comparisons are of all kinds, by name.
func Comparisons(t testing.TB) map[string]*compare.Comparison {
	t.Helper()
	clauses, err := compare.ParseClauses("p99 ttft slower by 5%, errors worse by 1%, p95 itl slower by 5%, p99 stall slower by 5%")
	if err != nil {
		t.Fatal(err)
	}
	newer := func(run *result.Run, _ int) {
		run.Target.Server = map[string]string{"engine": "vllm", "version": "0.12.0", "max_num_seqs": "256"}
		run.Environment.Stamps = "user"
	}
	all := map[string]*compare.Comparison{}
	addComparison := func(name string, o compare.Options, sides ...compare.Side) {
		o.Within = 0.05
		c, err := compare.Compare(sides, o)
		if err != nil {
			t.Fatal(err)
		}
		all[name] = c
	}
	addComparison("slower", compare.Options{Clauses: clauses}, LaunchSide("main", 6, 1, nil), LaunchSide("candidate", 5, 1.12, newer))
	p, err := compare.ParsePrimary("p99 ttft")
	if err != nil {
		t.Fatal(err)
	}
	addComparison("primary", compare.Options{Primary: p}, LaunchSide("main", 6, 1, nil), LaunchSide("candidate", 5, 1.12, newer))
	addComparison("primary-alike", compare.Options{Primary: p, Clauses: clauses[3:]}, LaunchSide("main", 3, 1, nil), LaunchSide("candidate", 3, 1.001, func(run *result.Run, i int) {
		run.Points[0].Metrics.SetSummary(metric.Stall, SummaryAround(20_000, 29.1+float64(i)))
	}))
	addComparison("equivalent", compare.Options{}, LaunchSide("a", 5, 1, nil), LaunchSide("b", 5, 1.001, nil))
	addComparison("overloaded", compare.Options{Clauses: clauses[:2]}, LaunchSide("main", 3, 1, func(run *result.Run, _ int) { run.Points[0].Stability = stat.Unstable }), LaunchSide("candidate", 3, 0.9, nil))
	own := func(run *result.Run, _ int) {
		s := run.Points[0].Metrics.SummaryOf(metric.TTFT)
		s.CI95 = map[string][2]float64{"p50": {0.95 * *s.P50, 1.06 * *s.P50}}
	}
	addComparison("single", compare.Options{}, LaunchSide("monday", 1, 1, own), LaunchSide("tuesday", 1, 1.3, own))
	addComparison("three", compare.Options{}, LaunchSide("a", 3, 1, nil), LaunchSide("b", 3, 1.3, nil))
	day := func(began string, factor float64, slowest int) func(*result.Run, int) {
		return func(run *result.Run, _ int) {
			o := &result.OverTime{Began: began, BlockS: 300, Metric: "ttft"}
			for k := range 12 {
				x := factor * (1 + .02*float64(k))
				if k == slowest {
					x *= 1.5
					o.Differ = []result.Differ{{Metric: "ttft", Slowest: k, P: 1e-6}}
				}
				p50, tpot := 90*x, 8.3*x
				o.Blocks = append(o.Blocks, result.Block{P50: &p50, TPOT: &tpot})
			}
			run.Points[0].OverTime = o
		}
	}
	addComparison("day", compare.Options{}, LaunchSide("a.example", 1, 1, day("2026-11-20T23:30:00+01:00", 1, 7)), LaunchSide("b.example", 1, 1.3, day("2026-11-21T23:42:00+01:00", 1.3, -1)))
	heavy := func(stability stat.Stability) func(*result.Run, int) { // a second load
		return func(run *result.Run, i int) {
			p, rate := run.Points[0], 64.
			p.Load.Rate, p.Stability = &rate, stability
			run.Points = append(run.Points, p)
			if i == 2 && stability != "stable" {
				run.Points[0].Verdict, run.Interrupted = result.Invalid, true
			}
		}
	}
	addComparison("unstable", compare.Options{Clauses: clauses[:1]}, LaunchSide("a", 6, 1, heavy("stable")), LaunchSide("b", 6, 1, heavy("unstable")))
	addComparison("many", compare.Options{}, LaunchSide("a", 5, 1, nil), LaunchSide("b", 5, 0.8, newer), LaunchSide("c|<b>", 5, 1.1, func(run *result.Run, _ int) { run.Target.Model = "another-model" }))
	searched := func(least, at, most, usd float64) func(*result.Run, int) {
		return func(run *result.Run, i int) {
			c := &result.Capacity{Over: "rate", SLO: "p99 ttft<500ms, p99 tpot<40ms", Why: result.Reason{Code: result.BudgetTooSmall}}
			c.Bounds = &result.Bounds{Level: 0.95}
			c.Load, c.Bracket, c.USDPerMGoodOutput = &least, &[2]*float64{&least, &most}, &usd
			if x := at * (1 + 0.01*float64(i%3)); at > 0 {
				c.Estimate, c.CI95, c.Binding, c.Why = &x, &[2]float64{0.95 * x, 1.04 * x}, "p99 tpot<40ms", result.Reason{}
			}
			if most == 0 {
				c.Load, c.Bracket, c.Bounds, c.USDPerMGoodOutput = nil, nil, nil, nil
			}
			if least < 0 {
				c.Floor = &result.Floor{Spec: "p99 ttft<500ms", Load: 0.1, Requests: 900, Violations: 40, Lower: 0.03, Allowed: 0.01}
			}
			run.Points, run.Capacity = nil, c
		}
	}
	addComparison("capacities", compare.Options{}, LaunchSide("4xa100", 1, 1, searched(0.75, 0.835, 0.95, 8.1)), LaunchSide("4xh100", 1, 1, searched(5.2, 5.72, 6, 2.66)))
	addComparison("capacity-bounds", compare.Options{}, LaunchSide("4xa100", 1, 1, searched(0.5, 0, 1.1, 8.1)), LaunchSide("4xh100", 1, 1, searched(3.3, 0, 8.72, 3.66)))
	addComparison("capacity-launches", compare.Options{}, LaunchSide("main", 4, 1, searched(20, 22, 24, 2.1)), LaunchSide("candidate", 4, 1, searched(24, 26, 28, 1.8)))
	addComparison("capacity-none", compare.Options{}, LaunchSide("a", 1, 1, searched(20, 22, 24, 2.1)), LaunchSide("b", 1, 1, searched(0, 0, 0, 0)))
	addComparison("capacity-floor", compare.Options{}, LaunchSide("a", 1, 1, searched(20, 22, 24, 2.1)), LaunchSide("b", 1, 1, searched(-1, 0, 0, 0)))
	service := func(run *result.Run, _ int) {
		m := &run.Points[0].Metrics
		m.SetSummary(metric.ServiceTTFT, m.SummaryOf(metric.TTFT))
		m.SetSummary(metric.ServiceE2E, m.SummaryOf(metric.E2E))
		m.SetSummary(metric.TPOTn1, m.SummaryOf(metric.TPOT))
	}
	addComparison("beside", compare.Options{Clauses: clauses[:2]}, toolSide("old|<i>\x1b[31m", "vllm bench serve", 81.2, 86.1), LaunchSide("new", 5, 1, service))
	addComparison("beside-three", compare.Options{}, LaunchSide("main", 5, 1, service), LaunchSide("new", 5, 1.2, service), toolSide("guide", "guidellm", 90))
	addComparison("others", compare.Options{}, toolSide("results/2026-10-01", "vllm bench serve", 81.2), toolSide("results/2026-11-01", "vllm bench serve", 93.4))
	return all
}

// toolSide are files of another tool with times around these, at the load of
// launches.
func toolSide(name, tool string, ttfts ...float64) compare.Side {
	s := compare.Side{Name: name}
	around := func(x float64, what string) *tools.Summary {
		return &tools.Summary{What: what, Mean: floatPointer(1.04 * x), Percentiles: map[string]float64{"p50": x, "p99": 1.9 * x}}
	}
	for i, x := range ttfts {
		r := &tools.Result{Tool: tool, Version: "0.11", File: fmt.Sprintf("%s/%d.json", name, i), Model: "meta-llama/Llama-3.1-8B-Instruct", Dataset: "random|\x07", Points: []tools.Point{{
			Rate: floatPointer(4.5), OK: floatPointer(600 + x), Failed: floatPointer(3), RequestsPerS: floatPointer(4.4), OutputTokensPerS: floatPointer(6e4 / x), GoodPerS: floatPointer(4),
			TTFT: around(x, "from sent"), TPOT: around(x/10, "it includes TTFT"), ITL: around(x/10, "gaps between events"),
		}}}
		if i > 0 {
			r.Version, r.Notes = "0.12", []string{"the file is cut off: its last result is missing"}
		}
		s.Others = append(s.Others, r)
	}
	return s
}
