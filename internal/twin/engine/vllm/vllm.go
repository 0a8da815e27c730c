// Package vllm is vLLM: its names of settings, which are the vocabulary, how it starts, its
// servers. Its scheduler is package twin/vllm, its API server twin/serve/vllmapi.
package vllm

import (
	_ "embed" // the names of its flags
	"fmt"
	"slices"
	"time"

	"pitot/internal/say"
	"pitot/internal/telemetry"
	"pitot/internal/twin"
	"pitot/internal/twin/engine"
	"pitot/internal/twin/serve/vllmapi"
	"pitot/internal/twin/vllm"
)

//go:embed flags.txt
var flags string

// Kind is vLLM.
var Kind = engine.Kind{
	Name: "vllm", Title: "vLLM", Model: "vLLM V1",
	Settings: []engine.Setting{
		{Name: "enable_chunked_prefill", After: "enable_prefix_caching", Field: engine.OwnField(func(o *vllm.Own) any { return &o.EnableChunkedPrefill })},
		{Name: "scheduler_reserve_full_isl", After: "async_scheduling", Field: engine.OwnField(func(o *vllm.Own) any { return &o.SchedulerReserveFullISL })},
		{Name: "long_prefill_token_threshold", After: "scheduler_reserve_full_isl", Field: engine.OwnField(func(o *vllm.Own) any { return &o.LongPrefillTokenThreshold })},
		{Name: "watermark", After: "long_prefill_token_threshold", Field: engine.OwnField(func(o *vllm.Own) any { return &o.Watermark })},
		{Name: "scheduling_policy", After: "watermark", Field: engine.OwnField(func(o *vllm.Own) any {
			return func(v string) error {
				if v != "fcfs" && v != "priority" {
					return fmt.Errorf("%q is neither fcfs nor priority", v)
				}
				o.Priority = v == "priority"
				return nil
			}
		})},
	},
	Own: vllm.Default().Own,
	Scheduler: engine.Scheduler{
		Complete: completeConfig,
		New: func(c *engine.Config, seed uint64, cost twin.Cost) twin.Model {
			s := settings(c)
			s.Seed = seed
			return vllm.New(s, cost)
		},
		Lockstep: func(engines []twin.Model, cost func([]*twin.Batch) time.Duration) func() int64 {
			list := make([]*vllm.Engine, len(engines))
			for i, e := range engines {
				list[i] = e.(*vllm.Engine)
			}
			return vllm.NewLockstep(list, cost).Steps
		},
		Pools: true, Hybrid: true, Profiles: true, Held: true, SeatsInBudget: true,
	},
	Server: engine.Server{
		Metrics: metrics, VersionPath: "/version", SettingsPath: "/server_info?config_format=json", SettingsSeries: "vllm:cache_config_info",
		Face: engine.Face{Open: vllmapi.Open, APIs: []string{"openai-completions", "openai-chat", "openai-responses", "anthropic"}},
	},
	Launch: engine.Launch{
		Command: func(model string) []string { return []string{"vllm", "serve", model} },
		Image:   "vllm/vllm-openai", Flags: flags, AllFlags: true,
		Starts: []string{"vllm serve", "vllm.entrypoints", "vllm-openai"},
		Logged: `non-default args: (\{.*\})`,
		Shares: true, Router: []string{"vllm-router"}, RouterPackage: "vllm-router", RouterSessions: true,
	},
}

// settings are those of the scheduler.
func settings(c *engine.Config) vllm.Settings {
	own, _ := c.Own.(vllm.Own)
	return vllm.Settings{Settings: c.Settings, Own: own}
}

// completeConfig works out memory and batch as vLLM does.
func completeConfig(c *engine.Config, h *engine.Host) error {
	batchDefaults(c, h)
	if err := h.Fit(); err != nil {
		return err
	}
	if s := settings(c); s.Check() != nil {
		return say.Errorf("impossible engine settings: %v", s.Check()).WithHint("the settings are vLLM's; pitot predict --help lists them")
	}
	return nil
}

// batchDefaults sets what was left open as vLLM's API server does
// (EngineArgs.get_batch_defaults, _set_default_max_num_seqs_and_batched_tokens_args).
// What was asked for stays, however odd: the engine refuses it then.
func batchDefaults(c *engine.Config, h *engine.Host) {
	tokens, seqs := 2048, 256
	switch {
	case h.Accelerator == "cpu":
		tokens, seqs = 2048*h.TensorParallel, 128*h.TensorParallel
	case h.MemoryGiB >= 160:
		tokens, seqs = 16384, 1024
	case h.MemoryGiB >= 70 && h.Accelerator != "a100":
		tokens, seqs = 8192, 1024
	}
	s := &c.Settings
	longest := s.MaxModelLen
	if longest <= 0 {
		longest = h.MaxPosition
	}
	seqsOpen := s.MaxNumSeqs == engine.Open
	if seqsOpen {
		s.MaxNumSeqs = seqs
	}
	if s.MaxNumBatchedTokens == engine.Open {
		if !settings(c).EnableChunkedPrefill {
			tokens = max(tokens, longest)
		}
		s.MaxNumBatchedTokens = min(tokens, s.MaxNumSeqs*longest)
	}
	if seqsOpen {
		s.MaxNumSeqs = min(s.MaxNumSeqs, s.MaxNumBatchedTokens)
	}
}

// metrics are vLLM's names of signals.
var metrics = telemetry.Source{Name: "vllm", Known: telemetry.Live + " (0.32); names of 0.8 to 0.11 from its source", Names: slices.Concat([]telemetry.Name{
	{Signal: telemetry.Running, Series: "vllm:num_requests_running"},
	{Signal: telemetry.Waiting, Series: "vllm:num_requests_waiting"},
	{Signal: telemetry.WaitingCapacity, Series: "vllm:num_requests_waiting_by_reason", Where: "reason=capacity"},
	{Signal: telemetry.WaitingDeferred, Series: "vllm:num_requests_waiting_by_reason", Where: "reason=deferred"},
	{Signal: telemetry.Swapped, Series: "vllm:num_requests_swapped"},
	{Signal: telemetry.KVUse, Series: "vllm:kv_cache_usage_perc"},
	{Signal: telemetry.KVUse, Series: "vllm:gpu_cache_usage_perc", Rank: 1},
	{Signal: telemetry.KVTokens, Series: "vllm:cache_config_info", From: "kv_cache_size_tokens"},
	{Signal: telemetry.KVTokens, Series: "vllm:cache_config_info", From: "num_gpu_blocks*block_size", Rank: 1},
	{Signal: telemetry.KVBlock, Series: "vllm:cache_config_info", From: "block_size"},
	{Signal: telemetry.Requests, Series: "vllm:request_success_total"},
	{Signal: telemetry.Rejections, Series: "vllm:admission_rejections_total"},
	{Signal: telemetry.Preemptions, Series: "vllm:num_preemptions_total"},
	{Signal: telemetry.PromptTokens, Series: "vllm:prompt_tokens_total"},
	{Signal: telemetry.CachedTokens, Series: "vllm:prompt_tokens_cached_total"},
	{Signal: telemetry.ComputedTokens, Series: "vllm:request_prefill_kv_computed_tokens_sum"},
	{Signal: telemetry.OutputTokens, Series: "vllm:generation_tokens_total"},
	{Signal: telemetry.PrefixQueries, Series: "vllm:prefix_cache_queries_total"},
	{Signal: telemetry.PrefixQueries, Series: "vllm:gpu_prefix_cache_queries_total", Rank: 1},
	{Signal: telemetry.PrefixHits, Series: "vllm:prefix_cache_hits_total"},
	{Signal: telemetry.PrefixHits, Series: "vllm:gpu_prefix_cache_hits_total", Rank: 1},
	{Signal: telemetry.Drafts, Series: "vllm:spec_decode_num_drafts_total"},
	{Signal: telemetry.DraftTokens, Series: "vllm:spec_decode_num_draft_tokens_total"},
	{Signal: telemetry.AcceptedTokens, Series: "vllm:spec_decode_num_accepted_tokens_total"},
	{Signal: telemetry.Flops, Series: "vllm:estimated_flops_per_gpu_total", NoZero: true},
	{Signal: telemetry.ReadBytes, Series: "vllm:estimated_read_bytes_per_gpu_total", NoZero: true},
	{Signal: telemetry.WriteBytes, Series: "vllm:estimated_write_bytes_per_gpu_total", NoZero: true},
},
	telemetry.HistogramNames(telemetry.StepTokens, telemetry.Steps, "vllm:iteration_tokens_total", 0),
	telemetry.HistogramNames(telemetry.TTFTSum, telemetry.TTFTCount, "vllm:time_to_first_token_seconds", 0),
	telemetry.HistogramNames(telemetry.QueueSum, telemetry.QueueCount, "vllm:request_queue_time_seconds", 0),
	telemetry.HistogramNames(telemetry.PrefillSum, telemetry.PrefillCount, "vllm:request_prefill_time_seconds", 0),
	telemetry.HistogramNames(telemetry.DecodeSum, telemetry.DecodeCount, "vllm:request_decode_time_seconds", 0),
	telemetry.HistogramNames(telemetry.InferenceSum, telemetry.InferenceCount, "vllm:request_inference_time_seconds", 0),
	telemetry.HistogramNames(telemetry.E2ESum, telemetry.E2ECount, "vllm:e2e_request_latency_seconds", 0),
	telemetry.HistogramNames(telemetry.ITLSum, telemetry.ITLCount, "vllm:inter_token_latency_seconds", 0),
	telemetry.HistogramNames(telemetry.ITLSum, telemetry.ITLCount, "vllm:time_per_output_token_seconds", 1),
)}
