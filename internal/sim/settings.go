package sim

import (
	"math"
	"time"
)

// Settings holds the settings that all schedulers have, whatever each calls them. These are the
// limits of a batch, the KV cache, drafts, and the process in front of the engine.
type Settings struct {
	MaxNumSeqs          int // requests that run at once
	MaxNumBatchedTokens int // token budget of a step
	MaxModelLen         int // tokens of a prompt and its answer
	BlockSize           int // tokens of a KV block
	NumGPUBlocks        int // KV blocks, the null block included
	// Besides the blocks of its tokens a request holds some for layers that do not
	// keep all of them: WindowShare of a block for each block of its last Window
	// tokens, and StateBlocks however long it is (hybrid KV cache groups).
	Window              int
	WindowShare         float64
	StateBlocks         int
	EnablePrefixCaching bool
	// AsyncScheduling plans a step while the one before it runs.
	AsyncScheduling bool
	// NumSpeculativeTokens is the number of tokens the Drafter makes for each token sampled.
	// AcceptanceRate is the probability that one is accepted, given that those before it were.
	NumSpeculativeTokens int
	AcceptanceRate       float64
	Drafter              Drafter
	// SpeculativeSchedule drafts fewer where more requests are in a step
	// (num_speculative_tokens_per_batch_size), ascending; nil: always as many.
	SpeculativeSchedule []DraftRange
	// StreamInterval is the number of tokens in one chunk of an answer, after the first.
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

// KVTokens returns how many tokens the KV cache holds.
func (s *Settings) KVTokens() int { return (s.NumGPUBlocks - 1) * s.BlockSize }

// BlocksBeside returns the number of blocks that a request with the given tokens holds besides
// those of its tokens.
func (s *Settings) BlocksBeside(tokens int) int {
	n := s.StateBlocks
	if s.WindowShare > 0 {
		n += int(math.Ceil(s.WindowShare * float64((min(tokens, s.Window)+s.BlockSize-1)/s.BlockSize)))
	}
	return n
}

// Frontend holds the time that the process between the sockets and the engine spends on its one
// thread.
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
	// Contention is the share of a new request's time that the engine loses because both want the
	// same cores. It is also the share by which the thread's work takes longer while the engine
	// computes. It is 0 on a machine with cores to spare, and 1 where the two share one core.
	Contention float64
}

// Drafter says where drafts come from (vLLM's SpeculativeConfig.method).
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

// DraftRange is the number of tokens drafted in steps of From to To requests.
type DraftRange struct{ From, To, Tokens int }

// DraftsFor returns the number of tokens drafted for each request in a step with the given number
// of requests (build_dynamic_sd_schedule_lookup). Between two ranges, and beyond the last, the
// range before applies.
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
