package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"pitot/internal/results/metric"
	"pitot/internal/results/result"
	"pitot/internal/say"
	"pitot/internal/stats"
)

// How far the numbers of a point may be trusted to stand for its load:
// whether it was in balance, and how wide their intervals are.

// stabilityText is the stability as the headline has it; the outcome says what is
// unstable, and a remark what is undecided.
func stabilityText(p *result.Point) string {
	switch {
	case p.Stability != stats.Stable, p.NotKeptUp(), shortOfHalf(p): // its check says that less ends than comes
		return ""
	case p.Load.Loop == "closed":
		return "stable by construction"
	}
	if above, ok := stats.MissedOverload(float64(p.Requests.Due)); ok && above < 1 {
		return fmt.Sprintf("queue stable (an overload of %.0f %% may not show)", math.Ceil(100*above))
	}
	return "queue stable (too few requests to show an overload)"
}

// addBacklog says what would tell whether a load was in balance, or how it was
// not: by the course of what was in flight.
func (m *PointModel) addBacklog(p *result.Point) {
	if p.EndedEarly {
		m.Remarks.addFormat("hopeless, ended early after %.3g s: %s", p.Seconds.Window, ReasonText(p.StabilityWhy))
	}
	if s := p.Standstills; s != nil {
		m.Remarks.addText(standsStill(s))
	}
	switch e2e := p.Metrics.SummaryOf(metric.E2E); {
	case p.Load.HasVaryingRate(): // said of the arrivals
	case p.Stability == stats.Undecided && !p.StabilityWhy.IsNone():
		m.Remarks.addText("stability undecided: " + ReasonText(p.StabilityWhy))
	case p.Stability == stats.Unstable && p.Growth != nil:
		m.addCourse(p, fmt.Sprintf("%s more in flight each minute; ", say.Quantity(60*p.Growth.PerS)))
	case e2e != nil && !e2e.NoSteadyState().IsNone():
		m.addCourse(p, "in flight, ")
	}
}

// standsStill says that all streams do, by the clock.
func standsStill(s *result.Standstills) string {
	return fmt.Sprintf("all streams stood still for %s ms every %s s, %s times: something stops the server, its machine or this one, by the clock", say.Quantity(s.ForMS), say.Decimal(s.EveryS, 3), say.Count(s.N))
}

// addStopRule says how a window came out that was to last until a value is known well
// enough.
func (m *PointModel) addStopRule(p *result.Point) {
	u := p.Until
	if u == nil {
		return
	}
	spec := strings.ReplaceAll(u.Spec, "+-", "±")
	text := "target not reached: " + spec
	if u.Reached {
		text = "target reached: " + spec
	}
	text += ", " + say.Plural(u.Looks, "look")
	if h := u.HalfWidthPercent; h != nil {
		text += fmt.Sprintf(", the last ±%.3g %%", *h)
	}
	if !u.Why.IsNone() {
		text += ": " + ReasonText(u.Why)
	}
	m.Remarks.addText(text + " (a rule for stopping, not a 95 % interval)")
}

func (m *PointModel) addCourse(p *result.Point, what string) {
	if len(p.InFlight) == 0 {
		return
	}
	var blocks []string
	for _, n := range p.InFlight {
		blocks = append(blocks, say.Quantity(n))
	}
	m.Remarks.addFormat("%smeans of %s each: %s", what, say.Seconds(p.Seconds.Window/float64(len(blocks))), strings.Join(blocks, ", "))
}

// addIntervalTable are a table of their own, and the reason for those that there are
// not is given once.
func (m *PointModel) addIntervalTable(p *result.Point, lines []line) {
	keys := slices.DeleteFunc(metric.Percentiles(), func(c metric.Percentile) bool {
		return !slices.ContainsFunc(lines, func(l line) bool { return l.summary.CI95[c.Key] != [2]float64{} })
	})
	keys = append(keys, metric.Percentile{Key: metric.Mean, Name: metric.Mean})
	t := &Table{Head: []string{"95 % interval"}}
	for _, c := range keys {
		t.Head = append(t.Head, c.Name)
	}
	addRow := func(name string, of map[string][2]float64, write func(float64) string) {
		row, any := []string{name}, false
		for _, c := range keys {
			text := ""
			if v, ok := of[c.Key]; ok {
				text, any = write(v[0])+"–"+write(v[1]), true
			}
			row = append(row, text)
		}
		if any {
			t.AddRow(row...)
		}
	}
	for _, l := range lines {
		if !l.view {
			addRow(l.name, l.summary.CI95, say.Quantity)
		}
	}
	rate := func(name, key string) {
		if v, ok := p.Throughput.CI95[key]; ok {
			addRow(name, map[string][2]float64{"mean": v}, say.Quantity)
		}
	}
	rate("requests/s", "requests_per_s")
	rate("output tok/s", "output_tokens_per_s")
	if s := p.SLO; s != nil && s.CI95 != nil {
		addRow("SLO attained", map[string][2]float64{"mean": *s.CI95}, say.Percent)
	}
	if len(t.Rows) > 0 {
		m.Intervals = t
	}
	m.withoutInterval(p, lines)
}

// withoutInterval says why there is none: of the point, or of the percentiles
// that the table shows.
func (m *PointModel) withoutInterval(p *result.Point, lines []line) {
	e2e := p.Metrics.SummaryOf(metric.E2E)
	switch {
	case e2e != nil && !e2e.NoSteadyState().IsNone(): // which is why there are no intervals either
		return
	case m.Intervals == nil:
		why := p.Throughput.NoInterval
		for _, l := range lines {
			if why.IsNone() {
				why = l.summary.NoInterval["p50"]
			}
		}
		if !why.IsNone() {
			m.Legend.addText("no intervals: " + ReasonText(why))
		}
		return
	}
	m.noIntervalOf(lines, func(l line, key string) string {
		if key == metric.Mean && !l.view && l.summary.NoInterval[key].Code != result.GapsDepend {
			return l.name
		}
		return ""
	})
	m.noIntervalOf(lines, func(l line, key string) string {
		if name := percentileName(key); l.summary.NoInterval[metric.Mean].IsNone() && !slices.Contains(m.Intervals.Head, name) {
			return name
		}
		return ""
	})
}

// noIntervalOf gives the first reason of values that have no interval, with the names of all
// that have it; those without a name are left out.
func (m *PointModel) noIntervalOf(lines []line, name func(l line, key string) string) {
	var names []string
	var why result.Reason
	for _, c := range append(metric.Percentiles(), metric.Percentile{Key: metric.Mean, Name: metric.Mean}) {
		for _, l := range lines {
			r := l.summary.NoInterval[c.Key]
			if r.IsNone() || l.summary.Value(c.Key) == nil || !why.IsNone() && r != why {
				continue
			}
			if x := name(l, c.Key); x != "" && !slices.Contains(names, x) {
				names, why = append(names, x), r
			}
		}
	}
	if len(names) > 0 {
		m.Legend.addText("no interval of " + strings.Join(names, ", ") + ": " + ReasonText(why))
	}
}
