package stats

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestKneedle(t *testing.T) {
	line := func(n int, f func(x float64) float64) (xs, ys []float64) {
		for i := range n {
			x := float64(i) / float64(n-1)
			xs, ys = append(xs, x), append(ys, f(x))
		}
		return xs, ys
	}
	// Figure 2 of the paper: y = −1/(x+0.1) + 5, knee at x = 2/9.
	xs, ys := line(10, func(x float64) float64 { return 5 - 1/(x+.1) })
	if i, ok := Kneedle(xs, ys, Concave, 1); !ok || i != 2 {
		t.Errorf("figure 2: %d, %v", i, ok)
	}
	// The mirrored curve has it mirrored.
	xs, ys = line(10, func(x float64) float64 { return 1 / (1.1 - x) })
	if i, ok := Kneedle(xs, ys, Convex, 1); !ok || i != 7 {
		t.Errorf("convex: %d, %v", i, ok)
	}
	// Throughput that stops rising at 0.6 of the range.
	xs, ys = line(21, func(x float64) float64 { return min(x, .6) })
	if i, ok := Kneedle(xs, ys, Concave, 5); !ok || i != 12 {
		t.Errorf("saturation: %d, %v", i, ok)
	}
	xs, ys = line(11, func(x float64) float64 { return 3 + 2*x })
	if i, ok := Kneedle(xs, ys, Concave, 1); ok {
		t.Errorf("a straight line has a knee at %d", i)
	}
	// A slight bend is a knee only to a sensitive eye.
	xs, ys = line(11, func(x float64) float64 { return x + .6*x*(1-x) })
	if _, ok := Kneedle(xs, ys, Concave, 1); !ok {
		t.Error("S = 1 finds no bend")
	}
	if i, ok := Kneedle(xs, ys, Concave, 5); ok {
		t.Errorf("S = 5 finds a bend at %d", i)
	}
	for _, c := range [][2][]float64{{{1, 2}, {1, 2}}, {{1, 1, 2}, {1, 2, 2}}, {{1, 2, 3}, {5, 5, 5}}, {{1, 2, 3}, {5, 5}}, {{1, 2, math.NaN()}, {1, 2, 3}}, {{1, 2, 3}, {1, math.NaN(), 3}}} {
		if _, ok := Kneedle(c[0], c[1], Concave, 1); ok {
			t.Errorf("%v", c)
		}
	}
}

// Neither unit nor origin of an axis moves the knee.
func TestKneedleHasNoUnits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(3, 20).Draw(t, "n")
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		xs, ys, us, vs := make([]float64, n), make([]float64, n), make([]float64, n), make([]float64, n)
		x, y := 0.0, 0.0
		for i := range xs {
			x, y = x+float64(1+rng.IntN(8)), y+float64(rng.IntN(1000))
			xs[i], ys[i], us[i], vs[i] = x, y, 4*x-64, 1024+y/8
		}
		a, found := Kneedle(xs, ys, Concave, 1)
		b, again := Kneedle(us, vs, Concave, 1)
		if a != b || found != again {
			t.Errorf("knee %d, %v in other units %d, %v", a, found, b, again)
		}
	})
}

func TestPowerKnee(t *testing.T) {
	// M/M/1 has its greatest power at half the load (Kleinrock).
	var throughput, latency []float64
	for i := range 19 {
		load := float64(i+1) / 20
		throughput, latency = append(throughput, load), append(latency, 1/(1-load))
	}
	if i, ok := PowerKnee(throughput, latency); !ok || throughput[i] != .5 {
		t.Errorf("%d, %v", i, ok)
	}
	if _, ok := PowerKnee([]float64{0, 3}, []float64{1, 0}); ok {
		t.Error("no power without throughput or latency")
	}
}

func TestPareto(t *testing.T) {
	gain, cost := []float64{10, 20, 20, 30, 25, 30, 5}, []float64{1, 3, 2, 9, 9, 9, 1}
	if got := Pareto(gain, cost); !slices.Equal(got, []int{3, 2, 0}) {
		t.Errorf("%v", got)
	}
	if got := Pareto(nil, nil); len(got) != 0 {
		t.Errorf("%v", got)
	}
}

func TestParetoIsNotBeaten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.Map(rapid.IntRange(0, 9), func(i int) float64 { return float64(i) })
		n := rapid.IntRange(0, 20).Draw(t, "n")
		gain, cost := rapid.SliceOfN(value, n, n).Draw(t, "gain"), rapid.SliceOfN(value, n, n).Draw(t, "cost")
		front := Pareto(gain, cost)
		for i := range n {
			same, beaten := false, false
			for j := range n {
				as := gain[j] >= gain[i] && cost[j] <= cost[i]
				beaten = beaten || as && (gain[j] > gain[i] || cost[j] < cost[i])
			}
			for _, j := range front {
				same = same || gain[i] == gain[j] && cost[i] == cost[j]
			}
			if same == beaten {
				t.Errorf("point %d: on the front %v, beaten %v", i, same, beaten)
			}
		}
	})
}
