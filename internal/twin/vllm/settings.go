package vllm

import (
	"fmt"
	"math"
	"time"
)

// Settings are the engine's arguments under vLLM's names, as far as the twin
// models them.
type Settings struct {
	MaxNumSeqs          int // requests that run at once
	MaxNumBatchedTokens int // token budget of a step
	MaxModelLen         int // tokens of a prompt and its answer
	BlockSize           int // tokens of a KV block
	NumGPUBlocks        int // KV blocks, the null block included
	// Besides the blocks of its tokens a request holds some for layers that do not
	// keep all of them: WindowShare of a block for each block of its last Window
	// tokens, and StateBlocks however long it is (hybrid KV cache groups).
	Window               int
	WindowShare          float64
	StateBlocks          int
	EnablePrefixCaching  bool
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
	// AsyncScheduling plans a step while the one before it runs.
	AsyncScheduling bool
	// NumSpeculativeTokens is how many tokens the Drafter makes for each token
	// sampled. AcceptanceRate is the probability that one is accepted, given that
	// those before it were.
	NumSpeculativeTokens int
	AcceptanceRate       float64
	Drafter              Drafter
	// SpeculativeSchedule drafts fewer where more requests are in a step
	// (num_speculative_tokens_per_batch_size), ascending; nil: always as many.
	SpeculativeSchedule []DraftRange
	// StreamInterval is how many tokens go into one chunk of an answer, after
	// the first.
	StreamInterval int

	// Frontend is the process between the sockets and the engine.
	Frontend Frontend
	// StepJitter is the coefficient of variation of a lognormal factor on
	// every step's duration.
	StepJitter float64
	// SlowCV and SlowTime are a second lognormal factor on every step's
	// duration, that of slow phases: SlowCV is the standard deviation of its
	// logarithm, SlowTime how long phases last, as the time in which their
	// correlation falls to 1/e. The factor's mean over time is 1.
	SlowCV   float64
	SlowTime time.Duration
	// Seed decides jitter, slow phases, and which drafts are accepted.
	Seed uint64
}

// BlocksBeside is how many blocks a request of so many tokens holds besides those of
// its tokens.
func (s *Settings) BlocksBeside(tokens int) int {
	n := s.StateBlocks
	if s.WindowShare > 0 {
		n += int(math.Ceil(s.WindowShare * float64((min(tokens, s.Window)+s.BlockSize-1)/s.BlockSize)))
	}
	return n
}

// Frontend is what vLLM's API server spends on its one thread.
type Frontend struct {
	Latency        time.Duration // of a request on its way through all queues and processes, besides the thread's work
	PerRequest     time.Duration // to parse and to render the prompt
	PerPromptToken time.Duration // to tokenize
	PerStep        time.Duration // to take over a step's output
	PerChunk       time.Duration // to detokenize and write one chunk
	// Jitter is the coefficient of variation of a lognormal factor on what a
	// request takes of the thread and on its way: other requests' work,
	// collections of garbage, a core that is busy.
	Jitter float64
	// Contention is how much of the time that a new request takes is missing
	// to the engine, because both want the same cores, and how much longer the
	// thread's work takes while the engine computes: 0 on a machine with cores to
	// spare, 1 where the two share one.
	Contention float64
}

// Default are vLLM's defaults for a server on a GPU of 70 GB or more
// (EngineArgs.get_batch_defaults, SchedulerConfig, CacheConfig), without what
// only a model and a GPU decide: MaxModelLen and NumGPUBlocks.
func Default() Settings {
	return Settings{
		MaxNumSeqs:              1024,
		MaxNumBatchedTokens:     8192,
		BlockSize:               16,
		EnablePrefixCaching:     true,
		EnableChunkedPrefill:    true,
		SchedulerReserveFullISL: true,
		AsyncScheduling:         true,
		StreamInterval:          1,
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
	switch {
	case !(s.Watermark >= 0 && s.Watermark < 1):
		return fmt.Errorf("watermark is %v, it must be at least 0 and below 1", s.Watermark)
	case !(s.AcceptanceRate >= 0 && s.AcceptanceRate <= 1):
		return fmt.Errorf("acceptance_rate is %v, it must be between 0 and 1", s.AcceptanceRate)
	case !(s.WindowShare >= 0 && s.WindowShare <= 1e6):
		return fmt.Errorf("window_share is %v", s.WindowShare)
	case !(s.StepJitter >= 0 && s.StepJitter <= 10):
		return fmt.Errorf("step_jitter is %v, it must be between 0 and 10", s.StepJitter)
	case !(s.Frontend.Jitter >= 0 && s.Frontend.Jitter <= 10):
		return fmt.Errorf("frontend_jitter is %v, it must be between 0 and 10", s.Frontend.Jitter)
	case !(s.SlowCV >= 0 && s.SlowCV <= 2):
		return fmt.Errorf("slow_cv is %v, it must be between 0 and 2", s.SlowCV)
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
