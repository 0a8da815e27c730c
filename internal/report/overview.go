package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"pitot/internal/report/reasons"
	"pitot/internal/results/metric"
	"pitot/internal/results/result"
	"pitot/internal/say"
	"pitot/internal/stats"
)

// Overview holds what many loads of one target show together: the answer first, then a line for
// each load. The points themselves are in the other formats.
type Overview struct {
	Verdict result.Verdict
	Facts   [][]string // what it rests on
	Loads   Table
	Spread  *Table // of loads that were measured more than once
	Legend  texts
	Failed  []FailedCheck
	Clean   int // points of which every check passed
	Aside   int // points with flags that are to be expected, and none else
	Few     int // of the others, those whose only flag is that of few samples, which the tables mark
	Points  int
	Unit    string   // what a point is called: a load, or a window where loads have several
	Invalid int      // points that were INVALID and on which nothing rests
	Why     []string // names of the checks that failed there
	costs   string   // what the column of costs has, for the legend
}

// FailedCheck is a check that did not pass at some points.
type FailedCheck struct {
	CheckModel        // as at the first of them
	Points     int    // how many
	Unit       string // what they are called
}

// newOverview is nil for a run that is no sweep and no search.
func newOverview(run *result.Run) *Overview {
	if run.Curve == nil && run.Capacity == nil {
		return nil
	}
	o := &Overview{Verdict: run.Verdict, Points: len(run.Points), Unit: pointUnit(run)}
	if c := run.Capacity; c != nil {
		o.addCapacity(c, run)
	}
	if c := run.Curve; c != nil {
		o.addCurve(c, run)
	}
	o.addLoadTable(run)
	o.addSpreadTable(run.Curve, run)
	o.addFailedChecks(run)
	return o
}

// pointUnit returns the word for the points of a run where a text counts them.
func pointUnit(run *result.Run) string {
	seen := map[float64]bool{}
	for i := range run.Points {
		load := run.Points[i].Load.Value()
		if seen[load] {
			return "window"
		}
		seen[load] = true
	}
	return "load"
}

// addCapacity adds all that is known of a search for the capacity.
func (o *Overview) addCapacity(c *result.Capacity, run *result.Run) {
	load := namedLoad(c.Over)
	for _, f := range capacityFacts(run) {
		o.addFact(f.Parts()...)
	}
	if u := c.Unmet; u != nil {
		o.addFact(fmt.Sprintf("%s of %s at up to %s, the lightest, missed %s, and %s are allowed: %s sure that no load meets it", say.Count(u.Violations), say.Plural(u.Requests, "request"),
			load(u.Load), u.Spec, say.Percent(u.Allowed), say.Percent(u.Confidence)))
	}
	if x := c.NotEmptiedS; x != nil {
		o.addFact(fmt.Sprintf("%s after an overload the server still worked on its requests: later windows may have waited for them", say.Seconds(*x)))
	}
	if x := limitedFrom(run); x != nil {
		o.addFact("from " + load(*x) + " on the server's rate limits refuse requests (429): the capacity is what they allow")
	}
	if f := c.Forecast; f != nil {
		o.addFact(forecastText(f), cameOut(c))
	}
	if !c.Why.IsNone() && c.Floor == nil {
		o.addFact(ReasonText(c.Why), reasons.SufficientBudgets(c.Enough, run.Target.Kind == "sim"))
	}
	if c.Estimate != nil || c.Bounds != nil {
		o.addFact(c.Covers)
	}
	measured := say.Plural(c.Requests, "request") + " measured"
	if c.Requests == 0 && run.Interrupted {
		measured = "no window had come to its end"
	}
	if n := countedAlone(c); n > 0 {
		measured += ", " + say.Count(n) + " of them counted and not recorded"
	}
	o.addFact(measured, say.Seconds(c.Seconds))
	if x := c.Continued; x != nil {
		of := "on the same start of the server"
		if x.Restart {
			of = "on another start of it"
		}
		o.addFact("continues "+x.Run+", "+of, say.Plural(x.Requests, "request")+" measured there", say.Seconds(x.Seconds))
	}
}

// addFact adds what an answer rests on, on a line.
func (o *Overview) addFact(parts ...string) { o.Facts = append(o.Facts, nonEmpty(parts...)) }

// userDensity tells how many users a GPU and a megawatt of the GPUs' power have.
func userDensity(c *result.Capacity) (parts []string) {
	if c.PerGPU != nil {
		parts = append(parts, say.Quantity(*c.PerGPU)+" "+result.LoadUnit(c.Over)+" a GPU")
	}
	if c.PerMW != nil {
		parts = append(parts, say.Quantity(*c.PerMW)+" "+result.LoadUnit(c.Over)+" a megawatt of the GPUs' power")
	}
	return parts
}

// countedAlone returns the number of requests of a search that are in no record.
func countedAlone(c *result.Capacity) (n int) {
	for i := range c.Trail {
		if c.Trail[i].Counted && !c.Trail[i].Earlier {
			n += c.Trail[i].Requests
		}
	}
	return n
}

// forecastText returns the result that a search said that it would come to.
func forecastText(f *result.Forecast) string {
	if f.HalfWidth == nil {
		return "forecast: bounds, perhaps an estimate"
	}
	return fmt.Sprintf("forecast for %s: about ±%s", say.Plural(f.Requests, "request"), say.Percent(math.Round(100**f.HalfWidth)/100))
}

// cameOut returns the result of the search.
func cameOut(c *result.Capacity) string {
	switch {
	case c.Estimate != nil && c.CI95 != nil:
		below, above := 1 - c.CI95[0] / *c.Estimate, c.CI95[1] / *c.Estimate - 1
		return "it came out at −" + say.Percent(math.Round(100*below)/100) + ", +" + say.Percent(math.Round(100*above)/100)
	case c.Floor != nil || c.Bounds == nil:
		return ""
	}
	return "it came to bounds"
}

// severalLimits says that one of several limits is known to be reached first: of one
// alone there is nothing to say.
func severalLimits(c *result.Capacity) bool { return c.Binding != "" && len(c.Limits) > 1 }

// boundConfidence is with which a search's bounds hold.
func boundConfidence(c *result.Capacity) float64 {
	if c.Bounds != nil {
		return c.Bounds.Level
	}
	return 0.95
}

// limitedFrom is the lightest load that does not meet the SLO for the server's rate limits'
// sake alone, nil where none is.
func limitedFrom(run *result.Run) (at *float64) {
	for i := range run.Points {
		if p := &run.Points[i]; p.OverByLimits() && (at == nil || p.Load.Value() < *at) {
			at = new(p.Load.Value())
		}
	}
	return at
}

// knownAbove is a load that is known to be within by all windows together, where it is above
// what was verified by a look of its own; nil where none is.
func knownAbove(c *result.Capacity) *float64 {
	if c.Bounds == nil || c.Bracket == nil || c.Bracket[0] == nil || c.Load != nil && *c.Bracket[0] <= *c.Load {
		return nil
	}
	return c.Bracket[0]
}

// highestWithinSLO is the highest load that is known to be within; nil where none is.
func highestWithinSLO(c *result.Capacity) *float64 {
	if met := knownAbove(c); met != nil {
		return met
	}
	return c.Load
}

// noKnee returns why a curve has none.
func noKnee(c *result.Curve) string { return "no knee: " + ReasonText(c.NoKnee) }

// floorCause says in which way requests violate a limit however low the load.
func floorCause(f *result.Floor) string {
	switch {
	case f.Errors == 0:
		return "they took longer than the limit"
	case f.Errors >= f.Violations:
		return "all of them failed"
	}
	return fmt.Sprintf("%s of them failed, the others took longer than the limit", say.Count(f.Errors))
}

// addCurve adds all that the loads of a sweep show.
func (o *Overview) addCurve(c *result.Curve, run *result.Run) {
	for _, f := range curveFacts(run) {
		o.addFact(f.Parts()...)
	}
	if x := c.Crossing; x != nil && x.Estimate == nil && !x.Why.IsNone() {
		o.addFact(ReasonText(x.Why))
	}
	if !c.NoKnee.IsNone() {
		o.addFact(noKnee(c))
	}
	if k := c.Knee; k != nil {
		why := ""
		if k.Resampled == nil {
			why = "no range: the loads are too few"
		}
		o.addFact("knee by "+k.Method, why)
	}
	if n := c.LeftOut; n > 0 {
		o.addFact(fmt.Sprintf("knee, saturation and where queues grow are without %s that %s INVALID: with %s they would differ", say.Plural(n, o.Unit), wasOrWere(n), itOrThem(n)))
	}
	if at := mostGoodput(run); at >= 0 {
		o.addFact(fmt.Sprintf("most goodput %s req/s, at %s", say.Quantity(run.Points[at].Goodput.RequestsPerS), namedLoad(c.Over)(run.Points[at].Load.Value())))
	}
}

// invalidPoints returns the number of points of a run that are INVALID.
func invalidPoints(run *result.Run) (n int) {
	for i := range run.Points {
		if run.Points[i].Verdict == result.Invalid {
			n++
		}
	}
	return n
}

// crossingText says between which loads of a sweep the SLO stops being met, "" if that is not known.
func crossingText(c *result.Curve) string {
	x, load := c.Crossing, namedLoad(c.Over)
	if x == nil {
		return ""
	}
	sure := " (" + say.Percent(x.Level) + " sure)"
	switch {
	case x.AtLeast != nil && x.AtMost != nil:
		return "between " + say.Quantity(*x.AtLeast) + " and " + load(*x.AtMost) + sure
	case x.AtLeast != nil:
		return "not below " + load(*x.AtLeast) + sure
	case x.AtMost != nil:
		return "not above " + load(*x.AtMost) + sure
	}
	return ""
}

// addLoadTable is the table, by load.
func (o *Overview) addLoadTable(run *result.Run) {
	head := "due/s"
	if len(run.Points) > 0 && run.Points[0].Load.Concurrency != nil {
		head = "users"
	}
	o.Loads.Head = []string{head, "due/s", "n", "served/s", "good/s", "tok/s", "inputs/s"}
	heads := run.Metrics().WithPercentiles().Filter(func(m *metric.Metric) bool {
		return m.Show == metric.Headline && !(m.Stream && !hasStreaming(run))
	})
	var spare []int // of metrics behind the first two
	for i, m := range heads {
		at := len(o.Loads.Head)
		if o.Loads.Head = append(o.Loads.Head, headsOf(m, shownOf(run.Points, m.Name))...); i > 1 {
			spare = append(spare, at+1, at)
		}
	}
	o.Loads.Head = append(o.Loads.Head, "in SLO", wrongHead, costHead, energyHead, "")
	costAt := len(o.Loads.Head) - 3
	spare = slices.Insert(spare, 0, costAt+1)
	if len(run.Points) > 0 && run.Points[0].Cost != nil && run.Points[0].Cost.Basis == result.ListPrice { // nobody asked for it
		spare = slices.Insert(spare, 1, costAt)
	}
	spare = slices.Insert(spare, len(spare)-1, 3, 4) // it has the column of energy
	o.Loads.Spare = append(spare, 2, 1)              // what came due last, on a terminal narrower than most
	marks, hopeless, partly := newCaveats(), false, false
	for _, i := range run.ByLoad() {
		p := &run.Points[i]
		within, good := "", ""
		cut := i == run.UnderWay()
		if p.SLO != nil {
			within, good = say.Unknown, say.Unknown
			if p.SLO.Attained != nil && !cut {
				within = goodShareText(p.SLO)
			}
			if g := p.Goodput; g != nil && !cut {
				good = say.Quantity(g.RequestsPerS)
			}
		}
		mark := ""
		switch {
		case cut:
			mark = "interrupted"
		case p.Verdict == result.Invalid:
			mark = "INVALID"
		case p.OverByLimits():
			mark = "rate limits"
		case p.Outcome == result.Failing:
			mark = "failing"
		case p.EndedEarly:
			mark, hopeless = "hopeless", true
		case p.Stability == stats.Unstable:
			mark = QueueGrows
		case inPart(run, p):
			mark, partly = "in part", true
		}
		row := []string{say.Decimal(p.Load.Value(), 3), say.Optional(p.Throughput.DuePerS), say.Count(p.Requests.Due), servedRate(p, p.Throughput.RequestsPerS), good, servedRate(p, p.Throughput.OutputTokensPerS), formatInputRate(p)}
		for _, m := range heads {
			for _, key := range shownOf(run.Points, m.Name) {
				row = append(row, marks.markedCell(p.Metrics.SummaryOf(m.Name), key))
			}
		}
		o.Loads.AddRow(append(append(append(row, within, wrongCell(p)), costColumns(p)...), mark)...)
	}
	o.Loads = o.Loads.withoutColumns(func(column int) bool {
		return len(o.Loads.Rows) > 0 && !slices.ContainsFunc(o.Loads.Rows, func(r []string) bool { return r[column] != "" })
	})
	if text := mostRetried(run); text != "" {
		o.Legend.addText(text)
	}
	if marks.seen[fewSamples] {
		o.Legend.addText("~ few independent samples")
	}
	if marks.seen[absent] {
		o.Legend.addText(say.Unknown + " too few samples, or no steady state to speak of")
	}
	if slices.Contains(o.Loads.Head, wrongHead) {
		o.Legend.addText("in SLO: share of requests; wrong: share of questions, counted apart; ?: too few to say on which side of the limit")
	}
	if hopeless {
		o.Legend.addText("hopeless: ended early, the queue only grew")
	}
	if partly {
		o.Legend.addFormat("in part: further requests at the verified load, which were recorded; the %s that verify it were counted alone", say.Plural(run.Capacity.Verified.Requests, "request"))
	}
	o.costs = costLegend(run)
	o.Legend.addText("times in ms")
}

// inPart says that a point is of fewer requests than verify its load: those of a simulated target
// are counted and not recorded, and what a few others met need not be what they did.
func inPart(run *result.Run, p *result.Point) bool {
	return run.Capacity != nil && run.Capacity.Verified != nil && p.Load.Value() == run.Capacity.Verified.Load && int(p.Requests.Due) < run.Capacity.Verified.Requests &&
		countedAlone(run.Capacity) > 0
}

// wrongHead is the column of the shares of wrong answers.
const wrongHead = "wrong"

// wrongCell is the share of a load, "" where nobody asked questions. Where it breaks its limit
// that is said beside it.
func wrongCell(p *result.Point) string {
	if p.Answers == nil {
		return ""
	}
	if p.Answers.Wrong == nil || p.Answers.Wrong.Share == nil {
		return say.Unknown
	}
	cell := say.Percent(*p.Answers.Wrong.Share)
	if p.SLO != nil {
		for _, l := range p.SLO.Limits {
			switch {
			case l.Metric != metric.Wrong:
			case l.Met == result.No:
				cell += " over"
			case l.Met == result.Undecided:
				cell += " ?"
			}
		}
	}
	return cell
}

// hasStreaming says whether some point has an answer that was streamed, or none to tell by.
func hasStreaming(run *result.Run) bool {
	return len(run.Points) == 0 || slices.ContainsFunc(run.Points, func(p result.Point) bool {
		return p.Metrics.Undefined["ttft_ms"].Code != result.NotStreaming
	})
}

// formatInputRate are the texts a second that were given a vector or a score, "" of other loads.
func formatInputRate(p *result.Point) string {
	if x, ok := p.Window[metric.All().Find(metric.InputsRate).FieldName()]; ok {
		return say.Quantity(x)
	}
	return ""
}

// LoadsLegend explains the marks in a table of the loads, and what its columns count
// that have no word of their own elsewhere.
func (o *Overview) LoadsLegend(t Table) (list []string) {
	for _, h := range [][2]string{
		{"due/s", "came due in the window"}, {"served/s", "answers that ended in it"}, {"good/s", "of those due, within the SLO"},
	} {
		if slices.Contains(t.Head, h[0]) {
			list = append(list, h[0]+": "+h[1])
		}
	}
	list = append(list, o.Legend...)
	if slices.Contains(t.Head, costHead) {
		list = append(list, o.costs)
	}
	return list
}

// addSpreadTable is the table of repeated loads: the least and the most of each value.
func (o *Overview) addSpreadTable(c *result.Curve, run *result.Run) {
	if c == nil || len(c.Repeats) == 0 {
		return
	}
	var values []repeatedValue // that stand in the table of loads too
	for _, v := range repeatedValues(run) {
		if v.Name == metric.OutputRate || v.Name == metric.Attained || v.percentile != "" && v.Show == metric.Headline {
			values = append(values, v)
		}
	}
	o.Spread = &Table{Head: []string{"repeats of", "n"}}
	for i, v := range values {
		name := v.name()
		switch {
		case i > 0 && values[i-1].Name == v.Name:
			name = v.percentile
		case v.Name == metric.OutputRate:
			name = v.unit()
		}
		o.Spread.Head = append(o.Spread.Head, name)
	}
	for _, r := range c.Repeats {
		row := []string{say.Decimal(r.Load, 3), say.Count(len(r.Points))}
		for _, v := range values {
			spread, ok := r.Spread[v.key()]
			write := formatterFor(v.Unit)
			switch lo, hi := write(spread[0]), write(spread[1]); {
			case !ok:
				row = append(row, say.Unknown)
			case lo == hi:
				row = append(row, lo)
			default:
				row = append(row, lo+"–"+hi)
			}
		}
		o.Spread.AddRow(row...)
	}
	o.Legend.addText("repeats: least and most, " + c.Repeats[0].Covers)
}

// servedRate writes a rate of what was answered. For a point that was ended early the rate that
// there would have been is not known.
func servedRate(p *result.Point, rate *float64) string {
	if p.EndedEarly {
		return say.Unknown
	}
	return say.Optional(rate)
}

// addFailedChecks gathers what did not pass, each check once.
func (o *Overview) addFailedChecks(run *result.Run) {
	type check struct {
		result.Status
		name string
	}
	at := map[check]int{}
	for i := range run.Points {
		if i == run.UnderWay() {
			o.Points--
			continue
		}
		// Of a search that is INVALID each such window is told of among its checks: one count.
		invalid := run.Capacity != nil && run.Points[i].Verdict == result.Invalid && run.Capacity.ExcludesPoint(i)
		if invalid && run.Verdict != result.Invalid {
			o.Invalid++
			for _, c := range run.Points[i].Checks {
				if c.Status == result.Fail && !slices.Contains(o.Why, c.Name) {
					o.Why = append(o.Why, c.Name)
				}
			}
			continue
		}
		clean, aside, few := true, false, false
		for k := range run.Points[i].Checks {
			c := &run.Points[i].Checks[k]
			switch {
			case c.Status == result.Pass:
				continue
			case invalid && c.Status != result.Fail:
				clean = false
				continue
			case run.Points[i].IsExcused(c, run.Capacity.RestsOn(i)):
				aside, few = aside || c.Name != result.CheckSamples, few || c.Name == result.CheckSamples
				continue
			}
			clean = false
			key := check{c.Status, c.Name}
			n, ok := at[key]
			if !ok {
				n = len(o.Failed)
				at[key] = n
				o.Failed = append(o.Failed, FailedCheck{CheckModel: BuildCheck(c), Unit: o.Unit})
			}
			o.Failed[n].Points++
		}
		switch {
		case clean && aside:
			o.Aside++
		case clean && few:
			o.Few++
		case clean:
			o.Clean++
		}
	}
	stats.SortStable(o.Failed, func(a, b FailedCheck) int { return cmp.Compare(a.Status, b.Status) }) // fail before flag
}

// passedText says how many points there is nothing to say about.
func (o *Overview) passedText() string {
	text := fmt.Sprintf("all checks passed at %d of %s", o.Clean, say.Plural(o.Points, o.Unit))
	if o.Clean == o.Points {
		text = "all checks passed at all " + say.Plural(o.Points, o.Unit)
	}
	if o.Aside > 0 {
		text += fmt.Sprintf("; flags at %d that only showed the way, or lie beyond what is served, are left out", o.Aside)
	}
	if o.Few > 0 {
		text += fmt.Sprintf("; at %d few samples, marked ~, are the only flag", o.Few)
	}
	if o.Invalid > 0 {
		text += "; " + o.DiscardedText()
	}
	return text
}

// DiscardedText says how many windows of a search were INVALID and carry nothing, and why.
func (o *Overview) DiscardedText() string {
	return fmt.Sprintf("%s %s INVALID (%s): nothing rests on that", say.Plural(o.Invalid, "window"), wasOrWere(o.Invalid), strings.Join(o.Why, ", "))
}

// wasOrWere and them are the words for so many.
func wasOrWere(n int) string {
	if n == 1 {
		return "was"
	}
	return "were"
}

func itOrThem(n int) string {
	if n == 1 {
		return "it"
	}
	return "them"
}

func (f *FailedCheck) describeFailure() string {
	return fmt.Sprintf("%s at %s, first: %s (limit %s)", f.Name, say.Plural(f.Points, f.Unit), f.Value, f.Limit)
}

func (o *Overview) writeTerminal(p *printer) {
	p.line("")
	p.writePainted(verdictColor(o.Verdict), "Measurement "+string(o.Verdict))
	p.line("")
	loads := o.Loads.fitWidth(p.textWidth())
	p.writeTable(loads)
	if o.Spread != nil {
		p.line("")
		p.writeTable(*o.Spread)
	}
	p.writePainted(dim, o.LoadsLegend(loads)...)
	p.line("")
	for i := range o.Failed {
		p.writeCheck(&o.Failed[i].CheckModel, o.Failed[i].describeFailure())
	}
	p.writeText(o.passedText())
}

func (o *Overview) writeMarkdown(p *markdown) {
	p.line("")
	p.line(strongText(string(o.Verdict))) // the answer is the claim above
	p.line("")
	for _, f := range o.Facts {
		p.writeItem(escapeTexts(f)...)
	}
	p.line("")
	p.writeTable(o.Loads)
	p.line("")
	if o.Spread != nil {
		p.writeTable(*o.Spread)
		p.line("")
	}
	p.writeItem(escapeTexts(o.LoadsLegend(o.Loads))...)
	for _, f := range o.Failed {
		p.writeItem(strongText(string(f.Status)) + " " + escapeMarkdown(f.describeFailure()+". "+f.Advice))
	}
	p.writeItem(escapeMarkdown(o.passedText()))
}
