package vllmapi

import (
	"maps"
	"slices"
	"strconv"

	"pitot/internal/twin/serve/prom"
)

// writeMetrics writes what a vLLM 0.32 server writes of its process, its engines and
// its routes: the same families in the same
// order, with the same labels and buckets.
func (a *api) writeMetrics(engines []reading, tokens []float64, web *prom.HTTP) []byte {
	x := prom.NewPage(a.Began)
	x.WritePython()
	x.WriteProcess()
	x.Labels = map[string]string{"model_name": a.Name}
	// each is a series of every engine, of several labels all engines of one after the other.
	each := func(of func(r *reading) float64, labels ...string) (all []prom.Series) {
		for i := range engines {
			all = append(all, prom.Series{Value: of(&engines[i]), Labels: append([]string{"engine", strconv.Itoa(i)}, labels...)})
		}
		return all
	}
	fixed := func(v float64) func(*reading) float64 { return func(*reading) float64 { return v } }
	counted := func(of func(r *reading) int64) func(*reading) float64 {
		return func(r *reading) float64 { return float64(of(r)) }
	}
	waiting := func(r *reading) float64 { return float64(r.engine.Waiting) }

	if positions := len(engines[0].engine.AcceptedPerPosition); positions > 0 {
		x.WriteCounter("vllm:spec_decode_num_drafts", "Verifications of draft tokens.", each(counted(func(r *reading) int64 { return r.engine.Drafts }))...)
		x.WriteCounter("vllm:spec_decode_num_draft_tokens", "Draft tokens that were verified.", each(counted(func(r *reading) int64 { return r.engine.DraftTokens }))...)
		x.WriteCounter("vllm:spec_decode_num_accepted_tokens", "Draft tokens that were accepted.", each(counted(func(r *reading) int64 { return r.engine.AcceptedTokens }))...)
		var all []prom.Series
		for i := range positions {
			all = append(all, each(counted(func(r *reading) int64 { return r.engine.AcceptedPerPosition[i] }), "position", strconv.Itoa(i))...)
		}
		x.WriteCounter("vllm:spec_decode_num_accepted_tokens_per_pos", "Draft tokens that were accepted, by their position.", all...)
	}
	x.WriteCounter("vllm:estimated_flops_per_gpu", "Floating point operations per GPU, not estimated here.", each(fixed(0))...)
	x.WriteCounter("vllm:estimated_read_bytes_per_gpu", "Bytes read from memory per GPU, not estimated here.", each(fixed(0))...)
	x.WriteCounter("vllm:estimated_write_bytes_per_gpu", "Bytes written to memory per GPU, not estimated here.", each(fixed(0))...)
	x.WriteGauge("vllm:num_requests_running", "Requests that are part of the engine's steps.", each(func(r *reading) float64 { return float64(r.engine.Running) })...)
	x.WriteGauge("vllm:num_requests_waiting", "Requests that wait to be scheduled.", each(waiting)...)
	x.WriteGauge("vllm:num_requests_waiting_by_reason", "Requests that wait, by what for: capacity, or something that passes (deferred).",
		slices.Concat(each(waiting, "reason", "capacity"), each(fixed(0), "reason", "deferred"))...)
	x.WriteGauge("vllm:engine_sleep_state", "Whether the engine is awake, or what of it is not loaded.",
		slices.Concat(each(fixed(1), "sleep_state", "awake"), each(fixed(0), "sleep_state", "weights_offloaded"), each(fixed(0), "sleep_state", "discard_all"))...)
	x.WriteGauge("vllm:kv_cache_usage_perc", "Share of the KV cache that is in use, 1 is all.", each(func(r *reading) float64 { return r.engine.KVCacheUsage })...)
	hits := counted(func(r *reading) int64 { return r.engine.PrefixHits })
	x.WriteCounter("vllm:prefix_cache_queries", "Tokens looked up in the prefix cache.", each(counted(func(r *reading) int64 { return r.engine.PrefixQueries }))...)
	x.WriteCounter("vllm:prefix_cache_hits", "Tokens found in the prefix cache.", each(hits)...)
	x.WriteCounter("vllm:external_prefix_cache_queries", "Tokens looked up in a cache outside the engine.", each(fixed(0))...)
	x.WriteCounter("vllm:external_prefix_cache_hits", "Tokens found in a cache outside the engine.", each(fixed(0))...)
	x.WriteCounter("vllm:mm_cache_queries", "Items looked up in the multi-modal cache.", each(fixed(0))...)
	x.WriteCounter("vllm:mm_cache_hits", "Items found in the multi-modal cache.", each(fixed(0))...)
	x.WriteCounter("vllm:num_preemptions", "Preemptions of requests.", each(counted(func(r *reading) int64 { return r.engine.Preemptions }))...)
	prompt, cached := counted(func(r *reading) int64 { return r.promptTokens }), counted(func(r *reading) int64 { return r.cachedTokens })
	x.WriteCounter("vllm:prompt_tokens", "Tokens of prompts that were processed.", each(prompt)...)
	x.WriteCounter("vllm:prompt_tokens_by_source", "Tokens of prompts, by where their KV came from.",
		slices.Concat(each(func(r *reading) float64 { return prompt(r) - cached(r) }, "source", "local_compute"),
			each(cached, "source", "local_cache_hit"), each(fixed(0), "source", "external_kv_transfer"))...)
	x.WriteCounter("vllm:prompt_tokens_cached", "Tokens of prompts that were cached.", each(cached)...)
	x.WriteCounter("vllm:prompt_tokens_cached_by_source", "Tokens of prompts that were cached, by the tier that had them.",
		slices.Concat(each(hits, "source", "device"), each(fixed(0), "source", "host"), each(fixed(0), "source", "p2p"),
			each(fixed(0), "source", "disk"), each(fixed(0), "source", "external_unspecified"))...)
	x.WriteCounter("vllm:generation_tokens", "Tokens that were generated.", each(counted(func(r *reading) int64 { return r.generationTokens }))...)
	var success []prom.Series
	for i, reason := range finishReasons {
		success = append(success, each(counted(func(r *reading) int64 { return r.success[i] }), "finished_reason", reason)...)
	}
	x.WriteCounter("vllm:request_success", "Requests that ran to their end, by why it came.", success...)
	x.WriteCounter("vllm:admission_rejections", "Requests turned away by a limit of the queue.", // counted by a front end, which has no engine's number
		prom.Series{Labels: []string{"reason", "max_num_queued_reqs"}}, prom.Series{Labels: []string{"reason", "max_num_queued_tokens"}})
	for _, h := range []struct {
		name, help string
		limits     []float64
		of         func(r *reading) *prom.Histogram
	}{
		{"request_prompt_tokens", "Tokens of a request's prompt.", tokens, func(r *reading) *prom.Histogram { return &r.promptLength }},
		{"request_generation_tokens", "Tokens generated for a request.", tokens, func(r *reading) *prom.Histogram { return &r.outputLength }},
		{"iteration_tokens_total", "Tokens of a step.", iterationBuckets, func(r *reading) *prom.Histogram { return &r.iteration }},
		{"request_max_num_generation_tokens", "Tokens of the longest answer to a request.", tokens, func(r *reading) *prom.Histogram { return &r.maxOutput }},
		{"request_params_n", "Answers that a request asks for.", paramsNBuckets, func(r *reading) *prom.Histogram { return &r.paramsN }},
		{"request_params_max_tokens", "Tokens that an answer may have.", tokens, func(r *reading) *prom.Histogram { return &r.paramsMaxTokens }},
		{"time_to_first_token_seconds", "Time from a request's arrival to its first token.", ttftBuckets, func(r *reading) *prom.Histogram { return &r.ttft }},
		{"inter_token_latency_seconds", "Time between two outputs of a request.", itlBuckets, func(r *reading) *prom.Histogram { return &r.itl }},
		{"request_time_per_output_token_seconds", "Time per token after the first, by request.", itlBuckets, func(r *reading) *prom.Histogram { return &r.tpot }},
		{"e2e_request_latency_seconds", "Time from a request's arrival to its end.", latencyBuckets, func(r *reading) *prom.Histogram { return &r.e2e }},
		{"request_queue_time_seconds", "Time a request waited to be scheduled.", latencyBuckets, func(r *reading) *prom.Histogram { return &r.queue }},
		{"request_inference_time_seconds", "Time from a request's first step to its last token.", latencyBuckets, func(r *reading) *prom.Histogram { return &r.inference }},
		{"request_prefill_time_seconds", "Time from a request's first step to its first token.", latencyBuckets, func(r *reading) *prom.Histogram { return &r.prefill }},
		{"request_decode_time_seconds", "Time from a request's first token to its last.", latencyBuckets, func(r *reading) *prom.Histogram { return &r.decode }},
		{"request_num_preemptions", "Preemptions of a request.", preemptionBuckets, func(r *reading) *prom.Histogram { return &r.preemptions }},
		{"request_prefill_kv_computed_tokens", "Tokens of a request's prompt that were computed, not cached.", tokens, func(r *reading) *prom.Histogram { return &r.prefillComputed }},
	} {
		var all []prom.Distribution
		for i := range engines {
			all = append(all, prom.Distribution{Histogram: h.of(&engines[i]), Labels: []string{"engine", strconv.Itoa(i)}})
		}
		x.WriteHistogram("vllm:"+h.name, h.help, h.limits, all...)
	}
	x.Labels = map[string]string{}
	x.WriteGauge("vllm:cache_config_info", "Settings of the KV cache.", each(fixed(1), a.cacheConfig()...)...)
	web.Expose(x)
	x.Labels["model_name"] = a.Name
	x.WriteCounter("vllm:tool_call_parser_invocations", "Outputs that were looked through for calls of tools: of a stream each delta, otherwise each choice.", a.parsing.countSeries()...)
	return x.Bytes()
}

// cacheConfig are the labels of cache_config_info: vLLM's defaults, and what
// is known of this engine.
func (a *api) cacheConfig() []string {
	labels := map[string]string{
		"_block_size_resolved": "True", "cache_dtype": "auto", "enable_prefix_caching": "True",
		"enable_mamba_shared_prefix_checkpoint": "False", "gpu_memory_utilization": "0.92", "is_attention_free": "False",
		"kv_cache_dtype_skip_layers": "[]", "kv_offloading_backend": "native", "kv_sharing_fast_prefill": "False",
		"mamba_cache_dtype": "auto", "mamba_cache_mode": "none", "mamba_ssm_cache_dtype": "float32",
		"prefix_cache_retention_interval": "0", "prefix_caching_hash_algo": "sha256", "replayssm_buffer_len": "16",
		"swa_bounded_replay": "True", "use_kda_recoverssm": "False", "use_replayssm": "False", "user_specified_block_size": "False",
	}
	for _, unset := range []string{
		"block_size", "cache_hit_alignment_tokens", "effective_attention_block_size", "hash_block_size", "kv_cache_layout",
		"kv_cache_max_concurrency", "kv_cache_memory_bytes", "kv_cache_size_tokens", "kv_offloading_size", "mamba_block_size",
		"mamba_page_size_padded", "num_cpu_blocks", "num_gpu_blocks", "num_gpu_blocks_override", "prefix_match_unit",
		"skip_page_size_padded", "sliding_window",
	} {
		labels[unset] = "None"
	}
	if blocks, err := strconv.Atoi(a.Cache["num_gpu_blocks"]); err == nil && a.BlockSize > 0 {
		size := strconv.Itoa(a.BlockSize)
		labels["block_size"], labels["effective_attention_block_size"] = size, size
		labels["kv_cache_size_tokens"] = strconv.Itoa(blocks * a.BlockSize)
		labels["kv_cache_max_concurrency"] = prom.FormatFloat(float64(blocks*a.BlockSize) / float64(a.MaxModelLen))
	}
	maps.Copy(labels, a.Cache)
	var list []string
	for name, value := range labels {
		list = append(list, name, value)
	}
	return list
}
