package report

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"pitot/internal/report/reporttest"
	"pitot/internal/results/result"
)

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

			if n := strings.Count(short, "\n"); n > screenLines {
				t.Errorf("%d lines without --full, and %d may be:\n%s", n, screenLines, short)
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

// The answers of searches and sweeps fit a screen too.
func TestManyLoadsFitAScreen(t *testing.T) {
	search := reporttest.SweepRun()
	load, most, estimate := 8.4, 47.5, 20.
	search.Curve, search.Capacity = nil, &result.Capacity{Over: result.OverRate, SLO: "p99 ttft<200ms", Load: &load, Estimate: &estimate,
		CI95: &[2]float64{12, 30}, Bracket: &[2]*float64{&load, &most}, Bounds: &result.Bounds{Level: .95}, Covers: "this launch only",
		Verified: &result.Verified{Load: load, Requests: 12_000, Violations: 14, Upper: .002, Allowed: .01, Passed: true}, Requests: 100_000, Seconds: 6000}
	for name, run := range map[string]*result.Run{"a sweep": reporttest.SweepRun(), "a search": search} {
		var b strings.Builder
		if err := Build(run, "runs/20261120-234800-llama-3.1-8b").WriteTerminal(&b, Style{}); err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(b.String(), "\n"); n > screenLines || n < 10 {
			t.Errorf("%s: %d lines\n%s", name, n, b.String())
		}
		for line := range strings.Lines(b.String()) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > textWidth {
				t.Errorf("%s: %d columns: %s", name, n, line)
			}
		}
	}
}
