package report

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// The list of presets fits a terminal of 100 columns.
func TestPresetsFit(t *testing.T) {
	var b strings.Builder
	if err := WritePresets(&b, Style{}); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(b.String()) {
		if n := utf8.RuneCountInString(strings.TrimRight(line, " \n")); n > 100 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
}
