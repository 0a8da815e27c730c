package run

import (
	"testing"

	"pitot/internal/data/result"
)

// A load whose window was INVALID is left out of the verdict of a search where what it
// claims rests on others; where nothing else was measured, it is the verdict.
func TestExcludedFromTheVerdict(t *testing.T) {
	x := 4.2
	trail := []result.CapacityProbe{{Point: 0}, {Point: 1, Excluded: true}, {Point: 2}}
	for name, c := range map[string]struct {
		of   result.Capacity
		want bool
	}{
		"verified": {result.Capacity{Load: &x}, true},
		"estimate": {result.Capacity{Estimate: &x}, true},
		"bounds":   {result.Capacity{Bounds: &result.Bounds{Level: 0.95}}, true},
		"floor":    {result.Capacity{Floor: &result.Floor{Lower: 0.1}}, true},
		"nothing":  {result.Capacity{}, false},
	} {
		c.of.Trail = trail
		for point := range trail {
			if got := excluded(&c.of, point); got != (c.want && point == 1) {
				t.Errorf("%s: point %d is excluded: %v", name, point, got)
			}
		}
	}
}
