package capacity

import (
	"context"
	"fmt"
	"math"
	"slices"

	"pitot/internal/results/result"
	"pitot/internal/stats"
)

const (
	attempts    = 3
	leastVerify = 1_500 // requests, at least: see the method
	// firstLook is the share of what is left of the budget that a look takes;
	// the rest is kept for another, should it fail. With all of it in one look
	// 70 % of searches of 80,000 requests ended with a quote, with 60 % nearly
	// all, and quotes were too high as rarely.
	firstLook = 0.6
	// mostVerify is the largest size of a look, in multiples of the least, where nobody set a
	// budget: it passes or not.
	mostVerify = 8
	// stepDown is the factor by which a failed look lowers the load at least.
	stepDown = 0.98
)

// leastVerify returns the smallest number of requests of a look at a load. Where a limit allows
// very few violations, none at all must say enough.
func (f *search) leastVerify(load float64) int {
	least := max(leastVerify, f.wholeSessions(load), f.inCycles(cyclesLook, load))
	for _, claim := range f.cfg.claimIndices() {
		least = max(least, int(f.cfg.dueFor(10/f.cfg.allowedShare(claim), claim)))
	}
	return least
}

// leastConfirm returns the number of requests that confirm a load that the fit puts below the
// limit. It applies where they cost what a budget is of. It is large enough that one of them may
// violate the limit.
func (f *search) leastConfirm(load float64) int {
	if f.cfg.Count {
		return f.leastVerify(load)
	}
	least := max(leastLowLook, f.wholeSessions(load), f.inCycles(cyclesLook, load))
	for _, claim := range f.cfg.claimIndices() {
		least = max(least, int(f.cfg.dueFor(confirming*f.assumedClustering()/f.cfg.allowedShare(claim), claim)))
	}
	return least
}

// confirming is that number of requests times the share that may violate.
const confirming = 7

// Verification is a long look at one load.
type Verification struct {
	Load       float64
	N          int
	Violations int     // of the claim that binds
	Errors     int     // requests that did not end well: they violate every limit
	Upper      float64 // one-sided upper limit of their share
	Lower      float64 // one-sided lower limit of it, where Refuted
	Passed     bool    // Upper is not above what is allowed
	Refuted    bool    // the lower limit is above what is allowed (Verify alone says so)
	Attempts   int     // looks it took, this one included
}

// verifyLimit looks for long at the lower limit, three times at the most, each at
// a third of the error. What it passes on is the one-sided upper limit of ten
// blocks of the window. That limit alone is no proof: violations come in
// bursts, and it lets a load exactly at the capacity pass in a quarter to a
// third of cases. Here it is the second of two hurdles, behind the fitted
// lower limit, and guards against what the fit cannot see: a curve of another
// shape, a target that has changed since. (The exact binomial limit with the
// pooled over-dispersion of the main loads lets 0 to 4 % pass, but also only
// 3 % of searches end with a quote.) A look that fails is fitted with the
// others, and the next is at least 2 % lower.
func (f *search) verifyLimit() {
	for attempt := range attempts {
		load := f.allowedBelow(f.cap.Lower)
		p := f.longLook(load) // should all of these fail, a look far below is left
		p.Requests -= f.leastLow(f.lowLoad())
		if attempt < attempts-1 && firstLook*float64(p.Requests) >= float64(f.leastVerify(load)) {
			p.Requests = int(firstLook * float64(p.Requests))
		}
		if p.Requests < f.leastConfirm(load) {
			f.cap.Reason = result.Reason{Code: result.BudgetBeforeLook}
			return
		}
		if f.cfg.Count {
			p.Requests = min(p.Requests, mostVerify*f.leastVerify(load))
			load = f.allowedBelow(min(f.cap.Lower, f.passableLoad(p.Requests)))
			p.Load = load
		}
		binding, before := f.cap.Binding, f.cap.Lower
		s, ok := f.measureLoad(p)
		if !ok && !s.cutShort(f.leastConfirm(load)) {
			return
		}
		if s.Invalid { // it says nothing of the target, and the load is as good as before
			f.cap.Reason = result.Reason{Code: result.LooksInvalid, Low: load}
			continue
		}
		v := Verification{Load: load, N: s.dueRequests(binding), Violations: s.violationCount(binding), Errors: s.errorsOf(binding), Attempts: attempt + 1}
		level := 1 - (1-f.cfg.Level)/2/attempts
		if s.Cut {
			level = (1 + level) / 2
		}
		// Blocks that all are alike have no spread; so many requests still leave
		// room for some violations.
		v.Upper = max(blocksUpper(s.violationBlocks(binding), v.N, level), stats.ClopperPearson(v.Violations, v.N, s.assumedClustering(binding), stats.OneSided(level)).Hi)
		v.Passed = v.N > 0 && v.Upper <= f.cfg.allowedShare(binding) && !f.exceedsShare(&s, 1) && s.Stability != stats.Unstable && s.IsEvidence() && f.spansCycles(load, s.N, cyclesLook)
		f.cap.Verified = v
		if v.Passed {
			f.cap.Quote = load
			f.recordLoads(&p)
			return
		}
		if !ok {
			return
		}
		if f.fitClaims(); f.cap.Estimate == 0 {
			return // now that more is known there is none
		}
		f.cap.Lower = min(f.cap.Lower, stepDown*before)
		f.cap.Margin = 1 - f.cap.Lower/f.cap.Estimate
	}
	if f.cap.Verified.N > 0 {
		f.cap.Reason = result.Reason{Code: result.LooksFailed, N: attempts}
	}
}

// allowedBelow is a load that can be put and is not above one.
func (f *search) allowedBelow(load float64) float64 {
	if f.cfg.Closed {
		return max(1, math.Floor(load))
	}
	return tidyBelow(load)
}

// passableLoad is the load at which a look of so many requests passes mostly, by the fit of
// the limit that binds: few requests show less of a share than many.
func (f *search) passableLoad(requests int) float64 {
	fit, eps := f.curveOf(f.cap.Binding, Centre, Main, Verifying), f.cfg.allowedShare(f.cap.Binding)
	if fit.Reason != "" || !(fit.B > 0) {
		return f.cap.Lower
	}
	// share + k·√share = eps, where k is what the limit of the blocks takes in standard
	// errors, and one more of them.
	level := 1 - (1-f.cfg.Level)/2/attempts
	k := (stats.StudentQuantile(level, Blocks-1) + 1) * math.Sqrt(fit.Phi/float64(requests))
	root := (math.Sqrt(k*k+4*eps) - k) / 2
	share := root * root
	if share <= fit.Floor {
		return f.cap.Lower
	}
	logit := func(p float64) float64 { return math.Log((p - fit.Floor) / (1 - p)) } // of what the load causes
	return f.cap.Estimate * math.Exp((logit(share)-logit(eps))/fit.B)
}

// blocksUpper is a one-sided upper limit of a share by the spread of its
// blocks: batch means, t on one less than there are blocks.
func blocksUpper(blocks []int, n int, level float64) float64 {
	if len(blocks) < 2 {
		return 1
	}
	shares := make([]float64, len(blocks))
	for i, b := range blocks {
		shares[i] = float64(b) * float64(len(blocks)) / float64(n)
	}
	mean, sd := stats.Moments(shares)
	return min(1, mean+stats.StudentQuantile(level, float64(len(blocks)-1))*sd/math.Sqrt(float64(len(blocks))))
}

// flanks are the loads, relative to one that is verified alone, from which the
// over-dispersion is taken too.
var flanks = []float64{1.05, 1.10}

// unflanked is the assumed dispersion of violations relative to that seen, where no load above may
// be measured. With it a load exactly at the capacity of M/G/32 passes in 5 % of cases. Without it,
// it passes in 18 %. These are cases with 30,000 requests.
const unflanked = 4

// sparsePhi is the least assumed variation of violations, relative to independent ones, where few
// blocks have any. Few means that fewer than fewestStruck blocks of the windows have them. Such
// windows do not show how long bursts are. The test is a load exactly at the capacity of M/G/32,
// with 1,500, 3,000, 10,000 and 30,000 requests. Without it the load passes in 60, 40, 10 and 1 %
// of cases. With it, it passes in at most 3 %. With 5 blocks instead of 8 it passes in 8 %. With 32
// up to 14 % pass with 15,000 requests of a server whose bursts are longer (`go run ./bench/stat
// -only verify` and `verify-capacity`).
const sparsePhi, fewestStruck = 48, 8

// alonePhi is the least assumed variation where more blocks have violations. Some requests may fail
// singly, and those that come in bursts may not have come yet. Without it, and by ten blocks as
// they are, loads passed in 32 % of cases with 7,500 requests. They were loads at the capacity of
// servers where 0.5 % of the requests fail.
const alonePhi = 8

// farAbove is from how far above a load on a look without violations says that it is far below the
// limit, as a lower bound of a search is: lowPhi is enough then, where a budget pays too few
// requests for sparsePhi.
const farAbove = 2

// Verify asks one question: does the SLO hold at this load? A window of its own cannot say how
// bursty violations are, since one that met no burst has none to show. So two loads above it are
// measured too, each for a sixth of the requests, and the largest over-dispersion of the three
// widens the exact binomial limits, and sparsePhi where they hardly show any. Where so few requests
// can be had that this leaves nothing to pass, the first of the two is twice the load: without
// violations there the load itself is far below the limit. Passed and Refuted may both be false:
// then it is undecided.
//
// `go run ./bench/stat -only verify` shows how often it passes.
func Verify(ctx context.Context, c FindConfig, load float64, probe func(context.Context, Probe) (Seen, error)) (Found, error) {
	if err := c.check(); err != nil {
		return Found{}, err
	}
	if !(load > 0) {
		return Found{}, fmt.Errorf("verify capacity: a load of %v", load)
	}
	f := newSearch(ctx, c, probe)
	if f.cfg.Budget == (Budget{}) {
		f.cfg.Budget.Requests = 30_000
	}
	f.verifyAlone(f.allowedLoad(load))
	return f.concludeCapacity(), f.err
}

const (
	// leastLook is the number of requests that show how long one takes, or that a load is hopeless.
	leastLook = 200
	// shortLooks is the size of a budget, in multiples of the least, from which those come first.
	shortLooks = 4
)

func (f *search) verifyAlone(load float64) {
	counted := f.cfg.claimIndices()[0]
	if len(f.cfg.claimIndices()) > 1 {
		counted = Joint
	}
	if known, ok := f.hopelessAt(load, counted); known || !ok {
		return
	}
	if n := len(f.cap.Trail); n > 0 && f.cap.Trail[n-1].Seen.N == 0 {
		f.cap.Reason = result.Reason{Code: result.LookUnanswered, Low: load}
		return
	}
	total := f.affordableAt([]float64{load}, 0)
	if f.cfg.Budget.Seconds > 0 { // two more warm-ups
		total -= int(float64(len(flanks)) * f.probeSeconds(load, 0) * f.requestRate(load))
	}
	if least := f.leastAlone(load); total < least {
		f.cap.Reason = result.Reason{Code: result.LookUnpaid, Needed: float64(least)}
		return
	}
	s, ok := f.measureLoad(Probe{Load: load, Requests: total * 2 / 3, Stage: Verifying})
	if !ok && !s.Cut {
		return
	}
	if least := f.leastAlone(load) * 2 / 3; s.Cut && s.N < least {
		f.cap.Reason = result.Reason{Code: result.LookInterrupted, N: float64(s.N), Low: load, Needed: float64(least)}
		return
	}
	phis := []float64{blocksPhi(s.violationBlocks(counted), s.N), s.assumedClustering(counted)}
	alone := unflanked * stats.PooledOverdispersion(phis...)
	struck := struckBlocks(s.violationBlocks(counted))
	if s.Cut {
		f.atHalf(func() { f.judgeLoad(load, &s, max(alone, sparsePhi)) })
		return
	}
	// Loads above one that is refuted even so tell nothing more of it.
	if f.refutesClaim(&s, alone) {
		f.judgeLoad(load, &s, alone)
		return
	}
	far := f.isTooShort(&s) && f.roundLoad(farAbove*load) > load
	for i, above := range flanks {
		if far && i == 0 {
			o, ok := f.measureLoad(Probe{Load: f.roundLoad(farAbove * load), Requests: total / 6, Stage: Flank})
			if o.IsEvidence() && o.violationCount(counted) == 0 && o.Stability != stats.Unstable {
				f.judgeLoad(load, &s, max(lowPhi, phis[0], phis[1]))
				return
			}
			if !ok {
				break // what is known is judged
			}
			continue
		}
		at := f.roundLoad(load * above)
		if f.cfg.Closed && at == load {
			at = f.roundLoad(load + 1)
		}
		o, ok := f.measureLoad(Probe{Load: at, Requests: total / 6, Stage: Flank})
		if !ok {
			break // what is known is judged
		}
		if !o.IsEvidence() {
			continue
		}
		phis = append(phis, widestPhi(o.violationBlocks(counted), o.N, f.cfg.Level))
		if !f.isFarBeyond(&o) { // else nearly all have, and show nothing of bursts near the limit
			struck += struckBlocks(o.violationBlocks(counted))
		}
	}
	phi := stats.PooledOverdispersion(phis...)
	if f.roundLoad(load*flanks[0]) <= load || len(phis) == 2 { // none above is allowed, or was measured
		phi = alone
	}
	phi = max(phi, alonePhi, widestPhi(s.violationBlocks(counted), s.N, f.cfg.Level)) // ten blocks know it to within a factor
	if struck < fewestStruck {
		phi = max(phi, sparsePhi)
	}
	f.judgeLoad(load, &s, phi)
}

// struckBlocks returns the number of blocks with violations.
func struckBlocks(blocks []int) (n int) {
	for _, violations := range blocks {
		if violations > 0 {
			n++
		}
	}
	return n
}

// isTooShort says that a window is too short for a claim to pass where violations are as dispersed
// as they are taken to be where hardly any were met, though it has none.
func (f *search) isTooShort(s *Seen) bool {
	return slices.ContainsFunc(f.cfg.claimIndices(), func(claim int) bool {
		return s.dueRequests(claim) > 0 && stats.ClopperPearson(0, s.dueRequests(claim), sparsePhi, stats.OneSided(f.cfg.Level)).Hi > f.cfg.allowedShare(claim)
	})
}

// hopelessAt says that a load is refuted by two short looks at it, so that a long one need not wait
// for the queue that grows there. One may lie in a burst of violations that is longer than itself,
// and then shows nothing but violations at a load that holds. Two that follow one another lie in
// two bursts in the square of the share that may violate, and in one that outlasts both in no more
// than that share: where this is more than the error that is allowed, the long look decides.
func (f *search) hopelessAt(load float64, counted int) (known, ok bool) {
	if !f.looksFirst(load) {
		return false, true
	}
	p := Probe{Load: load, Requests: leastLook, Stage: Bracket}
	if f.cfg.Closed {
		p.Requests = max(leastLook, 4*int(load))
	}
	for look := range 2 {
		s, ok := f.measureLoad(p)
		if !ok {
			return false, false
		}
		phi := unflanked * stats.PooledOverdispersion(blocksPhi(s.violationBlocks(counted), s.N), s.assumedClustering(counted))
		if !f.mayRefute(load) || !f.refutesClaim(&s, phi) {
			return false, true
		}
		if look == 1 {
			f.judgeLoad(load, &s, phi)
		}
	}
	return true, true
}

// looksFirst says that a budget to verify a load has room for short looks at it, or needs one: how
// many requests users make in a time follows from how long one takes among as many, which is not
// known before.
func (f *search) looksFirst(load float64) bool {
	if f.cfg.Closed && f.cfg.Budget.Seconds > 0 {
		return true
	}
	return f.mayRefute(load) && f.affordableAt([]float64{load}, 0) >= f.leastAlone(load)+shortLooks*leastLook
}

// mayRefute says that short looks may refute a load: one at arrivals that take turns is of one
// rate, and a burst that outlasts them is met as often as requests may violate.
func (f *search) mayRefute(load float64) bool {
	return f.inCycles(1, load) == 0 && slices.Max(f.cfg.Eps) <= 1-f.cfg.Level+1e-9
}

// leastAlone returns the number of requests that it takes to verify a load: two thirds of them are
// of the load itself.
func (f *search) leastAlone(load float64) int {
	return max(f.leastVerify(load), f.inCycles(1.5*cyclesLook, load))
}

// LeastToVerify is the least that verifying a load takes in an open loop: requests, and seconds
// with a warm-up and a drain at the load and at each above it, where a request takes
// [FindConfig.Residence].
func LeastToVerify(c FindConfig, load float64) (requests int, seconds float64) {
	f := newSearch(context.Background(), c, nil)
	load = f.allowedLoad(load)
	requests = f.leastAlone(load)
	return requests, f.probeSeconds(load, requests) + float64(len(flanks))*f.probeSeconds(load, 0)
}

// refutesClaim says that a window shows that a claim does not hold at its load.
func (f *search) refutesClaim(s *Seen, phi float64) bool {
	return s.IsEvidence() && slices.ContainsFunc(f.cfg.claimIndices(), func(claim int) bool {
		return s.dueRequests(claim) > 0 && f.lowerLimit(s, claim, phi) > f.cfg.allowedShare(claim)
	})
}

// lowerLimit is a one-sided lower limit of a claim's share, each of them at its part of the error.
func (f *search) lowerLimit(s *Seen, claim int, phi float64) float64 {
	level := 1 - (1-f.cfg.Level)/float64(len(f.cfg.claimIndices()))
	return stats.ClopperPearson(s.violationCount(claim), s.dueRequests(claim), phi, stats.OneSided(level)).Lo
}

// judgeLoad says of a load whether every claim holds, or one does not.
func (f *search) judgeLoad(load float64, s *Seen, phi float64) {
	claims := f.cfg.claimIndices()
	alpha := 1 - f.cfg.Level
	v := Verification{Load: load, N: s.N, Passed: true, Attempts: 1}
	worst := math.Inf(-1)
	for _, claim := range claims {
		n, due, eps := s.violationCount(claim), s.dueRequests(claim), f.cfg.allowedShare(claim)
		upper, lower := 1., 0. // of none that the claim is about nothing is known
		if due > 0 {
			upper = stats.ClopperPearson(n, due, phi, stats.OneSided(1-alpha)).Hi
			lower = f.lowerLimit(s, claim, phi)
		}
		v.Passed = v.Passed && upper <= eps
		if over := lower > eps; over && !v.Refuted || over == v.Refuted && upper/eps > worst {
			worst, v.Refuted = upper/eps, over
			v.N, v.Violations, v.Upper, v.Lower, f.cap.Binding = due, n, upper, lower, claim
			v.Errors = s.errorsOf(claim)
		}
	}
	grows := s.Stability == stats.Unstable
	counts := s.IsEvidence() && f.spansCycles(load, s.N, cyclesLook)
	v.Passed, v.Refuted = v.Passed && !grows && counts, v.Refuted && counts
	f.cap.Verified = v
	switch {
	case s.Invalid:
		f.cap.Reason = result.Reason{Code: result.LookInvalid, Low: load}
	case grows && !v.Refuted:
		f.cap.Reason = result.Reason{Code: result.LookQueueGrew, Low: load}
	case v.Passed:
		f.cap.Quote = load
	case v.Refuted:
		f.cap.Reason = result.Reason{Code: result.LookMissed, Low: load}
	default:
		f.cap.Reason = f.tooFew(&v, phi)
	}
}

// tooFew returns why a load is undecided, and how many requests it takes where that is known.
func (f *search) tooFew(v *Verification, phi float64) result.Reason {
	n := f.requestsToDecide(v, phi)
	if more := float64(n*3/2 - f.cap.Requests); n > 0 && more > 0 {
		f.cap.Enough = f.cap.Seconds + more/f.requestRate(v.Load)
	}
	if v.Violations > 0 && n > 0 { // half as many again: the next share may lie nearer to the limit
		n = max(n, v.N*3/2)
	}
	r := result.Reason{Code: result.LookBursty, N: float64(v.N), Low: v.Load, Needed: float64(n)}
	if v.Violations == 0 && n > 0 {
		r.Code = result.LookWithoutBursts
	}
	return r
}

// mostTelling is the largest number of requests named, in multiples of those that there were. A
// share that near to what may violate takes more than anybody pays.
const mostTelling = 100

// requestsToDecide is about how many requests tell whether the claim that binds holds where as
// large a share violates it as was seen, 0 where that is too many. It is of whole hundreds.
func (f *search) requestsToDecide(v *Verification, phi float64) int {
	if v.N == 0 { // of a class that had no request in the window
		return 0
	}
	eps, share := f.cfg.allowedShare(f.cap.Binding), float64(v.Violations)/float64(v.N)
	for n := float64(v.N); n <= mostTelling*float64(v.N); n *= 1.02 {
		due := int(math.Ceil(n/100)) * 100
		limits := stats.ClopperPearson(int(share*float64(due)), due, phi, stats.OneSided(f.cfg.Level))
		if limits.Hi <= eps || limits.Lo > eps {
			return due
		}
	}
	return 0
}
