package search

import (
	"math"
	"testing"

	"pitot/internal/stat"
)

// An interval reaches mostDown times as far down as up at the most, but where light loads show
// violations or too few requests, and of short windows and conversations.
func TestReachingDown(t *testing.T) {
	light := func(n, violations int) Step {
		return Step{Probe: Probe{Load: 1, Stage: Light}, Seen: Seen{Load: 1, N: n, Violations: []int{violations}}}
	}
	wide := stat.Inverse{Load: 10, Interval: stat.Interval{Lo: 2, Hi: 12}, Lower: 2}
	for name, c := range map[string]struct {
		light    Step
		brief    bool
		sessions Sessions
		reason   string
		of       stat.Inverse
		bounded  bool
	}{
		"a slope that is open":         {light: light(300, 0), of: wide, bounded: true},
		"one that is known":            {light: light(300, 0), of: stat.Inverse{Load: 10, Interval: stat.Interval{Lo: 9, Hi: 11}}},
		"a floor":                      {light: light(300, 1), of: wide},
		"a floor that was not asked":   {light: light(90, 0), of: wide},
		"short windows":                {light: light(300, 0), brief: true, of: wide},
		"conversations":                {light: light(300, 0), sessions: Sessions{Turns: 3}, of: wide},
		"no interval, for some reason": {light: light(300, 0), of: stat.Inverse{Load: 10, Reason: "few bursts"}},
	} {
		config := search80k()
		config.Sessions = c.sessions
		f := newSearch(t.Context(), config, nil)
		f.hi, f.brief, f.cap.Trail = 20, c.brief, []Step{c.light}
		got, want := f.reachingDown(c.of), c.of
		if c.bounded {
			want.Lo = 10 * math.Pow(10./12, mostDown)
		}
		if got != want {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
}
