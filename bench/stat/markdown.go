package main

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// markdown is a table with columns of even width.
func markdown(header []string, rows [][]string) string {
	width := make([]int, len(header))
	for _, row := range append([][]string{header}, rows...) {
		for i, cell := range row {
			width[i] = max(width[i], utf8.RuneCountInString(cell), 3)
		}
	}
	var b strings.Builder
	line := func(row []string, fill string) {
		for i, w := range width {
			fmt.Fprintf(&b, "| %s%s ", row[i], strings.Repeat(fill, w-utf8.RuneCountInString(row[i])))
		}
		b.WriteString("|\n")
	}
	line(header, " ")
	line(make([]string, len(header)), "-")
	for _, row := range rows {
		line(row, " ")
	}
	return b.String()
}

// tally counts how often something holds.
type tally struct{ Held, Of int }

func (t *tally) count(held bool) {
	t.Of++
	if held {
		t.Held++
	}
}

// addIf counts only what the condition lets through.
func (t *tally) addIf(counts, held bool) {
	if counts {
		t.count(held)
	}
}

// String is the share that held in percent.
func (t tally) String() string {
	if t.Of == 0 {
		return "none"
	}
	return fmt.Sprintf("%.1f %%", 100*float64(t.Held)/float64(t.Of))
}

func number(x float64) string { return fmt.Sprintf("%.4g", x) }
