package session

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pitot/internal/results/record"
	"pitot/internal/results/result"
)

// What the cache of a simulated server has of the prompts is what was expected of it,
// within a point, under loads light and heavy, with blocks of other sizes, and where it
// forgets.
func TestExpectedHitsAreServed(t *testing.T) {
	if testing.Short() {
		t.Skip("simulations on one goroutine are slow under the race detector")
	}
	t.Parallel()
	for _, c := range []struct {
		name string
		args []string
	}{
		{"one prefix, light", []string{"sim:llama-3.1-8b@h100", "--rate", "4", "--prefix", "1000", "--prefix-share", "0.7", "--input", "uniform(50,400)"}},
		{"tree", []string{"sim:llama-3.1-8b@h100", "--rate", "20", "--prefix", "tree(1x512, 8x1024 zipf(1.1), 64x256)", "--input", "lognormal(200,150)"}},
		{"tree that is forgotten", []string{"sim:llama-3.1-8b@h100?num_gpu_blocks=1500&max_model_len=8192", "--rate", "12", "--prefix", "tree(1x512, 8x1024 zipf(1.1), 64x256)", "--input", "128"}},
		{"users who wait for blocks", []string{"sim:llama-3.1-8b@h100?num_gpu_blocks=2400&max_model_len=8192", "--concurrency", "48", "--prefix", "tree(64x2048 zipf(1))", "--input", "128"}},
		{"large blocks", []string{"sim:llama-3.1-8b@h100?block_size=128&num_gpu_blocks=400&max_model_len=8192", "--rate", "10", "--prefix", "0.6*tree(10x300) + 0.3*tree(4x2000) + 0.1*none", "--input", "uniform(20,900)"}},
		{"nothing in common", []string{"sim:llama-3.1-8b@h100", "--rate", "10", "--input", "500"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			run, _ := mustMeasure(t, append(c.args, "--output", "uniform(20,200)", "--duration", "20s", "--warmup", "3s", "--seed", "11")...)
			p := run.Points[0]
			e := p.PrefixCache
			if e == nil || e.Served == nil {
				t.Fatalf("nothing is known of the cache: %+v", e)
			}
			if math.Abs(e.Expected-*e.Served) > 0.01 {
				t.Errorf("%.4f expected, %.4f served: %+v", e.Expected, *e.Served, e)
			}
			if math.Abs(p.Window["cached_share"]-*e.Served) > 1e-9 || e.Requests != int(p.Requests.OK) {
				t.Errorf("%d requests had %.4f, in the window %d had %.4f", e.Requests, *e.Served, p.Requests.OK, p.Window["cached_share"])
			}
			if e.Late > e.Expected || e.Expected > e.Endless+0.001 {
				t.Errorf("%.4f late, %.4f expected, %.4f at most", e.Late, e.Expected, e.Endless)
			}
		})
	}
}

// A share that is asked for is served, in the lengths of the input; what is warm was asked
// for before, in no figure.
func TestCacheModes(t *testing.T) {
	load := []string{"sim:llama-3.1-8b@h100", "--rate", "15", "--output", "20", "--duration", "20s", "--warmup", "2s", "--seed", "11", "--input", "lognormal(500,400)"}
	run, _ := mustMeasure(t, append(load, "--cache", "60%")...)
	p := run.Points[0]
	if c := p.PrefixCache; c == nil || c.Served == nil || math.Abs(*c.Served-.6) > .01 || c.Asked != 1 || c.Mode != "60%" {
		t.Errorf("a share of 60 %% comes to %+v", c)
	}
	plain, _ := mustMeasure(t, load...)
	if a, b := p.Requests.Due, plain.Points[0].Requests.Due; a != b {
		t.Errorf("%d requests were due, %d with nothing shared", a, b)
	}
	run, _ = mustMeasure(t, append(load, "--cache", "warm", "--prefix", "tree(30x400)")...)
	warm := run.Points[0].PrefixCache
	run, _ = mustMeasure(t, append(load, "--cache", "cold", "--prefix", "tree(30x400)")...)
	cold := run.Points[0].PrefixCache
	if warm.Asked != 30 || cold.Asked != 0 || *warm.Served < *cold.Served || math.Abs(*warm.Served-warm.Expected) > .005 {
		t.Errorf("warm %+v, cold %+v", warm, cold)
	}
}

// The cold and the warm point have the same requests at the same times, and the effect is
// that of their pairs.
func TestCacheBoth(t *testing.T) {
	run, dir := mustMeasure(t, "sim:llama-3.1-8b@h100", "--rate", "10", "--output", "20", "--duration", "30s", "--warmup", "2s", "--seed", "11", "--input", "uniform(50,300)", "--prefix", "tree(8x1000 zipf(1))", "--cache", "both")
	if len(run.Points) != 2 || run.Points[0].Stage != result.StageCold || run.Points[1].Stage != result.StageWarm || run.Repeats != nil || run.Capacity != nil {
		t.Fatalf("%d points, repeats %v", len(run.Points), run.Repeats)
	}
	rows := rowsOf(t, dir)
	warm := map[int64]record.Row{}
	for _, r := range rows[1] {
		warm[r.ID] = r
	}
	for _, r := range rows[0] {
		w, ok := warm[r.ID]
		if ok && (r.Due != w.Due || r.InputPlanned != w.InputPlanned || r.OutputPlanned != w.OutputPlanned) {
			t.Fatalf("request %d is %+v cold and %+v warm", r.ID, r, w)
		}
		if r.CachedTokens != 0 {
			t.Fatalf("request %d had %d tokens from a cold cache", r.ID, r.CachedTokens)
		}
	}
	e := run.CacheEffect
	if e == nil || e.CI95 == nil || e.Pairs < 250 || e.CI95[1] >= 0 || e.DifferenceMS < e.CI95[0] || e.DifferenceMS > e.CI95[1] || math.Abs(e.WarmMS-e.ColdMS-e.DifferenceMS) > 1e-9 {
		t.Errorf("the effect is %+v", e)
	}
	again, err := Finish(dir, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(run.CacheEffect, again.CacheEffect); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(run.Points[1].PrefixCache, again.Points[1].PrefixCache); diff != "" {
		t.Error(diff)
	}
}
