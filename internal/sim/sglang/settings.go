package sglang

import (
	"fmt"
	"slices"

	"pitot/internal/sim"
)

// Settings are the engine's arguments under SGLang's names, as far as the twin models
// them.
type Settings struct {
	MaxRunningRequests       int
	MaxTotalTokens           int // of the KV cache
	ContextLength            int // tokens of a prompt and its answer, and two more
	ChunkedPrefillSize       int // tokens of prompts in a step
	MaxPrefillTokens         int // the same, for all prompts that begin
	SchedulePolicy           string
	ScheduleConservativeness float64
	EnableMixedChunk         bool // a step with prompts goes on with answers too
	DisableOverlapSchedule   bool // a step is planned when the one before it is done
	DisableRadixCache        bool
	StreamInterval           int

	// Frontend holds the time that the tokenizer and detokenizer spend on their one thread.
	Frontend sim.Frontend // without its jitter and its contention
	// StepJitter is the coefficient of variation of a lognormal factor on every step's
	// duration, Seed decides it.
	StepJitter float64
	Seed       uint64
}

// Policies are the orders in which requests that wait are looked at.
func Policies() []string {
	return []string{"fcfs", "lpm", "dfs-weight", "lof", "shortest-prefill-first"}
}

// Check says what is impossible about the settings.
func (s *Settings) Check() error {
	for _, c := range []struct {
		name string
		v    int
	}{
		{"max_running_requests", s.MaxRunningRequests}, {"max_total_tokens", s.MaxTotalTokens}, {"chunked_prefill_size", s.ChunkedPrefillSize},
		{"max_prefill_tokens", s.MaxPrefillTokens}, {"stream_interval", s.StreamInterval},
	} {
		if c.v < 1 {
			return fmt.Errorf("%s is %d, it must be at least 1", c.name, c.v)
		}
	}
	switch {
	case !slices.Contains(Policies(), s.SchedulePolicy):
		return fmt.Errorf("there is no schedule_policy %q", s.SchedulePolicy)
	case s.DisableRadixCache && s.SchedulePolicy == "shortest-prefill-first":
		return fmt.Errorf("schedule_policy shortest-prefill-first needs the radix cache, which disable_radix_cache leaves out")
	case !(s.ScheduleConservativeness > 0 && s.ScheduleConservativeness <= 100):
		return fmt.Errorf("schedule_conservativeness is %v, it must be above 0 and at most 100", s.ScheduleConservativeness)
	case !(s.StepJitter >= 0 && s.StepJitter <= 10):
		return fmt.Errorf("step_jitter is %v, it must be between 0 and 10", s.StepJitter)
	case s.ContextLength < 4 || s.ContextLength > s.MaxTotalTokens-2:
		return fmt.Errorf("context_length is %d, it must be at least 4, and 2 less than the %d tokens of the KV cache", s.ContextLength, s.MaxTotalTokens)
	}
	return nil
}
