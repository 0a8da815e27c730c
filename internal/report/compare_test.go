package report

import (
	"encoding/json"
	"os"
	"path/filepath"
	"pitot/internal/report/reporttest"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestComparisons(t *testing.T) {
	golden := map[string]bool{}
	for name, c := range reporttest.Comparisons(t) {
		golden[name+".golden"] = true
		t.Run(name, func(t *testing.T) {
			m := BuildComparison(c)
			var text, colour, full, md strings.Builder
			for _, err := range []error{m.WriteTerminal(&text, Style{}), m.WriteTerminal(&colour, Style{Color: true}), m.WriteTerminal(&full, Style{Full: true}), m.WriteMarkdown(&md)} {
				if err != nil {
					t.Fatal(err)
				}
			}
			fitsScreen(t, text.String())
			for line := range strings.Lines(text.String() + full.String()) {
				line = strings.TrimSuffix(line, "\n")
				if n := utf8.RuneCountInString(line); n > textWidth {
					t.Errorf("%d columns: %s", n, line)
				}
				if strings.ContainsFunc(line, unicode.IsControl) || strings.HasSuffix(line, " ") {
					t.Errorf("control characters or blanks at the end: %q", line)
				}
			}
			if escape.ReplaceAllString(colour.String(), "") != text.String() {
				t.Error("with colour it says something else")
			}
			if _, err := json.Marshal(c); err != nil {
				t.Error(err)
			}
			got := text.String() + "== in full\n" + full.String() + "== markdown\n" + md.String()
			reporttest.SameAsGolden(t, filepath.Join("testdata", "compare", name+".golden"), got)
		})
	}
	files, err := os.ReadDir(filepath.Join("testdata", "compare"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if !golden[f.Name()] {
			t.Errorf("%s is nobody's", f.Name())
		}
	}
}

// Columns have the narrowest names that tell sides apart.
func TestHeads(t *testing.T) {
	for names, want := range map[[2]string][2]string{
		{"before", "after"}:                                          {"before", "after"},
		{"a", "a"}:                                                   {"a", "a"},
		{"20261120-main", "20261121-main"}:                           {"20261120-…", "20261121-…"},
		{"results/2026-10-01", "results/2026-11-01"}:                 {"…026-10-01", "…026-11-01"},
		{"experiment-main-of-a-day", "experiment-next-of-a-day"}:     {"experiment-main-of-…", "experiment-next-of-…"},
		{"experiment-é", "experiment-è"}:                             {"…eriment-é", "…eriment-è"},
		{"experiments/one/20261120", "experiments/one/20261120 (2)"}: {"…/20261120", "…61120 (2)"},
	} {
		a, b := shortenHeads(names[0], names[1])
		if got := [2]string{a, b}; got != want {
			t.Errorf("%q: %q, want %q", names, got, want)
		}
	}
}
