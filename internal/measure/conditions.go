package measure

import (
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
	if w := s.Settling; w != nil && p.Stability != stat.Unstable { // a queue that grows never settles
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
	add(checkStability(p), p.Stability != stat.Undecided)
	add(f.checkConnects(all))
	add(f.checkRestarts(all))
	if s.open() {
		add(f.checkArrivals(all))
		add(f.checkOffered())
		add(f.checkAchieved())
	}
	return out
}

// checkWarmup asks whether the load had settled when the window began.
func checkWarmup(w *Settling) result.Check {
	at := func(ns int64) float64 { return float64(ns) / 1e9 }
	c := result.NewCheck(result.CheckWarmup, at(w.Settled), at(w.Begin)).With(map[string]float64{"planned": at(w.Planned)})
	switch {
	case w.Drift != [2]float64{}:
		c.Value, c.Status, c.Case = nil, result.Flag, result.CaseDrift
		c.Detail["first_half"], c.Detail["second_half"] = w.Drift[0], w.Drift[1]
	case w.Why != "":
		c.Value, c.Status, c.Case = nil, result.Flag, result.CaseLate
	case w.Begin <= w.Planned && w.Begin < w.Settled:
		c.Status = result.Flag
	}
	return c
}

func (f *Fold) checkResidences(light float64) (c result.Check, applies bool) {
	if light <= 0 {
		return c, false
	}
	n := f.setup.seconds() / light
	seconds, requests := f.needs(judgeable * light)
	c = result.NewCheck(result.CheckResidences, n, judgeable).With(map[string]float64{"one": light, "ask_seconds": seconds})
	if requests > 0 {
		c.Detail = map[string]float64{"one": light, "ask_requests": requests}
	}
	if n < judgeable {
		c.Status = result.Flag
	}
	return c, true
}

// checkStability flags a load that the server could not carry. That is no
// fault of the instrument.
func checkStability(p *result.Point) result.Check {
	c := result.NewCheck(result.CheckStability, 0, stat.MaxDeficit)
	if p.Growth == nil {
		c.Value, c.Case = nil, result.CaseClosed
	} else if *c.Value = max(0, p.Growth.Deficit); *c.Value > stat.MaxDeficit && p.Stability == stat.Stable {
		c.Case = result.CaseChance
	}
	if p.Stability == stat.Unstable {
		c.Status = result.Flag
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
	c = result.NewCheck(result.CheckArrivals, distance, .02)
	if most > 1 && distance >= .02 {
		c.Status = result.Flag
	}
	if f.setup.Load.Arrival == "poisson" {
		slices.Sort(sent)
		gaps := make([]float64, len(sent)-1)
		for i := range gaps {
			gaps[i] = float64(sent[i+1] - sent[i])
		}
		if _, a2, ok := stat.AndersonDarling(gaps); ok {
			c.Detail = map[string]float64{"a2": a2}
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
	return checkShare(result.CheckMaxInFlight, held, int64(len(all.requests)), .01), true
}

// checkEarlyStops looks for answers that the model ended before the length
// that was asked for.
func (f *Fold) checkEarlyStops(ok int) (result.Check, bool) {
	return checkShare(result.CheckEarlyStops, int64(f.probe.early), int64(ok), .01), f.setup.Exact && ok > 0
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
	c = result.NewCheck(result.CheckLittle, has, want).With(map[string]float64{"by_rate": want - edge, "edges": edge})
	if d := math.Abs(has - want); d > .02*has && d > n*onTime/span {
		c.Status = result.Flag
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
	c = result.NewCheck(result.CheckOffered, due/f.setup.seconds(), *l.Rate)
	if d := math.Abs(due - asked); d > .05*asked && d > 3.5*math.Sqrt(asked) {
		c.Status = result.Flag
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
	c = result.NewCheck(result.CheckAchieved, ended/f.setup.seconds(), due/f.setup.seconds())
	m, ok := stat.BatchMeans(left, batches, level)
	// What is in flight at the edges walks at random: see [stat.JudgeBacklog].
	walk := 2 * math.Sqrt(2*due)
	switch {
	case math.Abs(ended-due) <= .02*due:
	case ok && m.Lo <= 0 && m.Hi >= 0 && math.Abs(ended-due) <= walk:
		c.Case = result.CaseChance
	case ended < due:
		c.Status = result.Flag
	default:
		c.Status, c.Case = result.Flag, result.CaseBacklog
	}
	return c, true
}

// checkPauses flags seconds in which the collector stopped this client for
// long.
func (f *Fold) checkPauses() (c result.Check, applies bool) {
	c = result.NewCheck(result.CheckPauses, 1e3*f.probe.pause, 10)
	c.Status = status(f.probe.pause, .01, math.Inf(1))
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
	return checkShare(result.CheckConnects, waited, int64(len(all.requests)), .01), len(all.requests) > 0
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
	if f.setup.Gone != nil {
		c = result.NewCheck(result.CheckGone, float64(*f.setup.Gone)/1e9, 0)
		c.Status, c.Limit = result.Flag, nil
		return c, true
	}
	c = result.NewCheck(result.CheckRestarts, 0, 0)
	if starts := f.probe.starts; len(starts) > 0 && slices.Max(starts)-slices.Min(starts) > 1 {
		c.Status, c.Case, c.Value = result.Flag, result.CaseProcess, nil
	} else if at, n := f.brokeAtOnce(all); n > 0 {
		*c.Value, c.Status, c.Case = float64(n), result.Flag, result.CaseConnections
		c.Detail = map[string]float64{"at": float64(at-f.setup.T0) / 1e9}
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
