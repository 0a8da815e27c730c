package validity

import (
	"iter"
	"math"
	"slices"

	"pitot/internal/results/metric"
	"pitot/internal/results/record"
	"pitot/internal/results/result"
	"pitot/internal/results/spill"
	"pitot/internal/stats"
)

// MergedLimit is the share of merged chunks from which gap percentiles are
// flagged.
const MergedLimit = .001

// VerdictOf returns the verdict that follows from the checks. Only a failure of the instrument
// itself makes a measurement invalid.
func VerdictOf(checks []result.Check) result.Verdict {
	v := result.Valid
	for _, c := range checks {
		switch c.Status {
		case result.Fail:
			return result.Invalid
		case result.Flag:
			v = result.ValidWithFlags
		}
	}
	return v
}

// Evidence is all that the checks of a point rest on.
type Evidence struct {
	Probe  *Probe
	Queue  *Queue
	Point  *result.Point
	Cohort iter.Seq[Times] // in the order in which they were due
	Until  int64           // end of the records
	Store  *spill.Store    // for what may not fit into memory

	Answers  Answers
	Streamed bool        // some request asked to stream
	Headline metric.Name // the metric that a point is first judged by
	Values   int64       // of the headline
	Lag      Lag

	Asked      int // requests of any time
	Duplicates int // of them that came twice

	Served  *Served  // nil where the server does not tell
	Foreign *float64 // share of the tokens that it counted that were not of these requests; nil where that is not known

	Streams, Counted int64 // streams with gaps, and those of them whose tokens are known
	Expected, Seen   int64 // tokens by usage and by chunks or a tokenizer, where both are known
	ByTokenizer      bool
}

// Lag holds the amount by which the instrument's own delay moves the headline, in nanoseconds.
type Lag struct {
	Known     bool
	P99, Most float64 // of the lag itself
	Shifts    []Shift
}

// Shift is a percentile of the headline, with each request's lag and without it.
type Shift struct {
	Key           string // of the percentile
	With, Without float64
	Open          bool // one of them is only known to be larger
}

// Served holds the number of requests that a server counted over a load, and what it was sent of it
// meanwhile. Engines count each choice of an answer.
type Served struct {
	Counted, Answered, Sent float64
}

// pointConditions are those of the point.
func (e *Evidence) pointConditions() *Conditions { return e.Queue.conditions }

// ApplicableChecks are all that apply; what was not observed is not checked.
func (e *Evidence) ApplicableChecks() []result.Check {
	b, p, c := e.Probe, e.Point, e.pointConditions()
	due := p.Requests.Due
	unanswered, of := CountLost(p.Requests)
	out := []result.Check{
		checkAccounting(p.Requests, c.Planned, e.Duplicates),
		checkCount(result.CheckRecording, b.recordErrors, result.Fail),
		checkCount(result.CheckOwnErrors, b.bugs, result.Fail),
		checkLag(&e.Lag),
		ClockSteps(b.clockSteps),
		checkShare(result.CheckErrors, int64(unanswered), int64(of), .01),
		checkShare(result.CheckResets, int64(b.resets), int64(due), .001),
		checkShare(result.CheckRetransmits, int64(b.retransmitted), int64(due), .01),
		checkShare(result.CheckRetries, int64(b.retried), int64(due), .01),
		checkWindow(e.Answers.Slowest, c.Seconds()),
		checkSupport(e.Headline, e.Values),
	}
	if len(b.damage) > 0 {
		out = append(out, checkDamage(b.damage))
	}
	if n := c.Prompts; n > 0 {
		repeated := result.NewCheck(result.CheckRepeated, float64(e.Asked), float64(n))
		if e.Asked > n {
			repeated.Status = result.Flag
		}
		out = append(out, repeated)
	}
	if c.Stamps != "virtual" && b.cpuN > 0 {
		out = append(out, checkCPU(b.cpu/b.cpuN))
	}
	if busy, known := b.host.checkHost(); known && c.Stamps != "virtual" {
		out = append(out, busy)
	}
	if e.Streamed && b.chunks > 0 {
		out = append(out, checkStamps(c.Stamps, b.userStamps, b.arrivals), checkShare(result.CheckMerged, b.merged, b.chunks, MergedLimit))
	}
	if s := e.Served; s != nil && s.Sent > 0 && !b.IsDamaged() {
		out = append(out, checkServed(s))
	}
	if e.Foreign != nil && !b.IsDamaged() {
		foreign := result.NewCheck(result.CheckServedTokens, *e.Foreign, .01)
		if *e.Foreign > .01 {
			foreign.Status = result.Flag
		}
		out = append(out, foreign)
	}
	if b.promptKnown > 0 {
		out = append(out, checkShare(result.CheckPrompts, int64(b.otherPrompt), int64(b.promptKnown), .01))
	}
	if t := c.Tokenizer; t != nil {
		out = append(out, checkTokenizer(t))
	}
	if len(b.limits) > 0 {
		out = append(out, checkOwnLimits(b.limits))
	}
	if b.doubted > 0 {
		out = append(out, checkShare(result.CheckUsage, int64(b.doubted), int64(p.Requests.OK), 0))
	}
	if c.Exact && b.outputKnown > 0 {
		out = append(out, checkOutputs(b))
	}
	if b.oddFinish > 0 {
		odd := checkShare(result.CheckFinish, int64(b.oddFinish), int64(p.Requests.OK), 0)
		odd.Case = b.firstOdd
		out = append(out, odd)
	}
	if b.textless > 0 {
		out = append(out, checkShare(result.CheckTextless, int64(b.textless), int64(p.Requests.OK), 0))
	}
	if b.overfull > 0 {
		events := checkShare(result.CheckEvents, int64(b.overfull), int64(p.Requests.OK), .01)
		events.Detail["events"] = float64(b.overfullEvents) / float64(b.overfull)
		events.Detail["tokens"] = float64(b.overfullTokens) / float64(b.overfull)
		out = append(out, events)
	}
	if p.Metrics.SummaryOf(metric.ITL) != nil {
		out = append(out, checkShare(result.CheckTokenGaps, e.Streams-e.Counted, e.Streams, .01))
	}
	if e.Expected > 0 {
		counts := checkShare(result.CheckTokenCounts, max(e.Expected, e.Seen)-min(e.Expected, e.Seen), e.Expected, .01)
		if e.ByTokenizer {
			counts.Case = result.CaseTokenizer
		}
		out = append(out, counts)
	}
	switch {
	case !c.Cold:
	case b.cachedKnown && b.prompt > 0:
		out = append(out, checkShare(result.CheckPrefixCache, b.cached, b.prompt, .01))
	case c.Seeded && p.Requests.OK > 0:
		out = append(out, e.checkAskedBefore())
	}
	if b.hidden > 0 {
		out = append(out, checkShare(result.CheckHidden, int64(b.hidden), int64(due), 0))
	}
	if len(p.Classes) > 1 {
		out = append(out, checkMix(p.Classes))
	}
	out = append(out, e.checkConditions()...)
	blameHost(out)
	if c.Gone != nil {
		for i := range out { // what they find was not the cause
			if slices.Contains([]string{result.CheckResets, result.CheckAchieved}, out[i].Name) {
				out[i].Case = result.CaseGone
			}
		}
	}
	return out
}

// checkAskedBefore is whether prompts that a seed makes again were cached, where the answers do not
// tell: by the server's counters, if these are of this run's requests alone.
func (e *Evidence) checkAskedBefore() result.Check {
	cache := result.NewCheck(result.CheckPrefixCache, 0, .01)
	if hits, known := e.Point.Server[hitShare]; known && e.Foreign != nil && *e.Foreign <= .01 {
		cache.Value, cache.Status = &hits, statusFor(hits, .01, math.Inf(1))
		return cache
	}
	cache.Status, cache.Value, cache.Case = result.Flag, nil, result.CaseUnknown
	return cache
}

// hitShare is the server's own count of it.
const hitShare = "prefix_hit_share"

// CountLost counts the requests that were not answered, of all but those that the
// user's interruption or the client itself took from the server.
func CountLost(r result.Requests) (n, of int) {
	of = r.Due - r.Errors[record.ErrInterrupted]
	for class, failed := range r.Errors {
		if record.IsOwn(class) {
			of -= failed
		}
	}
	return of - r.OK, of
}

// statusFor returns the status of a value against a limit for flags and one for failures.
func statusFor(x, flagAbove, failAbove float64) result.Status {
	switch {
	case x > failAbove:
		return result.Fail
	case x > flagAbove:
		return result.Flag
	}
	return result.Pass
}

// checkShare flags a share above the limit.
func checkShare(name string, n, of int64, limit float64) result.Check {
	x := 0.
	if of > 0 {
		x = float64(n) / float64(of)
	}
	c := result.NewCheck(name, x, limit).WithDetail(map[string]float64{"n": float64(n), "of": float64(of)})
	c.Status = statusFor(x, limit, math.Inf(1))
	return c
}

// checkOutputs flags responses that are not as long as requested, with their mean lengths.
func checkOutputs(p *Probe) result.Check {
	c := checkShare(result.CheckOutputs, int64(p.otherOutput), int64(p.outputKnown), .01)
	c.Detail["served"] = float64(p.served) / float64(p.outputKnown)
	c.Detail["requested"] = float64(p.requested) / float64(p.outputKnown)
	return c
}

// CheckWorkers allows none of those that carried a load out to be lost.
func CheckWorkers(workers []result.Worker) result.Check {
	lost, status := 0, result.Pass
	for _, w := range workers {
		switch {
		case w.Lost == nil:
			continue
		case w.Lost.Early:
			status = result.Fail
		case status == result.Pass:
			status = result.Flag
		}
		lost++
	}
	c := result.NewCheck(result.CheckWorkers, float64(lost), 0).WithDetail(map[string]float64{"of": float64(len(workers))})
	c.Status = status
	return c
}

// ClockSteps allows a clock to be stepped never.
func ClockSteps(n int) result.Check {
	return checkCount(result.CheckClockSteps, n, result.Flag)
}

// checkCount allows none.
func checkCount(name string, n int, otherwise result.Status) result.Check {
	c := result.NewCheck(name, float64(n), 0)
	if n > 0 {
		c.Status = otherwise
	}
	return c
}

// checkOwnLimits allows no request to fail for want of something that this
// client or its machine ought to have: it says nothing of the server.
func checkOwnLimits(failed map[string]int) result.Check {
	n, lacks := 0, ""
	for _, class := range []string{record.ErrOwnMemory, record.ErrOwnPorts, record.ErrOwnFiles} {
		if failed[class] > 0 {
			n, lacks = n+failed[class], class
		}
	}
	c := checkCount(result.CheckClientLimits, n, result.Fail)
	c.Case = lacks
	return c
}

// checkDamage allows no record to be lost from the journal afterwards.
func checkDamage(damage []record.Damage) result.Check {
	c := result.NewCheck(result.CheckDamage, 0, 0)
	c.Status = result.Flag // foreign bytes, and nothing lost
	lost, exact := int64(0), true
	for i := range damage {
		d := &damage[i]
		lost, exact = lost+d.Rows+d.Chunks+d.Samples+d.Marks, exact && d.Exact
		if !d.IsNone() {
			c.Status = result.Fail
		}
	}
	if *c.Value = float64(lost); !exact {
		c.Value, c.Case = nil, result.CaseUnknown
	}
	return c
}

// checkAccounting holds the requests against each other and the schedule.
func checkAccounting(r result.Requests, planned, duplicates int) result.Check {
	sum := r.OK + r.Failed + r.Cut + r.Unsent
	astray := max(sum-r.Due, r.Due-sum) + duplicates
	detail := map[string]float64{"due": float64(r.Due), "ok": float64(r.OK), "failed": float64(r.Failed), "cut": float64(r.Cut), "unsent": float64(r.Unsent)}
	if n := r.LostWithWorker; n > 0 {
		detail["lost_with_worker"] = float64(n)
	}
	if there := r.Due + r.LostWithWorker; planned > 0 && planned != there {
		astray += max(planned-there, there-planned)
		detail["planned"] = float64(planned)
	}
	if duplicates > 0 {
		detail["twice"] = float64(duplicates)
	}
	return checkCount(result.CheckAccounting, astray, result.Fail).WithDetail(detail)
}

// checkLag asks how far the instrument's own delay moves the headline: with and
// without each request's lag.
func checkLag(lag *Lag) result.Check {
	const ms = 1e6
	out := result.NewCheck(result.CheckSendLag, 0, 1)
	if !lag.Known {
		out.Value, out.Case = nil, result.CaseUnknown
		return out
	}
	detail := map[string]float64{"lag_p99": lag.P99 / ms}
	worst, judged := 0., false
	for _, s := range lag.Shifts {
		if s.Open {
			// All that is known is that no percentile shifts by more than the
			// largest lag.
			if detail["lag_max"] = lag.Most / ms; lag.Most > max(ms, .02*min(s.With, s.Without)) && out.Status == result.Pass {
				out.Status = result.Flag
			}
			continue
		}
		shift := math.Abs(s.With - s.Without)
		judged, worst = true, max(worst, shift)
		detail["shift_"+s.Key] = shift / ms
		switch {
		case shift > .1*s.With && shift > 2*ms:
			out.Status, *out.Limit = result.Fail, max(2, .1*s.With/ms)
		case shift > max(ms, .02*s.With) && out.Status == result.Pass:
			out.Status, *out.Limit = result.Flag, max(1, .02*s.With/ms)
		}
	}
	if *out.Value = worst / ms; !judged {
		out.Value, out.Case = nil, result.CaseUnknown
	}
	return out.WithDetail(detail)
}

// checkTokenizer asks whether the user's tokenizer is the server's. The right one makes exactly the
// same of a text: what a chat's template adds was taken off.
func checkTokenizer(t *result.TokenizerMatch) result.Check {
	c := result.NewCheck(result.CheckTokenizer, float64(t.Differ), 0).WithDetail(map[string]float64{"ours": float64(t.Ours), "theirs": float64(t.Theirs)})
	if t.Differ > 0 {
		c.Status = result.Flag
	}
	if t.Prompts {
		c.Detail["prompts"] = 1
	}
	if t.IDs {
		c.Case = result.CaseIDs
		if t.Highest >= t.Size {
			c.Case = result.CaseBeyond
			c.Detail["size"], c.Detail["highest"] = float64(t.Size), float64(t.Highest)
		}
	}
	return c
}

// checkServed asks whether the server counted what it was sent. What failed or was
// cut may have been counted or not; nothing else is between its bounds.
func checkServed(s *Served) result.Check {
	off := max(s.Counted-s.Sent, s.Answered-s.Counted, 0)
	out := result.NewCheck(result.CheckServed, off/s.Sent, .01).WithDetail(map[string]float64{"counted": s.Counted, "sent": s.Sent, "answered": s.Answered})
	switch out.Status = statusFor(off/s.Sent, .01, math.Inf(1)); {
	case out.Status == result.Pass:
	case s.Counted > s.Sent:
		out.Case = result.CaseForeign
	default:
		out.Case = result.CaseFewer
	}
	return out
}

func checkCPU(mean float64) result.Check {
	c := result.NewCheck(result.CheckClientCPU, mean, .6)
	c.Status = statusFor(mean, .6, .9)
	return c
}

// checkStamps asks for how many reads the kernel gave no stamp.
func checkStamps(source string, user, arrivals int64) result.Check {
	c := checkShare(result.CheckStamps, user, arrivals, .01)
	c.Case = source
	switch source {
	case "virtual":
		c.Status = result.Pass
	case "kernel":
	default:
		*c.Value, c.Status, c.Detail = 1, result.Flag, nil
	}
	return c
}

// checkWindow compares the window with the slowest answer: a window that is
// not much longer than its requests shows how they begin and little of how
// they are served together.
func checkWindow(slowest, seconds float64) result.Check {
	out := result.NewCheck(result.CheckWindow, seconds, 2*slowest).WithDetail(map[string]float64{"slowest": slowest})
	if seconds < 2*slowest {
		out.Status = result.Flag
	}
	if seconds < Shortest { // no --duration makes such a window
		out.Status, out.Case = result.Flag, result.CaseEmpty
	}
	return out
}

// checkSupport asks whether there are samples enough for the headline
// percentile to be given at all. Where they are few the value itself is
// marked, which is no fault of the run.
func checkSupport(headline metric.Name, n int64) result.Check {
	few, _ := stats.SamplesNeeded(.99)
	out := result.NewCheck(result.CheckSamples, float64(n), float64(few))
	out.Case = string(headline)
	if n < few {
		out.Status = result.Flag
	}
	return out
}

// mixedFactor is the factor by which the medians of classes may be apart.
const mixedFactor = 3

// checkMix flags a headline over classes that behave differently: its p99 is
// then the p99 of one of them.
func checkMix(classes map[string]result.Class) result.Check {
	low, high := math.Inf(1), 0.
	for _, c := range classes {
		s := c.Metrics.SummaryOf(metric.TTFT)
		if s == nil {
			s = c.Metrics.SummaryOf(metric.E2E)
		}
		if s != nil && s.P50 != nil {
			low, high = min(low, *s.P50), max(high, *s.P50)
		}
	}
	out := result.NewCheck(result.CheckMix, high/low, mixedFactor)
	if high <= 0 || low <= 0 || math.IsInf(low, 1) {
		out.Value, out.Case = nil, result.CaseUnknown
		return out
	}
	if high > mixedFactor*low {
		out.Status = result.Flag
	}
	return out
}
