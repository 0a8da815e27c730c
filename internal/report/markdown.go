package report

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// WriteMarkdown writes the model as one section for a pull request or document.
func (m Model) WriteMarkdown(w io.Writer) error {
	p := &printer{w: w}
	p.line("### %s", inMarkdown(m.Title))
	p.line("")
	m.claim(p)
	for _, f := range m.Facts {
		p.item(f...)
	}
	for _, warning := range m.Warnings {
		p.item("**" + inMarkdown(warning) + "**")
	}
	if m.Overview != nil {
		m.Overview.writeMarkdown(p)
		m.Points = nil // they are in run.json
	}
	if m.Repeats != nil {
		m.Repeats.writeMarkdown(p)
	}
	for i := range m.Points {
		m.Points[i].writeMarkdown(p)
	}
	m.conditions(p)
	return p.err
}

// claim is what a reader takes away, with goodput next to throughput. What many loads
// show together has the rest in a list of its own, and in the table of loads.
func (m *Model) claim(p *printer) {
	p.line("**%s**", inMarkdown(m.Claim.Sentence))
	if m.Overview != nil {
		p.line("")
		return
	}
	if m.Claim.Interval != "" {
		p.line("%s", inMarkdown(strings.ToUpper(m.Claim.Interval[:1])+m.Claim.Interval[1:]+"."))
	}
	p.line("")
	if len(m.Figures) == 0 {
		return
	}
	var t Table
	var row []string
	for _, f := range m.Figures {
		t.Head = append(t.Head, inMarkdown(f.Name+", "+f.Unit))
		row = append(row, f.Value)
	}
	t.Rows = [][]string{row}
	t.writeMarkdown(p)
	p.line("")
}

// conditions are what the claim holds under, folded away.
func (m *Model) conditions(p *printer) {
	p.line("")
	p.line("<details><summary>Conditions</summary>")
	p.line("")
	p.line("| | |")
	p.line("|---|---|")
	for _, c := range m.Conditions {
		p.line("| %s | %s |", inMarkdown(c.Name), inMarkdown(c.Value))
	}
	p.line("")
	p.line("</details>")
}

func (m *PointModel) writeMarkdown(p *printer) {
	if m.Ordinal != "" {
		p.line("")
		p.line("#### %s%s", strings.ToUpper(m.Ordinal[:1]), m.Ordinal[1:])
		p.line("")
	}
	p.item(m.Load...)
	p.line("")
	verdict := "**" + string(m.Verdict) + "**"
	if len(m.Because) > 0 {
		verdict += ": " + strings.Join(m.Because, ", ")
	}
	p.line("%s · %s", verdict, strings.Join(m.Headline, " · "))
	if m.Outcome != "" || m.Failures != nil || m.Objective != nil {
		p.line("")
	}
	if m.Outcome != "" {
		p.item("**" + m.Outcome + "**")
	}
	if f := m.Failures; f != nil {
		p.item(inMarkdown(f.Total))
		for _, class := range f.Classes {
			p.line("  - %s", inMarkdown(class))
		}
	}
	if o := m.Objective; o != nil {
		p.item("**"+inMarkdown(o.Facts[0])+"**", inMarkdown(strings.Join(o.Facts[1:], " · ")))
		for _, l := range o.Limits {
			p.line("  - %s", inMarkdown(strings.Join(l, " · ")))
		}
	}
	if len(m.Latencies.Rows) > 0 {
		p.line("")
		m.Latencies.writeMarkdown(p)
	}
	for _, t := range []*Table{m.Intervals, m.Classes, m.OverTime, m.Turns, m.Histories} {
		if t != nil {
			p.line("")
			t.writeMarkdown(p)
		}
	}
	p.line("")
	if len(m.Legend) > 0 {
		p.item(inMarkdown(strings.Join(m.Legend, " · ")))
	}
	for _, r := range m.Remarks {
		p.item(inMarkdown(r))
	}
	for _, parts := range slices.Concat(m.Cost, m.Server) {
		p.item(parts...)
	}
	p.item(m.Instrument...)
	for _, c := range m.NotPassed {
		p.item(fmt.Sprintf("**%s** %s", c.Status, inMarkdown(strings.TrimSpace(fmt.Sprintf("%s: %s (limit %s). %s", c.Name, c.Value, c.Limit, c.Advice)))))
	}
	p.item(m.ChecksPassed())
}

// item writes one point of a list.
func (p *printer) item(parts ...string) {
	if parts = present(parts...); len(parts) > 0 {
		p.line("- %s", strings.Join(parts, " · "))
	}
}

// inMarkdown keeps what Markdown would take for its own.
func inMarkdown(s string) string {
	return strings.NewReplacer("<", "&lt;", "`", "\\`", "*", "\\*", "_", "\\_", "|", "\\|", "~", "\\~").Replace(s)
}

func (t Table) writeMarkdown(p *printer) {
	p.line("| %s |", strings.Join(t.Head, " | "))
	p.line("|---%s|", strings.Repeat("|--:", len(t.Head)-1))
	for _, r := range t.Rows {
		cells := make([]string, len(r))
		for i, c := range r {
			cells[i] = inMarkdown(strings.TrimSpace(c))
		}
		p.line("| %s |", strings.Join(cells, " | "))
	}
}
