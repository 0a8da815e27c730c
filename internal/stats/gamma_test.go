package stats

import (
	"math"
	"testing"
)

// P(1, x) = 1 − e^−x, P(½, x) = erf √x, and P(k+1, x) = P(k, x) − xᵏe^−x/Γ(k+1).
func TestIncompleteGamma(t *testing.T) {
	for _, x := range []float64{1e-9, 0.01, 0.4, 1, 1.4, 1.6, 3, 12, 40} {
		if got, want := IncompleteGamma(1, x), -math.Expm1(-x); !near(got, want, 1e-12) {
			t.Errorf("P(1, %g) = %.15g, want %.15g", x, got, want)
		}
		if got, want := IncompleteGamma(.5, x), math.Erf(math.Sqrt(x)); !near(got, want, 1e-12) {
			t.Errorf("P(½, %g) = %.15g, want %.15g", x, got, want)
		}
		for _, k := range []float64{0.03, 2.25, 17} {
			fall := math.Exp(k*math.Log(x) - x - lgamma(k+1))
			if got, want := IncompleteGamma(k+1, x), IncompleteGamma(k, x)-fall; math.Abs(got-want) > 1e-12 {
				t.Errorf("P(%g, %g) = %.15g, want %.15g", k+1, x, got, want)
			}
		}
	}
	if IncompleteGamma(2, 0) != 0 || IncompleteGamma(2, -1) != 0 {
		t.Error("below 0 there is something")
	}
}
