package report

import "testing"

func TestEffectInterval(t *testing.T) {
	for v, want := range map[[2]float64]string{
		{-1, 20514.05}:  "not known",
		{-.999, 420.64}: "not known",
		{-.91, 0}:       "not known",
		{-.5, 8}:        "-50.0…+800",
	} {
		if got := effectInterval(v, false); got != want {
			t.Errorf("%v: %q, want %q", v, got, want)
		}
	}
}
