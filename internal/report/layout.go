package report

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// The parts of an answer, in their order: the answer in one line, facts with a label each,
// tables, notes, and what to do next. Each part but the answer begins with an empty line, and
// a part without content writes nothing.

const (
	labelWidth = 13 // of the labels of facts, with the space after them
	mostNotes  = 3  // notes that are shown by default
	mostRows   = 8  // rows of a table that are shown by default
)

// screenLines is the number of lines that an answer has at most by default, if it can.
const screenLines = 30

// mostTight is the number of times that details are left out for that.
const mostTight = 4

// writeFitting writes what write writes, and leaves out details until it fits a screen: notes, then
// what is known of the server. With Style.Full it leaves out nothing.
func writeFitting(w io.Writer, s Style, write func(p *printer)) error {
	for tight := 0; ; tight++ {
		var b bytes.Buffer
		p := newPrinter(&b, s)
		p.tight = tight
		write(p)
		if s.Full || tight == mostTight || bytes.Count(b.Bytes(), []byte("\n")) <= screenLines {
			_, err := w.Write(b.Bytes())
			return err
		}
	}
}

// labelled is a fact with its label. A fact without a label continues the one above it.
type labelled struct {
	Label string
	Color string   // of the first value, "" for none
	Value []string // items of the line; empty ones are left out

	Columns string // in place of Value: a line whose columns are aligned with those of its neighbours
}

// note is a sentence below the table. A warning limits the numbers above it.
type note struct {
	Text    string
	Warning bool
}

// writeAnswer writes the line that an output is read for.
func (p *printer) writeAnswer(text string) {
	p.writePainted(bold, text)
}

// writeFacts writes facts with their values under one another.
func (p *printer) writeFacts(facts []labelled) {
	first := true
	for _, f := range facts {
		value := nonEmpty(f.Value...)
		if len(value) == 0 && f.Columns == "" {
			continue
		}
		if first {
			p.line("")
			first = false
		}
		if f.Columns != "" {
			p.writeMarkedColumns(f)
			continue
		}
		p.writeHanging(f.Color, padLabel(f.Label), strings.Repeat(" ", labelWidth), value...)
	}
}

// writeMarkedColumns writes a fact of aligned columns, of which the first has one character: a mark. What
// does not fit is continued on the next line.
func (p *printer) writeMarkedColumns(f labelled) {
	indent := padLabel(f.Label)
	mark, rest, _ := strings.Cut(withoutControls(f.Columns), " ")
	if n := p.textWidth() - labelWidth - 2; utf8.RuneCountInString(rest) > n {
		cut := strings.LastIndex(string([]rune(rest)[:n]), "  ")
		if cut > 0 {
			p.line("%s%s %s", indent, p.style.paint(f.Color, mark), strings.TrimRight(rest[:cut], " "))
			blank := strings.Repeat(" ", labelWidth+2)
			p.writeHanging("", blank, blank, strings.TrimSpace(rest[cut:]))
			return
		}
	}
	p.line("%s%s %s", indent, p.style.paint(f.Color, mark), rest)
}

// padLabel returns a label with the space after it.
func padLabel(label string) string {
	return label + strings.Repeat(" ", max(labelWidth-utf8.RuneCountInString(label), 1))
}

// writeNotes writes the first notes, warnings before others, and how to see the rest: more, or
// "--full" if more is empty. It writes all of them if full is set.
func (p *printer) writeNotes(notes []note, full bool, more string) {
	most := mostNotes
	if full {
		most = len(notes)
	}
	p.writeFirstNotes(notes, most, more)
}

// writeFirstNotes does it with another number of notes.
func (p *printer) writeFirstNotes(notes []note, most int, more string) {
	if len(notes) == 0 {
		return
	}
	most = max(most-p.tight, 1)
	p.line("")
	p.line("Notes")
	left := most
	for _, warning := range []bool{true, false} {
		for _, n := range notes {
			if n.Warning != warning || left == 0 {
				continue
			}
			left--
			mark := "·"
			if warning {
				mark = p.style.paint(yellow, "!")
			}
			p.writeHanging("", "  "+mark+" ", "    ", n.Text)
		}
	}
	if hidden := len(notes) - most; hidden > 0 {
		if more == "" {
			more = "--full"
		}
		p.linePainted(dim, fmt.Sprintf("    +%d more: %s", hidden, more))
	}
}

// writeNext writes the command to run next and where the report is; either may be empty.
func (p *printer) writeNext(next, report string) {
	if next+report != "" {
		p.line("")
	}
	p.writeCommand("Next", next)
	p.writeCommand("Report", report)
}

// writeCommand writes a shell command or a path after a label. A long command is continued on
// the next line as a shell reads it.
func (p *printer) writeCommand(label, command string) {
	if command == "" {
		return
	}
	indent := padLabel(label)
	for _, l := range breakCommand(command, p.textWidth()-labelWidth) {
		p.line("%s%s", indent, l)
		indent = strings.Repeat(" ", labelWidth)
	}
}

// breakCommand breaks a shell command before its flags so that its lines have a width, as far as
// that is possible.
func breakCommand(command string, width int) (lines []string) {
	at := ""
	for i, part := range strings.Split(command, " --") {
		if i > 0 {
			part = "--" + part
		}
		switch {
		case at == "":
			at = part
		case strings.Count(at, "'")%2 == 1: // within quotes
			at += " " + part
		case utf8.RuneCountInString(at)+1+utf8.RuneCountInString(part)+2 > width:
			lines = append(lines, at+" \\")
			at = "  " + part
		default:
			at += " " + part
		}
	}
	return append(lines, at)
}

// firstRows returns a table of at most so many rows, and how many are left out.
func (t Table) firstRows(most int) (Table, int) {
	left := max(len(t.Rows)-most, 0)
	t.Rows = t.Rows[:len(t.Rows)-left]
	return t, left
}

// writeColumns writes a table with its numbers to the right, and words to the left in the first
// column and in others that are named.
func (p *printer) writeColumns(t Table, words ...int) {
	widths := t.widths()
	for i, row := range append([][]string{t.Head}, t.Rows...) {
		var b strings.Builder
		for k, cell := range row {
			cell = withoutControls(cell)
			pad := strings.Repeat(" ", widths[k]-utf8.RuneCountInString(cell))
			switch {
			case k == 0:
				b.WriteString(cell + pad)
			case slices.Contains(words, k):
				b.WriteString("  " + cell + pad)
			default:
				b.WriteString("  " + pad + cell)
			}
		}
		code := ""
		if i == 0 {
			code = dim
		}
		p.linePainted(code, strings.TrimRight(b.String(), " "))
	}
}
