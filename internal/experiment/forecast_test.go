package experiment

import (
	"context"
	"errors"
	"math"
	"path/filepath"
	"testing"

	"pitot/internal/results/result"
)

// What a plan is said to take is what it takes, within a fifth: before anything was measured, by
// the baseline on the twin or by all configurations, and to the second once all of it was.
func TestForecastIsWhatARunTakes(t *testing.T) {
	if testing.Short() {
		t.Skip("simulations on one goroutine are slow under the race detector")
	}
	const source = `contract: {limits: "p95 ttft<500ms, p95 tpot<30ms", capacity: 10/s}
target: sim:llama-3.1-8b@h100?launch_cv=0.03
rows:
  A: {requests: 6}
  F: {requests: 40, workload: random, input: 1024, output: 16, hypothesis: p95 ttft of F < 5s}
knobs: {max_num_seqs: [8]}
launches: 2
stop: {early: false}
`
	p, err := Parse("plan.yaml", []byte(source))
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "x")
	forecasts := map[string]*Forecast{}
	for by, power := range map[string]bool{"baseline": false, "all configurations": true} {
		before, err := Load(p, dir)
		if err != nil {
			t.Fatal(err)
		}
		if err := before.Simulate(t.Context(), power, result.Version{Version: "test"}, &lines{}); err != nil {
			t.Fatal(err)
		}
		f := before.Forecast()
		forecasts[by] = f
		if (f.Power != nil) != power || power && (len(f.Power.Knobs) != 1 || len(f.Power.Lines) == 0 || f.Power.Carries <= 0) {
			t.Errorf("%s: %+v", by, f.Power)
		}
	}
	x, err := Measure(t.Context(), p, []byte(source), dir, result.Version{Version: "test"}, &lines{})
	if err != nil {
		t.Fatal(err)
	}
	took, _ := x.measuredCosts()
	for by, f := range forecasts {
		if math.Abs(f.Seconds/took-1) > 0.2 || f.Left != f.Seconds {
			t.Errorf("by the %s it takes %.0f s, of which %.0f s are left; it took %.0f s", by, f.Seconds, f.Left, took)
		}
	}
	if f := x.Forecast(); math.Abs(f.Seconds-took) > 1e-6 || f.Left != 0 {
		t.Errorf("measured, %.3f s of %.3f s, and %.3f s are left", f.Seconds, took, f.Left)
	}
}

// Only an interruption ends the forecast of a server's plan: a twin that does not carry it out
// is said, and the settings tell what it takes.
func TestForecastWithoutItsTwin(t *testing.T) {
	p, err := Parse("plan.yaml", []byte(`contract: {limits: "p95 ttft<500ms", capacity: 10/s}
target: {url: "http://127.0.0.1:1", start: "serve {flags}", engine: vllm, twin: "sim:llama-3.1-8b@h100?max_model_len=128"}
rows:
  F: {requests: 60, workload: random, input: 1024, output: 64}
knobs: {max_num_seqs: [8]}
launches: 2
`))
	if err != nil {
		t.Fatal(err)
	}
	x, err := Load(p, filepath.Join(t.TempDir(), "x"))
	if err != nil {
		t.Fatal(err)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if err := x.Simulate(over, true, result.Version{Version: "test"}, &lines{}); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted, it says %v", err)
	}
	if err := x.Simulate(t.Context(), true, result.Version{Version: "test"}, &lines{}); err != nil {
		t.Fatal(err)
	}
	if f := x.Forecast(); f.TwinFailed == "" || f.Power != nil || f.Seconds < 4*climbs*6 {
		t.Errorf("%.0f s, and %q of the twin", f.Seconds, f.TwinFailed)
	}
}

// The first launch of the contract's row is what its first block took: a later one that was
// measured while the first is to be measured anew says nothing of it.
func TestFirstLaunchIsOfTheFirstBlock(t *testing.T) {
	p, err := Parse("plan.yaml", []byte(`contract: {limits: "p95 ttft<500ms", capacity: 10/s}
target: sim:llama-3.1-8b@h100
rows: {A: {requests: 6}, F: {requests: 60}}
knobs: {max_num_seqs: [8]}
launches: 3
`))
	if err != nil {
		t.Fatal(err)
	}
	base, other := p.plannedConfigurations()[0], p.plannedConfigurations()[1]
	measured := func(c Configuration, row string, seconds ...float64) *Experiment {
		x := &Experiment{Plan: p, Dir: t.TempDir(), runs: map[string]*result.Run{}}
		for i, s := range seconds {
			if s > 0 {
				x.runs[(&Part{c, p.Row(row), i + 1}).runDir(x.Dir)] = &result.Run{Points: []result.Point{{Seconds: result.Seconds{Window: s}}}}
			}
		}
		return x
	}
	for _, of := range []struct {
		x            *Experiment
		row          string
		twin         *Experiment
		first, later float64
	}{
		{measured(base, "F", 90, 40, 60), "F", nil, 90, 50},
		{measured(base, "F", 0, 40, 60), "F", nil, 50, 50},                     // nothing tells of a first one
		{measured(base, "F", 0, 40, 60), "F", measured(base, "F", 80), 80, 50}, // the twin does
		{measured(base, "F", 90), "F", nil, 90, 90},                            // its limits were not reached
		{measured(base, "A", 0, 10, 20), "A", measured(base, "A", 80), 15, 15}, // every launch is alike
		{measured(base, "F", 0, 0, 0), "F", nil, 0, 0},
	} {
		of.x.twin = of.twin
		for _, c := range []Configuration{base, other} {
			first, later, known := of.x.rowDuration(c, p.Row(of.row))
			if first != of.first || later != of.later || known != (first > 0) {
				t.Errorf("row %s of %s: %v s first, %v s later (%v), not %v and %v", of.row, c.Name, first, later, known, of.first, of.later)
			}
		}
	}
}
