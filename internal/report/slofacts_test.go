package report

import (
	"testing"

	"pitot/internal/analysis/compare"
)

// A comparison says which side met the SLO only where sides differ, and undecided is not met.
func TestSLOFacts(t *testing.T) {
	met, missed, open := compare.SLOCount{Met: 1, Close: 1}, compare.SLOCount{Missed: 1}, compare.SLOCount{Undecided: 1}
	for name, c := range map[string]struct {
		of   [2]compare.SLOCount
		want string
	}{
		"alike":     {[2]compare.SLOCount{met, met}, ""},
		"differ":    {[2]compare.SLOCount{met, missed}, "a met it (too close to call), b missed it"},
		"undecided": {[2]compare.SLOCount{open, missed}, "a undecided, b missed it"},
		"launches":  {[2]compare.SLOCount{{Met: 3}, {Met: 1, Missed: 2, Close: 2}}, "a met it, b met it in 1 of 3 launches (2 too close to call)"},
	} {
		m := ComparisonModel{Of: &compare.Comparison{Pairs: []compare.Pair{{A: "a", B: "b", SLO: &c.of}}}}
		got := ""
		for _, f := range m.sloFacts() {
			got += f.Value[0]
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
