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
	list := Effects(lines, d, p)
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
			if c, ok := Reached(rungs); !ok || math.Abs(c.Load/truth-1) > .02 || c.Claim != 1 || c.AtLeast || c.AtMost {
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
	if c, _ := Reached([]Rung{{10, []Violated{{.5, .05, 100}}}}); !c.AtMost {
		t.Errorf("%+v", c)
	}
	if c, _ := Reached([]Rung{{10, []Violated{{0, .05, 100}}}}); !c.AtLeast {
		t.Errorf("%+v", c)
	}
}
