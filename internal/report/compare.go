package report

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"pitot/internal/analysis/compare"
	"pitot/internal/report/reasons"
	"pitot/internal/results/result"
	"pitot/internal/say"
)

// ComparisonModel holds what a report shows of a comparison.
type ComparisonModel struct {
	Title    string
	Sides    []string
	Differs  [][2]string // what, and its values
	Same     string      // stands where nothing differs
	BySide   *Table      // what differs by side, of more than two
	Warnings []string
	Pairs    []PairModel
	Clauses  []ClauseModel
	Answers  []AnswerModel // of each side but the first

	Of *compare.Comparison // what it is made of
}

// PairModel is one load, or a capacity, of two sides.
type PairModel struct {
	Title []string
	Why   string // why nothing is compared

	Overload string // which side alone does not keep up

	Table  Table
	Legend texts
	Paired *PairedModel
	Day    *Table // the times of day at which both were measured, nil where they share none
	Notes  texts
}

// PairedModel is the differences of the same requests, sent at the same times to both sides.
type PairedModel struct {
	Title string
	Table Table
}

// ClauseModel holds the outcome of a condition of --fail-if.
type ClauseModel struct{ State, Text string }

// NoVerdict is the word of an answer that rests on too few launches.
const NoVerdict = "no verdict"

// AnswerModel is the verdict on one side.
type AnswerModel struct {
	Word  string // of the verdict, "no verdict" where too few launches are compared
	Claim string // "b is slower than a"
	Basis string // what changed, or why that is not known; "" if the claim says it all
	Aside bool   // the basis stands in brackets
	More  texts  // what else was found
}

// ClaimSentence is the claim with its basis.
func (a AnswerModel) ClaimSentence() string {
	switch {
	case a.Basis == "":
		return a.Claim
	case a.Aside:
		return a.Claim + " (" + a.Basis + ")"
	}
	return a.Claim + ": " + a.Basis
}

// BuildComparison makes the model of a comparison.
func BuildComparison(c *compare.Comparison) ComparisonModel {
	m := ComparisonModel{Of: c, Warnings: c.Warnings}
	var others []string
	for i, s := range c.Sides {
		if i > 0 {
			others = append(others, s.Name)
		}
		m.Sides = append(m.Sides, sideText(s))
	}
	m.Title = strings.Join(others, ", ") + " against " + c.Sides[0].Name
	for _, d := range c.Differences {
		m.Differs = append(m.Differs, [2]string{d.What, valuesText(d)})
	}
	if len(c.Differences) == 0 {
		m.Same = "server, configuration, environment: no difference is known"
	} else if len(c.Sides) > 2 {
		m.BySide = bySide(c)
	}
	for i := range c.Pairs {
		m.Pairs = append(m.Pairs, buildPair(c, &c.Pairs[i]))
	}
	for _, o := range c.Clauses {
		m.Clauses = append(m.Clauses, ClauseModel{o.State, say.PlainLine(o.Spec + ": " + o.Why)})
	}
	for _, v := range c.Verdicts {
		m.Answers = append(m.Answers, verdictAnswer(c, v))
	}
	return m
}

func sideText(s compare.SideInfo) string {
	if len(s.Files) > 0 {
		return fmt.Sprintf("%s: another instrument, %s, %s", s.Name, s.Instrument, say.Plural(len(s.Files), "file"))
	}
	runs := 0
	for _, l := range s.Launches {
		runs += len(l.Runs)
	}
	return fmt.Sprintf("%s: %s, %s", s.Name, say.Plural(len(s.Launches), "launch"), say.Plural(runs, "run"))
}

// bySide has a row for each difference, and a column for each side.
func bySide(c *compare.Comparison) *Table {
	t := &Table{Head: []string{""}}
	for _, s := range c.Sides {
		t.Head = append(t.Head, s.Name)
	}
	for _, d := range c.Differences {
		t.AddRow(append([]string{d.What}, valueTexts(d)...)...)
	}
	return t
}

// valuesText writes before → after, or all of many sides.
func valuesText(d compare.Difference) string {
	parts := valueTexts(d)
	if len(slices.Compact(slices.Clone(parts))) == 1 { // all sides are mixed alike
		return parts[0]
	}
	if len(parts) == 2 {
		return parts[0] + " → " + parts[1]
	}
	return strings.Join(parts, " | ")
}

// valueTexts are those of each side.
func valueTexts(d compare.Difference) (parts []string) {
	for _, v := range d.Values {
		text := say.PlainLine(strings.Join(v, ", "))
		switch {
		case text == "":
			text = say.Unknown
		case len(v) > 1:
			text += " (mixed)"
		}
		parts = append(parts, text)
	}
	return parts
}

func buildPair(c *compare.Comparison, p *compare.Pair) PairModel {
	if p.Capacity != nil {
		return buildCapacities(c, p)
	}
	m := newPairModel(c, p)
	m.Why = p.Why
	if p.Overload != nil {
		m.Overload = p.Overload.Text(p.What)
	}
	if p.Why != "" {
		return m
	}
	few := ""
	if len(p.Rows) > 0 && !slices.ContainsFunc(p.Rows, func(r compare.Row) bool { return !r.TooFewLaunches() || r.Verdict != compare.Undistinguished }) {
		few = ReasonText(p.Rows[0].Why)
	}
	if p.HasOtherInstrument() {
		m.Title = append(m.Title, compare.OtherInstrument+", no verdict")
	} else {
		m.Title = append(m.Title, launchesTitle(p, few))
	}
	m.writeTable(p, few == "" && !p.HasOtherInstrument())
	m.addLegend(c, p)
	if p.Paired != nil {
		m.Paired = pairedModel(p)
	}
	if p.Day != nil {
		m.addDayComparison(p)
	}
	return m
}

// newPairModel makes a model that says what is compared.
func newPairModel(c *compare.Comparison, p *compare.Pair) PairModel {
	m := PairModel{Title: []string{p.What}, Notes: slices.Clone(p.Notes)}
	if len(c.Sides) > 2 {
		m.Title = []string{p.B + " against " + p.A, p.What}
	}
	return m
}

// launchesTitle says how many launches a verdict rests on, or that there are too few.
func launchesTitle(p *compare.Pair, few string) string {
	switch {
	case few != "":
		return "no verdict (" + few + ")"
	case p.Scope != "":
		return string(p.Scope)
	case p.Launches[0] == p.Launches[1]:
		return fmt.Sprintf("%d launches each", p.Launches[0])
	}
	return fmt.Sprintf("%d and %d launches", p.Launches[0], p.Launches[1])
}

// pairedModel has a row for each latency.
func pairedModel(p *compare.Pair) *PairedModel {
	m := &PairedModel{
		Title: fmt.Sprintf("%s, sent at the same times to both: %s − %s in ms, %s", say.Plural(p.Paired.Requests, "same request"), p.B, p.A, compare.TheseRuns),
		Table: NewTable("", "mean", "95 % interval", "p50", "p90", "pairs"),
	}
	for _, r := range p.Paired.Rows {
		interval := say.Unknown
		if r.CI95 != nil {
			interval = pairedMS(r.CI95[0]) + "…" + pairedMS(r.CI95[1])
		}
		m.Table.AddRow(r.Metric, pairedMS(r.Mean), interval, pairedMS(r.P50), pairedMS(r.P90), say.Count(r.Pairs))
	}
	return m
}

// pairedMS writes a difference with its sign.
func pairedMS(ms float64) string {
	if ms > 0 {
		return "+" + say.Quantity(ms)
	}
	return say.Quantity(ms)
}

// writeTable has a row for each metric. A column that would be empty is left out.
func (m *PairModel) writeTable(p *compare.Pair, verdicts bool) {
	interval := "95 % interval"
	if p.Within {
		interval = "within-launch"
	}
	robust := slices.ContainsFunc(p.Rows, func(r compare.Row) bool { return r.Robust != nil })
	a, b := shortenHeads(say.PlainLine(p.A), say.PlainLine(p.B))
	m.Table.Head = []string{"", a, b, "change"}
	if !p.HasOtherInstrument() {
		m.Table.Head = append(m.Table.Head, interval)
	}
	if robust {
		m.Table.Head = append(m.Table.Head, "HL")
	}
	if verdicts {
		m.Table.Head = append(m.Table.Head, "")
	}
	for _, r := range p.Rows {
		name := r.Metric
		name += NameMark(&r)
		value := func(x float64) string {
			switch {
			case r.Unit == "share":
				return say.Percent(x)
			case r.Few:
				return "~" + say.Quantity(x)
			}
			return say.Quantity(x)
		}
		row := []string{name, value(r.A), value(r.B), say.RelativeChange(r.Change, r.OfShare())}
		switch v := r.CI95; {
		case p.HasOtherInstrument():
		case v == nil:
			row = append(row, say.Unknown)
		default:
			row = append(row, changeSpan(*v, r.OfShare()))
		}
		if robust {
			cell := say.Unknown
			if r.Robust != nil {
				cell = say.SignedChange(*r.Robust, r.OfShare())
			}
			row = append(row, cell)
		}
		if verdicts {
			word := r.Verdict
			if r.TooFewLaunches() {
				word = say.Unknown
			}
			row = append(row, word)
		}
		m.Table.AddRow(row...)
	}
	if len(p.Rows) == 0 {
		m.Table = Table{}
	}
}

// NameMark is the mark of a metric that was named beforehand.
func NameMark(r *compare.Row) string {
	switch {
	case r.Primary:
		return " †"
	case r.PreRegistered:
		return " *"
	}
	return ""
}

// shortenHeads shortens the sides' names to columns as narrow as tells them apart: at
// the end, or at the beginning where they begin alike.
func shortenHeads(a, b string) (string, string) {
	ending := func(s string, n int) string {
		if r := []rune(s); len(r) > n {
			return "…" + strings.TrimLeft(string(r[len(r)-n+1:]), " ")
		}
		return s
	}
	for n := 10; n < max(len(a), len(b)); n += 10 {
		if x, y := say.Truncate(a, n), say.Truncate(b, n); x != y {
			return x, y
		}
		if x, y := ending(a, n), ending(b, n); x != y {
			return x, y
		}
	}
	return a, b
}

// addLegend explains what occurs in the table, and says what is missing from it.
func (m *PairModel) addLegend(c *compare.Comparison, p *compare.Pair) {
	missing, corrected := "", 0
	for _, r := range p.Rows {
		if r.CI95 == nil && missing == "" && r.Verdict != compare.Equivalent && !p.HasOtherInstrument() {
			missing = ReasonText(r.NoInterval)
		}
		if r.PAdjusted != nil && !r.PreRegistered {
			corrected++
		}
		if r.Verdict == compare.Equivalent && !r.Why.IsNone() && r.PAdjusted != nil {
			m.Notes.addText(r.Metric + " " + say.RelativeChange(r.Change, r.OfShare()) + ": " + ReasonText(r.Why))
		}
	}
	explain := func(text string, is func(r compare.Row) bool) {
		if slices.ContainsFunc(p.Rows, is) {
			m.Legend.addText(text)
		}
	}
	explain("~ few independent samples", func(r compare.Row) bool { return r.Few && r.Unit != "share" })
	if missing != "" {
		m.Legend.addText("no interval: " + missing)
	}
	m.Notes.addText(nonEmpty(detectableText(p))...)
	explain("HL: Hodges-Lehmann", func(r compare.Row) bool { return r.Robust != nil })
	explain("equivalent: the 90 % interval lies within", beyondMargin)
	explain("† primary, tested alone", func(r compare.Row) bool { return r.Primary })
	explain("* named in --fail-if, not corrected", func(r compare.Row) bool { return r.PreRegistered && !r.Primary })
	if corrected > 0 {
		m.Legend.addFormat("verdicts corrected for %s", say.Plural(c.Corrected, "test"))
	}
	explain("times in ms", func(r compare.Row) bool { return r.Unit == "ms" })
	m.noteLaunchesNeeded(p)
	m.addUncompared(p)
}

// beyondMargin reports whether a row is equivalent and its 95 % interval leaves what is: two
// one-sided tests at 5 % are the 90 % interval.
func beyondMargin(r compare.Row) bool {
	return r.Verdict == compare.Equivalent && r.CI95 != nil && (r.CI95[0] < r.Margin[0] || r.CI95[1] > r.Margin[1])
}

// detectableText says which change of the primary metric the launches there are detect.
func detectableText(p *compare.Pair) string {
	var parts []string
	for _, r := range p.Rows {
		if r.Detectable != nil && r.Primary {
			parts = append(parts, r.Metric+" "+say.ChangeSize(*r.Detectable, r.OfShare()))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return "the smallest change that these launches detect (80 % power): " + strings.Join(parts, ", ")
}

// noteLaunchesNeeded notes how many launches a side detect the change that matters, for metrics
// with fewer.
func (m *PairModel) noteLaunchesNeeded(p *compare.Pair) {
	var metrics Grouping // by the change
	for _, r := range p.Rows {
		if r.Needed != nil && *r.Needed > min(p.Launches[0], p.Launches[1]) {
			metrics.AddName(say.ChangeSize(r.ToTell, r.OfShare()), r.Metric+" "+say.Count(*r.Needed))
		}
	}
	var sizes []string
	power := " with 80 % power"
	for _, size := range metrics.Keys {
		sizes = append(sizes, "to detect "+size+power+": "+metrics.JoinNames(size))
		power = ""
	}
	if len(sizes) > 0 {
		m.Notes.addText("launches a side " + strings.Join(sizes, "; "))
	}
}

// addUncompared says which metrics are not compared, once for each reason.
func (m *PairModel) addUncompared(p *compare.Pair) {
	var costs []string
	for _, c := range p.Costs {
		costs = append(costs, "a "+c.Label+" "+dollarsOf(c.A)+" → "+dollarsOf(c.B))
	}
	if len(costs) > 0 {
		m.Notes.addText("cost, by price and rate: " + strings.Join(costs, "; "))
	}
	var metrics Grouping // by the reason
	for _, l := range p.Left {
		metrics.AddName(l.Why, l.Metric)
	}
	for _, why := range metrics.Keys {
		m.Notes.addText("not compared: " + metrics.JoinNames(why) + ": " + why)
	}
}

// dollarsOf is a cost, or that it is not known.
func dollarsOf(usd *float64) string {
	if usd == nil {
		return say.Unknown
	}
	return "$" + say.Quantity(*usd)
}

// mostNamed is the number of changes that the verdict names at most.
const mostNamed = 4

// verdictAnswer is the verdict in a line.
func verdictAnswer(c *compare.Comparison, v compare.Verdict) AnswerModel {
	a, b := c.Sides[0].Name, v.B
	m := AnswerModel{Word: v.Word}
	within := say.ChangeSize(c.Within, false)
	changes := namedChanges(c, v.B, func(r *compare.Row) bool {
		switch r.Verdict {
		case compare.Slower, compare.Faster, compare.Worse, compare.Better:
			return !r.Primary
		}
		return false
	})
	pairs := comparedPairs(c, v.B)
	for _, p := range pairs {
		if x := p.Overload; x != nil {
			text := x.Text(p.What)
			if x.Side == v.B {
				text = "it" + strings.TrimPrefix(text, v.B)
			}
			changes = append([]string{text}, changes...)
		}
	}
	switch v.Word {
	case compare.Undistinguished:
		m.Claim, m.Basis, m.Aside = b+" is not distinguishable from "+a, v.Why, true
		if v.Why == "" && v.Equivalent > 0 {
			m.Claim = "no difference of " + b + " from " + a + " is established"
		}
		if v.Why == "" {
			break
		}
		// Too few launches are no finding, and what they show is not to be talked away.
		m.Word, m.Claim = NoVerdict, "no verdict on "+b+" against "+a
		if seen := namedChanges(c, v.B, beyondChance); len(seen) > 0 {
			m.More.addText("seen between these launches: " + strings.Join(seen, ", "))
		}
		if short := c.TooShort(v.B); !short.IsNone() {
			m.More.addText(tooShort(short))
		} else {
			m.More.addText(moreLaunches())
		}
	case compare.Equivalent:
		m.Claim = b + " is equivalent to " + a + " within " + within
	case compare.OtherInstrument:
		m.Claim = "no verdict on " + b + " against " + a + ": measured by another instrument"
	case compare.NotCompared:
		m.Claim, m.Basis = b+" was not compared with "+a, v.Why
	default:
		m.Claim, m.Basis = b+" is "+v.Word+" than "+a, strings.Join(changes, ", ")
	}
	if v.Scope != "" && v.Word != compare.NotCompared && v.Word != compare.OtherInstrument && m.Word != NoVerdict {
		m.Claim += ", " + string(v.Scope)
		m.More.addText(scopeNote(v.Scope))
	}
	for _, p := range pairs {
		if p.Capacity != nil && c.Primary == "" {
			m.answerFromCapacities(p, v)
		}
	}
	if c.Primary != "" {
		m.leadWithPrimary(c, v, changes)
	}
	if v.Equivalent > 0 && v.Word != compare.Equivalent {
		m.More.addText(say.Count(v.Equivalent) + " equivalent within " + within)
	}
	if v.Undistinguished > 0 && (v.Word != compare.Undistinguished || v.Equivalent > 0) {
		m.More.addText(say.Count(v.Undistinguished) + " not distinguishable")
	}
	if v.Word != compare.NotCompared {
		for _, l := range v.Lost {
			m.More.addText("not compared at " + l)
		}
	}
	return m
}

// scopeNote says what a verdict on one launch a side leaves open.
func scopeNote(s compare.Scope) string {
	if s == compare.TheseRuns {
		return fmt.Sprintf("other runs may differ by more: a verdict on the systems takes %d runs a side at other times, each with a name: pitot run … --launch NAME", compare.Enough)
	}
	return fmt.Sprintf("other starts of the servers may differ by more: a verdict on the systems takes %d starts a side: pitot run … --launch NAME", compare.Enough)
}

// moreLaunches says how a comparison without a verdict comes to one.
func moreLaunches() string {
	return fmt.Sprintf("a verdict takes %d launches a side, starts of the server: pitot run … --launch NAME", compare.Enough)
}

// tooShort says how short runs without a verdict come to one: longer, or of more launches.
func tooShort(why result.Reason) string {
	return fmt.Sprintf("the runs are too short for intervals (%s): %s, or %d launches a side, starts of the server: pitot run … --launch NAME",
		reasons.ShortageText(why), reasons.LongerFlag(why.Longer), compare.Enough)
}

// leadWithPrimary puts the metric first that the comparison was made for, and what else
// changed behind it.
func (m *AnswerModel) leadWithPrimary(c *compare.Comparison, v compare.Verdict, changes []string) {
	a, b, name := c.Sides[0].Name, v.B, c.Primary+", the primary metric"
	if len(changes) > 0 {
		m.More = append([]string{"besides: " + strings.Join(changes, ", ")}, m.More...)
	}
	switch v.Primary {
	case compare.NotCompared:
		m.Claim, m.Basis, m.Aside = name+", was not compared", c.MissingPrimary(v.B), false
		return
	case compare.OtherInstrument:
		return
	case compare.Undistinguished:
		if v.Why != "" { // too few launches
			m.Claim = "no verdict on " + name + ", of " + b + " against " + a
			return
		}
		m.Claim = b + " is not distinguishable from " + a + " in " + name
	case compare.Equivalent:
		m.Claim = b + " is equivalent to " + a + " in " + name + ", within " + say.ChangeSize(c.Within, false)
	default:
		m.Claim = b + " is " + v.Primary + " than " + a + " in " + name
	}
	m.Basis, m.Aside = strings.Join(primaryChanges(c, v.B), ", "), false
}

// comparedPairs are the pairs in which a side is compared with the first.
func comparedPairs(c *compare.Comparison, side string) (pairs []*compare.Pair) {
	for i := range c.Pairs {
		if c.Pairs[i].B == side {
			pairs = append(pairs, &c.Pairs[i])
		}
	}
	return pairs
}

// primaryChanges are those of the primary metric, at each load.
func primaryChanges(c *compare.Comparison, b string) (out []string) {
	pairs := comparedPairs(c, b)
	for _, p := range pairs {
		for _, r := range p.Rows {
			if !r.Primary {
				continue
			}
			text := say.RelativeChange(r.Change, r.OfShare())
			if v := r.CI95; v != nil {
				text += " (95 % interval " + changeSpan(*v, r.OfShare())
				if r.PAdjusted != nil {
					text += fmt.Sprintf(", p = %.2g", *r.PAdjusted)
				}
				text += ")"
			}
			if len(pairs) > 1 {
				text += " at " + p.What
				if r.Verdict != compare.Undistinguished {
					text += ", " + r.Verdict
				}
			}
			out = append(out, text)
		}
	}
	return out
}

// beyondChance says that a row's own interval leaves no difference out.
func beyondChance(r *compare.Row) bool {
	return r.CI95 != nil && (r.CI95[0] > 0 || r.CI95[1] < 0)
}

// namedChanges returns the largest changes among the rows that count. It adds the place if there
// are several places.
func namedChanges(c *compare.Comparison, b string, counts func(*compare.Row) bool) (out texts) {
	type change struct {
		text, where string
		size        float64
	}
	var all []change
	pairs := comparedPairs(c, b)
	for _, p := range pairs {
		for _, r := range p.Rows {
			if counts(&r) {
				all = append(all, change{r.Metric + " " + say.RelativeChange(r.Change, r.OfShare()), p.What, math.Abs(r.Change)})
			}
		}
	}
	slices.SortStableFunc(all, func(x, y change) int { return cmp.Compare(y.size, x.size) })
	for _, x := range all[:min(mostNamed, len(all))] {
		text := x.text
		if len(pairs) > 1 {
			text += " at " + x.where
		}
		out.addText(text)
	}
	if n := len(all) - mostNamed; n > 0 {
		out.addFormat("and %d more", n)
	}
	return out
}

// verdictWordColor marks what became worse or better.
func verdictWordColor(word string) string {
	switch word {
	case compare.Slower, compare.Worse, compare.Mixed:
		return bold + ";" + red
	case compare.Faster, compare.Better, compare.Equivalent:
		return bold + ";" + green
	}
	return bold + ";" + yellow
}

// WriteTerminal writes the comparison for a terminal: the verdict and the conditions,
// what differs between the sides, a table for each load.
func (m ComparisonModel) WriteTerminal(w io.Writer, s Style) error {
	p := newPrinter(w, s)
	p.line("")
	for _, a := range m.Answers {
		p.writePainted(verdictWordColor(a.Word), append([]string{a.ClaimSentence()}, a.More...)...)
	}
	for _, c := range m.Clauses {
		code := map[string]string{compare.Fired: bold + ";" + red, compare.RuledOut: green}[c.State]
		if code == "" {
			code = yellow
		}
		p.writeHanging("", s.paint(code, fmt.Sprintf("%-10s", c.State))+"  ", strings.Repeat(" ", 12), c.Text)
	}
	p.line("")
	p.writePainted(bold, m.Title)
	p.writeText(m.Sides...)
	p.line("")
	if len(m.Differs) == 0 {
		p.line("%s", m.Same)
	} else {
		p.line("what differs")
	}
	for _, d := range m.Differs {
		p.writeHanging("", "  ", "    ", d[0]+": "+d[1])
	}
	for _, warning := range m.Warnings {
		p.writePainted(yellow, warning)
	}
	for _, pair := range m.Pairs {
		p.line("")
		p.writePainted(bold, pair.Title...)
		if pair.Overload != "" {
			p.writePainted(yellow, pair.Overload+": what needs a steady state is not compared")
		}
		if pair.Why != "" {
			p.writePainted(yellow, "not compared: "+pair.Why)
		}
		if len(pair.Table.Rows) > 0 {
			narrow, legend := pair.narrowTable()
			p.writeTable(narrow)
			p.writePainted(dim, legend...)
		}
		if pair.Paired != nil {
			p.line("")
			p.writeText(pair.Paired.Title)
			p.writeTable(pair.Paired.Table)
		}
		if pair.Day != nil {
			p.line("")
			p.writeTable(*pair.Day)
		}
		for _, n := range pair.Notes {
			p.writeText(n)
		}
	}
	return p.err
}

// narrowTable is the table for 80 columns, in which the verdicts that say something
// stand out, and its legend.
func (m *PairModel) narrowTable() (Table, []string) {
	t, legend := Table{Head: m.Table.Head}, m.Legend
	for _, r := range m.Table.Rows {
		r = slices.Clone(r)
		if last := &r[len(r)-1]; *last == compare.Undistinguished {
			*last = "?"
		}
		t.AddRow(r...)
	}
	if slices.ContainsFunc(t.Rows, func(r []string) bool { return r[len(r)-1] == "?" }) {
		legend = append([]string{"? " + compare.Undistinguished}, legend...)
	}
	return t, legend
}

// WriteMarkdown writes it for a pull request: the verdict first.
func (m ComparisonModel) WriteMarkdown(w io.Writer) error {
	p := &markdown{w: w}
	p.line("### " + escapeMarkdown(m.Title))
	p.line("")
	for _, a := range m.Answers {
		p.writeItem(strongText(a.ClaimSentence()), joinMarkup(escapeTexts(a.More)...))
	}
	for _, c := range m.Clauses {
		p.writeItem("--fail-if " + strongText(c.State) + " " + escapeMarkdown(c.Text))
	}
	p.writeItem(escapeTexts(m.Sides)...)
	if len(m.Differs) == 0 {
		p.writeItem(escapeMarkdown(m.Same))
	}
	for _, d := range m.Differs {
		p.writeItem(escapeMarkdown(d[0] + ": " + d[1]))
	}
	for _, warning := range m.Warnings {
		p.writeItem(strongText(warning))
	}
	for _, pair := range m.Pairs {
		p.line("")
		p.line("#### " + joinMarkup(escapeTexts(pair.Title)...))
		p.line("")
		if pair.Overload != "" {
			p.writeItem(escapeMarkdown(pair.Overload + ": what needs a steady state is not compared"))
			p.line("")
		}
		if pair.Why != "" {
			p.writeItem("not compared: " + escapeMarkdown(pair.Why))
		}
		if len(pair.Table.Rows) > 0 {
			p.writeTable(pair.Table)
			p.line("")
			p.writeItem(escapeTexts(pair.Legend)...)
		}
		if pair.Paired != nil {
			p.line("")
			p.line(escapeMarkdown(pair.Paired.Title))
			p.line("")
			p.writeTable(pair.Paired.Table)
			p.line("")
		}
		if pair.Day != nil {
			p.line("")
			p.writeTable(*pair.Day)
			p.line("")
		}
		for _, n := range pair.Notes {
			p.writeItem(escapeMarkdown(n))
		}
	}
	return p.err
}
