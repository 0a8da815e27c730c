package deploy

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"pitot/internal/say"
	"pitot/internal/sim"
)

// Describe says in one line what is deployed.
func (d *Deployment) Describe() string {
	kv := ""
	if d.KVDType != "bf16" {
		kv = ", KV cache in " + d.KVDType
	}
	limits := d.Limits()
	return fmt.Sprintf("%s as modelled: %s%s in %s on %s, %s KV tokens%s, %s, %s", d.Kind.FullName(),
		d.describeEngines(), d.Model.Name, d.DType, d.groupName(), say.Count(d.KVTokens()), kv, limits[0], limits[1])
}

// SpecString is the deployment with the settings that were given, as it is written.
func (d *Deployment) SpecString() string {
	var given []string
	for _, key := range slices.Sorted(maps.Keys(d.Given)) {
		given = append(given, key+"="+d.Given[key])
	}
	if len(given) == 0 {
		return d.Spec
	}
	return d.Spec + "?" + strings.Join(given, "&")
}

// KVTokens returns the number of tokens that the KV cache of an engine holds.
func (d *Deployment) KVTokens() int { return d.Settings.KVTokens() }

// ServerFacts returns the facts that such a server would report about itself, for the record of a
// run.
func (d *Deployment) ServerFacts() map[string]string {
	s := &d.Settings
	facts := map[string]string{
		"model": d.Model.Name, "accelerator": d.HardwareName(), "dtype": d.DType, "kv_cache_dtype": d.KVDType,
		"max_model_len": strconv.Itoa(s.MaxModelLen), "max_num_seqs": strconv.Itoa(s.MaxNumSeqs),
		"max_num_batched_tokens": strconv.Itoa(s.MaxNumBatchedTokens), "num_gpu_blocks": strconv.Itoa(s.NumGPUBlocks),
		"block_size": strconv.Itoa(s.BlockSize), "scale": strconv.FormatFloat(d.Efficiency.Scale, 'g', 6, 64),
	}
	d.routingFacts(facts)
	d.engineFacts(facts)
	return facts
}

// Residence is about how long a request takes while n run, on several engines evenly:
// its prompt computed alone, then its tokens in a batch of n. Queueing is left out.
func (d *Deployment) Residence(input, output, n int) time.Duration {
	input, output, n = max(input, 1), max(output, 1), min(max((n+d.DataParallel-1)/d.DataParallel, 1), d.Settings.MaxNumSeqs)
	h := d.hardware()
	prefill := 0.0
	for done := 0; done < input; {
		c := min(input-done, d.Settings.MaxNumBatchedTokens)
		prefill += h.parts(&sim.Batch{Requests: 1, Tokens: c, Logits: 1, Drafts: d.Settings.DraftsFor(1), Prefills: []sim.Chunk{{New: c, Context: done}}}).Total()
		done += c
	}
	decode := h.parts(&sim.Batch{Requests: n, Tokens: n, Logits: n, Decodes: n, DecodeContext: int64(n) * int64(input+output/2), Drafts: d.Settings.DraftsFor(n)}).Total()
	// While others run, their prompts share the steps.
	seconds := prefill + float64(output)*(decode+prefill*float64(n-1)/float64(output+1))
	return time.Duration(min(seconds, 1e9) * 1e9) // of what has an end at all
}

// SteadyResidence is about how long a request takes where so many come to an engine in a second,
// each with so many tokens that are in the cache, so many that are not, and an answer: as many are
// under way as come in that time, and their steps take in the prompts that come meanwhile. serves
// is false where that is more than the engine computes, or has seats for.
func (d *Deployment) SteadyResidence(rate float64, cached, input, output int) (took time.Duration, serves bool) {
	input, output = max(input, 1), max(output, 1)
	h := d.hardware()
	step := func(n, prompt int) float64 {
		b := &sim.Batch{Requests: n, Tokens: n, Logits: n, Decodes: n, DecodeContext: int64(n) * int64(cached+input+output/2), Drafts: d.Settings.DraftsFor(n)}
		if prompt > 0 {
			b.Requests, b.Tokens, b.Logits = n+1, n+prompt, n+1
			b.Prefills, b.PrefillContext = []sim.Chunk{{New: prompt, Context: cached}}, int64(cached)
		}
		return h.parts(b).Total()
	}
	chunk := min(input, d.Settings.MaxNumBatchedTokens)
	const most = 0.95 // of the time that prompts may take
	each, prompt := step(1, 0), 0.0
	for range 100 {
		under := rate * float64(output) * each
		n := int(min(max(math.Round(under), 1), float64(d.Settings.MaxNumSeqs)))
		alone := step(n, 0)
		prompt = (step(n, chunk) - alone) * float64(input) / float64(chunk)
		busy := rate * prompt
		next := alone / (1 - min(busy, most))
		serves = busy < most && under < float64(d.Settings.MaxNumSeqs)
		if math.Abs(next/each-1) < 1e-3 {
			break
		}
		each = (each + next) / 2
	}
	return time.Duration(min(each*float64(output)+prompt, 1e9) * 1e9), serves
}
