// Package vllm is vLLM: its names of settings, which are the vocabulary, how it starts, its
// servers. Its scheduler is package sim/vllm, its API server sim/serve/vllmapi.
package vllm

import (
	_ "embed" // the names of its flags
	"fmt"
	"time"

	"pitot/internal/say"
	"pitot/internal/sim"
	"pitot/internal/sim/engine"
	"pitot/internal/sim/serve/vllmapi"
	"pitot/internal/sim/vllm"
	"pitot/internal/telemetry"
)

//go:embed flags.txt
var flags string

//go:embed signals.txt
var signals string

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
		New: func(c *engine.Config, seed uint64, cost sim.Cost) sim.Model {
			s := settings(c)
			s.Seed = seed
			return vllm.New(s, cost)
		},
		Lockstep: func(engines []sim.Model, cost func([]*sim.Batch) time.Duration) func() int64 {
			list := make([]*vllm.Engine, len(engines))
			for i, e := range engines {
				list[i] = e.(*vllm.Engine)
			}
			return vllm.NewLockstep(list, cost).Steps
		},
		Pools: true, Hybrid: true, Profiles: true, Held: true, SeatsInBudget: true,
	},
	Server: engine.Server{
		Metrics:     telemetry.Source{Name: "vllm", Known: telemetry.Live + " (0.32); names of 0.8 to 0.11 from its source", Names: telemetry.ParseNames(signals)},
		VersionPath: "/version", SettingsPath: "/server_info?config_format=json", SettingsSeries: "vllm:cache_config_info",
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
		return say.Errorf("impossible engine settings: %v", s.Check()).WithHint("the settings are vLLM's; pitot predict --help=engine lists them")
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
