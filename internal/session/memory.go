package session

import (
	"runtime/debug"

	"pitot/internal/results/spill"
)

// memoryBudget is the number of bytes of a run's requests and gaps kept in memory while its result
// is made. As many more are used meanwhile. The rest goes to a file in the run directory that has
// no name. `go run ./bench/finish` shows the peak with all that reading and writing records takes.
const memoryBudget = 64 << 20

// limitGarbage has the collector of garbage keep close to what is in use, until restore:
// what is kept of a run is large and lives long, and what is thrown away on the
// way is little, so that it costs next to nothing.
func limitGarbage() (restore func()) {
	before := debug.SetGCPercent(25)
	return func() { debug.SetGCPercent(before) }
}

// newStore is a store for the results of a run.
func newStore(dir string) *spill.Store { return spill.New(dir, memoryBudget) }
