package capacity

import (
	"testing"

	"pitot/internal/stats"
)

// Without an estimate the capacity is probably between the heaviest load that long windows met and
// the first that missed the limit. Short windows show neither end below it.
func TestLikelyBounds(t *testing.T) {
	type window struct {
		load          float64
		n, violations int
	}
	for name, c := range map[string]struct {
		windows []window
		want    stats.Interval
	}{
		"both ends are long":        {[]window{{10, 500, 1}, {12, 500, 30}}, stats.Interval{Lo: 10, Hi: 12}},
		"one met, the same missed":  {[]window{{10, 500, 0}, {12, 500, 0}, {12, 500, 30}}, stats.Interval{Lo: 10, Hi: 12}},
		"short ones above the long": {[]window{{8, 500, 0}, {10, 50, 0}, {12, 50, 20}}, stats.Interval{Lo: 8, Hi: 12}},
		"all short":                 {[]window{{8, 50, 0}, {12, 50, 20}}, stats.Interval{}},
		"none missed":               {[]window{{8, 500, 0}, {12, 500, 0}}, stats.Interval{}},
		"none met":                  {[]window{{8, 500, 30}, {12, 500, 0}}, stats.Interval{}},
	} {
		f := newSearch(t.Context(), search80k(), nil)
		for _, w := range c.windows {
			f.cap.Trail = append(f.cap.Trail, Step{Probe: Probe{Load: w.load}, Seen: Seen{Load: w.load, N: w.n, Violations: []int{w.violations}}})
		}
		if got := f.likelyBounds(); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
