package run

import (
	"math"
	"testing"
)

// What the cache of a simulated server has of the prompts is what was expected of it,
// within a point, under loads light and heavy, with blocks of other sizes, and where it
// forgets.
func TestExpectedHitsAreServed(t *testing.T) {
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
