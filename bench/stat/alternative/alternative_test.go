package alternative

import (
	"math"
	"math/rand/v2"
	"pitot/internal/stats"
	"slices"
	"testing"
)

func TestEarlyStopping(t *testing.T) {
	for _, c := range []struct {
		confidence float64
		totals     map[int]int
	}{
		{.99, map[int]int{0: 459, 1: 662, 2: 838, 3: 1001, 4: 1157, 5: 1307, 10: 2010, 20: 3304, 50: 6898, 60: 8053}},
		{.95, map[int]int{0: 299, 1: 473, 2: 628, 5: 1049, 10: 1693}},
	} {
		for over, want := range c.totals {
			if got, ok := EarlyStopping(over, .99, c.confidence); !ok || got != want {
				t.Errorf("EarlyStopping(%d, .99, %g) = %d, want %d", over, c.confidence, got, want)
			}
		}
	}
	for _, c := range []struct {
		over          int
		p, confidence float64
	}{{0, 1, .99}, {0, .99, 1}, {-1, .99, .99}, {0, math.NaN(), .99}} {
		if n, ok := EarlyStopping(c.over, c.p, c.confidence); ok || n != 0 {
			t.Errorf("%+v: %d", c, n)
		}
	}
}

func TestBlockBootstrap(t *testing.T) {
	xs := make([]float64, 100)
	for i := range xs {
		xs[i] = float64(i % 10)
	}
	first := func(xs []float64) float64 { slices.Sort(xs); return xs[len(xs)/2] } // may sort
	a, ok := BlockBootstrap(xs, 10, 50, .9, 1, first)
	b, _ := BlockBootstrap(xs, 10, 50, .9, 1, first)
	if !ok || a != b || xs[3] != 3 {
		t.Errorf("%+v, %+v: not the same again, or the data were touched", a, b)
	}
	// Whole periods: every block of ten has the mean 4.5.
	mean := func(xs []float64) float64 { m, _ := stats.Moments(xs); return m }
	if b, _ := BlockBootstrap(xs, 10, 50, .9, 1, mean); b.Lo != 4.5 || b.Hi != 4.5 || b.SE != 0 {
		t.Errorf("%+v, want 4.5", b)
	}
	for _, c := range []struct{ block, resamples int }{{0, 100}, {51, 100}, {10, 1}} {
		if _, ok := BlockBootstrap(xs, c.block, c.resamples, .9, 1, mean); ok {
			t.Errorf("%+v", c)
		}
	}
}

// Means of a correlated series, a known truth.
func TestBlockBootstrapHoldsTheMean(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 1))
	const r = .8
	held := 0
	for i := range 200 {
		xs := make([]float64, 2000)
		x := rng.NormFloat64() / math.Sqrt(1-r*r)
		for k := range xs {
			xs[k] = x
			x = r*x + rng.NormFloat64()
		}
		b, ok := BlockBootstrap(xs, 100, 200, .95, uint64(i), func(xs []float64) float64 { m, _ := stats.Moments(xs); return m })
		if !ok {
			t.Fatal("no bootstrap")
		}
		if b.Contains(0) {
			held++
		}
	}
	if held < 180 || held > 196 {
		t.Errorf("%d of 200 hold the mean", held)
	}
}

// statsmodels' proportion_confint, method wilson.
func TestWilson(t *testing.T) {
	for _, c := range []struct{ got, want stats.Interval }{
		{Wilson(8, 100, 1, .95), stats.Interval{Lo: .04109346148438061, Hi: .14998107700948735}},
		{Wilson(0, 20, 1, .95), stats.Interval{Hi: .1611251580528194}},
		{Wilson(80, 1000, 10, .95), stats.Interval{Lo: .04109346148438061, Hi: .14998107700948735}},
		{Wilson(8, 100, .1, .95), stats.Interval{Lo: .04109346148438061, Hi: .14998107700948735}}, // φ is 1 at least
		{Wilson(0, 0, 1, .95), stats.Interval{Hi: 1}},
	} {
		if math.Abs(c.got.Lo-c.want.Lo) > 1e-8 || math.Abs(c.got.Hi-c.want.Hi) > 1e-8 {
			t.Errorf("%v, want %v", c.got, c.want)
		}
	}
}
