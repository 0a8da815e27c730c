package page

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"pitot/internal/analysis/compare"
	"pitot/internal/experiment"
	"pitot/internal/report"
	"pitot/internal/results/metric"
	"pitot/internal/results/result"
	"pitot/internal/say"
	"pitot/internal/stats"
)

// comparisonView holds what the page of a comparison says.
type comparisonView struct {
	report.ComparisonModel
	Sentence string
	Basis    string     // what changed or why that is not known, of two sides
	Warned   string     // how often
	ByEach   *captioned // what differs, of more than two sides
	Changes  []section  // forest plots
	Curves   []section
	Tables   []pairView
	Folded   bool // each of the tables is behind a line of its own
	Launches captioned
	Command  string
}

// pairView is one of the tables.
type pairView struct {
	Section section
	Summary string // in a line
}

// mostOpen is the number of tables that are open on a page at most.
const mostOpen = 4

// WriteComparison writes the page of a comparison. command is what did it.
func WriteComparison(w io.Writer, m report.ComparisonModel, command []string) error {
	v := &comparisonView{ComparisonModel: m, Warned: say.Plural(len(m.Warnings), "warning"), Command: say.ShellLine(command)}
	v.Sentence, v.Basis = v.verdictSentence()
	if m.BySide != nil {
		v.ByEach = &captioned{"Environment, server and configuration of each side", *m.BySide}
	}
	for i := range m.Of.Curves {
		if s := v.curveSection(i); len(s.Charts) > 0 || s.Absent != "" {
			v.Curves = append(v.Curves, s)
		}
	}
	for i := range m.Of.Verdicts {
		v.Changes = append(v.Changes, v.changesSection(i))
	}
	for i := range m.Pairs {
		v.Tables = append(v.Tables, v.pairSection(i))
	}
	v.Folded = len(v.Tables) > mostOpen
	v.Launches = v.launchTable()
	tab := v.Sentence
	if !slices.ContainsFunc(m.Of.Sides, func(s compare.SideInfo) bool { return strings.Contains(tab, s.Name) }) {
		tab = m.Title + ": " + tab
	}
	return writePage(w, tab, "comparison", joinFacts(m.Sides), slices.Concat(v.Changes, v.Curves), v.writeBody)
}

// verdictSentence is the verdict on all sides, and on two of them what it rests on.
func (m *comparisonView) verdictSentence() (verdict, basis string) {
	a := m.Of.Sides[0].Name
	if len(m.Answers) > 1 {
		var each []string
		for i, v := range m.Of.Verdicts {
			is := " is " + m.Answers[i].Word
			if v.Word == compare.OtherInstrument || v.Word == compare.Undistinguished && v.Why != "" {
				is = " has no verdict"
			}
			each = append(each, v.B+is)
		}
		return "Against " + a + ", " + strings.Join(each, ", ") + ".", ""
	}
	answer := m.Answers[0]
	switch m.Of.Verdicts[0].Word {
	case compare.Undistinguished, compare.OtherInstrument: // may begin with no side's name
		return sentenceOf(answer.Claim, m.Of.Verdicts[0].B), answer.BasisText()
	}
	return answer.Claim + ".", answer.BasisText()
}

// sentenceOf makes a sentence of a claim. Where it begins with a side's name, that
// is written as it is.
func sentenceOf(claim, name string) string {
	if strings.HasPrefix(claim, name) {
		return claim + "."
	}
	return say.Sentence(claim)
}

// chipClass is the class of a verdict or of how a condition came out.
func chipClass(word string) string {
	switch word {
	case compare.Slower, compare.Worse, compare.Mixed, compare.Fired, experiment.AnswerNone:
		return "bad"
	case compare.Faster, compare.Better, compare.Equivalent, compare.RuledOut, experiment.AnswerAccepted:
		return "good"
	}
	return "warn"
}

// toneAndDash tell a side from the others, by colour and without it.
func toneAndDash(side int) (tone, dash int) {
	tones := []int{1, 2, 3, 4, 6, 5}
	return tones[side%len(tones)], side % 4
}

// onCurve is a chart over load. It draws the first of its metrics that is known.
type onCurve struct {
	id, title, unit string
	metrics         []string
}

// curveMetrics are those of a curve in their order. A percentile in the tail that no
// side has gives way to the mean.
func curveMetrics(c *compare.Curve) (list []onCurve) {
	for _, s := range c.Sides {
		for _, l := range s.Loads {
			for _, m := range l.Metrics {
				statistic, name, _ := strings.Cut(m.Metric, " ")
				of := metric.All().Find(metric.Name(m.Metric))
				k := onCurve{id: m.Metric, title: m.Metric, unit: m.Unit, metrics: []string{m.Metric}}
				if d := metric.All().Find(metric.Name(name)); of == nil {
					k.id, k.title = name+"-"+statistic, name+" "+statistic
					if d != nil {
						k.id, k.title = d.ID()+"-"+statistic, d.Label+" "+statistic
					}
					if statistic == "p99" {
						k.metrics = append(k.metrics, metric.Mean+" "+name)
					}
				} else {
					k.id, k.title, k.unit = of.ID(), strings.ToUpper(of.Label[:1])+of.Label[1:], string(of.Unit)
				}
				if statistic != metric.Mean && !slices.ContainsFunc(list, func(x onCurve) bool { return x.id == k.id }) {
					list = append(list, k)
				}
			}
		}
	}
	return list
}

// curveSection is one of the parts in which the sides are laid over each other: over
// load, or where there is only one, launch by launch.
func (m *comparisonView) curveSection(at int) section {
	c := &m.Of.Curves[at]
	id := fmt.Sprintf("curve%d", at+1)
	s := section{ID: id, Title: "Over load", Top: true}
	var loads []float64
	most, present := 0, 0 // launches, sides
	for i, side := range c.Sides {
		switch {
		case len(side.Loads) > 0:
			present++
		case len(m.Of.Sides[i].Files) > 0:
			s.Notes = append(s.Notes, side.Side+" is not drawn: another instrument measured it")
		default:
			s.Notes = append(s.Notes, side.Side+" is not drawn: it was not measured under such loads")
		}
		for _, l := range side.Loads {
			loads = append(loads, l.Load)
			most = max(most, len(l.Launches))
		}
	}
	if present < 2 {
		return s // nothing to lay over each other
	}
	s.Absent = "No side has a value to draw."
	slices.Sort(loads)
	loads = slices.Compact(loads)
	what := c.What
	if len(loads) == 1 {
		s.Title = "Launch by launch"
		what += ", " + say.Decimal(loads[0], 3) + " " + result.LoadUnit(c.Over)
	}
	s.Text = say.Sentence(what)
	switch {
	case most < 2:
		each := "One launch each."
		if slices.ContainsFunc(m.Of.Pairs, func(p compare.Pair) bool { return p.Scope == compare.OneStart }) {
			each = "One launch, the same for both."
		}
		s.Text += " " + each
	case len(loads) == 1:
		s.Text += " Small dots are launches, the large one is the side: their geometric mean."
	default:
		s.Text += " Lines are sides, the geometric mean of their launches; small dots are launches."
	}
	if len(m.Of.Curves) > 1 {
		s.Title += fmt.Sprintf(" (%d of %d)", at+1, len(m.Of.Curves))
	}
	var lacks report.Grouping // charts by what has no value, and why
	for _, what := range curveMetrics(c) {
		drawn := what.metrics[0]
		for _, name := range what.metrics {
			if known, _ := valuesOf(c, name); known {
				drawn = name
				break
			}
		}
		if drawn != what.metrics[0] {
			what.title = strings.TrimSuffix(what.title, "p99") + metric.Mean
		}
		k := overlaidChart(c, loads, what, drawn, most > 1)
		if len(loads) == 1 {
			k = m.stripChart(c, what, drawn, most > 1)
		}
		k.ID, k.Group = id+"-"+what.id, id
		_, reasons := valuesOf(c, drawn)
		for _, why := range reasons {
			lacks.AddName(why, what.title)
		}
		if drawn == string(metric.Goodput) && c.SLO != "" {
			k.Note = "Within " + say.PlainLine(c.SLO) + "."
		}
		s.Charts = append(s.Charts, k)
	}
	for _, why := range lacks.Keys {
		s.Notes = append(s.Notes, lacks.JoinNames(why)+": "+why)
	}
	s.Charts = drawableCharts(s.Charts...)
	if slices.ContainsFunc(s.Charts, (*chart).hasFew) {
		s.Text += hollowLegend // once, so that charts side by side stay in line
	}
	for i, k := range s.Charts {
		nameDots(k)
		if len(k.Series) > 0 && !slices.ContainsFunc(k.Series, func(d drawn) bool { return d.Name != k.Series[0].Name }) {
			k.Note = strings.TrimSpace("Of " + k.Series[0].Name + " alone. " + k.Note)
		}
		k.Wide = i == len(s.Charts)-1 && i%2 == 0
	}
	return s
}

// metricAt is a metric of a load, nil if it was not looked for.
func metricAt(l *compare.LoadCurve, name string) *compare.CurveMetric {
	i := slices.IndexFunc(l.Metrics, func(m compare.CurveMetric) bool { return m.Metric == name })
	if i < 0 {
		return nil
	}
	return &l.Metrics[i]
}

// valuesOf says whether a metric has any value, and where and why it has none.
func valuesOf(c *compare.Curve, name string) (known bool, missing []string) {
	var where report.Grouping // places by the reason
	for _, s := range c.Sides {
		var at report.Grouping // loads by the reason
		for i := range s.Loads {
			x := metricAt(&s.Loads[i], name)
			switch {
			case x == nil:
			case x.Value != nil:
				known = true
			default:
				at.AddName(x.Why, say.Decimal(s.Loads[i].Load, 3))
			}
		}
		for _, why := range at.Keys {
			where.AddName(why, s.Side+" at "+at.JoinNames(why))
		}
	}
	for _, why := range where.Keys {
		missing = append(missing, "no value of "+strings.Join(where.Names[why], " and ")+": "+why)
	}
	return known, missing
}

// overlaidChart draws a metric of all sides over load.
func overlaidChart(c *compare.Curve, loads []float64, what onCurve, name string, launches bool) *chart {
	k := &chart{Title: what.title, X: loadAxis(result.LoadUnit(c.Over), loads), Y: axis{Name: what.title, Unit: what.unit}}
	if what.unit == "ms" || k.X.Scale == "log" {
		k.Y.Scale = "log"
	} else {
		k.Y.Min = new(float64)
	}
	var lines, dots []drawn
	for i, s := range c.Sides {
		tone, dash := toneAndDash(i)
		line := drawn{Name: say.PlainLine(s.Side), Kind: "line", Tone: tone, Dash: dash}
		each := drawn{Name: say.PlainLine(s.Side), Kind: "dots", Tone: tone, Aside: true}
		for n := range s.Loads {
			l := &s.Loads[n]
			x := metricAt(l, name)
			if x == nil {
				continue
			}
			line.addSample(l.Load, orNaN(x.Value), x.Few)
			for j, v := range x.Launches {
				each.addPoint(l.Load, orNaN(v))
				each.Labels = append(each.Labels, launchName(l.Launches[j]))
			}
		}
		lines = append(lines, line)
		if launches {
			dots = append(dots, each)
		}
	}
	k.Series = append(lines, dots...)
	k.Marks = append(unstableMarks(c), limitMarks("y", limitsOfPercentile(c, name)...)...)
	return k
}

// limitsOfPercentile are the limits that a percentile is drawn with: those of
// this percentile, and in the chart of the tail those of each request.
func limitsOfPercentile(c *compare.Curve, name string) (limits []result.Limit) {
	statistic, of, _ := strings.Cut(name, " ")
	for _, l := range c.Limits {
		spec, _, percentile := strings.Cut(l.Spec, " ")
		if l.Metric == metric.Name(of) && (percentile && spec == statistic || !percentile && statistic == "p99") {
			limits = append(limits, result.Limit{Spec: l.Spec, Metric: l.Metric, Limit: l.Limit})
		}
	}
	return limits
}

// nameDots puts launches into the key where no line of their side is.
func nameDots(k *chart) {
	for i := range k.Series {
		d := &k.Series[i]
		if d.Aside && !slices.ContainsFunc(k.Series, func(line drawn) bool { return !line.Aside && line.Name == d.Name }) {
			d.Aside, d.Name = false, d.Name+", single launches"
		}
	}
}

// launchName names a launch among others.
func launchName(id string) string {
	if id == "" {
		return "a launch without a name"
	}
	return "launch " + say.PlainLine(id)
}

// unstableMarks show from where on the queue grows.
func unstableMarks(c *compare.Curve) (marks []mark) {
	alike := true
	for i, s := range c.Sides {
		if s.UnstableFrom != nil {
			tone, _ := toneAndDash(i)
			marks = append(marks, mark{Axis: "x", At: *s.UnstableFrom, Open: true, Name: "unstable: " + say.Truncate(say.PlainLine(s.Side), 16), Tone: tone})
		}
		first := c.Sides[0].UnstableFrom
		alike = alike && first != nil && s.UnstableFrom != nil && *first == *s.UnstableFrom
	}
	if alike && len(marks) > 0 {
		marks = marks[:1]
		marks[0].Name = string(stats.Unstable)
	}
	return marks
}

// stripChart draws a metric of all sides at the one load there is, on an axis that
// shows what matters as large as it is: it spans at least what is equivalent.
func (m *comparisonView) stripChart(c *compare.Curve, what onCurve, name string, launches bool) *chart {
	k := &chart{Title: what.title, Kind: "rows", X: axis{Name: what.title, Unit: what.unit}, Y: axis{Name: "Side"}}
	lo, hi := math.Inf(1), math.Inf(-1)
	for i, s := range c.Sides {
		tone, _ := toneAndDash(i)
		for n := range s.Loads {
			x := metricAt(&s.Loads[n], name)
			if x == nil || x.Value == nil {
				continue
			}
			r := row{Name: say.Truncate(say.PlainLine(s.Side), 30), At: *x.Value, Look: fmt.Sprintf("t%d", tone), Text: say.Quantity(*x.Value) + " " + what.unit, Dots: numbers{}, Labels: []string{}}
			if x.Few {
				r.Look, r.Text = r.Look+fewLook, "~"+r.Text
			}
			for j, v := range x.Launches {
				if launches {
					r.Dots, r.Labels = append(r.Dots, orNaN(v)), append(r.Labels, launchName(s.Loads[n].Launches[j]))
				}
			}
			if launches {
				r.Say = []string{say.Plural(len(r.Dots), "launch")}
			}
			for _, v := range append(numbers{r.At / (1 + m.Of.Within), r.At * (1 + m.Of.Within)}, r.Dots...) {
				if !math.IsNaN(v) {
					lo, hi = min(lo, v), max(hi, v)
				}
			}
			k.Rows = append(k.Rows, r)
		}
	}
	if lo < hi && !math.IsInf(1.04*(hi-lo), 0) {
		pad := 0.04 * (hi - lo)
		if lo, hi = lo-pad, hi+pad; !math.IsInf(hi, 0) {
			k.X.Min, k.X.Max = &lo, &hi
			k.addLimits(limitMarks("x", limitsOfPercentile(c, name)...))
		}
	}
	return k
}

// addLimits draws those that are on the axis, and says where the others are: the axis
// is not made longer for them.
func (k *chart) addLimits(marks []mark) {
	for _, m := range marks {
		switch {
		case m.At < *k.X.Min:
			k.Note = strings.TrimSpace(k.Note + " " + m.Name + " is left of this axis.")
		case m.At > *k.X.Max:
			k.Note = strings.TrimSpace(k.Note + " " + m.Name + " is right of this axis.")
		default:
			k.Marks = append(k.Marks, m)
		}
	}
}

// The ends of an axis of changes: further ones are drawn as going on.
const (
	leastPercent = -95
	mostPercent  = 1900
	mostPoints   = 100
)

// changesSection is the forest plot of one side against the first. Of few loads each
// has a chart of all metrics; of many each metric has one of all loads.
func (m *comparisonView) changesSection(at int) section {
	c := m.Of
	b := c.Verdicts[at].B
	s := section{ID: fmt.Sprintf("changes%d", at+1), Title: "Changes", Top: true}
	if len(c.Verdicts) > 1 {
		s.Title = "Changes: " + b + " against " + c.Sides[0].Name
	}
	var pairs []*compare.Pair // with something to draw
	var names []string
	for i := range c.Pairs {
		p := &c.Pairs[i]
		if p.B == b && p.Overload != nil {
			s.Notes = append(s.Notes, say.Sentence(p.Overload.Text(p.What)))
		}
		switch {
		case p.B != b:
		case p.Why != "":
			s.Notes = append(s.Notes, "not compared: "+p.What+": "+p.Why)
		case len(p.Rows) > 0:
			pairs = append(pairs, p)
			names = append(names, placeName(p))
		}
	}
	if len(pairs) == 0 {
		s.Absent = "Nothing could be compared."
		switch bounds := slices.ContainsFunc(c.Pairs, func(p compare.Pair) bool { return p.B == b && p.Capacity != nil }); {
		case m.Of.Verdicts[at].Word == compare.NotCompared:
		case !bounds:
			s.Absent = "No latency is compared: one side does not keep up."
		default:
			s.Absent = "Bounds of the capacities alone were found: the table has them."
		}
		return s
	}
	alike := len(slices.Compact(slices.Sorted(slices.Values(names)))) < len(names) // of several workloads, say
	few := len(pairs) <= 2
	var groups []changeGroup
	for i, p := range pairs {
		for k := range p.Rows {
			r := &p.Rows[k]
			g, name := changeGroup{title: r.Metric, rowsAre: "Load", in: r.ChangeIn}, say.Truncate(names[i], 29)
			if few || alike || p.Load == nil {
				g.title, g.rowsAre, name = strings.TrimSuffix(say.Sentence(say.PlainLine(p.What)), "."), "Metric", r.Metric
				if r.ChangeIn == "share" {
					g.title += ", shares of requests"
				}
			}
			at := slices.IndexFunc(groups, func(o changeGroup) bool { return o.title == g.title && o.in == g.in })
			if at < 0 {
				at = len(groups)
				groups = append(groups, g)
			}
			groups[at].rows = append(groups[at].rows, changeRow(r, name))
		}
	}
	for i := range groups {
		k := groups[i].drawChart()
		k.ID, k.Group, k.Wide = fmt.Sprintf("%s-%d", s.ID, i+1), s.ID, few
		s.Charts = append(s.Charts, k)
	}
	s.Text = m.howToRead(pairs)
	return s
}

// placeName is where a pair was measured, in short.
func placeName(p *compare.Pair) string {
	switch {
	case p.Load == nil:
		return say.PlainLine(p.What)
	case p.Load.Concurrency != nil:
		return say.Plural(*p.Load.Concurrency, "user")
	}
	return say.Decimal(p.Load.Value(), 3) + " req/s"
}

// howToRead explains the marks of changes.
func (m *comparisonView) howToRead(pairs []*compare.Pair) string {
	anyPair := func(is func(*compare.Pair) bool) bool { return slices.ContainsFunc(pairs, is) }
	row := func(is func(compare.Row) bool) bool {
		return anyPair(func(p *compare.Pair) bool { return slices.ContainsFunc(p.Rows, is) })
	}
	hollow := "shows no change"
	if row(func(r compare.Row) bool { return wordOf(&r) == report.NoVerdict }) {
		hollow = "has no verdict"
	}
	text := "Dots are changes, shaded is what counts as unchanged, a hollow dot " + hollow + ". Bars are 95 % intervals of each row alone"
	switch {
	case anyPair((*compare.Pair).HasOtherInstrument):
		return "Dots are changes, without an interval and without a verdict: another instrument measured one of the sides. Shaded is what would count as unchanged."
	case anyPair(func(p *compare.Pair) bool { return p.Within }):
		text += ", within these launches: they say nothing of other starts of the server."
	case m.Of.Corrected > 0:
		text += "; the verdicts are corrected for " + say.Plural(m.Of.Corrected, "test") + "."
	default:
		text += "."
	}
	if row(func(r compare.Row) bool { return r.CI95 == nil }) {
		text += " Where there is no interval there is no bar."
	}
	if row(func(r compare.Row) bool { return r.Primary }) {
		text += " † primary, tested alone."
	}
	if row(func(r compare.Row) bool { return r.PreRegistered && !r.Primary }) {
		text += " * named in --fail-if, not corrected."
	}
	return text
}

// changeGroup holds the content of one chart of changes.
type changeGroup struct {
	title, rowsAre string
	in             string // "ratio" or "share", as of a row
	rows           []row
}

// drawChart draws them on an axis that shows all of them, and what is equivalent.
func (g *changeGroup) drawChart() *chart {
	k := &chart{Title: g.title, Kind: "rows", X: axis{Name: "Change", Unit: "%", Scale: "change"}, Y: axis{Name: g.rowsAre}, Rows: g.rows}
	least, most := float64(leastPercent), float64(mostPercent)
	if g.in == "share" {
		k.X = axis{Name: "Change", Unit: "points", Scale: "points"}
		least, most = -mostPoints, mostPoints
	}
	lo, hi := 0.0, 0.0
	for _, r := range g.rows {
		for _, x := range []float64{r.At, valueOr(r.Lo, r.At), valueOr(r.Hi, r.At), 1.5 * r.Band[0], 1.5 * r.Band[1]} {
			lo, hi = min(lo, x), max(hi, x)
		}
	}
	k.X.Min, k.X.Max = new(max(lo*1.1, least)), new(min(hi*1.1, most))
	return k
}

// valueOr is the end of an interval, or the value where there is none.
func valueOr(x *float64, at float64) float64 {
	if x == nil {
		return at
	}
	return *x
}

// changeRow is a metric of a forest plot: percent, or points of a share.
func changeRow(r *compare.Row, name string) row {
	const far = 1e9 // beyond every axis
	percent := func(x float64) float64 { return roundTo(max(-far, min(100*x, far)), 6) }
	out := row{Name: name, At: percent(r.Change), Band: &[2]float64{percent(r.Margin[0]), percent(r.Margin[1])}, Look: lookClass(r.Verdict), Text: say.RelativeChange(r.Change, r.OfShare()), Word: wordOf(r)}
	out.Name += report.NameMark(r)
	out.Say = []string{valueText(r, r.A) + " → " + valueText(r, r.B)}
	if v := r.CI95; v != nil {
		out.Lo, out.Hi = new(percent(v[0])), new(percent(v[1]))
		out.Say = append(out.Say, "interval "+say.SignedChange(v[0], r.OfShare())+"…"+say.SignedChange(v[1], r.OfShare()))
	} else if !r.NoInterval.IsNone() {
		out.Say = append(out.Say, "no interval: "+report.ReasonText(r.NoInterval))
	}
	if !r.Why.IsNone() {
		out.Say = append(out.Say, report.ReasonText(r.Why))
	}
	return out
}

// wordOf is the verdict on a row. That of too few launches is none, as in the answer: what they show
// may be a change.
func wordOf(r *compare.Row) string {
	if r.Verdict == compare.Undistinguished && r.TooFewLaunches() {
		return report.NoVerdict
	}
	return report.VerdictWord(r.Verdict)
}

func lookClass(verdict string) string {
	switch verdict {
	case compare.Undistinguished, compare.Unconfirmed, compare.OtherInstrument:
		return "open"
	case compare.Equivalent:
		return "same"
	}
	return cmp.Or(toneClass(verdict), "same")
}

// valueText is one side's value of a row.
func valueText(r *compare.Row, x float64) string {
	switch r.Unit {
	case "share":
		return say.Percent(x)
	case "ms":
		return say.Quantity(x) + " ms"
	}
	return say.Quantity(x)
}

// pairSection is a table as the other faces have it.
func (m *comparisonView) pairSection(at int) pairView {
	p, of := &m.Pairs[at], &m.Of.Pairs[at]
	v := pairView{Section: section{ID: fmt.Sprintf("pair%d", at+1), Title: strings.Join(p.Title, " · "), Notes: p.Notes}}
	if p.Why != "" {
		v.Section.Absent, v.Summary = "Not compared: "+p.Why+".", compare.NotCompared
		return v
	}
	if p.Overload != "" {
		v.Section.Notes = append([]string{say.Sentence(p.Overload + ": what needs a steady state is not compared")}, p.Notes...)
	}
	if len(p.Table.Rows) > 0 {
		v.Section.Tables = []captioned{{strings.Join(append([]string{m.tableCaption(of)}, p.Legend...), " · "), p.Table}}
	}
	if p.Paired != nil {
		v.Section.Tables = append(v.Section.Tables, captioned{p.Paired.Title, p.Paired.Table})
	}
	if p.Day != nil {
		v.Section.Tables = append(v.Section.Tables, captioned{"By time of day, by the clients' clocks", *p.Day})
	}
	rows := map[string]int{}
	for _, r := range of.Rows {
		rows[wordOf(&r)]++
	}
	var parts []string
	for _, word := range []string{compare.Slower, compare.Worse, compare.Faster, compare.Better, compare.Equivalent, compare.Unconfirmed, compare.Undistinguished, report.NoVerdict} {
		if word = report.VerdictWord(word); rows[word] > 0 {
			parts = append(parts, say.Count(rows[word])+" "+word)
		}
	}
	v.Summary = strings.Join(parts, ", ")
	return v
}

// tableCaption names a table among all of the page.
func (m *comparisonView) tableCaption(p *compare.Pair) string {
	if len(m.Of.Sides) > 2 {
		return p.B + " against " + p.A + ", " + p.What
	}
	return p.What
}

// launchTable says what each side consists of.
func (m *comparisonView) launchTable() captioned {
	t := report.NewTable("Side", "Launch", "Runs")
	for _, s := range m.Of.Sides {
		for _, l := range s.Launches {
			runs := slices.Compact(slices.Clone(l.Runs)) // a baseline holds many
			t.AddRow(s.Name, cmp.Or(l.ID, "not named"), strings.Join(runs, ", "))
		}
		if len(s.Files) > 0 {
			t.AddRow(s.Name, "not reported by "+s.Instrument, strings.Join(s.Files, ", "))
		}
	}
	return captioned{"Each start of a server, and the runs that measured it", t}
}

func (m *comparisonView) writeBody(d *document) {
	d.writeMarkup(`<section id="answer" class="answer" aria-labelledby="claim">
<h1 id="claim">%s</h1>
`, withoutBreaks(m.Sentence))
	d.putNonEmpty("<p class=\"interval\">%s</p>", withoutBreaks(m.Basis))
	d.writeMarkup("\n")
	for _, a := range m.Answers {
		more := joinFacts(a.More)
		if len(m.Answers) > 1 {
			more = strings.Join(append([]string{a.ClaimSentence()}, a.More...), " · ")
		}
		d.writeMarkup("<p class=\"verdict\"><strong class=\"chip %s\">%s</strong> %s</p>\n", chipClass(a.Word), report.VerdictWord(a.Word), more)
	}
	d.putEach(`<ul class="checks">`, `<li>%s</li>`, `</ul>`, m.SLOLines())
	if len(m.Clauses) > 0 {
		d.writeMarkup(`<ul class="checks">`)
		for _, c := range m.Clauses {
			d.writeMarkup(`<li><strong class="%s">%s</strong> %s</li>`, chipClass(c.State), c.State, withoutBreaks(c.Text))
		}
		d.writeMarkup(`</ul>`)
	}
	d.writeMarkup("\n")
	if len(m.Warnings) > 0 {
		d.writeMarkup(`<p><a href="#warnings">%s</a></p>`, m.Warned)
	}
	d.writeMarkup("\n</section>\n")
	rest := markup(`<li><a href="#tables">Tables</a></li><li><a href="#launches">Launches</a></li><li><a href="#redo">Reproduce</a></li>`)
	if len(m.Warnings) > 0 {
		rest = `<li><a href="#tables">Tables</a></li><li><a href="#warnings">Warnings</a></li><li><a href="#launches">Launches</a></li><li><a href="#redo">Reproduce</a></li>`
	}
	d.writeMarkup(`<nav aria-label="Contents"><ul>`)
	d.writeLinks(m.Changes)
	d.writeMarkup(`<li><a href="#differs">What differs</a></li>`)
	d.writeLinks(m.Curves)
	d.writeMarkup(rest)
	d.writeMarkup("</ul></nav>\n")
	d.writeRunSections(m.Changes)
	d.writeMarkup(`<section id="differs" aria-labelledby="differs-h"><h2 id="differs-h">What differs</h2>`)
	switch {
	case m.ByEach != nil:
		d.writeTable(*m.ByEach)
	case len(m.Differs) > 0:
		d.writeMarkup(`<dl class="conditions">`)
		for _, of := range m.Differs {
			d.writeMarkup(`<div><dt>%s</dt><dd>%s</dd></div>`, of[0], of[1])
		}
		d.writeMarkup(`</dl>`)
	default:
		d.writeMarkup(`<p>%s</p>`, say.Sentence(m.Same))
	}
	d.writeMarkup("</section>\n")
	d.writeRunSections(m.Curves)
	d.writeMarkup(`<section id="tables" aria-labelledby="tables-h"><h2 id="tables-h">Tables</h2>`)
	if m.Folded {
		d.writeMarkup("<p>Each load in full: open one.</p>\n")
	}
	for i := range m.Tables {
		t := &m.Tables[i]
		if !m.Folded {
			d.writeSection(&t.Section)
			continue
		}
		d.writeMarkup(`<details class="point" id="%s-all"><summary>%s <span class="v">%s</span></summary><div class="body">`, t.Section.ID, t.Section.Title, t.Summary)
		d.writeSection(&t.Section)
		d.writeMarkup("</div></details>\n")
	}
	d.writeMarkup("</section>\n")
	d.putEach(`<section id="warnings" aria-labelledby="warnings-h"><h2 id="warnings-h">Warnings</h2>`, `<p class="warning">%s</p>`, `</section>`, m.Warnings)
	d.writeMarkup(`
<section id="launches" aria-labelledby="launches-h"><h2 id="launches-h">Launches</h2>`)
	d.writeTable(m.Launches)
	d.writeMarkup(`</section>
<section id="redo" aria-labelledby="redo-h"><h2 id="redo-h">Reproduce</h2><p>The command as it was given.</p><pre tabindex="0" aria-label="Command">%s</pre></section>
`, m.Command)
}
