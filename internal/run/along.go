package run

import (
	"context"
	"fmt"
	"math"

	"pitot/internal/data/marks"
	"pitot/internal/data/record"
	"pitot/internal/load"
	"pitot/internal/measure"
	"pitot/internal/workload/arrival"
)

// stage is the part of a simulated load that has one rate: a warm-up, in which the
// engine comes from the rate before, and a window. Times are nanoseconds from the origin.
type stage struct {
	arrivals      arrival.Process // from its begin on
	begin, t0, t1 int64
	seen          *windowSeen
}

// stages are the arrivals of one after the other, the last of which has no end: the load
// goes on while requests of its window are under way. It implements [arrival.Process].
type stages struct {
	left   []stage
	passed []*windowSeen
}

// Next gives the next due time; each process begins with its stage.
func (s *stages) Next() int64 {
	for {
		now := &s.left[0]
		if due := now.arrivals.Next(); len(s.left) == 1 || due < now.t1-now.begin {
			return now.begin + min(due, math.MaxInt64-now.begin)
		}
		s.passed = append(s.passed, now.seen)
		for _, w := range s.passed {
			if w.decide != nil && w.decide(w.violations, w.left()) {
				return math.MaxInt64
			}
		}
		s.left = s.left[1:]
	}
}

// CountAlong counts loads of a simulated target, open loops all, as [Session.Count] does,
// one after the other on an engine that is not emptied between: each begins with what the
// one before left under way, so that a short warm-up settles it where they are near each
// other. A window lasts as long as its requests take to come at the rate that is asked.
// Load.Decided says at the end of each window whether the loads behind it are of any use.
func (s *Session) CountAlong(ctx context.Context, loads []Load) ([]*Measured, error) {
	index := firstCounted + s.counted
	s.counted++
	p, t := s.plan, s.Target
	src, err := newSource(&p.Ask, t, index)
	if err != nil {
		return nil, err
	}
	defer src.close()
	kept := &keptRecords{point: index, rows: true}
	defer kept.remove()
	var cfg load.Config
	setups, at := make([]measure.Setup, len(loads)), int64(0)
	var all []stage
	for i, l := range loads {
		hard := p.Load
		hard.Rate, hard.Concurrency, hard.Warmup = l.Rate, 0, l.Warmup
		hard.Requests, hard.Duration = 0, seconds(float64(l.Requests)/l.Rate/src.meanTurns(&p.Ask))
		c, err := schedule(p, &hard, t, &src, index+int32(i))
		if err != nil {
			return nil, err
		}
		x := stage{arrivals: c.Arrivals.(arrival.Process), begin: at, t0: at + c.Warmup, t1: at + c.Warmup + c.Window}
		x.seen = l.watched(x.t0, x.t1)
		kept.windows = append(kept.windows, x.seen)
		setups[i] = plannedPoint(p, t, &hard, &src, &c, l, s.light)
		if all, at = append(all, x), x.t1; i == 0 {
			cfg = c
		}
	}
	s.counted += int32(len(loads)) - 1 // their arrivals are theirs alone
	due := &stages{left: all}
	cfg.Arrivals, cfg.Window = due, at-cfg.Warmup
	world := virtual(p, &p.Load, t, src, kept, index, nil)
	load.Run(ctx, load.NewCore(cfg), world)
	frames, err := kept.records()
	if err != nil {
		return nil, err
	}
	list := make([]*Measured, len(loads)-len(due.left)+1) // those behind one that made them pointless were not reached
	for i := range list {
		x := &all[i]
		setup := ended(setups[i], marks.Window{T0: &x.t0, T1: x.t1, Ended: world.Now()})
		fold := measure.NewFoldIn(s.memory(), setup)
		var extent measure.Extent
		for f, err := range frames {
			if err != nil {
				return nil, fmt.Errorf("read records: %w", err)
			}
			fold.Add(during(f, x, &extent))
		}
		if err := fold.Err(); err != nil {
			return nil, err
		}
		list[i] = s.measured(fold, index)
		list[i].Index, list[i].Extent, list[i].window = Unrecorded, extent, x.seen
		list[i].Seconds.Warmup, list[i].Seconds.Window = float64(x.t0-x.begin)/1e9, float64(x.t1-x.t0)/1e9
	}
	return list, ctx.Err()
}

// during are the rows of a frame that were under way in a stage; those that came due in
// it are its extent.
func during(f record.Frame, x *stage, extent *measure.Extent) record.Frame {
	part := record.Frame{Point: f.Point}
	for i := range f.Rows {
		r := &f.Rows[i]
		if r.Due >= x.t1 || r.Done < x.begin {
			continue
		}
		part.Rows = append(part.Rows, *r)
		if r.Due < x.begin {
			continue
		}
		extent.Requests++
		extent.Events += int64(r.Chunks)
		extent.Prompt += int64(max(r.PromptTokens, r.InputPlanned, 0))
	}
	return part
}
