package capacity

import (
	"math"
	"testing"

	"pitot/internal/stats"
)

// An interval reaches mostDown times as far down as up at the most, mildDown where little varies,
// but where light loads show violations or too few requests, and of short windows and
// conversations.
func TestReachingDown(t *testing.T) {
	light := func(n, violations int) Step {
		return Step{Probe: Probe{Load: 1, Stage: Light}, Seen: Seen{Load: 1, N: n, Violations: []int{violations}}}
	}
	wide := stats.Inverse{Load: 10, Interval: stats.Interval{Lo: 2, Hi: 12}, Lower: 2}
	for name, c := range map[string]struct {
		light    Step
		brief    bool
		counted  bool
		bracket  bool
		seconds  float64
		sessions Sessions
		reason   string
		of       stats.Inverse
		traffic  Traffic
		centred  bool
		most     float64 // times as far down as up, the one-sided limit too; 0 for as far as it was
	}{
		"a slope that is open":         {light: light(300, 0), of: wide, most: mostDown},
		"little varies":                {light: light(300, 0), traffic: Traffic{Plain: true, Gaps: 1, Lengths: 0.09}, of: wide, most: mildDown},
		"lengths vary much":            {light: light(300, 0), traffic: Traffic{Plain: true, Gaps: 1, Lengths: 1}, of: wide, most: mostDown},
		"more than lengths varies":     {light: light(300, 0), traffic: Traffic{Gaps: 1, Lengths: 0.09}, of: wide, most: mostDown},
		"arrivals vary much":           {light: light(300, 0), traffic: Traffic{Plain: true, Gaps: 4, Lengths: 0.09}, of: wide, most: mostDown},
		"one that is known":            {light: light(300, 0), of: stats.Inverse{Load: 10, Interval: stats.Interval{Lo: 9, Hi: 11}, Lower: 9}},
		"a floor":                      {light: light(300, 1), of: wide},
		"a floor that was not asked":   {light: light(90, 0), of: wide},
		"short windows":                {light: light(300, 0), brief: true, of: wide},
		"too little time for stairs":   {light: light(300, 0), seconds: 600, of: wide},
		"a budget of time":             {light: light(300, 0), seconds: 600, centred: true, of: wide, most: mostDown},
		"a bracket alone":              {light: light(300, 0), bracket: true, of: wide},
		"windows that are counted":     {light: light(300, 0), counted: true, of: wide},
		"conversations":                {light: light(300, 0), sessions: Sessions{Turns: 3}, of: wide},
		"no interval, for some reason": {light: light(300, 0), of: stats.Inverse{Load: 10, Reason: stats.TooFewBursts}},
	} {
		config := search80k()
		config.Sessions, config.Count, config.Budget.Seconds, config.Traffic = c.sessions, c.counted, c.seconds, c.traffic
		f := newSearch(t.Context(), config, nil)
		main := Step{Probe: Probe{Load: 10, Stage: Main}, Seen: Seen{Load: 10, N: 300, Violations: []int{3}}}
		if f.hi, f.brief, f.cap.Trail = 20, c.brief, []Step{c.light}; !c.bracket {
			f.cap.Trail = append(f.cap.Trail, main)
		}
		if c.centred {
			stair := main
			stair.Stage = Centre
			f.cap.Trail = append(f.cap.Trail, stair)
		}
		got, want := f.reachingDown(c.of), c.of
		if c.most > 0 {
			want.Lo = 10 * math.Pow(10./12, c.most)
			want.Lower = want.Lo
		}
		if got != want {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
}

// A third leg is measured where two gave no estimate, or one whose lower limit is not looked at.
func TestAnotherLeg(t *testing.T) {
	for name, c := range map[string]struct {
		lower, leg   int
		known, brief bool
		want         bool
	}{
		"no estimate":            {leg: legs, want: true},
		"a third leg gave none":  {leg: legs + 1},
		"a wide one":             {leg: legs, lower: 3, known: true, want: true},
		"still wide":             {leg: legs + 1, lower: 3, known: true},
		"a narrow one":           {leg: legs, lower: 18, known: true},
		"a wide one, of a brief": {leg: legs, lower: 3, known: true, brief: true},
	} {
		f := newSearch(t.Context(), search80k(), nil)
		f.hi, f.brief, f.cap.Lower = 20, c.brief, float64(c.lower)
		for _, s := range []Seen{{Load: 1, N: 300, Violations: []int{0}}, {Load: 20, N: 300, Violations: []int{60}}} {
			f.cap.Trail = append(f.cap.Trail, Step{Probe: Probe{Load: s.Load, Stage: Main}, Seen: s})
		}
		if got := f.anotherLeg(c.leg, c.known); got != c.want {
			t.Errorf("%s: %v with half of where violations begin at %.3g", name, got, f.lowLoad())
		}
	}
}

// A floor is fitted where light loads show violations, and not too few to matter.
func TestFloorUnder(t *testing.T) {
	for name, c := range map[string]struct {
		n, violations int
		seen          bool
	}{
		"none":                 {n: 300},
		"a third of what may":  {n: 1000, violations: 3, seen: true},
		"one of a few":         {n: 50, violations: 1, seen: true},
		"one of many requests": {n: 2000, violations: 1},
	} {
		f := newSearch(t.Context(), search80k(), nil)
		f.hi = 20
		for _, s := range []Seen{{Load: 1, N: c.n, Violations: []int{c.violations}}, {Load: 20, N: 300, Violations: []int{60}}} {
			f.cap.Trail = append(f.cap.Trail, Step{Probe: Probe{Load: s.Load, Stage: Main}, Seen: s})
		}
		if floor, seen := f.floorUnder(0); seen != c.seen || seen != (floor.Most > 0) || seen && (floor.N != c.n || floor.Violations != c.violations) {
			t.Errorf("%s: %+v, %v", name, floor, seen)
		}
	}
}

// A window counts once: a light one of the bracket for the floor, and not for the curve above it.
func TestAboveLight(t *testing.T) {
	f := newSearch(t.Context(), search80k(), nil)
	f.hi = 20
	shares := []stats.Share{{Load: 1}, {Load: 5}, {Load: 5.1}, {Load: 20}}
	if got := f.aboveLight(shares); len(got) != 2 || got[0].Load != 5.1 || len(shares) != 4 || shares[1].Load != 5 {
		t.Errorf("%+v of %+v", got, shares)
	}
}

// Violations that come in clusters below the limit and alone above it are a floor that light loads
// need not have shown; those that cluster everywhere are the load's.
func TestClustersBelow(t *testing.T) {
	alone, clustered := []int{4, 6, 5, 5, 4, 5, 6, 5, 5, 5}, []int{0, 0, 0, 48, 2, 0, 0, 0, 0, 0}
	few := []int{0, 0, 0, 0, 0, 12, 0, 0, 0, 0}
	for name, c := range map[string]struct {
		below, above []int
		seen         bool
	}{
		"alone":     {below: []int{1, 1, 2, 1, 1, 1, 2, 1, 1, 1}, above: alone},
		"clustered": {below: few, above: clustered},
		"a floor":   {below: few, above: alone, seen: true},
	} {
		f := newSearch(t.Context(), search80k(), nil)
		f.hi = 20
		step := func(load float64, n int, blocks []int) {
			bad := 0
			for _, v := range blocks {
				bad += v
			}
			f.cap.Trail = append(f.cap.Trail, Step{Probe: Probe{Load: load, Stage: Main}, Seen: Seen{Load: load, N: n, Violations: []int{bad}, Blocks: [][]int{blocks}}})
		}
		step(1, 800, make([]int, 10))
		for _, load := range []float64{14, 15, 16} {
			step(load, 3000, c.below)
		}
		for _, load := range []float64{20, 21, 22} {
			step(load, 1000, c.above)
		}
		floor, seen := f.floorUnder(0)
		if seen != c.seen || seen != (floor.Most > 0) || seen && floor.Phi < 5 {
			t.Errorf("%s: %+v, clusters below %v", name, floor, f.clustersBelow(0))
		}
	}
}
