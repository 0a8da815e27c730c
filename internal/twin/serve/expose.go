package serve

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// exposition is a page of metrics in Prometheus' text format, as the Python
// client writes it: labels in the order of their names, floats as Python has
// them, and beside each counter and histogram when it was created.
type exposition struct {
	b       []byte
	labels  map[string]string // of all series
	created float64
}

// series is one line of a family: its own labels, and its value.
type series struct {
	labels []string // name, value, …
	value  float64
}

func (x *exposition) head(name, kind, help string) {
	x.b = append(append(append(append(x.b, "# HELP "...), name...), ' '), help...)
	x.b = append(append(append(append(x.b, "\n# TYPE "...), name...), ' '), kind...)
	x.b = append(x.b, '\n')
}

func (x *exposition) line(name string, labels []string, value float64) {
	all := maps.Clone(x.labels)
	if all == nil {
		all = map[string]string{}
	}
	for i := 0; i+1 < len(labels); i += 2 {
		all[labels[i]] = labels[i+1]
	}
	x.b = append(x.b, name...)
	for i, label := range slices.Sorted(maps.Keys(all)) {
		x.b = append(x.b, "{,"[min(i, 1)])
		x.b = append(append(append(x.b, label...), `="`...), escape.Replace(all[label])...)
		x.b = append(x.b, '"')
	}
	if len(all) > 0 {
		x.b = append(x.b, '}')
	}
	x.b = append(append(x.b, ' '), float(value)...)
	x.b = append(x.b, '\n')
}

// escape is for the values of labels.
var escape = strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)

func (x *exposition) gauge(name, help string, all ...series) {
	x.head(name, "gauge", help)
	for _, s := range all {
		x.line(name, s.labels, s.value)
	}
}

func (x *exposition) counter(name, help string, all ...series) {
	x.head(name+"_total", "counter", help)
	for _, s := range all {
		x.line(name+"_total", s.labels, s.value)
	}
	x.head(name+"_created", "gauge", help)
	for _, s := range all {
		x.line(name+"_created", s.labels, x.created)
	}
}

func (x *exposition) histogram(name, help string, limits []float64, h *buckets) {
	x.head(name, "histogram", help)
	x.buckets(name, nil, limits, h)
	x.head(name+"_created", "gauge", help)
	x.line(name+"_created", nil, x.created)
}

// buckets writes the lines of one histogram.
func (x *exposition) buckets(name string, labels []string, limits []float64, h *buckets) {
	sum := int64(0)
	for i, limit := range limits {
		sum += h.counts[i]
		x.line(name+"_bucket", append([]string{"le", float(limit)}, labels...), float64(sum))
	}
	x.line(name+"_bucket", append([]string{"le", "+Inf"}, labels...), float64(h.n))
	x.line(name+"_count", labels, float64(h.n))
	x.line(name+"_sum", labels, h.sum)
}

// float is v as the Python client writes it (floatToGoString of
// prometheus_client): the shortest form, with an exponent from 10^6 on.
func float(v float64) string {
	if math.IsInf(v, 1) {
		return "+Inf"
	}
	if a := math.Abs(v); a != 0 && (a < 1e-4 || a >= 1e16) {
		return strconv.FormatFloat(v, 'e', -1, 64)
	}
	s := strconv.FormatFloat(v, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	dot := strings.IndexByte(s, '.')
	if v > 0 && dot > 6 {
		mantissa := strings.TrimRight(s[:1]+"."+s[1:dot]+s[dot+1:], "0.")
		return mantissa + "e+0" + strconv.Itoa(dot-1)
	}
	return s
}

// expose writes what a vLLM 0.32 server writes of its process, its engine and
// its routes, but for what only Python has: the same families in the same
// order, with the same labels and buckets.
func (s *Server) expose(r reading) []byte {
	x := &exposition{b: make([]byte, 0, 64<<10), created: s.created}
	x.process()
	x.labels = map[string]string{"engine": "0", "model_name": s.cfg.Model}
	one := func(v float64) series { return series{value: v} }
	with := func(v float64, labels ...string) series { return series{labels, v} }
	e := &r.engine

	if len(e.AcceptedPerPosition) > 0 {
		x.counter("vllm:spec_decode_num_drafts", "Verifications of draft tokens.", one(float64(e.Drafts)))
		x.counter("vllm:spec_decode_num_draft_tokens", "Draft tokens that were verified.", one(float64(e.DraftTokens)))
		x.counter("vllm:spec_decode_num_accepted_tokens", "Draft tokens that were accepted.", one(float64(e.AcceptedTokens)))
		var positions []series
		for i, n := range e.AcceptedPerPosition {
			positions = append(positions, with(float64(n), "position", strconv.Itoa(i)))
		}
		x.counter("vllm:spec_decode_num_accepted_tokens_per_pos", "Draft tokens that were accepted, by their position.", positions...)
	}
	x.counter("vllm:estimated_flops_per_gpu", "Floating point operations per GPU, not estimated here.", one(0))
	x.counter("vllm:estimated_read_bytes_per_gpu", "Bytes read from memory per GPU, not estimated here.", one(0))
	x.counter("vllm:estimated_write_bytes_per_gpu", "Bytes written to memory per GPU, not estimated here.", one(0))
	x.gauge("vllm:num_requests_running", "Requests that are part of the engine's steps.", one(float64(e.Running)))
	x.gauge("vllm:num_requests_waiting", "Requests that wait to be scheduled.", one(float64(e.Waiting)))
	x.gauge("vllm:num_requests_waiting_by_reason", "Requests that wait, by what for: capacity, or something that passes (deferred).",
		with(float64(e.Waiting), "reason", "capacity"), with(0, "reason", "deferred"))
	x.gauge("vllm:engine_sleep_state", "Whether the engine is awake, or what of it is not loaded.",
		with(1, "sleep_state", "awake"), with(0, "sleep_state", "weights_offloaded"), with(0, "sleep_state", "discard_all"))
	x.gauge("vllm:kv_cache_usage_perc", "Share of the KV cache that is in use, 1 is all.", one(e.KVCacheUsage))
	x.counter("vllm:prefix_cache_queries", "Tokens looked up in the prefix cache.", one(float64(e.PrefixQueries)))
	x.counter("vllm:prefix_cache_hits", "Tokens found in the prefix cache.", one(float64(e.PrefixHits)))
	x.counter("vllm:external_prefix_cache_queries", "Tokens looked up in a cache outside the engine.", one(0))
	x.counter("vllm:external_prefix_cache_hits", "Tokens found in a cache outside the engine.", one(0))
	x.counter("vllm:mm_cache_queries", "Items looked up in the multi-modal cache.", one(0))
	x.counter("vllm:mm_cache_hits", "Items found in the multi-modal cache.", one(0))
	x.counter("vllm:num_preemptions", "Preemptions of requests.", one(float64(e.Preemptions)))
	x.counter("vllm:prompt_tokens", "Tokens of prompts that were processed.", one(float64(r.promptTokens)))
	x.counter("vllm:prompt_tokens_by_source", "Tokens of prompts, by where their KV came from.",
		with(float64(r.promptTokens-r.cachedTokens), "source", "local_compute"),
		with(float64(r.cachedTokens), "source", "local_cache_hit"), with(0, "source", "external_kv_transfer"))
	x.counter("vllm:prompt_tokens_cached", "Tokens of prompts that were cached.", one(float64(r.cachedTokens)))
	x.counter("vllm:prompt_tokens_cached_by_source", "Tokens of prompts that were cached, by the tier that had them.",
		with(float64(e.PrefixHits), "source", "device"), with(0, "source", "host"), with(0, "source", "p2p"),
		with(0, "source", "disk"), with(0, "source", "external_unspecified"))
	x.counter("vllm:generation_tokens", "Tokens that were generated.", one(float64(r.generationTokens)))
	var success []series
	for i, reason := range finishReasons {
		success = append(success, with(float64(r.success[i]), "finished_reason", reason))
	}
	x.counter("vllm:request_success", "Requests that ran to their end, by why it came.", success...)
	x.rejections()
	tokens := s.meter.tokenLimits
	for _, h := range []struct {
		name, help string
		limits     []float64
		h          *buckets
	}{
		{"request_prompt_tokens", "Tokens of a request's prompt.", tokens, &r.promptLength},
		{"request_generation_tokens", "Tokens generated for a request.", tokens, &r.outputLength},
		{"iteration_tokens_total", "Tokens of a step.", iterationBuckets, &r.tally.iteration},
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
		x.histogram("vllm:"+h.name, h.help, h.limits, h.h)
	}
	x.labels = map[string]string{}
	x.gauge("vllm:cache_config_info", "Settings of the KV cache.", with(1, s.cacheConfig()...))
	s.web.expose(x)
	return x.b
}

// rejections are counted by a front end, which has no engine's number.
func (x *exposition) rejections() {
	engine := x.labels["engine"]
	delete(x.labels, "engine")
	x.counter("vllm:admission_rejections", "Requests turned away by a limit of the queue.",
		series{[]string{"reason", "max_num_queued_reqs"}, 0}, series{[]string{"reason", "max_num_queued_tokens"}, 0})
	x.labels["engine"] = engine
}

// cacheConfig are the labels of cache_config_info: vLLM's defaults, and what
// is known of this engine.
func (s *Server) cacheConfig() []string {
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
	if blocks, err := strconv.Atoi(s.cfg.Cache["num_gpu_blocks"]); err == nil && s.blockSize > 0 {
		size := strconv.Itoa(s.blockSize)
		labels["block_size"], labels["effective_attention_block_size"] = size, size
		labels["kv_cache_size_tokens"] = strconv.Itoa(blocks * s.blockSize)
		labels["kv_cache_max_concurrency"] = float(float64(blocks*s.blockSize) / float64(s.cfg.MaxModelLen))
	}
	maps.Copy(labels, s.cfg.Cache)
	var list []string
	for name, value := range labels {
		list = append(list, name, value)
	}
	return list
}
