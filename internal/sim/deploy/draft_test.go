package deploy

import (
	"fmt"
	"math"
	"testing"

	"pitot/internal/sim"
)

// drafting is a deployment with k drafts.
func drafting(t *testing.T, k int, rate float64) *Deployment {
	t.Helper()
	return must(t, fmt.Sprintf("llama-3.1-8b@h100?num_speculative_tokens=%d&acceptance_rate=%v", k, rate))
}

// Tokens a step by the formula are those that the engine gives.
func TestTokensPerStep(t *testing.T) {
	for _, c := range []struct {
		k    int
		rate float64
		want float64
	}{{0, 0, 1}, {4, 0, 1}, {4, 1, 5}, {3, 0.5, 1.875}, {4, 0.9, 4.0951}} {
		d := drafting(t, c.k, c.rate)
		if got := d.TokensPerStep(); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%d drafts at %v: %v tokens a step, want %v", c.k, c.rate, got, c.want)
		}
		d.Settings.Frontend = sim.Frontend{}
		e := d.Engine(1)
		const tokens = 20_000
		e.Add(0, sim.Job{Prompt: 10, Output: tokens})
		for now := int64(0); ; {
			step := e.Step(now)
			if now = step.End; now == math.MaxInt64 {
				break
			}
		}
		if got := tokens / float64(e.Stats().Steps); math.Abs(got/c.want-1) > 0.02 {
			t.Errorf("%d drafts at %v: the engine gives %.3f tokens a step, want %v", c.k, c.rate, got, c.want)
		}
	}
}

// Drafts cost time and memory, the more the more there are, and no deployment
// is faster than its floor.
func TestDraftsCost(t *testing.T) {
	plain := must(t, "llama-3.1-8b@h100")
	batch := func(n, k int) *sim.Batch {
		return &sim.Batch{Requests: n, Tokens: n * (1 + k), Logits: n * (1 + k), Decodes: n, DecodeContext: int64(1000 * n), Drafts: k}
	}
	last := 0.0
	for _, k := range []int{1, 4, 16, 100} {
		d := drafting(t, k, 1)
		if d.KVTokens() >= plain.KVTokens() || d.Memory.Weights <= plain.Memory.Weights {
			t.Errorf("%d drafts: %d KV tokens, without %d", k, d.KVTokens(), plain.KVTokens())
		}
		for _, n := range []int{1, 64, 512} {
			p := d.Parts(batch(n, k))
			if floor := d.DecodeFloor(n, 1000); p.Total()/d.TokensPerStep() < floor {
				t.Errorf("%d drafts of %d: a token takes %v s, its floor is %v", k, n, p.Total()/d.TokensPerStep(), floor)
			}
			if n == 1 {
				if p.Draft <= last {
					t.Errorf("%d drafts take %v s, fewer %v", k, p.Draft, last)
				}
				last = p.Draft
			}
		}
		if b := d.Bounds(); math.Abs(b.TokenFloor*float64(1+k)-b.StepFloor) > 1e-12 {
			t.Errorf("%d drafts: %+v", k, b)
		}
	}
	if p := plain.Parts(batch(64, 0)); p.Draft != 0 {
		t.Errorf("no drafts take %v s", p.Draft)
	}
}

// A draft of EAGLE for llama-3.1-8b reads a decoder layer and the head: worked
// out by hand from the model card and the datasheet.
func TestWhatADraftCosts(t *testing.T) {
	const (
		layer = 4096*4096*2 + 4096*1024*2 + 3*4096*14336 // q and o, k and v, feed-forward
		head  = 128256 * 4096
		rate  = 3.35e12 // bytes/s of an H100
	)
	one := func(drafts int) float64 {
		d, err := Parse(fmt.Sprintf("llama-3.1-8b@h100?bandwidth_efficiency=1&num_speculative_tokens=%d&acceptance_rate=0.7", drafts))
		if err != nil {
			t.Fatal(err)
		}
		return d.Parts(&sim.Batch{Requests: 1, Tokens: 1 + drafts, Logits: 1 + drafts, Decodes: 1, Drafts: drafts}).Draft
	}
	want := 2 * (layer + head) / rate // seconds
	for drafts := 1; drafts <= 8; drafts *= 2 {
		if got := one(drafts) / float64(drafts); got < want || got > want*1.06 { // computing and launching take a little too
			t.Errorf("one of %d drafts takes %.3f ms, want %.3f", drafts, got*1e3, want*1e3)
		}
	}
}

// N-grams cost neither memory nor accelerator time; drafts made in one pass read the
// drafter once; fewer are drafted where the ranges say so.
func TestDrafters(t *testing.T) {
	const k = 4
	plain, eagle := must(t, "llama-3.1-8b@h100"), drafting(t, k, 0.7)
	spec := fmt.Sprintf("llama-3.1-8b@h100?num_speculative_tokens=%d&acceptance_rate=0.7", k)
	grams, once := must(t, spec+"&speculative_method=ngram"), must(t, spec+"&parallel_drafting=true")
	fewer := must(t, spec+"&num_speculative_tokens_per_batch_size=1-16:4,17-64:1")
	batch := func(d *Deployment, n int) *sim.Batch {
		drafts := d.Settings.DraftsFor(n)
		return &sim.Batch{Requests: n, Tokens: n * (1 + drafts), Logits: n * (1 + drafts), Decodes: n, DecodeContext: int64(1000 * n), Drafts: drafts}
	}
	if grams.KVTokens() != plain.KVTokens() || grams.Parts(batch(grams, 8)).Draft != 0 || grams.Settings.AsyncScheduling {
		t.Errorf("n-grams: %d KV tokens, without %d; %v s of drafts; asynchronous: %v", grams.KVTokens(), plain.KVTokens(), grams.Parts(batch(grams, 8)).Draft, grams.Settings.AsyncScheduling)
	}
	if one, all := once.Parts(batch(once, 1)).Draft, eagle.Parts(batch(eagle, 1)).Draft; one > all/k*1.1 || one < all/k*0.9 {
		t.Errorf("%d drafts in one pass take %v s, one after another %v", k, one, all)
	}
	if few, many := fewer.Parts(batch(fewer, 16)).Draft, fewer.Parts(batch(fewer, 17)).Draft; few < 3*many {
		t.Errorf("drafts of 16 requests take %v s, of 17 with a quarter of them %v", few, many)
	}
	for _, wrong := range []string{"&speculative_method=medusa", "&speculative_method=ngram&parallel_drafting=true", "&speculative_method=ngram&async_scheduling=1",
		"&num_speculative_tokens_per_batch_size=1-4", "&num_speculative_tokens_per_batch_size=2-4:1"} {
		if _, err := Parse(spec + wrong); err == nil {
			t.Errorf("%s is taken", wrong)
		}
	}
}
