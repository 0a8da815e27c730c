package measure

import (
	"math"
	"testing"
)

// A metric of 40 ms that goes to 100 ms at 10 s, over 300 ms for 2 s, and back at 20 s.
func TestReactions(t *testing.T) {
	var list []timed
	for i := range 3000 {
		at := float64(i) / 100
		ms := 40.
		switch {
		case at >= 10 && at < 12:
			ms = 300
		case at >= 12 && at < 20:
			ms = 100
		}
		list = append(list, timed{int64(5e9 + at*1e9), ms * 1e6 * (1 + .05*math.Sin(float64(i)))})
	}
	got := reactions(list, []float64{10, 20, 99}, 5e9, 35e9)
	if len(got) != 2 {
		t.Fatalf("%+v", got)
	}
	near := func(x *float64, want, within float64) bool { return x != nil && math.Abs(*x-want) <= within }
	if r := got[0]; r.AtS != 10 || !near(r.Before, 40, 2) || !near(r.After, 100, 5) || !near(r.Peak, 300, 20) || !near(r.SettledS, 2, .1) {
		t.Errorf("%+v", r)
	}
	if r := got[1]; r.AtS != 20 || !near(r.Before, 100, 5) || !near(r.After, 40, 2) || !near(r.SettledS, 0, .1) {
		t.Errorf("%+v", r)
	}
	for i := range list { // a queue that grows has no level
		list[i].ns = 1e6 * float64(1+i*i/1000)
	}
	if r := reactions(list, []float64{10}, 5e9, 35e9)[0]; r.SettledS != nil {
		t.Errorf("settled after %g s", *r.SettledS)
	}
}
