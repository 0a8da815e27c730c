package run

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"pitot/internal/data/record"
	"pitot/internal/data/result"
	"pitot/internal/data/rundir"
	"pitot/internal/data/spill"
	"pitot/internal/measure"
	"pitot/internal/say"
)

// Marks in the journal. With them a run can be finished from its records
// alone, whoever wrote them and however it ended.
const (
	markRun    = "run"    // result.Run without points
	markPoint  = "point"  // measure.Setup
	markWindow = "window" // window: the point came to its end
	markEnd    = "end"    // ending: the run came to its end
	markAlone  = "alone"  // time.Duration: what one request takes on an idle target, as a search began with it
)

type window struct {
	T0     *int64        `json:"t0,omitempty"` // where it is not where it was planned
	T1     int64         `json:"t1"`
	Ended  int64         `json:"ended"`
	GaveUp bool          `json:"gave_up,omitempty"`
	Gone   *int64        `json:"gone,omitempty"`
	Until  *result.Until `json:"until,omitempty"`
}

// of is a setup with what is known at the end of its window.
func (w window) of(s measure.Setup) measure.Setup {
	if w.T0 != nil {
		s.T0 = *w.T0
	}
	s.T1, s.GaveUp, s.Gone, s.Until = max(w.T1, s.T0), w.GaveUp, w.Gone, w.Until
	return s
}

type ending struct {
	Ended       string `json:"ended"`
	Interrupted bool   `json:"interrupted"`
}

// put writes a mark.
func put(j *record.Journal, name string, point int32, v any) {
	data, err := json.Marshal(v)
	if err != nil { // our own types always marshal
		data = []byte("null")
	}
	j.Mark(record.Mark{Point: point, Name: name, Data: data})
}

// outline is what a first pass over the records finds.
type outline struct {
	run    result.Run
	setups map[int32]measure.Setup
	ends   map[int32]window
	end    *ending
	alone  time.Duration
	last   map[int32]int64 // when each point ended; of one that did not, the latest stamp
	found  bool
}

// Finish makes the results of a run directory from its records: run.json and
// the Parquet files. It is how every run ends, and how one is finished whose
// process was killed.
//
// A run that is still going on gives an error that is [record.ErrLive].
func Finish(dir string) (*result.Run, error) {
	release, err := record.Hold(filepath.Join(dir, rundir.Config)) // a session may be about to go on
	switch {
	case errors.Is(err, record.ErrLive):
		return nil, err
	case err == nil:
		defer release()
	}
	store := memory(dir)
	defer store.Close()
	return finish(dir, false, store)
}

// finish does it. incomplete says that records are known to be missing from
// the last point, even if the journal had no room to say so itself.
func finish(dir string, incomplete bool, store *spill.Store) (*result.Run, error) {
	if err := record.Live(dir); err != nil {
		return nil, err
	}
	o, err := read(dir)
	if err != nil {
		return nil, err
	}
	run := o.run
	run.Recovered = o.end == nil
	run.Ended = o.died()
	if o.end != nil {
		run.Ended, run.Interrupted = o.end.Ended, o.end.Interrupted
	}
	folds := map[int32]*measure.Fold{}
	left := map[int32][]record.Row{} // under way when the run was killed
	for point, s := range o.setups {
		if w, ended := o.ends[point]; ended {
			s = w.of(s)
		} else {
			left[point], s.T1 = underWay(dir, point, s, o.run.Seed, o.last[point])
		}
		o.setups[point] = s
	}
	frames := completed(record.Frames(dir), left)
	measure.Settle(o.setups, frames)
	for point, s := range o.setups {
		folds[point] = measure.NewFoldIn(store, s)
	}
	written := record.Finish(dir, frames, func(f record.Frame) {
		if fold := folds[f.Point]; fold != nil {
			fold.Add(f)
		}
	})
	run.Points = []result.Point{}
	run.Verdict = result.Valid
	if len(folds) == 0 {
		run.Verdict = result.Invalid // nothing was measured, so nothing can be trusted
	}
	points := slices.Sorted(maps.Keys(folds))
	if n := len(points); incomplete && n > 0 {
		folds[points[n-1]].Add(record.Frame{Marks: []record.Mark{{Name: record.LostMark}}})
	}
	for _, i := range points {
		run.Points = append(run.Points, folds[i].Point())
	}
	for k, pooled := range measure.Pool(run.Points) {
		i := points[k]
		s, p := o.setups[i], &run.Points[k]
		if len(pooled.Phi) > 0 || pooled.Why != "" {
			folds[i].Pool(pooled)
			*p = folds[i].Point()
		}
		p.Seconds.Warmup = float64(s.T0) / 1e9
		p.Seconds.Window = float64(s.T1-s.T0) / 1e9
		p.Seconds.Drain = float64(max(0, o.last[i]-s.T1)) / 1e9
		if !p.Aside() || p.Verdict == result.Invalid {
			run.Verdict = worse(run.Verdict, p.Verdict)
		}
	}
	for _, i := range points {
		if err := folds[i].Err(); err != nil {
			return &run, unsaved(dir, err)
		}
		folds[i].Free()
	}
	var disk *fs.PathError
	if errors.As(written, &disk) {
		return &run, unsaved(dir, written)
	}
	if written != nil {
		return &run, written
	}
	return &run, Save(dir, &run)
}

// Save writes run.json.
func Save(dir string, run *result.Run) error {
	data, err := rundir.EncodeResult(run)
	if err != nil {
		return fmt.Errorf("write %s: %w", rundir.Result, err)
	}
	if err := record.WriteFile(dir, rundir.Result, data); err != nil {
		return unsaved(dir, err)
	}
	return nil
}

// NotOwn refuses a path that is a run's own file: what is written besides must not
// replace what was measured.
func NotOwn(path string) error {
	dir, name := filepath.Split(path)
	_, err := os.Stat(filepath.Join(dir, rundir.Config))
	if err == nil && rundir.Own(name) {
		return say.Errorf("%s is a part of the run there", path).WithHint("choose another name")
	}
	return nil
}

// Saved says that run.json holds this very result.
func Saved(dir string, run *result.Run) bool {
	want, err := rundir.EncodeResult(run)
	if err != nil {
		return false
	}
	has, err := os.ReadFile(filepath.Join(dir, rundir.Result))
	return err == nil && bytes.Equal(has, want)
}

// unsaved says that a disk is full, or not to be written to. The records stay as
// they are.
func unsaved(dir string, err error) error {
	return say.Errorf("the result of the run in %s cannot be saved: %v", dir, err).WithHint("make room there or allow it to be written to, then pitot report " + dir + " makes it of its records")
}

// died is about when a killed run ended: its records cannot tell exactly.
func (o *outline) died() string {
	t, err := time.Parse(time.RFC3339, o.run.Started)
	if err != nil {
		return o.run.Started
	}
	for _, last := range o.last {
		t = t.Add(time.Duration(last))
	}
	return t.Format(time.RFC3339)
}

// worse gives the worse of two verdicts.
func worse(a, b result.Verdict) result.Verdict {
	order := []result.Verdict{result.Valid, result.ValidWithFlags, result.Invalid}
	return order[max(slices.Index(order, a), slices.Index(order, b))]
}

// read makes the first pass: what was planned, and how it ended.
func read(dir string) (*outline, error) {
	o := &outline{setups: map[int32]measure.Setup{}, ends: map[int32]window{}, last: map[int32]int64{}}
	for m, err := range record.Marks(dir) {
		if err != nil {
			if o.found { // what came before a damaged place still counts
				break
			}
			if errors.Is(err, os.ErrNotExist) {
				return nil, rundir.NoRun(dir)
			}
			return nil, fmt.Errorf("read records: %w", err)
		}
		if err := o.mark(m); err != nil {
			return nil, fmt.Errorf("read records: mark %s: %w", m.Name, err)
		}
	}
	if !o.found {
		return nil, say.Errorf("%s has no records", dir).WithHint("it was stopped before its load began")
	}
	killed := false
	for point := range o.setups {
		w, ended := o.ends[point]
		o.last[point] = w.Ended
		killed = killed || !ended
	}
	if killed {
		o.stamps(dir)
	}
	return o, nil
}

// stamps finds the latest stamp of each point that came to no end.
func (o *outline) stamps(dir string) {
	for f, err := range record.Frames(dir) {
		if err != nil {
			return
		}
		if _, ended := o.ends[f.Point]; ended {
			continue
		}
		for i := range f.Chunks {
			o.last[f.Point] = max(o.last[f.Point], f.Chunks[i].T)
		}
		for i := range f.Rows {
			o.last[f.Point] = max(o.last[f.Point], f.Rows[i].Done)
		}
	}
}

func (o *outline) mark(m record.Mark) error {
	switch m.Name {
	case markRun:
		o.found = true
		run, err := result.Decode(m.Data)
		if err == nil {
			o.run = *run
		}
		return err
	case markPoint:
		var s measure.Setup
		err := json.Unmarshal(m.Data, &s)
		o.setups[m.Point] = s
		return err
	case markWindow:
		var w window
		err := json.Unmarshal(m.Data, &w)
		o.ends[m.Point] = w
		return err
	case markAlone:
		return json.Unmarshal(m.Data, &o.alone)
	case markEnd:
		o.end = new(ending)
		return json.Unmarshal(m.Data, o.end)
	}
	return nil
}
