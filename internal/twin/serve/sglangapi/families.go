package sglangapi

import (
	"math"
	"strconv"

	"pitot/internal/twin/serve/prom"
)

// page writes what SGLang 0.5.23 writes with --enable-metrics: the same families with the same
// labels and buckets. A family has series once there was something to count, as in the real one.
type page struct {
	*prom.Page
	engines []reading
}

// writeMetrics writes the page of all engines.
func (a *api) writeMetrics(engines []reading, web *prom.HTTP) []byte {
	x := &page{prom.NewPage(a.Began), engines}
	x.Joined = true
	x.WriteGauge("sglang:routing_keys_active", "Keys of a router that requests under way have, not told here.", prom.Series{})
	web.ExposeCodes(x.Page, "sglang:")
	x.Labels = map[string]string{"model_name": a.Name, "engine_type": "unified"}
	x.writeRequests(a.Aborted())
	x.writeStartup()
	x.Labels["tp_rank"], x.Labels["pp_rank"], x.Labels["moe_ep_rank"] = "0", "0", "0"
	x.writeGauges(a)
	x.writeCounters()
	x.writeHistograms()
	x.Labels = map[string]string{"cache_type": "RadixCache", "tp_rank": "0", "pp_rank": "0"}
	x.writeCache()
	return x.Bytes()
}

// engineLabels are the labels of an engine: of several each has its rank.
func (x *page) engineLabels(i int, labels ...string) []string {
	if len(x.engines) > 1 {
		labels = append(labels, "dp_rank", strconv.Itoa(i))
	}
	return labels
}

// seriesPerEngine is a series of every engine.
func (x *page) seriesPerEngine(of func(r *reading) float64, labels ...string) (all []prom.Series) {
	for i := range x.engines {
		all = append(all, prom.Series{Value: of(&x.engines[i]), Labels: x.engineLabels(i, labels...)})
	}
	return all
}

// countedSeries is a series of every engine that has counted anything.
func (x *page) countedSeries(of func(r *reading) int64, labels ...string) (all []prom.Series) {
	for i := range x.engines {
		if n := of(&x.engines[i]); n > 0 {
			all = append(all, prom.Series{Value: float64(n), Labels: x.engineLabels(i, labels...)})
		}
	}
	return all
}

func zeroValue(*reading) float64 { return 0 }

// writeRequests are the families of the process that takes requests, over all engines.
func (x *page) writeRequests(aborted int64) {
	var all tally
	for i := range x.engines {
		t := &x.engines[i].tally
		for _, stream := range []bool{true, false} {
			to, from := all.tallyFor(stream), t.tallyFor(stream)
			to.requests, to.prompt, to.output = to.requests+from.requests, to.prompt+from.prompt, to.output+from.output
			to.ttft.Add(&from.ttft)
			to.tpot.Add(&from.tpot)
			to.e2e.Add(&from.e2e)
		}
		all.cached += t.cached
		all.itl.Add(&t.itl)
		all.prompt.Add(&t.prompt)
		all.uncached.Add(&t.uncached)
		all.reply.Add(&t.reply)
	}
	ways := func(of func(w *way) int64) (list []prom.Series) {
		for _, stream := range []string{"true", "false"} {
			if w := all.tallyFor(stream == "true"); w.requests > 0 {
				list = append(list, prom.Series{Value: float64(of(w)), Labels: []string{"is_streaming", stream}})
			}
		}
		return list
	}
	spread := func(name, help string, limits []float64, of func(w *way) *prom.Histogram) {
		var list []prom.Distribution
		for _, stream := range []string{"true", "false"} {
			if h := of(all.tallyFor(stream == "true")); h.N() > 0 {
				list = append(list, prom.Distribution{Histogram: h, Labels: []string{"is_streaming", stream}})
			}
		}
		x.WriteHistogram(name, help, limits, list...)
	}
	one := func(name, help string, limits []float64, h *prom.Histogram) {
		if h.N() > 0 {
			x.WriteHistogram(name, help, limits, prom.Distribution{Histogram: h})
		}
	}
	x.WriteCounter("sglang:prompt_tokens", "Tokens of the prompts of requests that ended.", ways(func(w *way) int64 { return w.prompt })...)
	x.WriteCounter("sglang:generation_tokens", "Tokens of the answers that ended.", ways(func(w *way) int64 { return w.output })...)
	if all.cached > 0 {
		x.WriteCounter("sglang:cached_tokens", "Tokens of prompts that were cached, by where.", prom.Series{Value: float64(all.cached), Labels: []string{"cache_source", "device"}})
	}
	if aborted > 0 {
		x.WriteCounter("sglang:num_aborted_requests", "Requests whose client left.", prom.Series{Value: float64(aborted)})
	}
	x.WriteCounter("sglang:num_requests", "Requests that ended.", ways(func(w *way) int64 { return w.requests })...)
	spread("sglang:time_to_first_token_seconds", "Time from a request's arrival to its first token.", ttftBuckets, func(w *way) *prom.Histogram { return &w.ttft })
	one("sglang:inter_token_latency_seconds", "Time between two tokens of an answer.", itlBuckets, &all.itl)
	spread("sglang:e2e_request_latency_seconds", "Time from a request's arrival to its end.", e2eBuckets, func(w *way) *prom.Histogram { return &w.e2e })
	spread("sglang:request_time_per_output_token_seconds", "Time per token after the first, by request.", itlBuckets, func(w *way) *prom.Histogram { return &w.tpot })
	one("sglang:prompt_tokens_histogram", "Tokens of a prompt.", tokenBuckets, &all.prompt)
	one("sglang:uncached_prompt_tokens_histogram", "Tokens of a prompt that were computed.", tokenBuckets, &all.uncached)
	one("sglang:generation_tokens_histogram", "Tokens of an answer.", tokenBuckets, &all.reply)
}

// graphPhases lists the phases that CUDA graphs are recorded for.
var graphPhases = []string{"prefill", "decode", "target_verify", "draft_prefill", "draft_decode", "draft_extend"}

// writeStartup are the families of how the server began: a twin loads nothing.
func (x *page) writeStartup() {
	phases := func(names ...string) (list []prom.Series) {
		for _, name := range names {
			list = append(list, prom.Series{Labels: []string{"phase", name}})
		}
		return list
	}
	x.WriteGauge("sglang:startup_time_seconds", "Time that a phase of the start took, none here.", phases("load_weight", "kv_cache_allocation", "scheduler_e2e", "tokenizer_e2e")...)
	x.WriteGauge("sglang:startup_cuda_graph_time_seconds", "Time that recording CUDA graphs took, none here.", phases(graphPhases...)...)
}

// writeGauges are the families of the scheduler that go up and down.
func (x *page) writeGauges(a *api) {
	context := func(*reading) float64 { return float64(a.MaxModelLen) }
	tokens := func(r *reading) float64 { return float64(r.engine.Radix.Tokens) }
	used := func(r *reading) float64 { return float64(r.engine.Radix.Used) }
	evictable := func(r *reading) float64 { return float64(r.engine.Radix.Evictable) }
	for _, g := range []struct {
		name, help string
		of         func(r *reading) float64
	}{
		{"max_total_num_tokens", "Tokens that fit the KV cache.", tokens},
		{"weight_memory_usage_gb", "Memory of the weights, not told here.", zeroValue},
		{"kv_cache_memory_usage_gb", "Memory of the KV cache, not told here.", zeroValue},
		{"page_size", "Tokens of a page of the KV cache.", func(*reading) float64 { return 1 }},
		{"num_pages", "Pages of the KV cache.", tokens},
		{"context_len", "Tokens that a prompt and its answer may have.", context},
		{"startup_available_gpu_memory_gb", "Memory of the GPU that was free at the start, not told here.", zeroValue},
		{"num_running_reqs", "Requests that are part of the engine's steps.", func(r *reading) float64 { return float64(r.engine.Running) }},
		{"num_queue_reqs", "Requests that wait.", func(r *reading) float64 { return float64(r.engine.Waiting) }},
		{"num_grammar_queue_reqs", "Requests that wait for a grammar, none here.", zeroValue},
		{"gen_throughput", "Tokens generated a second, over forty steps.", func(r *reading) float64 { return r.engine.Radix.Rate }},
		{"cache_hit_rate", "Share of the last prompts' tokens that were cached.", func(r *reading) float64 { return r.engine.Radix.HitShare }},
		{"decode_sum_seq_lens", "Tokens of the requests that go on with their answers.", func(r *reading) float64 { return float64(r.engine.Radix.Context) }},
		{"token_usage", "Share of the KV cache that requests use, to two digits.", func(r *reading) float64 { return math.Round(100*r.engine.KVCacheUsage) / 100 }},
		{"full_token_usage", "Share of the KV cache that requests use.", func(r *reading) float64 { return r.engine.KVCacheUsage }},
		{"swa_token_usage", "The same of layers with a window, none here.", zeroValue},
		{"mamba_usage", "The same of states, none here.", zeroValue},
		{"num_used_tokens", "Tokens of the KV cache that requests use.", used},
		{"kv_available_tokens", "Tokens of the KV cache that are free.", func(r *reading) float64 { return tokens(r) - used(r) - evictable(r) }},
		{"kv_evictable_tokens", "Tokens of the KV cache that could be evicted.", evictable},
		{"kv_used_tokens", "Tokens of the KV cache that requests use.", used},
		{"swa_available_tokens", "Free tokens of layers with a window, none here.", zeroValue},
		{"swa_evictable_tokens", "Evictable tokens of layers with a window, none here.", zeroValue},
		{"swa_used_tokens", "Used tokens of layers with a window, none here.", zeroValue},
		{"mamba_available_tokens", "Free states, none here.", zeroValue},
		{"mamba_evictable_tokens", "Evictable states, none here.", zeroValue},
		{"mamba_used_tokens", "Used states, none here.", zeroValue},
		{"spec_accept_length", "Tokens a verification gives: nothing is drafted here.", zeroValue},
		{"spec_accept_rate", "Share of drafts that are accepted: nothing is drafted here.", zeroValue},
		{"spec_cap_length", "Tokens that drafts are cut to: nothing is drafted here.", zeroValue},
		{"spec_block_accept_length", "Tokens a block gives: nothing is drafted here.", zeroValue},
		{"spec_num_steps", "Steps of the draft: nothing is drafted here.", zeroValue},
		{"spec_num_draft_tokens", "Tokens drafted at once: nothing is drafted here.", zeroValue},
		{"num_prefill_bootstrap_queue_reqs", "Requests that wait for a decoding server: this one does both.", zeroValue},
		{"num_prefill_inflight_queue_reqs", "Requests whose KV is being sent: this one does both.", zeroValue},
		{"num_decode_prealloc_queue_reqs", "Requests that wait for room to be sent to: this one does both.", zeroValue},
		{"num_decode_transfer_queue_reqs", "Requests whose KV is being received: this one does both.", zeroValue},
		{"num_decode_host_receive_queue_reqs", "Requests received by the host: this one does both.", zeroValue},
		{"num_decode_deferred_kv_release_reqs", "Requests whose KV is freed later: this one does both.", zeroValue},
		{"pending_prealloc_token_usage", "Share of the KV cache that is promised: this one does both.", zeroValue},
		{"prealloc_full_token_usage", "Share of the KV cache that is awaited: this one does both.", zeroValue},
		{"prealloc_swa_token_usage", "The same of layers with a window: this one does both.", zeroValue},
		{"utilization", "Load against a limit that is not set.", zeroValue},
		{"fwd_occupancy", "Share of the time in which the GPU works, not measured here.", func(*reading) float64 { return math.NaN() }},
		{"new_token_ratio", "Share of the rest of their answers that running requests are promised.", func(r *reading) float64 { return r.engine.Radix.Promised }},
		{"is_cuda_graph", "Whether the last step ran as a CUDA graph, not told here.", zeroValue},
		{"num_unique_running_routing_keys", "Keys of a router that running requests have, not told here.", zeroValue},
	} {
		x.WriteGauge("sglang:"+g.name, g.help, x.seriesPerEngine(g.of)...)
	}
	for _, name := range []string{"retracted", "paused"} { // the real ones tell these of each process
		x.WriteGauge("sglang:num_"+name+"_reqs", "Requests that were "+name+" since the last report: only totals here.", x.seriesPerEngine(zeroValue, "pid", "1")...)
	}
	var graphs []prom.Series
	for _, phase := range graphPhases {
		graphs = append(graphs, x.seriesPerEngine(zeroValue, "phase", phase)...)
	}
	x.WriteGauge("sglang:graph_memory_usage_gb", "Memory of CUDA graphs, not told here.", graphs...)
	bounds := []string{"0", "1", "2", "3", "5", "7", "10", "20", "50", "100", "200", "+Inf"}
	for _, name := range []string{"running", "all"} {
		var keys []prom.Series
		for i := range len(bounds) - 1 {
			keys = append(keys, x.seriesPerEngine(zeroValue, "gt", bounds[i], "le", bounds[i+1])...)
		}
		x.WriteGauge("sglang:routing_key_"+name+"_req_count", "Keys of a router by how many requests have them, not told here.", keys...)
	}
}

// writeCounters are the families of the scheduler that only grow.
func (x *page) writeCounters() {
	join := func(lists ...[]prom.Series) (all []prom.Series) {
		for _, l := range lists {
			all = append(all, l...)
		}
		return all
	}
	x.WriteCounter("sglang:realtime_tokens", "Tokens, by what was done for them, counted as it is done.", join(
		x.countedSeries(func(r *reading) int64 { return r.engine.Radix.Computed }, "mode", "prefill_compute"),
		x.countedSeries(func(r *reading) int64 { return r.engine.Radix.Found }, "mode", "prefill_cache"),
		x.countedSeries(func(r *reading) int64 { return r.engine.GenerationTokens }, "mode", "decode"))...)
	x.WriteCounter("sglang:prefill_effective_tokens", "Tokens of prompts without those of retracted requests, by whether they were cached.", join(
		x.seriesPerEngine(func(r *reading) float64 { return float64(r.engine.Radix.Computed - r.engine.Radix.ComputedAgain) }, "mode", "input"),
		x.seriesPerEngine(func(r *reading) float64 { return float64(r.engine.Radix.Found - r.engine.Radix.FoundAgain) }, "mode", "device_hit"),
		x.seriesPerEngine(zeroValue, "mode", "host_hit"), x.seriesPerEngine(zeroValue, "mode", "storage_hit"))...)
	x.WriteCounter("sglang:cuda_graph_passes", "Steps, by whether they ran as a CUDA graph: of answers all are taken to.", join(
		x.countedSeries(func(r *reading) int64 { return r.engine.Radix.PromptSteps }, "mode", "prefill_none"),
		x.countedSeries(func(r *reading) int64 { return r.engine.Radix.AnswerSteps }, "mode", "decode_cuda_graph"))...)
	retracted := func(r *reading) int64 { return r.engine.Preemptions }
	x.WriteCounter("sglang:num_retracted_requests", "Requests that had to give their memory back.", x.countedSeries(retracted)...)
	x.WriteCounter("sglang:num_retracted_input_tokens", "Tokens of the prompts of these.", x.countedSeries(func(r *reading) int64 { return r.engine.Radix.RetractedPrompt })...)
	x.WriteCounter("sglang:num_retracted_output_tokens", "Tokens of the answers of these.", x.countedSeries(func(r *reading) int64 { return r.engine.Radix.RetractedAnswer })...)
	x.WriteCounter("sglang:scheduler_idle_seconds", "Time in which the scheduler had nothing to do, not measured here.", x.seriesPerEngine(zeroValue)...)
	x.WriteCounter("sglang:scheduler_process_cpu_seconds", "Processor time of the scheduler, not measured here.", x.seriesPerEngine(zeroValue)...)
	var stages []prom.Series
	for _, stage := range []string{
		"other", "recv_requests", "process_input_requests", "get_next_batch_to_run", "process_queue", "run_batch", "process_batch_result", "sanity_check_cache", "idle",
	} {
		stages = append(stages, x.seriesPerEngine(zeroValue, "category", stage, "forward_overlap", "none")...)
	}
	x.WriteCounter("sglang:scheduler_stage_seconds", "Time of the scheduler by stage, not measured here.", stages...)
	for _, f := range []struct{ name, label, a, b string }{
		{"tokens", "kind", "scheduled", "imbalance"}, {"pairs", "kind", "scheduled", "imbalance"}, {"steps", "rank_state", "active", "idle"},
	} {
		x.WriteCounter("sglang:dp_attention_"+f.name, "Balance of ranks that divide attention, none here.", join(x.seriesPerEngine(zeroValue, f.label, f.a), x.seriesPerEngine(zeroValue, f.label, f.b))...)
	}
}

// writeHistograms are those of the scheduler.
func (x *page) writeHistograms() {
	write := func(name, help string, limits []float64, always bool, of func(r *reading) *prom.Histogram, labels ...string) {
		var all []prom.Distribution
		for i := range x.engines {
			if h := of(&x.engines[i]); always || h.N() > 0 {
				all = append(all, prom.Distribution{Histogram: h, Labels: x.engineLabels(i, labels...)})
			}
		}
		x.WriteHistogram(name, help, limits, all...)
	}
	none := func(*reading) *prom.Histogram { return &prom.Histogram{} }
	write("sglang:dp_attention_token_imbalance_ratio", "Balance of ranks that divide attention, none here.", balanceBuckets, true, none)
	write("sglang:dp_attention_sync_wait_seconds", "Time that such ranks wait for each other, none here.", waitBuckets, true, none)
	write("sglang:queue_time_seconds", "Time a request waited to be scheduled.", queueBuckets, false, func(r *reading) *prom.Histogram { return &r.queue })
	var stages []prom.Distribution
	for i := range x.engines {
		for _, s := range []struct {
			name string
			h    *prom.Histogram
		}{{"request_process", &x.engines[i].received}, {"prefill_forward", &x.engines[i].prefill}} {
			if s.h.N() > 0 {
				stages = append(stages, prom.Distribution{Histogram: s.h, Labels: x.engineLabels(i, "stage", s.name)})
			}
		}
	}
	x.WriteHistogram("sglang:per_stage_req_latency_seconds", "Time of a stage of a request.", stageBuckets, stages...)
}

// writeCache are the families of the radix cache.
func (x *page) writeCache() {
	var tokens []prom.Series
	var times []prom.Distribution
	for i := range x.engines {
		r := &x.engines[i].engine.Radix
		if r.Evicted == 0 {
			continue
		}
		labels := []string{"dp_rank", strconv.Itoa(i)}
		tokens = append(tokens, prom.Series{Value: float64(r.Evicted), Labels: labels})
		h := &prom.Histogram{}
		h.ObserveN(evictBuckets, 0, r.Evictions)
		times = append(times, prom.Distribution{Histogram: h, Labels: labels})
	}
	x.WriteCounter("sglang:evicted_tokens", "Tokens that were evicted from the cache.", tokens...)
	x.WriteHistogram("sglang:eviction_duration_seconds", "Time that evicting took, none here.", evictBuckets, times...)
}
