package validity

import (
	"encoding/binary"
	"iter"
	"math"
	"slices"
	"time"

	"pitot/internal/results/result"
	"pitot/internal/results/spill"
	"pitot/internal/stats"
)

// Checks of the conditions under which a point was measured: whether the load
// was the one that was asked for, and whether it was in a steady state.

// judgeable is the least length of a window, in residence times, at which its numbers are about the
// load and not about single requests.
const judgeable = 15

// checkConditions are the checks that apply.
func (e *Evidence) checkConditions() (out []result.Check) {
	judge := func(c result.Check, applies bool) {
		if applies {
			out = append(out, c)
		}
	}
	s, p := e.pointConditions(), e.Point
	if w := s.Settling; w != nil && p.Stability != stats.Unstable { // a queue that grows never settles
		out = append(out, checkWarmup(w))
	}
	if !s.Ended() || s.Seconds() < Shortest {
		return out
	}
	judge(e.checkResidences(p.Seconds.Residence))
	judge(e.checkLittle())
	judge(e.checkPauses())
	judge(e.checkCap())
	judge(e.checkLockStep())
	judge(checkStability(p), p.Stability != stats.Undecided)
	judge(e.checkConnects())
	judge(e.checkRestarts())
	if s.Open() {
		judge(e.checkArrivals())
		judge(e.checkOffered())
		if !s.Load.HasVaryingRate() { // what is in flight follows the rate
			judge(e.checkAchieved())
		}
	}
	return out
}

// checkWarmup asks whether the load had settled when the window began.
func checkWarmup(w *Settling) result.Check {
	seconds := func(ns int64) float64 { return float64(ns) / 1e9 }
	c := result.NewCheck(result.CheckWarmup, seconds(w.Settled), seconds(w.Begin)).WithDetail(map[string]float64{"planned": seconds(w.Planned)})
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

func (e *Evidence) checkResidences(light float64) (c result.Check, applies bool) {
	if light <= 0 {
		return c, false
	}
	n := e.pointConditions().Seconds() / light
	longer := e.pointConditions().longerWindow(judgeable * light)
	c = result.NewCheck(result.CheckResidences, n, judgeable).WithDetail(map[string]float64{"one": light, "ask_seconds": longer.Seconds})
	if longer.Requests > 0 {
		c.Detail = map[string]float64{"one": light, "ask_requests": longer.Requests}
	}
	if n < judgeable {
		c.Status = result.Flag
	}
	return c, true
}

// checkStability flags a load that the server could not carry. That is no
// fault of the instrument.
func checkStability(p *result.Point) result.Check {
	c := result.NewCheck(result.CheckStability, 0, stats.MaxDeficit)
	if p.Growth == nil {
		c.Value, c.Case = nil, result.CaseClosed
	} else if *c.Value = max(0, p.Growth.Deficit); *c.Value > stats.MaxDeficit && p.Stability == stats.Stable {
		c.Case = result.CaseChance
	}
	if p.Stability == stats.Unstable {
		c.Status = result.Flag
	}
	return c
}

// checkArrivals holds the times at which requests were sent against those at
// which they were due: the greatest distance of the two distributions, which
// is the largest share of requests that were late at once. A millisecond is
// not late. How far the gaps between the sent are from those of a Poisson process is
// given with it.
func (e *Evidence) checkArrivals() (c result.Check, applies bool) {
	sent, late := spill.NewSorted(e.Store, stampCodec()), spill.NewSorted(e.Store, stampCodec())
	for q := range e.Cohort {
		if q.Sent < 0 {
			continue
		}
		at := q.firstSent()
		sent.Add(&at)
		if at > q.Due+int64(onTime) {
			late.Add(&at)
		}
	}
	n := sent.Len()
	if n == 0 {
		return c, false
	}
	most := e.mostLate(late)
	distance := float64(most) / float64(n)
	c = result.NewCheck(result.CheckArrivals, distance, .02)
	if most > 1 && distance >= .02 {
		c.Status = result.Flag
	}
	if e.pointConditions().Load.Arrival == "poisson" && n > 1 {
		gaps := spill.NewSorted(e.Store, stampCodec())
		var first, last int64
		i := int64(0)
		for at := range sent.All() {
			if i++; i == 1 {
				first = *at
			} else {
				gap := *at - last
				gaps.Add(&gap)
			}
			last = *at
		}
		sorted := func(yield func(float64) bool) {
			for gap := range gaps.All() {
				if !yield(float64(*gap)) {
					return
				}
			}
		}
		if _, a2, ok := stats.AndersonDarling(sorted, n-1, float64(last-first)/float64(n-1)); ok {
			c.Detail = map[string]float64{"a2": a2}
		}
	}
	return c, true
}

// mostLate returns the most requests that were late at once, of those that were sent late. sent has
// the times at which these were sent, in order.
func (e *Evidence) mostLate(sent *spill.Sorted[int64]) (most int64) {
	next, stop := iter.Pull(sent.All())
	defer stop()
	at, more := next()
	late := int64(0)
	for q := range e.Cohort { // as they were due
		from := q.Due + int64(onTime)
		if q.firstSent() <= from {
			continue
		}
		for more && *at <= from {
			late--
			at, more = next()
		}
		late++
		most = max(most, late)
	}
	return most
}

// stampCodec returns the codec that sorts stamps.
func stampCodec() spill.Codec[int64] {
	return spill.Codec[int64]{
		Key:    func(t *int64) (int64, int64) { return *t, 0 },
		Append: func(to []byte, t *int64) []byte { return binary.AppendVarint(to, *t) },
		Decode: func(from []byte, t *int64) (n int) {
			*t, n = binary.Varint(from)
			return n
		},
		Most: binary.MaxVarintLen64,
	}
}

// checkCap flags a cap on what is in flight that held requests back: the load
// was then not the one that was asked for.
func (e *Evidence) checkCap() (c result.Check, applies bool) {
	load := e.pointConditions().Load
	if load.RespectLimits {
		return checkShare(result.CheckRateLimits, e.Queue.held, e.Queue.members, 0), true
	}
	if load.MaxInFlight == nil {
		return c, false
	}
	return checkShare(result.CheckMaxInFlight, e.Queue.held, e.Queue.members, .01), true
}

// checkLittle holds what was in flight against arrivals × E2E (Little,
// Operations Research 9, 1961). They are equal but for what was in flight at
// the edges of the window; what else is missing are answers that were left open
// after their end, and records.
func (e *Evidence) checkLittle() (c result.Check, applies bool) {
	s := e.pointConditions()
	v := e.Queue
	total, before, after := v.window.totalTime(e.Until), v.before.totalTime(e.Until), v.after.totalTime(e.Until)
	stay, n := e.Queue.stay.totalTime(e.Until), float64(e.Queue.members)
	if n == 0 || total == 0 {
		return c, false
	}
	span := float64(s.T1 - s.T0)
	edge := (before - after) / span
	has, want := total/span, stay/span+edge
	c = result.NewCheck(result.CheckLittle, has, want).WithDetail(map[string]float64{"by_rate": want - edge, "edges": edge})
	if d := math.Abs(has - want); d > .02*has && d > n*onTime/span {
		c.Status = result.Flag
	}
	return c, true
}

// checkOffered flags a window in which far more or fewer requests came due than
// its rate brings: 5 % and 3.5 standard deviations of a count of its arrival process, which
// chance gives once in 2,000 windows. A warm-up that ends where it was quiet does
// too.
func (e *Evidence) checkOffered() (c result.Check, applies bool) {
	l := &e.pointConditions().Load
	dispersion := 1.0
	if x := l.Expected; x != nil {
		for _, d := range x.Dispersion {
			dispersion = max(dispersion, d)
		}
		if x.Varies || len(x.Dispersion) == 0 || !e.pointConditions().FewBursts().IsNone() {
			return c, false
		}
	}
	if l.Rate == nil || l.Turns != nil || l.Arrival != "poisson" && l.Expected == nil || e.pointConditions().Requests > 0 {
		return c, false
	}
	due, asked := float64(e.Queue.members), *l.Rate*e.pointConditions().Seconds()
	c = result.NewCheck(result.CheckOffered, due/e.pointConditions().Seconds(), *l.Rate)
	if d := math.Abs(due - asked); d > .05*asked && d > 3.5*math.Sqrt(dispersion*asked) {
		c.Status = result.Flag
	}
	return c, true
}

// checkAchieved flags a load of which less ended in the window than came due, or
// more, by more than chance between time blocks.
func (e *Evidence) checkAchieved() (c result.Check, applies bool) {
	left := make([]float64, Blocks) // came due and did not end
	var due, ended float64
	for i := range left {
		left[i] = float64(e.Queue.due[i] - e.Queue.over[i])
		due, ended = due+float64(e.Queue.due[i]), ended+float64(e.Queue.over[i])
	}
	if due == 0 {
		return c, false
	}
	c = result.NewCheck(result.CheckAchieved, ended/e.pointConditions().Seconds(), due/e.pointConditions().Seconds())
	m, ok := stats.BatchMeans(left, Batches, Level)
	// What is in flight at the edges walks at random: see [stats.JudgeBacklog].
	walk := 2 * math.Sqrt(2*due)
	switch {
	case math.Abs(ended-due) <= .02*due:
	case ok && m.Lo <= 0 && m.Hi >= 0 && math.Abs(ended-due) <= walk:
		c.Case = result.CaseChance
	case ended < due:
		c.Status = result.Flag
		if off := math.Abs(ended + float64(e.Queue.cut) - due); off <= .02*due || off <= walk {
			c.Case = result.CaseCut
		}
	default:
		c.Status, c.Case = result.Flag, result.CaseBacklog
	}
	return c, true
}

// checkPauses flags seconds in which the collector stopped this client for
// long.
func (e *Evidence) checkPauses() (c result.Check, applies bool) {
	c = result.NewCheck(result.CheckPauses, 1e3*e.Probe.pause, 10)
	c.Status = statusFor(e.Probe.pause, .01, math.Inf(1))
	return c, e.Probe.pauses
}

// checkConnects flags a load whose requests had to wait for connections: TTFT
// then holds what it takes to connect, and a server under such a load works on
// handshakes as well.
func (e *Evidence) checkConnects() (c result.Check, applies bool) {
	if e.pointConditions().Stamps == "virtual" {
		return c, false
	}
	return checkShare(result.CheckConnects, e.Queue.waited, e.Queue.members, .01), e.Queue.members > 0
}

const (
	// atOnce is within how long connections break that one event has broken.
	atOnce = int64(100 * time.Millisecond)
	// leastBroken is the number from which on requests break together by one event. Fewer may do so
	// by coincidence.
	leastBroken = 3
)

// checkRestarts flags a server that was restarted while it was measured:
// its start time says so, or every connection broke at one moment. What was
// measured is then of two servers, and the second began cold.
func (e *Evidence) checkRestarts() (c result.Check, applies bool) {
	if e.pointConditions().Stamps == "virtual" {
		return c, false
	}
	if e.pointConditions().Gone != nil {
		c = result.NewCheck(result.CheckGone, float64(*e.pointConditions().Gone)/1e9, 0)
		c.Status, c.Limit = result.Flag, nil
		return c, true
	}
	c = result.NewCheck(result.CheckRestarts, 0, 0)
	if starts := e.Probe.starts; len(starts) > 0 && slices.Max(starts)-slices.Min(starts) > 1 {
		c.Status, c.Case, c.Value = result.Flag, result.CaseProcess, nil
	} else if at, n := e.brokeAtOnce(); n > 0 {
		*c.Value, c.Status, c.Case = float64(n), result.Flag, result.CaseConnections
		c.Detail = map[string]float64{"at": float64(at-e.pointConditions().T0) / 1e9}
	}
	return c, true
}

// brokeAtOnce finds the moment at which most connections broke, and how many:
// 0 if they were few, or if any request that was under way lived on.
func (e *Evidence) brokeAtOnce() (at int64, n int) {
	var end int64
	next, stop := iter.Pull(e.Probe.broken.All())
	defer stop()
	first, _ := next() // the first of those that broke with the one that is looked at
	count := 0
	for t := range e.Probe.broken.All() {
		for count++; *t-*first > atOnce; count-- {
			first, _ = next()
		}
		if count > n {
			at, end, n = *first, *t, count
		}
	}
	if n < leastBroken {
		return 0, 0
	}
	for q := range e.Cohort {
		if q.Sent >= 0 && q.Sent < at && (q.Done < 0 || q.Done > end) {
			return 0, 0
		}
	}
	return at, n
}
