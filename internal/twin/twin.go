// Package twin is the engine: a step function over a clock, without
// goroutines, wall time or I/O. The mock server serves it over a socket in
// real time, the virtual world runs it as an event queue.
package twin

// Job is one request as the engine sees it.
type Job struct {
	ID     int64
	Prompt int // tokens
	Output int // tokens to generate
}

// Emission is what one step gives one job.
type Emission struct {
	ID     int64
	At     int64  // ns on the engine's clock
	Tokens int    // new tokens, at least 1 except for a role-only chunk
	Role   bool   // a chunk that only names the role
	Finish string // "" until the last: "stop" or "length"
}

// Step is what an engine does next.
type Step struct {
	// End is when the step ends and Out may be handed on. Of an idle engine
	// it is when something will happen by itself (math.MaxInt64 if never).
	End int64
	// Out is what the step gives; it belongs to the caller until the next
	// call of Step.
	Out []Emission
	// Idle: nothing is running until End; the caller calls again at End or
	// at the next Add, whichever comes first. When it is false the step
	// cannot be interrupted: jobs that are added meanwhile wait for its end.
	Idle bool
}

// Engine is a serving engine in time steps. Times are nanoseconds on one
// clock that the caller owns and that never goes back.
type Engine interface {
	// Add gives the engine a job that arrived at now.
	Add(now int64, j Job)
	// Abort takes a job away: its client has gone. Unknown ids are ignored.
	Abort(id int64)
	// Step begins the next step at now.
	Step(now int64) Step
}
