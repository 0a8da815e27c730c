package report

import (
	"path/filepath"
	"pitot/internal/report/reporttest"
	"regexp"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// mostLines are the lines that an answer may have by default: a screen.
const mostLines = 30

var escape = regexp.MustCompile("\x1b\\[[0-9;]*m")

// Golden files hold what each run looks like: as text, short and in full, in colour with ␛ for
// the escape character, and in Markdown.
func TestGolden(t *testing.T) {
	for name, run := range reporttest.Runs() {
		t.Run(name, func(t *testing.T) {
			render := func(f func(*strings.Builder) error) string {
				var b strings.Builder
				if err := f(&b); err != nil {
					t.Fatal(err)
				}
				return b.String()
			}
			m := Build(run, "runs/20261120-234800-llama-3.1-8b")
			short := render(func(b *strings.Builder) error { return m.WriteTerminal(b, Style{}) })
			shortColour := render(func(b *strings.Builder) error { return m.WriteTerminal(b, Style{Color: true}) })
			full := render(func(b *strings.Builder) error { return m.WriteTerminal(b, Style{Full: true}) })
			fullColour := render(func(b *strings.Builder) error { return m.WriteTerminal(b, Style{Color: true, Full: true}) })
			text, colour := short+"== full\n"+full, shortColour+"== full\n"+fullColour
			md := render(func(b *strings.Builder) error { return m.WriteMarkdown(b) })

			if n := strings.Count(short, "\n"); n > mostLines {
				t.Errorf("%d lines without --full, and %d may be:\n%s", n, mostLines, short)
			}
			for line := range strings.Lines(short) {
				if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > textWidth {
					t.Errorf("%d columns without --full: %s", n, line)
				}
			}
			for line := range strings.Lines(text) {
				line = strings.TrimSuffix(line, "\n")
				if n := utf8.RuneCountInString(line); n > tableWidth {
					t.Errorf("%d columns: %s", n, line)
				}
				if strings.ContainsFunc(line, unicode.IsControl) || strings.HasSuffix(line, " ") {
					t.Errorf("control characters or blanks at the end: %q", line)
				}
			}
			if escape.ReplaceAllString(colour, "") != text {
				t.Error("with colour it says something else")
			}
			got := text + "== colour\n" + strings.ReplaceAll(colour, "\x1b", "␛") + "== markdown\n" + md
			reporttest.SameAsGolden(t, filepath.Join("testdata", name+".golden"), got)
		})
	}
}

// A golden file that no case writes is a leftover.
func TestGoldenFilesAreUsed(t *testing.T) {
	files, err := filepath.Glob("testdata/*.golden")
	if err != nil || len(files) == 0 {
		t.Fatal(err)
	}
	for _, f := range files {
		if reporttest.Runs()[strings.TrimSuffix(filepath.Base(f), ".golden")] == nil {
			t.Errorf("%s is nobody's", f)
		}
	}
}
