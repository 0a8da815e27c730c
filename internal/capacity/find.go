// Package capacity decides which load is measured next, and says what the
// measured loads show: the highest load at which an SLO holds, and the shape
// of the curve from one request at a time to beyond saturation. It has no
// clock, no socket and no file: how a load is measured is a function that it
// is given.
package capacity

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"pitot/internal/results/result"
	"pitot/internal/stats"
)

// Joint stands for the claim that no limit at all is violated, where a limit
// is named by its index.
const Joint = -1

// Stages of a search.
const (
	Light     = "light"     // about one request at a time
	Bracket   = "bracket"   // doubling and halving
	Centre    = "centre"    // staircases around the limit
	Main      = "main"      // the loads that are fitted
	Verifying = "verifying" // a long look at the load to be quoted
	Shown     = "shown"     // some requests at the load to be quoted, where the long look is counted alone
	Beyond    = "beyond"    // some requests beyond the limit, where none of such a load were recorded
	Flank     = "flank"     // loads above one that is only verified
	Floor     = "floor"     // a light load, where violations have another cause than the load

	Saturating = "saturating" // more than the server carries, where no limit is violated before
)

// Probe asks for a load to be measured. Every probe draws new arrivals and new
// prompts.
type Probe struct {
	Load       float64    // requests that come by themselves a second; in a closed loop, users
	Requests   int        // of the window
	Residences float64    // of the warm-up, in mean residence times
	Residence  float64    // seconds, what the mean residence time is expected to be, see [FindConfig.MemoryTime]
	Takes      float64    // seconds, what a request is expected to take
	Burst      [2]float64 // seconds since the load begins: a span whose requests come all at once at its end, see [FindConfig.burstSpan]
	WindowBy   float64    // seconds since the load begins: the window ends by then, however many came; 0 for no such end
	EndBy      float64    // likewise, when all ends: of the window counts then what came as much earlier as the longest request took that ended
	Blocks     int        // into how many blocks Seen.Blocks divides the window
	Stage      string
	Leg        int  // launches, where they can be had, change with it
	Counted    bool // its violations are counted, and nothing of it is recorded
	// Decided says that the probe may end, by the violations of each limit so far, and by
	// how many requests of its window have not ended, -1 while more of them are to come.
	// What ends so is no evidence. nil: never.
	Decided func(violations []int, left int) bool

	// SoFar returns the search's current estimate and interval. The estimate is 0 while there is
	// none. It is for displays while the probe goes on: no load follows from it, and it takes a
	// fit. nil means nothing yet.
	SoFar func() (estimate float64, interval stats.Interval)
}

// Seen holds the observations of a probe.
type Seen struct {
	Load       float64 // as Probe.Load
	N          int     // requests due in the window
	Due        []int   // of them, that each limit is about; nil: all
	Violations []int   // of each limit
	Joint      int     // requests that violate any limit
	Errors     int     // requests that did not end well: they violate every limit
	Residence  float64 // seconds, mean end-to-end time
	Seconds    float64 // that it took in all, warm-up and drain included
	Work       float64 // that simulating it took, see [Budget.Work]; 0 where it was not simulated
	Sent       int     // requests in all, warm-up included, that Work is of
	Blocks     [][]int // violations of each limit in equal consecutive blocks of the requests that it is about; of whole sessions, where requests follow one another
	JointBlock []int   // of Joint, likewise
	Cluster    float64 // requests of the window in the session that one of them is of, on average; 0 where they stand alone
	Stability  stats.Stability
	Carried    Carried // of a window whose queue grew
	Behind     bool    // clearly fewer requests were served than came due, see [CurvePoint.IsBehind]
	TimedOut   int     // requests that did not end well because they took longer than the timeout
	Failed     bool    // the target died
	Invalid    bool    // the instrument failed: the window says nothing of the target
	Cut        bool    // it was interrupted, and the probe gave its reason: this is of the requests that had time to end
	Partial    bool    // it ended as soon as [Probe.Decided] said so: it showed the way, and is no evidence

	asked int // requests that the probe asked for
}

// IsEvidence says that a window is evidence.
func (s *Seen) IsEvidence() bool { return s.N > 0 && !s.Failed && !s.Invalid && !s.Partial }

// violationBlocks of a claim's violations.
func (s *Seen) violationBlocks(claim int) []int {
	switch {
	case claim == Joint:
		return s.JointBlock
	case claim < len(s.Blocks):
		return s.Blocks[claim]
	}
	return nil
}

// violationCount of a claim.
func (s *Seen) violationCount(claim int) int {
	if claim == Joint {
		return s.Joint
	}
	return s.Violations[claim]
}

// dueRequests returns the number of requests that a claim is about.
func (s *Seen) dueRequests(claim int) int {
	if claim == Joint || claim >= len(s.Due) {
		return s.N
	}
	return s.Due[claim]
}

// errorsOf returns the number of a claim's violations that are requests that did not end well. It
// returns 0 where the claim is about some of the requests: how many of a class failed is not known.
func (s *Seen) errorsOf(claim int) int {
	if s.dueRequests(claim) != s.N {
		return 0
	}
	return s.Errors
}

// violationShare of a claim's violations. A window that ended early was decided by the requests
// that were asked for, however many would have come.
func (s *Seen) violationShare(claim int) float64 {
	n := s.dueRequests(claim)
	if s.Partial && s.asked > 0 {
		n = min(n, s.asked)
	}
	return float64(s.violationCount(claim)) / float64(max(n, 1))
}

// Step is a probe and what it showed.
type Step struct {
	Probe
	Seen    Seen
	Launch  int  // start of the server that it is of, from 0
	Earlier bool // it is of an earlier search
	Carries bool // what was found rests on it
}

// FindConfig says what is searched for.
type FindConfig struct {
	// Eps is the share of requests that may violate each limit: 0.01 for one
	// on a p99. 0 makes no claim of a limit by itself, as where the SLO is
	// joint.
	Eps []float64
	// Of is about which share of the requests each limit is about, over 0; nil: all of them
	// each.
	Of []float64
	// Joint is the share that may violate any limit; 0 makes no such claim.
	Joint float64
	// Level of the interval; a one-sided limit is wrong with probability
	// 1 − Level. 0 is 0.95.
	Level float64
	// Closed: loads are numbers of users, each of whom waits for the answer
	// before asking again.
	Closed bool
	// MaxLoad is the highest load that may be put on, 0 for any.
	MaxLoad float64
	// Residence is about how long one request alone takes, in seconds.
	Residence float64
	Sessions  Sessions // where requests follow one another
	Traffic   Traffic  // what is known beforehand of how violations cluster
	Budget    Budget
	Seed      uint64 // of the random orders
	// Earlier holds the measurements of earlier searches for the same capacity, in order. The
	// budget does not count them. Launch is the start of the server that this search measures: one
	// of those from 0 that Earlier is of, or the next. Held is the verification on this launch.
	Earlier []Step
	Launch  int
	Held    Verification
	// Count has the loads that are fitted counted alone, as can be had where they are
	// simulated: that takes a fraction of the work, and the budget pays more requests.
	Count bool
}

// claimIndices are the indices of what is claimed.
func (c *FindConfig) claimIndices() (list []int) {
	if c.Joint > 0 {
		list = append(list, Joint)
	}
	for i, eps := range c.Eps {
		if eps > 0 {
			list = append(list, i)
		}
	}
	return list
}

// lightLoad is about one request at a time, in requests a second.
func (c *FindConfig) lightLoad() float64 { return 1 / c.Residence / c.turnsPerLoad() }

// allowedShare is the share that may violate a claim.
func (c *FindConfig) allowedShare(claim int) float64 {
	if claim == Joint {
		return c.Joint
	}
	return c.Eps[claim]
}

// dueFor returns the number of requests due until the given number comes that a claim is about.
func (c *FindConfig) dueFor(n float64, claim int) float64 {
	if claim == Joint || claim >= len(c.Of) {
		return n
	}
	return n / c.Of[claim]
}

func (c *FindConfig) check() error {
	if len(c.claimIndices()) == 0 {
		return fmt.Errorf("find capacity: no limit is claimed")
	}
	for _, claim := range c.claimIndices() {
		if eps := c.allowedShare(claim); !(eps < 1) {
			return fmt.Errorf("find capacity: a share of %v may violate a limit", eps)
		}
		if n := c.dueFor(1, claim); !(n >= 1 && n < 1e9) {
			return fmt.Errorf("find capacity: a limit is about one in %v requests", n)
		}
	}
	switch {
	case !(c.Residence > 0):
		return fmt.Errorf("find capacity: a residence time of %v s", c.Residence)
	case c.MaxLoad < 0 || !(c.Traffic.Cycle >= 0) || c.Level < 0 || c.Level >= 1 || c.Budget.Requests < 0 || c.Budget.Seconds < 0 || c.Budget.Work < 0:
		return fmt.Errorf("find capacity: a setting is out of range")
	}
	return nil
}

// Found is the highest load at which the SLO holds, as far as it is known.
// A part that is not known is zero; Reason then says why.
type Found struct {
	Estimate float64
	Interval stats.Interval // two-sided, at FindConfig.Level
	Lower    float64        // one-sided lower limit; lower still where a look at it failed
	// Quote is the load to be quoted: one that was measured for long and passed, at
	// Lower or far below where violations begin. 0 if none did.
	Quote    float64
	Verified Verification
	// AtLeast and AtMost hold the capacity together at FindConfig.Level, each by
	// itself at half of what that leaves out. Both are 0 where they are not known.
	// The first is Quote, or a load up to which windows that are counted show by themselves that
	// all claims hold; the second the upper end of Interval or, where there is none, a load that
	// was measured and refuted.
	AtLeast, AtMost float64
	Likely          stats.Interval // without an estimate: a load that seems to hold and one that seems not to, which is no test
	Carried         Carried        // where the server saturates before a limit is violated, what it carries
	Floor           FloorOf        // why no load meets the SLO
	Unmet           FloorOf        // why none did so far, where they are too few to be as sure: N is 0 where some did
	Binding         int            // the claim with the lowest estimate: a limit's index, or Joint
	// Dominant is the limit that is violated most near the estimate; of a
	// claim on one limit, that limit.
	Dominant   int
	Margin     float64       // (Estimate − Lower) / Estimate
	Claims     []ClaimLimit  // one for each claim
	Requests   int           // in windows
	Seconds    float64       // in all
	Work       float64       // in all
	Reason     result.Reason // why there is no estimate, or no quote; none if there are both
	Unfinished bool          // the search was interrupted or stopped: it can go on
	More       bool          // there is no estimate, and a larger budget may give one
	Enough     float64       // seconds of a budget that would about have decided a load verified alone, 0 where it is decided or that is not known
	Label      string        // what the interval covers
	Launches   int           // that Estimate is of
	Trail      []Step        // all that was measured, in order
}

// ClaimLimit is the load at which one claim stops to hold.
type ClaimLimit struct {
	Claim int
	Eps   float64
	stats.Inverse
	Launches int // that it is of
}

// ThisLaunch says what an interval from one launch of a server covers.
const ThisLaunch = "this launch only"

// Find searches for the highest load at which the SLO holds.
//
// It does not bisect on whether a percentile passed. Near the limit violations
// come in bursts, so that one probe says next to nothing; but the share of
// violations is an unbiased count, and many loads together determine where it
// crosses the limit. So it looks for the limit roughly (light load, bracket,
// staircases), fixes 16 loads around it before any of them is measured, and
// fits the shares (stats.FitLogistic). The lower limit of the fitted crossing
// is then looked at for long, and quoted if that look passes too.
//
// A target that dies ends the search with what is known and a Reason. An error
// of probe, and ctx, end it too, and are returned with what is known.
//
// How often the intervals hold the truth and the quote is too high is shown by
// `go run ./bench/stat -only find`.
func Find(ctx context.Context, c FindConfig, probe func(context.Context, Probe) (Seen, error)) (Found, error) {
	if err := c.check(); err != nil {
		return Found{}, err
	}
	f := newSearch(ctx, c, probe)
	if f.cfg.Budget == (Budget{}) {
		f.cfg.Budget.Requests = EnoughRequests
	}
	if f.isHopeless() {
		return f.concludeCapacity(), nil
	}
	bracketed := f.takeBracket() || f.bracketLimit()
	if (!bracketed || f.cfg.Budget.Seconds == 0 || f.suspectsFloor()) && f.findFloor() {
		return f.concludeCapacity(), f.err
	}
	// Where the slope is a guess the fit's lower limit may lie far below the loads that
	// were measured, and say less than a look at half of where violations begin.
	switch {
	case !bracketed && f.hi > 0 && !f.cfg.Closed && f.err == nil && !f.died && !f.isViolated():
		f.measureSaturation()
	case !bracketed:
	case !f.paysFit():
		f.cap.Reason = f.tooSmall()
	case f.centreStaircases():
		if f.lookEarly(); f.cfg.Budget.Seconds > 0 && f.findFloor() {
			return f.concludeCapacity(), f.err
		}
		if f.measureLoads() && f.cap.Lower >= max(f.lowLoad(), f.cap.Quote) {
			f.verifyLimit()
		}
	}
	if f.cap.Quote == 0 && f.err == nil && !f.died && !f.quoteEarlier() {
		f.lookLow()
	}
	if f.cap.Quote == 0 && f.err == nil && !f.died {
		f.boundAbove()
	}
	f.lookNearer()
	switch {
	case f.cap.Quote > 0 && (f.cap.Estimate > 0 || f.cap.Carried.Rate > 0):
		f.cap.Reason = result.Reason{}
	case f.cap.Reason.IsNone():
		f.cap.Reason = result.Reason{Code: result.NoLoadVerified}
	}
	return f.concludeCapacity(), f.err
}

func newSearch(ctx context.Context, c FindConfig, probe func(context.Context, Probe) (Seen, error)) *search {
	if c.Level == 0 {
		c.Level = 0.95
	}
	f := &search{ctx: ctx, cfg: c, probe: probe, rng: rand.New(rand.NewPCG(c.Seed, 0x66696e64)), residence: c.Residence}
	f.cap.Label = ThisLaunch
	f.launch, f.begun, f.cap.Trail = c.Launch, len(c.Earlier), slices.Clone(c.Earlier)
	for i := range f.cap.Trail {
		f.cap.Trail[i].Earlier = true
	}
	return f
}

// search is a search under way.
type search struct {
	ctx   context.Context
	cfg   FindConfig
	probe func(context.Context, Probe) (Seen, error)
	rng   *rand.Rand
	cap   Found
	err   error

	launch int // start of the server that is measured, or asked about
	begun  int // steps of earlier searches

	residence float64 // seconds, at light load
	lo, hi    float64 // highest load that seemed to hold, lowest that did not; 0 if none
	died      bool
	boundless bool    // the limits held at every load of the bracket
	early     bool    // a look far below the limit comes before these
	brief     bool    // the loads that are fitted have short windows
	centred   float64 // the middle of the staircases
	sent      int     // requests, and what they took or would have, had all been recorded
	worked    float64
}

// again is the number of times that a load is measured again whose window was INVALID.
const again = 2

// measureLoad measures a load. A window that was INVALID says nothing of the target, so that
// the load is measured again; whatever comes of it, none of these is evidence. ok is
// false when nothing more can be measured.
func (f *search) measureLoad(p Probe) (s Seen, ok bool) {
	for i := 0; ; i++ {
		if s, ok = f.lookOnce(p); !ok || !s.Invalid || i == again {
			return s, ok
		}
		if f.affordableIn(&p, 0) < p.Requests {
			return s, ok
		}
	}
}

func (f *search) lookOnce(p Probe) (s Seen, ok bool) {
	if err := f.ctx.Err(); err != nil {
		return s, f.stopWithError(err)
	}
	if p.Residences == 0 {
		p.Residences = Warmup
	}
	p.Blocks, p.Residence, p.Takes = Blocks, f.memoryAt(p.Load), f.residenceAt(p.Load)
	if p.Residences >= bracketWarmup && p.Stage != Shown && p.Stage != Beyond {
		p.Burst = f.cfg.burstSpan(p.Takes)
	}
	if p.Stage == Main || p.Stage == Verifying {
		p.SoFar = f.soFar
	}
	if !f.hasTime(p) {
		return Seen{Load: p.Load, Violations: make([]int, len(f.cfg.Eps))}, true // what is known is to be fitted all the same
	}
	f.setTimeLimits(&p)
	s, err := f.probe(f.ctx, p)
	if err != nil && s.Cut && s.N > 0 {
		f.recordSeen(p, s)
	}
	if err != nil {
		return s, f.stopWithError(err)
	}
	return f.recordSeen(p, s)
}

// cutShort says that a look was interrupted that has so many requests all the same. What
// is judged of it takes half of the error that is allowed: with --resume it is looked at again.
func (s *Seen) cutShort(least int) bool { return s.Cut && s.IsEvidence() && s.N >= least }

// atHalf has something judged at half of the error.
func (f *search) atHalf(judge func()) {
	level := f.cfg.Level
	f.cfg.Level = f.boundLevel()
	judge()
	f.cfg.Level = level
}

// soFar returns the current result of the loads around the limit for the claim that will probably
// bind.
func (f *search) soFar() (estimate float64, interval stats.Interval) {
	if v := f.crossingOf(f.probableClaim(), Centre, Main, Verifying); v.Reason == "" {
		return v.Load, v.Interval
	}
	return 0, stats.Interval{}
}

// lookAt measures loads of a stage, in that order.
func (f *search) lookAt(loads []float64, p Probe) bool {
	for _, load := range loads {
		p.Load = load
		if _, ok := f.measureLoad(p); !ok {
			return false
		}
	}
	return true
}

// recordSeen keeps what a probe showed. ok is false when nothing more can be measured.
func (f *search) recordSeen(p Probe, s Seen) (_ Seen, ok bool) {
	if s.Load == 0 {
		s.Load = p.Load
	}
	s.asked = p.Requests
	f.cap.Trail = append(f.cap.Trail, Step{Probe: p, Seen: s, Launch: f.launch})
	f.cap.Requests += s.N
	f.cap.Seconds += s.Seconds
	f.cap.Work += s.Work
	worked := s.Work
	if p.Counted {
		worked /= CountedWork
	}
	f.sent, f.worked = f.sent+s.Sent, f.worked+worked
	if s.Failed {
		f.died = true
		f.cap.Reason = result.Reason{Code: result.TargetFailed, Low: p.Load}
		return s, false
	}
	if len(s.Violations) != len(f.cfg.Eps) {
		return s, f.stopWithError(fmt.Errorf("%d limits were counted, %d are claimed", len(s.Violations), len(f.cfg.Eps)))
	}
	return s, true
}

// stopWithError ends the search with an error.
func (f *search) stopWithError(err error) bool {
	f.err = fmt.Errorf("find capacity: %w", err)
	f.cap.Unfinished = true
	f.cap.Reason = result.Reason{Code: result.SearchStopped, Quote: err.Error()}
	if f.ctx.Err() != nil {
		f.cap.Reason = result.Reason{Code: result.SearchInterrupted}
	}
	return false
}

// scaleOdds is the share whose odds are so many times those of eps.
func scaleOdds(eps, times float64) float64 { return times * eps / (1 - eps + times*eps) }

// beyond is the ratio to the allowed odds from which violations are far beyond a limit.
const beyond = 5

// isFarBeyond says that a probe is far beyond a limit: not by a single request, which few requests
// are quick to show.
func (f *search) isFarBeyond(s *Seen) bool {
	for _, claim := range f.cfg.claimIndices() {
		if s.violationCount(claim) > 1 && s.violationShare(claim) > scaleOdds(f.cfg.allowedShare(claim), beyond) {
			return true
		}
	}
	return f.hasOutgrown(s)
}

// queued is a multiple of the time of a request alone. Where a server does not keep up, requests
// take longer. A short window serves less than came by chance too, but then nobody waits.
const queued = 3

// hasOutgrown reports whether more came than the server carries.
func (f *search) hasOutgrown(s *Seen) bool {
	return s.Stability == stats.Unstable || s.Behind && s.Residence > queued*f.residence
}

// roundLoad is a load that is chosen as it is put: a rate of three digits, or a whole
// number of users, and as it is allowed.
func (f *search) roundLoad(load float64) float64 {
	if !f.cfg.Closed {
		load = roundDigits(load)
	}
	return f.allowedLoad(load)
}

// allowedLoad is a load as it can be put: a whole number of users, at least one, and
// not above MaxLoad.
func (f *search) allowedLoad(load float64) float64 {
	if f.cfg.Closed {
		load = max(1, math.Round(load))
	}
	if f.cfg.MaxLoad > 0 {
		load = min(load, f.cfg.MaxLoad)
	}
	return load
}

// residenceAt is the mean residence time at the nearest load measured. In an
// open loop one far beyond a limit has none: requests took as long as its
// window let them. Where the nearest is above, and took clearly longer than the one
// below, it is between both: a warm-up as long as beyond saturation is wasted below it.
func (f *search) residenceAt(load float64) float64 {
	w, nearest, above := f.residence, math.Inf(1), false
	under, below := f.residence, math.Inf(1)
	for _, s := range f.cap.Trail {
		hot := !f.cfg.Closed && f.isFarBeyond(&s.Seen)
		if s.Seen.Residence <= 0 || hot && s.Seen.Residence > saturated*f.residence {
			continue
		}
		d := math.Log(s.Load / load)
		if math.Abs(d) < nearest {
			w, nearest, above = s.Seen.Residence, math.Abs(d), hot && d > 0
		}
		if d <= 0 && -d < below && !hot {
			under, below = s.Seen.Residence, -d
		}
	}
	if above && w > 2*under {
		return math.Sqrt(w * under)
	}
	return w
}

// requestRate is the requests a second at a load.
func (f *search) requestRate(load float64) float64 {
	return f.cfg.Rate(load, f.residenceAt(load))
}

// violationShares are a claim's violations in the steps of some stages.
func (f *search) violationShares(claim int, stages ...string) (list []stats.Share) {
	lowest := f.lowestFitted()
	for _, s := range f.cap.Trail {
		// A look far below all that is fitted, and what is far above, make a curve of which
		// nothing between them is known.
		if s.Stage == Verifying && s.Load < lowest*math.Exp(-bursty) {
			continue
		}
		if s.Launch == f.launch && slices.Contains(stages, s.Stage) && s.Seen.IsEvidence() && s.Seen.dueRequests(claim) > 0 && f.spansCycles(s.Load, s.Seen.N, cyclesMain) {
			n := s.Seen.dueRequests(claim)
			list = append(list, stats.Share{Load: s.Load, Violations: s.Seen.violationCount(claim), N: n, Within: blockVariation(s.Seen.violationBlocks(claim), n)})
		}
	}
	return list
}

// unstableFrom is the load from which on the queue does: the one that best parts the
// loads that were stable from those that were not. 0: there is none, or too few
// were unstable to tell it from a false alarm.
func (f *search) unstableFrom() float64 {
	if f.cfg.Closed {
		return 0
	}
	type verdict struct {
		load float64
		bad  bool
	}
	var seen []verdict
	unstable := 0
	for _, s := range f.ofLaunch() {
		if !f.supportsBounds(&s) {
			continue
		}
		if v := s.Seen.Stability; v == stats.Stable || v == stats.Unstable {
			seen = append(seen, verdict{s.Load, v == stats.Unstable})
		}
		if s.Seen.Stability == stats.Unstable {
			unstable++
		}
	}
	if unstable < 2 {
		return 0
	}
	stats.SortStable(seen, func(a, b verdict) int { return cmp.Compare(a.load, b.load) })
	wrong := unstable // with all taken for stable
	best, from := wrong, 0.0
	for i := len(seen) - 1; i >= 0; i-- {
		if seen[i].bad {
			wrong--
		} else {
			wrong++
		}
		if wrong < best {
			best, from = wrong, seen[i].load
		}
	}
	return from
}

// concludeCapacity works out what is left to say.
func (f *search) concludeCapacity() Found {
	f.narrowInterval()
	f.cap.AtLeast, f.cap.AtMost = max(f.cap.Quote, f.metByAll()), f.cap.Interval.Hi
	switch {
	case f.cap.Floor.Lower > 0:
		f.cap.AtMost = 0
	case f.cap.Estimate == 0:
		f.cap.AtMost = f.lowestRefuted()
	}
	if most := f.cap.Carried.Interval.Hi; most > 0 {
		f.cap.AtMost = most
	}
	if f.cap.AtMost > 0 && f.cap.AtLeast >= f.cap.AtMost { // they contradict each other
		if f.cap.AtLeast = f.cap.Quote; f.cap.Quote >= f.cap.AtMost { // a load that was looked at for long is believed
			f.cap.AtMost = 0
		}
	}
	invalid := f.invalidReason()
	slow := result.Reason{}
	if f.cap.AtLeast == 0 && f.cap.AtMost == 0 && f.cap.Estimate == 0 && f.cap.Floor.Lower == 0 && f.err == nil && !f.died {
		if slow = f.tooSlow(); !slow.IsNone() {
			f.cap.Reason = slow
		}
	}
	if !invalid.IsNone() && f.err == nil && !f.died && f.cap.Floor.Lower == 0 {
		f.cap.Reason = invalid
	}
	f.cap.More = invalid.IsNone() && slow.IsNone() && f.cap.Estimate == 0 && f.err == nil && !f.died && f.hi > 0 && f.lo > 0 && f.cap.Floor.Lower == 0 && f.cap.Carried.Rate == 0 && f.unstableFrom() == 0
	f.cap.Unmet = f.unmetFloor()
	f.cap.Likely = f.likelyBounds()
	f.cap.Dominant = f.dominantLimit()
	f.noteEvidence()
	return f.cap
}

// narrowInterval narrows the interval to what was verified and refuted besides: single loads, which
// need no curve between them.
func (f *search) narrowInterval() {
	c := &f.cap
	if c.Estimate == 0 || c.Launches > 1 {
		return
	}
	if f.cfg.Count {
		f.withinCounted()
		return
	}
	if c.Quote > c.Estimate { // a load that was looked at for long speaks against the curve
		f.none()
		c.Reason = result.Reason{Code: result.NoCurveOfLoad}
		return
	}
	above := f.lowestRefuted()
	c.Interval.Lo = max(c.Interval.Lo, c.Quote)
	if above > c.Estimate {
		c.Interval.Hi = min(c.Interval.Hi, above)
	}
}

// withinCounted is the same where windows are counted: many requests tell at each load by
// themselves. Where violations rise so steeply that only a window or two have any there is
// no curve to speak of, and the estimate is in the middle of what the loads leave open.
func (f *search) withinCounted() {
	c := &f.cap
	least, above := max(c.Quote, f.metByAll()), f.lowestRefuted()
	if above > 0 && above <= least { // they contradict each other: neither is believed
		least, above = c.Quote, 0
	}
	lo, hi := c.Interval.Lo, c.Interval.Hi
	// Where the windows contradict the curve what they say by themselves is left, if it is
	// known to both sides.
	switch contradicted := least >= hi || above > 0 && above <= lo; {
	case contradicted && least > 0 && above > 0:
		lo, hi = least, above
	case contradicted:
		f.none()
		c.Reason = result.Reason{Code: result.NoCurveOfLoad}
		return
	default:
		lo = max(lo, least)
		if above > 0 {
			hi = min(hi, above)
		}
	}
	c.Interval.Lo, c.Interval.Hi = lo, hi
	if c.Estimate < lo || c.Estimate > hi {
		c.Estimate, c.Lower = math.Sqrt(lo*hi), lo
	}
	c.Lower = min(c.Estimate, max(c.Lower, least))
	c.Margin = 1 - c.Lower/c.Estimate
}

// invalidReason returns that there is no estimate for want of windows that count, none where that
// is not why.
func (f *search) invalidReason() result.Reason {
	windows, invalid := 0, 0
	for i := range f.cap.Trail {
		if s := &f.cap.Trail[i]; s.Load >= f.lo && !s.Earlier {
			windows++
			if s.Seen.Invalid {
				invalid++
			}
		}
	}
	if f.cap.Estimate > 0 || 2*invalid <= windows {
		return result.Reason{}
	}
	return result.Reason{Code: result.WindowsInvalid, N: float64(invalid), Of: float64(windows), Low: f.lo}
}

// dominantLimit is the limit violated most at the load nearest the estimate.
func (f *search) dominantLimit() int {
	if f.cap.Binding != Joint || len(f.cap.Trail) == 0 {
		return f.cap.Binding
	}
	at := f.cap.Estimate
	if at == 0 {
		at = max(f.hi, f.lo, f.cap.Trail[0].Load)
	}
	const near = 0.09 // in ln
	most := make([]int, len(f.cfg.Eps))
	for _, s := range f.cap.Trail {
		if s.Seen.Failed || s.Seen.Invalid || math.Abs(math.Log(s.Load/at)) > near {
			continue
		}
		for i, v := range s.Seen.Violations {
			most[i] += v
		}
	}
	best := 0
	for i, v := range most {
		if v > most[best] {
			best = i
		}
	}
	return best
}
