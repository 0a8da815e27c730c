package page

import (
	"math"
	"slices"

	"pitot/internal/report"
	"pitot/internal/results/metric"
	"pitot/internal/results/result"
	"pitot/internal/say"
	"pitot/internal/stats"
)

// costCharts show what tokens cost at each load: against the latency that is paid for
// with it, and over load; and the energy that they take.
func costCharts(run *result.Run) []*chart {
	order, at := loadsOf(run)
	over := axisFromZero("Load", run.Points[0].Load.Unit())
	usd := logAxis("Cost", "$ per M output tokens")
	within := windowValues(run, order, metric.GoodOutputCost)
	for n, i := range order {
		if p := &run.Points[i]; p.SLO == nil || p.SLO.Met != result.Yes {
			within[n] = math.NaN()
		}
	}
	loads := &chart{ID: "cost-load", Title: "Cost over load", X: over, Y: usd,
		Note: "All that is paid, by the output tokens; within the SLO by those of good requests, where it was met.",
		Series: []drawn{
			{Name: "all output", Kind: "line", Tone: 1, X: at, Y: windowValues(run, order, metric.OutputCost)},
			{Name: "within the SLO", Kind: "line", Tone: 3, X: at, Y: within},
		}}
	energy := &chart{ID: "energy-load", Title: "Energy over load", X: over, Y: logAxis("Energy", "J per output token"),
		Note:   "What the GPUs drew, by the output tokens.",
		Series: []drawn{{Name: "all output", Kind: "line", Tone: 1, X: at, Y: windowValues(run, order, metric.OutputEnergy)}}}
	list := drawableCharts(frontOfCost(run, usd), loads, energy)
	if len(list) == 1 {
		list[0].Wide = true
	}
	return list
}

// frontOfCost shows what a lower latency costs: the loads that no other is better than in
// both, and which of all met the SLO.
func frontOfCost(run *result.Run, usd axis) *chart {
	name, key, limits := latencyPaid(run)
	m := metric.All().Find(name)
	c := &chart{ID: "cost-latency", Title: "Cost against " + key + " " + m.Label, Labels: true, X: axisFromZero(key+" "+m.Label, string(m.Unit)), Y: usd,
		Note: "Down and to the left is better: on the front no other load is better in both. The number next to each dot is its load."}
	c.Marks = limitMarks("x", limits...)
	type place struct {
		x, y float64
		load string
		met  result.Met
		few  bool
	}
	var all []place
	overLoad := run.Points[0].Load.Over()
	for _, i := range run.ByLoad() {
		p := &run.Points[i]
		s := p.Metrics.SummaryOf(name)
		x := s.Value(key)
		if x == nil || i == run.UnderWay() || p.Cost == nil || p.Cost.USDPerMOutput == nil || p.Stability == stats.Unstable {
			continue
		}
		one := place{x: *x, y: *p.Cost.USDPerMOutput, load: say.Decimal(p.Load.Value(), 3) + report.LoadSuffix(overLoad), few: slices.Contains(s.Few, key)}
		if p.SLO != nil {
			one.met = p.SLO.Met
		}
		all = append(all, one)
	}
	var gain, cost []float64
	for _, p := range all {
		gain, cost = append(gain, -p.x), append(cost, p.y)
	}
	front := drawn{Name: "front", Kind: "line", Tone: 1, Faint: true, Plain: true}
	for _, i := range stats.Pareto(gain, cost) {
		front.addPoint(all[i].x, all[i].y)
	}
	c.Series = []drawn{front}
	for _, s := range []struct {
		met         result.Met
		name        string
		tone, shape int
	}{{result.Yes, "met the SLO", 3, 0}, {result.Undecided, "undecided", 5, 2}, {result.No, "missed the SLO", 2, 1}, {"", "loads", 1, 0}} {
		d := drawn{Name: s.name, Kind: "dots", Tone: s.tone, Shape: s.shape}
		for _, p := range all {
			if p.met == s.met {
				d.addSample(p.x, p.y, p.few)
				d.Labels = append(d.Labels, p.load)
			}
		}
		if len(d.X) > 0 {
			c.Series = append(c.Series, d)
		}
	}
	if c.hasFew() {
		c.Note += hollowLegend
	}
	return c
}

// latencyPaid is the latency that a run is judged by, with its limits: the first that the
// SLO limits and that most loads have, else the p99 of TTFT, of answers that are not
// streamed E2E.
func latencyPaid(run *result.Run) (name metric.Name, key string, limits []result.Limit) {
	known := func(name metric.Name, key string) bool {
		n := 0
		for i := range run.Points {
			if run.Points[i].Metrics.SummaryOf(name).Value(key) != nil {
				n++
			}
		}
		return n > 1
	}
	for i := range run.Points {
		s := run.Points[i].SLO
		if s == nil {
			continue
		}
		for _, l := range s.Limits {
			m := metric.All().Find(l.Metric)
			if m == nil || !m.HasPercentiles() {
				continue
			}
			key := "p99"
			for _, p := range metric.Percentiles() {
				if math.Abs(100*p.P-l.Percentile) < 1e-9 {
					key = p.Key
				}
			}
			if known(m.Name, key) {
				return m.Name, key, limitsOn(m.Name, s.Limits)
			}
		}
	}
	for _, name := range []metric.Name{metric.TTFT, metric.E2E} {
		for _, key := range []string{"p99", "p95", "p50"} {
			if known(name, key) {
				return name, key, nil
			}
		}
	}
	return metric.E2E, "p50", nil
}
