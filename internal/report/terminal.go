package report

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"pitot/internal/results/result"
	"pitot/internal/say"
)

// The rules of the terminal: an answer is read in ten seconds. It comes first, then the facts that
// it rests on, the numbers, at most three notes, and what to do next, in 30 lines. --full has every
// line. Colour marks what did not pass; a VALID measurement has none, since it says nothing about
// the server. Text keeps to 80 columns, or to those of a narrower terminal, and tables in full to 100.

const (
	textWidth  = 80
	tableWidth = 100
	leastWidth = 40 // narrower lines are harder to read than broken ones
)

// Style turns marks into escape sequences, or into nothing, and fits lines to a terminal.
type Style struct {
	Color bool
	Width int  // columns of the terminal, 0 where there is none
	Full  bool // show every line, not only the answer and what explains it
}

func (s Style) paint(code, text string) string {
	if !s.Color || code == "" || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// Codes of the terminal's colours (ECMA-48, select graphic rendition).
const (
	bold   = "1"
	dim    = "2"
	red    = "31"
	green  = "32"
	yellow = "33"
)

func verdictColor(v result.Verdict) string {
	return map[result.Verdict]string{result.ValidWithFlags: bold + ";" + yellow, result.Invalid: bold + ";" + red}[v]
}

func metColor(met result.Met) string {
	return map[result.Met]string{result.Yes: green, result.No: red, result.Undecided: yellow}[met]
}

// WriteTerminal writes the model for a terminal.
func (m Model) WriteTerminal(w io.Writer, s Style) error {
	if !s.Full {
		return writeFitting(w, s, m.writeAnswer)
	}
	p := newPrinter(w, s)
	p.writePainted(bold, m.Headline.Sentence)
	if m.Overview != nil {
		for _, f := range m.Overview.Facts {
			p.writeText(f...)
		}
	} else if m.Headline.HasInterval() {
		p.writeText(m.Headline.Interval)
	}
	p.line("")
	p.writeText(m.Title)
	for _, f := range m.Facts {
		p.writeText(f...)
	}
	for _, warning := range m.Warnings {
		p.writePainted(yellow, warning)
	}
	if m.Overview != nil {
		m.Overview.writeTerminal(p)
		m.Points = nil // they are in the other formats
	}
	if m.Repeats != nil {
		m.Repeats.writeTerminal(p)
		p.line("")
		for i := range m.Points {
			m.Points[i].verdictLine(p)
		}
		m.repeatedChecks(p)
		p.linePainted(dim, "each in full: pitot report --format md, or the page")
		m.Points = nil
	}
	for i := range m.Points {
		if i > 0 || m.Points[i].Ordinal != "" {
			p.line("")
		}
		m.Points[i].writeTerminal(p)
	}
	if m.Why != "" {
		p.writeWrapped("What limits it: " + m.Why)
	}
	switch {
	case m.Dir == "":
	case m.Unsaved:
		p.linePainted(yellow, "not saved: the records alone are in "+m.Dir)
	default:
		p.linePainted(dim, "saved in "+m.Dir)
	}
	if m.Page != "" {
		p.linePainted(dim, "open "+m.Page)
	}
	return p.err
}

// verdictLine is a repeat's verdict, and what its checks found.
func (m *PointModel) verdictLine(p *printer) {
	verdict := strings.Join(nonEmpty(m.Ordinal, string(m.Verdict)), ": ")
	if len(m.Because) > 0 {
		verdict += ", " + strings.Join(m.Because, ", ")
	}
	p.writePainted(verdictColor(m.Verdict), verdict)
	p.write(red, "  ", m.Outcome)
}

func (m *PointModel) writeTerminal(p *printer) {
	code := ""
	if m.Ordinal != "" {
		code = bold
	}
	p.writePainted(code, nonEmpty(append([]string{m.Ordinal}, m.Load...)...)...)
	p.line("")
	verdict := append([]string{string(m.Verdict)}, nonEmpty(strings.Join(m.Because, ", "))...)
	p.writePainted(verdictColor(m.Verdict), "Measurement "+strings.Join(verdict, ": "))
	p.writeText(m.Headline...)
	p.writePainted(red, m.Outcome)
	if f := m.Failures; f != nil {
		p.line("%s", f.Total)
		for _, class := range f.Classes {
			p.line("  %s", class)
		}
	}
	if o := m.Objective; o != nil {
		p.writePainted(metColor(o.Met), o.Facts...)
		for _, l := range o.Limits {
			p.writeHanging("", "  ", "    ", l...)
		}
	}
	p.line("")
	if len(m.Latencies.Rows) > 0 {
		p.writeTable(m.Latencies)
	}
	for _, t := range m.furtherTables() {
		p.line("")
		p.writeTable(*t)
	}
	p.writePainted(dim, m.Legend...)
	if len(m.Latencies.Rows) > 0 {
		p.line("")
	}
	for _, r := range m.Remarks {
		p.writeText(r)
	}
	for _, l := range slices.Concat(m.Cost, m.Server) {
		p.writeText(l.Parts()...)
	}
	p.writeText(m.Instrument...)
	for i := range m.NotPassed {
		m.NotPassed[i].writeTerminal(p)
	}
	p.line("%s", m.ChecksPassed())
}

// writeTerminal writes a check of a point that did not pass.
func (c *CheckModel) writeTerminal(p *printer) {
	p.writeCheck(c, c.Name+": "+c.Value+" (limit "+c.Limit+")")
}

// writeCheck writes a check that did not pass, in some words, and what to do.
func (p *printer) writeCheck(c *CheckModel, text string) {
	if c.Status == result.Fail {
		p.writeMarked(red, "FAIL", text)
	} else {
		p.writeMarked(yellow, "flag", text)
	}
	p.write("", "      ", c.Advice)
}

// repeatedChecks writes what did not pass in any repeat once, as the first had it.
func (m *Model) repeatedChecks(p *printer) {
	shown := map[string]bool{}
	for i := range m.Points {
		for k := range m.Points[i].NotPassed {
			if c := &m.Points[i].NotPassed[k]; !shown[c.Name] {
				shown[c.Name] = true
				c.writeTerminal(p)
			}
		}
	}
}

// writeTable writes a table with its numbers under one another.
func (p *printer) writeTable(t Table) {
	width, total := t.widths(), t.width()
	if len(width) > 0 && total > tableWidth { // names give way to numbers
		width[0] = max(width[0]-(total-tableWidth), 8)
	}
	write := func(r []string) string {
		var b strings.Builder
		for i, c := range r {
			c = say.Truncate(withoutControls(c), max(width[i], 1))
			pad := strings.Repeat(" ", width[i]-utf8.RuneCountInString(c))
			if i == 0 {
				b.WriteString(c + pad)
			} else {
				b.WriteString("  " + pad + c)
			}
		}
		return strings.TrimRight(b.String(), " ")
	}
	p.linePainted(dim, write(t.Head))
	for _, r := range t.Rows {
		p.line("%s", write(r))
	}
}

// withoutColumns gives the table less some of its columns. Which of the others are
// spare stays as it was.
func (t Table) withoutColumns(out func(column int) bool) Table {
	var keep, moved []int
	for i := range t.Head {
		moved = append(moved, len(keep))
		if !out(i) {
			keep = append(keep, i)
		}
	}
	only := func(r []string) (kept []string) {
		for _, i := range keep {
			kept = append(kept, r[i])
		}
		return kept
	}
	less := Table{Head: only(t.Head)}
	for _, r := range t.Rows {
		less.AddRow(only(r)...)
	}
	for _, i := range t.Spare {
		if slices.Contains(keep, i) {
			less.Spare = append(less.Spare, moved[i])
		}
	}
	return less
}

// fitWidth leaves out spare columns until the table has a width, as far as it can.
func (t Table) fitWidth(width int) Table {
	for len(t.Spare) > 0 && t.width() > width {
		first := t.Spare[0]
		t = t.withoutColumns(func(column int) bool { return column == first })
	}
	return t
}

// width is that of the table's lines, in characters.
func (t Table) width() (total int) {
	for _, w := range t.widths() {
		total += w + 2
	}
	return total - 2
}

// widths are those of the columns.
func (t Table) widths() (list []int) {
	for i := range t.Head {
		width := 0
		for _, r := range append([][]string{t.Head}, t.Rows...) {
			width = max(width, utf8.RuneCountInString(r[i]))
		}
		list = append(list, width)
	}
	return list
}

// fillLines breaks items, with a dot between those on one line, into lines: between
// items where it can, else between words, but not between a number and its
// unit.
func fillLines(width int, items ...string) (lines []string) {
	at := ""
	flush := func() {
		if at != "" {
			lines = append(lines, at)
		}
		at = ""
	}
	fits := func(s string) bool { return utf8.RuneCountInString(at)+utf8.RuneCountInString(s) <= width }
	for _, item := range items {
		if at != "" {
			if fits(" · " + item) {
				at += " · " + item
				continue
			}
			flush()
		}
		for _, word := range unbreakableWords(item) {
			if at != "" && !fits(" "+word) {
				flush()
			}
			if at != "" {
				at += " "
			}
			for !fits(word) {
				head := []rune(word)[:width]
				lines = append(lines, string(head))
				word = word[len(string(head)):]
			}
			at += word
		}
	}
	flush()
	return lines
}

// unbreakableWords are the parts of a text that stay on one line.
func unbreakableWords(text string) (out []string) {
	for _, w := range strings.Fields(text) {
		if n := len(out); n > 0 && len(out[n-1]) < 24 {
			last, _ := utf8.DecodeLastRuneInString(out[n-1])
			if unicode.IsDigit(last) {
				out[n-1] += " " + w
				continue
			}
		}
		out = append(out, w)
	}
	return out
}

// printer writes lines and remembers the first error.
type printer struct {
	w     io.Writer
	style Style
	tight int // how many details are left out for an answer to fit a screen
	err   error
}

func newPrinter(w io.Writer, s Style) *printer { return &printer{w: w, style: s} }

// textWidth are those that text keeps to.
func (p *printer) textWidth() int {
	if p.style.Width <= 0 {
		return textWidth
	}
	return min(textWidth, max(p.style.Width, leastWidth))
}

// line writes a line. Every line for a terminal goes this way, so none of what comes from
// servers and files can control the terminal.
func (p *printer) line(format string, args ...any) {
	if p.err == nil {
		text := fmt.Sprintf(strings.TrimRight(format, " "), args...)
		_, p.err = io.WriteString(p.w, forTerminal(text)+"\n")
	}
}

// ownStyles are the escape sequences that [Style.paint] writes.
var ownStyles = regexp.MustCompile("\x1b\\[(?:0|(?:1;)?(?:31|32|33)|1|2)m")

// forTerminal replaces the characters of a text that control a terminal or the direction of
// text, apart from the styles of reports.
func forTerminal(s string) string {
	if plain := withoutControls(s); plain == s {
		return s
	}
	var out strings.Builder
	for {
		at := ownStyles.FindStringIndex(s)
		if at == nil {
			out.WriteString(withoutControls(s))
			return out.String()
		}
		out.WriteString(withoutControls(s[:at[0]]))
		out.WriteString(s[at[0]:at[1]])
		s = s[at[1]:]
	}
}

// withoutControls puts another character in the place of each that is not printed.
func withoutControls(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '\uFFFD'
		}
		return r
	}, s)
}

// linePainted writes a line that is painted.
func (p *printer) linePainted(code, text string) { p.line("%s", p.style.paint(code, text)) }

// writeText fills lines with items.
func (p *printer) writeText(items ...string) { p.write("", "", items...) }

// writeFormat fills lines with a text that is made by a format.
func (p *printer) writeFormat(format string, args ...any) { p.writeText(fmt.Sprintf(format, args...)) }

// writePainted fills lines with items, of which the first is painted.
func (p *printer) writePainted(code string, items ...string) { p.write(code, "", items...) }

// writeWrapped fills lines with a text, indented from the second line on.
func (p *printer) writeWrapped(text string) { p.writeHanging("", "", "  ", text) }

// writeMarked fills lines with a text that stands behind a painted mark of four letters.
func (p *printer) writeMarked(code, mark, text string) {
	p.writeHanging("", p.style.paint(code, mark)+"  ", "      ", text)
}

// write fills indented lines with items, of which the first is painted.
func (p *printer) write(code, indent string, items ...string) {
	p.writeHanging(code, indent, indent, items...)
}

// writeHanging does it with another indent from the second line on. What servers and files say
// becomes plain here.
func (p *printer) writeHanging(code, indent, hang string, items ...string) {
	if len(items) == 0 {
		return
	}
	items = plainTexts(items)
	left := utf8.RuneCountInString(strings.Join(unbreakableWords(items[0]), " ")) // to be painted
	for i, l := range fillLines(p.textWidth()-len(hang), items...) {
		if i > 0 {
			indent = hang
		}
		head, tail := l, ""
		if r := []rune(l); len(r) > left {
			head, tail = string(r[:left]), string(r[left:])
		}
		left = max(0, left-utf8.RuneCountInString(l)-1) // and the space between
		p.line("%s%s%s", indent, p.style.paint(code, head), tail)
	}
}

// plainTexts makes one plain line of each of several texts.
func plainTexts(list []string) (plain []string) {
	for _, text := range list {
		plain = append(plain, say.PlainLine(text))
	}
	return plain
}
