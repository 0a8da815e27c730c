package vllm

import "fmt"

// Drafter says where drafts come from (SpeculativeConfig.method).
type Drafter uint8

const (
	// Sequential drafters have a KV cache, read the model's hidden states, and make
	// one draft of each request after the other (EAGLE, MTP).
	Sequential Drafter = iota
	// Parallel ones are like them and make all drafts in one pass (P-EAGLE,
	// parallel_drafting): each but the first needs a slot in its batch.
	Parallel
	// NGram looks drafts up among the request's own tokens: it has no weights, no KV
	// cache, and costs no accelerator time.
	NGram
)

// DraftRange is how many tokens are drafted in steps of From to To requests.
type DraftRange struct{ From, To, Tokens int }

// DraftsFor is how many tokens a step with so many requests has drafted for each of
// them (build_dynamic_sd_schedule_lookup). Between two ranges, and beyond the last, it is
// as in the range before.
func (s *Settings) DraftsFor(requests int) int {
	k := s.NumSpeculativeTokens
	for _, r := range s.SpeculativeSchedule {
		if r.From > requests {
			break
		}
		k = min(r.Tokens, s.NumSpeculativeTokens)
	}
	return k
}

// lookahead is how many KV slots a request has beyond the tokens that the model
// computes, for its drafter to write to (VllmConfig.num_lookahead_tokens).
func (s *Settings) lookahead() int {
	if s.Drafter == NGram {
		return 0
	}
	return s.NumSpeculativeTokens
}

// draftSlots is how much of a step's budget each of its requests takes besides its
// tokens (SpeculativeConfig.max_num_new_slots_for_drafting).
func (s *Settings) draftSlots() int {
	if s.Drafter == Parallel {
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
