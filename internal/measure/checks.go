package measure

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"pitot/internal/data/metric"
	"pitot/internal/data/record"
	"pitot/internal/data/result"
	"pitot/internal/stat"
)

// Statuses of a check.
const (
	pass = "pass"
	flag = "flag"
	bad  = "fail"
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
		case bad:
			return result.Invalid
		case flag:
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
		checkRecording(b.recordErrors),
		checkCount("own errors", b.bugs, "requests", bad, "Report this as a bug of Pitot."),
		checkLag(all),
		checkCount("clock steps", b.clockSteps, "steps", flag, "Stop the clock's stepping (chrony, ntpd) while measuring."),
		checkShare("errors", int64(unanswered), int64(of), .01, "Read the latencies as those of the requests that were served."),
		checkShare("resets", int64(b.resets), int64(due), .001, "Look for a proxy or a server that closes connections."),
		checkShare("retransmits", int64(b.retransmitted), int64(due), .01, "Look at the network between client and target."),
		checkShare("retries", int64(b.retried), int64(due), .01, "Raise the server's keep-alive timeout."),
		checkWindow(all, f.setup.seconds()),
		checkSupport(all),
	}
	if n := f.setup.Prompts; n > 0 {
		asked := f.asked
		c := result.Check{Name: "repeated prompts", Value: fmt.Sprintf("%d prompts for %d requests", n, asked), Limit: "none twice", Status: pass,
			Advice: "A prefix cache may have answered: give more prompts, or fewer requests."}
		if asked > n {
			c.Status = flag
		}
		out = append(out, c)
	}
	if f.setup.Stamps != "virtual" && b.cpuN > 0 {
		out = append(out, checkCPU(b.cpu/b.cpuN))
	}
	if c, told := b.host.check(); told && f.setup.Stamps != "virtual" {
		out = append(out, c)
	}
	if all.streamed && b.chunks > 0 {
		out = append(out,
			checkStamps(f.setup.Stamps, b.userStamps, b.arrivals),
			checkShare("merged chunks", b.merged, b.chunks, mergedLimit, "Give the client more cores, or quote the bounds; a server that sends in bursts looks alike."))
	}
	if b.promptKnown > 0 {
		out = append(out, checkShare("prompt lengths", int64(b.otherPrompt), int64(b.promptKnown), .01,
			"Choose the tokenizer of the model, or calibrate the prompt lengths."))
	}
	if len(b.limits) > 0 {
		out = append(out, checkOwnLimits(b.limits))
	}
	if b.doubted > 0 {
		out = append(out, checkShare("usage", int64(b.doubted), int64(p.Requests.OK), 0,
			"Find out what the server counts: these tokens cannot be, and are left out."))
	}
	if f.setup.Exact && b.outputKnown > 0 {
		out = append(out, checkShare("output lengths", int64(b.otherOutput), int64(b.outputKnown), .01,
			"Make the server ignore the end of sequence, or compare tokens, not requests."))
	}
	if known, streams := all.pool(); p.Metrics.Of(metric.ITL) != nil {
		out = append(out, checkShare("token gaps", streams.requests-known.requests, streams.requests, .01,
			"Read ICL and stall: ITL leaves out the streams whose tokens per chunk are not known."))
	}
	if w := &f.flow; w.expected > 0 {
		out = append(out, checkShare("token counts", max(w.expected, w.observed)-min(w.expected, w.observed), w.expected, .01,
			"Find out whether usage or the chunks count wrongly."))
	}
	switch {
	case !f.setup.Cold:
	case b.prompt > 0:
		out = append(out, checkShare("prefix cache", b.cached, b.prompt, .01, "Change the seed, or flush the server's cache."))
	case f.setup.Seeded && p.Requests.OK > 0:
		out = append(out, result.Check{Name: "prefix cache", Value: "not known: the server does not report cached tokens, and a run with the same seed asks the same prompts",
			Limit: "≤ 1 %", Status: flag, Advice: "Leave out --seed, or flush the server's cache before a seed is used again."})
	}
	if b.hidden > 0 {
		out = append(out, checkShare("hidden reasoning", int64(b.hidden), int64(due), 0, "Read TTFT as the time to the first visible token."))
	}
	if len(p.Classes) > 1 {
		out = append(out, checkMix(p.Classes))
	}
	out = append(out, f.conditions(all, p)...)
	blame(out)
	if f.setup.Gone != nil {
		for i := range out { // what they advise was not the cause
			if slices.Contains([]string{"resets", "achieved rate"}, out[i].Name) {
				out[i].Advice = "The server went away."
			}
		}
	}
	return out
}

// status is what a value is worth against a limit for flags and one for
// failures.
func status(x, flagAbove, failAbove float64) string {
	switch {
	case x > failAbove:
		return bad
	case x > flagAbove:
		return flag
	}
	return pass
}

// checkShare flags a share above the limit.
func checkShare(name string, n, of int64, limit float64, advice string) result.Check {
	x := 0.
	if of > 0 {
		x = float64(n) / float64(of)
	}
	return result.Check{Name: name, Value: fmt.Sprintf("%.3g %% (%d of %d)", 100*x, n, of),
		Limit: fmt.Sprintf("≤ %g %%", 100*limit), Status: status(x, limit, math.Inf(1)), Advice: advice}
}

// checkCount allows none.
func checkCount(name string, n int, what, otherwise, advice string) result.Check {
	c := result.Check{Name: name, Value: fmt.Sprintf("%d %s", n, what), Limit: "none", Status: pass, Advice: advice}
	if n > 0 {
		c.Status = otherwise
	}
	return c
}

// checkOwnLimits allows no request to fail for want of something that this
// client or its machine ought to have: it says nothing of the server.
func checkOwnLimits(failed map[string]int) result.Check {
	n := 0
	advice := "Use a larger client, or several."
	for _, of := range []struct{ class, advice string }{
		{record.ErrOwnMemory, "Ask for shorter answers, or use a client with more memory."},
		{record.ErrOwnPorts, "Use more clients, or a server that keeps connections alive."},
		{record.ErrOwnFiles, "Raise the limit of open files (ulimit -n), or lower the load of this client."},
	} {
		if failed[of.class] > 0 {
			n += failed[of.class]
			advice = of.advice
		}
	}
	return checkCount("client limits", n, "requests", bad, advice)
}

// checkRecording allows no record to be lost: how many were, nobody can tell.
func checkRecording(errors int) result.Check {
	c := result.Check{Name: "recording", Value: "no record lost", Limit: "none lost", Status: pass, Advice: "Free disk space and measure again."}
	if errors > 0 {
		c.Value, c.Status = "records lost", bad
	}
	return c
}

// checkAccounting holds the requests against each other and the schedule.
func checkAccounting(r result.Requests, planned, duplicates int) result.Check {
	sum := r.OK + r.Failed + r.Cut + r.Unsent
	c := result.Check{Name: "accounting", Limit: "due = ok + failed + cut + unsent", Status: pass,
		Value: fmt.Sprintf("%d = %d + %d + %d + %d", r.Due, r.OK, r.Failed, r.Cut, r.Unsent), Advice: "Report this as a bug of Pitot."}
	if planned > 0 && planned != r.Due {
		c.Value += fmt.Sprintf(", %d planned", planned)
	}
	if duplicates > 0 {
		c.Value += fmt.Sprintf(", %d told twice", duplicates)
	}
	if sum != r.Due || planned > 0 && planned != r.Due || duplicates > 0 {
		c.Status = bad
	}
	return c
}

// headline is the metric that a point is first judged by: TTFT, or E2E when
// nothing is streamed.
func (c *part) headline() metric.Name {
	if c.streamed {
		return metric.TTFT
	}
	return metric.E2E
}

// checkLag asks how far the instrument's own delay moves the headline: with and
// without each request's lag.
func checkLag(c *part) result.Check {
	take := c.taken(c.headline())
	with := c.collect(inMS, take)
	without := c.collect(inMS, func(q *Request) (float64, State) {
		x, st := take(q)
		if lag, ok := q.span(q.ready, q.sent); ok == Known && st == Known {
			x -= float64(lag)
		}
		return x, st
	})
	lag := c.collect(inMS, func(q *Request) (float64, State) { return q.span(q.ready, q.sent) })
	out := result.Check{Name: "send lag", Limit: "shifts p50 and p99 by ≤ 1 ms or 2 %", Status: pass,
		Advice: "Lower the load of this client, or use more clients."}
	if lag.n() == 0 || with.n() == 0 {
		out.Value = "nothing sent"
		return out
	}
	var worst float64
	var judged, open []string
	largest := lag.values.at(lag.n())
	for _, p := range []float64{.5, .99} {
		a, over := with.percentile(p)
		b, censored := without.percentile(p)
		if over || censored {
			// All that is known is that no percentile shifts by more than the
			// largest lag.
			if open = append(open, fmt.Sprintf("p%g", 100*p)); largest > max(inMS, .02*min(a, b)) && out.Status == pass {
				out.Status = flag
			}
			continue
		}
		judged = append(judged, fmt.Sprintf("p%g", 100*p))
		shift := math.Abs(a - b)
		worst = max(worst, shift)
		switch {
		case shift > .1*a && shift > 2*inMS:
			out.Status, out.Limit = bad, "invalid from a shift of 10 % and 2 ms on"
		case shift > max(inMS, .02*a) && out.Status == pass:
			out.Status = flag
		}
	}
	p99, _ := lag.percentile(.99)
	out.Value = fmt.Sprintf("p99 %.3g ms", p99/inMS)
	switch {
	case len(open) == 0:
		out.Value += fmt.Sprintf(", shift %.3g ms", worst/inMS)
	case len(judged) > 0:
		out.Value += fmt.Sprintf(", shift of %s %.3g ms", strings.Join(judged, " and "), worst/inMS)
	}
	if len(open) > 0 {
		out.Value += fmt.Sprintf("; that of %s cannot be judged, it falls among requests that were not followed to their end: at most %.3g ms",
			strings.Join(open, " and "), largest/inMS)
	}
	return out
}

func checkCPU(mean float64) result.Check {
	return result.Check{Name: "client cpu", Value: fmt.Sprintf("%.0f %% of the cores", 100*mean), Limit: "≤ 60 %",
		Status: status(mean, .6, .9), Advice: "Use a larger client, or several."}
}

func checkStamps(source string, user, arrivals int64) result.Check {
	c := result.Check{Name: "stamps", Value: source, Limit: "kernel", Status: pass, Advice: "Measure from Linux, or keep the client idle."}
	switch {
	case source == "virtual":
		c.Limit = "virtual"
	case source != "kernel":
		c.Status = flag
	case float64(user) > .01*float64(arrivals):
		c.Value = fmt.Sprintf("kernel, but %d of %d reads had none", user, arrivals)
		c.Status = flag
	}
	return c
}

// checkWindow compares the window with the slowest answer: a window that is
// not much longer than its requests shows how they begin and little of how
// they are served beside each other.
func checkWindow(c *part, seconds float64) result.Check {
	s := c.collect(inMS, c.taken(metric.E2E))
	var slowest float64
	if n := s.n(); n > 0 {
		slowest, _ = s.percentile(1)
		slowest /= 1e9
	}
	out := result.Check{Name: "window", Value: fmt.Sprintf("%.3g s, slowest request %.3g s", seconds, slowest),
		Limit: "≥ 2 × the slowest request", Status: pass, Advice: "Measure longer with --duration."}
	if seconds < 2*slowest {
		out.Status = flag
	}
	if seconds < shortest { // no --duration makes such a window
		out.Status, out.Advice = flag, "Ask for more --requests than --concurrency, or leave the warm-up on."
	}
	return out
}

// checkSupport asks whether there are samples enough for the headline
// percentile to be given at all. Where they are few the value itself is
// marked, which is no fault of the run.
func checkSupport(c *part) result.Check {
	m := c.headline()
	s := c.collect(inMS, c.taken(m))
	few, _ := stat.Support(.99)
	out := result.Check{Name: "samples", Value: fmt.Sprintf("%d for p99 %s", s.n(), m), Limit: fmt.Sprintf("≥ %d", few),
		Status: pass, Advice: "Measure longer, or quote a lower percentile."}
	if s.n() < few {
		out.Status = flag
	}
	return out
}

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
	out := result.Check{Name: "mix", Value: "one kind of request", Limit: "medians within a factor of 3", Status: pass,
		Advice: "Read the classes, not the total."}
	if high > 0 && low > 0 && !math.IsInf(low, 1) {
		out.Value = fmt.Sprintf("medians of the classes differ by a factor of %.3g", high/low)
		if high > 3*low {
			out.Status = flag
		}
	}
	return out
}
