package measure

import (
	"math"
	"slices"

	"pitot/internal/data/metric"
	"pitot/internal/data/record"
	"pitot/internal/data/result"
	"pitot/internal/stat"
)

// mergedLimit is the share of merged chunks from which gap percentiles are
// flagged.
const mergedLimit = .001

// Verdict is what the checks amount to. Only a failure of the instrument
// itself makes a measurement invalid.
func Verdict(checks []result.Check) result.Verdict {
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

// checks are all that apply; what was not observed is not checked.
func (f *Fold) checks(all *part, p *result.Point) []result.Check {
	b, due := &f.probe, p.Requests.Due
	unanswered, of := lost(p.Requests)
	out := []result.Check{
		checkAccounting(p.Requests, f.setup.Planned, f.duplicates),
		checkCount(result.CheckRecording, b.recordErrors, result.Fail),
		checkCount(result.CheckOwnErrors, b.bugs, result.Fail),
		checkLag(all),
		checkCount(result.CheckClockSteps, b.clockSteps, result.Flag),
		checkShare(result.CheckErrors, int64(unanswered), int64(of), .01),
		checkShare(result.CheckResets, int64(b.resets), int64(due), .001),
		checkShare(result.CheckRetransmits, int64(b.retransmitted), int64(due), .01),
		checkShare(result.CheckRetries, int64(b.retried), int64(due), .01),
		checkWindow(all, f.setup.seconds()),
		checkSupport(all),
	}
	if len(b.damage) > 0 {
		out = append(out, checkDamage(b.damage, f.incomplete))
	}
	if n := f.setup.Prompts; n > 0 {
		c := result.NewCheck(result.CheckRepeated, float64(f.asked), float64(n))
		if f.asked > n {
			c.Status = result.Flag
		}
		out = append(out, c)
	}
	if f.setup.Stamps != "virtual" && b.cpuN > 0 {
		out = append(out, checkCPU(b.cpu/b.cpuN))
	}
	if c, told := b.host.check(); told && f.setup.Stamps != "virtual" {
		out = append(out, c)
	}
	if all.tally.streamed && b.chunks > 0 {
		out = append(out, checkStamps(f.setup.Stamps, b.userStamps, b.arrivals), checkShare(result.CheckMerged, b.merged, b.chunks, mergedLimit))
	}
	if b.promptKnown > 0 {
		out = append(out, checkShare(result.CheckPrompts, int64(b.otherPrompt), int64(b.promptKnown), .01))
	}
	if len(b.limits) > 0 {
		out = append(out, checkOwnLimits(b.limits))
	}
	if b.doubted > 0 {
		out = append(out, checkShare(result.CheckUsage, int64(b.doubted), int64(p.Requests.OK), 0))
	}
	if f.setup.Exact && b.outputKnown > 0 {
		out = append(out, checkShare(result.CheckOutputs, int64(b.otherOutput), int64(b.outputKnown), .01))
	}
	if known, streams := all.pool(); p.Metrics.Of(metric.ITL) != nil {
		out = append(out, checkShare(result.CheckTokenGaps, streams.requests-known.requests, streams.requests, .01))
	}
	if w := &f.flow; w.expected > 0 {
		out = append(out, checkShare(result.CheckTokenCounts, max(w.expected, w.observed)-min(w.expected, w.observed), w.expected, .01))
	}
	switch {
	case !f.setup.Cold:
	case b.prompt > 0:
		out = append(out, checkShare(result.CheckPrefixCache, b.cached, b.prompt, .01))
	case f.setup.Seeded && p.Requests.OK > 0:
		c := result.NewCheck(result.CheckPrefixCache, 0, .01)
		c.Status, c.Value, c.Case = result.Flag, nil, result.CaseUnknown
		out = append(out, c)
	}
	if b.hidden > 0 {
		out = append(out, checkShare(result.CheckHidden, int64(b.hidden), int64(due), 0))
	}
	if len(p.Classes) > 1 {
		out = append(out, checkMix(p.Classes))
	}
	out = append(out, f.conditions(all, p)...)
	blame(out)
	if f.setup.Gone != nil {
		for i := range out { // what they find was not the cause
			if slices.Contains([]string{result.CheckResets, result.CheckAchieved}, out[i].Name) {
				out[i].Case = result.CaseGone
			}
		}
	}
	return out
}

// status is what a value is worth against a limit for flags and one for
// failures.
func status(x, flagAbove, failAbove float64) result.Status {
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
	c := result.NewCheck(name, x, limit).With(map[string]float64{"n": float64(n), "of": float64(of)})
	c.Status = status(x, limit, math.Inf(1))
	return c
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
func checkDamage(damage []record.Damage, incomplete int) result.Check {
	c := result.NewCheck(result.CheckDamage, 0, 0)
	c.Status = result.Flag // foreign bytes, and nothing lost
	var rows, chunks, others int64
	for i := range damage {
		d := &damage[i]
		rows, chunks, others = rows+d.Rows, chunks+d.Chunks, others+d.Samples+d.Marks
		if !d.None() {
			c.Status = result.Fail
		}
		if !d.Exact {
			c.Case = result.CaseAtMost
		}
	}
	*c.Value = float64(rows + chunks + others)
	return c.With(map[string]float64{"requests": float64(rows), "chunks": float64(chunks), "others": float64(others), "incomplete": float64(incomplete)})
}

// checkAccounting holds the requests against each other and the schedule.
func checkAccounting(r result.Requests, planned, duplicates int) result.Check {
	sum := r.OK + r.Failed + r.Cut + r.Unsent
	astray := max(sum-r.Due, r.Due-sum) + duplicates
	detail := map[string]float64{"due": float64(r.Due), "ok": float64(r.OK), "failed": float64(r.Failed), "cut": float64(r.Cut), "unsent": float64(r.Unsent)}
	if planned > 0 && planned != r.Due {
		astray += max(planned-r.Due, r.Due-planned)
		detail["planned"] = float64(planned)
	}
	if duplicates > 0 {
		detail["twice"] = float64(duplicates)
	}
	return checkCount(result.CheckAccounting, astray, result.Fail).With(detail)
}

// headline is the metric that a point is first judged by: TTFT, or E2E when
// nothing is streamed.
func (c *part) headline() metric.Name {
	if c.tally.streamed {
		return metric.TTFT
	}
	return metric.E2E
}

// checkLag asks how far the instrument's own delay moves the headline: with and
// without each request's lag.
func checkLag(c *part) result.Check {
	take := c.taken(c.headline())
	lagOf := func(q *Request) (float64, State) { return q.span(q.ready, q.sent) }
	samples := c.collect(question{unit: inMS, take: take}, question{unit: inMS, take: lagOf}, question{unit: inMS, take: func(q *Request) (float64, State) {
		x, st := take(q)
		if lag, is := lagOf(q); is == Known && st == Known {
			x -= lag
		}
		return x, st
	}})
	with, lag, without := samples[0], samples[1], samples[2]
	defer func() {
		for _, s := range samples {
			s.free()
		}
	}()
	out := result.NewCheck(result.CheckSendLag, 0, 1)
	if lag.n() == 0 || with.n() == 0 {
		out.Value, out.Case = nil, result.CaseUnknown
		return out
	}
	largest := lag.values.at(lag.n())
	p99, _ := lag.percentile(.99)
	detail := map[string]float64{"lag_p99": p99 / inMS}
	worst, judged := 0., false
	for _, of := range []string{"p50", "p99"} {
		p, _ := metric.PercentileOf(of)
		a, over := with.percentile(p.P)
		b, censored := without.percentile(p.P)
		if over || censored {
			// All that is known is that no percentile shifts by more than the
			// largest lag.
			if detail["lag_max"] = largest / inMS; largest > max(inMS, .02*min(a, b)) && out.Status == result.Pass {
				out.Status = result.Flag
			}
			continue
		}
		shift := math.Abs(a - b)
		judged, worst = true, max(worst, shift)
		detail["shift_"+p.Key] = shift / inMS
		switch {
		case shift > .1*a && shift > 2*inMS:
			out.Status, *out.Limit = result.Fail, max(2, .1*a/inMS)
		case shift > max(inMS, .02*a) && out.Status == result.Pass:
			out.Status, *out.Limit = result.Flag, max(1, .02*a/inMS)
		}
	}
	if *out.Value = worst / inMS; !judged {
		out.Value, out.Case = nil, result.CaseUnknown
	}
	return out.With(detail)
}

func checkCPU(mean float64) result.Check {
	c := result.NewCheck(result.CheckClientCPU, mean, .6)
	c.Status = status(mean, .6, .9)
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
// they are served beside each other.
func checkWindow(c *part, seconds float64) result.Check {
	slowest := c.outline.e2e.top / 1e9
	out := result.NewCheck(result.CheckWindow, seconds, 2*slowest).With(map[string]float64{"slowest": slowest})
	if seconds < 2*slowest {
		out.Status = result.Flag
	}
	if seconds < shortest { // no --duration makes such a window
		out.Status, out.Case = result.Flag, result.CaseEmpty
	}
	return out
}

// checkSupport asks whether there are samples enough for the headline
// percentile to be given at all. Where they are few the value itself is
// marked, which is no fault of the run.
func checkSupport(c *part) result.Check {
	m := c.headline()
	n := c.outline.ttft.n
	if m == metric.E2E {
		n = c.outline.e2e.n
	}
	few, _ := stat.Support(.99)
	out := result.NewCheck(result.CheckSamples, float64(n), float64(few))
	out.Case = string(m)
	if n < few {
		out.Status = result.Flag
	}
	return out
}

// mixedFactor is how far the medians of classes may be apart.
const mixedFactor = 3

// checkMix flags a headline over classes that behave differently: its p99 is
// then the p99 of one of them.
func checkMix(classes map[string]result.Class) result.Check {
	low, high := math.Inf(1), 0.
	for _, c := range classes {
		s := c.Metrics.Of(metric.TTFT)
		if s == nil {
			s = c.Metrics.Of(metric.E2E)
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
