package serve

import (
	"pitot/internal/sim"
	"pitot/internal/sim/serve/dialect"
)

// choice is one answer of a stream: a job of the engine.
type choice struct {
	st    *stream
	job   sim.Job
	index int
	batch *batch

	got    int            // tokens that the engine gave
	sent   int            // of these, handed on
	began  int64          // engine's time of the first
	at     int64          // and of the last
	held   []sim.Emission // waits for a stall to end
	unseen int            // tokens handed on that had no event of their own
	finish string
	trace  *sim.Trace
}

// batch is the answers to one prompt: one request of vLLM's engine client.
type batch struct {
	left, n int
	most    int // tokens of the longest
}

// newChoices gives the choices of a call, prompt by prompt.
func newChoices(st *stream, call *dialect.Call) []choice {
	choices := make([]choice, len(call.Jobs))
	batches := make([]batch, (len(choices)+call.Batch-1)/call.Batch)
	for i, job := range call.Jobs {
		b := &batches[i/call.Batch]
		b.left, b.n = b.left+1, b.n+1
		job.ID = st.truth.N + int64(i)<<40
		choices[i] = choice{st: st, job: job, index: i, batch: b}
	}
	return choices
}
