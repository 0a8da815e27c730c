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

var escape = regexp.MustCompile("\x1b\\[[0-9;]*m")

// Golden files hold what each run looks like: as text, in colour with ␛ for
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
			text := render(func(b *strings.Builder) error { return m.WriteTerminal(b, Style{}) })
			colour := render(func(b *strings.Builder) error { return m.WriteTerminal(b, Style{Color: true}) })
			md := render(func(b *strings.Builder) error { return m.WriteMarkdown(b) })

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
