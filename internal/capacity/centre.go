package capacity

import (
	"math"

	"pitot/internal/results/result"
	"pitot/internal/stats"
)

const (
	stairs = 5
	// stairStep is the step of a staircase as a share of the main loads' width, and
	// stairShift how far the centre moves at most, in widths.
	stairStep, stairShift = 0.4, 1.6
	maxRounds             = 6
	// Requests at a load of a staircase: a share of the budget, within bounds.
	stairShare = 1.0 / 80
	leastStair = 60
	mostStair  = 2000
)

// SlopePrior returns the prior of the slope of violations: they rise with the load. Near the limit
// d logit P / d ln load was between 14 and 70 where lengths vary little. It was 3 to 6 where few
// long prompts hold up many others.
func SlopePrior() stats.Prior { return stats.Prior{Mean: 25, SD: 25} }

// centreStaircases climbs staircases of five neighbouring loads, in random order, until they
// lie around the limit: the fit moves by less than half the width of the main loads,
// one load is above 2ε and one below ε.
func (f *search) centreStaircases() bool {
	f.centred = math.Sqrt(f.lo * f.hi)
	// A load that did not look far beyond the limit may be beyond it all the same: windows that
	// are counted have the requests to tell.
	if below := f.lowestCrossing(Bracket); f.cfg.Count && below > f.cfg.lightLoad() && below < f.lo && f.exceededAt(f.lo) {
		f.centred = below
	}
	if at, own := f.earlierEstimate(); at > 0 {
		if f.centred = at; own {
			return true
		}
	}
	least := max(leastStair, f.inCycles(cyclesMain, f.centred))
	n := max(least, int(min(mostStair, f.totalRequests(f.centred)*stairShare)))
	for round := range maxRounds {
		width := f.mainWidthAt(f.centred)
		loads := f.staircaseLoads(width)
		if f.affordableRequests(f.countingWork(), loads, spareMain+spareVerify) < n {
			if round > 0 {
				break
			}
			most := f.affordableRequests(f.countingWork(), loads, spareVerify) / 2
			if f.cfg.Budget.Work > 0 { // where warm-ups take most of it, the main loads are to have the rest
				most = min(most, max(n, int(f.requestsAround(f.centred)/4)))
				n = most
			}
			if n = min(n, most); n < least { // the main loads are put between those of the bracket
				return true
			}
		}
		if !f.paysLookAfter(loads, n) {
			break
		}
		from := len(f.cap.Trail)
		step := Probe{Requests: n, Stage: Centre, Counted: f.cfg.Count}
		if !f.lookAt(f.shuffleLoads(loads), step) {
			return false
		}
		shift := f.centreShift(f.cap.Trail[from:], width)
		f.centred *= math.Exp(shift)
		if math.Abs(shift) < width/2 && f.straddlesLimit(f.cap.Trail[from:]) {
			break
		}
	}
	return true
}

// paysLookAfter reports whether a budget of time still pays a look far below the limit after a
// staircase of n requests a load, or pays none without it either.
func (f *search) paysLookAfter(loads []float64, n int) bool {
	b, low := f.cfg.Budget.Seconds, f.lowLoad()
	if b == 0 || low == 0 {
		return true
	}
	takes := 0.
	for _, load := range loads {
		takes += f.probeSeconds(load, n)
	}
	lower := low * lowerStill // the staircase may show violations at lower loads
	left := b - f.cap.Seconds
	return left-takes >= f.probeSeconds(lower, f.leastLow(lower)) || left < f.probeSeconds(low, f.leastLow(low))
}

// tooSmall returns why a search has no estimate.
func (f *search) tooSmall() result.Reason {
	if f.cfg.Budget.Work > 0 { // nobody set so little
		return result.Reason{Code: result.SimulatedTooLittle}
	}
	return result.Reason{Code: result.BudgetTooSmall}
}

// staircaseLoads is five loads around the centre. Whole numbers of users are at
// least one apart.
func (f *search) staircaseLoads(width float64) (loads []float64) {
	step := stairStep * width
	if f.cfg.Closed {
		step = max(step, 1/f.centred)
	}
	for i := range stairs {
		loads = append(loads, f.roundLoad(f.centred*math.Exp(step*float64(i-stairs/2))))
	}
	return loads
}

// lowestCrossing is the lowest load at which a fit of some stages crosses a limit;
// 0 if none does.
func (f *search) lowestCrossing(stages ...string) float64 {
	lowest := math.Inf(1)
	for _, claim := range f.cfg.claimIndices() {
		if at := f.crossingOf(claim, stages...).Load; at > 0 {
			lowest = min(lowest, at)
		}
	}
	if math.IsInf(lowest, 1) {
		return 0
	}
	return lowest
}

// centreShift is by how much, in ln, the centre has to move after a staircase.
func (f *search) centreShift(steps []Step, width float64) float64 {
	maxShift := stairShift * width
	if at := f.lowestCrossing(Centre); at > 0 {
		return min(maxShift, max(-maxShift, math.Log(at/f.centred)))
	}
	for _, s := range steps {
		if s.Seen.IsEvidence() && f.exceedsShare(&s.Seen, 2) {
			return -maxShift / 2
		}
	}
	return maxShift / 2
}

// exceedsShare says that a claim is violated by more than so many times its share.
func (f *search) exceedsShare(s *Seen, times float64) bool {
	for _, claim := range f.cfg.claimIndices() {
		if s.violationShare(claim) > scaleOdds(f.cfg.allowedShare(claim), times) {
			return true
		}
	}
	return false
}

// exceededAt says that a limit is violated by more than it may at a load.
func (f *search) exceededAt(load float64) bool {
	for _, claim := range f.cfg.claimIndices() {
		if f.shareAt(load, claim) > f.cfg.allowedShare(claim) {
			return true
		}
	}
	return false
}

// straddlesLimit says that one load is clearly above a limit, and one below all.
func (f *search) straddlesLimit(steps []Step) bool {
	above, below := false, false
	for _, s := range steps {
		if !s.Seen.IsEvidence() {
			continue
		}
		above = above || f.exceedsShare(&s.Seen, 2)
		below = below || !f.exceedsShare(&s.Seen, 1)
	}
	return above && below
}
