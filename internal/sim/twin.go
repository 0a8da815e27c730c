// Package sim is the engine: a step function over a time that it is given. It has
// no goroutine, no clock and no I/O. The mock server serves it over a socket in
// real time, the virtual world runs it as an event queue.
package sim

// Job is one request as the engine sees it.
type Job struct {
	ID     int64
	Prompt int // tokens
	Output int // tokens until the model ends the answer by itself
	// Limit is the maximum number of tokens in the answer (max_tokens); 0 is Output. An answer that
	// reaches it ends with "length". An answer that ends before it ends with "stop".
	Limit int
	// Content identifies the content of the prompt and the answer, as far as requests may share it.
	// It is nil if nothing is shared.
	Content Content
	// Priority is the request's priority; a smaller number is more urgent.
	Priority int
	// Received is the number of prompt tokens that another engine has computed, and whose KV cache
	// is present. The last token is computed again, because the next token needs it.
	Received int
	// Session is the number of the conversation that it is part of, for a router that
	// keeps these together; 0 is none.
	Session uint64
}

// Content tells the tokens of requests apart. Two stretches are equal tokens
// if and only if they give the same number.
type Content interface {
	// Tokens gives the content of the tokens [from, to) of the prompt and
	// the answer behind it.
	Tokens(from, to int) uint64
}

// Chained is [Content] that keeps what was worked out of its beginning: an engine asks for
// it again and again, and what begins as another need not be worked out anew.
type Chained interface {
	Content
	// Chain gives, of each of the first n blocks of so many tokens, the [ChainHash] of it and of
	// all before it. What it gives is the caller's to read, and is not changed later.
	Chain(block, n int) []uint64
}

// ChainHash is the content of a block and of all before it; it is never 0.
func ChainHash(before, block uint64) uint64 {
	return max(Mix(Mix(before)^block), 1)
}

// Emission is the output of one step for one job.
type Emission struct {
	ID     int64
	At     int64  // ns on the engine's clock
	Tokens int    // new tokens, at least 1 except for a role-only chunk
	Role   bool   // a chunk that only names the role
	Finish string // "" until the last: "stop" or "length", or [Lost]
	Trace  *Trace // with the last, what the engine did; nil if it does not tell
	Engine int    // of several that are one, which gave it; 0 where there is one
}

// Lost ends a job whose engine has gone: its last emission, without tokens and without
// a trace.
const Lost = "lost"

// Trace holds the times at which an engine processed one job. Times are nanoseconds on the engine's
// clock, -1 for events that did not happen.
type Trace struct {
	Arrived     int64 // at the front end
	Queued      int64 // by the engine
	Scheduled   int64 // the first time it was in a step
	First, Last int64 // ends of the steps that gave the first and the last token
	Cached      int   // prompt tokens that were in the prefix cache
	Preemptions int
	Steps       int   // that it was part of
	FirstStep   int64 // numbers of steps, from 1
	LastStep    int64
}

// Step describes the next step of an engine.
type Step struct {
	// End is when the step ends and Out may be handed on. Of an idle engine
	// it is when something will happen by itself (math.MaxInt64 if never).
	End int64
	// Out holds the output of the step. It belongs to the caller until the next call of Step.
	Out []Emission
	// Idle: nothing is running until End; the caller calls again at End or
	// at the next Add, whichever comes first. When it is false the step
	// cannot be interrupted: jobs that are added meanwhile wait for its end.
	Idle bool
	// Next is, of an engine that is not idle and whose step has ended with this call, when
	// something happens by itself after it: until then, or until a job is added or aborted,
	// Step has nothing to give and need not be called. 0 is not known.
	Next int64
}

// Engine is a serving engine in time steps. Times are nanoseconds on one
// clock that the caller owns and that never goes back, but for one thing: a
// job may be added with the time at which it came, a moment before the last
// step was asked for.
type Engine interface {
	// Add gives the engine a job that arrived at now.
	Add(now int64, j Job)
	// Abort takes a job away: its client has gone. Unknown ids are ignored.
	Abort(id int64)
	// Step begins the next step at now.
	Step(now int64) Step
}
