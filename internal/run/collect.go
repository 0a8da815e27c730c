package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"pitot/internal/data/marks"
	"pitot/internal/data/record"
	"pitot/internal/data/rundir"
	"pitot/internal/load"
	"pitot/internal/measure"
	"pitot/internal/say"
)

// Workers go on when their coordinator dies, for a while, and keep their journals. Whoever goes
// on with the run, or finishes it, collects them: of a worker whose journal is here, that takes
// the place of what had come home of it. So nothing is lost, and nothing is there twice.

// collect collects for a session that goes on. Workers that are still at it are waited for.
func (s *Session) collect(ctx context.Context) error {
	if rundir.Live(s.plan.Out) != nil {
		return nil // which recall says
	}
	for waited := false; ; waited = true {
		says, err := collect(ctx, s.plan.Out, s.runner.Crew)
		if !errors.Is(err, rundir.ErrLive) {
			for _, line := range says {
				s.runner.showLine(line)
			}
			return err
		}
		if !waited {
			s.runner.showLine("waiting for workers of the run that was killed: they stop by themselves")
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// leftBehind is the point of a killed run whose workers may have journals of it: the last that
// began and did not end. ok is false where there is none.
func (o *outline) leftBehind() (point int32, ok bool) {
	if o.end != nil || len(o.damage) > 0 {
		return 0, false
	}
	for i := range o.crews {
		if _, over := o.ends[i]; !over && o.setups[i].Sharing > 1 && i == o.points()-1 {
			return i, true
		}
	}
	return 0, false
}

// collect puts what the workers of a run's last point have left into its journal, and ends the
// point if all of them had. crew brings the journals of those on other machines, nil for none.
// It says what came of it, nothing where there was nothing to collect. The run's directory is
// held by the caller.
func collect(ctx context.Context, dir string, crew Crew) (says []string, err error) {
	o, err := read(dir)
	if err != nil {
		return nil, nil // whoever reads it next says why
	}
	point, ok := o.leftBehind()
	if !ok {
		return nil, nil
	}
	who := o.crews[point]
	from, taken := make([]string, len(who.Workers)), 0
	host, _ := os.Hostname()
	for rank, w := range who.Workers {
		switch {
		case w.Host == host && exists(filepath.Join(w.Dir, rundir.Journal)):
			if err := rundir.Live(w.Dir); err != nil {
				return nil, err // it goes on, or notices just now
			}
			from[rank] = w.Dir
		case crew != nil:
			var why error
			if from[rank], why = crew.Left(ctx, who, rank); why != nil {
				says = append(says, fmt.Sprintf("note: the journal of worker %d on %s is not here: %v", rank, w.Host, why))
			}
		}
		if from[rank] != "" {
			taken++
		}
	}
	if taken == 0 {
		return says, nil
	}
	window, whole, err := merge(dir, point, o.setups[point], from)
	if err != nil {
		return says, fmt.Errorf("collect journals of workers: %w", err)
	}
	for rank := range from {
		if from[rank] == "" {
			continue
		}
		if crew != nil {
			crew.Collected(who, rank)
		}
		if name := filepath.Base(from[rank]); strings.HasPrefix(name, "pitot-worker-") { // its own, made by it
			_ = os.RemoveAll(from[rank])
			dead := filepath.Dir(from[rank]) // the coordinator's
			if left, _ := filepath.Glob(filepath.Join(dead, "pitot-worker-*")); len(left) == 0 && strings.HasPrefix(filepath.Base(dead), "pitot-fleet-") {
				_ = os.RemoveAll(dead)
			}
		}
	}
	line := fmt.Sprintf("collected the journals of %d of %s of point %d", taken, say.Plural(len(from), "worker"), point+1)
	if whole {
		line += fmt.Sprintf(", which came to its end: %s of window", say.Seconds(float64(window.T1-*window.T0)/1e9))
	}
	return append(says, line), nil
}

// merge writes the journal of a run anew: of workers that have one in a directory of from, their
// own records of a point take the place of those that had come home. Where each has come to the
// same end of the window, that is the point's.
func merge(dir string, point int32, s measure.Setup, from []string) (_ marks.Window, whole bool, err error) {
	j, err := record.Reopen(dir, func(f *record.Frame) bool {
		if w := int(f.Worker); f.Point == point && w < len(from) && from[w] != "" {
			f.Chunks, f.Rows = nil, nil
			f.Samples = slices.DeleteFunc(f.Samples, func(x record.Sample) bool {
				return x.Source == record.SourceClient || x.Source == record.SourceHost // others are the coordinator's
			})
		}
		return len(f.Chunks)+len(f.Rows)+len(f.Samples)+len(f.Marks) > 0
	})
	if err != nil {
		return marks.Window{}, false, err
	}
	defer func() { err = errors.Join(err, j.Close()) }()
	all := marks.Window{T1: load.Never, Workers: make([]marks.Worker, len(from))}
	ended, t0, gone := 0, int64(0), 0
	var dues []int64
	for rank, at := range from {
		if at == "" {
			continue
		}
		size := int64(0)
		if is, err := os.Stat(filepath.Join(at, rundir.Journal)); err == nil {
			size = is.Size()
		}
		for f, err := range record.Frames(at) {
			if err != nil {
				return all, false, fmt.Errorf("journal of worker %d in %s: %w", rank, at, err)
			}
			if f.Point != point || int(f.Worker) != rank {
				continue
			}
			for i := range f.Rows {
				dues = append(dues, f.Rows[i].Due)
			}
			j.Take(&f)
			for _, m := range f.Marks {
				if m.Name != marks.NameWindow {
					continue
				}
				w, err := marks.DecodeWindow(m.Data)
				if err != nil {
					return all, false, err
				}
				if all.T1 != load.Never && all.T1 != w.T1 {
					ended = -len(from) // they were not told of one end
				}
				ended++
				all.T1, all.Ended, all.GaveUp = w.T1, max(all.Ended, w.Ended), all.GaveUp || w.GaveUp
				t0 = max(t0, *w.T0)
				if w.Gone != nil {
					gone++
					all.Gone = w.Gone
				}
				all.Workers[rank] = w.Workers[0]
				all.Workers[rank].JournalBytes = size
			}
		}
	}
	if gone < len(from) {
		all.Gone = nil
	}
	if ended != len(from) || all.GaveUp {
		return all, false, nil
	}
	all.T0 = &t0
	if s.Requests > 0 {
		all.T1 = endOf(dues, t0, all.T1, s.Requests)
	}
	mark(j, marks.NameWindow, point, all.Encode())
	return all, true, nil
}
