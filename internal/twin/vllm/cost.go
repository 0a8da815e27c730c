package vllm

import "time"

// Batch is what a step's duration depends on.
type Batch struct {
	Requests int // rows of the batch
	Tokens   int // that go through the model
	Logits   int // rows of which the next token is computed
	// Decodes and DecodeContext are the requests that go on with their
	// answer, and the tokens they look back on in all.
	Decodes       int
	DecodeContext int64
	// Prefills are the stretches of prompts.
	Prefills []Chunk
	// PrefillContext is how many tokens before them they look back on.
	PrefillContext int64
}

// Chunk is a stretch of a prompt: New tokens behind Context that are already
// in the KV cache.
type Chunk struct{ New, Context int }

// Cost says how long a step takes on the hardware.
type Cost interface {
	Step(b *Batch) time.Duration
}
