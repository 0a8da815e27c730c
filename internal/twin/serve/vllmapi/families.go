package vllmapi

import (
	"maps"
	"strconv"

	"pitot/internal/twin/serve/prom"
)

// expose writes what a vLLM 0.32 server writes of its process, its engine and
// its routes: the same families in the same
// order, with the same labels and buckets.
func (a *api) expose(r *reading, web *prom.HTTP) []byte {
	x := prom.NewPage(a.Began)
	x.Python()
	x.Process()
	x.Labels = map[string]string{"engine": "0", "model_name": a.Name}
	series := func(v float64) prom.Series { return prom.Series{Value: v} }
	with := func(v float64, labels ...string) prom.Series { return prom.Series{Value: v, Labels: labels} }
	e := &r.engine

	if len(e.AcceptedPerPosition) > 0 {
		x.Counter("vllm:spec_decode_num_drafts", "Verifications of draft tokens.", series(float64(e.Drafts)))
		x.Counter("vllm:spec_decode_num_draft_tokens", "Draft tokens that were verified.", series(float64(e.DraftTokens)))
		x.Counter("vllm:spec_decode_num_accepted_tokens", "Draft tokens that were accepted.", series(float64(e.AcceptedTokens)))
		var positions []prom.Series
		for i, n := range e.AcceptedPerPosition {
			positions = append(positions, with(float64(n), "position", strconv.Itoa(i)))
		}
		x.Counter("vllm:spec_decode_num_accepted_tokens_per_pos", "Draft tokens that were accepted, by their position.", positions...)
	}
	x.Counter("vllm:estimated_flops_per_gpu", "Floating point operations per GPU, not estimated here.", series(0))
	x.Counter("vllm:estimated_read_bytes_per_gpu", "Bytes read from memory per GPU, not estimated here.", series(0))
	x.Counter("vllm:estimated_write_bytes_per_gpu", "Bytes written to memory per GPU, not estimated here.", series(0))
	x.Gauge("vllm:num_requests_running", "Requests that are part of the engine's steps.", series(float64(e.Running)))
	x.Gauge("vllm:num_requests_waiting", "Requests that wait to be scheduled.", series(float64(e.Waiting)))
	x.Gauge("vllm:num_requests_waiting_by_reason", "Requests that wait, by what for: capacity, or something that passes (deferred).",
		with(float64(e.Waiting), "reason", "capacity"), with(0, "reason", "deferred"))
	x.Gauge("vllm:engine_sleep_state", "Whether the engine is awake, or what of it is not loaded.",
		with(1, "sleep_state", "awake"), with(0, "sleep_state", "weights_offloaded"), with(0, "sleep_state", "discard_all"))
	x.Gauge("vllm:kv_cache_usage_perc", "Share of the KV cache that is in use, 1 is all.", series(e.KVCacheUsage))
	x.Counter("vllm:prefix_cache_queries", "Tokens looked up in the prefix cache.", series(float64(e.PrefixQueries)))
	x.Counter("vllm:prefix_cache_hits", "Tokens found in the prefix cache.", series(float64(e.PrefixHits)))
	x.Counter("vllm:external_prefix_cache_queries", "Tokens looked up in a cache outside the engine.", series(0))
	x.Counter("vllm:external_prefix_cache_hits", "Tokens found in a cache outside the engine.", series(0))
	x.Counter("vllm:mm_cache_queries", "Items looked up in the multi-modal cache.", series(0))
	x.Counter("vllm:mm_cache_hits", "Items found in the multi-modal cache.", series(0))
	x.Counter("vllm:num_preemptions", "Preemptions of requests.", series(float64(e.Preemptions)))
	x.Counter("vllm:prompt_tokens", "Tokens of prompts that were processed.", series(float64(r.promptTokens)))
	x.Counter("vllm:prompt_tokens_by_source", "Tokens of prompts, by where their KV came from.",
		with(float64(r.promptTokens-r.cachedTokens), "source", "local_compute"),
		with(float64(r.cachedTokens), "source", "local_cache_hit"), with(0, "source", "external_kv_transfer"))
	x.Counter("vllm:prompt_tokens_cached", "Tokens of prompts that were cached.", series(float64(r.cachedTokens)))
	x.Counter("vllm:prompt_tokens_cached_by_source", "Tokens of prompts that were cached, by the tier that had them.",
		with(float64(e.PrefixHits), "source", "device"), with(0, "source", "host"), with(0, "source", "p2p"),
		with(0, "source", "disk"), with(0, "source", "external_unspecified"))
	x.Counter("vllm:generation_tokens", "Tokens that were generated.", series(float64(r.generationTokens)))
	var success []prom.Series
	for i, reason := range finishReasons {
		success = append(success, with(float64(r.success[i]), "finished_reason", reason))
	}
	x.Counter("vllm:request_success", "Requests that ran to their end, by why it came.", success...)
	rejections(x)
	tokens := r.tokenLimits
	for _, h := range []struct {
		name, help string
		limits     []float64
		h          *prom.Histogram
	}{
		{"request_prompt_tokens", "Tokens of a request's prompt.", tokens, &r.promptLength},
		{"request_generation_tokens", "Tokens generated for a request.", tokens, &r.outputLength},
		{"iteration_tokens_total", "Tokens of a step.", iterationBuckets, &r.iteration},
		{"request_max_num_generation_tokens", "Tokens of the longest answer to a request.", tokens, &r.maxOutput},
		{"request_params_n", "Answers that a request asks for.", paramsNBuckets, &r.paramsN},
		{"request_params_max_tokens", "Tokens that an answer may have.", tokens, &r.paramsMaxTokens},
		{"time_to_first_token_seconds", "Time from a request's arrival to its first token.", ttftBuckets, &r.ttft},
		{"inter_token_latency_seconds", "Time between two outputs of a request.", itlBuckets, &r.itl},
		{"request_time_per_output_token_seconds", "Time per token after the first, by request.", itlBuckets, &r.tpot},
		{"e2e_request_latency_seconds", "Time from a request's arrival to its end.", latencyBuckets, &r.e2e},
		{"request_queue_time_seconds", "Time a request waited to be scheduled.", latencyBuckets, &r.queue},
		{"request_inference_time_seconds", "Time from a request's first step to its last token.", latencyBuckets, &r.inference},
		{"request_prefill_time_seconds", "Time from a request's first step to its first token.", latencyBuckets, &r.prefill},
		{"request_decode_time_seconds", "Time from a request's first token to its last.", latencyBuckets, &r.decode},
		{"request_num_preemptions", "Preemptions of a request.", preemptionBuckets, &r.preemptions},
		{"request_prefill_kv_computed_tokens", "Tokens of a request's prompt that were computed, not cached.", tokens, &r.prefillComputed},
	} {
		x.Histogram("vllm:"+h.name, h.help, h.limits, h.h)
	}
	x.Labels = map[string]string{}
	x.Gauge("vllm:cache_config_info", "Settings of the KV cache.", with(1, a.cacheConfig()...))
	web.Expose(x)
	x.Labels["model_name"] = a.Name
	x.Counter("vllm:tool_call_parser_invocations", "Outputs that were looked through for calls of tools: of a stream each delta, otherwise each choice.", a.parsing.series()...)
	return x.Bytes()
}

// rejections are counted by a front end, which has no engine's number.
func rejections(x *prom.Page) {
	engine := x.Labels["engine"]
	delete(x.Labels, "engine")
	x.Counter("vllm:admission_rejections", "Requests turned away by a limit of the queue.",
		prom.Series{Labels: []string{"reason", "max_num_queued_reqs"}}, prom.Series{Labels: []string{"reason", "max_num_queued_tokens"}})
	x.Labels["engine"] = engine
}

// cacheConfig are the labels of cache_config_info: vLLM's defaults, and what
// is known of this engine.
func (a *api) cacheConfig() []string {
	labels := map[string]string{
		"_block_size_resolved": "True", "cache_dtype": "auto", "enable_prefix_caching": "True", "engine": "0",
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
		labels["kv_cache_max_concurrency"] = prom.Float(float64(blocks*a.BlockSize) / float64(a.MaxModelLen))
	}
	maps.Copy(labels, a.Cache)
	var list []string
	for name, value := range labels {
		list = append(list, name, value)
	}
	return list
}
