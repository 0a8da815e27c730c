package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"pitot/internal/analysis/compare"
	"pitot/internal/say"
	"pitot/internal/stats"
)

// A comparison on one screen: the metrics that say most of all loads in one table.

// briefRow is a metric of a load, and how much it says.
type briefRow struct {
	pair   *compare.Pair
	row    *compare.Row
	cells  []string // of the pair's table
	at     int      // among all
	weight int
}

// usualMetrics are those that are shown where nothing else says more.
var usualMetrics = []string{"p99 ttft", "p50 ttft", "p99 tpot", "output tok/s", "attained", "p99 stall", "p99 e2e", "capacity"}

// rowWeight returns how much a row says: a metric that was named beforehand or changed goes before
// others.
func rowWeight(r *compare.Row) int {
	switch at := slices.Index(usualMetrics, r.Metric); {
	case r.Primary:
		return 500
	case isChange(r):
		return 400
	case r.PreRegistered:
		return 300
	case r.Verdict == compare.Unconfirmed:
		return 200
	case r.Verdict == compare.Equivalent && at < 0: // counted as unchanged, so it has a row
		return 96
	case at >= 0:
		return 100 - at
	}
	return 0
}

// rowsShown returns the rows that say most, in their order, and the number of all.
func (m *ComparisonModel) rowsShown() (rows []briefRow, all int) {
	for i := range m.Pairs {
		of := &m.Of.Pairs[i]
		if of.Capacity != nil || len(m.Pairs[i].Table.Rows) != len(of.Rows) {
			continue
		}
		for k := range of.Rows {
			rows = append(rows, briefRow{of, &of.Rows[k], m.Pairs[i].Table.Rows[k], len(rows), rowWeight(&of.Rows[k])})
		}
	}
	all = len(rows)
	stats.SortStable(rows, func(a, b briefRow) int { return cmp.Compare(b.weight, a.weight) })
	rows = rows[:min(len(rows), mostRows)]
	stats.SortStable(rows, func(a, b briefRow) int { return cmp.Compare(a.at, b.at) })
	return rows, all
}

// briefTable is the table of the rows that say most, and its legend.
func (m *ComparisonModel) briefTable() (t Table, legend texts) {
	rows, all := m.rowsShown()
	if len(rows) == 0 {
		return t, nil
	}
	first := m.Of.Sides[0].Name
	several := slices.ContainsFunc(rows, func(x briefRow) bool { return x.pair != rows[0].pair })
	other := "other"
	if len(m.Of.Sides) == 2 {
		other = m.Of.Sides[1].Name
	}
	a, b := shortenHeads(say.PlainLine(first), say.PlainLine(other))
	t.Head = []string{"", a, b, "change", "95 % interval", ""}
	if several {
		t.Head = append([]string{"at"}, t.Head...)
	}
	for _, x := range rows {
		interval := say.Unknown
		if v := x.row.CI95; v != nil {
			interval = changeSpan(*v, x.row.OfShare())
		}
		word := verdictCell(x.row)
		if x.row.Instruments != nil {
			word = ""
		}
		cells := append(slices.Clone(x.cells[:4]), interval, word)
		if several {
			cells = append([]string{m.placeText(x.pair)}, cells...)
		}
		t.AddRow(cells...)
	}
	for column := len(t.Head) - 1; column > 3; column-- { // nothing stands in them
		if !slices.ContainsFunc(t.Rows, func(r []string) bool { return r[column] != "" && r[column] != say.Unknown }) {
			t = t.withoutColumns(func(c int) bool { return c == column })
		}
	}
	explain := func(text string, is func(r *compare.Row) bool) {
		if slices.ContainsFunc(rows, func(x briefRow) bool { return is(x.row) }) {
			legend.addText(text)
		}
	}
	explain("times in ms", func(r *compare.Row) bool { return r.Unit == "ms" })
	explain("~ rough, do not quote", func(r *compare.Row) bool { return r.Few && r.Unit != "share" })
	explain("– could not be tested", func(r *compare.Row) bool {
		return r.CI95 == nil && slices.ContainsFunc(t.Rows, func(cells []string) bool { return slices.Contains(cells, say.Unknown) })
	})
	explain("unchanged: within "+say.ChangeSize(m.Of.Within, false), func(r *compare.Row) bool {
		return r.Verdict == compare.Equivalent
	})
	explain("† primary", func(r *compare.Row) bool { return r.Primary })
	explain("* in --fail-if", func(r *compare.Row) bool { return r.PreRegistered && !r.Primary })
	explain("interval within one launch", func(r *compare.Row) bool {
		return r.CI95 != nil && rows[0].pair.Within
	})
	if left := all - len(rows); left > 0 {
		legend.addFormat("%d more: --full", left)
	}
	return t, legend
}

// placeText tells a pair from others: the load, and the side where there are several.
func (m *ComparisonModel) placeText(p *compare.Pair) string {
	if len(m.Of.Sides) == 2 {
		return placeOf(p)
	}
	side := say.Truncate(say.PlainLine(p.B), 12)
	if len(comparedPairs(m.Of, p.B)) == 1 {
		return side
	}
	return side + " " + placeOf(p)
}

// briefFacts are the outcomes of --fail-if, what differs between the sides and why loads were not
// compared.
func (m *ComparisonModel) briefFacts() (facts []labelled) {
	var ruledOut []string
	for _, c := range m.Of.Clauses {
		if c.State == compare.RuledOut {
			ruledOut = append(ruledOut, c.Spec)
			continue
		}
		facts = append(facts, labelled{
			Label: sentenceStart("", c.State), Color: clauseColor(c.State), Value: []string{say.PlainLine(c.Spec + ": " + c.Why)},
		})
	}
	if len(ruledOut) > 0 {
		facts = append(facts, labelled{
			Label: "Ruled out", Color: green, Value: []string{say.PlainLine(strings.Join(ruledOut, ", "))},
		})
	}
	facts = append(facts, m.sloFacts()...)
	label := "What changed"
	for i, d := range m.Differs {
		if i == mostNotes {
			facts = append(facts, labelled{
				Value: []string{fmt.Sprintf("and %d more: --full", len(m.Differs)-i)},
			})
			break
		}
		facts = append(facts, labelled{
			Label: label, Value: []string{say.Truncate(d[0]+": "+d[1], 2*(textWidth-labelWidth))},
		})
		label = ""
	}
	if len(m.Differs) == 0 {
		facts = append(facts, labelled{
			Label: label, Value: []string{"no known difference of server, configuration or environment"},
		})
	}
	return facts
}

// SLOLines says which side met the SLO, a line for each load at which the sides differ in it.
func (m *ComparisonModel) SLOLines() (lines []string) {
	for _, f := range m.sloFacts() {
		lines = append(lines, "SLO: "+strings.Join(f.Value, ", "))
	}
	return lines
}

// sloFacts say which side met the SLO at the loads where sides differ in it.
func (m *ComparisonModel) sloFacts() (facts []labelled) {
	label := "SLO"
	for i := range m.Of.Pairs {
		p := &m.Of.Pairs[i]
		if p.SLO == nil || sloWord(p.SLO[0]) == sloWord(p.SLO[1]) {
			continue
		}
		text := sideSLOText(p.A, p.SLO[0]) + ", " + sideSLOText(p.B, p.SLO[1])
		if len(m.Of.Pairs) > 1 {
			text = "at " + placeOf(p) + ": " + text
		}
		facts = append(facts, labelled{Label: label, Value: []string{text}})
		label = ""
	}
	return facts
}

// sloWord says whether the launches of a side met the SLO.
func sloWord(c compare.SLOCount) string {
	all := c.Met + c.Missed + c.Undecided
	switch all {
	case c.Met:
		return "met it"
	case c.Missed:
		return "missed it"
	case c.Undecided:
		return "undecided"
	}
	return fmt.Sprintf("met it in %d of %d launches", c.Met, all)
}

// sideSLOText says it of a named side, and how many of its launches are too close to call.
func sideSLOText(name string, c compare.SLOCount) string {
	text := say.PlainLine(name) + " " + sloWord(c)
	switch {
	case c.Close == 1 && c.Met+c.Missed+c.Undecided == 1:
		text += " (too close to call)"
	case c.Close > 0:
		text += fmt.Sprintf(" (%d too close to call)", c.Close)
	}
	return text
}

// briefNotes are the warnings and the caveats of the pairs.
func (m *ComparisonModel) briefNotes() (notes []note) {
	for _, w := range m.Warnings {
		notes = append(notes, note{Text: say.Truncate(w, 3*textWidth), Warning: true})
	}
	for _, p := range m.Pairs {
		if p.Overload != "" {
			notes = append(notes, note{Text: p.Overload + ": latencies are not compared.", Warning: true})
		}
		if p.Paired != nil {
			notes = append(notes, note{
				Text: "Both sides had the same requests at the same times. Their differences: --full.",
			})
		}
		if p.Why != "" {
			notes = append(notes, note{
				Text: "Not compared at " + p.Title[len(p.Title)-1] + ": " + p.Why + ".",
			})
		}
	}
	return notes
}

// writeBrief writes the facts that a verdict rests on.
func (m ComparisonModel) writeBrief(p *printer) {
	p.writeFacts(m.briefFacts())
	if t, legend := m.briefTable(); len(t.Rows) > 0 {
		p.line("")
		var words []int
		if t.Head[0] != "" { // several loads
			words = append(words, 1)
		} else {
			p.writePainted(bold, m.Pairs[0].Title...)
		}
		if last := len(t.Head) - 1; t.Head[last] == "" {
			words = append(words, last)
		}
		p.writeColumns(t, words...)
		p.writePainted(dim, legend...)
	}
	for i, n := 0, 0; i < len(m.Pairs) && n < 2; i++ {
		if pair := &m.Pairs[i]; m.Of.Pairs[i].Capacity != nil && len(pair.Table.Rows) > 0 {
			n++
			p.line("")
			p.writePainted(bold, pair.Title...)
			p.writeTable(pair.Table)
			p.writePainted(dim, pair.Legend...)
		}
	}
	p.writeNotes(m.briefNotes(), false, "")
	p.writeFacts(m.nextFacts())
}

// nextFacts are the ways to a verdict, where there is none, or to the cause of a change.
func (m *ComparisonModel) nextFacts() (facts []labelled) {
	label := "Next"
	add := func(text string) {
		facts = append(facts, labelled{Label: label, Value: []string{text}})
		label = ""
	}
	for i, v := range m.Of.Verdicts {
		runs := m.Of.Sides[slices.IndexFunc(m.Of.Sides, func(s compare.SideInfo) bool { return s.Name == v.B })].Launches
		switch {
		case m.Answers[i].Word == NoVerdict:
			continue
		case v.Unconfirmed == 0 && len(runs) > 0 && (v.Word == compare.Slower || v.Word == compare.Worse):
			add("pitot explain " + say.ShellLine(runs[0].Runs[:1]))
			continue
		}
		if name, ok := mostPromising(m.Of, v.B); ok && m.Of.Primary == "" {
			add(fmt.Sprintf("Before you measure again, name the metric you care about: --primary %q", name))
		}
		for _, p := range comparedPairs(m.Of, v.B) {
			if text := launchesNeeded(p, mostNotes); text != "" {
				add(text)
				break
			}
		}
		break
	}
	return facts
}

// mostPromising is the unconfirmed metric with the largest change.
func mostPromising(c *compare.Comparison, b string) (name string, ok bool) {
	most := 0.0
	for _, p := range comparedPairs(c, b) {
		for _, r := range p.Rows {
			if size := max(r.Change, -r.Change); r.Verdict == compare.Unconfirmed && size > most {
				name, most, ok = r.Metric, size, true
			}
		}
	}
	return name, ok
}
