package card

import (
	"math"
	"slices"
	"strings"

	"pitot/internal/report"
	"pitot/internal/results/metric"
	"pitot/internal/results/result"
	"pitot/internal/say"
)

// Curve is the small chart of a card: a latency against load, or its percentiles.
type Curve struct {
	Title  string
	XUnit  string
	Dots   []Dot
	Labels []string    // below the dots, in place of loads
	Limit  float64     // of the SLO, 0 for none
	Mark   float64     // load that was verified or is the highest within the SLO, 0 for none
	Name   string      // of the mark
	Band   *[2]float64 // interval of an estimate
	Absent string      // why there is nothing to draw
}

// Dot is a value of a curve.
type Dot struct {
	X, Y float64
	CI95 *[2]float64
	Few  bool // it rests on few samples
}

// newCurve returns the curve of a run.
func newCurve(run *result.Run) (c Curve) {
	if run.Verdict == result.Invalid || len(run.Points) == 0 {
		return Curve{Absent: "No curve: the measurement is INVALID."}
	}
	limit := decidingLimit(run)
	d := metric.All().Find(limit.Metric)
	unit := " (" + string(d.Unit) + ")"
	if isDrawable(limit.Limit) {
		c.Limit = limit.Limit
	}
	if run.Capacity == nil && run.Curve == nil {
		c.Title = className(limit) + d.Label + " by percentile" + unit
		c.addPercentiles(report.SummaryOfLimit(&run.Points[0], limit))
	} else {
		c.addLoads(run, limit)
		key := keyOf(limit.Percentile)
		percentile := strings.Replace(key, "_", ".", 1)
		c.Title = className(limit) + percentile + " " + d.Label + " by load" + unit
		c.XUnit = run.Points[0].Load.Unit()
	}
	if len(c.Dots) < 2 {
		c.Dots, c.Absent = nil, "No curve: too few values are known."
	}
	return c
}

// className begins the title of a limit on a class.
func className(l *result.Limit) string {
	if l.Class == "" {
		return ""
	}
	return say.Truncate(say.PlainLine(l.Class), 16) + ": "
}

// keyOf returns the key of a percentile in percent.
func keyOf(percentile float64) string {
	for _, p := range metric.Percentiles() {
		if math.Abs(100*p.P-percentile) < 1e-9 {
			return p.Key
		}
	}
	return "p99"
}

// decidingLimit returns the limit of an SLO that a curve shows: the one that is reached first.
// Without an SLO it has no value, the first metric that there is and its quoted percentile.
func decidingLimit(run *result.Run) *result.Limit {
	binding := ""
	if run.Capacity != nil {
		binding = run.Capacity.Binding
	} else if run.Curve != nil && run.Curve.Crossing != nil {
		binding = run.Curve.Crossing.Binding
	}
	var chosen *result.Limit
	worst := -1.
	for i := range run.Points {
		p := &run.Points[i]
		if p.SLO == nil {
			continue
		}
		for k := range p.SLO.Limits {
			l := &p.SLO.Limits[k]
			d := metric.All().Find(l.Metric)
			if d == nil || d.Unit != metric.Milliseconds || l.Percentile == 0 {
				continue
			}
			if l.Spec == binding {
				return l
			}
			ratio := 0.
			if l.Value != nil && l.Limit > 0 && len(run.Points) == 1 {
				ratio = *l.Value / l.Limit
			}
			if ratio > worst {
				worst, chosen = ratio, l
			}
		}
	}
	if chosen != nil {
		return chosen
	}
	of := metric.TTFT
	if run.Points[0].Metrics.SummaryOf(of) == nil {
		of = metric.E2E
	}
	percentile := 99.
	if report.QuotedPercentile(run.Points[0].Metrics.SummaryOf(of)) == "p50" {
		percentile = 50
	}
	return &result.Limit{Metric: of, Percentile: percentile}
}

// addPercentiles adds the percentiles of a distribution that are known.
func (c *Curve) addPercentiles(s *result.Summary) {
	if s == nil || !s.NoSteadyState().IsNone() {
		return
	}
	for _, p := range metric.Percentiles() {
		if c.addDot(float64(len(c.Dots)), s, p.Key) {
			c.Labels = append(c.Labels, p.Name)
		}
	}
}

// addDot adds a percentile if it is known, and reports whether it is.
func (c *Curve) addDot(x float64, s *result.Summary, key string) bool {
	y := s.Value(key)
	if y == nil || !isDrawable(*y) {
		return false
	}
	if _, cut := s.Over[key]; cut {
		return false
	}
	dot := Dot{X: x, Y: *y, Few: slices.Contains(s.Few, key)}
	if ci, ok := s.CI95[key]; ok && !dot.Few && isDrawable(ci[0]) && isDrawable(ci[1]) {
		dot.CI95 = &ci
	}
	c.Dots = append(c.Dots, dot)
	return true
}

// isDrawable reports whether a value has a place on an axis.
func isDrawable(v float64) bool { return v > 1e-9 && v < 1e15 }

// addLoads adds the loads of a search or a sweep, and marks the one to quote.
func (c *Curve) addLoads(run *result.Run, limit *result.Limit) {
	requests := 0
	for _, i := range run.ByLoad() {
		p := &run.Points[i]
		if n := len(c.Dots); n > 0 && c.Dots[n-1].X == p.Load.Value() { // the longer window counts
			if p.Requests.Due < requests {
				continue
			}
			c.Dots = c.Dots[:n-1]
		}
		requests = p.Requests.Due
		s := report.SummaryOfLimit(p, limit)
		whole := p.Verdict != result.Invalid && i != run.UnderWay() && isDrawable(p.Load.Value())
		if whole && s != nil && s.NoSteadyState().IsNone() {
			c.addDot(p.Load.Value(), s, keyOf(limit.Percentile))
		}
	}
	if k := run.Capacity; k != nil {
		if b := k.CI95; b != nil && isDrawable(b[0]) && isDrawable(b[1]) {
			c.Band = b
		}
		if k.Load != nil && isDrawable(*k.Load) {
			c.Mark, c.Name = *k.Load, "verified"
		}
		return
	}
	if met, _ := report.SLOBoundary(run); met != nil && isDrawable(*met) {
		c.Mark, c.Name = *met, "SLO met"
	}
}
