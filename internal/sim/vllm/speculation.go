package vllm

import (
	"fmt"

	"pitot/internal/sim"
)

// lookahead returns the number of KV slots a request has beyond the tokens that the model computes.
// Its drafter writes to them (VllmConfig.num_lookahead_tokens).
func (s *Settings) lookahead() int {
	if s.Drafter == sim.NGram {
		return 0
	}
	return s.NumSpeculativeTokens
}

// draftSlots returns the part of a step's budget that each of its requests takes besides its tokens
// (SpeculativeConfig.max_num_new_slots_for_drafting).
func (s *Settings) draftSlots() int {
	if s.Drafter == sim.Parallel {
		return max(s.NumSpeculativeTokens-1, 0)
	}
	return 0
}

// checkSchedule says what is impossible about the ranges: they begin with 1, ascend and
// do not overlap (validate_and_normalize_dynamic_sd_schedule).
func (s *Settings) checkSchedule() error {
	next := 1
	for i, r := range s.SpeculativeSchedule {
		switch {
		case r.From < 1 || r.To < r.From || r.Tokens < 0:
			return fmt.Errorf("num_speculative_tokens_per_batch_size has %d tokens for %d to %d requests", r.Tokens, r.From, r.To)
		case i == 0 && r.From != 1:
			return fmt.Errorf("num_speculative_tokens_per_batch_size begins with %d requests, it must begin with 1", r.From)
		case r.From < next:
			return fmt.Errorf("num_speculative_tokens_per_batch_size has %d requests in two ranges, or its ranges do not ascend", r.From)
		}
		next = r.To + 1
	}
	return nil
}
