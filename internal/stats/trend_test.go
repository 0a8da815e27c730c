package stats

import (
	"math"
	"slices"
	"testing"

	"pitot/bench/stat/queue"
)

func TestMannKendall(t *testing.T) {
	for _, c := range []struct {
		xs []float64
		s  int
		z  float64
	}{
		{[]float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, 66, 4.4572},
		{[]float64{12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1}, -66, -4.4572},
		{[]float64{1, 2, 2, 3}, 5, 4 / math.Sqrt((4*3*13-2*1*9)/18.)}, // one tie of two
		{[]float64{5, 5, 5}, 0, 0}, {[]float64{1, 2, 1}, 0, 0}, {[]float64{7}, 0, 0}, {nil, 0, 0},
	} {
		if s, z := MannKendall(c.xs); s != c.s || math.Abs(z-c.z) > 5e-5 {
			t.Errorf("%v: %d, %g, want %d, %g", c.xs, s, z, c.s, c.z)
		}
	}
}

func TestTheilSen(t *testing.T) {
	for _, c := range []struct {
		ys          []float64
		step, slope float64
	}{
		{[]float64{1, 3, 2, 5, 4, 9, 7}, 1, 1}, // scipy.stats.theilslopes
		{[]float64{1, 3, 2, 5, 4, 9, 7}, .5, 2},
		{[]float64{0, 10, 20, 30, -1e9}, 10, 1}, // an outlier
		{[]float64{7}, 1, 0}, {nil, 1, 0},
	} {
		if got := TheilSen(c.ys, c.step); !near(got, c.slope, 1e-12) {
			t.Errorf("%v: %g, want %g", c.ys, got, c.slope)
		}
	}
}

// False alarms and power on M/G/c from empty, 3 residence times discarded.
func TestBacklogOfAQueue(t *testing.T) {
	for _, c := range []struct {
		servers             int
		utilisation, window float64
		least, most         float64
	}{
		{32, .8, 30, 0, .02}, {32, .9, 30, 0, .05}, {32, .9, 60, 0, .02},
		{32, 1.1, 30, .7, 1}, {32, 1.1, 60, .95, 1}, {32, 1.3, 30, .99, 1},
		{1, .8, 60, 0, .08}, {4, .8, 60, 0, .02}, {1, 2, 60, .97, 1},
	} {
		var unstable tally
		for r := range uint64(200) {
			q := queue.New(c.servers, c.utilisation, r)
			b := JudgeBacklog(q.InFlight(3, c.window, BacklogBlocks), c.window, q.Rate, 1)
			unstable.add(b.Verdict == Unstable)
		}
		unstable.within(t, "unstable", c.least, c.most)
	}
}

func TestJudgeBacklog(t *testing.T) {
	rising := make([]float64, 12) // 5 requests a block of 10 s at 10 a second: 5 % are never served
	for i := range rising {
		rising[i] = 100 + 5*float64(i)
	}
	if b := JudgeBacklog(rising, 120, 10, 4); b.Verdict != Unstable || !near(b.Deficit, .05, 1e-12) || b.Z < 4 {
		t.Errorf("%+v", b)
	}
	draining := slices.Clone(rising)
	slices.Reverse(draining)
	for i := range draining { // 144 requests more than arrive
		draining[i] *= 2.4
	}
	if b := JudgeBacklog(draining, 120, 10, 4); b.Verdict != Undecided || !b.Drained || b.Longer != 0 {
		t.Errorf("%+v", b)
	}
	// A rise by 60 of 1,200 that comes all at once in the middle is not the
	// trend's to find, and too much for chance.
	steps := []float64{50, 49, 52, 48, 51, 50, 110, 112, 108, 113, 109, 111}
	slices.Reverse(steps[6:])
	if b := JudgeBacklog(steps, 120, 10, 4); b.Verdict == Stable || b.Drained {
		t.Errorf("%+v", b)
	}
	for _, c := range []struct {
		inFlight                []float64
		window, rate, residence float64
		want                    Stability
	}{
		{draining[:12:12], 120, 30, 4, Stable}, // within what chance piles up
		{rising, 120, 10, 4.001, Undecided},    // under 30 residence times
		{rising, 120, 30, 4, Stable},           // 1.7 % never served
		{[]float64{1, 9, 2, 8, 3, 7, 4, 6, 5, 5, 6, 4}, 120, 1, 4, Stable},
		{make([]float64, 12), 120, 1, 4, Stable},
		{rising, 0, 10, 4, Undecided}, {rising, 120, 0, 4, Undecided}, {nil, 120, 10, 4, Undecided},
	} {
		if b := JudgeBacklog(c.inFlight, c.window, c.rate, c.residence); b.Verdict != c.want || math.IsNaN(b.Deficit) {
			t.Errorf("%v: %+v, want %s", c, b, c.want)
		}
	}
}
