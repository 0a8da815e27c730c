package report

import (
	"cmp"
	"strings"

	"pitot/internal/results/metric"
	"pitot/internal/results/result"
	"pitot/internal/say"
)

// Number is a value with its interval, where there is room for few.
type Number struct {
	Name, Value, Unit string
	Note              string      // the interval, or why there is none
	At                float64     // the value, where it has an interval
	CI95              *[2]float64 // nil without a valid interval

	key string // in the medians of repeats
}

// Numbers are the most quoted numbers of a run, at most four. Load names the load that they were
// measured at, "" where there is none.
func (m *Model) Numbers() (load string, list []Number) {
	run := m.Run
	if usersSentence(run) != "" {
		return "", numbersOfUsers(run)
	}
	p := quotedPoint(run)
	if p != nil {
		load = loadName(p)
	}
	switch {
	case run.Capacity != nil:
		list = append(list, capacityNumber(run.Capacity))
	case run.Curve != nil:
		list = append(list, curveNumber(run)...)
	}
	if p != nil {
		t := &p.Throughput
		if n := failedNumber(p); n != nil {
			list = append(list, *n)
		}
		list = append(list, latencyNumbers(p)...)
		list = append(list, rateNumber("Output", metric.OutputRate, t.OutputTokensPerS, p))
		if g := goodputOfPoint(p); g != nil {
			n := withInterval("Goodput", "req/s", g.RequestsPerS, nil)
			n.Note, n.key = "within the SLO", metric.All().Find(metric.Goodput).Key
			list = append(list, n)
		} else {
			list = append(list, rateNumber("Completed", metric.RequestRate, t.RequestsPerS, p))
		}
	}
	list = list[:min(len(list), 4)]
	for i := range list {
		n := &list[i]
		if r := run.Repeats; r != nil {
			n.takeRepeats(r)
		}
		if run.Verdict == result.Invalid || p != nil && p.Verdict == result.Invalid {
			*n = Number{Name: n.Name, Value: say.Unknown, Note: "withheld: INVALID"}
		}
	}
	return load, list
}

// quotedPoint returns the point whose numbers are quoted: of a search that at the load to quote, of
// a sweep that at the highest load within the SLO or with the most throughput, nil for none.
func quotedPoint(run *result.Run) (p *result.Point) {
	var load *float64
	switch {
	case len(run.Points) == 0:
		return nil
	case run.Capacity != nil:
		if load = highestWithinSLO(run.Capacity); load == nil && run.Capacity.Verified != nil {
			load = &run.Capacity.Verified.Load
		}
	case run.Curve != nil:
		if load, _ = SLOBoundary(run); load == nil && run.Curve.Saturation != nil {
			load = &run.Curve.Saturation.Load
		}
	default:
		return &run.Points[0]
	}
	for i := range run.Points {
		x := &run.Points[i]
		if load == nil || x.Load.Value() != *load {
			continue
		}
		if x.Verdict == result.Invalid || i == run.UnderWay() {
			continue
		}
		if p == nil || x.Requests.Due > p.Requests.Due {
			p = x
		}
	}
	return p
}

// capacityNumber is the load that a search found. An interval is of the estimate, so that a
// verified load has none.
func capacityNumber(c *result.Capacity) Number {
	n := Number{Name: "Capacity", Value: say.Unknown, Unit: result.LoadUnit(c.Over)}
	if asked := c.Asked(); asked != nil {
		n.Name = map[result.Met]string{
			result.Yes: "SLO met at", result.No: "SLO missed at", result.Undecided: "SLO undecided at",
		}[c.AskedMet()]
		n.Value, n.Note = say.Quantity(*asked), "the load of --at"
		return n
	}
	switch least := highestWithinSLO(c); {
	case least != nil:
		n.Name, n.Value, n.Note = "Capacity, at least", say.Quantity(*least), "95 % sure"
		if c.Load != nil && *c.Load == *least {
			n.Name = "Capacity, verified"
		}
		if c.Estimate != nil && c.CI95 != nil {
			n.Note = "estimate " + say.Quantity(*c.Estimate) + " (" + fromTo(*c.CI95) + ")"
		}
	case c.Estimate != nil && c.CI95 != nil:
		return withInterval("Capacity, not verified", n.Unit, *c.Estimate, c.CI95)
	case c.Bracket != nil && c.Bracket[1] != nil:
		n.Name, n.Value, n.Note = "Capacity, at most", say.Quantity(*c.Bracket[1]), "95 % sure"
	default:
		n.Unit, n.Note = "", "no bound is 95 % sure"
	}
	return n
}

// curveNumber is the load that a sweep is quoted for, if there is one.
func curveNumber(run *result.Run) []Number {
	c := run.Curve
	unit := result.LoadUnit(c.Over)
	met, missed := SLOBoundary(run)
	switch s := c.Saturation; {
	case met != nil:
		note := "the highest load"
		if missed != nil {
			note = "missed at " + say.Decimal(*missed, 3)
		}
		load := say.Decimal(*met, 3)
		return []Number{{Name: "SLO met up to", Value: load, Unit: unit, Note: note}}
	case s != nil:
		return []Number{withInterval("Saturation", "req/s", s.RequestsPerS, s.CI95)}
	case c.Knee != nil:
		return []Number{{Name: "Knee", Value: say.Quantity(c.Knee.Load), Unit: unit}}
	}
	return nil
}

// failedNumber is the share of requests that failed, where the server did.
func failedNumber(p *result.Point) *Number {
	r := &p.Requests
	if p.Outcome != result.Failing && p.Outcome != result.Degraded || r.Failed == 0 || r.Due == 0 {
		return nil
	}
	n := &Number{Name: "Failed requests", Value: say.Percent(float64(r.Failed) / float64(r.Due))}
	if classes := ByCount(r.Errors); len(classes) > 0 {
		n.Note = say.Count(r.Errors[classes[0]]) + " " + classes[0]
	}
	return n
}

// latencyNumbers are a percentile of TTFT and one of TPOT, or one of E2E where there is neither.
func latencyNumbers(p *result.Point) (list []Number) {
	names := []metric.Name{metric.TTFT, metric.TPOT}
	if p.Metrics.SummaryOf(metric.TTFT) == nil && p.Metrics.SummaryOf(metric.TPOT) == nil {
		names = []metric.Name{metric.E2E}
	}
	for _, name := range names {
		d, s := metric.All().Find(name), p.Metrics.SummaryOf(name)
		key, limit := limitedPercentile(p.SLO, name)
		if key == "" {
			key = QuotedPercentile(s)
		}
		n := Number{Name: d.Label + " " + percentileName(key), Unit: string(d.Unit)}
		n.Value = cellText(s, key)
		if limit > 0 {
			n.Name += ", limit " + say.Exact(limit) + " ms"
		}
		switch caveatOf(s, key) {
		case fewSamples:
			n.Note = "few samples, no interval"
		case atLeast:
			n.Note = "at least: some were cut off"
		case absent:
			n.Unit, n.Note = "", "withheld: too few samples"
			if s == nil {
				n.Note = "not known"
			} else if !s.NoSteadyState().IsNone() {
				n.Note = "withheld: no steady state"
			}
		default:
			n = withInterval(n.Name, n.Unit, *s.Value(key), nil)
			if ci, ok := s.CI95[key]; ok {
				n = withInterval(n.Name, n.Unit, *s.Value(key), &ci)
			}
		}
		n.key = d.Key + "." + key
		list = append(list, n)
	}
	return list
}

// QuotedPercentile returns the key of the percentile that is quoted of a summary where no SLO names
// one: the 99th, or the median where the 99th is withheld.
func QuotedPercentile(s *result.Summary) string {
	if caveatOf(s, "p99") == absent && caveatOf(s, "p50") != absent {
		return "p50"
	}
	return "p99"
}

// rateNumber is a rate of the window.
func rateNumber(name string, of metric.Name, x *float64, p *result.Point) (n Number) {
	d := metric.All().Find(of)
	if x == nil {
		why := cmp.Or(ReasonText(p.Throughput.Why), "not known")
		return Number{Name: name, Value: say.Unknown, Note: why, key: d.Key}
	}
	n = withInterval(name, string(d.Unit), *x, nil)
	if ci, ok := p.Throughput.CI95[d.FieldName()]; ok {
		n = withInterval(name, string(d.Unit), *x, &ci)
	}
	n.key = d.Key
	return n
}

// withInterval is a number with its interval, nil for none.
func withInterval(name, unit string, x float64, ci *[2]float64) Number {
	n := Number{Name: name, Value: say.Quantity(x), Unit: unit, Note: "no interval"}
	if ci != nil {
		n.Note, n.At, n.CI95 = "95 %: "+fromTo(*ci), x, ci
	}
	return n
}

// takeRepeats makes a number of the first repeat the median of all, with their range.
func (n *Number) takeRepeats(r *result.Repeated) {
	n.CI95 = nil
	x, ok := r.Median[n.key]
	if !ok {
		n.Value, n.Unit, n.Note = say.Unknown, "", "not known of all repeats"
		return
	}
	few := strings.HasPrefix(n.Value, "~")
	if n.Value = say.Quantity(x); few {
		n.Value = "~" + n.Value
	}
	n.Note = say.Plural(len(r.Points), "repeat") + ": " + fromTo(r.Spread[n.key])
}

// MeasurementText says in a line what the measurement itself is worth. It says nothing about the
// server.
func (m *Model) MeasurementText() string {
	if m.Overview != nil {
		return m.Overview.measurementText(m.Run)
	}
	if len(m.Points) == 0 {
		return string(m.Run.Verdict)
	}
	p := m.Points[0]
	p.Verdict = m.Run.Verdict
	fact := p.measurementFact(&m.Run.Points[0])
	return strings.Join(nonEmpty(fact.Value...), " · ")
}

// SummaryOfLimit returns the distribution that a limit is about.
func SummaryOfLimit(p *result.Point, l *result.Limit) *result.Summary {
	if l.Class == "" {
		return p.Metrics.SummaryOf(l.Metric)
	}
	class := p.Classes[l.Class]
	return class.Metrics.SummaryOf(l.Metric)
}
