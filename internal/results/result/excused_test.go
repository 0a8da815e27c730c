package result

import "testing"

// A first look is excused what its medians and rates do not rest on.
func TestFirstLookIsExcused(t *testing.T) {
	look, sweep := &Point{Stage: StageQuick}, &Point{Stage: StageCurve}
	limit := 1.0
	late := func(p50 float64) *Check {
		return &Check{Name: CheckSendLag, Status: Flag, Limit: &limit, Detail: map[string]float64{"shift_p50": p50}}
	}
	for _, c := range []struct {
		of   *Point
		flag *Check
		want bool
	}{
		{look, &Check{Name: CheckResidences, Status: Flag}, true},
		{look, &Check{Name: CheckMerged, Status: Flag}, true},
		{look, &Check{Name: CheckHost, Status: Flag}, false},
		{look, &Check{Name: CheckMerged, Status: Fail}, false},
		{look, late(0.1), true},
		{look, late(1.9), false},
		{sweep, &Check{Name: CheckResidences, Status: Flag}, false},
		{sweep, late(0.1), false},
	} {
		if got := c.of.IsExcused(c.flag, false); got != c.want {
			t.Errorf("%s of a %s: excused %v, want %v", c.flag.Name, c.of.Stage, got, c.want)
		}
	}
}
