// Package sglang is SGLang: its names of settings, how it starts, its servers. Its scheduler
// is package sim/sglang, its API server sim/serve/sglangapi.
package sglang

import (
	_ "embed" // the names of its flags
	"slices"
	"strconv"
	"strings"

	"pitot/internal/say"
	"pitot/internal/sim"
	"pitot/internal/sim/engine"
	"pitot/internal/sim/serve/dialect"
	"pitot/internal/sim/serve/native"
	"pitot/internal/sim/serve/sglangapi"
	"pitot/internal/sim/sglang"
	"pitot/internal/telemetry"
)

//go:embed flags.txt
var flags string

//go:embed signals.txt
var signals string

// own are settings that vLLM has none like.
type own struct {
	policy           string
	conservativeness float64
	maxPrefill       int
	mixed            bool
}

func (o *own) setPolicy(v string) error {
	if o.policy = strings.ToLower(v); !slices.Contains(sglang.Policies(), o.policy) {
		return say.Errorf("%q is not modelled", v).WithHint(say.KnownHint(v, sglang.Policies()))
	}
	return nil
}

// Kind is SGLang.
var Kind = engine.Kind{
	Name: "sglang", Title: "SGLang",
	Settings: []engine.Setting{
		{Name: "max_running_requests", Like: "max_num_seqs", Field: func(c *engine.Config) any { return engine.Positive(&c.Settings.MaxNumSeqs) }},
		{Name: "chunked_prefill_size", Like: "max_num_batched_tokens", Field: func(c *engine.Config) any { return engine.Positive(&c.Settings.MaxNumBatchedTokens) }},
		{Name: "max_prefill_tokens", Field: engine.OwnField(func(o *own) any { return engine.Positive(&o.maxPrefill) })},
		{Name: "context_length", Like: "max_model_len", Field: func(c *engine.Config) any { return engine.Positive(&c.Settings.MaxModelLen) }},
		{Name: "max_total_tokens", Like: "num_gpu_blocks_override", Field: func(c *engine.Config) any { return engine.Positive(&c.Settings.NumGPUBlocks) }},
		{Name: "mem_fraction_static", Like: "gpu_memory_utilization", Field: func(c *engine.Config) any { return &c.MemoryUtilization }},
		{Name: "schedule_policy", Like: "scheduling_policy", Field: engine.OwnField(func(o *own) any { return o.setPolicy })},
		{Name: "schedule_conservativeness", Field: engine.OwnField(func(o *own) any { return &o.conservativeness })},
		{Name: "enable_mixed_chunk", Field: engine.OwnField(func(o *own) any { return &o.mixed })},
		{Name: "disable_overlap_schedule", Like: "async_scheduling", Opposite: true, Field: func(c *engine.Config) any { return engine.Negated(&c.Settings.AsyncScheduling) }},
		{Name: "disable_radix_cache", Like: "enable_prefix_caching", Opposite: true, Field: func(c *engine.Config) any { return engine.Negated(&c.Settings.EnablePrefixCaching) }},
		{Name: "cuda_graph_max_bs", Like: "max_cudagraph_capture_size", Field: func(c *engine.Config) any { return engine.Positive(&c.CaptureSize) }},
	},
	Lacks: []string{
		"block_size", "num_speculative_tokens", "num_speculative_tokens_per_batch_size", "speculative_method", "parallel_drafting", "acceptance_rate",
		"slow_cv", "slow_time", "frontend_jitter", "frontend_contention", "api_server_count",
	},
	Unmodelled: map[string]string{"api_server_count": "tokenizer_worker_num"},
	Values:     map[string]map[string]string{"kv_cache_dtype": {"fp8": "fp8_e4m3"}},
	Own:        own{policy: "fcfs", conservativeness: 1, maxPrefill: 16384},
	Scheduler: engine.Scheduler{
		Complete: completeConfig,
		New: func(c *engine.Config, seed uint64, cost sim.Cost) sim.Model {
			return sglang.New(settings(c, seed), cost)
		},
		Facts: func(c *engine.Config, to map[string]string) {
			o, _ := c.Own.(own)
			to["max_total_tokens"], to["schedule_policy"] = strconv.Itoa(c.Settings.KVTokens()), o.policy
			to["schedule_conservativeness"] = strconv.FormatFloat(o.conservativeness, 'g', -1, 64)
		},
		Knobs: []engine.Knob{
			{Name: "schedule_conservativeness", Relieves: []string{"KV cache"}, From: "1", To: []string{"0.3", "1.3"}}, // less of a request's answer is kept free for it
		},
	},
	Server: engine.Server{
		Metrics:     telemetry.Source{Name: "sglang", Known: telemetry.Documented, Names: telemetry.ParseNames(signals)},
		VersionPath: "/get_server_info", SettingsPath: "/get_server_info", // of two names of that route earlier versions have this alone
		Face: engine.Face{About: " (/generate)", Open: openAPI, APIs: []string{"sglang"}},
	},
	Launch: engine.Launch{
		Command: func(model string) []string {
			return []string{"python", "-m", "sglang.launch_server", "--model-path", model, "--host", "0.0.0.0", "--port", "8000"}
		},
		TensorParallel: "tp_size", DataParallel: "dp_size", Image: "lmsysorg/sglang", OnlyTrue: true, Flags: flags,
		Starts: []string{"sglang"},
		Logged: `server_args=(ServerArgs\(.*\))`,
		Router: []string{"python", "-m", "sglang_router.launch_router"}, RouterPackage: "sglang-router",
	},
	// Flags (server_args.py) and metrics (metrics_collector.py of 0.5.23).
	Wording: engine.Wording{
		"max_num_seqs", "max_running_requests", "max_num_batched_tokens", "chunked_prefill_size",
		"gpu_memory_utilization", "mem_fraction_static", "tensor_parallel_size", "tp_size", "api-server-count", "tokenizer-worker-num",
		"vllm:num_requests_running", "sglang:num_running_reqs", "vllm:num_requests_waiting", "sglang:num_queue_reqs",
		"vllm:kv_cache_usage_perc", "sglang:token_usage", "vllm:num_preemptions", "sglang:num_retracted_requests_total",
		"hits ÷ queries of vllm:prefix_cache grow", "sglang:cache_hit_rate grows",
		"cached_tokens of a prompt that is sent twice", "cached_tokens of a prompt that is sent twice (reported with --enable-cache-report)",
	},
}

// openAPI opens its API server, with its own route beside OpenAI's.
func openAPI(s dialect.Served) dialect.Dialect {
	return widened{sglangapi.Open(s), []dialect.Route{native.GenerateRoute(s)}}
}

// widened is a dialect with more routes.
type widened struct {
	dialect.Dialect
	more []dialect.Route
}

// Routes implements [dialect.Dialect].
func (w widened) Routes() []dialect.Route { return append(w.Dialect.Routes(), w.more...) }

// completeConfig works out what was left open as SGLang does (memory_hook.py,
// kv_cache_configurator.py of 0.5.23).
func completeConfig(c *engine.Config, h *engine.Host) error {
	s, m := &c.Settings, h.MemoryGiB
	chunk, graphs := 16384, 512
	switch {
	case m < 20:
		chunk, graphs = 2048, 8
	case m < 35:
		chunk, graphs = 4096, 48
	case m < 60:
		chunk, graphs = 4096, 32
	case m < 160:
		chunk, graphs = 8192, 256
	}
	if h.TensorParallel >= 4 && m >= 20 {
		graphs = max(min(graphs*5, 512), 160)
	}
	if s.MaxNumBatchedTokens == engine.Open {
		s.MaxNumBatchedTokens = chunk
	}
	if c.CaptureSize == 0 {
		c.CaptureSize = graphs
	}
	if !h.Given("mem_fraction_static") {
		reserved := 0.5 + 1.5*float64(max(s.MaxNumBatchedTokens, 2048))/1024 + float64(h.TensorParallel)/8 + 2*float64(c.CaptureSize)/1024 // GiB
		if m > 60 {
			reserved = max(reserved, 10)
		}
		c.MemoryUtilization = max((m-reserved)/m, 0.01)
	}
	seats, length := s.MaxNumSeqs, s.MaxModelLen
	if seats == engine.Open {
		s.MaxNumSeqs = 1 // for the account of memory
	}
	s.BlockSize, s.MaxModelLen = 1, engine.Auto
	if s.NumGPUBlocks > 0 {
		s.NumGPUBlocks++ // vLLM's null block
	}
	if err := h.Fit(); err != nil {
		return err
	}
	tokens := s.KVTokens()
	s.MaxModelLen = min(h.MaxPosition, tokens-2)
	if length > 0 {
		s.MaxModelLen = min(length, tokens-2)
	}
	if s.MaxNumSeqs = seats; seats == engine.Open {
		s.MaxNumSeqs = min(max(int(float64(tokens)/float64(h.MaxPosition)*512), 2048), 4096)
	}
	x := settings(c, 0)
	if err := x.Check(); err != nil {
		return say.Errorf("impossible engine settings: %v", err).WithHint("the settings are SGLang's; schedule_policy is one of fcfs, lpm, dfs-weight, lof, shortest-prefill-first")
	}
	h.Note("SGLang's scheduler on the step times of vLLM's kernels and host, with pages of one token; admission is tested against SGLang's code, times are not tested against a running server")
	return nil
}

// settings are those of the scheduler.
func settings(c *engine.Config, seed uint64) sglang.Settings {
	s := &c.Settings
	o, _ := c.Own.(own)
	return sglang.Settings{
		MaxRunningRequests: s.MaxNumSeqs, MaxTotalTokens: s.KVTokens(), ContextLength: s.MaxModelLen, ChunkedPrefillSize: s.MaxNumBatchedTokens,
		MaxPrefillTokens: o.maxPrefill, SchedulePolicy: o.policy, ScheduleConservativeness: o.conservativeness,
		EnableMixedChunk: o.mixed, DisableOverlapSchedule: !s.AsyncScheduling, DisableRadixCache: !s.EnablePrefixCaching, StreamInterval: s.StreamInterval,
		Frontend: s.Frontend, StepJitter: s.StepJitter, Seed: seed,
	}
}
