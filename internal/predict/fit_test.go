package predict

import (
	"math"
	"testing"

	"pitot/internal/twin"
	"pitot/internal/twin/deploy"
	"pitot/internal/twin/vllm"
)

// simulated is a run that a deployment served, as a client records it.
func simulated(t *testing.T, d *deploy.Deployment, rate float64, n int, seed uint64) *Recording {
	t.Helper()
	r := &Recording{Dir: "simulated", AtClient: true}
	e, at, now := d.Engine(9), 0.0, int64(0)
	for i := range n {
		u := func(k uint64) float64 {
			return (float64(twin.Mix(seed^twin.Mix(uint64(i)<<8|k))>>12) + 0.5) / (1 << 52)
		}
		at += -math.Log(u(1)) / rate
		r.Requests = append(r.Requests, Recorded{Arrival: at, Input: 100 + int(u(2)*1500), Output: 20 + int(u(3)*150), measured: true})
	}
	for next := 0; now != math.MaxInt64; {
		for next < n && int64(r.Requests[next].Arrival*1e9) <= now {
			e.Add(now, twin.Job{ID: int64(next), Prompt: r.Requests[next].Input, Output: r.Requests[next].Output})
			next++
		}
		step := e.Step(now)
		for _, o := range step.Out {
			q := &r.Requests[o.ID]
			if k := len(q.times); k > 0 {
				q.stall = max(q.stall, float64(o.At)/1e9-q.times[k-1])
			}
			q.times = append(q.times, float64(o.At)/1e9)
		}
		now = step.End
		if next < n {
			now = max(min(now, int64(r.Requests[next].Arrival*1e9)), 0)
		}
	}
	for i := range r.Requests {
		q := &r.Requests[i]
		q.FirstToken, q.LastToken = q.times[0]-q.Arrival, q.times[len(q.times)-1]-q.Arrival
	}
	return r
}

// A fit finds the engine that made the runs: its parameters where they can be
// told apart, and another load of it within a few percent.
func TestFitFindsTheTruth(t *testing.T) {
	if testing.Short() {
		t.Skip("replays for seconds")
	}
	truth, err := deploy.Parse("llama-3.1-8b@rtx4090?step_overhead=6ms&row_overhead=60us&compute_efficiency=0.5&frontend_request=8ms&frontend_chunk=100us&max_num_seqs=48")
	if err != nil {
		t.Fatal(err)
	}
	start, err := deploy.Parse("llama-3.1-8b@rtx4090?max_num_seqs=48")
	if err != nil {
		t.Fatal(err)
	}
	fit, err := FitRuns(start, []*Recording{simulated(t, truth, 0.5, 150, 1), simulated(t, truth, 3, 400, 2)})
	if err != nil {
		t.Fatal(err)
	}
	// What a step costs is found, whichever parameter it is ascribed to.
	for _, b := range []vllm.Batch{
		{Requests: 1, Tokens: 1, Logits: 1, Decodes: 1, DecodeContext: 500},
		{Requests: 16, Tokens: 16, Logits: 16, Decodes: 16, DecodeContext: 16 * 800},
		{Requests: 9, Tokens: 1008, Logits: 9, Decodes: 8, DecodeContext: 8 * 800, Prefills: []vllm.Chunk{{New: 1000}}},
	} {
		got, want := fit.Fitted.Parts(&b).Total(), truth.Parts(&b).Total()
		if got < want*0.93 || got > want*1.07 {
			t.Errorf("a step of %d tokens takes %.2f ms, fitted %.2f ms", b.Tokens, want*1e3, got*1e3)
		}
	}
	for _, p := range fit.Parameters {
		if p.Name == "compute_efficiency" && (!p.Identified || math.Abs(p.Value/0.5-1) > 0.1) || p.Name == "frontend_chunk" && p.Identified {
			t.Errorf("%+v", p)
		}
	}
	for _, r := range fit.Runs {
		if r.Held == 0 || worst(r.ErrorPct) > 8 {
			t.Errorf("held back: %+v", r)
		}
	}
	other := simulated(t, truth, 2, 2000, 3) // a p99 needs a thousand
	if w := worst(Errors(other.Replay(fit.Fitted).Metrics(), other.Recorded().Metrics())); w > 6 {
		t.Errorf("another load is off by %.1f %%: %+v", w, Errors(other.Replay(fit.Fitted).Metrics(), other.Recorded().Metrics()))
	}
}

func TestFitRefusesTooFew(t *testing.T) {
	d, err := deploy.Parse("llama-3.1-8b@rtx4090")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := FitRuns(d, []*Recording{simulated(t, d, 1, 10, 1)}); err == nil {
		t.Error("ten requests were enough")
	}
}
