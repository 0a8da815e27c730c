package capacity

import (
	"testing"
	"time"

	"pitot/internal/stats"
)

// curvePoint is what a load gave: the median and the slowest request, in milliseconds.
func curvePoint(load, e2e, slowest float64) CurvePoint {
	return CurvePoint{Load: load, E2E: e2e, Slowest: slowest, Stability: stats.Stable}
}

func TestWindows(t *testing.T) {
	unstable := curvePoint(16, 90_000, 200_000)
	unstable.Stability = stats.Unstable
	for _, c := range []struct {
		about string
		w     Windows
		load  float64
		seen  []CurvePoint
		want  time.Duration
	}{
		{"quick answers", Windows{Residence: .5}, 2, nil, time.Minute},
		{"33 residence times", Windows{Residence: 5}, .2, nil, 165 * time.Second},
		{"twice the slowest below, who takes twice as long by then", Windows{Residence: 1}, 8, []CurvePoint{curvePoint(2, 1000, 2000), curvePoint(4, 4000, 20_000)}, 88 * time.Second},
		{"the slowest of the next load above", Windows{Residence: 1}, 8, []CurvePoint{curvePoint(4, 4000, 20_000), curvePoint(10, 5000, 30_000), unstable}, 66 * time.Second},
		{"an unstable load tells nothing", Windows{Residence: 1}, 32, []CurvePoint{unstable}, time.Minute},
		{"enough requests where time is free", Windows{Residence: 1, Free: true}, 1, nil, 1150 * time.Second},
		{"enough residence times", Windows{Residence: 10, Free: true}, 1, nil, 1200 * time.Second},
		{"but not too many requests", Windows{Residence: 10, Free: true}, 10, nil, 500 * time.Second},
		{"nor so long that a queue is given up at its end faster than it grows", Windows{Residence: 10, Free: true, Timeout: 600}, 10, []CurvePoint{unstable}, 330 * time.Second},
		{"whatever may be given up where a higher load was served", Windows{Residence: 10, Free: true, Timeout: 600}, 10, []CurvePoint{curvePoint(20, 10_000, 20_000)}, 500 * time.Second},
		{"at most ten minutes on a server", Windows{Residence: 60}, .1, nil, 10 * time.Minute},
		{"users make as many requests as they can", Windows{Residence: 10, Free: true, Closed: true}, 10, nil, 1200 * time.Second},
		{"a long window in whole tens of seconds", Windows{Residence: 10.01, Free: true}, 1, nil, 1210 * time.Second},
	} {
		if got := c.w.Next(c.load, c.seen); got != c.want {
			t.Errorf("%s: %s, want %s", c.about, got, c.want)
		}
	}
}

// Windows share what is left of a budget among the loads that are left.
func TestWithin(t *testing.T) {
	const s = time.Second
	for _, c := range []struct {
		left    time.Duration
		loads   int
		besides time.Duration
		wanted  time.Duration
		fixed   bool
		want    time.Duration
	}{
		{600 * s, 12, 5 * s, 60 * s, false, 45 * s},
		{600 * s, 2, 5 * s, 60 * s, false, 60 * s},
		{60 * s, 12, 5 * s, 60 * s, false, 10 * s}, // fewer loads
		{14 * s, 12, 5 * s, 60 * s, false, 0},
		{20 * s, 12, 5 * s, 2 * s, false, 2 * s},
		{65 * s, 12, 5 * s, 60 * s, true, 60 * s},
		{64 * s, 1, 5 * s, 60 * s, true, 0},
	} {
		if got := NextWindow(c.left, c.loads, c.besides, c.wanted, c.fixed); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}
