package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"pitot/internal/results/metric"
	"pitot/internal/results/result"
	"pitot/internal/say"
	"pitot/internal/stats"
)

// What the terminal shows of a run by default: the answer, the facts that it rests on, the
// latencies, at most three notes, and what to do next. Style.Full shows every line.

// mostLimits and mostErrors are the numbers of limits and of classes of errors that are shown.
const (
	mostLimits = 4
	mostErrors = 2
)

// writeAnswer writes the default of the terminal.
func (m *Model) writeAnswer(p *printer) {
	p.writeAnswer(m.Headline.Sentence)
	switch {
	case m.Overview != nil && m.Run.Capacity != nil:
		m.writeSearch(p)
	case m.Overview != nil:
		m.writeSweep(p)
	case m.Repeats != nil:
		m.writeRepeats(p)
	default:
		m.writeLoads(p)
	}
	if m.Unsaved && m.Dir != "" {
		p.linePainted(yellow, "not saved: the records alone are in "+m.Dir)
	}
	p.writeCommand("Next", m.nextCommand())
	p.writeCommand("Report", m.Page)
}

// fullCommand returns the command that shows every line of a run.
func (m *Model) fullCommand() string {
	if m.Dir == "" || m.Unsaved {
		return "--full"
	}
	return say.ShellLine([]string{"pitot", "report", m.Dir, "--full"})
}

// writeLoads writes a run of one load, or of few that are no sweep.
func (m *Model) writeLoads(p *printer) {
	invalid := false
	for i := range m.Points {
		x, of := &m.Points[i], &m.Run.Points[i]
		if x.Ordinal != "" {
			p.line("")
			p.linePainted(bold, strings.ToUpper(x.Ordinal[:1])+x.Ordinal[1:])
		}
		if of.Verdict == result.Invalid {
			invalid = true
			p.writeFacts(x.invalidFacts(of, m.Run))
			continue
		}
		if m.Run.Verdict == result.Invalid && len(m.Points) == 1 { // by what is no check of a load
			x.Verdict = result.Invalid
		}
		p.writeFacts(x.evidence(of, m.Run))
		rows := mostRows
		if len(m.Points) > 1 {
			rows = max(2-p.tight/2, 1)
		}
		if t := x.shortLatencies(of, rows); len(t.Rows) > 0 {
			p.line("")
			p.writeTable(t)
			p.writePainted(dim, marksLegend(t)...)
		}
		if t := x.Classes; t != nil && len(m.Points) == 1 {
			p.line("")
			less, left := t.withoutColumns(func(column int) bool { return column > 6 }).firstRows(max(mostRows-3-p.tight, 1))
			p.writeTable(less)
			if left > 0 {
				p.linePainted(dim, say.Plural(left, "more class")+": "+m.fullCommand())
			}
		}
	}
	p.writeNotes(m.runNotes(), false, m.fullCommand())
	if len(m.Points) == 1 && !invalid {
		facts := m.furtherFacts()
		if p.tight > 1 { // what it costs and how it was measured
			facts = slices.DeleteFunc(facts, func(f labelled) bool {
				return f.Label == "Server" || f.Label == "Mean TTFT" || f.Label == "Server queue"
			})
		}
		p.writeFacts(facts)
	} else if p.tight < mostTight {
		p.writeFacts([]labelled{m.setupFact()})
	}
}

// evidence returns the facts on which the answer of a point rests.
func (m *PointModel) evidence(p *result.Point, run *result.Run) (facts []labelled) {
	facts = append(facts, m.limitFacts(p)...)
	facts = append(facts, labelled{Label: "Requests", Value: m.requestsText(p)})
	facts = append(facts, m.errorFacts()...)
	return append(facts, m.measurementFact(p), simulatedFact(run))
}

// isFirstLook reports whether a run is one of pitot quick.
func isFirstLook(run *result.Run) bool {
	return len(run.Points) > 0 && run.Points[0].Stage == result.StageQuick
}

// isSimulated reports whether a run measured the model of a server in place of one.
func isSimulated(run *result.Run) bool {
	return run.Target.Kind == "sim" || run.Target.Kind == "mock"
}

// simulatedFact says that a run measured no server, and how far servers may be from it. It has no
// value where a server was measured.
func simulatedFact(run *result.Run) labelled {
	f := labelled{Label: "Simulated"}
	t := &run.Target
	switch {
	case !isSimulated(run):
	case strings.Contains(t.Spec, "profile="):
		f.Value = []string{"by a twin that runs calibrated; pitot fit printed its error"}
	case t.Server["accelerator"] != "":
		f.Value = []string{"no GPU measured; on 2 real ones TTFT up to 3.1× longer, TPOT ±19 %"}
	case run.Environment.Stamps == "virtual":
		f.Value = []string{"in virtual time"}
	}
	return f
}

// usualDifference is the share by which completed and due requests per second may differ in a window
// through those that were under way at its ends.
const usualDifference = 0.05

// requestsText says how many requests were answered, and how fast.
func (m *PointModel) requestsText(p *result.Point) (list texts) {
	r, t := p.Requests, p.Throughput
	list.addFormat("%s of %s answered", say.Count(r.OK), say.Count(r.Due))
	if due := t.DuePerS; due == nil || !(math.Abs(valueOrZero(t.RequestsPerS)-*due) < usualDifference**due) { // else it says no more
		list.addQuantity(t.RequestsPerS, "completed/s")
	}
	if x := metric.All().Find(metric.InputsRate); p.Window[x.FieldName()] > 0 {
		list.addFormat("%s %s", say.Quantity(p.Window[x.FieldName()]), string(x.Unit))
	}
	list.addQuantity(t.OutputTokensPerS, "output tok/s")
	if g := goodputOfPoint(p); g != nil && 100*g.RequestsPerS < 99*valueOrZero(t.DuePerS) {
		list.addFormat("goodput %s of %s req/s", say.Quantity(g.RequestsPerS), say.Quantity(valueOrZero(t.DuePerS)))
	}
	return list
}

// errorFacts are the most frequent classes of errors.
func (m *PointModel) errorFacts() (facts []labelled) {
	f := m.Failures
	if f == nil {
		return nil
	}
	shown := min(len(f.Classes), mostErrors)
	label := "Errors"
	for _, class := range f.Classes[:shown] {
		facts = append(facts, labelled{Label: label, Color: red, Value: []string{class}})
		label = ""
	}
	if more := len(f.Classes) - shown; more > 0 {
		facts = append(facts, labelled{Value: []string{say.Plural(more, "more class") + " of errors"}})
	}
	return facts
}

// notTheServer says of what a verdict is where a server failed.
const notTheServer = "this rates the measurement; the server failed"

// isFailedServer reports whether the server failed in a measurement that shows it.
func isFailedServer(p *result.Point) bool {
	return p.Outcome == result.Failing && !shapedByLimits(p) && p.Verdict != result.Invalid
}

// VerdictNote says of what the verdict on a run of one point is where its server failed. It is ""
// for other runs.
func (m *Model) VerdictNote() string {
	if len(m.Run.Points) == 1 && isFailedServer(&m.Run.Points[0]) {
		return notTheServer
	}
	return ""
}

// measurementFact says what the measurement itself is worth. It is never green: it says nothing
// about the server.
func (m *PointModel) measurementFact(p *result.Point) labelled {
	f := labelled{Label: "Measurement", Value: []string{string(m.Verdict)}}
	if len(m.Because) > 0 {
		f.Value[0] += " (" + strings.Join(m.Because, ", ") + ")"
		f.Color = yellow
	}
	if m.Verdict == result.Invalid {
		f.Color = red
	}
	if isFailedServer(p) {
		f.Value[0] += ": " + notTheServer
	}
	f.Value = append(f.Value, m.ChecksPassed())
	f.Value = append(f.Value, carriedBy(p.Workers))
	return f
}

// limitFacts has a line for each limit of the SLO, in columns: mark, limit, what was measured.
func (m *PointModel) limitFacts(p *result.Point) (facts []labelled) {
	if p.SLO == nil {
		return nil
	}
	limits, share := slices.Clone(p.SLO.Limits), jointShares(p.SLO.Spec)
	weight := map[result.Met]int{result.No: 0, result.Undecided: 1, result.Yes: 2}
	stats.SortStable(limits, func(a, b result.Limit) int { return weight[a.Met] - weight[b.Met] })
	hidden := max(len(limits)-mostLimits, 0)
	var rows [][]string
	width := make([]int, 3)
	for _, l := range limits[:len(limits)-hidden] {
		row := limitCells(p, l, share(l.Class))
		for i := range width {
			width[i] = max(width[i], utf8.RuneCountInString(row[i]))
		}
		rows = append(rows, row)
	}
	label := "SLO"
	for i, row := range rows {
		met := limits[i].Met
		if p.SLO.Met == result.Undecided && met == result.No { // its requests were not followed to their end
			met = result.Undecided
		}
		mark, color := metMark(met), metColor(met)
		if limits[i].Near && met != result.Undecided {
			mark, color = "≈", yellow
		}
		text := mark + " "
		for k, cell := range row {
			if k < len(width) {
				cell += strings.Repeat(" ", width[k]-utf8.RuneCountInString(cell)+2)
			}
			text += cell
		}
		facts = append(facts, labelled{Label: label, Color: color, Columns: strings.TrimRight(text, " ")})
		label = ""
	}
	if hidden > 0 {
		facts = append(facts, labelled{Value: []string{say.Plural(hidden, "more limit")}})
	}
	least := 1.
	for _, l := range limits {
		if l.Attained != nil {
			least = min(least, *l.Attained)
		}
	}
	if p.SLO.Attained != nil && len(limits) > 1 && least-*p.SLO.Attained > 1e-4 { // else a limit says it
		facts = append(facts, labelled{Value: []string{goodShareText(p.SLO) + " of all requests" + heldAgainst(p.SLO.Limits)}})
	}
	return facts
}

// metMark is a mark for whether a limit is met, for readers without colours.
func metMark(met result.Met) string {
	return map[result.Met]string{result.Yes: "✓", result.No: "✗", result.Undecided: "?"}[met]
}

// nameOfLimit returns the name of a limit: "p99 TTFT", "chat: p99 TTFT", "failed requests".
func nameOfLimit(l *result.Limit) (name string) {
	if d := metric.All().Find(l.Metric); d != nil {
		name = d.Label
	} else {
		name = string(l.Metric)
	}
	if l.Percentile > 0 {
		name = fmt.Sprintf("p%g %s", l.Percentile, name)
	}
	if l.Class != "" {
		name = say.PlainLine(l.Class) + ": " + name
	}
	return name
}

// limitCells returns a limit's name, measured value, limit, and share of requests within it.
// Joint limits have a share in common.
func limitCells(p *result.Point, l result.Limit, share float64) []string {
	cells := []string{nameOfLimit(&l), "", "", ""}
	amount := func(x float64) string { return say.QuantityNear(x, l.Limit) + " ms" }
	if l.Metric == "errors" || l.Metric == "wrong" {
		amount = func(x float64) string { return say.PercentNear(x, l.Limit) }
	}
	switch {
	case l.Metric == "errors" || l.Metric == "wrong":
		cells[2] = "limit " + say.Percent(l.Limit)
	case l.Limit > 0:
		cells[2] = "of " + say.Decimal(l.Limit, 3) + " ms"
	}
	switch {
	case l.Value == nil:
		cells[1] = say.Unknown
	case l.Percentile > 0 && l.Met == result.No && l.Attained != nil && *l.Value < l.Limit:
		cells[1] = ">" + say.Decimal(l.Limit, 3) + " ms, failures included"
	case l.Percentile > 0 || l.Metric == "errors" || l.Metric == "wrong":
		cells[1] = fewLimitMark(p, &l) + amount(*l.Value)
	}
	if l.Attained != nil && l.Metric != "errors" {
		if l.Percentile > 0 {
			share = l.Percentile / 100
		}
		cells[3] = say.Percent(*l.Attained) + " of requests"
		if share > 0 {
			cells[3] = say.PercentNear(*l.Attained, share) + " of requests, " + say.Percent(share) + " needed"
		}
	}
	if l.Met == result.Undecided && !l.Why.IsNone() {
		cells[3] = ReasonText(l.Why)
	}
	return cells
}

// shortLatencies returns the latencies in at most seven columns, of the metrics that users read
// first and of those that the SLO limits.
func (m *PointModel) shortLatencies(p *result.Point, rows int) Table {
	var shown []metric.Percentile
	for _, c := range metric.Percentiles() {
		known := func(l line) bool { return cellText(l.summary, c.Key) != say.Unknown }
		if c.Key != "p99_9" && slices.ContainsFunc(m.lines, known) {
			shown = append(shown, c)
		}
	}
	t := NewTable("ms")
	for _, c := range shown {
		t.Head = append(t.Head, c.Name)
	}
	t.Head = append(t.Head, "max", "n")
	limited := func(name metric.Name) bool {
		return p.SLO != nil && slices.ContainsFunc(p.SLO.Limits, func(l result.Limit) bool { return l.Metric == name })
	}
	for _, l := range m.lines {
		usual := l.metric.Show == metric.Headline || l.metric.Name == metric.ITL || l.metric.Name == metric.ICL || l.metric.Name == metric.E2E
		if l.view || !usual && !limited(l.metric.Name) || len(t.Rows) == rows {
			continue
		}
		row := []string{l.name}
		for _, c := range shown {
			row = append(row, cellText(l.summary, c.Key))
		}
		t.AddRow(append(row, cellText(l.summary, "max"), say.Count(l.summary.N))...)
	}
	return t
}

// marksLegend explains the marks that occur in a table.
func marksLegend(t Table) (list []string) {
	seen := func(mark string) bool {
		return slices.ContainsFunc(t.Rows, func(r []string) bool {
			return slices.ContainsFunc(r[1:], func(c string) bool { return strings.HasPrefix(c, mark) })
		})
	}
	for _, m := range [][2]string{
		{"~", "~ rough, do not quote"}, {">", "> at least: some requests were not followed to their end"},
		{say.Unknown, say.Unknown + " too few samples, or no steady state"},
	} {
		if seen(m[0]) {
			list = append(list, m[1])
		}
	}
	return list
}

// runNotes returns what a reader must know of a run, the most important first.
func (m *Model) runNotes() (notes []note) {
	warn := func(text string) { notes = append(notes, note{Text: text, Warning: true}) }
	tell := func(list ...string) {
		for _, text := range list {
			notes = append(notes, note{Text: asSentence(text)})
		}
	}
	for _, text := range m.Warnings {
		warn(asSentence(text))
	}
	for i := range m.Points {
		p := &m.Run.Points[i]
		if text := m.Points[i].TooLow; text != "" {
			warn(asSentence(text))
		}
		if p.SLO != nil && p.SLO.Near && p.Verdict != result.Invalid {
			warn("Another run of this load may come out differently. A longer test decides.")
		}
		if p.Verdict != result.Invalid {
			for _, text := range checkSentences(m.Points[i].NotPassed) {
				warn(text)
			}
		}
		tell(m.Points[i].Remarks...)
		if late := lateSeconds(p); late > 0.1*(p.Seconds.Window+late) {
			tell(fmt.Sprintf("the load settled %s late: %s were measured, not %s", say.Seconds(late), say.Seconds(p.Seconds.Window), say.Seconds(p.Seconds.Window+late)))
		}
		if p.Verdict != result.Invalid && (p.SLO == nil || p.SLO.Met != result.Undecided) { // then a fact says it
			tell(nonEmpty(m.Headline.Interval)...)
		}
		if text := missedOverload(p); text != "" {
			tell(text)
		}
	}
	for _, f := range m.Facts[min(2, len(m.Facts)):] {
		tell(strings.Join(f, ", "))
	}
	var once []note
	for _, n := range notes {
		if !slices.ContainsFunc(once, func(o note) bool { return o.Text == n.Text }) {
			once = append(once, n)
		}
	}
	return once
}

// asSentence returns a text that begins with a capital letter and ends in a full stop.
// A unit at its beginning, as tok/s, stays as it is.
func asSentence(text string) string {
	if first, _, _ := strings.Cut(text, " "); strings.Contains(first, "/") {
		return strings.TrimSuffix(text, ".") + "."
	}
	return say.Sentence(strings.TrimSuffix(text, "."))
}

// checkSentences say what checks found and what to do, together where the remedy is the same. That
// there are few samples is marked in the table.
func checkSentences(list []CheckModel) (sentences []string) {
	var of Grouping
	for _, c := range list {
		if c.Name != result.CheckSamples {
			of.AddName(c.Advice, fmt.Sprintf("%s: %s (limit %s)", c.Name, c.Value, c.Limit))
		}
	}
	for _, advice := range of.Keys {
		sentences = append(sentences, strings.TrimSpace(strings.Join(of.Names[advice], "; ")+". "+advice))
	}
	return sentences
}

// missedOverload says which overload a run this short does not show, "" if it shows all.
func missedOverload(p *result.Point) string {
	if p.Stability != stats.Stable || p.Load.Loop == "closed" || p.NotKeptUp() || p.Verdict == result.Invalid || shortOfHalf(p) {
		return ""
	}
	if above, ok := stats.MissedOverload(float64(p.Requests.Due)); ok && above < 1 {
		return fmt.Sprintf("the queue was stable, but a run this short would miss an overload below %.0f %%", 100*above)
	}
	return "too few requests to show whether the queue grows"
}

// shortOfHalf reports whether half of the requests or more were not answered: then nothing
// reassuring is said of the server.
func shortOfHalf(p *result.Point) bool { return 2*p.Requests.OK < p.Requests.Due }

// furtherFacts are what the server reports, what it costs, and how it was measured.
func (m *Model) furtherFacts() (facts []labelled) {
	x := &m.Points[0]
	for _, f := range x.Server {
		if f.Label == "Server" {
			f.Value = f.Value[:min(3, len(f.Value))]
		}
		if f.Label == "Server" || f.Label == "Mean TTFT" || f.Label == "Server queue" {
			facts = append(facts, f)
		}
	}
	for i := range x.Cost {
		f := x.Cost[i]
		if f.Label == "Cost" { // what a million tokens cost, and the price
			price := strings.Replace(f.Value[len(f.Value)-1], "the list price of ", "", 1)
			f.Value = []string{f.Value[0] + ", " + price}
		}
		facts = append(facts, f)
	}
	return append(facts, m.setupFact())
}

// setupFact is the line that says what was measured.
func (m *Model) setupFact() labelled {
	value := []string{m.Title}
	if m.Run.Target.Kind != "http" { // its name has the model
		value[0] = m.Run.Target.Spec
	}
	if len(m.Facts) > 1 {
		value = append(value, m.Facts[1]...)
	}
	if len(m.Points) == 1 {
		value = append(value, m.Points[0].Load...)
	}
	return labelled{Label: "Setup", Value: []string{strings.Join(value, ", ")}}
}

// invalidFacts are what an INVALID point shows: what failed, and what is known all the same.
func (m *PointModel) invalidFacts(p *result.Point, run *result.Run) (facts []labelled) {
	facts = append(facts, m.errorFacts()...)
	facts = append(facts, labelled{Label: "Still known", Value: []string{strings.TrimPrefix(stillKnown(p), "Still known: ")}})
	var also []string
	advice := ""
	for i, c := range m.NotPassed {
		if c.Status == result.Fail {
			facts = append(facts, labelled{Label: "Failed check", Color: red, Value: []string{c.Name + ": " + c.Value + " (limit " + c.Limit + ")"}})
			advice = cmp.Or(advice, c.Advice)
			continue
		}
		if len(also) < 4 {
			also = append(also, c.Name+": "+m.NotPassed[i].Value)
		}
	}
	facts = append(facts, labelled{Label: "Also flagged", Value: also}, labelled{Label: "What to do", Value: []string{advice}})
	return append(facts, m.measurementFact(p), simulatedFact(run))
}

// writeRepeats writes a load that was measured several times.
func (m *Model) writeRepeats(p *printer) {
	p.line("")
	t, left := m.Repeats.Table.firstRows(12)
	p.writeTable(t)
	legend := slices.Clone(m.Repeats.Legend)
	if left > 0 {
		legend = append(legend, fmt.Sprintf("%d more rows: %s", left, m.fullCommand()))
	}
	p.writePainted(dim, legend...)
	verdicts := map[result.Verdict]int{}
	for i := range m.Points {
		verdicts[m.Points[i].Verdict]++
	}
	var parts []string
	color := ""
	for _, v := range []result.Verdict{result.Valid, result.ValidWithFlags, result.Invalid} {
		if n := verdicts[v]; n > 0 {
			parts = append(parts, fmt.Sprintf("%s in %d of %d repeats", v, n, len(m.Points)))
			color = map[result.Verdict]string{result.ValidWithFlags: yellow, result.Invalid: red}[v]
		}
	}
	if color != "" && len(m.Headline.Because) > 0 {
		parts = append(parts, strings.Join(m.Headline.Because, ", "))
	}
	p.writeFacts([]labelled{{Label: "Measurement", Color: color, Value: parts}, m.setupFact()})
	var notes []note
	for _, text := range m.Warnings {
		notes = append(notes, note{Text: asSentence(text), Warning: true})
	}
	p.writeNotes(notes, false, m.fullCommand())
}

// nextCommand returns the command that answers the question which a run leaves open, "" for none.
func (m *Model) nextCommand() string {
	run := m.Run
	explain := ""
	if m.Dir != "" && !m.Unsaved {
		explain = say.ShellLine([]string{"pitot", "explain", m.Dir})
	}
	if len(run.Points) == 0 {
		return ""
	}
	p := &run.Points[0]
	switch {
	case run.Interrupted, run.Recovered:
		return ""
	case m.Overview != nil:
		if run.Verdict == result.Invalid {
			return ""
		}
		if load := onServer(run); load != "" {
			return load
		}
		if len(userLoads(run)) > 0 {
			return cmp.Or(searchCommand(run, "--slo", "chat"), explain)
		}
		return explain
	case p.Verdict == result.Invalid, p.Outcome == result.Failing, p.WentAway != nil, len(run.Points) > 1, run.Target.Kind == "replay":
		return ""
	case p.SLO != nil && p.SLO.Near && p.Load.Rate != nil:
		return cmp.Or(searchCommand(run, "--at", say.Decimal(*p.Load.Rate, 6)), explain)
	case p.SLO != nil && p.SLO.Met == result.Yes && p.Load.Rate != nil:
		return cmp.Or(searchCommand(run), explain)
	}
	return explain
}

// onServer returns the command that checks a simulated capacity on a server, "" where none was found.
func onServer(run *result.Run) string {
	c := run.Capacity
	if c == nil || !isSimulated(run) || c.Over != result.OverRate {
		return ""
	}
	load := highestWithinSLO(c)
	if load == nil {
		return ""
	}
	server := *run
	server.Target.Spec = "http://HOST:8000"
	return searchCommand(&server, "--at", say.Decimal(*load, 3))
}

// searchCommand returns the search of the same requests on the same server, with the flags that the
// user wrote for them; "" if some came from a file or a trace of times, which a search takes otherwise.
func searchCommand(run *result.Run, more ...string) string {
	args := []string{"pitot", "find", run.Target.Spec}
	for i := 0; i < len(run.Command); i++ {
		name, value, joined := strings.Cut(run.Command[i], "=")
		if name == "--config" || name == "--arrival" || name == "--set" {
			return ""
		}
		if !slices.Contains(searchFlags, name) {
			continue
		}
		if !joined && i+1 < len(run.Command) {
			i++
			value = run.Command[i]
		}
		args = append(args, name, value)
	}
	if !slices.Contains(args, "--slo") && !slices.Contains(more, "--slo") { // from the workload or a variable
		args = append(args, "--slo", run.Points[0].SLO.Spec)
	}
	return say.ShellLine(append(args, more...))
}

// searchFlags say what is sent and to which server, and mean the same for run and find.
var searchFlags = []string{
	"--api", "--cache", "--input", "--key-env", "--key-file", "--model", "--output", "--prefix", "--prefix-share", "--slo",
	"--tokenizer", "--turns", "--workload",
}
