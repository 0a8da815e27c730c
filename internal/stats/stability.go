package stats

import "math"

// Stability says whether a queue is in balance.
type Stability string

const (
	Stable    Stability = "stable"
	Unstable  Stability = "unstable"
	Undecided Stability = "undecided"
)

const (
	// BacklogBlocks is the number of blocks that Backlog is tried with.
	BacklogBlocks = 12
	// MaxDeficit is the share of arrivals that may go unserved in balance.
	MaxDeficit = 0.02
	// MinResidences is the number of residence times that a window must have for a verdict.
	MinResidences = 30
	// chance is the size of a rise, in standard deviations of what chance piles up, from which it
	// counts; drain is that of a fall. Nobody looks for a fall, so it is only reported where there
	// is no doubt.
	chance, drain = 1.2, 2
)

// Backlog holds what the requests in flight show of a queue.
type Backlog struct {
	Verdict Stability
	Deficit float64 // slope of the requests in flight ÷ arrival rate: the share of arrivals that are never served
	Z       float64 // Mann-Kendall's z of the trend
	// Longer is the ratio of the window's length that would make the rise more than chance to the
	// present one. It is 0 if the rise is more already, or if there is none. With it the verdict is
	// undecided.
	Longer float64
	// Drained says that requests in flight fell by more than chance: a queue
	// that had formed before was served in the window, on top of what arrived.
	// With it the verdict is undecided.
	Drained bool
}

// JudgeBacklog judges a queue by the mean number of requests in flight in
// equal blocks of a window of the given length. Unstable is a rise by the
// Mann-Kendall test at 5 % one-sided, and a deficit above MaxDeficit: the test
// alone takes the slow waves of a loaded queue for a trend. And the rise must
// be more than chance piles up without any overload: near saturation the queue
// is a random walk, whose standard deviation over n arrivals is about √(2n) if
// arrivals and services vary as exponential ones do. For few servers that is
// much. A rise that only one of the two finds, and a window below MinResidences
// residence times, are undecided.
//
// residence is the mean residence time without the backlog in question, that
// of a lighter load: an unstable queue stretches its own, and would hide
// behind a window that seems short. window and residence have one unit, rate
// is per that unit. `go run ./bench/stat -only stability` shows the rates of
// false alarms and the power.
func JudgeBacklog(inFlight []float64, window, rate, residence float64) Backlog {
	if len(inFlight) < 2 || !(rate > 0) || !(window > 0) {
		return Backlog{Verdict: Undecided}
	}
	_, z := MannKendall(inFlight)
	n := rate * window
	walk := math.Sqrt(2 * n)
	b := Backlog{Verdict: Stable, Z: z, Deficit: TheilSen(inFlight, window/float64(len(inFlight))) / rate}
	switch {
	case window < MinResidences*residence:
		b.Verdict = Undecided
	case b.Deficit > MaxDeficit:
		// A rise grows with the window, chance with its root.
		rises, much := z > NormalQuantile(0.95), b.Deficit*n >= chance*walk
		switch {
		case rises && much:
			b.Verdict = Unstable
		case rises:
			b.Verdict = Undecided
			b.Longer = 2 * chance * chance / n / (b.Deficit * b.Deficit)
		case much:
			b.Verdict, b.Longer = Undecided, 2
		}
	case b.Deficit < -MaxDeficit && z < -NormalQuantile(0.95) && -b.Deficit*n > drain*walk:
		b.Verdict, b.Drained = Undecided, true
	}
	return b
}

// MissedOverload is by how much a load may be above what is served and still not
// be called unstable by [JudgeBacklog] in one window of twenty, of so many arrivals:
// 0.1 for 10 %. ok is false where any load may be.
//
// The deficit must be above the limits of JudgeBacklog by 1.645 of [DeficitSD].
// `go run ./bench/stat -only missed` shows how often such a load is called what.
func MissedOverload(arrivals float64) (share float64, ok bool) {
	left := max(MaxDeficit, chance*math.Sqrt(2/arrivals)) + NormalQuantile(0.95)*DeficitSD(arrivals)
	if !(left < 0.9) {
		return 0, false
	}
	return left / (1 - left), true
}

// DeficitSD is the standard deviation of [Backlog.Deficit] over so many arrivals at a queue that is
// saturated or overloaded. Such a queue is a random walk with a drift. A slope fitted to its course
// has √1.2 times the standard deviation of its end; 1.6 times as much, because services may vary
// twice as much as exponential ones, or arrivals come in bursts.
func DeficitSD(arrivals float64) float64 { return 1.6 * math.Sqrt(1.2*2/arrivals) }

// SteadyDeficitSD is an upper limit of the standard deviation of the deficit of a queue that was
// not called unstable: three times what the steps between its blocks come to in a random walk, at
// most [DeficitSD]. A server far from its limit has few requests in flight, and these vary little.
// That an overloaded one looks like it is all but impossible.
func SteadyDeficitSD(inFlight []float64, arrivals float64) float64 {
	most := DeficitSD(arrivals)
	if len(inFlight) < 3 {
		return most
	}
	steps := make([]float64, len(inFlight)-1)
	for i := range steps {
		steps[i] = inFlight[i+1] - inFlight[i]
	}
	_, sd := Moments(steps)
	// A step between means of two blocks has 2/3 of the variance of a walk over one.
	return min(most, 3*math.Sqrt(1.2*1.5*float64(len(inFlight)))*sd/arrivals)
}
