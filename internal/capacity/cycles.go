package capacity

import (
	"math"

	"pitot/internal/results/result"
)

// Arrivals whose rate takes turns, such as on-off and mmpp: a window that is shorter than
// their cycle shows one of the rates, and blocks of it all the same one. So bounds rest on
// windows of so many cycles that each block has some, as intervals of a run do, and the fit,
// which rests on how much whole windows differ, on windows of a few. Shorter ones only show
// the way.
const (
	// cyclesLook is of how many cycles a window is that a bound rests on: two for each block.
	cyclesLook = 2 * Blocks
	// cyclesMain is of how many one is that is fitted.
	cyclesMain = 2
	// estimateCycles is of about how many all windows are together that give an estimate.
	estimateCycles = cyclesLook + cyclesMain*(fewestMain+stairs)
	// leastTime is the smallest budget of time in multiples of the cycles that a bound rests on. It
	// leaves time for the bracket too.
	leastTime = 1.75
	// nearlyWhole is the share of the requests of so many cycles that stands for all: a
	// window that lasts a time has fewer now and then, and those of a leg have the requests
	// of the load in their middle.
	nearlyWhole = 0.5
)

// inCycles returns the number of requests in the given cycles of the arrivals, 0 where they have
// none.
func (f *search) inCycles(cycles, load float64) int {
	if f.cfg.Closed || f.cfg.Traffic.Cycle == 0 || !(load > 0) {
		return 0
	}
	return int(math.Ceil(cycles * f.cfg.Traffic.Cycle * f.requestRate(load)))
}

// spansCycles says that a window of so many requests is of so many cycles.
func (f *search) spansCycles(load float64, n int, cycles float64) bool {
	return float64(n) >= nearlyWhole*float64(f.inCycles(cycles, load))
}

// supportsBounds says that bounds may rest on a step.
func (f *search) supportsBounds(s *Step) bool {
	return s.Seen.IsEvidence() && f.spansCycles(s.Load, s.Seen.N, cyclesLook)
}

// tooSlow returns why nothing is known where arrivals take turns more slowly than the budget has
// time for, and how long it would take; none where that is not why.
func (f *search) tooSlow() result.Reason {
	if f.inCycles(1, 1) == 0 {
		return result.Reason{}
	}
	for i := range f.cap.Trail {
		if f.supportsBounds(&f.cap.Trail[i]) {
			return result.Reason{}
		}
	}
	cycle := f.cfg.Traffic.Cycle
	return result.Reason{Code: result.ArrivalsTurnSlowly, N: float64(len(f.cap.Trail)), Seconds: cycle, Needed: cyclesLook,
		Low: leastTime * cyclesLook * cycle, High: estimateCycles * cycle}
}

// isHopeless says that a budget of time has no window for the cycles of the arrivals, whatever the
// load: then nothing need be measured to know that nothing can be said.
func (f *search) isHopeless() bool {
	b := f.cfg.Budget.Seconds
	return b > 0 && f.begun == 0 && !f.cfg.Closed && b < leastTime*cyclesLook*f.cfg.Traffic.Cycle
}

// paysFit says that a budget of time pays as many windows of a few cycles as a fit takes. Where
// it does not, what is left is for the look.
func (f *search) paysFit() bool {
	if f.cfg.Budget.Seconds == 0 || f.inCycles(1, 1) == 0 || f.begun > 0 {
		return true
	}
	windows := (fewestMain + stairs) * (cyclesMain*f.cfg.Traffic.Cycle + f.secondsBeside(Warmup, f.lo))
	return f.cap.Seconds+windows <= f.cfg.Budget.Seconds
}
