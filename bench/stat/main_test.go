package main

import "testing"

// Every table runs, and its rows are as wide as its header.
func TestTables(t *testing.T) {
	seen := map[string]bool{}
	for _, table := range tables() {
		if seen[table.name] || table.about == "" || table.reps < 1 {
			t.Errorf("%s: a name twice, nothing about it, or no repetitions", table.name)
		}
		seen[table.name] = true
		rows := table.rows(1, 1)
		if len(rows) == 0 {
			t.Errorf("%s is empty", table.name)
		}
		for _, row := range rows {
			if len(row) != len(table.header) {
				t.Errorf("%s: %q under %q", table.name, row, table.header)
			}
		}
	}
}

func TestMarkdown(t *testing.T) {
	got := markdown([]string{"φ", "share"}, [][]string{{"1", "3 %"}, {"22.25", "none"}})
	want := `| φ     | share |
| ----- | ----- |
| 1     | 3 %   |
| 22.25 | none  |
`
	if got != want {
		t.Errorf("%s", got)
	}
}
