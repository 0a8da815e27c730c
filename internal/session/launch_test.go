package session

import (
	"math"
	"path/filepath"
	"slices"
	"testing"

	"pitot/internal/results/metric"
)

// Launches of an embedded target differ by a factor that holds for all points
// of a run, and follows from the seed and the launch's name.
func TestLaunchSpread(t *testing.T) {
	t.Parallel()
	measure := func(target, launch string) (tpot []float64) {
		run, _ := mustMeasure(t, target, "--launch", launch, "--seed", "7", "--concurrency", "1", "--requests", "3", "--warmup", "0s",
			"--input", "16", "--output", "9", "--repeat", "2", "--out", filepath.Join(t.TempDir(), "run"))
		for _, p := range run.Points {
			tpot = append(tpot, *p.Metrics.SummaryOf(metric.TPOT).Mean)
		}
		return tpot
	}
	for _, target := range []string{"sim:fixed?launch_cv=0.1", "sim:llama-3.1-8b@h100?step_jitter=0&launch_cv=0.1"} {
		one, again, two := measure(target, "1"), measure(target, "1"), measure(target, "2")
		if !slices.Equal(one, again) || math.Abs(one[0]/two[0]-1) < 0.001 {
			t.Errorf("%s: launch 1 %v and again %v, launch 2 %v", target, one, again, two)
		}
		if math.Abs(one[0]/one[1]-1) > 0.001 {
			t.Errorf("%s: the points of one launch differ: %v", target, one)
		}
	}
}
