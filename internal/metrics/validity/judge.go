// Package validity says what a measurement is worth: whether the instrument and
// its machine kept their promises, whether the load was the one that was asked
// for, and whether it was in a steady state. It knows requests by their stamps
// and counts alone; what their latencies are is the measuring room's. It has no clock, no file and
// no socket.
//
// Evidence is gathered while records are read ([Probe], [Queue], [Arrivals],
// [Course]), and judged at the end: [Queue.SetStability], [Course.FindSettling],
// [Arrivals.FindStandstills], [Evidence.ApplicableChecks] and [VerdictOf].
package validity

import (
	"math"

	"pitot/internal/results/result"
)

// Conditions holds the plan of a point, and what its records cannot say by themselves. Stamps are
// nanoseconds since the point's origin.
type Conditions struct {
	T0, T1    int64 // the window [T0, T1)
	Load      result.Load
	Requests  int64     // the window counts so many requests; 0 if it is a time
	Planned   int       // requests due in the window by the schedule, 0 if not known
	Residence int64     // what a request takes at a light load, nanoseconds, 0 if not known
	Settling  *Settling // how the load settled, nil if that was not asked
	Stamps    string    // source of the chunk times: "kernel", "user" or "virtual"
	Exact     bool      // responses of exact lengths are requested
	Cold      bool      // prompts are planned to hit no prefix cache
	Seeded    bool      // a run before this one may have asked the server for the same prompts
	Prompts   int       // distinct prompts there are, 0 for no end of them
	GaveUp    bool      // the window ended early because there was no use in going on, see [IsHopeless]
	Gone      *int64    // since when the target was not there any more

	Tokenizer *result.TokenizerMatch // nil where that is not known
}

const (
	// Level is the confidence of every interval.
	Level = .95
	// Batches is the number of batches that an interval rests on.
	Batches = 10
	// Blocks is the number of time blocks of the window that rates are counted in: two for each
	// batch.
	Blocks = 2 * Batches

	// Shortest is the least window, in seconds, that rates are given for: no timer
	// keeps due times to less than a millisecond. With --requests a window ends at
	// the due time of the next request, and that is at once where more users than
	// requests begin together.
	Shortest = 1e-3
)

// Open says that requests come due whether or not others have ended.
func (c *Conditions) Open() bool { return c.Load.Loop != "closed" }

// Ended says that the end of the window is known.
func (c *Conditions) Ended() bool { return c.T1 > c.T0 && c.T1 < math.MaxInt64 }

// Seconds is the length of the window.
func (c *Conditions) Seconds() float64 { return float64(c.T1-c.T0) / 1e9 }

// leastCycles is the number of bursts that a window must have for its numbers to be about the load:
// two for each batch.
const leastCycles = 2 * Batches

// FewBursts returns the reason of a window that has too few bursts for an interval, none where
// it has enough.
func (c *Conditions) FewBursts() result.Reason {
	e := c.Load.Expected
	if e == nil || e.CycleS <= 0 || c.Seconds() >= leastCycles*e.CycleS {
		return result.Reason{}
	}
	return result.Reason{Code: result.FewBursts, N: math.Floor(c.Seconds() / e.CycleS), Needed: leastCycles, Longer: c.longerWindow(leastCycles * e.CycleS)}
}

// InWindow says that a stamp lies in the window.
func (c *Conditions) InWindow(t int64) bool { return t >= c.T0 && t < c.T1 }

// BlockAt is the block of the window that a time lies in; ok is false outside.
func (c *Conditions) BlockAt(t int64) (i int, ok bool) {
	if !c.InWindow(t) {
		return 0, false
	}
	return min(int(float64(t-c.T0)/float64(c.T1-c.T0)*Blocks), Blocks-1), true
}
