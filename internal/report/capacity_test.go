package report

import (
	"testing"

	"pitot/internal/results/result"
)

// The first line has the highest load that is known to be within: what all windows tell, where
// that is above the one that was looked at by itself, and only the latter is called verified.
func TestBestBoundComesFirst(t *testing.T) {
	verified, met, most, estimate := 1.29, 1.86, 2.48, 2.32
	bounds := &result.Bounds{Level: 0.95}
	for _, c := range []struct {
		name string
		of   result.Capacity
		want string
	}{
		{"a look of its own", result.Capacity{Load: &met, Bracket: &[2]*float64{&met, &most}}, "Capacity: at least 1.86 req/s within the SLO (verified, 95 % sure)"},
		{"all windows", result.Capacity{Load: &verified, Bracket: &[2]*float64{&met, &most}}, "Capacity: at least 1.86 req/s within the SLO (95 % sure)"},
		{"all windows, no look", result.Capacity{Bracket: &[2]*float64{&met, nil}, Estimate: &estimate, CI95: &[2]float64{2.16, 2.48}}, "Capacity: at least 1.86 req/s within the SLO (95 % sure)"},
		{"neither", result.Capacity{Bracket: &[2]*float64{nil, &most}}, "Capacity: at most 2.48 req/s within the SLO (95 % sure)"},
	} {
		c.of.Over, c.of.Bounds = result.OverRate, bounds
		if got := capacitySentence(&c.of); got != c.want {
			t.Errorf("%s: %q, not %q", c.name, got, c.want)
		}
	}
}
