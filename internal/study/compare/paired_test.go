package compare

import (
	"math"
	"math/rand/v2"
	"testing"
)

// The interval of the mean difference holds it where differences are alike for long, as those of two
// runs near saturation are; where they are not, it is hardly wider for it.
func TestPairedInterval(t *testing.T) {
	const reps, n = 400, 900
	for _, c := range []struct {
		alike float64 // correlation of neighbours
		n     int
		least float64 // share of intervals that hold the mean
		most  float64 // median half-width, in standard errors
	}{
		{0, n, .95, 3.5}, {.9, n, .93, 7}, {.97, n, .93, 12}, {0, 100, .93, 4}, {.6, 100, .93, 6},
	} {
		rng := rand.New(rand.NewPCG(4, uint64(100*c.alike)))
		held, wide := 0, 0.
		for range reps {
			x, xs := rng.NormFloat64(), make([]float64, c.n)
			for i := range xs {
				x = c.alike*x + math.Sqrt(1-c.alike*c.alike)*rng.NormFloat64()
				xs[i] = x
			}
			r := pairedRow("ttft", xs, 1.1)
			if r.CI95 == nil {
				t.Fatalf("%+v", r)
			}
			if r.CI95[0] <= 0 && 0 <= r.CI95[1] {
				held++
			}
			wide += (r.CI95[1] - r.CI95[0]) / 2 / reps
		}
		se := math.Sqrt((1 + c.alike) / (1 - c.alike) / float64(c.n))
		if share := float64(held) / reps; share < c.least || wide/se > c.most {
			t.Errorf("alike %g, %d pairs: held in %.3f, half-width %.2f standard errors", c.alike, c.n, share, wide/se)
		}
	}
	// What took long beside the window may have missed slow periods.
	if c := cautionOf([]float64{100, 100}, 20_000); math.Abs(c-1.2) > 1e-9 {
		t.Errorf("%g", c)
	}
}
