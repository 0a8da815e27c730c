package deploy

import (
	"math"
	"testing"

	"pitot/internal/say"
	"pitot/internal/sim"
)

// A step that is no CUDA graph takes at least as long as the host needs to launch its
// kernels, and one whose kernels take longer does not wait.
func TestGraphs(t *testing.T) {
	answers := &sim.Batch{Requests: 8, Tokens: 8, Logits: 8, Decodes: 8, DecodeContext: 8000}
	many := &sim.Batch{Requests: 600, Tokens: 600, Logits: 600, Decodes: 600, DecodeContext: 600}
	short := &sim.Batch{Requests: 1, Tokens: 100, Logits: 1, Prefills: []sim.Chunk{{New: 100}}}
	longer := &sim.Batch{Requests: 1, Tokens: 600, Logits: 1, Prefills: []sim.Chunk{{New: 600}}}
	long := &sim.Batch{Requests: 1, Tokens: 8192, Logits: 1, Prefills: []sim.Chunk{{New: 8192}}}
	for _, c := range []struct {
		settings string
		b        *sim.Batch
		ms       float64 // of 28 layers
	}{
		{"", answers, 0},
		{"", short, 28}, // its attention is launched
		{"", longer, 140},
		{"", long, 140},
		{"&max_num_seqs=40", short, 140}, // graphs of 80 tokens
		{"&max_cudagraph_capture_size=1024", longer, 28},
		{"", many, 140},
		{"&cudagraph_mode=FULL_DECODE_ONLY", answers, 0},
		{"&cudagraph_mode=full_decode_only", short, 140},
		{"&cudagraph_mode=piecewise", answers, 28},
		{"&cudagraph_mode=full", short, 0},
		{"&enforce_eager=true", answers, 140},
		{"&enforce_eager=false", answers, 0},
	} {
		// Longer launches than any server's, for all steps but the long one to wait.
		const spec = "qwen2.5-7b@h100?max_num_seqs=1024"
		d, err := Parse(spec + "&launch_overhead=5ms" + c.settings)
		if c.settings == "&max_num_seqs=40" {
			d, err = Parse("qwen2.5-7b@h100?launch_overhead=5ms" + c.settings)
		}
		if err != nil {
			t.Fatal(err)
		}
		without := *d
		without.Efficiency.PerLaunch = 0
		free, waiting := without.Parts(c.b), d.Parts(c.b)
		kernels := free.Total() - free.Overhead
		if got, want := waiting.Total()-free.Total(), max(c.ms/1e3-kernels, 0); math.Abs(got-want) > 1e-9 {
			t.Errorf("%q, %d tokens: the step waits %.1f ms, it should be %.1f", c.settings, c.b.Tokens, got*1e3, want*1e3)
		}
	}
	if _, err := Parse("llama-3.1-8b@h100?cudagraph_mode=half"); err == nil || say.HintOf(err) == "" {
		t.Errorf("a mode that there is none of: %v", err)
	}
}
