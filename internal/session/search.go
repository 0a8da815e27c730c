package session

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"pitot/internal/capacity"
	"pitot/internal/config"
	"pitot/internal/report/reasons"
	"pitot/internal/results/metric"
	"pitot/internal/results/record"
	"pitot/internal/results/result"
	"pitot/internal/say"
	"pitot/internal/slo"
	"pitot/internal/stats"
	"pitot/internal/target"
	"pitot/internal/workload"
)

// View shows how a search or a sweep goes on.
type View interface {
	ShowLine(line string) // of a load that was measured
	About(line string)    // of the one that is being measured now
	Left(budget float64)  // seconds of the budget as its load begins; 0 where there is none
}

// Searcher measures what a search or a sweep asks for, in a run directory.
type Searcher struct {
	session *Session
	claims  []slo.Claim
	closed  bool
	view    View
	Quick   bool  // a sweep is a first look: its windows are short on purpose
	probed  []int // the point of each probe

	died     error   // the target answered nothing at all
	served   float64 // requests per second, at most so far
	forecast *result.Forecast
	work     float64 // that simulating took, of so many requests
	sent     int
	spent    float64   // seconds
	ended    time.Time // when the last load did, or the search began
	budget   float64   // seconds, 0 if there is none
	low, top float64   // highest load within all limits, lowest over one; 0 if none
	answered float64   // highest load of which some request was answered

	backlog    bool          // the server may go on with requests of the load before
	notEmptied time.Duration // the longest wait for a server that was not empty by then
}

// NewSearcher measures in s. Loads are requests per second, or users where
// closed is true.
func NewSearcher(s *Session, claims []slo.Claim, closed bool, view View) *Searcher {
	return &Searcher{session: s, claims: claims, closed: closed, view: view}
}

// makeLoad returns the load of a point: a rate, or users where the search is over users.
func (s *Searcher) makeLoad(x float64, requests int, warmup time.Duration, stage string) PointSpec {
	l := s.session.NewSpec()
	l.Requests, l.Duration, l.Warmup = int64(requests), 0, warmup
	l.Stage, l.GiveUp = stage, stage == capacity.Bracket
	if l.Rate, l.Concurrency = x, 0; s.closed {
		l.Rate, l.Concurrency = 0, int(x)
	}
	return l
}

// leastWarmup is the shortest: connections and first requests take their time.
const leastWarmup = time.Second

// Probe measures one load of a search.
func (s *Searcher) Probe(ctx context.Context, p capacity.Probe) (capacity.Seen, error) {
	s.view.Left(max(0, s.budget-s.spent))
	var since time.Time
	if s.session.plan.Kind() != config.KindSim && !s.session.hasEarlierPoint() {
		since = s.ended
		if s.backlog {
			s.waitEmpty(ctx)
		}
	}
	s.view.About(s.probeTitle(p))
	m, err := s.session.Measure(ctx, s.loadOfProbe(p))
	if err != nil {
		return capacity.Seen{}, err
	}
	if err = ctx.Err(); err != nil && (m == nil || p.Counted || p.Stage != capacity.Verifying) {
		return capacity.Seen{}, err // a point that was cut short is no datum, unless it is long
	}
	seen := s.makeSeen(p, m, since)
	seen.Cut = err != nil
	return seen, err
}

// waitShare is the part of a budget that one wait for an empty server takes at most, and
// longestWait how long it takes at most anyhow.
const (
	waitShare   = 0.15
	longestWait = 2 * time.Minute
)

// waitEmpty waits until the server has finished what an overload left, and notes where it has not.
func (s *Searcher) waitEmpty(ctx context.Context) {
	most := longestWait
	if s.budget > 0 {
		most = min(most, secondsToDuration(waitShare*s.budget))
	}
	s.view.About("waiting until the server has finished the requests of the last load")
	if empty, known := s.session.Target.WaitEmpty(ctx, most); known && !empty {
		s.notEmptied = max(s.notEmptied, most)
	}
	s.session.noteProbes()
}

// exceedsLimit reports whether more requests of a window violate a limit than may.
func (s *Searcher) exceedsLimit(seen *capacity.Seen) bool {
	for i, c := range s.claims {
		if float64(seen.Violations[i]) > c.Share*float64(seen.Due[i]) {
			return true
		}
	}
	return false
}

// leftBehind reports whether a server may go on with requests of a point: some ended before their
// response did.
func leftBehind(p *result.Point) bool {
	q := &p.Requests
	return p.EndedEarly || p.Stability == stats.Unstable || q.Cut > 0 || q.Errors[record.ErrTimeout]+q.Errors[record.ErrInterrupted] > 0
}

// warmupTime returns the length of a warm-up of a number of residence times.
func (s *Searcher) warmupTime(residences, residence float64) time.Duration {
	return max(secondsToDuration(residences*residence), leastWarmup).Round(time.Millisecond)
}

// loadOfProbe returns the load that a probe has in the session.
func (s *Searcher) loadOfProbe(p capacity.Probe) PointSpec {
	l := s.makeLoad(p.Load, p.Requests, s.warmupTime(p.Residences, p.Residence), p.Stage)
	l.Burst = [2]time.Duration{secondsToDuration(p.Burst[0]), secondsToDuration(p.Burst[1])}
	l.WindowBy, l.EndBy, l.Counted = secondsToDuration(p.WindowBy), secondsToDuration(p.EndBy), p.Counted
	if p.Decided != nil && s.hasIndependentRequests() {
		l.Claims, l.Decided = s.claims, p.Decided
	}
	return l
}

// hasIndependentRequests says that each request comes by itself and is like the others: none
// follows another's answer, or is of a class with arrivals of its own.
func (s *Searcher) hasIndependentRequests() bool {
	p := s.session.plan
	return p.Mix == nil && p.IsGenerated() && !p.HasConversations()
}

// secondsToDuration returns x seconds as a duration.
func secondsToDuration(x float64) time.Duration { return time.Duration(x * float64(time.Second)) }

// makeSeen returns the observations of a probe. It took all the time since then, unless since is
// zero. The time of requests before a load, and of computing between two, counts against a budget
// too.
func (s *Searcher) makeSeen(p capacity.Probe, m *Measured, since time.Time) capacity.Seen {
	if !p.Counted {
		s.work, s.sent = s.work+capacity.WorkOf(m.Extent.Requests, m.Extent.Events, m.Extent.Prompt, false), s.sent+int(m.Extent.Requests)
	}
	s.probed = append(s.probed, m.Index)
	v := m.CountViolations(s.claims, p.Blocks)
	seen := capacity.Seen{
		Load: p.Load, N: v.N, Due: v.Due, Violations: v.Of, Joint: v.Any,
		Errors: m.Requests.Due - m.Requests.OK, TimedOut: m.Requests.Errors[record.ErrTimeout],
		Seconds: m.Seconds.Warmup + m.Seconds.Window,
		Work:    capacity.WorkOf(m.Extent.Requests, m.Extent.Events, m.Extent.Prompt, p.Counted), Sent: int(m.Extent.Requests),
		Blocks: v.Blocks, JointBlock: v.InAny, Cluster: v.Cluster,
		Stability: stats.Stability(m.Stability),
		Failed:    m.Requests.Due > 0 && m.Requests.OK == 0 || isGone(&m.Point), // where none came due none could
		Invalid: m.Verdict == result.Invalid && !p.Counted || // the instrument of a count cannot fail
			slices.ContainsFunc(m.Workers, func(w result.Worker) bool { return w.Lost != nil }), // what is missing the server did not cause
	}
	seen.Seconds = max(seen.Seconds+m.Seconds.Drain, float64(m.Extent.Ended)/1e9) // what was cut off took its time
	if !p.Counted && !s.closed {
		point := capacity.PointOf(m.Index, &m.Point)
		seen.Carried, seen.Behind = capacity.CarriedAt(point), point.IsBehind()
	}
	if !since.IsZero() {
		seen.Seconds = max(seen.Seconds, time.Since(since).Seconds())
	}
	if e := m.Metrics.SummaryOf(metric.E2E); e != nil && e.Mean != nil {
		seen.Residence = *e.Mean / 1e3
	}
	if w := m.window; w != nil {
		seen.Residence = cmp.Or(seen.Residence, w.meanResidence()) // no mean is known where some were not followed to their end
		if w.decided {
			seen.Partial, seen.Stability, seen.Violations, seen.N = true, stats.Undecided, w.violations, max(w.due, 1)
			seen.Failed = false // it ended before its requests could
			seen.Due = slices.Repeat([]int{seen.N}, len(s.claims))
		}
	}
	if m.Requests.OK > 0 {
		s.answered = max(s.answered, p.Load)
	} else if q := &m.Requests; s.answered > 0 && p.Load > s.answered && q.Due > 0 && q.Errors[record.ErrTimeout]+q.Cut == q.Due && !isGone(&m.Point) {
		// Lighter loads were answered: the queue was longer than the timeout.
		seen.Failed, seen.Stability = false, stats.Unstable
	}
	s.backlog = leftBehind(&m.Point) || seen.Behind || s.exceedsLimit(&seen)
	if seen.Failed {
		s.died = s.wentAway(p.Load, &m.Point)
	}
	if r := m.Throughput.RequestsPerS; r != nil {
		s.served = max(s.served, *r)
	}
	s.noteSeen(&seen)
	s.ended = time.Now()
	s.view.ShowLine(s.probeLine(p, &seen) + describeFailures(&m.Point))
	return seen
}

// isGone says that connections for a good part of the requests were refused: that is no load too
// high, but a server that is not there any more.
func isGone(p *result.Point) bool {
	return p.WentAway != nil || p.Requests.Due > 0 && float64(p.Requests.Errors[record.ErrConnect]) >= 0.05*float64(p.Requests.Due)
}

// wentAway says at which load the target did.
func (s *Searcher) wentAway(load float64, p *result.Point) error {
	return &target.Error{
		Msg:  fmt.Sprintf("the target went away at %s%s", s.formatLoad(load), exampleFailure(p.Requests.ErrorExamples)),
		Hint: "start it again and go on with --resume",
	}
}

// exampleFailure returns the message of one failed request, a refused connection first, "" without
// any.
func exampleFailure(examples map[string]string) string {
	if refused := examples[record.ErrConnect]; refused != "" {
		return ": " + refused
	}
	for _, class := range slices.Sorted(maps.Keys(examples)) {
		return ": " + examples[class]
	}
	return ""
}

// noteSeen keeps what the live view shows of a probe.
func (s *Searcher) noteSeen(seen *capacity.Seen) {
	s.spent += seen.Seconds
	if seen.Invalid {
		return
	}
	within, over := !s.exceedsLimit(seen), seen.Stability == stats.Unstable
	for i, c := range s.claims {
		over = over || seen.Due[i] > 0 && stats.ClopperPearson(seen.Violations[i], seen.Due[i], 1, stats.OneSided(.95)).Lo > c.Share // few violations of few requests may be chance
	}
	switch {
	case over && (s.top == 0 || seen.Load < s.top):
		s.top = seen.Load
	case within && !over:
		s.low = max(s.low, seen.Load)
	}
}

// probeTitle returns the line of the live view while a probe is measured.
func (s *Searcher) probeTitle(p capacity.Probe) string {
	line := fmt.Sprintf("%s %s · load %d", stageWord(p.Stage), s.formatLoad(p.Load), len(s.probed)+1)
	estimate, interval := 0., stats.Interval{}
	if p.SoFar != nil {
		estimate, interval = p.SoFar()
	}
	switch bracketed := s.low > 0 && (s.top == 0 || s.low < s.top); {
	case estimate > 0:
		line += fmt.Sprintf(" · estimate %s, %s to %s", say.Significant(estimate, 4), say.Significant(interval.Lo, 4), say.Significant(interval.Hi, 4))
	case bracketed && s.top > 0:
		line += " · met at " + s.formatLoad(s.low) + ", over at " + s.formatLoad(s.top)
	case bracketed:
		line += " · met at " + s.formatLoad(s.low)
	case s.top > 0:
		line += " · over at " + s.formatLoad(s.top)
	}
	return line
}

// stageWord returns what a probe of a stage is for, in a word.
func stageWord(stage string) string {
	switch stage {
	case capacity.Main:
		return "measure"
	case capacity.Verifying:
		return "verify"
	case capacity.Shown:
		return "record"
	}
	return "search"
}

// probeLine returns the line that is printed after a probe.
func (s *Searcher) probeLine(p capacity.Probe, seen *capacity.Seen) string {
	line := fmt.Sprintf("%-7s %9s  %7s requests", stageWord(p.Stage), s.formatLoad(p.Load), say.Count(seen.N))
	missed := ""
	for i, c := range s.claims {
		if seen.Violations[i] > 0 {
			missed += fmt.Sprintf(", %.3g %% miss %s", 100*float64(seen.Violations[i])/float64(max(seen.Due[i], 1)), c.Spec)
		}
		if c.OnAnswers() {
			missed += fmt.Sprintf(" (%s of %s)", say.Count(seen.Violations[i]), say.Plural(seen.Due[i], "answer"))
		}
	}
	if missed == "" && seen.N > 0 {
		missed = ", all within the SLO"
	}
	line += missed
	if seen.Stability == stats.Unstable {
		line += ", queue grows"
	}
	if seen.Invalid {
		line += ", INVALID: it does not count"
	}
	return line
}

// describeFailures says how many requests of a window failed, and most of them why, "" where none
// did: these violate every limit, and are not late. Requests that were under way when the
// window was ended early did not fail.
func describeFailures(p *result.Point) string {
	ended := ""
	if p.EndedEarly || p.Requests.Errors[record.ErrInterrupted] > 0 {
		ended = "; ended early"
	}
	due := p.Requests.Due - p.Requests.Errors[record.ErrInterrupted]
	failed := due - p.Requests.OK
	if failed <= 0 {
		return ended
	}
	most := ""
	for class, n := range p.Requests.Errors {
		if class == record.ErrInterrupted {
			continue
		}
		if n > p.Requests.Errors[most] || n == p.Requests.Errors[most] && class < most {
			most = class
		}
	}
	why := most
	if most == record.ErrRateLimited {
		why = "refused with 429"
	}
	text := fmt.Sprintf("; %.3g %% failed", 100*float64(failed)/float64(due))
	switch {
	case most == "":
	case p.Requests.Errors[most] < failed:
		text += ", most often " + why
	default:
		text += ": " + why
	}
	return text + ended
}

// budgetOutlook returns what a budget can give, as far as the cost of a request is known. near is a
// load around the capacity, the zero one where none is known yet.
func (s *Searcher) budgetOutlook(cfg *capacity.FindConfig, near capacity.Probe) capacity.Outlook {
	b, paid, rate := cfg.Budget, 0, cfg.Rate(near.Load, near.Takes)
	switch {
	case b.Work > 0 && s.work == 0:
		b.Requests = 0 // how many that is follows from the first of them
	case b.Work > 0:
		around := (capacity.Warmup + capacity.Drain) * near.Residence * rate
		paid, b.Requests = b.InRequests(s.work/float64(s.sent), around, cfg.Count)
	}
	traffic := TrafficOf(s.session.plan, s.claims)
	o := capacity.Forecast(cfg.MemoryTime(cfg.Residence), s.served, b, traffic)
	if near.Load > 0 {
		o = capacity.ForecastNear(near.Residence, rate, b, traffic)
	}
	if paid > 0 {
		o.Requests = paid
	}
	return o
}

// TrafficOf returns the plan's indications of how much violations of the claims will cluster. What
// is not known, such as the length of a file's prompts, gets the usual value.
func TrafficOf(p *config.Plan, claims []slo.Claim) capacity.Traffic {
	t := capacity.Traffic{Allowed: 1, Gaps: 1}
	t.Plain = p.Mix == nil && p.Ask.PrefixMean() == 0 && (p.Cache == "" || p.Cache == config.CacheCold) && !p.HasConversations()
	for _, c := range claims {
		t.Allowed = min(t.Allowed, c.Share)
	}
	for _, l := range []workload.Lengths{p.Input, p.Ask.Output} {
		v := l.SquaredCV()
		if math.IsNaN(v) {
			v, t.Plain = 1, false
		}
		t.Lengths = max(t.Lengths, v)
	}
	if law, err := p.ArrivalLaw(); err == nil && !p.IsClosedLoop() {
		e := law.ExpectedAt(1)
		if t.Gaps, t.Cycle = e.CV*e.CV, e.Cycle; t.Cycle > 0 { // gaps vary by as much more as the rate asked for is higher
			t.Gaps = 1 + e.Swing
		}
		t.Plain = t.Plain && !e.Varies
	} else {
		t.Plain = false
	}
	return t
}

// level is with which bounds and intervals of a search hold.
const level = 0.95

// CapacityResult returns a capacity as run.json stores it.
func (s *Searcher) CapacityResult(c capacity.Found, objective slo.Spec) *result.Capacity {
	r := &result.Capacity{
		Over: s.loadKind(), SLO: objective.String(), Covers: c.Label,
		Estimate: capacity.KnownOrNil(c.Estimate), CI95: capacity.IntervalOrNil(c.Interval), Lower: capacity.KnownOrNil(c.Lower), Load: capacity.KnownOrNil(c.Quote),
		Requests: c.Requests, Seconds: c.Seconds, Why: c.Reason, Unfinished: c.Unfinished, Forecast: s.forecast,
		Limits: []result.CapacityLimit{}, Trail: []result.CapacityProbe{},
		Cost: &result.Quoted{Headroom: s.session.plan.Headroom},
	}
	if c.AtLeast > 0 || c.AtMost > 0 {
		r.Bracket = &[2]*float64{capacity.KnownOrNil(c.AtLeast), capacity.KnownOrNil(c.AtMost)}
		r.Bounds = &result.Bounds{Level: level, Fitted: c.Estimate > 0}
	}
	if x := c.Carried; x.Rate > 0 {
		r.Carried = &result.Carried{RequestsPerS: x.Rate, CI95: [2]float64{x.Interval.Lo, x.Interval.Hi}}
	}
	r.Likely = capacity.IntervalOrNil(c.Likely)
	r.NotEmptiedS = capacity.KnownOrNil(s.notEmptied.Seconds())
	if c.Estimate > 0 {
		r.Binding = s.claims[c.Binding].Spec
	}
	if o := c.Floor; o.Lower > 0 {
		r.Floor = &result.Floor{Spec: s.claims[o.Claim].Spec, Load: o.Load, Requests: o.N, Violations: o.Violations, Errors: o.Errors,
			Lower: o.Lower, Allowed: s.claims[o.Claim].Share}
	}
	if o := c.Unmet; o.N > 0 {
		r.Unmet = &result.Floor{Spec: s.claims[max(o.Claim, 0)].Spec, Load: o.Load, Requests: o.N, Violations: o.Violations, Errors: o.Errors,
			Allowed: s.claims[max(o.Claim, 0)].Share, Confidence: o.Confidence}
	}
	if v := c.Verified; v.N > 0 {
		lower := 0.
		if v.Refuted {
			lower = v.Lower
		}
		r.Verified = &result.Verified{Load: v.Load, Requests: v.N, Violations: v.Violations, Errors: v.Errors, Upper: v.Upper, Lower: lower,
			Allowed: s.claims[max(c.Binding, 0)].Share, Passed: v.Passed, Refuted: v.Refuted, Attempts: v.Attempts}
	}
	for _, l := range c.Claims {
		limit := result.CapacityLimit{
			Spec: s.claims[l.Claim].Spec, Allowed: l.Eps, Estimate: capacity.KnownOrNil(l.Load), CI95: capacity.IntervalOrNil(l.Interval), Why: result.Reason{Code: result.ReasonCode(l.Reason)},
		}
		if x := l.Curve; l.Reason == "" && x.B > 0 {
			limit.Curve = &result.FittedCurve{A: x.A, B: x.B, Centre: x.Centre, Floor: x.Floor}
		}
		r.Limits = append(r.Limits, limit)
	}
	ofClasses := slices.ContainsFunc(s.claims, func(c slo.Claim) bool { return c.Class != "" || c.OnAnswers() })
	earlier := len(c.Trail) - len(slices.DeleteFunc(slices.Clone(c.Trail), func(x capacity.Step) bool { return x.Earlier }))
	for i, step := range c.Trail {
		point := Unrecorded
		if i >= earlier {
			point = s.probed[i-earlier]
		}
		var due []int
		if ofClasses {
			due = step.Seen.Due
		}
		var seen *result.Counts
		if step.Seen.IsEvidence() {
			seen = capacity.CountsOf(&step.Seen)
		}
		r.Trail = append(r.Trail, result.CapacityProbe{
			Launch: step.Launch, Earlier: step.Earlier, Seen: seen,
			Point: point, Stage: step.Stage, Load: step.Load, Requests: step.Seen.N,
			Violations: step.Seen.Violations, Due: due, Stability: step.Seen.Stability, Excluded: step.Seen.Invalid || step.Seen.Partial, Cut: step.Seen.Cut, Counted: step.Counted, Carries: step.Carries,
		})
	}
	return r
}

// allowedShares returns the share of requests that may violate each claim.
func allowedShares(claims []slo.Claim) (eps []float64) {
	for _, c := range claims {
		eps = append(eps, c.Share)
	}
	return eps
}

// claimedShares returns the share of all requests that each claim is about, nil where each is about
// all of them.
func (s *Searcher) claimedShares() (list []float64) {
	some := false
	for _, c := range s.claims {
		share := 1.
		switch {
		case c.Class != "":
			some, share = true, s.session.plan.Ask.ShareOf(c.Class)
		case c.OnAnswers():
			some, share = true, s.session.plan.VerifiedShares().TotalShare()
		}
		list = append(list, share)
	}
	if !some {
		return nil
	}
	return list
}

// Goal says what a search looks for.
type Goal struct {
	Objective slo.Spec
	Budget    time.Duration // 0 for as many requests as a claim takes
	MaxLoad   float64       // 0 for no limit
	Alone     time.Duration // about how long one request takes on an idle target
	Verify    float64       // the load to look at; 0: the highest is searched for
	Seed      uint64
	Continued *Continued // what it goes on with, nil for nothing
}

// Find searches for the capacity of a session's target, or verifies a load. It
// says beforehand what the budget can give. What was measured stays in the
// session, whatever ends the search.
func (s *Searcher) Find(ctx context.Context, what Goal) (*result.Capacity, error) {
	s.budget, s.ended = what.Budget.Seconds(), time.Now()
	s.session.Target.NoteEmpty(ctx)
	cfg := capacity.FindConfig{
		Eps: allowedShares(s.claims), Of: s.claimedShares(), Closed: s.closed, MaxLoad: what.MaxLoad, Residence: what.Alone.Seconds(),
		Level: level, Budget: capacity.Budget{Seconds: s.budget}, Seed: what.Seed,
	}
	cfg.Traffic = TrafficOf(s.session.plan, s.claims)
	var err error
	if cfg.Sessions, err = s.session.sessionStats(s.closed); err != nil {
		return nil, err
	}
	if x := what.Continued; x != nil {
		x.into(&cfg)
		s.view.ShowLine(x.summaryLine())
	}
	if s.budget == 0 {
		cfg.Budget.Requests, cfg.Budget.Work = capacity.EnoughRequests, capacity.EnoughWork
		cfg.Count = what.Verify == 0 && s.session.Target.Kind == config.KindSim && !slices.ContainsFunc(what.Objective.All(), func(l slo.Limit) bool { return l.Metric == metric.Stall })
	}
	if what.Verify > 0 {
		v, err := capacity.Verify(ctx, cfg, what.Verify, s.Probe)
		if err == nil && len(v.Trail) == 0 {
			hint := "raise --budget"
			if !s.closed && s.budget > 0 {
				_, takes := capacity.LeastToVerify(cfg, what.Verify)
				hint += " to " + givenBudget(takes)
			}
			return nil, say.Errorf("%s cannot be verified: %s", s.formatLoad(what.Verify), reasons.Text(v.Reason)).WithHint(hint)
		}
		if err == nil {
			err = s.died
		}
		r := s.CapacityResult(v, what.Objective)
		if v.Enough > s.budget {
			r.Enough = []result.BudgetFor{{Seconds: v.Enough}}
		}
		return r, err
	}
	s.view.ShowLine("budget: " + s.budgetOutlook(&cfg, capacity.Probe{}).String())
	centred, near := false, capacity.Probe{}
	tell := func(p capacity.Probe) { // what it can give, once it is known about where the limit is
		if p.Stage != capacity.Centre || centred {
			return
		}
		centred, near = true, p
		o := s.budgetOutlook(&cfg, near)
		s.forecast = &result.Forecast{Requests: o.Requests, HalfWidth: capacity.KnownOrNil(o.HalfWidth)}
		s.view.ShowLine("budget: " + o.String())
	}
	found, err := capacity.Find(ctx, cfg, func(ctx context.Context, p capacity.Probe) (capacity.Seen, error) {
		tell(p)
		return s.Probe(ctx, p)
	})
	switch {
	case err == nil && s.died != nil:
		err = s.died
	case err == nil && len(found.Trail) == len(cfg.Earlier):
		hint := "raise --budget"
		if what.MaxLoad > 0 {
			hint += " or --max-load"
		}
		return nil, say.Errorf("nothing can be measured: %s", reasons.Text(found.Reason)).WithHint(hint)
	}
	r := s.CapacityResult(found, what.Objective)
	if x := what.Continued; x != nil {
		r.Continued = x.toResult()
	}
	if found.More {
		b := cfg
		if cfg.Budget.Work > 0 {
			b = capacity.FindConfig{Residence: cfg.Residence, Sessions: cfg.Sessions, Closed: cfg.Closed}
		}
		for _, p := range s.budgetOutlook(&b, near).Precisions {
			spent := p.Seconds > 0 && p.Seconds <= found.Seconds // and did not tell
			if !spent && (cfg.Budget.Work == 0 || centred) {
				r.Enough = append(r.Enough, result.BudgetFor{HalfWidth: p.HalfWidth, Requests: p.Requests, Seconds: p.Seconds})
			}
		}
	}
	return r, err
}

// CanVerify refuses to verify a load in a time that cannot pay the requests that it takes, as far
// as that is known before anything is sent.
func CanVerify(p *config.Plan, load float64, budget time.Duration) error {
	if load == 0 || budget == 0 || p.IsClosedLoop() || p.HasConversations() && !p.IsGenerated() {
		return nil
	}
	claims, err := p.SLO.SplitClaims()
	if err != nil || len(claims) == 0 {
		return err
	}
	cfg := capacity.FindConfig{Eps: allowedShares(claims), Residence: unknownResidence.Seconds(), MaxLoad: p.MaxLoad, Traffic: TrafficOf(p, claims)}
	if p.HasConversations() {
		cfg.Sessions.Turns = p.Ask.MeanTurns()
	}
	requests, takes := capacity.LeastToVerify(cfg, load)
	rate := cfg.Rate(load, cfg.Residence)
	if float64(requests)/rate <= budget.Seconds() {
		return nil
	}
	return say.Errorf("%s/s cannot be verified in %s: it takes %s at least, which come in %s", say.Significant(load, 4), say.Duration(budget), say.Plural(requests, "request"),
		say.Seconds(float64(requests)/rate)).WithHint("raise --budget to " + givenBudget(takes))
}

// givenBudget is a budget of so many seconds at least, as it is given, in steps of 10 s, of more
// than ten minutes in whole ones.
func givenBudget(seconds float64) string {
	step := 10.
	if seconds > 600 {
		step = 60
	}
	text := (time.Duration(math.Ceil(seconds/step)*step) * time.Second).String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// quickWindow is the shortest window of a first look. Where requests take longer, it is three of them.
const quickWindow = 2500 * time.Millisecond

// Sweep measures loads until there are no more or the plan's budget is spent, each with the plan's
// window; one of [config.AutoDuration] is chosen for each. It says beforehand how long that takes.
func (s *Searcher) Sweep(ctx context.Context, loads *capacity.Loads) error {
	plan, budget := s.session.plan.Load, max(0, s.session.plan.Budget)
	window := &plan
	alone, err := s.session.MeasureAlone(ctx)
	if err != nil {
		return err
	}
	free := s.session.Target.Kind == config.KindSim
	if s.Quick && !free {
		window.Duration = max(quickWindow, 3*alone).Round(100 * time.Millisecond)
	}
	windows := capacity.Windows{Residence: alone.Seconds(), Closed: s.closed, Free: free, Timeout: s.session.Target.Timeout.Seconds()}
	counted := window.Requests > 0
	fixed := window.Duration != config.AutoDuration
	besides := window.WarmupFor(alone) + alone // its warm-up, and the last answers
	if first := cmp.Or(max(0, window.Duration), windows.Next(1, nil)); !counted && (!free || budget > 0) {
		if budget > 0 && capacity.NextWindow(budget, 1, besides, first, fixed) == 0 {
			least := min(first, capacity.LeastWithin)
			if fixed {
				least = first
			}
			least = (least + besides + time.Second).Truncate(time.Second)
			return say.Errorf("--budget %s is too short for one load", say.Duration(budget)).WithHint(fmt.Sprintf("a load takes about %s with its warm-up: give --budget %v or more", say.Duration(least), least))
		}
		s.view.ShowLine(sweepTime(loads.Left(0), first, besides, budget, fixed))
	}
	var seen []capacity.CurvePoint
	var spent time.Duration
	if budget > 0 && s.Quick {
		loads.FitUsers(window.Duration, func() time.Duration { return budget - spent })
	}
	for {
		toGo := loads.Left(len(seen))
		x, ok := loads.Next(seen)
		if !ok {
			return nil
		}
		s.view.About(fmt.Sprintf("load %d · %s", len(seen)+1, s.formatLoad(x)))
		stage := result.StageCurve
		if s.Quick {
			stage = result.StageQuick
		}
		l := s.makeLoad(x, int(window.Requests), window.Warmup, stage)
		if l.Duration = window.Duration; !fixed && !counted {
			l.Duration = windows.Next(x, seen)
		}
		if budget > 0 {
			left := budget - spent
			if !counted {
				l.Duration = capacity.NextWindow(left, toGo, besides, l.Duration, fixed)
			}
			if l.Duration == 0 || left <= besides {
				s.view.ShowLine(fmt.Sprintf("the budget is spent: %s measured", say.Plural(len(seen), "load")))
				return nil
			}
			l.WindowBy, l.EndBy = max(left-alone, left/2), left
			s.view.Left(left.Seconds())
		}
		// One load beyond saturation is measured whole: it shows what is served.
		l.GiveUp = slices.ContainsFunc(seen, func(p capacity.CurvePoint) bool { return p.IsUnstable() && !p.Early })
		had, began := s.session.hasEarlierPoint(), time.Now()
		m, err := s.session.Measure(ctx, l)
		if err != nil {
			return err
		}
		took := secondsToDuration(m.Seconds.Warmup + m.Seconds.Window + m.Seconds.Drain)
		if !free && !had {
			took = max(took, time.Since(began))
		}
		spent += took
		p := capacity.PointOf(m.Index, &m.Point)
		seen = append(seen, p)
		line := fmt.Sprintf("%-14s %7s req/s served, medians in ms: TTFT %s, TPOT %s, E2E %s", s.formatLoad(x), say.Significant(p.RequestsPerS, 4), formatOptional(p.TTFT), formatOptional(p.TPOT), formatOptional(p.E2E))
		if p.Stability != stats.Stable {
			line += ", stability " + string(p.Stability)
		}
		s.view.ShowLine(line)
		if err := ctx.Err(); err != nil {
			return err
		}
		if isGone(&m.Point) {
			return s.wentAway(x, &m.Point)
		}
	}
}

// sweepTime says how long a sweep takes: so many loads with a window of a length, and what each
// takes besides it, within a budget, 0 for none.
func sweepTime(loads int, window, besides, budget time.Duration, fixed bool) string {
	total := time.Duration(loads) * (window + besides)
	about := func(d time.Duration) string { return "about " + say.Duration(d.Round(time.Second)) }
	switch {
	case budget > 0 && total > budget && fixed:
		return fmt.Sprintf("loads of %s with warm-up, within %s: about %d of %d", about(window+besides), say.Duration(budget), max(1, int(budget/(window+besides))), loads)
	case budget > 0 && total > budget:
		return fmt.Sprintf("%s within %s: %s each, with warm-up", say.Plural(loads, "load"), say.Duration(budget), about(max(budget/time.Duration(loads), capacity.LeastWithin+besides)))
	}
	return fmt.Sprintf("%s of %s each, with warm-up: %s", say.Plural(loads, "load"), about(window+besides), about(total))
}

// formatOptional returns a time in ms, a dash where it is not known.
func formatOptional(x float64) string {
	if x == 0 {
		return "–"
	}
	return say.Significant(x, 4)
}

// loadKind returns the quantity that loads are in.
func (s *Searcher) loadKind() string {
	switch {
	case s.session.plan.Over == config.OverAgents:
		return result.OverAgents
	case s.closed:
		return result.OverConcurrency
	case s.session.plan.HasConversations():
		return result.OverSessions
	}
	return result.OverRate
}

// formatLoad returns a load with its unit.
func (s *Searcher) formatLoad(x float64) string {
	if s.closed {
		return fmt.Sprintf("%.0f %s", x, result.LoadUnit(s.loadKind()))
	}
	return say.Significant(x, 4) + "/s"
}
