package vllm

import (
	"time"

	"pitot/internal/sim"
)

// Flat is a cost of so much for each step and each token in it.
type Flat struct {
	PerStep  time.Duration
	PerToken time.Duration
}

// Step implements [Cost].
func (f Flat) Step(b *sim.Batch) time.Duration {
	return f.PerStep + time.Duration(b.Tokens)*f.PerToken
}
