package sim

import (
	"math"
	"testing"
)

// Over launches the factor has mean 1 and the coefficient of variation that was
// asked for; one launch has one factor.
func TestLaunchFactor(t *testing.T) {
	const n = 40_000
	for _, cv := range []float64{0, 0.035, 0.3} {
		sum, squares := 0.0, 0.0
		for launch := range uint64(n) {
			f := LaunchFactor(cv, launch)
			if f <= 0 || f != LaunchFactor(cv, launch) {
				t.Fatalf("launch %d: %v", launch, f)
			}
			sum, squares = sum+f, squares+f*f
		}
		mean := sum / n
		sd := math.Sqrt(max(squares/n-mean*mean, 0))
		// Four standard errors; that of an SD is about sd/√2n for these shapes.
		if math.Abs(mean-1) > 4*cv/math.Sqrt(n) || math.Abs(sd-cv) > 0.03*cv {
			t.Errorf("cv %v: mean %v, standard deviation %v", cv, mean, sd)
		}
	}
}
