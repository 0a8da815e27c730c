package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"pitot/internal/say"
)

// WriteMarkdown writes the model as one section for a pull request or document.
func (m Model) WriteMarkdown(w io.Writer) error {
	p := &markdown{w: w}
	p.line("### " + escapeMarkdown(m.Title))
	p.line("")
	m.writeHeadline(p)
	for _, f := range m.Facts {
		p.writeItem(escapeTexts(f)...)
	}
	for _, warning := range m.Warnings {
		p.writeItem(strongText(warning))
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
	m.writeConditions(p)
	return p.err
}

// writeClaim writes what a reader takes away, with goodput next to throughput. For many loads
// together the rest is in a list of its own and in the table of loads.
func (m *Model) writeHeadline(p *markdown) {
	p.line(strongText(m.Headline.Sentence))
	if m.Overview != nil {
		p.line("")
		return
	}
	if m.Headline.Interval != "" {
		p.line(escapeMarkdown(strings.ToUpper(m.Headline.Interval[:1]) + m.Headline.Interval[1:] + "."))
	}
	p.line("")
	if len(m.Figures) == 0 {
		return
	}
	var t Table
	var row []string
	for _, f := range m.Figures {
		t.Head = append(t.Head, strings.Join(nonEmpty(f.Name, f.Unit), ", "))
		row = append(row, f.Value)
	}
	t.Rows = [][]string{row}
	p.writeTable(t)
	p.line("")
}

// writeConditions writes the conditions that the claim holds under, folded away.
func (m *Model) writeConditions(p *markdown) {
	p.line("")
	p.line("<details><summary>Conditions</summary>")
	p.line("")
	p.line("| | |")
	p.line("|---|---|")
	for _, c := range m.Conditions {
		p.line("| " + escapeMarkdown(c.Name) + " | " + escapeMarkdown(c.Value) + " |")
	}
	p.line("")
	p.line("</details>")
}

func (m *PointModel) writeMarkdown(p *markdown) {
	if m.Ordinal != "" {
		p.line("")
		p.line("#### " + escapeMarkdown(strings.ToUpper(m.Ordinal[:1])+m.Ordinal[1:]))
		p.line("")
	}
	p.writeItem(escapeTexts(m.Load)...)
	p.line("")
	verdict := strongText(string(m.Verdict))
	if len(m.Because) > 0 {
		verdict += ": " + escapeMarkdown(strings.Join(m.Because, ", "))
	}
	p.line(joinMarkup(append([]markup{verdict}, escapeTexts(m.Headline)...)...))
	if m.Outcome != "" || m.Failures != nil || m.Objective != nil {
		p.line("")
	}
	p.writeItem(strongText(m.Outcome))
	if f := m.Failures; f != nil {
		p.writeItem(escapeMarkdown(f.Total))
		for _, class := range f.Classes {
			p.line("  - " + escapeMarkdown(class))
		}
	}
	if o := m.Objective; o != nil {
		p.writeItem(strongText(o.Facts[0]), joinMarkup(escapeTexts(o.Facts[1:])...))
		for _, l := range o.Limits {
			p.line("  - " + joinMarkup(escapeTexts(l)...))
		}
	}
	if len(m.Latencies.Rows) > 0 {
		p.line("")
		p.writeTable(m.Latencies)
	}
	for _, t := range m.furtherTables() {
		p.line("")
		p.writeTable(*t)
	}
	p.line("")
	p.writeItem(escapeTexts(m.Legend)...)
	for _, r := range m.Remarks {
		p.writeItem(escapeMarkdown(r))
	}
	for _, l := range slices.Concat(m.Cost, m.Server) {
		p.writeItem(escapeTexts(l.Parts())...)
	}
	p.writeItem(escapeTexts(m.Instrument)...)
	for _, c := range m.NotPassed {
		p.writeItem(strongText(string(c.Status)) + " " + escapeMarkdown(fmt.Sprintf("%s: %s (limit %s). %s", c.Name, c.Value, c.Limit, c.Advice)))
	}
	p.writeItem(escapeMarkdown(m.ChecksPassed()))
}

// markup is Markdown. Constants are Markdown as they stand; what comes from servers, files and
// users becomes markup through [escapeMarkdown], which escapes it, and by no other way.
type markup string

// markdown writes Markdown and remembers the first error.
type markdown struct {
	w   io.Writer
	err error
}

// line writes a line.
func (p *markdown) line(line markup) {
	if p.err == nil {
		_, p.err = io.WriteString(p.w, string(line)+"\n")
	}
}

// writeItem writes one point of a list, of the parts that are not empty.
func (p *markdown) writeItem(parts ...markup) {
	parts = slices.DeleteFunc(parts, func(m markup) bool { return m == "" })
	if len(parts) > 0 {
		p.line("- " + joinMarkup(parts...))
	}
}

// writeTable writes a table, of which every cell is text.
func (p *markdown) writeTable(t Table) {
	row := func(cells []string) {
		line := markup("|")
		for _, c := range cells {
			line += " " + escapeMarkdown(c) + " |"
		}
		p.line(line)
	}
	row(t.Head)
	p.line(markup("|---" + strings.Repeat("|--:", len(t.Head)-1) + "|"))
	for _, r := range t.Rows {
		row(r)
	}
}

// joinMarkup joins parts on a line.
func joinMarkup(parts ...markup) markup {
	var all []string
	for _, m := range parts {
		all = append(all, string(m))
	}
	return markup(strings.Join(all, " · "))
}

// escapeTexts escapes each of several texts.
func escapeTexts(parts []string) (out []markup) {
	for _, s := range parts {
		out = append(out, escapeMarkdown(s))
	}
	return out
}

// strongText is text that stands out.
func strongText(s string) markup {
	if s == "" {
		return ""
	}
	return "**" + escapeMarkdown(s) + "**"
}

// inCode is a line of a code block, which it cannot end.
func inCode(s string) markup {
	return markup(strings.ReplaceAll(say.PlainLine(s), "```", "'''"))
}

// escapeMarkdown makes a text one line of Markdown that shows it as it is: no HTML, no links, no images,
// no characters that control a terminal or the direction of text.
func escapeMarkdown(s string) markup { return markup(markdownEscapes.Replace(say.PlainLine(s))) }

var markdownEscapes = strings.NewReplacer(
	"\\", "\\\\", "&", "&amp;", "<", "&lt;", "`", "\\`", "*", "\\*", "_", "\\_", "|", "\\|", "~", "\\~", "[", "\\[", "]", "\\]",
)

// EscapeMarkdown returns a text as one line of Markdown that shows it as it is.
func EscapeMarkdown(s string) string { return string(escapeMarkdown(s)) }
