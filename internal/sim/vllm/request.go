package vllm

import (
	"slices"

	"pitot/internal/sim"
)

// status is a request's place (RequestStatus).
type status uint8

const (
	waiting status = iota
	running
	preempted
	finished
)

// request is vLLM's Request: no prefill and no decode, only tokens that there
// are and tokens that are computed.
type request struct {
	job     sim.Job
	status  status
	arrived int64

	output       int  // tokens of the answer
	computed     int  // num_computed_tokens: in the KV cache when all planned steps have run
	placeholders int  // num_output_placeholders: tokens that planned steps will give
	drafts       int  // draft tokens to verify in the next step
	inFlight     int  // steps that are planned and not done
	stale        int  // of these, planned before the last preemption
	inPrompt     bool // the last step it is in is a part of its prompt (is_prefill_chunk)

	blocks int      // that it holds
	beside int      // of layers that do not keep all tokens
	parts  []part   // of its blocks those that are cached
	listed int      // how many these are
	hashes []uint64 // of the full blocks, as far as its tokens are known

	pending  int    // tokens on the way through the front end
	begun    bool   // the first have come through
	held     int    // tokens that have come through and were not handed on
	finish   string // of the pending output
	unsent   int    // tokens that wait for the stream interval
	streamed bool   // a chunk has gone out

	cruise cruising

	trace sim.Trace
}

// numTokens is num_tokens: prompt and answer so far.
func (r *request) numTokens() int { return r.job.Prompt + r.output }

// receivedTokens returns the number of tokens that an earlier engine has computed, except the last.
// A preempted request is computed again here.
func (r *request) receivedTokens() int {
	if r.trace.Preemptions > 0 {
		return 0
	}
	return max(min(r.job.Received, r.numTokens()-1), 0)
}

// maxTokens is max_tokens.
func (r *request) maxTokens() int {
	if r.job.Limit > 0 {
		return r.job.Limit
	}
	return r.job.Output
}

// hashFullBlocks hashes the blocks that are full of its first tokens (Request.update_block_hashes,
// kv_cache_utils.hash_block_tokens).
func (r *request) hashFullBlocks(blockSize, tokens int) {
	n := tokens / blockSize
	if c, ok := r.job.Content.(sim.Chained); ok {
		if n > len(r.hashes) {
			r.hashes = c.Chain(blockSize, n)
		}
		return
	}
	r.hashes = slices.Grow(r.hashes, max(n-len(r.hashes), 0))
	for k := len(r.hashes); k < n; k++ {
		hash := sim.ChainHash(uint64(r.job.ID)+1, uint64(k)+1) // no other request has it
		if r.job.Content != nil {
			parent := uint64(0)
			if k > 0 {
				parent = r.hashes[k-1]
			}
			hash = sim.ChainHash(parent, r.job.Content.Tokens(k*blockSize, (k+1)*blockSize))
		}
		r.hashes = append(r.hashes, hash)
	}
}
