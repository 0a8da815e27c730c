package report

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"pitot/internal/analysis/compare"
	"pitot/internal/report/reasons"
	"pitot/internal/results/result"
	"pitot/internal/say"
	"pitot/internal/stats"
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
	Claim string // "b is slower than a in 2 of 11 metrics"
	Basis texts  // the changes, the largest first, or why nothing is known; empty if the claim says it all
	Aside bool   // the basis stands in brackets
	More  texts  // sentences about what else was found
}

// ClaimSentence is the claim with its basis.
func (a AnswerModel) ClaimSentence() string { return a.withBasis(a.BasisText()) }

// BasisText is all that the claim rests on.
func (a AnswerModel) BasisText() string { return strings.Join(a.Basis, ", ") }

func (a AnswerModel) withBasis(basis string) string {
	switch {
	case basis == "":
		return a.Claim
	case a.Aside:
		return a.Claim + " (" + basis + ")"
	}
	return a.Claim + ": " + basis
}

// answerLine is the claim with as much of its basis as a line has room for.
func (a AnswerModel) answerLine(width int) string {
	for n := len(a.Basis); n > 0; n-- {
		basis := strings.Join(a.Basis[:n], ", ")
		if n < len(a.Basis) {
			basis += ", …"
		}
		if line := a.withBasis(basis); utf8.RuneCountInString(line) <= width {
			return line
		}
	}
	return a.Claim
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
		name := MetricLabel(r.Metric) + NameMark(&r)
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
			row = append(row, verdictCell(&r))
		}
		m.Table.AddRow(row...)
	}
	if len(p.Rows) == 0 {
		m.Table = Table{}
	}
}

// verdictCell is the word for the last column of a table, "" where there is nothing to say.
func verdictCell(r *compare.Row) string {
	if r.TooFewLaunches() || r.Verdict == compare.Undistinguished {
		return ""
	}
	return VerdictWord(r.Verdict)
}

// VerdictWord is the word that readers see for a verdict on a metric or a side.
func VerdictWord(verdict string) string {
	switch verdict {
	case compare.Equivalent:
		return "unchanged"
	case compare.Undistinguished:
		return "no change shown"
	}
	return verdict
}

// metricLabels are the words of metrics' names that reports write otherwise.
var metricLabels = map[string]string{"ttft": "TTFT", "tpot": "TPOT", "itl": "ITL", "icl": "ICL", "e2e": "E2E", "attained": "within SLO"}

// MetricLabel returns the name of a metric as tables have it: "p99 TTFT".
func MetricLabel(name string) string {
	words := strings.Split(name, " ")
	for i, w := range words {
		words[i] = cmp.Or(metricLabels[w], w)
	}
	return strings.Join(words, " ")
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
			m.Notes.addText(MetricLabel(r.Metric) + " " + say.RelativeChange(r.Change, r.OfShare()) + ": " + ReasonText(r.Why))
		}
	}
	explain := func(text string, is func(r compare.Row) bool) {
		if slices.ContainsFunc(p.Rows, is) {
			m.Legend.addText(text)
		}
	}
	explain("~ rough, do not quote", func(r compare.Row) bool { return r.Few && r.Unit != "share" })
	if missing != "" {
		m.Legend.addText("no interval: " + missing)
	}
	m.Notes.addText(nonEmpty(detectableText(p))...)
	explain("HL: Hodges-Lehmann", func(r compare.Row) bool { return r.Robust != nil })
	explain("unchanged: within "+say.ChangeSize(c.Within, false), func(r compare.Row) bool {
		return r.Verdict == compare.Equivalent && !beyondMargin(r)
	})
	explain("unchanged: the 90 % interval is within "+say.ChangeSize(c.Within, false), beyondMargin)
	explain("† primary, tested alone", func(r compare.Row) bool { return r.Primary })
	explain("* named in --fail-if: not corrected for the other metrics", func(r compare.Row) bool {
		return r.PreRegistered && !r.Primary
	})
	if corrected > 0 {
		m.Legend.addFormat("corrected for %s", say.Plural(c.Corrected, "test"))
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
			parts = append(parts, MetricLabel(r.Metric)+" "+say.ChangeSize(*r.Detectable, r.OfShare()))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return "smallest change that these launches detect (80 % power): " + strings.Join(parts, ", ")
}

// noteLaunchesNeeded notes how many launches a side detect the change that matters, for metrics
// with fewer.
func (m *PairModel) noteLaunchesNeeded(p *compare.Pair) {
	m.Notes.addText(nonEmpty(launchesNeeded(p, math.MaxInt))...)
}

// launchesNeeded returns how many launches a side detect the change that matters, for the metrics
// that need fewest; "" if there are enough.
func launchesNeeded(p *compare.Pair, most int) string {
	var rows []*compare.Row
	for i := range p.Rows {
		if r := &p.Rows[i]; r.Needed != nil && *r.Needed > min(p.Launches[0], p.Launches[1]) {
			rows = append(rows, r)
		}
	}
	if len(rows) > most {
		slices.SortStableFunc(rows, func(a, b *compare.Row) int { return cmp.Compare(*a.Needed, *b.Needed) })
		rows = rows[:most]
	}
	var parts []string
	side := " launches a side"
	for _, r := range rows {
		parts = append(parts, fmt.Sprintf("%s%s detect %s in %s", say.Count(*r.Needed), side, say.ChangeSize(r.Detects, r.OfShare()), MetricLabel(r.Metric)))
		side = ""
	}
	if len(parts) == 0 {
		return ""
	}
	return strings.Join(parts, ", ") + " (80 % power)"
}

// addUncompared says which metrics are not compared, once for each reason.
func (m *PairModel) addUncompared(p *compare.Pair) {
	var costs []string
	for _, c := range p.Costs {
		costs = append(costs, c.Label+" "+dollarsOf(c.A)+" → "+dollarsOf(c.B))
	}
	if len(costs) > 0 {
		m.Notes.addText("cost: " + strings.Join(costs, "; "))
	}
	var metrics Grouping // by the reason
	for _, l := range p.Left {
		metrics.AddName(l.Why, MetricLabel(l.Metric))
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
	of := "" // which side, where there are several
	if len(c.Sides) > 2 {
		of = b + ": "
	}
	within := say.ChangeSize(c.Within, false)
	changes, changed := namedChanges(c, v.B, func(r *compare.Row) bool { return isChange(r) && !r.Primary })
	pairs := comparedPairs(c, v.B)
	rows := 0
	for _, p := range pairs {
		rows += len(p.Rows)
		if x := p.Overload; x != nil {
			text := x.Side + " " + x.At(placeOf(p))
			if x.Side == v.B {
				text = "it " + x.At(placeOf(p))
			}
			changes = append(texts{text}, changes...)
		}
	}
	metrics := "metrics"
	if len(pairs) > 1 {
		metrics = "comparisons"
	}
	switch v.Word {
	case compare.Undistinguished:
		m.Claim, m.Aside = sentenceStart(of, "no change confirmed"), true
		switch {
		case v.Why == "" && v.Scope != "":
			m.Claim += " between " + strings.TrimPrefix(string(v.Scope), "of ")
			if v.Untested > 0 {
				m.Claim = "Undecided between " + strings.TrimPrefix(string(v.Scope), "of ")
				m.Basis.addFormat("%d of %d %s could not be tested", v.Untested, rows, metrics)
				break
			}
			m.Basis.addFormat("%d %s", rows, metrics)
		case v.Why == "":
			m.Basis.addText(launchesBasis(pairs, rows, metrics))
		}
		if v.Why == "" {
			break
		}
		// Too few launches are no finding, and what they show is not to be talked away.
		m.Word, m.Claim, m.Aside = NoVerdict, sentenceStart(of, NoVerdict), false
		m.Basis.addText(v.Why)
		if seen, _ := namedChanges(c, v.B, beyondChance); len(seen) > 0 {
			m.More.addText("Between these launches: " + strings.Join(seen, ", ") + ".")
		}
		if short := c.TooShort(v.B); !short.IsNone() {
			m.More.addText(tooShort(short))
		} else {
			m.More.addText(moreLaunches())
		}
	case compare.Equivalent:
		m.Claim = fmt.Sprintf("%s is equivalent to %s within %s in %s %s", b, a, within, allText(rows), metrics)
	case compare.OtherInstrument:
		m.Claim = sentenceStart(of, NoVerdict+": measured by another instrument")
	case compare.NotCompared:
		m.Claim = b + " was not compared with " + a
		m.Basis.addText(nonEmpty(v.Why)...)
	default:
		m.Claim, m.Basis = b+" is "+v.Word+" than "+a, changes
		if changed > 0 && len(pairs) > 0 && pairs[0].Capacity == nil {
			m.Claim += fmt.Sprintf(" in %d of %d %s", changed, rows, metrics)
		}
	}
	if v.Scope != "" && v.Word != compare.NotCompared && v.Word != compare.OtherInstrument && m.Word != NoVerdict {
		if v.Word != compare.Undistinguished {
			m.Claim += " (" + strings.TrimPrefix(string(v.Scope), "of ") + " only)"
		}
	}
	for _, p := range pairs {
		if p.Capacity != nil && c.Primary == "" {
			m.answerFromCapacities(p, v)
		}
	}
	if c.Primary != "" {
		m.leadWithPrimary(c, v, changes)
	}
	if v.Unconfirmed > 0 && m.Word != NoVerdict {
		m.More.addText(unconfirmedText(c, v.B))
	}
	if v.Equivalent > 0 && v.Word != compare.Equivalent {
		m.More.addFormat("%s unchanged within %s.", sayAre(v.Equivalent), within)
	}
	if v.Undistinguished > 0 && (v.Word != compare.Undistinguished || v.Equivalent > 0) {
		m.More.addFormat("%s no detectable change.", sayShow(v.Undistinguished))
	}
	if v.Untested > 0 && m.Word != NoVerdict {
		if v.Word != compare.Undistinguished || v.Scope == "" {
			m.More.addFormat("%s could not be tested.", say.Count(v.Untested))
		}
		m.More.addText(largestUntested(pairs))
	}
	if v.Word != compare.NotCompared {
		for _, l := range v.Lost {
			m.More.addText("Not compared at " + l + ".")
		}
	}
	if v.Scope != "" && v.Word != compare.NotCompared && v.Word != compare.OtherInstrument && m.Word != NoVerdict {
		m.More.addText(scopeNote(v.Scope))
	}
	return m
}

// smallChange is a relative change that is not worth a sentence unless a test confirms it.
const smallChange = 0.1

// largestUntested names the largest difference that no test could confirm, "" if all are small.
func largestUntested(pairs []*compare.Pair) string {
	name, most := "", smallChange
	for _, p := range pairs {
		for i := range p.Rows {
			if r := &p.Rows[i]; r.CI95 == nil && r.Verdict == compare.Undistinguished && !r.OfShare() && math.Abs(r.Change) > most {
				name, most = MetricLabel(r.Metric)+stallGloss(r.Metric)+" "+say.RelativeChange(r.Change, false), math.Abs(r.Change)
			}
		}
	}
	if name == "" {
		return ""
	}
	return "Largest difference, not tested: " + name + "."
}

// stallGloss explains a stall, whose name few know. It is "" for other metrics.
func stallGloss(name string) string {
	if strings.HasSuffix(name, "stall") {
		return " (longest gap between chunks)"
	}
	return ""
}

// placeOf is the load of a pair, or what else is compared.
func placeOf(p *compare.Pair) string {
	if p.Load == nil {
		return p.What
	}
	return say.Quantity(p.Load.Value()) + " " + p.Load.Unit()
}

// isChange reports whether a metric changed by more than chance.
func isChange(r *compare.Row) bool {
	switch r.Verdict {
	case compare.Slower, compare.Faster, compare.Worse, compare.Better:
		return true
	}
	return false
}

// sentenceStart is a sentence that begins with the name of a side, or with a capital.
func sentenceStart(name, text string) string {
	if name == "" {
		return strings.ToUpper(text[:1]) + text[1:]
	}
	return name + text
}

func allText(n int) string {
	if n == 1 {
		return "1"
	}
	return "all " + say.Count(n)
}

func sayAre(n int) string {
	if n == 1 {
		return "1 is"
	}
	return say.Count(n) + " are"
}

func sayShow(n int) string {
	if n == 1 {
		return "1 shows"
	}
	return say.Count(n) + " show"
}

// launchesBasis says how much was compared: "3 launches a side, 11 metrics".
func launchesBasis(pairs []*compare.Pair, rows int, metrics string) string {
	text := fmt.Sprintf("%d %s", rows, metrics)
	if len(pairs) == 0 {
		return text
	}
	n := pairs[0].Launches
	for _, p := range pairs {
		if p.Launches != n {
			return text
		}
	}
	if n[0] != n[1] {
		return fmt.Sprintf("%d and %d launches, %s", n[0], n[1], text)
	}
	if n[0] == 1 {
		return "1 launch a side, " + text
	}
	return fmt.Sprintf("%d launches a side, %s", n[0], text)
}

// unconfirmedText is about the changes that look real alone, and do not pass the test of all
// metrics together.
func unconfirmedText(c *compare.Comparison, b string) string {
	seen, n := namedChanges(c, b, func(r *compare.Row) bool { return r.Verdict == compare.Unconfirmed })
	them := map[bool]string{true: "it", false: "them"}[n == 1]
	return fmt.Sprintf("Unconfirmed: %s. Too few launches to confirm %s among %s.", strings.Join(seen, ", "), them, say.Plural(c.Corrected, "test"))
}

// scopeNote says what a verdict on one launch a side leaves open.
func scopeNote(s compare.Scope) string {
	if s == compare.TheseRuns {
		return fmt.Sprintf("Other runs may differ by more. For a verdict on the systems, measure %d runs a side: pitot run … --launch NAME, at other times or, in simulation, with another --seed.", compare.Enough)
	}
	return fmt.Sprintf("Other starts of the servers may differ by more. For a verdict on the systems, measure %d starts a side: pitot run … --launch NAME.", compare.Enough)
}

// moreLaunches says how a comparison without a verdict comes to one.
func moreLaunches() string {
	return fmt.Sprintf("A verdict needs %d launches a side. Restart the server for each: pitot run … --launch NAME.", compare.Enough)
}

// tooShort says how short runs without a verdict come to one: longer, or of more launches.
func tooShort(why result.Reason) string {
	return fmt.Sprintf("The runs are too short for intervals (%s): %s, or measure %d launches a side: pitot run … --launch NAME.",
		reasons.ShortageText(why), reasons.LongerFlag(why.Longer), compare.Enough)
}

// leadWithPrimary puts the metric first that the comparison was made for, and what else
// changed after it.
func (m *AnswerModel) leadWithPrimary(c *compare.Comparison, v compare.Verdict, changes []string) {
	a, b, name := c.Sides[0].Name, v.B, MetricLabel(c.Primary)+" (primary)"
	if len(changes) > 0 {
		m.More = append([]string{"Also: " + strings.Join(changes, ", ") + "."}, m.More...)
	}
	switch v.Primary {
	case compare.NotCompared:
		m.Claim, m.Basis, m.Aside = name+" was not compared", texts{c.MissingPrimary(v.B)}, false
		return
	case compare.OtherInstrument:
		return
	case compare.Undistinguished:
		if v.Why != "" { // too few launches
			m.Claim = NoVerdict + " on " + name + " of " + b + " against " + a
			return
		}
		m.Claim = "no change of " + name + " confirmed, " + b + " against " + a
	case compare.Equivalent:
		m.Claim = b + " is equivalent to " + a + " in " + name + ", within " + say.ChangeSize(c.Within, false)
	default:
		m.Claim = b + " is " + v.Primary + " than " + a + " in " + name
	}
	changed, intervals := primaryChanges(c, b)
	m.Basis, m.Aside = changed, false
	m.More = append(intervals, m.More...)
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

// primaryChanges are those of the primary metric at each load, and their intervals.
func primaryChanges(c *compare.Comparison, b string) (changes, intervals texts) {
	pairs := comparedPairs(c, b)
	for _, p := range pairs {
		for _, r := range p.Rows {
			if !r.Primary {
				continue
			}
			text, at := say.RelativeChange(r.Change, r.OfShare()), ""
			if len(pairs) > 1 {
				at = " at " + p.What
				text += at
				if r.Verdict != compare.Undistinguished {
					text += ", " + r.Verdict
				}
			}
			changes = append(changes, text)
			if v := r.CI95; v != nil {
				text := "95 % interval " + changeSpan(*v, r.OfShare()) + at
				if r.PAdjusted != nil {
					text += fmt.Sprintf(" (p = %.2g)", *r.PAdjusted)
				}
				intervals.addText(text + ".")
			}
		}
	}
	return changes, intervals
}

// beyondChance says that a row's own interval leaves no difference out.
func beyondChance(r *compare.Row) bool {
	return r.CI95 != nil && (r.CI95[0] > 0 || r.CI95[1] < 0)
}

// namedChanges returns the largest changes among the rows that count, with the place if there are
// several, and how many rows count.
func namedChanges(c *compare.Comparison, b string, counts func(*compare.Row) bool) (out texts, n int) {
	type change struct {
		text, where string
		size        float64
	}
	var all []change
	pairs := comparedPairs(c, b)
	for _, p := range pairs {
		for _, r := range p.Rows {
			if counts(&r) {
				all = append(all, change{MetricLabel(r.Metric) + " " + say.RelativeChange(r.Change, r.OfShare()), p.What, math.Abs(r.Change)})
			}
		}
	}
	stats.SortStable(all, func(x, y change) int { return cmp.Compare(y.size, x.size) })
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
	return out, len(all)
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

// WriteTerminal writes the comparison for a terminal: the verdict, what differs between the
// sides, and the metrics that say most, or a table for each load in full.
func (m ComparisonModel) WriteTerminal(w io.Writer, s Style) error {
	p := newPrinter(w, s)
	p.line("")
	for _, a := range m.Answers {
		line := a.ClaimSentence()
		if !s.Full {
			line = a.answerLine(p.textWidth())
		}
		p.writePainted(verdictWordColor(a.Word), line)
		if len(a.More) > 0 {
			p.writeText(strings.Join(a.More, " "))
		}
	}
	if s.Full {
		m.writeFull(p)
		return p.err
	}
	m.writeBrief(p)
	return p.err
}

// writeFull writes all that was compared.
func (m ComparisonModel) writeFull(p *printer) {
	for _, c := range m.Clauses {
		p.writeHanging("", p.style.paint(clauseColor(c.State), fmt.Sprintf("%-10s", c.State))+"  ", strings.Repeat(" ", 12), c.Text)
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
			p.writeTable(pair.Table)
			p.writePainted(dim, pair.Legend...)
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
}

// clauseColor marks the outcome of a condition.
func clauseColor(state string) string {
	switch state {
	case compare.Fired:
		return bold + ";" + red
	case compare.RuledOut:
		return green
	}
	return yellow
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
