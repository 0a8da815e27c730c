package clock

import (
	"time"

	"golang.org/x/sys/unix"
)

// readPair reads both clocks several times and keeps the closest pair, so that a
// preemption between the two readings does not shift every stamp.
func readPair() (time.Time, int64) {
	var at time.Time
	var ns int64
	best := time.Duration(1 << 62)
	for range 16 {
		var ts unix.Timespec
		before := time.Now()
		if unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts) != nil {
			return before, 0
		}
		if gap := time.Since(before); gap < best {
			best, at, ns = gap, before, ts.Nano()-int64(gap)/2
		}
	}
	return at, ns
}
