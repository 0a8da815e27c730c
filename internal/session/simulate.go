package session

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"unsafe"

	"pitot/internal/config"
	"pitot/internal/loadgen"
	"pitot/internal/metrics"
	"pitot/internal/results/marks"
	"pitot/internal/results/record"
	"pitot/internal/results/result"
	"pitot/internal/results/spill"
	"pitot/internal/target"
)

// Simulate measures loads on a simulated target as a run measures them, and gives a
// point for each: what was due, sent and answered is recorded in memory, and
// nothing is written anywhere. The seed is the plan's.
func (r *Runner) Simulate(ctx context.Context, p *config.Plan, loads []config.Load) ([]result.Point, error) {
	t, err := target.Open(ctx, target.WantedBy(p), r.showLine)
	if err != nil {
		return nil, err
	}
	defer t.Close()
	if t.Kind != config.KindSim {
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

func (r *Runner) simulate(ctx context.Context, p *config.Plan, t *target.Target, l *config.Load, index int32) (result.Point, error) {
	store := newStore(os.TempDir())
	defer store.Close()
	fold, err := r.inMemory(ctx, p, t, inMemoryPoint{spec: &PointSpec{Load: *l}, index: index, kept: &keptRecords{point: index}, store: store})
	if err != nil {
		return result.Point{}, err
	}
	return fold.Point(), fold.Err()
}

// inMemoryPoint is a point on a simulated target, whose records stay in memory.
type inMemoryPoint struct {
	spec  *PointSpec
	index int32
	kept  *keptRecords
	light int64 // see [plannedPoint]
	store *spill.Store
}

// inMemory puts a load on a simulated target and keeps what was due, sent and answered
// in memory.
func (r *Runner) inMemory(ctx context.Context, p *config.Plan, t *target.Target, pt inMemoryPoint) (*metrics.Fold, error) {
	spec, index, kept := pt.spec, pt.index, pt.kept
	defer kept.remove()
	src, err := newSource(&p.Ask, t, index)
	if err != nil {
		return nil, err
	}
	defer src.close()
	cfg, err := scheduleConfig(p, &spec.Load, t, &src, index)
	if err != nil {
		return nil, err
	}
	alignRows(&p.Ask, &src, cfg.Arrivals)
	if err := src.setArrivals(&p.Ask, &spec.Load, arrivalSeed(p.Seed, index), cfg.Warmup); err != nil {
		return nil, err
	}
	setup := plannedPoint(p, t, spec, &src, &cfg, pt.light)
	var look *looker
	if setup.Requests == 0 && (setup.AutoWarmup && p.SpendLimit == 0 || !spec.Until.IsNone()) {
		look = &looker{want: spec.Until, longest: int64(p.MaxDuration), inTime: true, records: kept.frameIterator, index: index, setup: setup, say: r.showLine}
		cfg.Extend = look.extendWindow
	}
	giveUp(&cfg, spec, setup.Residence, src.meanTurns(&p.Ask))
	for _, w := range kept.windows {
		w.arrivals, cfg.Arrivals = cfg.Arrivals, w
	}
	core := loadgen.NewCore(cfg)
	world := newVirtual(p, &spec.Load, t, src, kept, index, nil)
	loadgen.Run(ctx, core, world)
	t0, t1 := core.MeasuredWindow()
	setup = endedSetup(setup, marks.Window{T0: &t0, T1: t1, Ended: world.Now(), GaveUp: core.GaveUp()})
	frames, err := kept.frameIterator()
	if err != nil {
		return nil, err
	}
	setups := map[int32]metrics.Setup{index: setup}
	metrics.SettleWindows(setups, frames)
	fold := metrics.NewFoldIn(pt.store, setups[index])
	for f, err := range frames {
		if err != nil {
			return nil, fmt.Errorf("read records: %w", err)
		}
		fold.Add(f)
	}
	return fold, fold.Err()
}

// keptRecords are the records of a point: in memory, and from so many on in a
// journal, in a directory that is removed in the end.
type keptRecords struct {
	point   int32
	rows    bool          // alone: chunks are counted and not kept
	chunks  int64         // that were counted
	windows []*windowSeen // that are looked at as their requests end
	frames  []record.Frame
	size    int // bytes of what is in memory
	journal *record.Journal
	dir     string
	err     error
}

const (
	keptInMemory = 64 << 20 // bytes
	chunkSize    = int(unsafe.Sizeof(record.Chunk{}))
	rowSize      = int(unsafe.Sizeof(record.Row{}))
	// chunksOfFrame is about how many chunks a frame has.
	chunksOfFrame = 1 << 14
)

// lastFrame is the frame that is being filled.
func (k *keptRecords) lastFrame() *record.Frame {
	if n := len(k.frames); n > 0 && len(k.frames[n-1].Chunks)+len(k.frames[n-1].Rows) < chunksOfFrame {
		return &k.frames[n-1]
	}
	k.frames = append(k.frames, record.Frame{Point: k.point})
	return &k.frames[len(k.frames)-1]
}

// Chunk implements [record.Sink].
func (k *keptRecords) Chunk(c record.Chunk) {
	if k.rows {
		k.chunks++
		return
	}
	if k.journal != nil {
		k.journal.Chunk(c)
		k.keepUp()
		return
	}
	f := k.lastFrame()
	f.Chunks = append(f.Chunks, c)
	k.countBytes(chunkSize)
}

// Done implements [record.Sink].
func (k *keptRecords) Done(r *record.Row) {
	for _, w := range k.windows {
		w.addEnded(r)
	}
	if k.journal != nil {
		k.journal.Done(r)
		k.keepUp()
		return
	}
	f := k.lastFrame()
	f.Rows = append(f.Rows, *r)
	k.countBytes(rowSize)
}

// keepUp lets the disk follow: a simulation writes as fast as it can.
func (k *keptRecords) keepUp() {
	if k.size += chunkSize; k.size >= keptInMemory {
		k.size = 0
		k.err = errors.Join(k.err, k.journal.Flush())
	}
}

// countBytes counts what is in memory, and moves it to the disk when it is too much.
func (k *keptRecords) countBytes(bytes int) {
	if k.size += bytes; k.size < keptInMemory || k.err != nil {
		return
	}
	k.size = 0
	if k.dir, k.err = os.MkdirTemp("", "pitot-simulation-"); k.err != nil {
		return
	}
	j, err := record.Create(k.dir)
	if err != nil {
		k.err = err
		return
	}
	j.SetPoint(k.point)
	for i := range k.frames {
		for _, c := range k.frames[i].Chunks {
			j.Chunk(c)
		}
		for r := range k.frames[i].Rows {
			j.Done(&k.frames[i].Rows[r])
		}
	}
	k.frames, k.journal = nil, j
}

// frameIterator gives them so far, as often as they are asked for.
func (k *keptRecords) frameIterator() (iter.Seq2[record.Frame, error], error) {
	if k.err != nil {
		return nil, fmt.Errorf("keep records: %w", k.err)
	}
	if k.journal != nil {
		return record.FramesSince(k.dir, 0), k.journal.Flush()
	}
	return func(yield func(record.Frame, error) bool) {
		for _, f := range k.frames {
			if !yield(f, nil) {
				return
			}
		}
	}, nil
}

// remove deletes what is on the disk.
func (k *keptRecords) remove() {
	if k.journal != nil {
		_ = k.journal.Close()
	}
	if k.dir != "" {
		_ = os.RemoveAll(k.dir)
	}
}
