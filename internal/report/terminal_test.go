package report

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"pitot/internal/report/reporttest"
	"pitot/internal/results/result"
)

// Lines keep to their width, nothing is lost, and a number stays with its unit.
func TestFill(t *testing.T) {
	for _, c := range []struct {
		items []string
		want  []string
	}{
		{[]string{"one two", "three"}, []string{"one two · three"}},
		{[]string{"one two three", "four five six"}, []string{"one two three", "four five six"}},
		{[]string{"one two three four five six"}, []string{"one two three four", "five six"}},
		{[]string{"measured a value 35 ms"}, []string{"measured a value", "35 ms"}},
		{[]string{"https://example.com/a/b/c"}, []string{"https://example.com/", "a/b/c"}},
		{[]string{""}, nil},
	} {
		got := fillLines(20, c.items...)
		if len(got) != len(c.want) {
			t.Errorf("%q: %q", c.items, got)
			continue
		}
		for i := range got {
			if got[i] != c.want[i] {
				t.Errorf("%q: %q, want %q", c.items, got, c.want)
			}
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		items := rapid.SliceOf(rapid.StringMatching(`[a-zä0-9 ]{0,40}`)).Draw(t, "items")
		width := rapid.IntRange(8, 60).Draw(t, "width")
		letters := func(list []string) (s string) {
			for _, x := range list {
				for _, r := range x {
					if r != ' ' && r != '·' {
						s += string(r)
					}
				}
			}
			return s
		}
		lines := fillLines(width, items...)
		if letters(lines) != letters(items) {
			t.Fatalf("%q became %q", items, lines)
		}
		for _, l := range lines {
			if utf8.RuneCountInString(l) > width || l == "" {
				t.Fatalf("%q in %d columns", l, width)
			}
		}
	})
}

// Text fits a terminal narrower than most.
func TestTerminalWidth(t *testing.T) {
	run := reporttest.ServerRun(2000)
	run.Points[0].Checks = append(run.Points[0].Checks, reporttest.NewCheck(result.CheckWindow, result.Flag, 9, 0))
	for _, c := range []struct{ width, most int }{{0, textWidth}, {60, 60}, {200, textWidth}, {10, leastWidth}} {
		var b strings.Builder
		if err := Build(run, "").WriteTerminal(&b, Style{Width: c.width}); err != nil {
			t.Fatal(err)
		}
		widest := 0
		for line := range strings.Lines(b.String()) {
			if !strings.Contains(line, "   ") || strings.HasPrefix(line, "      ") { // no table, whose numbers stay under one another
				widest = max(widest, utf8.RuneCountInString(strings.TrimSuffix(line, "\n")))
			}
		}
		if widest > c.most || widest < c.most/2 {
			t.Errorf("%d columns: the widest line has %d", c.width, widest)
		}
	}
}
