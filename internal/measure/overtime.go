package measure

import (
	"math"
	"slices"

	"pitot/internal/data/metric"
	"pitot/internal/data/result"
	"pitot/internal/measure/judge"
)

// timed is a latency of the request that was due then.
type timed struct {
	due int64
	ns  float64
}

// overTime is the course of a load that changes with time or comes in bursts; nil of one
// that has a steady state.
func (f *Fold) overTime(all *part, p *result.Point) *result.OverTime {
	x := f.setup.Load.Expected
	if x == nil || !x.Varies && x.CycleS == 0 || !f.conditions.Ended() || f.conditions.Seconds() < judge.Shortest {
		return nil
	}
	o := &result.OverTime{Metric: string(metric.TTFT)}
	var list []timed
	take := func(of func(*Request) (float64, State)) {
		list = list[:0]
		for q := range all.requests() {
			if ns, st := of(q); st == Known || st == Longer {
				list = append(list, timed{q.due, ns})
			}
		}
	}
	take(func(q *Request) (float64, State) {
		if !q.stream {
			return 0, Missing
		}
		return q.TTFT(Response, all.until)
	})
	if len(list) == 0 {
		o.Metric = string(metric.E2E)
		take(func(q *Request) (float64, State) { return q.E2E(Response, all.until) })
	}
	n := max(len(p.InFlight), 1)
	o.BlockS = f.conditions.Seconds() / float64(n)
	counts := make([]int, n)
	blockOf := func(due int64) int { return min(int(float64(due-f.setup.T0)/1e9/o.BlockS), n-1) }
	for q := range all.requests() {
		counts[blockOf(q.due)]++
	}
	values := make([][]float64, n)
	for _, q := range list {
		k := blockOf(q.due)
		values[k] = append(values[k], q.ns/1e6)
	}
	for k, v := range values {
		b := result.Block{DuePerS: float64(counts[k]) / o.BlockS}
		if k < len(p.InFlight) {
			b.InFlight = &p.InFlight[k]
		}
		if len(v) > 0 {
			slices.Sort(v)
			at := func(share float64) *float64 { return &v[max(int(math.Ceil(share*float64(len(v))))-1, 0)] }
			b.P50, b.P90, b.Max = at(.5), at(.9), at(1)
		}
		o.Blocks = append(o.Blocks, b)
	}
	o.Reactions = reactions(list, x.ChangesS, f.setup.T0, f.setup.T1)
	return o
}

const (
	// around is how many requests a running median is of.
	aroundJump = 11
	// settledWithin is how near to its level a median has settled.
	settledWithin = 0.2
	// driftWithin is by how much of it a level may change.
	driftWithin = 0.1
)

// reactions are to jumps of the rate in the window, in seconds of it. The list is by due.
func reactions(list []timed, changes []float64, t0, t1 int64) (out []result.Reaction) {
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
			medians = append(medians, timed{span[k+aroundJump/2].due, x})
			if r.Peak == nil || x > *r.Peak {
				r.Peak, r.PeakS = &x, float64(span[k+aroundJump/2].due-at)/1e9
			}
		}
		if r.After != nil && r.Peak != nil {
			r.SettledS = settled(medians, *r.After, at, to, between)
		}
		out = append(out, r)
	}
	return out
}

// settled is after how many seconds the running medians stay near their level: within a
// fifth of it, or within what they vary by in the last third of the time. It is nil where
// that third has no level itself, or does not begin within it.
func settled(medians []timed, level float64, at, to int64, between func(from, to int64) []timed) *float64 {
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
