package search

import (
	"math"
	"math/rand/v2"
	"testing"

	"pitot/internal/stat"
)

// drawExcesses are windows whose luck the twin has a part of: the server's excess is weight
// times the twin's and some of its own, so that unlike of its variance is none of the twin's.
func drawExcesses(rng *rand.Rand, n int, weight, unlike float64) (list []excess) {
	for i := range n {
		x := 0.2 * (float64(i)/float64(n-1) - 0.5)
		e := excess{expected: 10 * math.Exp(12*x), x: x}
		sd := 3 * math.Sqrt(e.expected)
		e.twin = sd * rng.NormFloat64()
		e.server = weight * e.twin
		if unlike > 0 {
			e.server += sd * max(weight, 1) * math.Sqrt(unlike/(1-min(unlike, 0.5))) * rng.NormFloat64()
		}
		list = append(list, e)
	}
	return list
}

// Where the twin has a part of the luck its weight is right in the mean, and off by its standard
// error; ρ² is the part of the variance that it explains of windows left out. Where it has none,
// few searches pass for explained, of many windows hardly any.
func TestWeigh(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	const draws = 2_000
	for _, c := range []struct {
		n                  int
		weight, unlike     float64
		leastPass, mostRho float64
		mostPass           float64
	}{
		{16, 0.8, 0.2, 0.95, 0.95, 1},
		{10, 1, 0.1, 0.95, 1, 1},
		{16, 0, 0.5, 0, 0.2, 0.02},
		{8, 0, 0.5, 0, 0.3, 0.08},
	} {
		var weights, ses, rhos []float64
		passed := 0
		for range draws {
			w := weigh(drawExcesses(rng, c.n, c.weight, c.unlike))
			weights, ses, rhos = append(weights, w.weight), append(ses, w.se), append(rhos, w.rho)
			if w.weight > 0 && w.rho >= leastRho {
				passed++
			}
		}
		mean, sd := stat.Moments(weights)
		se, _ := stat.Moments(ses)
		rho, _ := stat.Moments(rhos)
		share := float64(passed) / draws
		t.Logf("%d windows, weight %g: %.3f with an error of %.3f, said to be %.3f; rho %.2f, %.1f %% explained", c.n, c.weight, mean, sd, se, rho, 100*share)
		if math.Abs(mean-c.weight) > 4*sd/math.Sqrt(draws)+0.03 || se < 0.85*sd || se > 1.5*sd || share < c.leastPass || share > c.mostPass || rho > c.mostRho {
			t.Errorf("%d windows, weight %g: %.3f with an error of %.3f, said to be %.3f; rho %.2f, %.1f %% explained", c.n, c.weight, mean, sd, se, rho, 100*share)
		}
	}
}

// One window alone that both had luck in explains nothing of the others, however much it does of the
// sum.
func TestWeighLeavesOut(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	const draws = 400
	passed := 0
	for range draws {
		list := drawExcesses(rng, 10, 0, 0.5)
		for i := range list {
			list[i].twin /= 20
		}
		list[4].twin, list[4].server = 60, 60
		if w := weigh(list); w.weight > 0 && w.rho >= leastRho {
			passed++
		}
	}
	if passed > draws/8 { // by their correlation as it is, all would
		t.Errorf("%d of %d pass for explained", passed, draws)
	}
}

// What a window's own luck weighs is that of a fit to the others.
func TestWeighIsAFitWithoutTheWindow(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 10))
	list := drawExcesses(rng, 12, 0.7, 0.3)
	all := weigh(list)
	for i := range list {
		others := append(append([]excess(nil), list[:i]...), list[i+1:]...)
		if got, want := all.weights[i], weigh(others).weight; math.Abs(got-want) > 1e-9 {
			t.Errorf("window %d: %v, without it %v", i, got, want)
		}
	}
}
