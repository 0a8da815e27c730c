package validity

import (
	"testing"

	"pitot/internal/results/result"
)

// A window has the bursts that fit into it whole: 9.7 are no 10.
func TestFewBursts(t *testing.T) {
	for seconds, want := range map[float64]float64{9.7: 9, 19.9: 19, 20: 0, 1.5: 1} {
		c := Conditions{T1: int64(1e9 * seconds), Load: result.Load{Expected: &result.Arrivals{CycleS: 1}}}
		if r := c.FewBursts(); r.N != want || r.IsNone() != (want == 0) {
			t.Errorf("%g cycles: %+v, want %g bursts", seconds, r, want)
		}
	}
}
