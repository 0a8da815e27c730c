package result

import (
	"slices"
	"testing"
)

// A window of a search or a sweep that was under way when it was interrupted tells nothing of
// its load; one that had ended does, and so does the only one that there is.
func TestUnderWay(t *testing.T) {
	ended := Point{Stage: StageCurve, Requests: Requests{Due: 10}}
	cut := Point{Stage: StageCurve, Requests: Requests{Due: 10, Errors: map[string]int{interrupted: 2}}}
	found := &Capacity{Trail: []CapacityProbe{{Point: 0}}}
	for name, c := range map[string]struct {
		run  Run
		want int
	}{
		"sweep":             {Run{Interrupted: true, Points: []Point{ended, cut}}, 1},
		"in the warm-up":    {Run{Interrupted: true, Points: []Point{ended, {Stage: StageCurve}}}, 1},
		"between loads":     {Run{Interrupted: true, Points: []Point{ended, ended}}, -1},
		"only one":          {Run{Interrupted: true, Points: []Point{cut}}, -1},
		"went to its end":   {Run{Points: []Point{ended, cut}}, -1},
		"search":            {Run{Interrupted: true, Points: []Point{ended, ended}, Capacity: found}, 1},
		"search, behind it": {Run{Interrupted: true, Points: []Point{ended}, Capacity: found}, -1},
		"repeated runs":     {Run{Interrupted: true, Points: slices.Repeat([]Point{{Requests: cut.Requests}}, 2)}, -1},
	} {
		if got := c.run.UnderWay(); got != c.want {
			t.Errorf("%s: point %d, want %d", name, got, c.want)
		}
	}
}

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
			if got := c.of.ExcludesPoint(point); got != (c.want && point == 1) {
				t.Errorf("%s: point %d is excluded: %v", name, point, got)
			}
		}
		if !c.of.ExcludesPoint(9) {
			t.Errorf("%s: a window that was interrupted counts beside others", name)
		}
	}
	if (&Capacity{}).ExcludesPoint(0) || (&Capacity{Trail: trail[1:2]}).ExcludesPoint(9) {
		t.Error("a window that was interrupted is left out where none stands")
	}
}
