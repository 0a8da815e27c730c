package capacity

import (
	"math"
	"slices"

	"pitot/internal/results/result"
	"pitot/internal/stats"
)

const (
	// mainLoads is the number of loads that are fitted, and fewestMain that number where the budget
	// pays no more. mainWidth is the least distance of the outer loads from their middle, in ln.
	// With ±8 % the crossing lay outside the loads in 20 to 35 % of searches of 80,000 requests.
	// With ±10 % it did in 9 %, at the same error. Fitting 0.3 to 10 % of violations instead lost
	// 37 %: that range is narrow where the staircases happen to look steep.
	mainLoads  = 16
	fewestMain = 8
	mainWidth  = 0.10
	// Where violations rise slowly with the load ±10 % of it change them by less than
	// chance does: the loads reach as far as it takes the odds to change by this
	// factor to each side, and no further than mostWidth.
	mainOdds  = 3
	mostWidth = 0.5
	legs      = 2
	// leastMain is the smallest number of requests of a load. On the systems that constants are
	// chosen on, intervals of 3,000 requests hold in 98 %. With 80 they hold in 94 % (`-only
	// bounds`).
	leastMain = 120
	// Windows of fewer than brief requests show little of how long bursts are: intervals
	// are then those that by their own account are wrong briefly times as often.
	brief, briefly = 250, 0.5
	// Conversations cluster violations beyond what blocks of whole ones show.
	ofSessions = 0.25
	// spareMain is the share of the budget that the main loads are to have,
	// spareVerify that of the look at the result. Both from 15 to 30 % for
	// the latter gave the same error; below, its failures could not be repeated.
	spareMain   = 0.5
	spareVerify = 0.25
	// Where the main loads are cheap, spareCounted is kept for what comes behind them.
	// Further legs of legLoads are measured then, narrowings at the most, while the
	// interval is wider than goal; spareLooks is kept for the looks.
	spareCounted = 0.3
	spareLooks   = 0.2
	legLoads     = mainLoads / legs
	narrowings   = 4
	goal         = 0.05 // relative half-width
)

// measureLoads measures 16 loads that are fixed before any of them is, in random
// order and in two legs.
//
// The loads do not follow the running estimate, which would select chance:
// loads that happen to look good would draw more like them. There is one
// exception: where the first leg's crossing lies beyond half the width, or its slope
// asks for wider loads, the second leg is put anew, and another one where both gave no
// answer, or a wide one. That, and fitting the staircases with the main loads, costs no coverage.
func (f *search) measureLoads() bool {
	width, many := f.mainWidthAt(f.centred), mainLoads
	loads := f.spreadLoads(f.centred, width, many)
	n := f.affordableMain(loads)
	// Where warm-ups would take more than windows, fewer loads are known better.
	for ; (n < f.leastMain() || float64(n) < f.requestsAround(f.centred)) && many > fewestMain; n = f.affordableMain(loads) {
		many -= 2
		loads = f.spreadLoads(f.centred, width, many)
	}
	if n < f.leastMain() && !f.cfg.Count { // an estimate before a look far below the limit
		n = f.affordableAt(loads, spareVerify)
	}
	if n < f.leastMain() {
		// The bracket alone shows the way: 13 % of the intervals of it were wrong.
		if !f.hasStage(Centre) || !f.fitClaims() {
			f.cap.Reason = f.tooSmall()
		}
		return f.cap.Estimate > 0
	}
	f.brief = !f.cfg.Count && n < brief
	for leg := range legs {
		var these []float64
		for i := leg; i < len(loads); i += legs {
			these = append(these, loads[i])
		}
		if !f.lookAt(f.shuffleLoads(these), Probe{Requests: n, Stage: Main, Leg: leg, Counted: f.cfg.Count}) {
			return false
		}
		if leg == 0 {
			middle, now := f.mainCentre(width), f.mainWidthAt(f.centred)
			if math.Abs(math.Log(middle/f.centred)) > width/2 || now > 1.3*width {
				loads = f.spreadLoads(middle, max(width, now), many)
				if f.cfg.Budget.Seconds > 0 { // lower loads take longer
					var rest []float64
					for i := 1; i < len(loads); i += legs {
						rest = append(rest, loads[i])
					}
					n = min(n, max(f.leastMain(), f.affordableAt(rest, f.spareLow())))
				}
			}
		}
	}
	known := f.fitClaims()
	for leg := legs; f.anotherLeg(leg, known); leg++ {
		middle := f.mainCentre(width)
		these, spare := f.spreadLoads(middle, f.mainWidthAt(middle), legLoads), spareLooks
		if !f.cfg.Count {
			spare = f.spareLow() + f.spareConfirm()
		}
		if n = min(n, f.affordableRequests(f.countingWork(), these, spare)); n < f.leastMain() {
			break
		}
		if !f.lookAt(f.shuffleLoads(these), Probe{Requests: n, Stage: Main, Leg: leg, Counted: f.cfg.Count}) {
			return false
		}
		known = f.fitClaims()
	}
	return known
}

// hasStage says that there are windows of a stage.
func (f *search) hasStage(stage string) bool {
	return slices.ContainsFunc(f.ofLaunch(), func(s Step) bool { return s.Stage == stage && s.Seen.IsEvidence() })
}

// mainCentre is where the next loads are put, by what was measured of the main ones. With a
// budget of requests the bracket has a say too, and they may be put anywhere in it: few
// windows often leave the staircases, and so the loads of the first leg, beside the limit.
func (f *search) mainCentre(width float64) float64 {
	if f.cfg.Count {
		at := f.lowestCrossing(Main, Centre)
		if at == 0 {
			return f.centred
		}
		most := stairShift * width
		return f.centred * math.Exp(min(most, max(-most, math.Log(at/f.centred))))
	}
	at := f.lowestCrossing(Main, Centre, Bracket)
	if at == 0 {
		return f.centred
	}
	lowest, highest := f.centred, f.centred
	for _, s := range f.ofLaunch() {
		if s.Stage != Light && s.Stage != Floor {
			lowest, highest = min(lowest, s.Load), max(highest, s.Load)
		}
	}
	return min(highest, max(lowest, at))
}

// anotherLeg says that more loads are to be fitted: while the interval is wide where they
// cost little; once where the budget is all that there is, and two legs gave no estimate or one so
// wide that its lower limit is not looked at: what that look would have taken makes it narrower.
func (f *search) anotherLeg(leg int, known bool) bool {
	if f.cfg.Count {
		return leg < legs+narrowings && !f.narrowEnough()
	}
	return leg == legs && (!known || f.showsRise() && f.cap.Lower < f.lowLoad())
}

// shuffleLoads are loads in random order, against a target that drifts.
func (f *search) shuffleLoads(loads []float64) []float64 {
	list := make([]float64, len(loads))
	for i, k := range f.rng.Perm(len(loads)) {
		list[i] = loads[k]
	}
	return list
}

// narrowEnough says that there is an estimate as sure as is aimed for.
func (f *search) narrowEnough() bool {
	c := &f.cap
	return c.Estimate > 0 && c.Interval.Hi-c.Interval.Lo <= 2*goal*c.Estimate
}

// mainWidthAt of the main loads to each side, in ln; that of whole numbers of users
// takes in two more of them.
func (f *search) mainWidthAt(centre float64) float64 {
	w := mainWidth
	if b := f.leastSlope(); b > 0 {
		w = max(w, min(mostWidth, math.Log(mainOdds)/b))
	}
	if f.cfg.Closed {
		w = max(w, 2.5/centre)
	}
	return w
}

// leastSlope is the least of the claims' by all that was seen: loads far above the limit
// tell a slow rise from a steep one.
func (f *search) leastSlope() float64 {
	least := math.Inf(1)
	for _, claim := range f.cfg.claimIndices() {
		floor, seen := f.floorUnder(claim)
		shares := f.violationShares(claim, Bracket, Centre, Main)
		fit := stats.FitLogistic(shares, SlopePrior())
		if seen {
			if above := stats.FitAboveFloor(f.aboveLight(shares), SlopePrior(), floor); above.Reason == "" {
				fit = above
			}
		}
		if b := fit.B; b > 0 {
			least = min(least, b)
		}
	}
	if math.IsInf(least, 1) {
		return 0
	}
	return least
}

// spreadLoads is so many loads, even in ln.
func (f *search) spreadLoads(centre, width float64, many int) (loads []float64) {
	for i := range many {
		loads = append(loads, f.roundLoad(centre*math.Exp(width*(2*float64(i)/float64(many-1)-1))))
	}
	return loads
}

// none takes an estimate back.
func (f *search) none() {
	f.cap.Estimate, f.cap.Interval, f.cap.Lower, f.cap.Margin = 0, stats.Interval{}, 0, 0
}

// crossingOf reads the load where a claim stops to hold from a fit of some stages. Its
// lower limit is too high with half the probability that the interval leaves out: with
// an upper one like it both hold together.
//
// The curve is no straight line in the logarithms far from the limit: there are floors
// below it, and queues that only grow above. So loads count the less the further the
// share that the fit expects there is from what may violate, whatever was seen there:
// a local regression (Loader, "Local Regression and Likelihood", 1999) whose weights
// follow the fit.
func (f *search) crossingOf(claim int, stages ...string) stats.Inverse {
	wrong := 1 - f.cfg.Level
	switch {
	case f.cfg.Sessions != (Sessions{}):
		wrong *= ofSessions
	case f.brief:
		wrong *= briefly
	}
	alpha := wrong / 2 / float64(len(f.cfg.claimIndices()))
	v := f.reachingDown(f.curveOf(claim, stages...).LoadAt(f.cfg.allowedShare(claim), 1-wrong, alpha))
	if v.Reason == "" {
		settled := f.settledUpTo(v.Load)
		v.Lo, v.Lower = min(v.Lo, settled), min(v.Lower, settled)
	}
	return v
}

// mostDown is the largest ratio of an interval's reach down to its reach up, in ln. A few windows
// may leave the slope open. Then the profile likelihood reaches down to where the least slope would
// put the limit. That is three to six times as far as estimates lie too high. It was chosen on the
// design halves of `go run ./bench/stat -only bounds` and `-only width`. With 10,000 requests,
// intervals hold as often on each of 20 systems as without it (96.1 and 98.1 % of all). They are a
// fifth narrower in the median. With 2 they hold less often on three. Where lengths and arrivals
// vary little bursts are short, and windows that are not show them. mildDown applies there. It was
// tried on six servers of the design half of `-only width-mild` with intervals of 10,000 requests.
// With mildDown 1.4 % of 357 intervals lie above the truth, with 1.25 2.8 %. Intervals of 3,000
// requests, whose windows are short, are left as they are. Without briefly, and with mostDown, they
// are a fifth narrower. Two of eight servers that nothing was chosen on then had 22 of 25 and 33 of
// 38 that held.
const mostDown, mildDown = 2.5, 1.5

// reachingDown is an inverse whose interval reaches no further down than that, nor does its
// one-sided limit, where the long look begins.
func (f *search) reachingDown(v stats.Inverse) stats.Inverse {
	if v.Reason == "" && f.showsRise() {
		most := mostDown
		if f.cfg.Traffic.isMild() {
			most = mildDown
		}
		v.Lo = max(v.Lo, v.Load*math.Pow(v.Load/v.Hi, most))
		v.Lower = max(v.Lower, v.Lo)
	}
	return v
}

// showsRise says that shares rise to the limit from next to nothing, and that windows show bursts:
// not where light loads show violations too, so that they may hardly rise up to the limit, nor
// where a bracket or short windows are all that there is, as with a short budget of time, nor of
// conversations. Where windows are counted single loads tell more.
func (f *search) showsRise() bool {
	if f.cfg.Count || f.brief || f.cfg.Sessions != (Sessions{}) || !f.hasStage(Main) || f.cfg.Budget.Seconds > 0 && !f.hasStage(Centre) {
		return false
	}
	light, _ := f.floorBelow(f.lightUpTo())
	return light.N > 0 && float64(light.N) >= 1/f.cfg.allowedShare(light.Claim) && !f.floorSeen()
}

// floorSeen says that there may be a floor under some claim.
func (f *search) floorSeen() bool {
	return slices.ContainsFunc(f.cfg.claimIndices(), func(claim int) bool { _, seen := f.floorUnder(claim); return seen })
}

// curveOf is that fit.
func (f *search) curveOf(claim int, stages ...string) stats.Logistic {
	shares, local := f.violationShares(claim, stages...), localOdds
	if f.cfg.Count || f.begun > 0 { // the loads of several searches lie further apart too
		local = localOddsCounted
	}
	fit := f.fitLocally(claim, shares, stats.Floor{}, local)
	if floor, seen := f.floorUnder(claim); seen && fit.B > 0 {
		if floor.Violations > 0 {
			local = localOddsFloor
		}
		if above := f.fitLocally(claim, f.aboveLight(shares), floor, local); above.Reason == "" {
			fit = above
			fit.DF = max(1, fit.DF-1) // the floor is fitted too
		}
	}
	return fit
}

// aboveLight are the shares of loads that have told nothing of a floor: each window counts once.
func (f *search) aboveLight(shares []stats.Share) []stats.Share {
	top := f.lightUpTo()
	return slices.DeleteFunc(slices.Clone(shares), func(s stats.Share) bool { return s.Load <= top })
}

// weighings is the number of times that shares are weighed by the previous fit.
const weighings = 3

// fitLocally fits shares with the weights that they have, and again with those by the fit.
func (f *search) fitLocally(claim int, shares []stats.Share, floor stats.Floor, local float64) stats.Logistic {
	eps, fit := f.cfg.allowedShare(claim), stats.FitAboveFloor(shares, SlopePrior(), floor)
	for range weighings {
		if fit.Reason != "" || !(fit.B > 0) {
			break
		}
		for i := range shares {
			x := math.Log(fit.ShareAt(shares[i].Load)/eps) / local
			shares[i].Less = 1 - 1/((1+x*x)*(1+x*x))
		}
		fit = stats.FitAboveFloor(shares, SlopePrior(), floor)
	}
	return fit
}

const (
	// mostFloor is the largest floor below a limit, as a share of what may violate it.
	mostFloor = 0.95
	// A floor is fitted where light loads show violations, and do not rule out at noFloor that
	// those are suspectFloor of what may violate. Above it loads count a quarter whose share is
	// localOddsFloor, in ln, from what may violate: what is left of the rise bends the more. With
	// 40,000 requests intervals of servers with a floor of a third held in 64 % without any of it;
	// with a floor alone in as many, with these weights alone in 78 to 88, and with both in 95.
	noFloor, localOddsFloor = 0.8, 1
	// clusterier is the ratio of the clustering of violations below the limit to that above it. It
	// shows that a floor makes them. It was chosen on curves of `-only clusters-chosen` and 160
	// more like them.
	clusterier = 3
)

// floorUnder returns the floor of a claim from light loads. seen means that there may be a floor
// that matters. Where no light load shows one, floor is the zero value.
func (f *search) floorUnder(claim int) (floor stats.Floor, seen bool) {
	top, eps := f.lightUpTo(), f.cfg.allowedShare(claim)
	floor.Phi = 1
	for i := range f.cap.Trail {
		if s := &f.cap.Trail[i]; f.supportsBounds(s) && s.Load <= top && s.Launch == f.launch {
			floor.N, floor.Violations = floor.N+s.Seen.dueRequests(claim), floor.Violations+s.Seen.violationCount(claim)
			floor.Phi = max(floor.Phi, blocksPhi(s.Seen.violationBlocks(claim), s.Seen.dueRequests(claim)))
		}
	}
	below := f.clustersBelow(claim)
	floor.Phi = max(floor.Phi, below)
	if floor.Violations == 0 && below == 1 || stats.ClopperPearson(floor.Violations, floor.N, floor.Phi, stats.OneSided(noFloor)).Hi < suspectFloor*eps {
		return stats.Floor{}, false
	}
	floor.Most = mostFloor * eps
	return floor, true
}

// clustersBelow is by how much a claim's violations vary from block to block in the windows below
// the limit, over independent ones, where that is clusterier times what it is well above it and
// more, else 1. What a load causes clusters the more the higher the load is; what comes in clusters
// below and alone above has another cause, such as failures now and then, of which a short look at
// light loads mostly meets none.
func (f *search) clustersBelow(claim int) float64 {
	shares, eps := f.violationShares(claim, Bracket, Centre, Main, Verifying), f.cfg.allowedShare(claim)
	fit := stats.FitLogistic(shares, SlopePrior())
	if fit.Reason != "" || !(fit.B > 0) {
		return 1
	}
	var below, above, violationsBelow, violationsAbove float64
	for _, s := range shares {
		v := float64(s.Violations)
		switch expected := fit.ShareAt(s.Load); {
		case expected <= eps:
			below, violationsBelow = below+v*s.Within, violationsBelow+v
		case expected >= 2*eps:
			above, violationsAbove = above+v*s.Within, violationsAbove+v
		}
	}
	if violationsBelow == 0 || violationsAbove == 0 {
		return 1
	}
	phi := below / violationsBelow
	if phi < clusterier*max(1, above/violationsAbove) {
		return 1
	}
	return phi
}

// crossingNear is that of the loads that were put around the limit. Where a budget of
// requests leaves too few of these for an answer, the loads of the bracket count too, and
// those lighter still where they show no floor: a floor would bend the curve.
func (f *search) crossingNear(claim int) (v stats.Inverse, launches int) {
	near := []string{Centre, Main, Verifying}
	v, launches = f.acrossLaunches(claim, f.crossingOf(claim, near...), near...)
	if v.Reason == "" || f.cfg.Count {
		return v, launches
	}
	wide := append(near, Bracket)
	all := f.crossingOf(claim, wide...)
	if all.Reason != "" && !f.floorSeen() {
		all = f.crossingOf(claim, append(wide, Light, Floor)...)
	}
	if all.Reason != "" {
		return v, launches
	}
	return all, 1
}

// probableClaim is the claim that will bind, by what is known.
func (f *search) probableClaim() int {
	claims := f.cfg.claimIndices()
	if len(claims) == 1 {
		return claims[0]
	}
	best, least := claims[0], math.Inf(1)
	for _, claim := range claims {
		if at := f.crossingOf(claim, Centre, Main).Load; at > 0 && at < least {
			best, least = claim, at
		}
	}
	return best
}

// localOdds is a distance, in ln, of the expected share from what may violate. A load at that
// distance counts a quarter. The figures are for the systems that constants are chosen on. Without
// it intervals hold in 92 %, and in 70 % of the worst. With 2 they hold in 98 and 92 %. With 3 they
// hold in 96 and 82 %, and are a twentieth narrower (`go run ./bench/stat -only bounds`). Holding
// the slope to that of all loads makes them narrower still, and they hold too seldom.
// localOddsCounted applies where loads are counted. There are many more requests, and what is left
// of the curve weighs more than chance. On the two systems (80 searches) that it bends most,
// intervals hold in 88 and 79 % with 2.5. They hold in 93 % with 1.5.
const localOdds, localOddsCounted = 2.5, 1.5

// metCounted returns the load up to which a claim is known to hold by counted windows. This is
// wherever its own crossing is. It returns 0 where windows are not counted.
func (f *search) metCounted(claim int) float64 {
	if !f.cfg.Count {
		return 0
	}
	return f.metUpTo(claim)
}

// unfittedReason is why a fit gives no estimate, none where it does.
func unfittedReason(why stats.NoFit) result.Reason {
	return result.Reason{Code: result.ReasonCode(why)}
}

// rivals are claims whose crossings are so near that either may be the lowest.
const rivals = 1.2

// fitClaims finds where each claim stops to hold; the lowest binds. For the lower
// limit of the lowest of k to be too high with probability α, each is taken at
// α/k. Where the fit gives no answer, an earlier one stands.
func (f *search) fitClaims() bool {
	var limits []ClaimLimit
	var binding ClaimLimit
	lower, reason := math.Inf(1), result.Reason{}
	for _, claim := range f.cfg.claimIndices() {
		l := ClaimLimit{Claim: claim, Eps: f.cfg.allowedShare(claim)}
		l.Inverse, l.Launches = f.crossingNear(claim)
		limits = append(limits, l)
		if l.Load > 0 && (binding.Load == 0 || l.Load < binding.Load) {
			binding = l
		}
		if l.Reason == "" {
			l.Lower = max(l.Lower, f.metCounted(claim))
			lower = min(lower, l.Lower)
		} else if reason.IsNone() {
			reason = unfittedReason(l.Reason)
		}
	}
	if binding.Load > 0 {
		reason = unfittedReason(binding.Reason)
	}
	for _, l := range limits { // one that may be reached earlier, for all that is known
		if !reason.IsNone() || l.Reason == "" || l.Load == 0 || l.Load >= rivals*binding.Load {
			continue
		}
		// Where windows are counted they have the requests to tell up to where it holds.
		switch met := f.metCounted(l.Claim); {
		case met == 0:
			reason = unfittedReason(l.Reason)
		case met < binding.Hi:
			binding.Lo, lower = min(binding.Lo, met), min(lower, met)
		}
	}
	if from := f.unstableFrom(); from > 0 && binding.Load >= from {
		reason = result.Reason{Code: result.QueueBeforeLimit, Low: from}
		f.none()
	}
	if !reason.IsNone() {
		if f.cap.Estimate == 0 {
			f.cap.Claims, f.cap.Reason = limits, reason
		}
		return false
	}
	f.cap.Claims, f.cap.Binding = limits, binding.Claim
	f.cap.Estimate, f.cap.Interval, f.cap.Lower = binding.Load, binding.Interval, lower
	f.cap.Margin = 1 - lower/binding.Load
	f.cap.Label, f.cap.Launches = coverageText(binding.Launches), binding.Launches
	return true
}
