package measure

import (
	"fmt"
	"math"
	"slices"
	"time"

	"pitot/internal/data/record"
	"pitot/internal/data/result"
	"pitot/internal/stat"
)

// Checks of the conditions under which a point was measured: whether the load
// was the one that was asked for, and whether it was in a steady state.

// onTime is by how much an event may be late without being called so.
const onTime = float64(time.Millisecond)

// judgeable is how many residence times a window must have for its numbers to
// be about the load and not about single requests.
const judgeable = 15

// conditions are the checks that apply.
func (f *Fold) conditions(all *part, p *result.Point) (out []result.Check) {
	add := func(c result.Check, applies bool) {
		if applies {
			out = append(out, c)
		}
	}
	s := &f.setup
	if w := s.Settling; w != nil && p.Stability != string(stat.Unstable) { // a queue that grows never settles
		out = append(out, checkWarmup(w))
	}
	if !s.ended() || s.seconds() < shortest {
		return out
	}
	add(f.checkResidences(p.Seconds.Residence))
	add(f.checkLittle(all))
	add(f.checkPauses())
	add(f.checkEarlyStops(p.Requests.OK))
	add(f.checkCap(all))
	add(f.checkLockStep(all))
	add(checkStability(p), p.Stability != undecided)
	add(f.checkConnects(all))
	add(f.checkRestarts(all))
	if s.open() {
		add(f.checkArrivals(all))
		add(f.checkOffered())
		add(f.checkAchieved())
	}
	return out
}

// checkWarmup says where the window begins and why.
func checkWarmup(w *Settling) result.Check {
	at := func(ns int64) string { return fmt.Sprintf("%.3g s", float64(ns)/1e9) }
	c := result.Check{Name: "warm-up", Status: pass, Limit: "steady before the window begins",
		Value: "settled after " + at(w.Settled), Advice: "Measure longer with --duration, or look at what the server does meanwhile."}
	switch {
	case w.Why != "":
		c.Value, c.Status = "not settled: "+w.Why, flag
	case w.Begin > w.Planned:
		c.Value += fmt.Sprintf(", the window begins at %s instead of %s", at(w.Begin), at(w.Planned))
	case w.Begin < w.Settled:
		c.Value += fmt.Sprintf(", but the window begins at %s", at(w.Begin))
		c.Status = flag
	default:
		c.Value += ", the window begins at " + at(w.Begin)
	}
	return c
}

func (f *Fold) checkResidences(light float64) (c result.Check, applies bool) {
	if light <= 0 {
		return c, false
	}
	n := f.setup.seconds() / light
	c = result.Check{Name: "residence times", Value: fmt.Sprintf("window of %.3g, one takes %.3g s", n, light), Limit: fmt.Sprintf("≥ %d", judgeable),
		Status: pass, Advice: "Measure longer: " + f.ask(judgeable*light) + "."}
	if n < judgeable {
		c.Status = flag
	}
	return c, true
}

// checkStability flags a load that the server could not carry. That is no
// fault of the instrument.
func checkStability(p *result.Point) result.Check {
	c := result.Check{Name: "stability", Value: "the users bound what is in flight", Limit: fmt.Sprintf("≤ %g %%, or chance", 100*stat.MaxDeficit),
		Status: pass, Advice: "Lower the rate: latencies under this one depend on how long it is kept up."}
	if p.Growth != nil {
		c.Value = fmt.Sprintf("%.2g %% of the arrivals left over", 100*max(0, p.Growth.Deficit))
		if p.Growth.Deficit > stat.MaxDeficit && p.Stability == string(stat.Stable) {
			c.Value += ": no more than chance leaves"
		}
	}
	if p.Stability == string(stat.Unstable) {
		c.Status = flag
	}
	return c
}

// checkArrivals holds the times at which requests were sent against those at
// which they were due: the greatest distance of the two distributions, which
// is the largest share of requests that were late at once. A millisecond is
// not late. How far the gaps between the sent are from a Poisson process's is
// told beside it.
func (f *Fold) checkArrivals(all *part) (c result.Check, applies bool) {
	type event struct {
		at   int64
		step int
	}
	var events []event
	var sent []int64
	for _, q := range all.requests {
		if q.sent < 0 {
			continue
		}
		sent = append(sent, q.sent)
		if late := q.due + int64(onTime); q.sent > late {
			events = append(events, event{late, 1}, event{q.sent, -1})
		}
	}
	if len(sent) == 0 {
		return c, false
	}
	slices.SortFunc(events, func(a, b event) int {
		if a.at != b.at {
			return sign(a.at - b.at)
		}
		return a.step - b.step
	})
	late, most := 0, 0
	for _, e := range events {
		late += e.step
		most = max(most, late)
	}
	distance := float64(most) / float64(len(sent))
	c = result.Check{Name: "arrivals", Value: fmt.Sprintf("distance of sent from due %.2g %%", 100*distance), Limit: "< 2 %",
		Status: pass, Advice: "Lower the load of this client, or raise --max-in-flight."}
	if most > 1 && distance >= .02 {
		c.Status = flag
	}
	if f.setup.Load.Arrival == "poisson" {
		slices.Sort(sent)
		gaps := make([]float64, len(sent)-1)
		for i := range gaps {
			gaps[i] = float64(sent[i+1] - sent[i])
		}
		if _, a2, ok := stat.AndersonDarling(gaps); ok {
			c.Value += fmt.Sprintf(", A² of the gaps %.2g", a2)
		}
	}
	return c, true
}

// checkCap flags a cap on what is in flight that held requests back: the load
// was then not the one that was asked for.
func (f *Fold) checkCap(all *part) (c result.Check, applies bool) {
	limit := f.setup.Load.MaxInFlight
	if limit == nil {
		return c, false
	}
	var held int64
	for _, q := range all.requests {
		if q.eligible < 0 || float64(q.eligible-q.due) > onTime {
			held++
		}
	}
	c = checkShare("max in flight", held, int64(len(all.requests)), .01, "Raise --max-in-flight, or read the latencies as those of a queue before the server.")
	c.Limit += " held back"
	return c, true
}

// checkEarlyStops looks for answers that the model ended before the length
// that was asked for.
func (f *Fold) checkEarlyStops(ok int) (result.Check, bool) {
	return checkShare("early stops", int64(f.probe.early), int64(ok), .01,
		"Make the server ignore the end of sequence, or compare tokens, not requests."), f.setup.Exact && ok > 0
}

// checkLittle holds what was in flight against arrivals × E2E (Little,
// Operations Research 9, 1961). They are equal but for what was in flight at
// the edges of the window; what else is missing are answers that were left open
// after their end, and records.
func (f *Fold) checkLittle(all *part) (c result.Check, applies bool) {
	s := &f.setup
	v := &f.visits
	total, before, after := v.window.sum(f.end), v.before.sum(f.end), v.after.sum(f.end)
	var stay, n float64
	for _, q := range all.requests {
		if end := q.end(); q.outcome == record.OK && end >= 0 {
			stay += float64(end - q.due)
		} else {
			stay += q.followed(q.due, all.until)
		}
		n++
	}
	if n == 0 || total == 0 {
		return c, false
	}
	span := float64(s.T1 - s.T0)
	edge := (before - after) / span
	has, want := total/span, stay/span+edge
	c = result.Check{Name: "Little's law", Limit: "within 2 % or 1 ms a request", Status: pass,
		Value:  fmt.Sprintf("%.4g in flight, %.4g by rate × E2E and %+.4g at the edges", has, want-edge, edge),
		Advice: "Connections are held longer than answers take: look for what the server sends after the last token."}
	if d := math.Abs(has - want); d > .02*has && d > n*onTime/span {
		c.Status = flag
	}
	return c, true
}

// checkOffered flags a window in which far more or fewer requests came due than
// its rate brings: 5 % and 3.5 standard deviations of a Poisson count, which
// chance gives once in 2,000 windows. A warm-up that ends where it was quiet does
// too.
func (f *Fold) checkOffered() (c result.Check, applies bool) {
	l := &f.setup.Load
	if l.Rate == nil || l.Arrival != "poisson" || f.setup.Requests > 0 {
		return c, false
	}
	due, asked := float64(len(f.cohort)), *l.Rate*f.setup.seconds()
	c = result.Check{Name: "offered rate", Value: fmt.Sprintf("%.4g of %.4g requests a second came due", due/f.setup.seconds(), *l.Rate),
		Limit: "within 5 %, or chance", Status: pass, Advice: "Measure longer: this window is of another load."}
	if d := math.Abs(due - asked); d > .05*asked && d > 3.5*math.Sqrt(asked) {
		c.Status = flag
	}
	return c, true
}

// checkAchieved flags a load of which less ended in the window than came due, or
// more, by more than chance between time blocks.
func (f *Fold) checkAchieved() (c result.Check, applies bool) {
	left := make([]float64, rateBlocks) // came due and did not end
	var due, ended float64
	for i := range left {
		left[i] = float64(f.visits.due[i] - f.visits.over[i])
		due, ended = due+float64(f.visits.due[i]), ended+float64(f.visits.over[i])
	}
	if due == 0 {
		return c, false
	}
	c = result.Check{Name: "achieved rate", Value: fmt.Sprintf("%.4g of %.4g requests a second ended", ended/f.setup.seconds(), due/f.setup.seconds()),
		Limit: "within 2 %, or chance", Status: pass, Advice: "Lower the rate: the server does not keep up with it."}
	m, ok := stat.BatchMeans(left, batches, level)
	// What is in flight at the edges walks at random: see [stat.JudgeBacklog].
	walk := 2 * math.Sqrt(2*due)
	switch {
	case math.Abs(ended-due) <= .02*due:
	case ok && m.Lo <= 0 && m.Hi >= 0 && math.Abs(ended-due) <= walk:
		c.Value += ": as far apart as chance brings them"
	case ended < due:
		c.Status = flag
	default:
		c.Status, c.Advice = flag, "Measure longer: what had piled up before ended in the window too, and its throughput is not this load's."
	}
	return c, true
}

// checkPauses flags seconds in which the collector stopped this client for
// long.
func (f *Fold) checkPauses() (c result.Check, applies bool) {
	c = result.Check{Name: "gc pauses", Value: fmt.Sprintf("at most %.2g ms in a second", 1e3*f.probe.pause), Limit: "≤ 10 ms",
		Status: status(f.probe.pause, .01, math.Inf(1)), Advice: "Give the client more memory, or measure with fewer requests at once."}
	return c, f.probe.pauses
}

// checkConnects flags a load whose requests had to wait for connections: TTFT
// then holds what it takes to connect, and a server under such a load works on
// handshakes as well.
func (f *Fold) checkConnects(all *part) (c result.Check, applies bool) {
	if f.setup.Stamps == "virtual" {
		return c, false
	}
	var waited int64
	for _, q := range all.requests {
		if q.eligible >= 0 && float64(q.ready-q.eligible) > onTime {
			waited++
		}
	}
	c = checkShare("connects", waited, int64(len(all.requests)), .01, "Raise the keep-alive timeout of the server, or of the proxy before it.")
	c.Limit += " waited for a connection"
	return c, len(all.requests) > 0
}

const (
	// atOnce is within how long connections break that one event has broken.
	atOnce = int64(100 * time.Millisecond)
	// leastBroken is how many of them are more than a chance.
	leastBroken = 3
)

// checkRestarts flags a server that was started anew while it was measured:
// its process says so, or every connection broke at one moment. What was
// measured is then of two servers, and the second began cold.
func (f *Fold) checkRestarts(all *part) (c result.Check, applies bool) {
	if f.setup.Stamps == "virtual" {
		return c, false
	}
	c = result.Check{Name: "server restarts", Value: "none seen", Limit: "none", Status: pass,
		Advice: "Look at the server's log, and measure again: these are the numbers of two servers, the second of which began cold."}
	if f.setup.Gone != nil {
		return result.Check{Name: "server went away", Value: fmt.Sprintf("%.3g s after the load began", float64(*f.setup.Gone)/1e9), Limit: "none", Status: flag,
			Advice: "Look at the server's log, start it again and measure anew: from then on nothing was served."}, true
	}
	if starts := f.probe.starts; len(starts) > 0 && slices.Max(starts)-slices.Min(starts) > 1 {
		c.Value, c.Status = "its process began anew", flag
	} else if at, n := f.brokeAtOnce(all); n > 0 {
		c.Value, c.Status = fmt.Sprintf("all %d connections in use broke at once, %.3g s into the window", n, float64(at-f.setup.T0)/1e9), flag
	}
	return c, true
}

// brokeAtOnce finds the moment at which most connections broke, and how many:
// 0 if they were few, or if any request that was under way lived on.
func (f *Fold) brokeAtOnce(all *part) (at int64, n int) {
	broken := slices.Clone(f.probe.broken)
	slices.Sort(broken)
	from := 0
	for i, first := 0, 0; i < len(broken); i++ {
		for broken[i]-broken[first] > atOnce {
			first++
		}
		if i-first+1 > n {
			from, n = first, i-first+1
		}
	}
	if n < leastBroken {
		return 0, 0
	}
	at, end := broken[from], broken[from+n-1]
	for _, q := range all.requests {
		if q.sent >= 0 && q.sent < at && (q.done < 0 || q.done > end) {
			return 0, 0
		}
	}
	return at, n
}
