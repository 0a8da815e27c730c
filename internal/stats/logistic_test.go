package stats

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"pitot/bench/stat/queue"
)

// counts draws violations at loads around 1 from logit P = a + b·ln(load), in
// clusters of the given size.
func counts(rng *rand.Rand, loads, n, cluster int, a, b float64) []Share {
	points := make([]Share, loads)
	for i := range points {
		points[i] = Share{Load: math.Exp(.16*float64(i)/float64(loads-1) - .08), N: n}
		p := sigmoid(a + b*math.Log(points[i].Load))
		for range n / cluster {
			if rng.Float64() < p {
				points[i].Violations += cluster
			}
		}
	}
	return points
}

// Both covariances tell the spread of the estimate, by binomial counts and by
// clustered ones.
func TestLogisticHoldsTheTruth(t *testing.T) {
	for _, cluster := range []int{1, 20} {
		rng := rand.New(rand.NewPCG(1, 1))
		var model, robust, holds, high tally
		var slope, phi float64
		const runs = 400
		for range runs {
			f := FitLogistic(counts(rng, 16, 4000, cluster, logit(.01), 30), Prior{})
			v := f.LoadAt(.01, .95, .05)
			if v.Reason != "" {
				t.Fatal(v.Reason)
			}
			slope += f.B / runs
			phi += f.Phi / runs
			x := (logit(.01) - f.A) / f.B
			by := func(c Covariance) bool {
				return studentInterval(x+math.Log(f.Centre), math.Sqrt(c.varianceAt(x))/f.B, float64(f.DF), .95).Contains(0)
			}
			model.add(by(f.Model))
			robust.add(by(f.Robust))
			holds.add(v.Contains(1))
			high.add(v.Lower > 1)
		}
		model.within(t, "by φ", .92, .99) // φ is 1 at least
		robust.within(t, "by HC3", .91, .99)
		holds.within(t, "with the model's error", .97, 1)
		high.within(t, "the lower limit is too high", 0, .05)
		if !near(slope, 30, .04) {
			t.Errorf("the slope is %.2f on average, want 30", slope)
		}
		if cluster > 1 && !near(phi, float64(cluster), .15) {
			t.Errorf("φ is %.2f on average, want %d", phi, cluster)
		}
	}
}

// 16 loads of M/G/32 around its capacity.
func TestCapacityOfAQueue(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 1))
	var holds, high tally
	for range 100 {
		points := make([]Share, 16)
		for i := range points {
			load := queue.Capacity * math.Exp(.16*float64(i)/15-.08)
			q := queue.New(32, load, rng.Uint64())
			q.Warm(10)
			points[i] = Share{Load: load, N: 4000}
			for _, x := range MarkExceeding(q.TTFTs(points[i].N), 1) {
				points[i].Violations += int(x)
			}
		}
		if v := FitLogistic(points, Prior{25, 25}).LoadAt(.01, .95, .05); v.Reason == "" {
			holds.add(v.Contains(queue.Capacity))
			high.add(v.Lower > 1.02*queue.Capacity)
		}
	}
	if holds.of < 80 {
		t.Errorf("%d of 100 searches have an answer", holds.of)
	}
	holds.within(t, "the interval holds the capacity", .88, 1)
	high.within(t, "the lower limit is over 2 % too high", 0, .04)
}

// statsmodels' binomial GLM, with χ²/(m−2) and HC3 by their definitions in
// NumPy, and the limits by SciPy's search along the profile.
func TestLogistic(t *testing.T) {
	points := []Share{{9, 2, 1000, 0, 0}, {10, 15, 1000, 0, 0}, {11, 21, 900, 0, 0}, {12, 80, 1100, 0, 0}, {13, 170, 1000, 0, 0}}
	f := FitLogistic(points, Prior{})
	v := f.LoadAt(.01, .95, .05)
	for _, c := range []struct {
		name      string
		got, want float64
	}{
		{"A", f.A, -3.61201559}, {"B", f.B, 11.44044634}, {"centre", f.Centre, 10.908171530655386},
		{"φ", f.Phi, 1.3575361443127445}, {"AA", f.Model.AA, .01849526}, {"AB", f.Model.AB, -.10910592}, {"BB", f.Model.BB, .90657406},
		{"robust AA", f.Robust.AA, .03433611}, {"robust AB", f.Robust.AB, -.22608933}, {"robust BB", f.Robust.BB, 1.79614442},
		{"load", v.Load, 9.982288138129501}, {"standard error", v.SE, .027691141773730086},
		{"lower end", v.Lo, 8.931035134136186}, {"upper end", v.Hi, 10.772427186539458}, {"lower limit", v.Lower, 9.250519821993661},
	} {
		if !near(c.got, c.want, 1e-4) { // limits are sought to a ten thousandth
			t.Errorf("%s = %.9g, want %.9g", c.name, c.got, c.want)
		}
	}
	// Violations that vary more within the loads than from one to the next say how much they do.
	varied := slices.Clone(points)
	for i := range varied {
		varied[i].Within = 4
	}
	if g := FitLogistic(varied, Prior{}); g.Phi != 4 || !near(g.B, f.B, 1e-9) || !near(g.Model.BB, f.Model.BB*4/f.Phi, 1e-9) {
		t.Errorf("with φ = 4 within loads %+v", g)
	}
	// The unit of the load does not matter.
	scaled := make([]Share, len(points))
	for i, p := range points {
		scaled[i] = Share{60 * p.Load, p.Violations, p.N, 0, 0}
	}
	if u := FitLogistic(scaled, Prior{}).LoadAt(.01, .95, .05); !near(u.Load, 60*v.Load, 1e-9) || !near(u.Hi, 60*v.Hi, 1e-9) || !near(u.SE, v.SE, 1e-7) {
		t.Errorf("%+v in other units is %+v", v, u)
	}
	long := make([]Share, len(points)) // windows that miss next to nothing
	for i, p := range points {
		long[i] = Share{p.Load, 1e6 * p.Violations, 1e6 * p.N, 0, 0}
	}
	if p := f.ShareAt(FitLogistic(long, Prior{}).LoadAt(.01, .95, .05).Load); !near(p, .01, 1e-3) {
		t.Errorf("P at the load is %g", p)
	}
}

// Where the data say little, the prior does.
func TestPriorOnTheSlope(t *testing.T) {
	points := []Share{{9.9, 1, 100, 0, 0}, {10, 0, 100, 0, 0}, {10.1, 2, 100, 0, 0}}
	strong := FitLogistic(points, Prior{25, .01})
	if math.Abs(strong.B-25) > .01 {
		t.Errorf("a strong prior of 25 gives %g", strong.B)
	}
	free, weak := FitLogistic(points, Prior{}), FitLogistic(points, Prior{25, 25})
	if d, e := math.Abs(free.B-25), math.Abs(weak.B-25); e >= d {
		t.Errorf("without a prior %g, with one at 25 it is %g", free.B, weak.B)
	}
}

func TestNoLoad(t *testing.T) {
	rising := []Share{{9, 2, 1000, 0, 0}, {10, 15, 1000, 0, 0}, {11, 21, 900, 0, 0}, {12, 80, 1100, 0, 0}, {13, 170, 1000, 0, 0}}
	for _, c := range []struct {
		points []Share
		eps    float64
		reason NoFit
	}{
		{nil, .01, FewerLoads},
		{[]Share{{9, 1, 10, 0, 0}, {9, 2, 10, 0, 0}, {10, 3, 10, 0, 0}}, .01, FewerLoads},
		{[]Share{{9, 0, 10, 0, 0}, {10, 0, 10, 0, 0}, {11, 0, 10, 0, 0}}, .01, NoViolation},
		{[]Share{{9, 10, 10, 0, 0}, {10, 10, 10, 0, 0}, {11, 10, 10, 0, 0}}, .01, AllViolate},
		{[]Share{{9, 1, 10, 0, 0}, {10, 11, 10, 0, 0}, {11, 3, 10, 0, 0}}, .01, CountOutOfRange},
		{[]Share{{0, 1, 10, 0, 0}, {10, 1, 10, 0, 0}, {11, 3, 10, 0, 0}}, .01, CountOutOfRange},
		{[]Share{{math.NaN(), 1, 10, 0, 0}, {10, 1, 10, 0, 0}, {11, 3, 10, 0, 0}}, .01, CountOutOfRange},
		{[]Share{{9, 300, 1000, 0, 0}, {10, 100, 1000, 0, 0}, {11, 20, 1000, 0, 0}, {12, 5, 1000, 0, 0}}, .05, NotRising},
		{rising, .0001, OutsideLoads},
		{rising, .5, OutsideLoads},
		{rising, 0, ShareOutOfRange},
		{rising, math.NaN(), ShareOutOfRange},
		{[]Share{{1, 3, 10, 0, 0}, {2, 0, 10, 0, 0}, {3, 2, 10, 0, 0}, {4, 4, 10, 0, 0}}, .2, TooWide},
	} {
		v := FitLogistic(c.points, Prior{}).LoadAt(c.eps, .95, .05)
		if v.Reason != c.reason || v.Lower != 0 || v.Interval != (Interval{}) {
			t.Errorf("%v: %+v, want the reason %q", c.points, v, c.reason)
		}
	}
}

// At a limit of the profile the best line through it is t² times φ less likely than the
// best of all. It rises no less than the least slope, whatever the counts.
func TestProfile(t *testing.T) {
	points := []Share{{9, 2, 1000, 0, 0}, {10, 15, 1000, 0, 0}, {11, 21, 900, 0, 0}, {12, 80, 1100, 0, 0}}
	f := FitLogistic(points, Prior{25, 25})
	at := (logit(.01) - f.A) / f.B
	for _, steps := range []float64{-3, -1, 1, 3} {
		to := f.profileLimit(at, .01, steps, f.Phi)
		if (to > at) != (steps > 0) {
			t.Errorf("%v standard errors from %v is %v", steps, at, to)
		}
		best := math.Inf(-1)
		for b := LeastSlope; b < 100; b += .01 {
			g := f
			g.A, g.B = logit(.01)-b*to, b
			best = max(best, g.logPosterior(points, f.slope))
		}
		if away := 2 * (f.logPosterior(points, f.slope) - best) / f.Phi; !near(away, steps*steps, .01) {
			t.Errorf("%v standard errors are %v squared", steps, away)
		}
	}
	if g := f.bestThrough(-10, .01); g.B < LeastSlope {
		t.Errorf("a line rises as %v", g.B)
	}
}

// A floor is found along with the line, and where light loads show none there is none.
func TestFloor(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 1))
	const floor, runs = .004, 80
	var holds, below tally
	for range runs {
		points := make([]Share, 16)
		for i := range points {
			points[i] = Share{Load: math.Exp(.6*float64(i)/float64(len(points)-1) - .3), N: 4000}
			p := floor + (1-floor)*sigmoid(logitAbove(floor, .01)+6*math.Log(points[i].Load))
			for range points[i].N {
				if rng.Float64() < p {
					points[i].Violations++
				}
			}
		}
		light := Floor{Most: .0095, N: 2000}
		for range light.N {
			if rng.Float64() < floor {
				light.Violations++
			}
		}
		f := FitAboveFloor(points, Prior{25, 25}, light)
		v := f.LoadAt(.01, .95, .05)
		if v.Reason != "" {
			t.Fatal(v.Reason)
		}
		holds.add(v.Contains(1))
		below.add(f.Floor < floor)
		if !near(f.ShareAt(v.Load), .01, .02) {
			t.Errorf("the share at the estimate is %v", f.ShareAt(v.Load))
		}
	}
	holds.within(t, "the interval holds", .93, 1)
	below.within(t, "the floor is too low", .3, .7)

	steep := counts(rng, 16, 4000, 1, logit(.01), 30)
	without, none := FitLogistic(steep, Prior{25, 25}), FitAboveFloor(steep, Prior{25, 25}, Floor{Most: .0095, N: 100_000})
	if none.Floor > 1e-4 || !near(none.B, without.B, .02) {
		t.Errorf("a floor of %v under none, slope %v and %v", none.Floor, none.B, without.B)
	}
}

// At a limit of the profile no curve through it, above any floor, is more likely than it says.
func TestProfileAboveAFloor(t *testing.T) {
	points := []Share{{6, 9, 2000, 0, 0}, {8, 10, 2000, 0, 0}, {9, 14, 2000, 0, 0}, {10, 18, 2000, 0, 0}, {12, 41, 2000, 0, 0}}
	f := FitAboveFloor(points, Prior{25, 25}, Floor{Most: .0095, Violations: 2, N: 600})
	at := (logitAbove(f.Floor, .01) - f.A) / f.B
	top := f.logPosterior(points, f.slope)
	for floor := 0.; floor < .0095; floor += .0005 {
		for b := .5; b < 40; b += .5 {
			for a := -8.; a < -3; a += .1 {
				g := f
				g.A, g.B, g.Floor = a, b, floor
				if g.logPosterior(points, f.slope) > top+1e-3 {
					t.Fatalf("a curve of %v, %v above %v is more likely", a, b, floor)
				}
			}
		}
	}
	for _, steps := range []float64{-2, -1, 1} {
		to := f.profileLimit(at, .01, steps, f.Phi)
		best := math.Inf(-1)
		for floor := 0.; floor <= .0095; floor += .0001 {
			for b := LeastSlope; b < 40; b += .05 {
				g := f
				g.Floor, g.A, g.B = floor, logitAbove(floor, .01)-b*to, b
				best = max(best, g.logPosterior(points, f.slope))
			}
		}
		if away := 2 * (top - best) / f.Phi; (to > at) != (steps > 0) || !near(away, steps*steps, .02) {
			t.Errorf("%v standard errors from %v is %v: %v squared", steps, at, to, away)
		}
	}
}

// Whatever the counts, there is a finite answer or a reason.
func TestLoadIsFinite(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		points := make([]Share, rapid.IntRange(0, 20).Draw(t, "loads"))
		for i := range points {
			n := rapid.IntRange(1, 1_000_000).Draw(t, "n")
			points[i] = Share{
				Load:       math.Exp(rapid.Float64Range(-5, 5).Draw(t, "ln load")),
				N:          n,
				Violations: rapid.SampledFrom([]int{0, n, n / 100, n / 2, rapid.IntRange(0, n).Draw(t, "any")}).Draw(t, "violations"),
			}
		}
		prior := rapid.SampledFrom([]Prior{{25, 25}, {25, 1}}).Draw(t, "prior")
		light := rapid.SampledFrom([]Floor{{}, {Most: .0095}, {Most: .0095, N: 600}, {Most: .0095, Violations: 3, N: 600}, {Most: .005, Violations: 9, N: 10}}).Draw(t, "floor")
		f := FitAboveFloor(points, prior, light)
		v := f.LoadAt(.01, .95, .05)
		for _, x := range []float64{f.A, f.B, f.Floor, f.Phi, f.Model.AA, f.Robust.AA, f.Robust.BB, v.Load, v.SE, v.Lo, v.Hi, v.Lower} {
			if v.Reason == "" && (math.IsNaN(x) || math.IsInf(x, 0)) {
				t.Errorf("%+v\n%+v", f, v)
			}
		}
		if v.Reason == "" && !(v.Lo <= v.Lower && v.Lower < v.Load && v.Load < v.Hi) {
			t.Errorf("%+v", v)
		}
	})
}

// Points of which none counts determine no curve, and that is known at once.
func TestLogisticWithoutWeights(t *testing.T) {
	var points []Share
	for i := range 6 {
		points = append(points, Share{Load: float64(1 + i), Violations: 10 + i, N: 100, Less: 1})
	}
	if f := FitLogistic(points, Prior{Mean: 10, SD: 5}); f.Reason == "" {
		t.Errorf("%+v", f)
	}
}
