package stat

// Stability says whether a queue is in balance.
type Stability string

const (
	Stable    Stability = "stable"
	Unstable  Stability = "unstable"
	Undecided Stability = "undecided"
)

const (
	// BacklogBlocks is how many blocks Backlog is tried with.
	BacklogBlocks = 12
	// MaxDeficit is the share of arrivals that may go unserved in balance.
	MaxDeficit = 0.02
	// MinResidences is how many residence times a window must have for a verdict.
	MinResidences = 30
)

// Backlog is what the requests in flight say of a queue.
type Backlog struct {
	Verdict Stability
	Deficit float64 // slope of the requests in flight ÷ arrival rate: the share of arrivals that are never served
	Z       float64 // Mann-Kendall's z of the trend
}

// JudgeBacklog judges a queue by the mean number of requests in flight in
// equal blocks of a window of the given length. Unstable is a rise by the
// Mann-Kendall test at 5 % one-sided, and a deficit above MaxDeficit: the test
// alone takes the slow waves of a loaded queue for a trend. A window below
// MinResidences residence times is undecided.
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
	b := Backlog{Verdict: Stable, Z: z, Deficit: TheilSen(inFlight, window/float64(len(inFlight))) / rate}
	switch {
	case window < MinResidences*residence:
		b.Verdict = Undecided
	case z > NormalQuantile(0.95) && b.Deficit > MaxDeficit:
		b.Verdict = Unstable
	}
	return b
}
