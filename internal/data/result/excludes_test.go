package result

import "testing"

// A window that was INVALID is left out of the verdict of a search where what it claims
// rests on others, or its load was measured again; where nothing else was measured, it is
// the verdict.
func TestExcludes(t *testing.T) {
	x := 4.2
	trail := []CapacityProbe{{Point: 0, Load: 1, Requests: 50}, {Point: 1, Load: 2, Requests: 50, Excluded: true}, {Point: 2, Load: 3, Requests: 50}}
	again := append(trail[:3:3], CapacityProbe{Point: 3, Load: 2, Requests: 50})
	for name, c := range map[string]struct {
		of    Capacity
		trail []CapacityProbe
		want  bool
	}{
		"verified":       {Capacity{Load: &x}, trail, true},
		"estimate":       {Capacity{Estimate: &x}, trail, true},
		"bounds":         {Capacity{Bounds: &Bounds{Level: 0.95}}, trail, true},
		"floor":          {Capacity{Floor: &Floor{Lower: 0.1}}, trail, true},
		"nothing":        {Capacity{}, trail, false},
		"measured again": {Capacity{}, again, true},
	} {
		c.of.Trail = c.trail
		for point := range c.trail {
			if got := c.of.Excludes(point); got != (c.want && point == 1) {
				t.Errorf("%s: point %d is excluded: %v", name, point, got)
			}
		}
		if !c.of.Excludes(9) {
			t.Errorf("%s: a window that was interrupted counts beside others", name)
		}
	}
	if (&Capacity{}).Excludes(0) || (&Capacity{Trail: trail[1:2]}).Excludes(9) {
		t.Error("a window that was interrupted is left out where none stands")
	}
}
