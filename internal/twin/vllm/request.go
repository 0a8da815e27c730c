package vllm

import "pitot/internal/twin"

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
	job     twin.Job
	status  status
	arrived int64

	output       int  // tokens of the answer
	computed     int  // num_computed_tokens: in the KV cache when all planned steps have run
	placeholders int  // num_output_placeholders: tokens that planned steps will give
	drafts       int  // draft tokens to verify in the next step
	inFlight     int  // steps that are planned and not done
	stale        int  // of these, planned before the last preemption
	inPrompt     bool // the last step it is in is a part of its prompt (is_prefill_chunk)

	blocks []int32
	beside []int32  // blocks of layers that do not keep all tokens
	hashes []uint64 // of the full blocks, as far as its tokens are known
	listed int      // blocks that the pool was asked to cache
	// private says that no other request has a block of its content: it finds what is left of
	// those that it had before it was preempted, and the pool need not list them for others.
	private bool
	had     []int32

	pending  int    // tokens on the way through the front end
	begun    bool   // the first have come through
	held     int    // tokens that have come through and were not handed on
	finish   string // of the pending output
	unsent   int    // tokens that wait for the stream interval
	streamed bool   // a chunk has gone out

	cruise cruising

	trace twin.Trace
}

// tokens is num_tokens: prompt and answer so far.
func (r *request) tokens() int { return r.job.Prompt + r.output }

// received is how many tokens an engine before has computed, but for the last; what was
// preempted is computed again here.
func (r *request) received() int {
	if r.trace.Preemptions > 0 {
		return 0
	}
	return max(min(r.job.Received, r.tokens()-1), 0)
}

// limit is max_tokens.
func (r *request) limit() int {
	if r.job.Limit > 0 {
		return r.job.Limit
	}
	return r.job.Output
}

// extend hashes the blocks that are full of its first tokens (Request.update_block_hashes,
// kv_cache_utils.hash_block_tokens).
func (r *request) extend(blockSize, tokens int) {
	if r.private {
		return
	}
	if c, ok := r.job.Content.(twin.Chained); ok {
		if n := tokens / blockSize; n > len(r.hashes) {
			r.hashes = c.Chain(blockSize, n)
		}
		return
	}
	for n := len(r.hashes); (n+1)*blockSize <= tokens; n++ {
		parent := uint64(0)
		if n > 0 {
			parent = r.hashes[n-1]
		}
		content := r.own(n)
		if r.job.Content != nil {
			content = r.job.Content.Tokens(n*blockSize, (n+1)*blockSize)
		}
		r.hashes = append(r.hashes, twin.Chain(parent, content))
	}
}

// own is the content of a block that no other request has.
func (r *request) own(n int) uint64 { return twin.Chain(uint64(r.job.ID)+1, uint64(n)+1) }

// hash is that of a full block.
func (r *request) hash(n int) uint64 {
	if r.private {
		return r.own(n)
	}
	return r.hashes[n]
}

// hit gives the cached block that is like one of a request's, null if there is none; before is
// that of the one before it.
func (p *pool) hit(r *request, n int, before int32) int32 {
	switch {
	case !r.private && n < len(r.hashes):
		return p.cachedAfter(before, r.hashes[n])
	case r.private && n < len(r.had) && p.made[r.had[n]].hash == r.own(n):
		return r.had[n]
	}
	return null
}
