package compare

import (
	"testing"

	"pitot/internal/results/result"
)

// Blocks of two sides stand beside each other by their time of day, whatever the day, and over
// midnight; sides that share none have nothing to show.
func TestDay(t *testing.T) {
	side := func(began string, levels ...float64) *loadOfSide {
		o := &result.OverTime{Began: began, BlockS: 250, Metric: "ttft", Differ: []result.Differ{{Metric: "ttft", Slowest: 1}}}
		for _, x := range levels {
			o.Blocks = append(o.Blocks, result.Block{P50: &x})
		}
		return &loadOfSide{launches: []launch{{points: []*result.Point{{OverTime: o}}}}}
	}
	a := side("2026-11-20T23:50:00+01:00", 10, 30, 20, 40)
	d := dayOf(a, side("2026-11-22T23:55:00+01:00", 1, 1.05, 3), [2]string{"a", "b"}, true)
	if d == nil || d.Every != 300 || len(d.Times) != 2 {
		t.Fatalf("%+v", d)
	}
	// 23:50, 23:54:10, 23:58:20 and 0:02:30 begin those of a, 23:55, 23:59:10 and 0:03:20 those of
	// b; they are told by their middles, and by the time of day.
	for k, want := range []DayTime{{From: "00:00", To: "00:05"}, {From: "23:55", To: "00:00"}} {
		if got := d.Times[k]; got.From != want.From || got.To != want.To {
			t.Errorf("%d: %s to %s", k, got.From, got.To)
		}
	}
	if got := d.Times[1]; *got.A.P50 != 30 || *got.B.P50 != 1 {
		t.Errorf("before midnight %v and %v", *got.A.P50, *got.B.P50)
	}
	if got := d.Times[0]; *got.A.P50 != 30 || *got.B.P50 != 1.05 { // of 20 and 40
		t.Errorf("behind midnight %v and %v", *got.A.P50, *got.B.P50)
	}
	if len(d.Slower) != 1 || d.Slower[0].Side != "a" || d.Slower[0].Times != 3 { // that of b is less than a tenth
		t.Errorf("%+v", d.Slower)
	}
	if d := dayOf(a, side("2026-11-20T12:00:00+01:00", 1, 2), [2]string{"a", "b"}, true); d != nil {
		t.Errorf("no time is shared: %+v", d)
	}
	simulated := side("", 1, 2)
	if d := dayOf(a, simulated, [2]string{"a", "b"}, true); d != nil {
		t.Errorf("there is no time of day: %+v", d)
	}
}
