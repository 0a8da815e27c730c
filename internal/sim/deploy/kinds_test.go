package deploy

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"pitot/internal/sim"
)

// ofKinds are deployments of models whose layers are of several kinds.
var ofKinds = []string{
	"deepseek-v3@8xh200", "kimi-k2.5@8xh200", "kimi-k2.5@4xb200?dtype=fp4&enable_expert_parallel=true", "gemma-3-27b@h100", "gemma-3-27b@2xh100?dtype=fp8",
	"llama-4-scout@4xh100", "llama-4-maverick@8xh200", "qwen3.5-27b@h100", "qwen3.5-122b-a10b@4xh100", "gpt-oss-120b@h100", "qwen3-30b-a3b@2xh100?enable_expert_parallel=true",
}

// What the KV cache takes follows from the kinds of the layers: bytes of a token on
// each accelerator, worked out by hand, and the blocks that a long request holds
// besides.
func TestCacheOfKinds(t *testing.T) {
	for spec, want := range map[string]struct {
		token  float64
		beside int
	}{
		"llama-3.1-8b@h100":                     {2 * 32 * 8 * 128 * 2, 0},
		"deepseek-v3@8xh200":                    {61 * (512 + 64) * 2, 0}, // each accelerator has all
		"kimi-k2.5@8xh200?kv_dtype=fp8":         {61 * (512 + 64), 0},
		"gemma-3-27b@h100":                      {10 * 2 * 16 * 128 * 2, 333},    // 1,024 tokens of 52 layers, in blocks of 16 tokens of 10
		"gemma-3-27b@2xh100":                    {10 * 2 * 8 * 128 * 2, 333},     // heads are divided
		"gpt-oss-120b@h100":                     {18 * 2 * 8 * 64 * 2, 8},        // 128 tokens of as many layers
		"llama-4-scout@8xh100":                  {12 * 2 * 1 * 128 * 2, 3 * 512}, // 8,192 tokens of three times as many
		"qwen3.5-27b@h100":                      {16 * 2 * 4 * 256 * 2, 147},     // 48 matrices of 48·128·128 in 32 bits, and 3 tokens of 10,240 in 16
		"qwen3.5-122b-a10b@4xh100?kv_dtype=fp8": {12 * 2 * 1 * 256, 391},         // 36 states of a fourth each
	} {
		d := must(t, spec)
		if got := d.kvPerToken(); math.Abs(got/want.token-1) > 1e-12 {
			t.Errorf("%s keeps %v bytes of a token, want %v", spec, got, want.token)
		}
		if got := d.Settings.BlocksBeside(1 << 20); got != want.beside {
			t.Errorf("%s: a request holds %d blocks besides, want %d", spec, got, want.beside)
		}
	}
}

// Whatever the kinds of layers: a step with more rows, longer contexts or more of a
// prompt is not shorter, and what memory is spent on is not negative and all of it.
func TestStepsOfKinds(t *testing.T) {
	var list []*Deployment
	for _, spec := range ofKinds {
		d := must(t, spec)
		list = append(list, d)
		m := d.Memory
		if m.Weights <= 0 || m.Activations <= 0 || m.KV <= 0 || m.Weights+m.Activations+m.Other+m.KV > m.Requested*(1+1e-12) {
			t.Errorf("%s: %+v", spec, m)
		}
		if fit, run := d.CountSequences(d.Settings.MaxModelLen); fit < 1 || run < 1 {
			t.Errorf("%s: %d requests of %d tokens fit", spec, fit, d.Settings.MaxModelLen)
		}
		b := d.Bounds()
		if step := d.Parts(&sim.Batch{Requests: 1, Tokens: 1, Logits: 1, Decodes: 1, DecodeContext: 1}).Total(); step < b.StepFloor {
			t.Errorf("%s: a step takes %v s, floor %v s", spec, step, b.StepFloor)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		d := rapid.SampledFrom(list).Draw(t, "deployment")
		n := rapid.IntRange(0, 512).Draw(t, "answers")
		c := rapid.IntRange(1, 20_000).Draw(t, "context")
		p := rapid.IntRange(0, 4096).Draw(t, "prompt")
		before := rapid.IntRange(0, 20_000).Draw(t, "computed")
		batch := func(n, c, p, before int) *sim.Batch {
			b := &sim.Batch{Requests: n, Tokens: n + p, Logits: n, Decodes: n, DecodeContext: int64(n * c)}
			if p > 0 {
				b.Requests++
				b.Prefills = []sim.Chunk{{New: p, Context: before}}
			}
			return b
		}
		if n+p == 0 {
			return
		}
		h := d.hardware()
		one := h.parts(batch(n, c, p, before)).Total()
		grown := []*sim.Batch{batch(n, c+1, p, before), batch(n, c+3000, p, before), batch(n, c, p+1, before), batch(n, c, p, before+1), batch(n, c, p, before+3000)}
		if n > 0 { // a step with answers has their kernel's floor in place of that of prompts
			grown = append(grown, batch(n+1, c, p, before))
		}
		for _, more := range grown {
			if h.parts(more).Total() < one*(1-1e-12) {
				t.Errorf("%s: %+v takes less than %d answers of %d and %d of a prompt behind %d", d.SpecString(), more, n, c, p, before)
			}
		}
	})
}

// A layer that slides reads its window, a latent one less than keys and values would be,
// and a linear one the same at any length.
func TestReadsOfKinds(t *testing.T) {
	decode := func(spec string, context int) float64 {
		return must(t, spec).Parts(&sim.Batch{Requests: 64, Tokens: 64, Logits: 64, Decodes: 64, DecodeContext: int64(64 * context)}).Decode
	}
	for _, c := range []struct {
		spec       string
		from, to   int
		most, less float64 // bounds of the growth of attention's time
	}{
		{"gpt-oss-120b@h100", 128, 2 * 128, 2, 1},
		{"gemma-3-27b@h100", 1024, 4096, 1.8, 1.2},  // 10 of 62 layers read four times as much
		{"llama-3.1-8b@h100", 1024, 4096, 4, 2},     // all
		{"qwen3.5-27b@h100", 1024, 4096, 2.5, 1.05}, // 16 of 64, beside states
	} {
		if got := decode(c.spec, c.to) / decode(c.spec, c.from); got > c.most || got < c.less {
			t.Errorf("%s: from %d to %d tokens attention takes %.2f times as long", c.spec, c.from, c.to, got)
		}
	}
}

// Experts of their own are read whole by the accelerator that has them, and that with
// most of them is waited for; all of them are touched where there are many tokens.
func TestExpertParallel(t *testing.T) {
	parts, own := must(t, "qwen3-30b-a3b@4xh100").hardware().expert, must(t, "qwen3-30b-a3b@4xh100?enable_expert_parallel=true").hardware().expert
	if got := own.mostTouched(100_000); got != 32 || parts.expertsRead(100_000) != 128 {
		t.Errorf("%v and %v experts are touched by many tokens", got, parts.expertsRead(100_000))
	}
	if mean := parts.expertsRead(4) / 4; own.mostTouched(4) < mean*1.2 || own.mostTouched(4) > mean*2 {
		t.Errorf("4 tokens touch %v experts of the accelerator with most, %v in the mean", own.mostTouched(4), mean)
	}
	if parts.read*4 < own.read*0.999 || parts.read*4 > own.read*1.001 {
		t.Errorf("an expert is read in %v s whole, a fourth in %v s", own.read, parts.read)
	}
}

// Engines in lock step have a part of the experts each, and a step is as long as the slowest
// with the tokens of all.
func TestLockstepCost(t *testing.T) {
	one := must(t, "qwen3-30b-a3b@8xh200?data_parallel_size=8")
	all := must(t, "qwen3-30b-a3b@8xh200?data_parallel_size=8&enable_expert_parallel=true")
	if one.IsLockstep() || !all.IsLockstep() || all.GPUs() != 8 || all.TensorParallel != 1 {
		t.Fatalf("%+v", all)
	}
	routed := float64(all.Model.RoutedWeights()) * 2
	if got := one.Memory.Weights - all.Memory.Weights; math.Abs(got-routed*7/8) > 1 {
		t.Errorf("weights are smaller by %.0f bytes, not by %.0f", got, routed*7/8)
	}
	answers := func(n int) *sim.Batch {
		return &sim.Batch{Requests: n, Tokens: n, Logits: n, Decodes: n, DecodeContext: int64(n) * 1000}
	}
	h := all.hardware()
	even := h.jointStepTime([]*sim.Batch{answers(8), answers(8), answers(8), answers(8), answers(8), answers(8), answers(8), answers(8)})
	if alike := h.Step(answers(8)); even != alike {
		t.Errorf("eight like batches take %v, a step of one takes %v", even, alike)
	}
	dummies := []*sim.Batch{answers(64)}
	for range 7 {
		dummies = append(dummies, answers(1))
	}
	odd := h.jointStepTime(dummies)
	if slowest := stepDuration(h.partsAmong(answers(64), 71).Total()); odd != slowest {
		t.Errorf("a batch among dummies takes %v, not %v", odd, slowest)
	}
	if p := h.partsAmong(answers(8), 64); p.Collective <= 0 || h.reduce.n != 0 || h.exchange.n != float64(all.Model.Layers) {
		t.Errorf("%+v, %v all-reduces and exchanges in %v layers", p, h.reduce.n, h.exchange)
	}
	// What is exchanged is measured of H200, and can be set; where it is not known it is as an
	// all-reduce in two halves.
	if p := h.partsAmong(answers(8), 64); math.Abs(p.Collective/float64(all.Model.Layers)-30e-6) > 10e-6 {
		t.Errorf("tokens are exchanged in %v s a layer", p.Collective/float64(all.Model.Layers))
	}
	slow := must(t, "qwen3-30b-a3b@8xh200?data_parallel_size=8&enable_expert_parallel=true&exchange_latency=1ms&exchange_gb_per_s=1")
	if p := slow.hardware().partsAmong(answers(8), 64); p.Collective < 1e-3*float64(all.Model.Layers) {
		t.Errorf("set to a millisecond, tokens are exchanged in %v s", p.Collective)
	}
	unknown := must(t, "qwen3-30b-a3b@8xmi300x?data_parallel_size=8&enable_expert_parallel=true")
	if e := unknown.Efficiency; e.Exchange != 2*e.Collective && e.Exchange < 10*time.Microsecond {
		t.Errorf("where nothing was measured tokens are exchanged in %v", e.Exchange)
	}
	if dense := must(t, "llama-3.1-8b@2xh100?data_parallel_size=2&enable_expert_parallel=true"); dense.IsLockstep() {
		t.Error("a model without experts is in lock step")
	}
	if _, err := Parse("qwen3-30b-a3b@2xh200?data_parallel_size=2&enable_expert_parallel=true&replica_events=1s:die:0"); err == nil {
		t.Error("an engine in lock step may die alone")
	}
}
