package predict

import (
	"math"
	"math/rand/v2"
	"testing"

	"pitot/internal/twin/deploy"
)

// lightLoads are what a deployment does under one request at a time, two and four.
func lightLoads(t *testing.T, d *deploy.Deployment, alone float64) (list []LightLoad) {
	t.Helper()
	rng := rand.New(rand.NewPCG(3, 4))
	for _, times := range []float64{1, 2, 4} {
		s := &Schedule{From: 5, To: 45}
		at := 0.
		for range 45 {
			at += rng.ExpFloat64() * alone / times
			s.Asked = append(s.Asked, Asked{At: int64(at * 1e9), Input: int32(100 + rng.IntN(900)), Output: int32(10 + rng.IntN(60))})
		}
		got := serveOn(t.Context(), d, s.Asked, 7)
		list = append(list, LightLoad{Schedule: s, TTFT: got.ttft, TPOT: got.tpot})
	}
	return list
}

// The deployment nearest at light loads has the server's times there, whether or not the model
// or the GPU is known, and a server that is none of the catalogue's.
func TestNearest(t *testing.T) {
	for _, c := range []struct {
		server, model, gpu string
	}{
		{"llama-3.1-8b@l4?bandwidth_efficiency=0.6&step_overhead=4ms", "llama-3.1-8b", ""},
		{"llama-3.1-8b@h100?bandwidth_efficiency=0.5&compute_efficiency=0.4&step_overhead=6ms", "meta-llama/Llama-3.1-8B-Instruct", "h100"},
		{"qwen3-14b@a100?step_overhead=5ms", "a-model-of-their-own", ""},
	} {
		server, err := deploy.Parse(c.server)
		if err != nil {
			t.Fatal(err)
		}
		loads := lightLoads(t, server, 1)
		of := Candidates(c.model, c.gpu, nil)
		if len(of) == 0 {
			t.Fatalf("%s: no candidates", c.server)
		}
		d, err := Nearest(t.Context(), of, loads)
		if err != nil {
			t.Fatal(err)
		}
		if c.gpu != "" && d.Accelerator.Name != c.gpu {
			t.Errorf("%s on %s, which was said to be %s", c.server, d.Accelerator.Name, c.gpu)
		}
		for i := range loads {
			x := timesAsLong(t.Context(), d, &loads[i])
			t.Logf("%s is like %s, slowed by %.2f: %+.1f %%, %+.1f %% at load %d", c.server, d.Spec, d.Efficiency.Scale, 100*(math.Exp(x[0])-1), 100*(math.Exp(x[1])-1), i)
			if c.gpu == "" && (math.Abs(x[0]) > 0.25 || math.Abs(x[1]) > 0.25) {
				t.Errorf("%s: first tokens take %.2f times as long as on %s, further ones %.2f", c.server, math.Exp(x[0]), d.Spec, math.Exp(x[1]))
			}
		}
	}
}

// What a server tells of its engine is what its twin has, and what it cannot have is no candidate.
func TestCandidatesHaveWhatIsTold(t *testing.T) {
	of := Candidates("llama-3.1-8b", "h100", map[string]string{"max_num_seqs": "48", "num_gpu_blocks": "5000", "enable_prefix_caching": "False", "tensor_parallel_size": "1"})
	if len(of) != 1 || of[0].Settings.MaxNumSeqs != 48 || of[0].Settings.EnablePrefixCaching || of[0].KVTokens() != 4999*of[0].Settings.BlockSize {
		t.Errorf("%d candidates: %d seats, cache %v, %d tokens", len(of), of[0].Settings.MaxNumSeqs, of[0].Settings.EnablePrefixCaching, of[0].KVTokens())
	}
	if of := Candidates("llama-3.1-8b", "2xh100", nil); len(of) != 1 || of[0].TensorParallel != 2 {
		t.Errorf("%d candidates of two GPUs", len(of))
	}
	if of := Candidates("llama-3.1-8b", "", nil); len(of) < 20 {
		t.Errorf("%d candidates of a model", len(of))
	}
	if of := Candidates("llama-3.1-8b", "no-such-gpu", nil); len(of) != 0 {
		t.Errorf("%d candidates on a GPU that there is not", len(of))
	}
}

// A server whose first tokens take five times as long as on any deployment, and further ones as long
// as on one, has no nearest.
func TestNearestIsNotFarAway(t *testing.T) {
	server, err := deploy.Parse("llama-3.1-8b@h100")
	if err != nil {
		t.Fatal(err)
	}
	loads := lightLoads(t, server, 1)
	of := Candidates("llama-3.1-8b", "h100", nil)
	if _, err := Nearest(t.Context(), of, loads); err != nil {
		t.Fatalf("itself: %v", err)
	}
	for i := range loads {
		for j := range loads[i].TTFT {
			loads[i].TTFT[j] *= 5
		}
	}
	if d, err := Nearest(t.Context(), of, loads); err == nil {
		t.Errorf("it is taken for %s", d.Named())
	}
}
