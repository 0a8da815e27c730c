package run

import (
	"context"
	"fmt"
	"iter"

	"pitot/internal/data/marks"
	"pitot/internal/data/record"
	"pitot/internal/data/result"
	"pitot/internal/load"
	"pitot/internal/measure"
	"pitot/internal/plan"
	"pitot/internal/target"
)

// Simulate measures loads on a simulated target as a run measures them, and gives a
// point for each: what was due, sent and answered is recorded in memory, and
// nothing is written anywhere. The seed is the plan's.
func (r *Runner) Simulate(ctx context.Context, p *plan.Plan, loads []plan.Load) ([]result.Point, error) {
	t, err := target.Open(ctx, target.WantedBy(p), r.say)
	if err != nil {
		return nil, err
	}
	defer t.Close()
	if t.Kind != plan.KindSim {
		return nil, fmt.Errorf("simulate %s: it takes real time", p.Spec)
	}
	var points []result.Point
	for i := range loads {
		x, err := r.simulate(ctx, p, t, &loads[i], int32(i))
		if err != nil {
			return nil, err
		}
		points = append(points, x)
	}
	return points, ctx.Err()
}

func (r *Runner) simulate(ctx context.Context, p *plan.Plan, t *target.Target, l *plan.Load, index int32) (result.Point, error) {
	src, err := newSource(&p.Ask, t, index)
	if err != nil {
		return result.Point{}, err
	}
	defer src.close()
	cfg, err := schedule(l, t, arrivalSeed(p.Seed, index))
	if err != nil {
		return result.Point{}, err
	}
	setup := plannedPoint(p, t, l, &src, &cfg, Load{}, 0)
	kept := &memoryRecords{point: index}
	var look *looker
	if setup.Requests == 0 && (setup.AutoWarmup && p.SpendLimit == 0 || !l.Until.None()) {
		look = &looker{want: l.Until, longest: int64(p.Budget), inTime: true, records: kept.records, index: index, setup: setup, say: r.say}
		cfg.Extend = look.extend
	}
	core := load.NewCore(cfg)
	world := virtual(p, t, src, kept, index)
	load.Run(ctx, core, world)
	t0, t1 := core.Window()
	setup = ended(setup, marks.Window{T0: &t0, T1: t1, Ended: world.Now(), GaveUp: core.GaveUp()})
	setups := map[int32]measure.Setup{index: setup}
	measure.Settle(setups, kept.all)
	fold := measure.NewFold(setups[index])
	for f := range kept.all {
		fold.Add(f)
	}
	return fold.Point(), fold.Err()
}

// memoryRecords keeps the records of a point.
type memoryRecords struct {
	point  int32
	frames []record.Frame
}

// frameSize is about how many chunks a frame has.
const frameSize = 1 << 14

// last is the frame that is being filled.
func (m *memoryRecords) last() *record.Frame {
	if n := len(m.frames); n > 0 && len(m.frames[n-1].Chunks)+len(m.frames[n-1].Rows) < frameSize {
		return &m.frames[n-1]
	}
	m.frames = append(m.frames, record.Frame{Point: m.point})
	return &m.frames[len(m.frames)-1]
}

// Chunk implements [record.Sink].
func (m *memoryRecords) Chunk(c record.Chunk) {
	f := m.last()
	f.Chunks = append(f.Chunks, c)
}

// Done implements [record.Sink].
func (m *memoryRecords) Done(r *record.Row) {
	f := m.last()
	f.Rows = append(f.Rows, *r)
}

func (m *memoryRecords) all(yield func(record.Frame, error) bool) {
	for _, f := range m.frames {
		if !yield(f, nil) {
			return
		}
	}
}

// records implements looker.records.
func (m *memoryRecords) records() (iter.Seq2[record.Frame, error], error) { return m.all, nil }
