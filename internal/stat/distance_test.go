package stat

import (
	"math"
	"testing"
)

// The distance is where the shares differ most, ties counted once.
func TestDistance(t *testing.T) {
	for _, c := range []struct {
		x, y []int
		want float64
	}{
		{[]int{1, 2, 3, 4}, []int{1, 2, 3, 4}, 0},
		{[]int{1, 1, 1, 5}, []int{1, 5, 5, 5}, .5},
		{[]int{1, 2}, []int{3, 4, 5}, 1},
		{[]int{1, 2, 3, 4}, []int{3}, .5},
	} {
		if d, back := Distance(c.x, c.y), Distance(c.y, c.x); d != c.want || back != c.want {
			t.Errorf("%v and %v: %g, back %g, want %g", c.x, c.y, d, back, c.want)
		}
	}
	uniform := func(x float64) float64 { return x }
	if d := DistanceFrom([]float64{.5, .6, .7, .8}, uniform); d != .5 {
		t.Errorf("%g from the uniform distribution, want 0.5", d)
	}
}

// The chance of a distance is that of tables: 1.358 of √(nm/(n+m)) is exceeded by 5 %, 1.628
// by 1 % (Smirnov, Table for estimating the goodness of fit, 1948).
func TestDistanceP(t *testing.T) {
	const n = 1_000_000
	for x, want := range map[float64]float64{1.358: 0.05, 1.628: 0.01, 0.1: 1} {
		if got := DistanceP(x/math.Sqrt(n/2), n, n); math.Abs(got-want) > 0.001 {
			t.Errorf("%g is exceeded by %.4f, want %g", x, got, want)
		}
	}
}
