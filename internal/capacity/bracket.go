package capacity

import (
	"math"

	"pitot/internal/results/result"
	"pitot/internal/stats"
)

const (
	lightRequests   = 50 // at about one request at a time, if these take no more than lightShare
	fewestLight     = 8  // else as many as that pays, and so many at least
	lightShare      = 0.03
	lightWarmup     = 2   // residence times: there is no queue that has to settle
	bracketRequests = 500 // of a probe of the bracket, at most
	bracketShare    = 1.0 / 60
	bracketCycles   = 1.0 / 30 // of the budget, of a probe that is to have some cycles of its arrivals
	bracketWindow   = 15       // residence times of such a probe, if fewer requests
	bracketWarmup   = 5        // and of its warm-up: means are settled by then, and it claims nothing
	// Where a budget of time is less than hasty times what a request takes, the load is
	// quadrupled and not doubled: a bound above is an answer, and there is time for no other.
	hasty, strides = 100, 4
	hastyWarmup    = 3    // of a budget of time, most of which would go into warm-ups else
	leftFloor      = 0.05 // of a budget of time, for a look at light load before the one far below the limit
	// With so many times what a session lasts a budget of time pays whole warm-ups of the bracket.
	leisurely    = 100
	bisections   = 3 // that narrow the bracket from a factor of 2 to 9 %
	maxDoublings = 30
	maxHalvings  = 4
	// saturated is a multiple of the time of a request alone. If requests take longer, the load
	// counts as too high although they violate no limit.
	saturated = 20
)

// bracketLimit finds a load that seems to hold and one, 9 % above, that does not: the load doubles
// from one request at a time until a limit is violated by five times the odds it may, again where a
// single cluster of violations may have done that, or the queue grows; then three geometric
// bisections follow. A probe at the limit itself counts as holding or not by chance, so the bracket
// is only where the staircases begin.
func (f *search) bracketLimit() bool {
	load := f.roundLoad(f.cfg.lightLoad())
	if f.cfg.Closed {
		load = 1
	}
	for i := range maxDoublings {
		stage, n := Bracket, f.bracketRequests(load)
		if i == 0 {
			stage, n = Light, f.lightRequests(load)
		}
		s, ok := f.tryAgain(stage, load, n)
		if !ok {
			return false
		}
		if i == 0 {
			if s.Residence > 0 {
				f.residence = s.Residence
			}
			if f.isFarBeyond(&s) {
				if !f.halveLoad(load) {
					return false
				}
				break
			}
		}
		if f.isFarBeyond(&s) || s.Residence > saturated*f.residence {
			f.hi = load
			f.belowCarried(&s)
			break
		}
		f.lo = load
		next := f.roundLoad(f.loadStride() * load)
		if next == load {
			return f.holdsAtMost(load)
		}
		load = next
	}
	if f.hi == 0 {
		f.boundless, f.cap.Reason = true, result.Reason{Code: result.MetAtEveryLoad}
		return false
	}
	times := bisections
	if f.loadStride() > 2 { // a bracket of a factor of 4 takes one more
		times++
	}
	for range times {
		middle := f.roundLoad(math.Sqrt(f.lo * f.hi))
		if middle <= f.lo || middle >= f.hi {
			break
		}
		n := f.bracketRequests(middle)
		if !f.leavesLook(middle, n) {
			break
		}
		s, ok := f.tryBracket(Bracket, middle, n)
		if !ok {
			return false
		}
		if f.isFarBeyond(&s) || s.Residence > saturated*f.residence {
			f.hi = middle
		} else {
			f.lo = middle
		}
	}
	return f.isViolated()
}

// belowCarried narrows the bracket to what a window shows that the server carries. Loads above that
// which seemed to hold were too short for their queue to show.
func (f *search) belowCarried(s *Seen) {
	c := s.Carried.Interval
	if !s.IsEvidence() || !f.hasOutgrown(s) || c.Hi == 0 || c.Hi >= f.hi {
		return
	}
	lo := 0.
	for i := range f.cap.Trail {
		if x := &f.cap.Trail[i]; x.Load < c.Lo && x.Seen.IsEvidence() && !f.isFarBeyond(&x.Seen) {
			lo = max(lo, x.Load)
		}
	}
	if hi := f.roundLoad(c.Hi); lo > 0 && hi > lo {
		f.lo, f.hi = lo, hi
	}
}

// leavesLook says whether after a bisection a budget of time still pays the look at a load far
// below the limit. Without that look there is no lower bound, which tells more than a narrower
// bracket. Where the look cannot be paid without the bisection either, nothing is lost by it.
func (f *search) leavesLook(middle float64, n int) bool {
	b := f.cfg.Budget.Seconds
	if b == 0 {
		return true
	}
	look := func(below float64) float64 { // the lower the load, the longer it takes
		low := below * math.Exp(-lowerStep)
		return f.probeSeconds(low, f.leastLow(low)) + leftFloor*b
	}
	takes := f.secondsBeside(f.roughWarmup(Bracket), middle) + float64(n)/f.requestRate(middle)
	left := b - f.cap.Seconds
	return left-takes >= look(middle) || left < look(f.hi)
}

// loadStride is by how much the load rises while no limit is violated.
func (f *search) loadStride() float64 {
	if b := f.cfg.Budget.Seconds; b > 0 && b < hasty*f.residence {
		return strides
	}
	return 2
}

// bracketRequests of a probe: a small budget has smaller ones.
func (f *search) bracketRequests(load float64) int {
	total := f.totalRequests(load)
	n := min(bracketRequests, total*bracketShare, bracketWindow*f.requestRate(load)*f.residenceAt(load))
	if whole := float64(f.inCycles(cyclesMain, load)); whole > n { // a shorter one may have few of the requests, or many
		n = max(n, min(whole, total*bracketCycles))
	}
	// A window costs a warm-up and a drain, however short it is: where these are long beside it, it
	// has the requests of a residence time.
	if r := f.requestRate(load) * f.residenceAt(load); f.cfg.Budget.Seconds > 0 && n < r {
		n = min(r, bracketRequests)
	}
	return max(f.lightRequests(load), int(n))
}

// lightRequests of a light load: fewer where they take much of a budget of time.
func (f *search) lightRequests(load float64) int {
	if b := f.cfg.Budget.Seconds; b > 0 {
		return min(lightRequests, max(fewestLight, int(lightShare*b*f.requestRate(load))))
	}
	return lightRequests
}

// roughWarmup is the warm-up of a probe that only shows the way, in residence times.
func (f *search) roughWarmup(stage string) float64 {
	switch {
	case f.cfg.Budget.Seconds == 0:
		return bracketWarmup
	case stage == Light:
		return lightWarmup
	case f.cfg.hasEvenPauses() && f.cfg.Budget.Seconds > leisurely*f.cfg.sessionSeconds(f.residence):
		return bracketWarmup // in which there is a burst
	}
	return hastyWarmup
}

// tryBracket measures a load if the budget pays it.
func (f *search) tryBracket(stage string, load float64, n int) (Seen, bool) {
	warmup := f.roughWarmup(stage)
	p := Probe{Load: load, Requests: n, Residences: warmup, Stage: stage, Counted: f.isCostly(load, n, warmup)}
	if p.Counted {
		p.Decided = func(violations []int, left int) bool { return f.isDecided(violations, left, n) }
	}
	if f.affordableIn(&p, 0) < n {
		if f.lo > 0 { // as far as is known, the next one is beyond the limit
			load = f.lo
		}
		f.cap.Reason = f.takesABound(load)
		return Seen{}, false
	}
	return f.measureLoad(p)
}

// takesABound returns that the budget ended in the bracket, how many requests one bound takes, and
// how long that is at a load.
func (f *search) takesABound(load float64) result.Reason {
	n := f.leastLow(load)
	r := result.Reason{Code: result.BudgetInBracket, Needed: float64(n)}
	if f.cfg.Budget.Seconds > 0 {
		r.Low, r.Seconds = load, f.probeSeconds(load, n)
	}
	return r
}

// tryAgain measures a load, and again where it is too high by no more than a cluster of violations
// may make of it, such as come without any load now and then: it is too high if one of so many
// further windows shows it too. Believed at once, one of 10 to 30 failures in a window of 50
// requests left a search at a tenth of the capacity, where the next ones passed for a rise.
func (f *search) tryAgain(stage string, load float64, n int) (s Seen, ok bool) {
	if s, ok = f.tryBracket(stage, load, n); !ok || !f.isFarBeyond(&s) || f.isBeyondThroughout(&s) {
		return s, ok
	}
	for range furtherWindows {
		next, ok := f.tryBracket(stage, load, n)
		if !ok && f.err == nil && !f.died { // the budget ends: what is known is believed
			return s, true
		}
		if !ok || f.isFarBeyond(&next) {
			return next, ok
		}
		s = next
	}
	return s, true
}

const furtherWindows = 2

// oneCluster is the number of consecutive requests that may violate a limit together for another
// cause than load. It is twice the mean of the longest clusters of a floor that are simulated.
const oneCluster = 60

// slower is a multiple of the time of a request alone. Where the load makes requests violate a
// limit, they take at least that. Those of a single server do so at the very first load, and not in
// each short window of it.
const slower = 1.5

// isBeyondThroughout says that a window is far beyond a limit without its worst oneCluster requests
// in a row too, or that the load makes all requests slower.
func (f *search) isBeyondThroughout(s *Seen) bool {
	if s.Stability == stats.Unstable || s.Residence > slower*f.residence {
		return true
	}
	for _, claim := range f.cfg.claimIndices() {
		blocks, due := s.violationBlocks(claim), float64(s.dueRequests(claim))
		if len(blocks) == 0 || due == 0 {
			continue
		}
		size := due / float64(len(blocks))
		cluster := min(len(blocks), int(math.Ceil(oneCluster/size)))
		worst := 0
		for i := range len(blocks) - cluster + 1 {
			together := 0
			for _, v := range blocks[i : i+cluster] {
				together += v
			}
			worst = max(worst, together)
		}
		rest := s.violationCount(claim) - worst
		if rest > 1 && float64(rest) > scaleOdds(f.cfg.allowedShare(claim), beyond)*(due-float64(cluster)*size) {
			return true
		}
	}
	return false
}

// isDecided says that it is known whether a window of about n requests is far beyond a limit:
// those that have not ended are too few to change it.
func (f *search) isDecided(violations []int, left, n int) bool {
	not := left >= 0 && f.cfg.Joint == 0
	for i, eps := range f.cfg.Eps {
		if eps == 0 {
			continue
		}
		most := scaleOdds(eps, beyond) * float64(n)
		if float64(violations[i]) > most+1 {
			return true
		}
		not = not && float64(violations[i]+left) <= most-1
	}
	return not
}

// halveLoad halves a load that is too high from one request at a time on: a server of one
// slot is, long before it has one request after the other.
func (f *search) halveLoad(load float64) bool {
	f.hi = load
	for range maxHalvings {
		if load = f.roundLoad(load / 2); load >= f.hi {
			break
		}
		s, ok := f.tryBracket(Light, load, f.lightRequests(load))
		if !ok {
			if f.err == nil && !f.died {
				f.cap.Reason = result.Reason{Code: result.MissedAtLightest, Low: f.hi}
			}
			return false
		}
		if !f.isFarBeyond(&s) {
			f.lo = load
			return true
		}
		f.hi = load
	}
	f.cap.Reason = result.Reason{Code: result.MissedAtLightest}
	return false
}

// holdsAtMost looks for long at the highest load allowed, if it is not beyond
// a limit.
func (f *search) holdsAtMost(load float64) bool {
	f.verifyAlone(load)
	if f.cap.Quote > 0 {
		f.cap.Reason = result.Reason{Code: result.MetAtMostLoad, Low: load}
	}
	return false
}
