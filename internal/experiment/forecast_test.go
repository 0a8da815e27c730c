package experiment

import (
	"math"
	"path/filepath"
	"testing"

	"pitot/internal/data/result"
)

// What a plan is said to take is what it takes, within a fifth: before anything was
// measured, as check and rehearse reckon it, and to the second once all of it was.
func TestForecastIsWhatARunTakes(t *testing.T) {
	const source = `contract: {limits: "p95 ttft<500ms, p95 tpot<30ms", capacity: 10/s}
target: sim:llama-3.1-8b@h100?launch_cv=0.03
rows:
  A: {requests: 6}
  F: {requests: 60, workload: random, input: 1024, output: 64, hypothesis: p95 ttft of F < 5s}
knobs: {max_num_seqs: [8]}
launches: 2
stop: {early: false}
`
	p, err := Parse("plan.yaml", []byte(source))
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "x")
	before, err := Load(p, dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := before.Reckon(t.Context(), result.Version{Version: "test"}, &lines{}); err != nil {
		t.Fatal(err)
	}
	f := before.Forecast()
	rehearsed, err := Rehearse(t.Context(), p, result.Version{Version: "test"}, &lines{})
	if err != nil {
		t.Fatal(err)
	}
	x, err := Measure(t.Context(), p, []byte(source), dir, result.Version{Version: "test"}, &lines{})
	if err != nil {
		t.Fatal(err)
	}
	took, _ := x.took()
	for by, forecast := range map[string]float64{"check": f.Seconds, "what is left": f.Left, "rehearse": rehearsed.Seconds} {
		if math.Abs(forecast/took-1) > 0.2 {
			t.Errorf("%s says %.0f s, and it took %.0f s", by, forecast, took)
		}
	}
	if f := x.Forecast(); math.Abs(f.Seconds-took) > 1e-6 || f.Left != 0 {
		t.Errorf("measured, %.3f s of %.3f s, and %.3f s are left", f.Seconds, took, f.Left)
	}
}
