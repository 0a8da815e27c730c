package metrics

import (
	"math"
	"slices"
	"time"

	"pitot/internal/metrics/validity"
	"pitot/internal/results/metric"
	"pitot/internal/results/result"
	"pitot/internal/stats"
)

// timed is a latency of the request that was due then.
type timed struct {
	due int64
	ns  float64
	of  int // which of the requests that were looked at
}

const (
	// longWindow is from how many seconds on a window shows the time of day, and
	// longResidences how many times what a request takes alone, or a conversation lasts,
	// its levels are compared.
	longWindow, longResidences = 20 * 60, 300
	// differLevel is the probability with which a server of one level may be said to differ, by
	// each of two metrics. `go run ./bench/stat -only levels` shows the probability that results.
	differLevel = .0025
	// mostTimed is about how many requests the blocks of a long window are of: with ten
	// thousand each, more would say no more of a median and take more memory.
	mostTimed = 120_000
	// tailOf is the number of requests of a block that a p95 needs.
	tailOf = 200
)

// overTime is the course of a load that changes with time, comes in bursts or lasts for
// long; nil of one that has a steady state and was soon over.
func (f *Fold) overTime(all *part, p *result.Point) *result.OverTime {
	x := f.setup.Load.Expected
	changes := x != nil && (x.Varies || x.CycleS > 0)
	long := f.conditions.Seconds() >= longWindow && f.setup.Stage == ""
	if !changes && !long || !f.conditions.Ended() || f.conditions.Seconds() < validity.Shortest {
		return nil
	}
	o := &result.OverTime{Metric: string(metric.TTFT)}
	if long && !f.setup.Began.IsZero() {
		o.Began = f.setup.Began.Add(time.Duration(f.setup.T0)).Format(time.RFC3339)
	}
	every := 1
	if !changes {
		every = 1 + int(all.tally.dueCount())/mostTimed
	}
	if every > 1 {
		o.Every = every
	}
	take := func(of func(*Request) (float64, State)) (list []timed) {
		n := 0
		for q := range all.requests() {
			if n++; n%every != 0 {
				continue
			}
			if ns, st := of(q); st == Known || st == Longer {
				list = append(list, timed{q.due, ns, n/every - 1})
			}
		}
		return list
	}
	list := take(func(q *Request) (float64, State) {
		if !q.stream {
			return 0, Missing
		}
		return q.TTFT(Response, all.until)
	})
	if len(list) == 0 {
		o.Metric = string(metric.E2E)
		list = take(func(q *Request) (float64, State) { return q.E2E(Response, all.until) })
	}
	n := max(len(p.InFlight), 1)
	o.BlockS = f.conditions.Seconds() / float64(n)
	counts := make([]int, n)
	blockOf := func(due int64) int { return min(int(float64(due-f.setup.T0)/1e9/o.BlockS), n-1) }
	for q := range all.requests() {
		counts[blockOf(q.due)]++
	}
	inBlocks := func(list []timed, of func(timed) float64) [][]float64 {
		values := make([][]float64, n)
		for _, q := range list {
			k := blockOf(q.due)
			values[k] = append(values[k], of(q))
		}
		return values
	}
	itself := func(q timed) float64 { return q.ns }
	var tpots [][]float64
	if long {
		tpots = inBlocks(take(func(q *Request) (float64, State) { return q.TPOT(all.until) }), itself)
	}
	if long && !changes {
		tpot := take(func(q *Request) (float64, State) { return q.TPOT(all.until) })
		others := underWay(take(func(q *Request) (float64, State) { return float64(q.followedTo(all.until)), Known }))
		beside := func(q timed) float64 { return others[q.of] }
		f.compareLevels(o, p, inBlocks(take((*Request).tokenLoad), itself), []levels{
			{o.Metric, inBlocks(list, itself), inBlocks(list, beside)},
			{string(metric.TPOT), tpots, inBlocks(tpot, beside)},
		})
	}
	for k, v := range inBlocks(list, itself) {
		b := result.Block{DuePerS: float64(counts[k]) / o.BlockS}
		if k < len(p.InFlight) {
			b.InFlight = &p.InFlight[k]
		}
		b.P50, b.P90 = rankMS(v, .5), rankMS(v, .9)
		if every == 1 {
			b.Max = rankMS(v, 1)
		}
		if long {
			b.TPOT = rankMS(tpots[k], .5)
			if len(v) >= tailOf {
				b.P95 = rankMS(v, .95)
			}
		}
		o.Blocks = append(o.Blocks, b)
	}
	if changes {
		o.Reactions = rateReactions(list, x.ChangesS, f.setup.T0, f.setup.T1)
	}
	return o
}

// rankMS is an order statistic in milliseconds of nanoseconds, which it sorts; nil of none.
func rankMS(v []float64, share float64) *float64 {
	if len(v) == 0 {
		return nil
	}
	slices.Sort(v)
	x := v[max(int(math.Ceil(share*float64(len(v))))-1, 0)] / 1e6
	return &x
}

// tokenLoad returns the size of a request for the server, in tokens of both kinds.
func (q *Request) tokenLoad() (float64, State) {
	return float64(max(q.prompt, q.inputPlanned, 0) + max(q.output, 0)), Known
}

// followedTo is until when a request was in flight.
func (q *Request) followedTo(until int64) int64 {
	if q.done < 0 {
		return until
	}
	return q.done
}

// underWay returns the number of requests of a list that were in flight when each came due. ns is
// until when it was.
func underWay(list []timed) []float64 {
	done := make([]float64, len(list))
	for i, q := range list {
		done[i] = q.ns
	}
	slices.Sort(done)
	out, ended := make([]float64, len(list)), 0
	for i, q := range list {
		for ended < len(done) && done[ended] <= float64(q.due) {
			ended++
		}
		out[i] = float64(i - ended)
	}
	return out
}

// levels is a metric's values by block, and beside each how many requests were in flight
// when its own came due.
type levels struct {
	metric         string
	values, beside [][]float64
}

// compareLevels compares the levels of a long window's blocks, of which the requests that came due
// in each are in order. A wait that the requests before it explain is none of the server's
// being slower then.
func (f *Fold) compareLevels(o *result.OverTime, p *result.Point, asked [][]float64, of []levels) {
	light := p.Seconds.Residence
	lasts := max(light, f.setup.Load.SessionSeconds(light))
	x := f.setup.Load.Expected
	switch {
	case x != nil && (x.Varies || x.CycleS > 0):
		return // blocks differ with the load
	case p.Stability == stats.Unstable || f.conditions.GaveUp || f.conditions.Gone != nil:
		return // blocks differ with the queue
	case f.conditions.Seconds() < longResidences*lasts:
		o.Unknown = f.conditions.TooShort(f.conditions.Seconds()/lasts, longResidences, lasts)
		return
	}
	if p, ok := stats.LevelsDiffer(asked, nil); ok && p < differLevel {
		o.Unknown = result.Reason{Code: result.RequestsDiffer}
		return
	}
	told := false
	for _, m := range of {
		p, ok := stats.LevelsDiffer(m.values, m.beside)
		told = told || ok
		if !ok || p >= differLevel {
			continue
		}
		d := result.Differ{Metric: m.metric, P: p}
		medians := make([]float64, len(m.values))
		for k, v := range m.values {
			medians[k] = *rankMS(slices.Clone(v), .5)
			if medians[k] > medians[d.Slowest] {
				d.Slowest = k
			}
			if medians[k] < medians[d.Quickest] {
				d.Quickest = k
			}
		}
		o.Differ = append(o.Differ, d)
	}
	if !told {
		o.Unknown = result.Reason{Code: result.FewInBlocks}
	}
}

const (
	// around is the number of requests that a running median is of.
	aroundJump = 11
	// settledWithin is the distance from its level within which a median has settled.
	settledWithin = 0.2
	// driftWithin is by how much of it a level may change.
	driftWithin = 0.1
)

// rateReactions are to jumps of the rate in the window, in seconds of it. The list is by due.
func rateReactions(list []timed, changes []float64, t0, t1 int64) (out []result.Reaction) {
	edges := []int64{t0}
	for _, s := range changes {
		if at := t0 + int64(s*1e9); at > t0 && at < t1 {
			edges = append(edges, at)
		}
	}
	edges = append(edges, t1)
	between := func(from, to int64) []timed {
		a, _ := slices.BinarySearchFunc(list, from, func(q timed, t int64) int { return int(min(max(q.due-t, -1), 1)) })
		b, _ := slices.BinarySearchFunc(list, to, func(q timed, t int64) int { return int(min(max(q.due-t, -1), 1)) })
		return list[a:b]
	}
	level := func(from, to int64) *float64 {
		third := between(to-(to-from)/3, to)
		if len(third) == 0 {
			return nil
		}
		x := medianOf(third) / 1e6
		return &x
	}
	for i := 1; i < len(edges)-1; i++ {
		at, to := edges[i], edges[i+1]
		r := result.Reaction{AtS: float64(at-t0) / 1e9, Before: level(edges[i-1], at), After: level(at, to)}
		span := between(at, to)
		var medians []timed
		for k := 0; k+aroundJump <= len(span); k++ {
			x := medianOf(span[k:k+aroundJump]) / 1e6
			medians = append(medians, timed{due: span[k+aroundJump/2].due, ns: x})
			if r.Peak == nil || x > *r.Peak {
				r.Peak, r.PeakS = &x, float64(span[k+aroundJump/2].due-at)/1e9
			}
		}
		if r.After != nil && r.Peak != nil {
			r.SettledS = settledAfter(medians, *r.After, at, to, between)
		}
		out = append(out, r)
	}
	return out
}

// settledAfter is after how many seconds the running medians stay near their level: within a
// fifth of it, or within what they vary by in the last third of the time. It is nil where
// that third has no level itself, or does not begin within it.
func settledAfter(medians []timed, level float64, at, to int64, between func(from, to int64) []timed) *float64 {
	third, sixth := to-(to-at)/3, to-(to-at)/6
	first, second := between(third, sixth), between(sixth, to)
	if len(first) == 0 || len(second) == 0 {
		return nil
	}
	// It has none where the second half of it lies elsewhere than the first by more than
	// chance: by how many of it are above the other's median, beyond three standard
	// deviations (of a share over so many, about a median of so many).
	middle, above := medianOf(first), 0.0
	for _, q := range second {
		if q.ns > middle {
			above++
		}
	}
	n, m := float64(len(second)), float64(len(first))
	if math.Abs(above/n-.5) > 3*math.Sqrt(.25/n+.25/m) && math.Abs(medianOf(second)-middle) > driftWithin*middle {
		return nil
	}
	near := settledWithin * level
	for _, m := range medians {
		if m.due >= third {
			near = max(near, math.Abs(m.ns-level))
		}
	}
	away := at
	for _, m := range medians {
		if math.Abs(m.ns-level) > near {
			away = m.due
		}
	}
	s := float64(away-at) / 1e9
	return &s
}

func medianOf(list []timed) float64 {
	v := make([]float64, len(list))
	for i, q := range list {
		v[i] = q.ns
	}
	slices.Sort(v)
	return v[(len(v)-1)/2]
}
