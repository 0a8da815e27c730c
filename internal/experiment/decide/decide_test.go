package decide

import (
	"math"
	"math/rand/v2"
	"testing"
)

// simulated measures configurations whose loads lie at truths, in launches and blocks that
// vary.
func simulated(r *rand.Rand, truths []float64, p Problem, launch, drift float64) (Problem, Decision) {
	p.Carries = make([][]float64, len(truths))
	var d Decision
	for b := range p.Planned {
		hour := drift * float64(b)
		for i, x := range truths {
			y := math.NaN()
			if b == 0 || d.Of[i].Left == 0 {
				y = x * math.Exp(launch*r.NormFloat64()-hour)
			}
			p.Carries[i] = append(p.Carries[i], y)
		}
		if d = Decide(p); d.Enough {
			break
		}
	}
	return p, d
}

// Without any effect few differences are claimed, in machines that drift too; what is far
// below is given up early, what is far above is accepted, and what violates the contract
// hardly ever.
func TestDecide(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 5))
	const plans = 400
	asked := Problem{Wanted: 10, Planned: 6, Confidence: .95, Precision: .04, Early: true}
	differ, wrong := 0, 0
	for n := range plans {
		drift := .02 * float64(n%2)
		_, d := simulated(r, []float64{9.7, 9.7, 9.7, 9.7, 9.7}, asked, .035, drift)
		for i := range d.Of {
			if d.Of[i].Adjusted < .05 {
				differ++
				break
			}
		}
		if d.Accepted >= 0 {
			wrong++
		}
	}
	if differ > plans*8/100 || wrong > plans*2/100 {
		t.Errorf("of %d plans without an effect and below the contract %d differ, %d are accepted", plans, differ, wrong)
	}
	best, early := 0, 0
	for range 100 {
		_, d := simulated(r, []float64{11, 14, 5, 11, 11}, asked, .035, 0)
		if d.Accepted == 1 {
			best++
		}
		if d.Of[2].Left > 0 && d.Of[2].Left <= 3 {
			early++
		}
	}
	if best < 95 || early < 95 {
		t.Errorf("the best of 100 is accepted %d times, the worst given up early %d times", best, early)
	}
	none := 0
	for range 100 {
		if _, d := simulated(r, []float64{5, 4, 6}, asked, .035, 0); d.Why == StopNone && d.Blocks < 6 {
			none++
		}
	}
	if none < 95 {
		t.Errorf("that none meets the contract is seen early in %d of 100", none)
	}
}

// Effects are corrected for their number and for what was seen when.
func TestEffects(t *testing.T) {
	p := Problem{Carries: [][]float64{{9, 9.1, 9.2, 9}, {9.2, 9, 9.1, 9.1}, {2, 2.1}}, Wanted: 5, Planned: 4, Confidence: .95, Precision: .04, Early: true}
	d := Decide(p)
	if d.Of[2].Left != 2 || d.Of[2].Why == "" {
		t.Fatalf("%+v", d.Of[2])
	}
	lines := []Line{
		{Values: [][]float64{{10, 10.1, 9.9, 10}, {20, 20.3, 19.9, 20.2}, {10, 10.1, 99}}},
		{Values: [][]float64{{0, 0, 0, 0}, {0, 0, 0, 0}, {.5, .6}}, Share: true},
	}
	list := EstimateEffects(lines, d, p)
	if len(list) != 4 {
		t.Fatalf("%+v", list)
	}
	if e := list[0]; e.Change < .9 || e.Change > 1.1 || e.Adjusted > .01 || e.Interval == nil || e.Launches != d.Blocks {
		t.Errorf("%+v", e)
	}
	if e := list[1]; !e.Same || e.Launches != 2 || e.Change != 0 {
		t.Errorf("what was measured after it was given up counts: %+v", e)
	}
	if e := list[2]; !e.Same || e.Adjusted != 1 {
		t.Errorf("%+v", e)
	}
}

// A climb ends beside the limit wherever that is, and finds it by shares that grow with
// the load.
func TestClimb(t *testing.T) {
	for _, truth := range []float64{2, 9.9, 10.1, 13, 47} {
		for _, near := range []float64{0, truth, truth * 1.3, truth / 2} {
			var rungs []Rung
			for {
				load, more := Next(10, near, rungs)
				if !more {
					break
				}
				share := min(.05*math.Pow(load/truth, 8), 1)
				rungs = append(rungs, Rung{load, []Violated{{0, .01, 1000}, {share, .05, 1000}}})
				if len(rungs) > 10 {
					t.Fatalf("truth %g, near %g: no end in %d rungs", truth, near, len(rungs))
				}
			}
			if c, ok := LoadAtLimits(rungs); !ok || math.Abs(c.Load/truth-1) > .02 || c.Claim != 1 || c.AtLeast || c.AtMost {
				t.Errorf("truth %g, near %g: %+v of %d rungs", truth, near, c, len(rungs))
			}
			if near == truth && len(rungs) > 4 {
				t.Errorf("truth %g was known and took %d rungs", truth, len(rungs))
			}
		}
	}
	if _, more := Next(10, 0, []Rung{{10, nil}}); !more {
		t.Error("one rung is not enough")
	}
	if c, _ := LoadAtLimits([]Rung{{10, []Violated{{.5, .05, 100}}}}); !c.AtMost {
		t.Errorf("%+v", c)
	}
	if c, _ := LoadAtLimits([]Rung{{10, []Violated{{0, .05, 100}}}}); !c.AtLeast {
		t.Errorf("%+v", c)
	}
}

// Launches that carry a quarter less are named, whatever the blocks do; what is common to
// a configuration or a block, and what is within the spread, is not.
func TestBad(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 4))
	named, bad, wrong, launches := 0, 0, 0, 0
	for range 100 {
		is := map[[2]int]bool{}
		logs := make([][]float64, 5)
		for i := range logs {
			for b := range 6 {
				x := .2*float64(i) - .02*float64(b) + .04*r.NormFloat64()
				if r.Float64() < .2 {
					x -= .28
					is[[2]int{i, b}] = true
				}
				logs[i] = append(logs[i], x)
				launches++
			}
		}
		list, _ := badOf(logs, .02)
		bad += len(is)
		for _, b := range list {
			if is[[2]int{b.Configuration, b.Block}] {
				named++
			} else {
				wrong++
			}
		}
	}
	if named < bad*70/100 || wrong > launches/200 {
		t.Errorf("of %d bad launches %d are named, of %d others %d", bad, named, launches-bad, wrong)
	}
	if list, uneven := badOf([][]float64{{0, .01, 0}, {0, -.01, .01}, {-.3, -.29, 0}}, .02); len(list) != 0 || !uneven[2] {
		t.Errorf("most launches of one configuration: %v, %v", list, uneven)
	}
	if list, _ := badOf([][]float64{{0, .01, 0}, {0, -.01, .01}, {-.2, 0, 0}}, .1); len(list) != 0 {
		t.Errorf("few requests: %v", list)
	}
	if list, _ := badOf([][]float64{{0, math.NaN()}, {math.NaN(), -1}}, .02); len(list) != 0 {
		t.Errorf("too little is known: %v", list)
	}
	// Launches that are all bad look like a configuration that carries less: that two are is
	// not so unlikely where a fifth of the others is bad, nor that they are half of it.
	p := Problem{Carries: [][]float64{{10, 7.5}, {10, 10}, {7.4, 10}, {10, 10.1}, {7.5, 7.6}}, Wanted: 5, Planned: 2, Confidence: .95, Precision: .04, Early: true}
	d := Decide(p)
	if len(d.Bad) != 2 || d.Of[0].Bad != 1 || d.Of[0].Launches != 1 || d.Of[4].Adjusted < .05 || !d.IsBad(0, 1) {
		t.Errorf("%+v", d)
	}
	if p.Carries[4] = []float64{2, 2.1}; Decide(p).Of[4].Contract != Misses {
		t.Errorf("far below: %+v", Decide(p).Of[4])
	}
}

// A launch that carries nothing at all is bad as any other, and keeps none from being named.
func TestBadNothing(t *testing.T) {
	p := Problem{Carries: [][]float64{{10, 10.1, 7}, {0, 10, 10.1}, {10.1, 9.9, 10}}, Wanted: 10, Planned: 3, Confidence: .95, Precision: .04}
	if d := Decide(p); len(d.Bad) != 2 || !d.IsBad(0, 2) || !d.IsBad(1, 0) || math.IsNaN(d.Of[1].Adjusted) {
		t.Errorf("%+v", d)
	}
	p.Carries[1] = []float64{0, 0, 0}
	if d := Decide(p); d.Of[1].Bad != 0 || d.Of[1].Contract != Misses || !d.IsBad(0, 2) {
		t.Errorf("nothing in each launch: %+v", d)
	}
	if math.IsNaN(badDensity(math.Inf(-1))) {
		t.Error("infinitely far below")
	}
}

// A machine that gets slower: what is sure is said of its last block.
func TestSlower(t *testing.T) {
	p := Problem{Carries: make([][]float64, 4), Wanted: 8, Planned: 6, Confidence: .95, Precision: .04}
	for i := range p.Carries {
		for b := range 6 {
			p.Carries[i] = append(p.Carries[i], 10*math.Exp(-.03*float64(b)+.01*float64((i+b)%3-1)))
		}
	}
	d := Decide(p)
	if !d.Slower || math.Abs(d.Drift.Estimate+.03) > .005 || d.Of[0].Sure.Hi > d.Of[0].Carries {
		t.Errorf("%+v of %+v", d.Of[0], d.Drift)
	}
}

// Launches that all come to the same load, as where each carries more than is looked for,
// are decided on.
func TestAllAlike(t *testing.T) {
	p := Problem{Wanted: 2, Planned: 2, Confidence: 0.95, Precision: 0.04, Early: true, Carries: [][]float64{{18.7, 18.7}, {18.7, 18.7}}}
	if d := Decide(p); d.Accepted != 0 || d.Of[0].Contract != Meets || !d.Enough {
		t.Errorf("%+v", d)
	}
	p.Carries = [][]float64{{0.2, 0.2}, {0.2, 0.2}}
	if d := Decide(p); d.Accepted != -1 || d.Of[0].Contract != Misses {
		t.Errorf("%+v", d)
	}
}

// What loads that ended before the limits do not tell is not claimed: that none carries more,
// or that two which were both left there differ.
func TestBeyond(t *testing.T) {
	p := Problem{Carries: [][]float64{{50, 50, 50}, {50, 50, 50}, {20, 20.4, 19.7}}, Beyond: []Beyond{Above, Above, Between}, Wanted: 10, Planned: 3, Confidence: .95, Precision: .04, Early: true}
	d := Decide(p)
	if d.Accepted != 0 || !math.IsInf(d.More, 1) || d.Why != StopLaunches || d.Of[1].Change != nil || d.Of[2].Change == nil || d.Of[2].Why != GivenUpLess || !math.IsInf(d.Of[0].Sure.Hi, 1) {
		t.Errorf("%+v", d)
	}
	p.Weights = []float64{1, 2, 1}
	if d := Decide(p); d.Of[1].Change != nil {
		t.Errorf("by its cost it is called less: %+v", d.Of[1])
	}
}

// What costs twice as much has to carry twice as much to be better; one configuration alone
// is judged by its launches.
func TestWeights(t *testing.T) {
	p := Problem{Carries: [][]float64{{20, 20.3, 19.8, 20.1}, {30, 30.4, 29.7, 30.2}, {50, 51, 50.2, 49.9}}, Weights: []float64{1, 2, 2}, Wanted: 10, Planned: 4, Confidence: .95, Precision: .04, Early: true}
	d := Decide(p)
	if d.Accepted != 2 || d.Of[1].Why != GivenUpLess || math.Abs(d.Of[2].Change.Estimate-math.Log(1.25)) > .02 {
		t.Errorf("%+v", d)
	}
	nan := math.NaN()
	d = Decide(Problem{Carries: [][]float64{{20, 20.3, 19.8}, {nan, nan, nan}}, Wanted: 10, Planned: 3, Confidence: .95, Precision: .04})
	if d.Accepted != 0 || d.Of[0].Interval == nil {
		t.Errorf("alone: %+v", d)
	}
}

// Looks have their parts of the errors, and what is planned afterwards half of what was
// before.
func TestShares(t *testing.T) {
	for _, x := range []struct {
		p    Problem
		want []float64 // from block 1
	}{
		{Problem{Planned: 3, Early: true}, []float64{0, .2, .8}},
		{Problem{Planned: 3}, []float64{0, .2, 1}},
		{Problem{Planned: 6, Before: []int{3}, Early: true}, []float64{0, .2, .8, .05, .05, .4}},
		{Problem{Planned: 5, Before: []int{2, 4, 9}, Early: true}, []float64{0, 1, .1, .4, .25}},
	} {
		for i, want := range x.want {
			if got := x.p.errorShare(i + 1); math.Abs(got-want) > 1e-12 {
				t.Errorf("%+v: look %d has %g, want %g", x.p, i+1, got, want)
			}
		}
	}
	if e := (&Problem{Planned: 12, Before: []int{3, 6}}).Errors(); e != 1.75 {
		t.Errorf("%g times", e)
	}
}

// Launches that are added while nothing is decided make twice the errors at most.
func TestAdded(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	const plans = 300
	accepted := 0
	for range plans {
		p := Problem{Carries: make([][]float64, 3), Wanted: 10, Confidence: .95, Precision: .04, Early: true}
		for _, planned := range []int{2, 4, 8} {
			p.Planned = planned
			for i := range p.Carries {
				for len(p.Carries[i]) < planned {
					p.Carries[i] = append(p.Carries[i], 9.99*math.Exp(.035*r.NormFloat64()))
				}
			}
			if Decide(p).Accepted >= 0 {
				accepted++
				break
			}
			p.Before = append(p.Before, planned)
		}
	}
	if accepted > plans*12/100 {
		t.Errorf("%d of %d below the contract are accepted", accepted, plans)
	}
}
