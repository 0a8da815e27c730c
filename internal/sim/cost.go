package sim

import "time"

// Batch describes the work of one engine step. The step's duration depends on it, whatever
// scheduler composed it.
type Batch struct {
	Requests int // rows of the batch
	Tokens   int // that go through the model
	Logits   int // rows of which the next token is computed
	Drafts   int // tokens that are drafted for each row when the model is done
	// Decodes and DecodeContext are the requests that go on with their
	// answer, and the tokens they look back on in all.
	Decodes       int
	DecodeContext int64
	// Prefills are the stretches of prompts.
	Prefills []Chunk
	// PrefillContext is the number of earlier tokens that the prefills attend to.
	PrefillContext int64
}

// Chunk is a stretch of a prompt: New tokens behind Context that are already
// in the KV cache.
type Chunk struct{ New, Context int }

// Cost is hardware as a scheduler sees it.
type Cost interface {
	// Step says how long a step takes.
	Step(b *Batch) time.Duration
}
