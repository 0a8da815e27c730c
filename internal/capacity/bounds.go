package capacity

import (
	"cmp"
	"math"
	"slices"

	"pitot/internal/results/result"
	"pitot/internal/stats"
)

// What can be said where no curve can be fitted: bounds from loads that were measured,
// and of violations that the load does not cause. All rest on one thing that is not
// measured: that more load does not make fewer requests violate a limit.

const (
	// band is the distance below a load, in ln, down to which windows count for that load too.
	// Where a share violates below, at least that share does so there.
	band = 0.1
	// bursty is the distance below a load, in ln, down to which windows show how much violations
	// cluster.
	bursty = 0.3
	// lowPhi is the assumed dispersion of violations, relative to independent ones, at a load so
	// low that none is seen. lowStep is the distance of that load below the first sign of
	// violations, in ln.
	lowPhi  = 2
	lowStep = 0.7
	// lowerStep is that distance where a budget of time paid for a bracket of short windows and for
	// no staircase. With lowStep, bounds of 30 minutes at a request a second were too high in 2 %
	// of the searches. Those are searches of the systems that constants are chosen on; the 2 % are
	// 16 % of the bounds.
	lowerStep = 1.1
	// mostLow is the largest size of such a look, in multiples of the least. mostLowFloor is that
	// size where light loads show violations. There half as many requests as may violate a limit
	// may do so at any load. That many requests then show that they are few enough.
	mostLow, mostLowFloor = 3, 12
	// leastLowLook is the smallest number of requests of a look there, whatever the limit allows.
	leastLowLook = 300
)

// blocksPhi returns the variance of blocks of violations relative to that of independent ones. It
// returns 1 where that is not known or is less.
func blocksPhi(blocks []int, n int) float64 { return max(1, blockVariation(blocks, n)) }

// blockVariation is the variance of blocks of violations over that of independent ones, 0 where
// that is not known.
func blockVariation(blocks []int, n int) float64 {
	if len(blocks) < 2 || n < len(blocks) {
		return 0
	}
	size, total := float64(n)/float64(len(blocks)), 0.0
	counts := make([]float64, len(blocks))
	for i, b := range blocks {
		counts[i] = float64(b)
		total += counts[i]
	}
	p := total / float64(n)
	if !(p > 0 && p < 1) {
		return 0
	}
	_, sd := stats.Moments(counts)
	return sd * sd / (size * p * (1 - p))
}

// widestPhi is the larger one of the blocks as they are and in pairs, each with what t
// has over the normal distribution for so few.
func widestPhi(blocks []int, n int, level float64) float64 {
	phi := 1.0
	for _, b := range [][]int{blocks, inPairs(blocks)} {
		if len(b) > 2 {
			t := stats.StudentQuantile(level, float64(len(b)-1)) / stats.NormalQuantile(level)
			phi = max(phi, t*t*blocksPhi(b, n))
		}
	}
	return phi
}

// blocksAndPairsPhi is the larger one of the blocks as they are and in pairs.
func blocksAndPairsPhi(blocks []int, n int) float64 {
	return max(blocksPhi(blocks, n), blocksPhi(inPairs(blocks), n))
}

// inPairs takes neighbouring blocks together.
func inPairs(blocks []int) []int {
	pairs := make([]int, len(blocks)/2)
	for i := range pairs {
		pairs[i] = blocks[2*i] + blocks[2*i+1]
	}
	return pairs
}

// boundLevel is the level of each of two bounds that hold together at the search's.
func (f *search) boundLevel() float64 { return (1 + f.cfg.Level) / 2 }

// lowestRefuted is the lowest load that is known to be above the capacity, 0 if none is. The
// loads are asked from the highest down, and the first that may hold ends it: so the
// chance of naming one that holds is that of a single test.
func (f *search) lowestRefuted() float64 {
	var loads []float64
	for _, s := range f.ofLaunch() {
		if f.supportsBounds(&s) {
			loads = append(loads, s.Load)
		}
	}
	slices.Sort(loads)
	lowest := f.lowestOutgrown()
	for _, load := range slices.Backward(slices.Compact(loads)) {
		if !f.violatedAt(load) && !f.overIn(load) {
			break
		}
		if lowest == 0 || load < lowest {
			lowest = load
		}
	}
	return lowest
}

// violatedAt says that more requests violate some limit at a load than may, by its
// windows and those not far below.
func (f *search) violatedAt(load float64) bool {
	claims := f.cfg.claimIndices()
	for _, claim := range claims {
		bad, n, phi := 0, 0, 1.0
		for i := range f.cap.Trail {
			s := &f.cap.Trail[i].Seen
			below := math.Log(load / f.cap.Trail[i].Load)
			if !f.supportsBounds(&f.cap.Trail[i]) || below < 0 || below > bursty || f.cap.Trail[i].Launch != f.launch {
				continue
			}
			phi = max(phi, widestPhi(s.violationBlocks(claim), s.dueRequests(claim), f.boundLevel()))
			if below <= band {
				bad, n = bad+s.violationCount(claim), n+s.dueRequests(claim)
			}
		}
		alpha := (1 - f.boundLevel()) / float64(len(claims))
		if f.cfg.Count {
			alpha /= 2 // overIn has the other half
		}
		if n > 0 && stats.ClopperPearson(bad, n, phi, stats.OneSided(1-alpha)).Lo > f.cfg.allowedShare(claim) {
			return true
		}
	}
	return false
}

// overIn says that more requests violate some limit at a load than may by windows that are
// counted there and below: where so many violate below, as many do there. It is metIn the
// other way round.
func (f *search) overIn(load float64) bool {
	if !f.cfg.Count {
		return false
	}
	return slices.ContainsFunc(f.cfg.claimIndices(), func(claim int) bool {
		steps := slices.DeleteFunc(f.evidenceSteps(claim), func(s Step) bool { return s.Load > load })
		slices.Reverse(steps)
		return f.inPools(steps, claim, func(bad, n, windows int, level float64) bool {
			phi := f.assumedClustering()
			for i := range steps[:windows] {
				s := &steps[i].Seen
				phi = max(phi, blocksAndPairsPhi(s.violationBlocks(claim), s.dueRequests(claim)))
			}
			return stats.ClopperPearson(bad, n, phi, stats.OneSided(level)).Lo > f.cfg.allowedShare(claim)
		})
	})
}

// evidenceSteps are the windows of a claim that tell by themselves, by load.
func (f *search) evidenceSteps(claim int) []Step {
	steps := slices.DeleteFunc(slices.Clone(f.ofLaunch()), func(s Step) bool {
		return !f.supportsBounds(&s) || s.Seen.dueRequests(claim) == 0 || s.Stage != Main && s.Stage != Centre && s.Stage != Verifying
	})
	stats.SortStable(steps, func(a, b Step) int { return cmp.Compare(a.Load, b.Load) })
	return steps
}

// metUpTo is the highest load at which a claim holds by the windows there and above alone,
// whatever the curve between them: where fewer violate above, no more do there. A load is
// asked by the windows next above it, by more of them and by all, each with its part of the
// chance of an error: the first tell more of a claim that is reached soon, the others of one
// that is not, where a burst in one window is made up for by many windows without. The
// loads are asked from the lightest up, and the first that does not tell ends it: so the
// chance of naming one that is too high is that of a single test. 0 if none tells. It takes
// as many requests as are counted: with those of a budget on a server some windows have none
// of the bursts, and 5 % of the loads that were quoted were too high by more than 2 %.
func (f *search) metUpTo(claim int) (load float64) {
	steps, grows := f.evidenceSteps(claim), f.growsFrom()
	steps = slices.DeleteFunc(steps, func(s Step) bool { return f.hasOutgrown(&s.Seen) || grows > 0 && s.Load >= grows })
	for i := range steps {
		if !f.metIn(steps[i:], claim) {
			break
		}
		load = steps[i].Load
	}
	return load
}

// metPools lists the numbers of requests that are pooled, in multiples of the least that a look
// takes.
var metPools = []float64{1, 4, 16, math.Inf(1)}

// metIn says that a claim holds at the first of some loads, by as many of the windows from
// there on as one of metPools has.
func (f *search) metIn(steps []Step, claim int) bool {
	phi := max(f.phiAbove(steps, claim), f.assumedClustering())
	return f.inPools(steps, claim, func(bad, n, _ int, level float64) bool {
		return stats.ClopperPearson(bad, n, phi, stats.OneSided(level)).Hi <= f.cfg.allowedShare(claim)
	})
}

// inPools says that one of metPools tells something: the first windows of some, with the
// violations and requests in them. All windows of the first load are in each. The pools of all
// claims together are wrong with half the chance of a bound: the other half is that of single
// loads.
func (f *search) inPools(steps []Step, claim int, tells func(bad, n, windows int, level float64) bool) bool {
	level := 1 - (1-f.boundLevel())/float64(2*len(metPools)*len(f.cfg.claimIndices()))
	bad, n, pool := 0, 0, 0
	for i := range steps {
		bad, n = bad+steps[i].Seen.violationCount(claim), n+steps[i].Seen.dueRequests(claim)
		least, last := float64(f.leastVerify(steps[0].Load)), i == len(steps)-1
		if float64(n) < least || !last && (steps[i+1].Load == steps[0].Load || float64(n) < metPools[pool]*least) {
			continue
		}
		if tells(bad, n, i+1, level) {
			return true
		}
		for pool < len(metPools)-1 && float64(n) >= metPools[pool]*least {
			pool++
		}
	}
	return false
}

// phiAbove returns the variation of a claim's violations from block to block, relative to
// independent ones. It uses the windows from the first of some loads to not far above it. A window
// with more violations counts more. No window is left out for having many: one that met a long
// burst has, and it alone shows how long bursts are.
func (f *search) phiAbove(steps []Step, claim int) float64 {
	sum, weight := 0., 0.
	for i := range steps {
		s := &steps[i].Seen
		if steps[i].Load > steps[0].Load*math.Exp(bursty) {
			break
		}
		v := float64(s.violationCount(claim))
		sum, weight = sum+v*blocksAndPairsPhi(s.violationBlocks(claim), s.dueRequests(claim)), weight+v
	}
	return max(lowPhi, sum/max(weight, 1))
}

// metByAll is up to where all claims are known to hold by windows that are counted, 0 where
// they are not.
func (f *search) metByAll() float64 {
	if !f.cfg.Count {
		return 0
	}
	least := math.Inf(1)
	for _, claim := range f.cfg.claimIndices() {
		least = min(least, f.metUpTo(claim))
	}
	return least
}

// lowestOutgrown is the lowest load that is above what is served: two windows up to it, from
// where the queue grows on, were unstable. One may be by chance.
func (f *search) lowestOutgrown() float64 {
	from := f.unstableFrom()
	if from == 0 {
		return 0
	}
	var loads []float64
	for _, s := range f.ofLaunch() {
		if f.supportsBounds(&s) && s.Seen.Stability == stats.Unstable && s.Load >= from {
			loads = append(loads, s.Load)
		}
	}
	if slices.Sort(loads); len(loads) < 2 {
		return 0
	}
	return loads[1]
}

// leastLow returns the number of requests of a look at a load far below the limit. It is large
// enough that no violation at all says enough.
func (f *search) leastLow(load float64) int {
	least := max(leastLowLook, f.wholeSessions(load), f.inCycles(cyclesLook, load))
	for _, claim := range f.cfg.claimIndices() {
		alpha := (1 - f.boundLevel()) / float64(len(f.cfg.claimIndices()))
		least = max(least, int(math.Ceil(f.cfg.dueFor(-math.Log(alpha)*lowPhi*f.assumedClustering()/f.cfg.allowedShare(claim), claim)))+lowPhi)
	}
	return least
}

// lowLoad is half the load from which on more requests seem to violate a limit than may, or the
// queue to grow; 0 where none does.
func (f *search) lowLoad() float64 {
	first := f.firstOver()
	if math.IsInf(first, 1) {
		return 0
	}
	step := lowStep
	if f.cfg.Budget.Seconds > 0 && (f.early || !f.hasStage(Centre)) { // few requests showed where the limit is
		step = lowerStep
	}
	if f.cfg.Closed {
		return math.Floor(first * math.Exp(-step))
	}
	return tidyBelow(first * math.Exp(-step))
}

// wellSeen is the least number of requests of a window that may violate a limit, for the window to
// show whether the limit holds. In 10 to 30 minutes at 3 to 10 requests a second the capacity then
// lies between [Capacity.Likely] in 55 to 94 % of the searches without an estimate (`go run
// ./bench/stat -only timed -seed 4242`).
const wellSeen = 4

// likelyBounds returns the highest load below the first that violates a limit by more than it may,
// of windows that show it, and that first one; zero where both are not known.
func (f *search) likelyBounds() (between stats.Interval) {
	if f.cap.Estimate > 0 || f.cap.Floor.Lower > 0 || f.cap.Carried.Rate > 0 {
		return between
	}
	for _, load := range f.evidenceLoads() {
		shown := false
		for i := range f.cap.Trail {
			s := &f.cap.Trail[i].Seen
			if s.Load != load || !s.IsEvidence() {
				continue
			}
			if f.hasOutgrown(s) || f.exceedsShare(s, 1) {
				between.Hi = load
			}
			shown = shown || f.showsAll(s)
		}
		switch {
		case between.Hi > 0 && between.Lo > 0:
			return between
		case between.Hi > 0:
			return stats.Interval{}
		case shown:
			between.Lo = load
		}
	}
	return stats.Interval{}
}

// showsAll reports whether a window has the requests to show whether each limit holds.
func (f *search) showsAll(s *Seen) bool {
	for _, claim := range f.cfg.claimIndices() {
		if f.cfg.allowedShare(claim)*float64(s.dueRequests(claim)) < wellSeen {
			return false
		}
	}
	return true
}

// firstOver is the lowest load that seems to be over, infinite where none does. A single
// violation among few requests is no sign of the load where more requests above show none:
// neighbouring loads are taken together until shares only rise with the load.
func (f *search) firstOver() float64 {
	first := math.Inf(1)
	for _, s := range f.cap.Trail {
		if s.Load == f.hi || s.Seen.IsEvidence() && s.Seen.Stability == stats.Unstable {
			first = min(first, s.Load)
		}
	}
	for _, claim := range f.cfg.claimIndices() {
		for _, p := range f.risingShares(claim) {
			if p.violationShare() > f.cfg.allowedShare(claim) {
				first = min(first, p.load)
				break
			}
		}
	}
	return first
}

// pooled are neighbouring loads taken together, from one on.
type pooled struct {
	load          float64
	violations, n int
}

func (p *pooled) violationShare() float64 { return float64(p.violations) / float64(max(p.n, 1)) }

// risingShares are a claim's violations by the load, where neighbours are taken together until
// their share only rises, as rising does it.
func (f *search) risingShares(claim int) (list []pooled) {
	for _, load := range f.evidenceLoads() {
		next := pooled{load: load}
		for i := range f.cap.Trail {
			if s := &f.cap.Trail[i].Seen; f.cap.Trail[i].Load == load && s.IsEvidence() {
				next.violations, next.n = next.violations+s.violationCount(claim), next.n+s.dueRequests(claim)
			}
		}
		for k := len(list) - 1; k >= 0 && list[k].violationShare() > next.violationShare(); k-- {
			next = pooled{list[k].load, list[k].violations + next.violations, list[k].n + next.n}
			list = list[:k]
		}
		list = append(list, next)
	}
	return list
}

// lookEarly looks far below the limit before the loads that are fitted, where there is a budget of
// time: a lower bound comes first, and an estimate with what is left.
func (f *search) lookEarly() {
	if f.cfg.Budget.Seconds > 0 && f.err == nil && !f.died {
		f.early = true
		f.lookLow()
		f.early = false
	}
}

// lookLow looks there, where no load near the limit could be verified.
func (f *search) lookLow() {
	load := f.lowLoad()
	if !(load > 0) {
		return
	}
	p := f.longLook(load)
	if p.Requests < f.leastLow(load) {
		return
	}
	reason := f.cap.Reason
	most := mostLow
	if f.early {
		most = 1
	} else if f.floorSeen() { // some violate there too: it takes more requests to tell that they are few enough
		most = mostLowFloor
	}
	p.Requests = min(p.Requests, most*f.leastLow(load))
	s, ok := f.measureLoad(p)
	if !ok && !s.cutShort(f.leastLow(load)) {
		return
	}
	if s.Cut {
		reason = f.cap.Reason
	}
	if s.Invalid {
		f.cap.Reason = result.Reason{Code: result.LooksInvalid, Low: load}
		return
	}
	v, binding := Verification{}, 0
	if s.Cut {
		f.atHalf(func() { v, binding = f.judgeLow(load, &s, 1) })
	} else {
		v, binding = f.judgeLow(load, &s, 1)
	}
	if f.cap.Verified = v; f.cap.Estimate == 0 {
		f.cap.Binding = binding
	}
	if f.cap.Reason = reason; v.Passed {
		f.cap.Quote = load
		f.raiseLook(&p)
		if load = f.cap.Quote; f.cap.Estimate > 0 && f.cap.Lower < load { // the look says more than the fit
			f.cap.Lower, f.cap.Margin = load, 1-load/f.cap.Estimate
		}
		f.recordLoads(&p)
	}
}

// judgeLow says whether all claims hold at a load below the limit, by a look at it; violations
// are taken to cluster by phi at least. binding is the claim that is nearest to be violated.
// How long bursts are at the limit matters where the look is all that speaks for the load. At the
// lower end of the fit and below it the fit does, with their length in its width, and the look
// confirms it.
func (f *search) judgeLow(load float64, s *Seen, phi float64) (v Verification, binding int) {
	v = Verification{Load: load, N: s.N, Passed: s.IsEvidence() && f.spansCycles(load, s.N, cyclesLook) && s.Stability != stats.Unstable, Attempts: 1}
	worst := math.Inf(-1)
	for _, claim := range f.cfg.claimIndices() {
		upper, due := 1., s.dueRequests(claim) // of none that the claim is about nothing is known
		if due > 0 {
			phi := max(phi, lowPhi*s.assumedClustering(claim), widestPhi(s.violationBlocks(claim), due, f.boundLevel()))
			if f.cap.Estimate == 0 || load > f.cap.Lower {
				phi = max(phi, f.longBursts(claim))
			}
			upper = stats.ClopperPearson(s.violationCount(claim), due, phi, stats.OneSided(f.boundLevel())).Hi
		}
		v.Passed = v.Passed && upper <= f.cfg.allowedShare(claim)
		if x := upper / f.cfg.allowedShare(claim); x > worst {
			worst, binding, v.N, v.Violations, v.Upper, v.Errors = x, claim, due, s.violationCount(claim), upper, s.errorsOf(claim)
		}
	}
	return v, binding
}

// Bursts are as long as windows where φ is longBurst of a window's requests and more, and a share
// of seldomBurst and more of the windows beyond the first sign of violations by beyondFirst, in ln,
// met none. Chosen on `go run ./bench/stat -only clusters-chosen`: where clusters are of 500
// requests and windows of 90 to 400, lower bounds held in 78 % without it, in 93 % with it.
const longBurst, beyondFirst, seldomBurst = 0.25, 0.2, 0.2

// longBursts is by how much a claim's violations cluster where bursts of them are as long as the
// windows, so that a look that meets none says little; 0 where they are shorter.
func (f *search) longBursts(claim int) float64 {
	shares := f.violationShares(claim, Bracket, Centre, Main)
	fit := stats.FitLogistic(shares, SlopePrior())
	first, over, without, requests := f.firstOver(), 0, 0, 0
	for _, s := range shares {
		if requests += s.N; s.Load < first*math.Exp(beyondFirst) {
			continue
		}
		if over++; float64(s.Violations) <= f.cfg.allowedShare(claim)*float64(s.N) {
			without++
		}
	}
	if fit.Reason != "" || fit.Phi < longBurst*float64(requests)/float64(len(shares)) || float64(without) < seldomBurst*float64(over) || without == 0 {
		return 0
	}
	return fit.Phi
}

// raises lists distances below the first sign of violations, in ln. A counted search looks at these
// loads after a look that passed at lowStep. raisedPhi is the least dispersion of violations
// assumed there: the nearer the limit, the longer bursts are.
var raises = []float64{0.35, 0.18}

const raisedPhi = 4

// raiseLook looks at loads nearer to the limit while looks pass, where they are counted and no
// curve is known: violations that begin all at once, as where a queue begins to grow, determine
// none. The first that does not pass ends it, so the chance of one that is too high is that of a
// single look.
func (f *search) raiseLook(p *Probe) {
	if !f.cfg.Count || f.cap.Estimate > 0 {
		return
	}
	first := f.firstOver()
	for _, step := range raises {
		next := *p
		next.Load = f.allowedBelow(first * math.Exp(-step))
		least := raisedPhi * f.leastLow(next.Load) / lowPhi
		next.Requests = min(2*least, f.affordableIn(&next, shownShare))
		if next.Load <= f.cap.Quote || next.Requests < least {
			return
		}
		s, ok := f.measureLoad(next)
		if !ok || !s.IsEvidence() {
			return
		}
		v, binding := f.judgeLow(next.Load, &s, raisedPhi)
		if !v.Passed {
			return
		}
		f.cap.Verified, f.cap.Quote, f.cap.Binding, *p = v, next.Load, binding, next
	}
}

// lookNearer spends what is left of a budget of time on a look nearer to the limit than the one
// that passed. Only staircases tell where violations begin well enough for that.
func (f *search) lookNearer() {
	done := f.err != nil || f.died || f.boundless || f.cap.Carried.Rate > 0
	if done || f.cap.Quote == 0 || f.cfg.Budget.Seconds == 0 || !f.hasStage(Centre) {
		return
	}
	load := f.allowedBelow(f.firstOver() * math.Exp(-lowStep))
	p := f.longLook(load)
	least := raisedPhi * f.leastLow(load) / lowPhi
	if p.Requests = min(2*least, p.Requests); load <= f.cap.Quote || p.Requests < least {
		return
	}
	s, ok := f.measureLoad(p)
	if !ok || !s.IsEvidence() {
		return
	}
	if v, binding := f.judgeLow(load, &s, raisedPhi); v.Passed && (f.cap.Estimate == 0 || load <= f.cap.Estimate) {
		f.cap.Verified, f.cap.Quote = v, load
		if f.cap.Estimate == 0 {
			f.cap.Binding = binding
		} else if f.cap.Lower < load {
			f.cap.Lower, f.cap.Margin = load, 1-load/f.cap.Estimate
		}
	}
}

// mostAbove is the number of requests at a load that is measured for a bound above. stepsAbove is
// the number of such loads: they rise by [search.loadStride]. If no limit is violated by then,
// something other than the load bounds it.
const mostAbove, stepsAbove = 100, 6

// boundAbove spends what is left of a budget of time on a load that is surely too high, where
// none is known: a bound is an answer. A window that does not count tells of none, and nor would
// one at a still higher load.
func (f *search) boundAbove() {
	if f.cfg.Budget.Seconds == 0 || f.cap.Estimate > 0 || len(f.cap.Trail) == f.begun || f.boundless {
		return
	}
	load := f.hi
	if load == 0 {
		load = f.roundLoad(f.loadStride() * max(f.lo, f.cap.Trail[len(f.cap.Trail)-1].Load))
	}
	for step := 0; step < stepsAbove && f.lowestRefuted() == 0; step++ {
		p, whole := Probe{Load: load, Stage: Bracket, Residences: hastyWarmup}, f.inCycles(cyclesLook, load)
		if p.Requests = min(max(mostAbove, whole), f.affordableIn(&p, 0)); p.Requests < max(fewestLight, whole) {
			return
		}
		if s, ok := f.measureLoad(p); !ok || !s.IsEvidence() {
			return
		}
		if load = f.roundLoad(f.loadStride() * load); load <= p.Load {
			return // no higher one is allowed
		}
	}
}

// FloorOf is a share of violations that no load goes below.
type FloorOf struct {
	Load       float64 // the highest that is taken together
	Claim      int     // a limit's index, or Joint
	N          int
	Violations int
	Errors     int     // of them did not end well
	Lower      float64 // one-sided lower limit of the share; 0: there is no floor
	phi        float64 // over-dispersion of its windows
	Confidence float64 // that the share is more than may violate it, where that is no floor yet
}

const (
	// light is the share of the first load beyond a limit below which the load hardly contributes
	// to violations.
	light = 0.25
	// A floor is looked for where more than such a share of what may violate does at
	// light loads, and on while it looks like one.
	suspectFloor, likelyFloor = 0.25, 1
	floorLooks                = 4
	floorShare                = 0.27 // of the budget, for a look
	// Before it is suspected lookAtFloor ÷ the share that may violate are looked at, for
	// firstFloor of the budget: of a floor twice that share 1 % would show none.
	lookAtFloor, firstFloor, leastFloor = 2.5, 0.08, 20
	// Where the budget pays more, shareAtFloor of its requests are looked at, enoughAtFloor ÷ the
	// share at the most: of a floor of a third of what may violate 600 requests show none in one of
	// eight.
	enoughAtFloor, shareAtFloor = 10, 0.06
)

// findFloor says that more requests violate a limit than may however low the load is, as
// where requests fail, or answers are longer than the limit has time for. Such a
// search would find a load by chance.
func (f *search) findFloor() bool {
	if f.err != nil || f.died || len(f.cap.Trail) == 0 || f.cap.Quote > 0 {
		return false
	}
	top, lightest := f.lightUpTo(), math.Inf(1)
	for _, s := range f.cap.Trail {
		lightest = min(lightest, s.Load)
	}
	reason, above := f.cap.Reason, FloorOf{}
	for look := range floorLooks + 1 {
		if f.cfg.Traffic.Cycle > 0 { // by a look of whole cycles more may violate than the bracket showed
			top = min(top, f.lightUpTo())
		}
		at, worst := f.floorBelow(top)
		if at.N == 0 { // what is known is of higher loads
			at, worst = f.floorBelow(lightest)
			at.Load, at.N, at.Lower = top, 0, 0
		}
		// A single server has a queue at a load that leaves it idle mostly: where it costs
		// little, a lighter one is to show the same.
		if at.Lower > f.cfg.allowedShare(at.Claim) && f.cfg.Count && above.N == 0 {
			above, top = at, f.roundLoad(top/4)
			continue
		}
		if above.N > 0 && float64(at.N) >= 20/f.cfg.allowedShare(at.Claim) { // so many tell 2 % from 1
			if worst < 1 {
				break // the load has a part in it
			}
			at = above
		}
		if at.Lower > f.cfg.allowedShare(at.Claim) && f.heavierMeets(&at) {
			break
		}
		if at.Lower > f.cfg.allowedShare(at.Claim) {
			f.cap.Floor = at
			f.cap.Reason = result.Reason{Code: result.MissedAtAnyLoad, N: float64(at.Violations), Of: float64(at.N), Low: at.Load}
			return true
		}
		eps, share := f.cfg.allowedShare(at.Claim), floorShare
		want, few := int(40/eps), int(lookAtFloor/eps)
		if !f.cfg.Count { // the more requests, the more an unseen floor is off by
			few = max(few, int(min(enoughAtFloor/eps, shareAtFloor*f.totalRequests(max(top, f.hi)))))
		}
		switch {
		case at.N < few && worst < suspectFloor && (look == 0 || f.cfg.Budget.Seconds == 0): // a floor may have shown none; each look has a warm-up of its own
			want, share = few-at.N, firstFloor
		case worst < suspectFloor, at.N > 4*few && worst < likelyFloor, look == floorLooks:
			want = 0
		}
		if want = int(f.cfg.dueFor(float64(want), at.Claim)); want > 0 {
			want = max(want, f.inCycles(cyclesLook, at.Load))
		}
		p := Probe{Load: at.Load, Stage: Floor, Counted: f.isCostly(at.Load, want, Warmup)}
		p.Requests = min(want, f.affordableIn(&p, 1-share-f.spentShare()), f.affordableIn(&p, 0))
		if p.Requests < max(leastFloor, f.inCycles(cyclesLook, at.Load)) {
			break
		}
		if _, ok := f.measureLoad(p); !ok {
			return false
		}
	}
	f.cap.Reason = reason
	return false
}

// suspectsFloor reports whether light loads violate a limit so often that a floor is looked for
// first. Where they do not, a look far below the limit that fails shows one.
func (f *search) suspectsFloor() bool {
	_, worst := f.floorBelow(f.lightUpTo())
	return worst >= suspectFloor
}

// heavierMeets reports whether heavier loads than a floor's contradict it: their windows have fewer
// violations than the floor lets one expect, with 1 − contradicted at the most for a floor that is
// true. Then the light loads were slow for another reason: what an overload left, a server that
// changed meanwhile, or failures that come in bursts.
func (f *search) heavierMeets(floor *FloorOf) bool {
	least := floor.Lower
	if least == 0 {
		least = f.cfg.allowedShare(floor.Claim)
	}
	bad, n, phi := 0, 0, max(1, floor.phi)
	for _, load := range f.evidenceLoads() {
		if load <= floor.Load {
			continue
		}
		for i := range f.cap.Trail {
			if s := &f.cap.Trail[i]; s.Load == load && f.supportsBounds(s) && s.Launch == f.launch && !f.hasOutgrown(&s.Seen) {
				bad, n = bad+s.Seen.violationCount(floor.Claim), n+s.Seen.dueRequests(floor.Claim)
				phi = max(phi, blocksPhi(s.Seen.violationBlocks(floor.Claim), s.Seen.dueRequests(floor.Claim)))
			}
		}
		if n > 0 && stats.ClopperPearson(bad, n, phi, stats.OneSided(1-contradicted)).Hi < least {
			return true
		}
	}
	return false
}

// contradicted is the chance that heavier loads contradict a floor that is true, for each load up
// to which they are pooled.
const contradicted = 0.01

// unmetFloor returns the result of the lightest loads. It applies where nothing is known to meet
// the SLO. Even there more requests violated it than may. Perhaps no load meets it, but the
// requests are too few for the certainty that a floor needs.
func (f *search) unmetFloor() FloorOf {
	c := &f.cap
	if c.AtLeast > 0 || c.Estimate > 0 || c.Floor.Lower > 0 || f.died {
		return FloorOf{}
	}
	at, worst := f.floorBelow(f.lightUpTo()) // of heavier ones a lighter one may meet it
	if at.N == 0 || worst <= 1 || f.heavierMeets(&at) {
		return FloorOf{}
	}
	lower := func(level float64) float64 {
		return stats.ClopperPearson(at.Violations, at.N, at.phi, stats.OneSided(level)).Lo
	}
	lo, hi := 0.5, f.boundLevel()
	if lower(lo) <= f.cfg.allowedShare(at.Claim) { // not even an even chance of it: a violation or two
		return FloorOf{}
	}
	for hi-lo > 1e-3 {
		if level := (lo + hi) / 2; lower(level) > f.cfg.allowedShare(at.Claim) {
			lo = level
		} else {
			hi = level
		}
	}
	at.Lower, at.Confidence = 0, lo
	return at
}

// lightUpTo is up to which load requests hardly meet each other.
func (f *search) lightUpTo() float64 {
	top := f.cfg.lightLoad() / 8
	if f.cfg.Closed {
		top = 1
	}
	for _, s := range f.cap.Trail {
		if f.hi == 0 {
			top = max(top, light*s.Load)
		}
	}
	if f.cfg.Traffic.Cycle > 0 && !f.cfg.Closed { // a short window of the bracket may have had few of the requests
		return f.roundLoad(max(top, light*min(f.hi, f.firstOver())))
	}
	return f.roundLoad(max(top, light*f.hi))
}

// spentShare is the share of the budget that is used up.
func (f *search) spentShare() float64 {
	share := 0.0
	if b := f.cfg.Budget.Requests; b > 0 {
		share = float64(f.cap.Requests) / float64(b)
	}
	if b := f.cfg.Budget.Seconds; b > 0 {
		share = max(share, f.cap.Seconds/b)
	}
	if b := f.cfg.Budget.Work; b > 0 {
		share = max(share, f.cap.Work/b)
	}
	return share
}

// floorBelow takes all loads up to one together; worst is the largest share of
// violations there, over what may violate.
func (f *search) floorBelow(top float64) (at FloorOf, worst float64) {
	claims := f.cfg.claimIndices()
	for _, claim := range claims {
		c, phi := FloorOf{Claim: claim}, 1.0
		for i := range f.cap.Trail {
			s := &f.cap.Trail[i].Seen
			if !f.supportsBounds(&f.cap.Trail[i]) || s.Load > top {
				continue
			}
			c.Load = max(c.Load, s.Load)
			c.N, c.Violations = c.N+s.dueRequests(claim), c.Violations+s.violationCount(claim)
			c.Errors += s.errorsOf(claim)
			phi = max(phi, blocksPhi(s.violationBlocks(claim), s.dueRequests(claim)))
		}
		if c.N == 0 {
			continue
		}
		c.phi = phi
		level := 1 - (1-f.boundLevel())/float64(len(claims))
		c.Lower = stats.ClopperPearson(c.Violations, c.N, phi, stats.OneSided(level)).Lo
		if x := float64(c.Violations) / float64(c.N) / f.cfg.allowedShare(claim); at.N == 0 || x > worst {
			at, worst = c, x
		}
	}
	return at, worst
}
