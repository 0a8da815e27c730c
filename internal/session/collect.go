package session

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"pitot/internal/config"
	"pitot/internal/loadgen"
	"pitot/internal/metrics"
	"pitot/internal/results/marks"
	"pitot/internal/results/record"
	"pitot/internal/results/result"
	"pitot/internal/results/rundir"
	"pitot/internal/say"
)

// Workers go on when their coordinator dies, for a while, and keep their journals. Whoever goes
// on with the run, or finishes it, collects them: of a worker whose journal is here, that takes
// the place of what had come home of it. So nothing is lost, and nothing is there twice.

// collectTime is the longest wait for workers of this machine that still record, when a run is
// continued or finished. It covers their lease, and the time that they need to end after it.
const collectTime = 20 * time.Second

// collectRecords collects for a session that goes on. Workers that are still at it are waited for,
// but not those that hang.
func (s *Session) collectRecords(ctx context.Context) error {
	dir := s.plan.Out
	if rundir.CheckLive(dir) != nil {
		return nil // which recall says
	}
	if err := waitForWorkers(ctx, dir, collectTime, s.runner.showLine); err != nil {
		return err
	}
	says, err := collectJournals(ctx, dir, s.runner.Crew)
	for _, line := range says {
		s.runner.showLine(line)
	}
	return err
}

// waitForWorkers waits, so long at most, until no worker of this machine records for a killed
// run any more.
func waitForWorkers(ctx context.Context, dir string, atMost time.Duration, show func(line string)) error {
	o, err := readOutline(dir)
	if err != nil {
		return nil // whoever reads it next says why
	}
	point, ok := o.leftBehind()
	if !ok {
		return nil
	}
	records := func(w marks.Member) bool { return recordsHere(w) && rundir.CheckLive(w.Dir) != nil }
	end := time.Now().Add(atMost)
	for waited := false; slices.ContainsFunc(o.crews[point].Workers, records) && time.Now().Before(end); waited = true {
		if !waited {
			show("waiting for workers of the run that was killed: they stop by themselves")
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
	return nil
}

// recordsHere says that a worker's journal is on this machine.
func recordsHere(w marks.Member) bool {
	host, _ := os.Hostname()
	return w.Host == host && exists(filepath.Join(w.Dir, rundir.Journal))
}

// leftBehind is the point of a killed run whose workers may have journals of it: the last that
// began and did not end. ok is false where there is none.
func (o *outline) leftBehind() (point int32, ok bool) {
	if o.end != nil || len(o.damage) > 0 {
		return 0, false
	}
	for i := range o.crews {
		if _, over := o.ends[i]; !over && i == o.pointCount()-1 {
			return i, true
		}
	}
	return 0, false
}

// collectJournals puts what the workers of a run's last point have left into its journal, and ends
// the point if all of them had. crew brings the journals of those on other machines, nil for none.
// Of a worker that still records, or whose journal cannot be read, what had come home stays. It
// says what came of it, nothing where there was nothing to collect. The run's directory is held by
// the caller.
func collectJournals(ctx context.Context, dir string, crew Crew) (says []string, err error) {
	o, err := readOutline(dir)
	if err != nil {
		return nil, nil // whoever reads it next says why
	}
	point, ok := o.leftBehind()
	if !ok {
		return nil, nil
	}
	who := o.crews[point]
	from, taken := make([]*ownJournal, len(who.Workers)), 0
	home := homeRecords(dir, point)
	dead := int64(loadgen.Never) // since when the target cannot answer
	if o.run.Target.Kind == config.KindMock {
		dead = o.last[point]
	}
	for rank, w := range who.Workers {
		own, why := "", error(nil)
		switch {
		case recordsHere(w):
			if rundir.CheckLive(w.Dir) != nil {
				says = append(says, fmt.Sprintf("note: worker %d (%s) still records: of it the run has what had come home", rank, w.Dir))
				continue
			}
			own = w.Dir
		case crew != nil:
			own, why = crew.Left(ctx, who, rank)
		default:
			continue
		}
		if why == nil {
			from[rank], why = readThrough(own, point, rank, home[rank], dead)
		}
		if why != nil {
			says = append(says, fmt.Sprintf("note: the journal of worker %d on %s is not here: %v", rank, w.Host, why))
			continue
		}
		taken++
	}
	if taken == 0 {
		return says, nil
	}
	window, whole, err := mergeJournals(dir, point, o.setups[point], from)
	if err != nil {
		return says, fmt.Errorf("collect journals of workers: %w", err)
	}
	for rank := range from {
		if from[rank] == nil {
			continue
		}
		if crew != nil {
			crew.Collected(who, rank)
		}
		if name := filepath.Base(from[rank].dir); strings.HasPrefix(name, "pitot-worker-") { // its own, made by it
			_ = os.RemoveAll(from[rank].dir)
			dead := filepath.Dir(from[rank].dir) // the coordinator's
			if left, _ := filepath.Glob(filepath.Join(dead, "pitot-worker-*")); len(left) == 0 && strings.HasPrefix(filepath.Base(dead), "pitot-fleet-") {
				_ = os.RemoveAll(dead)
			}
		}
	}
	if crew != nil {
		crew.Forget(who)
	}
	line := fmt.Sprintf("collected the journals of %d of %s of point %d", taken, say.Plural(len(from), "worker"), point+1)
	if whole {
		line += fmt.Sprintf(", which came to its end: %s of window", say.Seconds(float64(window.T1-*window.T0)/1e9))
	}
	return append(says, line), nil
}

// ownJournal holds what a worker's own journal has of a point.
type ownJournal struct {
	dir      string
	size     int64
	has      recordCount
	dead     int64 // since when the target cannot answer, as it ended with the coordinator
	orphaned int   // rows that are left out for that
	dues     []int64
	ends     []marks.Window // of its share, one where it came to its end
	worker   result.Worker  // as the last of them tells
}

// recordCount is the number of records of a worker.
type recordCount struct{ chunks, rows int }

// addFrame counts a frame's. Rows that were made for requests under way are none of the worker's.
func (n *recordCount) addFrame(f *record.Frame) {
	n.chunks += len(f.Chunks)
	for i := range f.Rows {
		if e := f.Rows[i].Error; e != record.ErrInterrupted && e != record.ErrWorkerLost {
			n.rows++
		}
	}
}

// homeRecords returns the counts of records that a run's own journal has of a point, by worker.
func homeRecords(dir string, point int32) map[int]recordCount {
	by := map[int]recordCount{}
	for f, err := range record.Frames(dir) {
		if err != nil {
			break // what can be read counts
		}
		if f.Point == point {
			n := by[int(f.Worker)]
			n.addFrame(&f)
			by[int(f.Worker)] = n
		}
	}
	return by
}

// shareFrames are those of the worker's share of a point. A target that the coordinator had in its
// own process ended with it: what failed then failed for that, and is left to be what was under
// way when the run was killed.
func (own *ownJournal) shareFrames(point int32, rank int) iter.Seq2[record.Frame, error] {
	return func(yield func(record.Frame, error) bool) {
		own.orphaned = 0
		for f, err := range record.Frames(own.dir) {
			if err == nil && (f.Point != point || int(f.Worker) != rank) {
				continue
			}
			all := len(f.Rows)
			f.Rows = slices.DeleteFunc(f.Rows, func(r record.Row) bool { return r.Outcome != record.OK && r.Done > own.dead })
			own.orphaned += all - len(f.Rows)
			if !yield(f, err) {
				return
			}
		}
	}
}

// readThrough reads a worker's journal of a point before it takes the place of what had come
// home: that it can be read, and has at least as much. dead is since when the target cannot
// answer, loadgen.Never for one that can.
func readThrough(dir string, point int32, rank int, home recordCount, dead int64) (*ownJournal, error) {
	own := &ownJournal{dir: dir, dead: dead}
	if is, err := os.Stat(filepath.Join(dir, rundir.Journal)); err == nil {
		own.size = is.Size()
	}
	for f, err := range own.shareFrames(point, rank) {
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", dir, err)
		}
		own.has.addFrame(&f)
		for i := range f.Rows {
			own.dues = append(own.dues, f.Rows[i].Due)
		}
		for _, m := range f.Marks {
			if m.Name != marks.NameWindow {
				continue
			}
			var w marks.Window
			err := marks.Decode(m.Name, m.Data, &w)
			if err == nil && (w.T0 == nil || len(w.Workers) != 1) {
				err = errors.New("the end of its window does not say where that began, or whose it is")
			}
			if err != nil {
				return nil, fmt.Errorf("read %s: %w", dir, err)
			}
			own.ends, own.worker = append(own.ends, w), w.Workers[0]
		}
	}
	if own.has.chunks < home.chunks || own.has.rows < home.rows {
		return nil, fmt.Errorf("%s has %s, less than the %s that had come home", dir, say.Plural(own.has.rows, "request"), say.Count(home.rows))
	}
	return own, nil
}

// mergeJournals writes the journal of a run anew: of workers whose own was read, their records of a
// point take the place of those that had come home. Where each has come to the same end of the
// window, that is the point's.
func mergeJournals(dir string, point int32, s metrics.Setup, from []*ownJournal) (_ marks.Window, whole bool, err error) {
	j, err := record.Reopen(dir, func(f *record.Frame) bool {
		if w := int(f.Worker); f.Point == point && w >= 0 && w < len(from) && from[w] != nil {
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
	all := marks.Window{T1: loadgen.Never, Workers: make([]result.Worker, len(from))}
	t0, gone, ranks, differ, orphaned := int64(0), 0, map[int]bool{}, false, false
	var dues []int64
	for rank, own := range from {
		if own == nil {
			continue
		}
		for f, err := range own.shareFrames(point, rank) {
			if err != nil {
				return all, false, fmt.Errorf("journal of worker %d in %s: %w", rank, own.dir, err)
			}
			j.AddFrame(&f)
		}
		orphaned = orphaned || own.orphaned > 0
		dues = append(dues, own.dues...)
		for _, w := range own.ends {
			differ = differ || all.T1 != loadgen.Never && all.T1 != w.T1 // they were not told of one end
			all.T1, all.Ended, all.GaveUp = w.T1, max(all.Ended, w.Ended), all.GaveUp || w.GaveUp
			t0 = max(t0, *w.T0)
			if w.Gone != nil {
				gone++
				all.Gone = w.Gone
			}
			ranks[rank] = true
		}
		all.Workers[rank] = own.worker
		all.Workers[rank].JournalBytes = own.size
	}
	if gone < len(from) {
		all.Gone = nil
	}
	if len(ranks) != len(from) || differ || orphaned || all.GaveUp {
		return all, false, nil
	}
	all.T0 = &t0
	if s.Requests > 0 {
		all.T1 = endOf(dues, t0, all.T1, s.Requests)
	}
	writeMark(j, marks.NameWindow, point, marks.Encode(all))
	return all, true, nil
}
