// Package clock is time as Pitot measures it: monotonic nanoseconds, waiting
// until one of them, and the mapping of the kernel's receive stamps to them.
//
// On Linux [Now] counts on CLOCK_MONOTONIC, so that stamps taken by two
// processes of one machine can be compared; elsewhere it counts
// from the start of the process.
package clock

import "time"

// anchor pairs Go's monotonic clock with the system's, once.
var anchor, anchorNS = readPair()

// Now is the present in monotonic nanoseconds.
func Now() int64 { return anchorNS + int64(time.Since(anchor)) }

// FromTime is the monotonic time of t, which must carry a monotonic reading.
func FromTime(t time.Time) int64 { return anchorNS + int64(t.Sub(anchor)) }

// maxKernelAge bounds how old a kernel stamp may be when it is read. A stamp
// outside [now − maxKernelAge, now] means that the wall clock was stepped
// between the two, so the stamp says nothing.
const maxKernelAge = 30 * time.Second

// FromWall maps a kernel stamp, wall-clock nanoseconds, to monotonic time:
// mono(now) − (wall(now) − stamp). One reading of now gives both clocks, so
// that a slow drift between them cannot build up. ok is false when the result
// cannot be right; then use Of(now).
func FromWall(now time.Time, stamp int64) (mono int64, ok bool) {
	age := now.UnixNano() - stamp
	if age < -int64(50*time.Microsecond) || age > int64(maxKernelAge) {
		return 0, false
	}
	return FromTime(now) - max(age, 0), true
}
