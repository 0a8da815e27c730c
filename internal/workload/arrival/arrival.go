// Package arrival says when requests are due: pure streams of times, from a
// rate and a seed, that no answer has a part in. It has no clock and no I/O.
package arrival

import (
	"fmt"
	"math"
)

// Process is a stream of due times that never ends.
type Process interface {
	// Next is the next due time in nanoseconds since the start of the load.
	// It never goes back, and stays at math.MaxInt64 once it has come there.
	Next() int64
}

// Rates that a process can have, per second: from one in twelve days to one a
// nanosecond.
const (
	MinRate = 1e-6
	MaxRate = 1e9
)

func checkRate(rate float64) error {
	if math.IsNaN(rate) || rate < MinRate || rate > MaxRate {
		return fmt.Errorf("rate %g is out of range: want %g to %g requests per second", rate, MinRate, MaxRate)
	}
	return nil
}
