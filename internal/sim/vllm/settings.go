package vllm

import (
	"fmt"

	"pitot/internal/sim"
)

// Settings are the engine's arguments under vLLM's names, as far as the twin
// models them: those that schedulers have in common, and vLLM's own.
type Settings struct {
	sim.Settings
	Own
}

// Own are settings of vLLM's scheduler that others have none like.
type Own struct {
	EnableChunkedPrefill bool
	// LongPrefillTokenThreshold caps how many tokens of one prompt a step
	// takes while others are there; 0 is no cap.
	LongPrefillTokenThreshold int
	// SchedulerReserveFullISL admits a request only when its whole prompt
	// fits into free blocks.
	SchedulerReserveFullISL bool
	// Watermark is the share of the blocks that admission leaves free while
	// anything runs.
	Watermark float64
	// Priority serves requests by their priority, FCFS among equals.
	Priority bool
}

// Default are vLLM's defaults for a server on a GPU of 70 GB or more
// (EngineArgs.get_batch_defaults, SchedulerConfig, CacheConfig), without what
// only a model and a GPU decide: MaxModelLen and NumGPUBlocks.
func Default() Settings {
	return Settings{
		sim.Settings{MaxNumSeqs: 1024, MaxNumBatchedTokens: 8192, BlockSize: 16, EnablePrefixCaching: true, AsyncScheduling: true, StreamInterval: 1},
		Own{EnableChunkedPrefill: true, SchedulerReserveFullISL: true},
	}
}

// Check says what is impossible about the settings.
func (s *Settings) Check() error {
	for _, c := range []struct {
		name string
		v    int
		min  int
	}{
		{"max_num_seqs", s.MaxNumSeqs, 1},
		{"max_num_batched_tokens", s.MaxNumBatchedTokens, 1},
		{"max_model_len", s.MaxModelLen, 2},
		{"block_size", s.BlockSize, 1},
		{"num_gpu_blocks", s.NumGPUBlocks, 2},
		{"window", s.Window, 0},
		{"state_blocks", s.StateBlocks, 0},
		{"long_prefill_token_threshold", s.LongPrefillTokenThreshold, 0},
		{"num_speculative_tokens", s.NumSpeculativeTokens, 0},
		{"stream_interval", s.StreamInterval, 1},
	} {
		if c.v < c.min {
			return fmt.Errorf("%s is %d, it must be at least %d", c.name, c.v, c.min)
		}
	}
	if !(s.Watermark >= 0 && s.Watermark < 1) {
		return fmt.Errorf("watermark is %v, it must be at least 0 and below 1", s.Watermark)
	}
	for _, c := range []struct {
		name    string
		v, most float64
	}{
		{"acceptance_rate", s.AcceptanceRate, 1}, {"window_share", s.WindowShare, 1e6}, {"step_jitter", s.StepJitter, 10},
		{"frontend_jitter", s.Frontend.Jitter, 10}, {"slow_cv", s.SlowCV, 2},
	} {
		if !(c.v >= 0 && c.v <= c.most) {
			return fmt.Errorf("%s is %v, it must be between 0 and %v", c.name, c.v, c.most)
		}
	}
	switch {
	case s.SlowTime < 0 || s.SlowTime == 0 && s.SlowCV > 0:
		return fmt.Errorf("slow_time is %v, it must be above 0", s.SlowTime)
	case s.MaxNumBatchedTokens < s.MaxNumSeqs:
		// SchedulerConfig refuses it: a step could not decode all that run.
		return fmt.Errorf("max_num_batched_tokens (%d) is smaller than max_num_seqs (%d)", s.MaxNumBatchedTokens, s.MaxNumSeqs)
	case s.MaxNumBatchedTokens <= s.draftSlots():
		// Every step needs room for the slots of one request and a token.
		return fmt.Errorf("max_num_batched_tokens (%d) leaves no token beside the %d slots that parallel_drafting takes for each request", s.MaxNumBatchedTokens, s.draftSlots())
	case s.LongPrefillTokenThreshold > s.MaxModelLen: // SchedulerConfig.verify_max_model_len
		return fmt.Errorf("long_prefill_token_threshold (%d) is greater than max_model_len (%d)", s.LongPrefillTokenThreshold, s.MaxModelLen)
	case !s.EnableChunkedPrefill && s.MaxNumBatchedTokens < s.MaxModelLen+s.draftSlots():
		return fmt.Errorf("max_num_batched_tokens (%d) is smaller than max_model_len (%d), and chunked prefill is off", s.MaxNumBatchedTokens, s.MaxModelLen+s.draftSlots())
	}
	if err := s.checkSchedule(); err != nil {
		return err
	}
	if tokens := (s.NumGPUBlocks - 1 - s.BlocksBeside(s.MaxModelLen)) * s.BlockSize; tokens < s.MaxModelLen {
		return fmt.Errorf("the KV cache holds %d tokens, which is less than max_model_len (%d)", tokens, s.MaxModelLen)
	}
	return nil
}
