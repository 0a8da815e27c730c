package page

import (
	"cmp"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"pitot/internal/report"
	"pitot/internal/results/metric"
	"pitot/internal/results/record"
	"pitot/internal/results/result"
	"pitot/internal/say"
	"pitot/internal/stats"
)

// A chart is what page.js draws, and what the table behind it and its CSV hold.
// The script knows marks and axes, and nothing of what they mean.
type chart struct {
	ID     string  `json:"-"`
	Title  string  `json:"title"`
	Note   string  `json:"-"`              // how to read it
	Kind   string  `json:"kind,omitempty"` // "" for lines and dots, else "heat", "traces" or "rows"
	X      axis    `json:"x"`
	Y      axis    `json:"y"`
	Series []drawn `json:"series,omitempty"`
	Marks  []mark  `json:"marks,omitempty"`
	Group  string  `json:"group,omitempty"`  // charts that zoom together
	Low    bool    `json:"low,omitempty"`    // a strip of a stack
	Shown  numbers `json:"shown,omitempty"`  // from where to where on the x axis it opens; a button has the whole
	Labels bool    `json:"labels,omitempty"` // each value has its label next to it
	Wide   bool    `json:"-"`
	Heat   *Heat   `json:"heat,omitempty"`
	Traces *traces `json:"traces,omitempty"`
	Rows   []row   `json:"rows,omitempty"`
}

type axis struct {
	Name  string   `json:"name"`
	Unit  string   `json:"unit,omitempty"`
	Scale string   `json:"scale,omitempty"` // "" linear, "log", "odds": log(share ÷ (1 − share)), "change": log(1 + percent ÷ 100), or "points": linear and signed
	Min   *float64 `json:"min,omitempty"`
	Max   *float64 `json:"max,omitempty"`
}

// axisFromZero is an axis that begins at 0.
func axisFromZero(name, unit string) axis { return axis{Name: name, Unit: unit, Min: new(float64)} }

// logAxis is an axis of logarithms.
func logAxis(name, unit string) axis { return axis{Name: name, Unit: unit, Scale: "log"} }

// shareAxis is an axis of percents of all.
func shareAxis(name string) axis {
	return axis{Name: name, Unit: "%", Min: new(float64), Max: new(100.0)}
}

// drawn is one series of a chart.
type drawn struct {
	Name   string   `json:"name"`
	Kind   string   `json:"kind"` // "line", "step", "dots", "bars"
	Tone   int      `json:"tone"` // colour, from 1
	X      numbers  `json:"px"`
	Y      numbers  `json:"py"`
	Lo     numbers  `json:"lo,omitempty"` // of an interval around Y, or around X of a distribution
	Hi     numbers  `json:"hi,omitempty"`
	Labels []string `json:"labels,omitempty"`
	Few    []int    `json:"few,omitempty"`   // places of values that rest on few samples: drawn hollow
	Dash   int      `json:"dash,omitempty"`  // its pattern, 0 for none
	Shape  int      `json:"shape,omitempty"` // of dots: 0 round, 1 a cross, 2 a diamond
	Faint  bool     `json:"faint,omitempty"` // the line; its points are not
	Plain  bool     `json:"plain,omitempty"` // a line without points
	Aside  bool     `json:"aside,omitempty"` // dots behind the others, which have no name in the key
}

// row is one of those of a forest plot: a value with its interval.
type row struct {
	Name   string      `json:"name"`
	At     float64     `json:"at"`
	Lo     *float64    `json:"lo,omitempty"`
	Hi     *float64    `json:"hi,omitempty"`
	Band   *[2]float64 `json:"band,omitempty"` // where values are as good as none
	Dots   numbers     `json:"dots,omitempty"` // what the value is of
	Labels []string    `json:"labels,omitempty"`
	Look   string      `json:"look"`           // classes: a tone, or "good", "bad", "open" and "same" of a verdict; "few" besides
	Text   string      `json:"text"`           // the value
	Word   string      `json:"word,omitempty"` // the text next to it
	Say    []string    `json:"say,omitempty"`  // more, to whoever points at it
}

// mark is a line or a region across a chart.
type mark struct {
	Axis string   `json:"axis"` // "x" or "y"
	At   float64  `json:"at"`
	To   *float64 `json:"to,omitempty"`   // a region
	Open bool     `json:"open,omitempty"` // a region without end
	Name string   `json:"name"`
	Tone int      `json:"tone"` // 0 grey
}

// numbers are a list in which what is not known is null.
type numbers []float64

func (n numbers) MarshalJSON() ([]byte, error) {
	b := make([]byte, 0, 8*len(n)+2)
	b = append(b, '[')
	for i, x := range n {
		if i > 0 {
			b = append(b, ',')
		}
		if math.IsNaN(x) || math.IsInf(x, 0) {
			b = append(b, "null"...)
		} else {
			b = strconv.AppendFloat(b, x, 'f', -1, 64)
		}
	}
	return append(b, ']'), nil
}

func (n numbers) anyKnown() bool {
	return slices.ContainsFunc(n, func(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) })
}

// orNaN is a value that may not be known.
func orNaN(x *float64) float64 {
	if x == nil {
		return math.NaN()
	}
	return *x
}

// drawableCharts leaves out charts of which nothing is known.
func drawableCharts(list ...*chart) (out []*chart) {
	for _, c := range list {
		if c == nil {
			continue
		}
		c.Series = slices.DeleteFunc(c.Series, func(d drawn) bool { return !d.Y.anyKnown() || !d.X.anyKnown() })
		if len(c.Series) > 0 || len(c.Rows) > 0 || c.Heat != nil && c.Heat.NX > 0 || c.Traces != nil && len(c.Traces.List) > 0 {
			out = append(out, c)
		}
	}
	return out
}

// addPoint adds a value to a series, at its place x.
func (d *drawn) addPoint(x, y float64) { d.X, d.Y = append(d.X, x), append(d.Y, y) }

// addSample adds a value that may rest on few samples.
func (d *drawn) addSample(x, y float64, few bool) {
	if few && !math.IsNaN(y) {
		d.Few = append(d.Few, len(d.X))
	}
	d.addPoint(x, y)
}

// loadAxis is the axis of some loads, in order: of their logarithm where they lie far apart.
func loadAxis(unit string, loads []float64) axis {
	if n := len(loads); n > 2 && loads[0] > 0 && loads[n-1]/loads[0] > 60 {
		return logAxis("Load", unit)
	}
	return axisFromZero("Load", unit)
}

// hasFew says that some value of the chart rests on few samples.
func (c *chart) hasFew() bool {
	return slices.ContainsFunc(c.Series, func(d drawn) bool { return len(d.Few) > 0 }) ||
		slices.ContainsFunc(c.Rows, func(r row) bool { return strings.HasSuffix(r.Look, fewLook) })
}

// hollowLegend explains how such values are drawn.
const hollowLegend = " Hollow: few samples."

// fewLook is the class of a row whose value rests on few samples.
const fewLook = " few"

// limitsOn are those of a metric.
func limitsOn(name metric.Name, limits []result.Limit) []result.Limit {
	return slices.DeleteFunc(slices.Clone(limits), func(l result.Limit) bool { return l.Metric != name })
}

// limitMarks are lines across an axis at limits, one for all that are at one
// place.
func limitMarks(axis string, limits ...result.Limit) (marks []mark) {
	names := map[string]bool{}
	for _, l := range limits {
		name := say.PlainLine(l.Spec)
		if names[name] {
			continue
		}
		names[name] = true
		if i := slices.IndexFunc(marks, func(m mark) bool { return m.At == l.Limit }); i >= 0 {
			marks[i].Name += ", " + name
			continue
		}
		marks = append(marks, mark{Axis: axis, At: l.Limit, Name: name, Tone: 4})
	}
	return marks
}

// loadsOf are the points of a run by load, and the loads, without one that was cut short.
func loadsOf(run *result.Run) (order []int, at numbers) {
	cut := run.UnderWay()
	order = slices.DeleteFunc(run.ByLoad(), func(i int) bool { return i == cut })
	for _, i := range order {
		at = append(at, run.Points[i].Load.Value())
	}
	return order, at
}

// loadUnit is the unit of the loads of a run.
func loadUnit(run *result.Run) string {
	if run.Points[0].Load.Concurrency != nil {
		return "users"
	}
	return "req/s"
}

// toneOf is the colour of a metric, the same in all charts.
func toneOf(name metric.Name) int {
	switch name {
	case metric.TTFT:
		return 1
	case metric.TPOT:
		return 2
	case metric.ICL:
		return 3
	case metric.Stall:
		return 4
	case metric.E2E:
		return 6
	}
	return 5
}

// limitTone is the colour of a limit of a search: that of its metric.
func limitTone(run *result.Run, spec string) int {
	for i := range run.Points {
		if s := run.Points[i].SLO; s != nil {
			for _, l := range s.Limits {
				if say.PlainLine(l.Spec) == say.PlainLine(spec) {
					return toneOf(l.Metric)
				}
			}
		}
	}
	return toneOf("")
}

// curveCharts returns the charts over load.
func curveCharts(run *result.Run) []*chart {
	order, at := loadsOf(run)
	over := loadAxis(loadUnit(run), at)
	marks := curveMarks(run)
	latency := func(m *metric.Metric) *chart {
		c := &chart{ID: m.ID(), Title: m.Label + " over load", X: over, Y: logAxis(m.Label, string(m.Unit)), Marks: slices.Clone(marks),
			Note: "Percentiles of " + m.Label + " at each load. Where the queue grows there is no steady state, and no value."}
		for k, key := range []string{"p50", "p95", "p99"} {
			d := drawn{Name: key, Kind: "line", Tone: toneOf(m.Name), Dash: 2 - k}
			for n, i := range order {
				y, lo, hi, few := math.NaN(), math.NaN(), math.NaN(), false
				if s := run.Points[i].Metrics.SummaryOf(m.Name); s != nil {
					y, few = orNaN(s.Value(key)), slices.Contains(s.Few, key)
					if ci, ok := s.CI95[key]; ok {
						lo, hi = ci[0], ci[1]
					}
				}
				d.addSample(at[n], y, few)
				d.Lo, d.Hi = append(d.Lo, lo), append(d.Hi, hi)
			}
			if !d.Lo.anyKnown() {
				d.Lo, d.Hi = nil, nil
			}
			c.Series = append(c.Series, d)
		}
		var limits []result.Limit
		for i := range run.Points {
			if s := run.Points[i].SLO; s != nil {
				limits = append(limits, s.Limits...)
			}
		}
		c.Marks = append(c.Marks, limitMarks("y", limitsOn(m.Name, limits)...)...)
		if slices.ContainsFunc(c.Series, func(d drawn) bool { return d.Lo != nil }) {
			c.Note += " Bars are 95 % intervals."
		}
		if c.hasFew() {
			c.Note += hollowLegend
		}
		return c
	}
	rates := func(id, title, unit string, came, served, good metric.Name) *chart {
		c := &chart{ID: id, Title: title, Wide: id == "requests" && run.Curve != nil, X: over, Y: axisFromZero(title, unit), Marks: marks,
			Note: "Throughput counts completed responses, goodput the requests within the SLO."}
		if over.Scale == "log" {
			c.Y.Scale, c.Y.Min = "log", nil
		}
		if c.Wide {
			c.markBoundary(run)
		}
		for _, f := range []struct {
			name       string
			tone, dash int
			of         metric.Name
		}{{"came due", 5, 2, came}, {"throughput", 1, 0, served}, {"goodput", 2, 0, good}} {
			if f.of == "" {
				continue
			}
			y := windowValues(run, order, f.of)
			for i := range y {
				if c.Y.Scale == "log" && y[i] <= 0 {
					y[i] = math.NaN()
				}
			}
			c.Series = append(c.Series, drawn{Name: f.name, Kind: "line", Tone: f.tone, Dash: f.dash, X: at, Y: y})
		}
		return c
	}
	charts := []*chart{
		violationsChart(run, over, marks),
		rates("requests", "Requests served", "req/s", metric.OfferedRate, metric.RequestRate, metric.Goodput),
	}
	for _, m := range run.Metrics().WithPercentiles() {
		if m.Show == metric.Headline {
			charts = append(charts, latency(m))
		}
	}
	charts = append(charts, rates("tokens", "Output tokens served", "tok/s", "", metric.OutputRate, metric.GoodOutputRate))
	list := faintLines(run, drawableCharts(charts...)...)
	for _, c := range list {
		c.Group = "load"
	}
	return list
}

// markBoundary marks the loads between which the SLO is missed for the first time, and shades the
// interval of its limit. The range of the knee gives way to it.
func (c *chart) markBoundary(run *result.Run) {
	met, missed := report.SLOBoundary(run)
	if met == nil && missed == nil {
		return
	}
	c.Marks = slices.Clone(c.Marks)
	if x := run.Curve.Crossing; x != nil && (x.AtLeast != nil || x.AtMost != nil) {
		c.Marks = slices.DeleteFunc(c.Marks, func(m mark) bool { return m.To != nil })
		m := mark{Axis: "x", At: valueOr(x.AtLeast, 0), To: x.AtMost, Open: x.AtMost == nil, Tone: 3}
		c.Marks = append([]mark{m}, c.Marks...)
		c.Note += " Green: where the limit of the SLO lies, " + say.Percent(x.Level) + " sure."
	}
	if met != nil {
		c.Marks = append(c.Marks, mark{Axis: "x", At: *met, Name: "SLO met", Tone: 3})
	}
	if missed != nil {
		c.Marks = append(c.Marks, mark{Axis: "x", At: *missed, Name: "SLO missed", Tone: 2})
	}
}

// windowValues are those of a metric of the window, at some points.
func windowValues(run *result.Run, points []int, name metric.Name) (values numbers) {
	m := metric.All().Find(name)
	for _, i := range points {
		x, _, _ := run.Points[i].MetricValue(m)
		values = append(values, orNaN(x))
	}
	return values
}

// faintLines draws lines thin where loads stand so close, or are measured so often,
// that what differs between neighbours is chance.
func faintLines(run *result.Run, list ...*chart) []*chart {
	if run.Curve == nil || len(run.Curve.Repeats) > 0 {
		for _, c := range list {
			for i := range c.Series {
				c.Series[i].Faint = true
			}
		}
	}
	return list
}

// violationsChart returns the chart that a search rests on. It shows the number of requests that
// violate each limit at each load, and the number that may.
func violationsChart(run *result.Run, over axis, marks []mark) *chart {
	k := run.Capacity
	if k == nil || len(k.Trail) == 0 {
		return nil
	}
	c := &chart{ID: "violations", Title: "Requests that miss the SLO", Wide: true, X: over, Y: axis{Name: "Share of all due", Unit: "%", Scale: "log", Max: new(100.0)}, Marks: slices.Clone(marks),
		Note: "Share of requests that missed each limit, at each load of the search, and what is allowed. Loads without a miss are not on this axis."}
	trail := slices.Clone(k.Trail)
	stats.SortStable(trail, func(a, b result.CapacityProbe) int {
		return cmp.Compare(a.Load, b.Load)
	})
	var list []drawn
	failed := drawn{Name: "failed", Kind: "dots", Tone: 5} // dots: what differs between windows of like loads is chance
	for _, probe := range trail {
		if probe.Excluded {
			continue
		}
		n, refused := failedOf(run, &probe)
		if refused {
			failed.Name = "failed: refused with 429"
		}
		failed.addPoint(probe.Load, shareOf(n, probe.Requests))
		for i, n := range probe.Violations {
			if i >= len(list) {
				name := fmt.Sprintf("limit %d", i+1)
				if i < len(k.Limits) {
					name = say.PlainLine(k.Limits[i].Spec)
				} else if probe.Point >= 0 && probe.Point < len(run.Points) && run.Points[probe.Point].SLO != nil && i < len(run.Points[probe.Point].SLO.Limits) {
					name = say.PlainLine(run.Points[probe.Point].SLO.Limits[i].Spec)
				}
				limit := drawn{Name: name, Kind: "dots", Tone: limitTone(run, name)}
				for _, other := range list { // of the same metric
					if other.Tone == limit.Tone && limit.Shape < 2 {
						limit.Shape++
					}
				}
				list = append(list, limit)
			}
			due := probe.Requests
			if i < len(probe.Due) {
				due = probe.Due[i]
			}
			list[i].addPoint(probe.Load, shareOf(n, due))
		}
	}
	c.Series = list
	if slices.ContainsFunc(failed.Y, func(y float64) bool { return y > 0 }) {
		c.Series = append(c.Series, failed)
		c.Note += " Failed requests miss every limit and are drawn apart."
	}
	seen := map[string]bool{}
	allow := func(share float64) {
		if name := "allowed: " + say.Percent(share); share > 0 && !seen[name] {
			seen[name] = true
			c.Marks = append(c.Marks, mark{Axis: "y", At: 100 * share, Name: name, Tone: 4})
		}
	}
	for _, l := range k.Limits {
		allow(l.Allowed)
		if l.Curve != nil && l.Estimate != nil {
			c.Series = append(c.Series, fittedCurve(l, limitTone(run, l.Spec)))
		}
	}
	if len(k.Limits) == 0 && run.Points[0].SLO != nil { // bounds alone were found
		for _, l := range run.Points[0].SLO.Limits {
			if l.Percentile > 0 {
				allow(1 - l.Percentile/100)
			}
		}
	}
	c.Shown = aroundLimit(c)
	return c
}

// fittedCurve draws the curve that the estimate of a limit is read from, around the estimate.
func fittedCurve(l result.CapacityLimit, tone int) drawn {
	const around, points = 1.15, 40
	d := drawn{Name: "fit, " + say.PlainLine(l.Spec), Kind: "line", Tone: tone, Plain: true}
	for i := range points + 1 {
		load := *l.Estimate * math.Pow(around, 2*float64(i)/points-1)
		d.addPoint(load, 100*l.Curve.ShareAt(load))
	}
	return d
}

// aroundLimit is the part of a chart of violations in which some requests violate a limit and most
// do not, with the marks that it has there: what a search measures most of, and what its answer
// rests on. It is nil where that is no small part of the axis.
func aroundLimit(c *chart) numbers {
	const most = 50.0 // percent
	var loads, near numbers
	for _, s := range c.Series {
		for i, x := range s.X {
			if loads = append(loads, x); s.Y[i] > 0 && s.Y[i] <= most {
				near = append(near, x)
			}
		}
	}
	if len(near) < 4 {
		return nil
	}
	for _, m := range c.Marks {
		if m.Axis == "x" {
			if near = append(near, m.At); m.To != nil {
				near = append(near, *m.To)
			}
		}
	}
	from, to := slices.Min(near), slices.Max(near)
	if to == from || to-from > 0.5*slices.Max(loads) {
		return nil
	}
	room := 0.06 * (to - from)
	return numbers{max(0, from-room), to + room}
}

// failedOf returns the number of requests of a search's window that failed. It also reports whether
// the server's rate limits refused most of them.
func failedOf(run *result.Run, probe *result.CapacityProbe) (n int, refused bool) {
	if probe.Seen != nil {
		n = probe.Seen.Errors
	}
	if probe.Point >= 0 && probe.Point < len(run.Points) {
		p := &run.Points[probe.Point]
		if probe.Seen == nil {
			n = p.Requests.Failed
		}
		refused = 2*p.RefusedByLimits() > p.Requests.Failed
	}
	return n, refused
}

// shareOf is a share in percent, not a number where it is none: an axis of powers has no 0.
func shareOf(n, of int) float64 {
	if n <= 0 || of <= 0 {
		return math.NaN()
	}
	return 100 * float64(n) / float64(of)
}

// curveMarks are the loads that have a name.
func curveMarks(run *result.Run) (marks []mark) {
	if c := run.Capacity; c != nil {
		switch {
		case c.CI95 != nil:
			marks = append(marks, mark{Axis: "x", At: c.CI95[0], To: &c.CI95[1], Name: "estimate, 95 %", Tone: 3})
		case c.Bracket != nil && c.Load == nil && c.Bracket[0] != nil && c.Bracket[1] != nil:
			marks = append(marks, mark{Axis: "x", At: *c.Bracket[0], To: c.Bracket[1], Name: "capacity within", Tone: 3})
		}
		if v := c.Verified; v != nil && v.Passed {
			marks = append(marks, mark{Axis: "x", At: v.Load, Name: "verified", Tone: 3})
		}
	}
	if c := run.Curve; c != nil {
		if k := c.Knee; k != nil {
			if k.Resampled != nil {
				marks = append(marks, mark{Axis: "x", At: k.Resampled[0], To: &k.Resampled[1], Tone: 1})
			}
			marks = append(marks, mark{Axis: "x", At: k.Load, Name: "knee", Tone: 1})
		}
		if c.UnstableFrom != nil {
			marks = append(marks, mark{Axis: "x", At: *c.UnstableFrom, Open: true, Name: report.QueueGrows, Tone: 2})
		}
	}
	return marks
}

// paretoCharts show what all get against what one gets.
func paretoCharts(run *result.Run) []*chart {
	if run.Curve == nil {
		return nil
	}
	output := axisFromZero("Output", "tok/s")
	served := func(p *result.Point) *float64 { return p.Throughput.OutputTokensPerS }
	if !slices.ContainsFunc(run.Points, func(p result.Point) bool { return p.Throughput.PerGPU == nil }) {
		output.Name = "Output per GPU"
		served = func(p *result.Point) *float64 { return p.Throughput.PerGPU.OutputTokensPerS }
	}
	front := func(id, title, note string, x axis, of func(*result.Point) *float64, on []int) *chart {
		c := &chart{ID: id, Title: title, Note: note + " The number next to each dot is its load.", Labels: true, X: x, Y: output}
		line := drawn{Name: "front", Kind: "line", Tone: 1}
		rest := drawn{Name: "other loads", Kind: "dots", Tone: 5}
		addPoint := func(d *drawn, i int) {
			p := &run.Points[i]
			d.addPoint(orNaN(of(p)), orNaN(served(p)))
			d.Labels = append(d.Labels, say.Decimal(p.Load.Value(), 3)+report.LoadSuffix(run.Curve.Over))
		}
		for _, i := range on {
			if i >= 0 && i < len(run.Points) {
				addPoint(&line, i)
			}
		}
		for i := range run.Points {
			if !slices.Contains(on, i) && i != run.UnderWay() {
				addPoint(&rest, i)
			}
		}
		c.Series = []drawn{line, rest}
		return c
	}
	median := func(name metric.Name) func(*result.Point) *float64 {
		return func(p *result.Point) *float64 { return p.Metrics.SummaryOf(name).Value("p50") }
	}
	return drawableCharts(
		front("pareto-speed", "Speed of one user against output of all", "On the front no other load is better in both. Up and to the right is better.",
			axisFromZero("Decode rate of one user, median", "tok/s"), median(metric.DecodeRate), run.Curve.Pareto.UserSpeed),
		front("pareto-ttft", "First token against output of all", "Up and to the left is better.",
			axisFromZero("TTFT, median", "ms"), median(metric.TTFT), run.Curve.Pareto.TTFT),
	)
}

// attainmentChart shows over load how many requests are good, by limit and
// jointly.
func attainmentChart(run *result.Run) []*chart {
	order, at := loadsOf(run)
	c := &chart{ID: "attainment", Title: "Requests within the SLO", X: loadAxis(loadUnit(run), at), Y: shareAxis("Share of all due"),
		Note: "Each limit by itself, and all of them jointly: two limits that hold for 99 % each need not hold for 99 % together."}
	c.Marks = curveMarks(run)
	joint := drawn{Name: "jointly", Kind: "line", Tone: 6, X: at}
	var each []drawn
	for _, i := range order {
		s := run.Points[i].SLO
		if s == nil {
			return nil
		}
		joint.Y = append(joint.Y, 100*orNaN(s.Attained))
		for k, l := range s.Limits {
			if k >= len(each) {
				each = append(each, drawn{Name: say.PlainLine(l.Spec), Kind: "line", Tone: toneOf(l.Metric), X: at, Dash: 1 + k%3})
			}
			each[k].Y = append(each[k].Y, 100*orNaN(l.Attained))
		}
	}
	c.Series = append([]drawn{joint}, each...)
	if len(each) == 1 {
		c.Series = c.Series[:1]
	}
	return faintLines(run, drawableCharts(c)...)
}

// spreadCharts are the distributions of a point.
func spreadCharts(prefix string, p *result.Point, s *Series) []*chart {
	var list []*chart
	explained := map[string]bool{} // reasons why there are no intervals, given once
	addChart := func(m *metric.Metric, sum *result.Summary) {
		x, ok := s.Spread[m.Key]
		if !ok || sum == nil || !sum.NoSteadyState().IsNone() {
			return
		}
		title, tone := m.Label, toneOf(m.Name)
		c := &chart{ID: prefix + m.ID(), Title: title, X: logAxis(title, string(m.Unit)), Y: axis{Name: "At or below", Scale: "odds"}}
		c.Note = "Cumulative distribution of " + say.Plural(int(x.N), "sample") + "; the axis stretches the tail."
		d := drawn{Name: title, Kind: "step", Tone: tone, X: x.Value, Y: x.Share}
		c.Series = []drawn{d}
		why := ""
		for _, col := range metric.Percentiles() {
			if _, ok := sum.CI95[col.Key]; !ok && sum.Value(col.Key) != nil && why == "" {
				why = report.ReasonText(sum.NoInterval[col.Key])
			}
		}
		if band := bandOf(sum); len(band.X) > 0 {
			band.Tone = tone
			c.Series = append(c.Series, band)
			c.Note += " Bars are 95 % intervals of percentiles."
		}
		if why != "" && !explained[why] {
			explained[why] = true
			if len(c.Series) > 1 {
				c.Note += " No interval of other percentiles: " + why + "."
			} else {
				c.Note += " No intervals: " + why + "."
			}
		}
		if p.SLO != nil {
			c.Marks = append(c.Marks, limitMarks("x", limitsOn(m.Name, p.SLO.Limits)...)...)
		}
		list = append(list, c)
	}
	for _, d := range p.Metrics.List {
		if d.Show != metric.Data && d.Unlike == "" {
			addChart(d.Metric, d.Summary)
		}
	}
	return drawableCharts(list...)
}

// bandOf are the intervals of the percentiles.
func bandOf(s *result.Summary) drawn {
	d := drawn{Name: "95 % interval", Kind: "band"}
	for _, c := range metric.Percentiles() {
		ci, ok := s.CI95[c.Key]
		v := s.Value(c.Key)
		if !ok || v == nil {
			continue
		}
		d.addPoint(*v, c.P)
		d.Lo, d.Hi = append(d.Lo, ci[0]), append(d.Hi, ci[1])
	}
	return d
}

// viewCharts compare what is counted from due with what is counted from sent.
func viewCharts(prefix string, p *result.Point, s *Series) []*chart {
	var list []*chart
	for _, v := range p.Metrics.AllViews() {
		from, to := s.Spread[v.Response.Key], s.Spread[v.Service.Key]
		if v.Response.Summary == nil || !v.Response.Summary.NoSteadyState().IsNone() || len(from.Value) == 0 {
			continue
		}
		title := v.Response.Metric.Label
		list = append(list, &chart{ID: prefix + "view-" + v.Response.ID(), Title: title + ", from due and from sent",
			Note: "The lines differ by the time that requests waited before they were sent.",
			X:    logAxis(title, string(v.Response.Unit)), Y: axis{Name: "At or below", Scale: "odds"},
			Series: []drawn{
				{Name: "response: from due", Kind: "step", Tone: 1, X: from.Value, Y: from.Share},
				{Name: "service: from sent", Kind: "step", Tone: 2, X: to.Value, Y: to.Share, Dash: 1},
			}})
	}
	return drawableCharts(list...)
}

// timeCharts are the course of a point, one under the other.
func timeCharts(prefix string, s *Series) []*chart {
	var at numbers
	for i := range s.Due {
		at = append(at, roundTo(float64(i)*s.Bin, 6))
	}
	x := axis{Name: "Time", Unit: "s", Min: new(float64), Max: &s.End}
	shades := []mark{}
	if s.From > 0 {
		shades = append(shades, mark{Axis: "x", At: 0, To: &s.From, Name: "warm-up", Tone: 0})
	}
	if s.End > s.To {
		shades = append(shades, mark{Axis: "x", At: s.To, To: &s.End, Name: "after the window", Tone: 0})
	}
	group := prefix + "time"
	strip := func(kind, id, title, unit, note string, series ...drawn) *chart {
		for i := range series {
			series[i].Kind = kind
		}
		return &chart{
			ID: prefix + id, Title: title, Note: note, X: x, Y: axisFromZero(title, unit), Marks: shades,
			Group: group, Low: true, Wide: true, Series: series,
		}
	}
	scatter := func(id, title, note, name string, series ...drawn) *chart {
		return &chart{
			ID: prefix + id, Title: title, Note: note, X: x, Y: logAxis(name, "ms"), Marks: shades,
			Group: group, Wide: true, Series: series,
		}
	}
	bins := func(name string, tone int, y numbers) drawn { return drawn{Name: name, Tone: tone, X: at, Y: y} }
	line := func(name string, tone int, told Dots) drawn {
		return drawn{Name: name, Tone: tone, X: told.X, Y: told.Y}
	}
	per := "Bins of " + say.Seconds(s.Bin) + "; warm-up and the time after the window are shaded."
	flow := "Requests due, served and not served"
	lost := bins("not served", 2, s.Lost)
	if !slices.ContainsFunc(s.Lost, func(n float64) bool { return n > 0 }) {
		lost.Y, flow = nil, "Requests due and served"
	}
	errors := scatter("errors", "Requests that were not served", "When it was known, and how long after they were due.", "After due")
	for k, class := range slices.Sorted(maps.Keys(s.Errors)) {
		d := s.Errors[class]
		errors.Series = append(errors.Series, drawn{Name: say.PlainLine(cmp.Or(class, "no class")), Kind: "dots", Tone: k%5 + 1, Shape: min(k/5, 2), X: d.X, Y: d.Y})
	}
	late, atOnce := 0, 0 // failures by whether they took time
	for _, d := range errors.Series {
		for _, y := range d.Y {
			if y > 0 {
				late++
			} else {
				atOnce++
			}
		}
	}
	if len(errors.Series) == 1 {
		errors.Note += " All are " + errors.Series[0].Name + "."
	}
	switch {
	case atOnce == 0:
	case late > 0:
		errors.Y = axisFromZero("After due", "ms") // an axis of logarithms has no 0
	default: // they would all lie on the axis
		var names []string
		for _, d := range errors.Series {
			names = append(names, d.Name)
		}
		per += " All failures came 0 ms after the request was due: " + say.List(names...) + "."
		errors = nil
	}
	cache := strip("line", "kv", "KV cache in use", "", "Reported by the server, for its fullest replica; 1 is all of it.", line("in use", 3, s.KVUse))
	cache.Y.Max = new(1.0)
	return drawableCharts(
		strip("step", "flow", flow, "req/s", per, bins("due", 5, s.Due), bins("served", 1, s.Served), lost),
		strip("step", "flight", "Requests in flight", "requests", "Time means, from due to done.", bins("in flight", 3, s.InFlight)),
		strip("step", "rate", "Output tokens", "tok/s", "By when they came.", bins("output", 1, s.Tokens)),
		scatter("first", "TTFT of each request", sampleNote(s.First, "request"), "TTFT", drawn{Name: "TTFT", Kind: "dots", Tone: 1, X: s.First.X, Y: s.First.Y}),
		errors,
		strip("line", "batch", "Requests in the server", "requests", "Reported by the server: running in its batch, and waiting for a place there.", line("running", 1, s.Running), line("waiting", 2, s.Waiting)),
		cache,
		strip("line", "steps", "Tokens a step", "tokens", "Reported by the server: the average since the scrape before.", line("tokens a step", 1, s.StepTokens)),
		strip("line", "power", "Power", "W", "Of all GPUs that report it.", line("power", 2, s.Power)),
	)
}

// sampleNote says what part of the dots is drawn.
func sampleNote(d Dots, thing string) string {
	if len(d.X) < d.Of {
		return fmt.Sprintf("%s of %s: the slowest, and others at random. By when they were due.", say.Count(len(d.X)), say.Plural(d.Of, thing))
	}
	return "All " + say.Plural(d.Of, thing) + ", by when they were due."
}

// lengthCharts show what was asked for and what was served.
func lengthCharts(prefix string, s *Series) []*chart {
	bars := func(id, title string, l Lengths) *chart {
		if l.Alike || l.Width == 0 {
			return nil
		}
		c := &chart{ID: prefix + id, Title: title, Note: "Bins of " + say.Plural(int(l.Width), "token") + ".", X: axis{Name: "Length", Unit: "tokens"}, Y: axis{Name: "Requests", Min: new(float64)}}
		for k, n := range [][]int64{l.Planned, l.Served} {
			d := drawn{Name: []string{"planned", "served"}[k], Kind: "bars", Tone: []int{5, 1}[k]}
			for i, x := range n {
				d.addPoint(l.From+float64(i)*l.Width, float64(x))
			}
			if len(n) > 0 { // the right edge of the last bin
				d.addPoint(l.From+float64(len(n))*l.Width, math.NaN())
			}
			c.Series = append(c.Series, d)
		}
		return c
	}
	return drawableCharts(bars("input", "Input tokens", s.Input), bars("output", "Output tokens", s.Output))
}

// traces are requests in full, for the script.
type traces struct {
	List []traced `json:"list"`
	Data string   `json:"data"` // base64: of each request its chunks as varints, tenths of milliseconds after the one before
}

type traced struct {
	ID    int64    `json:"id"`
	Due   float64  `json:"due"`  // seconds
	Sent  *float64 `json:"sent"` // milliseconds after due
	Done  *float64 `json:"done"`
	N     int      `json:"n"` // chunks
	Ended string   `json:"ended"`
}

// tracesUnit is the resolution at which chunks are drawn, in nanoseconds.
const tracesUnit = 100_000

func tracesOf(t Traces) *traces {
	out := new(traces)
	var data []byte
	for i := range t.Requests {
		r := &t.Requests[i]
		x := traced{ID: r.ID, Due: roundTo(float64(r.Due)/1e9, 3), N: len(r.Chunks), Ended: r.Outcome.String()}
		if r.Outcome != record.OK && r.Error != "" {
			x.Ended = say.PlainLine(r.Error)
		}
		after := func(stamp int64) *float64 {
			if stamp < 0 {
				return nil
			}
			return new(roundTo(float64(stamp-r.Due)/1e6, 3))
		}
		x.Sent, x.Done = after(r.Sent), after(r.Done)
		last := int64(0)
		for _, c := range r.Chunks {
			at := max((c+tracesUnit/2)/tracesUnit, last)
			data = binary.AppendUvarint(data, uint64(at-last))
			last = at
		}
		out.List = append(out.List, x)
	}
	out.Data = base64.StdEncoding.EncodeToString(data)
	return out
}

// rasterCharts show requests and their tokens.
func rasterCharts(prefix string, s *Series) []*chart {
	rows := func(id, title string, t Traces) *chart {
		note := "One line a request, from when it was due: pale while it waits for its first token, then a tick for each chunk. Drag to zoom."
		if slices.ContainsFunc(t.Requests, func(r Trace) bool { return r.Outcome != record.OK }) {
			note += " An orange dot: it was not served."
		}
		if n := len(t.Requests); n < t.Wanted {
			note = fmt.Sprintf("%d of %d, for the size of this page. ", n, t.Wanted) + note
		}
		return &chart{ID: prefix + id, Title: fmt.Sprintf(title, len(t.Requests)), Note: note, Kind: "traces", Wide: true, X: axisFromZero("Time since due", "ms"), Y: axis{Name: "Request"}, Traces: tracesOf(t)}
	}
	heat := &chart{ID: prefix + "heat", Title: "When tokens came", Kind: "heat", Wide: true, Heat: &s.Heat,
		Note: "All requests: the stronger the colour, the more tokens. A flat band is a steady server; a slope is a queue that grows; a gap is a stall.",
		X:    axis{Name: "Request due at", Unit: "s"}, Y: axis{Name: "Token came after", Unit: "ms"}}
	return drawableCharts(heat, rows("slow", "The %d slowest requests", s.Slow), rows("random", "%d requests at random", s.Random))
}

// chartData is the data of all charts, as JSON that is safe inside a script
// element: package json writes <, > and & as escapes.
func chartData(charts map[string]*chart) ([]byte, error) { return json.Marshal(charts) }
