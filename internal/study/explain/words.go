package explain

import (
	"fmt"

	"pitot/internal/data/metric"
)

// words holds the phrases for a cause of a symptom, and what to do about it where no twin was
// simulated.
type words struct {
	claim   string
	confirm string // what would confirm or refute it
	knob    string
	to      string
}

// Names translates vLLM's names to those of an engine: settings, their values, and all of these and
// its metrics in a text. nil is vLLM.
type Names interface {
	Knob(name string) string
	KnobValue(name, value string) string
	Words(text string) string
}

// InWords is a text that has vLLM's names of settings and metrics, with those of another
// engine.
func InWords(names Names, text string) string {
	if names == nil {
		return text
	}
	return names.Words(text)
}

// wordingFor is the wording for an engine.
func wordingFor(names Names, cause Cause, of metric.Name, f Facts) words {
	w := wording(cause, of, f)
	if names == nil {
		return w
	}
	w.knob, w.to = names.Knob(w.knob), names.KnobValue(w.knob, w.to)
	w.claim, w.confirm, w.knob = names.Words(w.claim), names.Words(w.confirm), names.Words(w.knob)
	return w
}

// wording is that of a cause and a metric, in vLLM's names.
func wording(cause Cause, of metric.Name, f Facts) words {
	w := wordings[cause]
	switch {
	case cause == Proxy && !isBuffered(f):
		w.claim = "something on the way takes time for each request: a slow proxy, or the way beyond"
		w.knob, w.to = "", ""
	case cause == Freezes && f.Get(FrozenInTail) < f.Get(StoppedInTail):
		w.claim = "the server stands still now and then: for all streams at once, and for no prompt"
		w.confirm = "what its log and its machine show at these times: a collector of garbage, a swap"
	case cause == Throttling:
		return throttledWords(w, f)
	case cause == PrefixCache && f.Get(HitShare) > 0.01: // it is on
		w.claim = "prompts that were computed before are computed again: the prefix cache does not hold all that they have in common"
		w.confirm = "half as many different prefixes at this load: hits ÷ queries of vllm:prefix_cache grow"
		w.knob, w.to = "gpu_memory_utilization", "higher"
	case cause == Compute && of == metric.TTFT:
		w.claim = "computing prompts takes the time, their own or those of requests before them"
	case cause == Compute:
		w.claim = "prompts in the way of answers: steps that compute others' prompts are long for all that decode"
		w.knob, w.to = "max_num_batched_tokens", "half"
	case cause == Bandwidth && of == metric.TTFT:
		w.claim = "requests wait for steps that are bound by reading weights and KV cache"
	}
	return w
}

// throttledWords is the wording of a clock that is held down, as far as is known by what. A
// power limit that is as high as the board has it is not advised to be raised: fewer bits
// move and multiply for less energy.
func throttledWords(w words, f Facts) words {
	power, heat := f.Get(ByPower) >= heldShare, f.Get(ByHeat) >= heldShare
	if !f.hasAll(ByPower, ByHeat) || !power && !heat {
		return w
	}
	w.confirm = "" // the GPU has said so
	limit := "its power limit"
	if f.hasAll(PowerLimit) {
		limit += fmt.Sprintf(" of %.0f W", f.Get(PowerLimit))
	}
	highest := ""
	switch most := f.Get(PowerMost); {
	case !f.hasAll(PowerLimit, PowerMost):
		w.to = "higher, where the board allows it"
	case f.Get(PowerLimit) < 0.99*most:
		w.to = fmt.Sprintf("%.0f W", most)
	default:
		highest = " (the board's highest)"
		w.knob, w.to = "quantization", "fp8"
	}
	switch {
	case power && heat:
		w.claim = "the GPU's clock is held down by its heat and by " + limit + highest
	case power:
		w.claim = "the GPU's clock is held down by " + limit + highest + " and not by heat"
	default:
		w.claim = "the GPU's clock is held down by its heat, not by its power limit"
		w.knob, w.to = "cooling", "better"
	}
	return w
}

var wordings = map[Cause]words{
	Client: {"the client itself is late: requests wait in it to be sent",
		"pitot check measures this client", "", ""},
	Hold: {"the client holds requests back: they wait in it for one of --max-in-flight slots",
		"the same load without --max-in-flight", "", ""},
	Steps: {"the engine's own decode steps take the time, not what is around it",
		"say what serves with --deployment MODEL@GPU: twins tell of what", "", ""},
	Network: {"the way to the server: a round trip of the network is a large part of it",
		"measure from a machine beside the server", "", ""},
	Proxy: {"something between holds tokens back and lets them go by the clock: a proxy that buffers the stream",
		"measure the server's own port, without what stands in front of it", "proxy buffering", "off"},
	Foreign: {"others use the server: it did work that was not asked for here",
		"empty the server of other clients and measure again", "", ""},
	Throttling: {"the GPU's clock is held down, by its power or its heat",
		"nvidia-smi -q -d PERFORMANCE names the reason while the load lasts", "power limit", "higher"},
	Freezes: {"the server stands still by the clock: for all streams at once, again and again after the same time",
		"look at what runs on its machine with that period: a quota of the processor, a collector of garbage, a scrape", "", ""},
	Frontend: {"the API server: requests wait in front of the engine or their tokens behind it, on its one thread",
		"top -H on the server: one thread of the API server at 100 %", "api-server-count", "2"},
	KVCache: {"the KV cache is full: requests wait for blocks, or are thrown out and computed again",
		"vllm:kv_cache_usage_perc near 1, or vllm:num_preemptions that grows, at this load", "kv_cache_dtype", "fp8"},
	Seats: {"requests wait for one of max_num_seqs places while memory would hold more",
		"vllm:num_requests_running stands at max_num_seqs while vllm:num_requests_waiting is above 0", "max_num_seqs", "twice"},
	Budget: {"the token budget of a step is too small: prompts take several steps and wait for them",
		"TTFT at one user against the prompt's length: a stair of the budget's height", "max_num_batched_tokens", "twice"},
	PrefixCache: {"prompts that were computed before are computed again: the prefix cache is off or loses them",
		"usage.prompt_tokens_details.cached_tokens of a prompt that is sent twice", "enable_prefix_caching", "true"},
	Host: {"the host: between the GPU's kernels a step waits for the processor",
		"a profile of one step (torch profiler): gaps between kernels", "async_scheduling", "true"},
	Links: {"the links between GPUs: all-reduces take a large part of a step",
		"tensor parallelism of half as many GPUs at one user", "tensor_parallel_size", "half"},
	Compute: {"computing: steps are so full that operations, not memory, take the time",
		"half the load: what does not get better is not computing", "quantization", "fp8"},
	Bandwidth: {"memory bandwidth: each token waits for weights and KV cache to be read",
		"TPOT at one user beside bytes ÷ bandwidth (pitot predict)", "quantization", "fp8"},
}
