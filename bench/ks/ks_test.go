package ks

import (
	"math"
	"testing"
)

// The chance of a distance is that of tables: 1.358 of √(nm/(n+m)) is exceeded by 5 %, 1.628
// by 1 % (Smirnov, Table for estimating the goodness of fit, 1948).
func TestP(t *testing.T) {
	const n = 1_000_000
	for x, want := range map[float64]float64{1.358: 0.05, 1.628: 0.01, 0.1: 1} {
		if got := P(x/math.Sqrt(n/2), n, n); math.Abs(got-want) > 0.001 {
			t.Errorf("%g is exceeded by %.4f, want %g", x, got, want)
		}
	}
}
