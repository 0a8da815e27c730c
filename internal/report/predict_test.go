package report

import (
	"strings"
	"testing"

	"pitot/internal/analysis/predict"
	"pitot/internal/sim/deploy"
)

// An error that rests on other systems too, as there are few of the deployment's, says so.
func TestErrorOfFewSystems(t *testing.T) {
	for _, systems := range []int{2, 3, 4, 17} {
		x := &predict.Prediction{Deployment: &deploy.Deployment{}, Error: &predict.ErrorToExpect{TPOTPct: 20, TTFTPct: 41, Of: "dense models on Hopper", Systems: systems, Measurements: 60, KeptOut: 30, TPOTHoldsPct: 90, TTFTHoldsPct: 83}}
		if got := errorToExpect(x); strings.Contains(got, "those of all other kinds") != (systems < 4) {
			t.Errorf("of %d systems: %s", systems, got)
		}
	}
}
