package session

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"pitot/internal/capacity"
	"pitot/internal/cost"
	"pitot/internal/metrics"
	"pitot/internal/metrics/validity"
	"pitot/internal/results/marks"
	"pitot/internal/results/record"
	"pitot/internal/results/result"
	"pitot/internal/results/rundir"
	"pitot/internal/results/spill"
	"pitot/internal/say"
	"pitot/internal/userfile"
	"pitot/internal/workload"
)

// outline holds the results of a first pass over the records.
type outline struct {
	run    result.Run
	setups map[int32]metrics.Setup
	ends   map[int32]marks.Window
	crews  map[int32]marks.Crew // of points that several workers carry out
	end    *marks.End
	alone  time.Duration
	found  *result.Capacity // of a search
	last   map[int32]int64  // when each point ended; of one that did not, the latest stamp
	begun  bool             // the head is there
	damage []record.Damage  // of the journal
}

// Finish makes the results of a run directory from its records: run.json and the Parquet
// files, as they are made at the end of every run, for one whose process was killed. show
// is given what there is to say of workers that had gone on when their coordinator died.
//
// A run that is still going on gives an error that is [rundir.ErrLive].
func Finish(dir string, show func(line string)) (*result.Run, error) {
	release, err := rundir.LockDir(dir) // a session may be about to go on
	switch {
	case errors.Is(err, rundir.ErrLive):
		return nil, err
	case err == nil:
		defer release()
		rundir.RemoveTemps(dir) // of a process that was killed as it finished the run
		if rundir.CheckLive(dir) == nil {
			ctx := context.Background()
			_ = waitForWorkers(ctx, dir, collectTime, show)
			says, err := collectJournals(ctx, dir, nil)
			for _, line := range says {
				show(line)
			}
			if err != nil {
				return nil, err
			}
		}
	}
	store := newStore(dir)
	defer store.Close()
	return makeResults(dir, false, store)
}

// makeResults does it. incomplete says that records are known to be missing from
// the last point, even if the journal had no room to say so itself.
func makeResults(dir string, incomplete bool, store *spill.Store) (*result.Run, error) {
	if err := rundir.CheckLive(dir); err != nil {
		return nil, err
	}
	defer limitGarbage()()
	o, err := readOutline(dir)
	if err != nil {
		return nil, err
	}
	run := o.run
	run.Recovered = o.end == nil
	run.Ended = o.deathTime()
	if o.end != nil {
		run.Ended, run.Interrupted = o.end.Ended, o.end.Interrupted
	}
	missing := o.missingRows(dir, store)
	metrics.SettleWindows(o.setups, completeFrames(record.Rows(dir), missing))
	frames := planOnce(completeFrames(record.Frames(dir), missing))
	folds := map[int32]*metrics.Fold{}
	for point, s := range o.setups {
		folds[point] = metrics.NewFoldIn(store, s)
	}
	var sent sent
	paired := newPairs(o.setups)
	written := record.Finish(dir, frames, func(f record.Frame) {
		sent.countFrame(&f)
		paired.add(&f)
		if fold := folds[f.Point]; fold != nil {
			fold.Add(f)
		} else if f.Point >= 0 {
			run.Unplanned += len(f.Rows)
		}
	})
	run.Sent = sent.traffic()
	run.CacheEffect = paired.cacheEffect()
	run.Points = []result.Point{}
	run.Verdict = result.Valid
	if len(folds) == 0 {
		run.Verdict = result.Invalid // nothing was measured, so nothing can be trusted
	}
	for i := range o.damage {
		run.Damage = append(run.Damage, damageOf(&o.damage[i]))
		if !o.damage[i].IsNone() {
			run.Verdict = result.Invalid
		}
	}
	points := slices.Sorted(maps.Keys(folds))
	if n := len(points); incomplete && n > 0 {
		folds[points[n-1]].Add(record.Frame{Marks: []record.Mark{{Name: record.LostMark}}})
	}
	for _, i := range points {
		run.Points = append(run.Points, folds[i].Point())
	}
	for k, i := range points {
		s, p := o.setups[i], &run.Points[k]
		p.Seconds.Warmup = float64(s.T0) / 1e9
		p.Seconds.Window = float64(s.T1-s.T0) / 1e9
		p.Seconds.Drain = float64(max(0, o.last[i]-s.T1)) / 1e9
		if o.found != nil && o.found.ExcludesPoint(k) || o.found == nil && k == run.UnderWay() {
			continue
		}
		counted := slices.DeleteFunc(slices.Clone(p.Checks), func(c result.Check) bool { return p.IsExcused(&c, o.found.RestsOn(k)) })
		run.Verdict = worse(run.Verdict, validity.VerdictOf(counted))
	}
	plannedHits(&run)
	for k, i := range points {
		if of := run.Points[k].Server; of != nil && o.setups[i].PlannedHits != nil {
			of["planned_hit_share"] = *o.setups[i].PlannedHits
		}
	}
	for k := range run.Points { // what requests share, counted, is better than reckoned
		p := &run.Points[k]
		if p.Server == nil || p.PrefixCache == nil {
			continue
		}
		if p.PrefixCache.Endless > 0.0005 || p.Stage == result.StageCold {
			p.Server["planned_hit_share"] = p.PrefixCache.Endless
		}
		if x, ok := p.Server["prefix_hit_share"]; ok && p.PrefixCache.Served == nil {
			p.PrefixCache.Served, p.PrefixCache.ByMetrics = &x, true
		}
	}
	pooled := pooledPercentiles(points, folds, run.Points)
	for _, i := range points {
		if err := folds[i].Err(); err != nil {
			return &run, explainWriteError(dir, err)
		}
		folds[i].Free()
	}
	capacity.CompleteRun(&run)
	if run.Repeats != nil && len(pooled) > 0 {
		run.Repeats.Pooled = pooled
	}
	if o.found != nil {
		run.Capacity = o.found
		run.Capacity.USDPerMGoodOutput = run.CapacityCost()
		run.Capacity.PerGPU, run.Capacity.PerMW = userDensity(&run)
		if i := run.QuotableIndex(); i >= 0 {
			run.Capacity.Cost = quotedCost(run.Capacity.Cost, &run.Points[i], o.setups[points[i]].Price)
		}
	}
	run.WithholdUnderWay()
	validity.AddAdvice(&run)
	var file *fs.PathError
	var name *os.LinkError
	switch {
	case written == nil, incomplete: // as far as the disk allows
		return &run, Save(dir, &run)
	case errors.As(written, &file), errors.As(written, &name):
		return &run, explainWriteError(dir, written)
	}
	return &run, written
}

// userDensity returns the number of the users of a capacity for a GPU, and for a megawatt. The
// power is that of the GPUs at the quoted load. A number is nil where it is not known.
func userDensity(run *result.Run) (perGPU, perMW *float64) {
	p := run.QuotablePoint()
	if p == nil || !result.IsClosedLoop(run.Capacity.Over) {
		return nil, nil
	}
	if g := p.Throughput.PerGPU; g != nil && g.GPUs > 0 {
		x := *run.Capacity.Load / float64(g.GPUs)
		perGPU = &x
	}
	if e := p.Energy; e != nil && e.TokensPerSPerMW != nil && e.Watts > 0 { // where power is sure enough for figures by token
		x := *run.Capacity.Load / e.Watts * 1e6
		perMW = &x
	}
	return perGPU, perMW
}

// quotedCost returns the cost of the quoted load of a search, as far as it is known. The share to
// keep idle is noted when the search ends.
func quotedCost(asked *result.Quoted, p *result.Point, price cost.Price) *result.Quoted {
	if asked == nil || p.Cost == nil {
		return nil
	}
	q := &result.Quoted{AtCapacity: *p.Cost, Headroom: asked.Headroom}
	spare := price.WithHeadroom(metrics.BillOf(p.Cost), q.Headroom)
	price.Listed = p.Cost.Basis == result.ListPrice
	q.WithHeadroom = metrics.CostOfBill(price, spare)
	q.WithHeadroom.Electricity = p.Cost.Electricity
	return q
}

// plannedHits notes what share of the prompts' tokens an unlimited prefix cache would
// have, beside the share that the server's had, as far as the workload shows: of a prefix
// that requests share. The first request that has it is not counted for.
func plannedHits(run *result.Run) {
	var w workload.Description
	if json.Unmarshal(run.Workload, &w) != nil || w.Kind != "random" {
		return
	}
	share := 0.
	if w.Prefix != nil {
		lengths, err := workload.ParseLengths(w.Input)
		if err != nil {
			return
		}
		share = w.Prefix.Share * float64(w.Prefix.Tokens) / (float64(w.Prefix.Tokens) + lengths.Mean())
	}
	for i := range run.Points {
		if of := run.Points[i].Server; of["prefix_hit_share"] > 0 || share > 0 && of != nil {
			of["planned_hit_share"] = share
		}
	}
}

// pooledPercentiles are percentiles over all points, where they are repeats of one load.
func pooledPercentiles(order []int32, folds map[int32]*metrics.Fold, points []result.Point) map[string]result.Together {
	var all []*metrics.Fold
	for k, i := range order {
		if points[k].Stage != "" || !sameLoad(points[k].Load, points[0].Load) {
			return nil
		}
		all = append(all, folds[i])
	}
	return metrics.PoolPercentiles(all, points)
}

// save writes run.json, once and whole.
// Save writes run.json anew.
func Save(dir string, run *result.Run) error {
	data, err := rundir.EncodeResult(run)
	if err != nil {
		return fmt.Errorf("write %s: %w", rundir.Result, err)
	}
	if err := rundir.WriteFile(dir, rundir.Result, data); err != nil {
		return explainWriteError(dir, err)
	}
	return nil
}

// NotOwn refuses a path that is a run's own file: what is written besides must not
// replace what was measured.
func NotOwn(path string) error {
	dir, name := filepath.Split(path)
	_, err := os.Stat(filepath.Join(dir, rundir.Config))
	if err == nil && rundir.IsOwnFile(name) {
		return say.Errorf("%s is a part of the run there", path).WithHint("choose another name")
	}
	return nil
}

// IsSaved says that run.json holds this very result.
func IsSaved(dir string, run *result.Run) bool {
	want, err := rundir.EncodeResult(run)
	if err != nil {
		return false
	}
	has, err := userfile.Read(filepath.Join(dir, rundir.Result), userfile.MostLarge)
	return err == nil && bytes.Equal(has, want)
}

// explainWriteError says that a disk is full, or not to be written to. The records stay as
// they are.
func explainWriteError(dir string, err error) error {
	return say.Errorf("the result of the run in %s cannot be saved: %v", dir, err).WithHint("make room there or allow it to be written to, then pitot report " + dir + " makes it of its records")
}

// deathTime is about when a killed run ended: its records cannot tell exactly.
func (o *outline) deathTime() string {
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

// readOutline makes the first pass: what was planned, and how it ended.
func readOutline(dir string) (*outline, error) {
	o := &outline{setups: map[int32]metrics.Setup{}, ends: map[int32]marks.Window{}, crews: map[int32]marks.Crew{}, last: map[int32]int64{}}
	for m, err := range record.Marks(dir) {
		if err == nil {
			err = o.addMark(m)
		}
		switch {
		case err == nil:
		case errors.Is(err, fs.ErrNotExist):
			return nil, rundir.NoRun(dir)
		case errors.Is(err, record.ErrVersion), errors.Is(err, marks.ErrVersion):
			return nil, say.Errorf("another version of pitot wrote the records in %s", dir).WithHint("read them with that version, or measure again")
		default:
			return nil, say.Errorf("the records in %s cannot be read: %v", dir, err).WithHint("copy them from where they came")
		}
	}
	if !o.begun && len(o.damage) > 0 {
		return nil, say.Errorf("the journal in %s is damaged where it says what was measured", dir).WithHint("measure again; the journal stays as it is")
	}
	if !o.begun {
		return nil, say.Errorf("%s has no records", dir).WithHint("it was stopped before its load began")
	}
	killed := false
	for point := range o.setups {
		w, ended := o.ends[point]
		o.last[point] = w.Ended
		killed = killed || !ended
	}
	if killed {
		o.findStamps(dir)
	}
	return o, nil
}

// findStamps finds the latest stamp of each point that came to no end.
func (o *outline) findStamps(dir string) {
	for f, err := range record.Frames(dir) {
		if err != nil {
			return
		}
		if _, ended := o.ends[f.Point]; ended || f.Point < 0 {
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

func (o *outline) addMark(m record.Mark) (err error) {
	if d, ok := record.DamageOf(&m); ok {
		if m.Point == d.FirstPoint { // one mark for each point that it may be of
			o.damage = append(o.damage, d)
		}
		return nil
	}
	if m.Point < 0 && (m.Name == marks.NamePoint || m.Name == marks.NameWindow) {
		return nil // what is asked besides the load has no plan
	}
	switch m.Name {
	case marks.NameRun:
		run, err := marks.DecodeRun(m.Data)
		if err != nil {
			return err
		}
		o.run, o.begun = *run, true
	case marks.NamePoint:
		o.setups[m.Point], err = readSetup(m.Data)
	case marks.NameWindow:
		var w marks.Window
		err = marks.Decode(m.Name, m.Data, &w)
		o.ends[m.Point] = w
	case marks.NameCrew:
		var c marks.Crew
		err = marks.Decode(m.Name, m.Data, &c)
		o.crews[m.Point] = c
	case marks.NameAlone:
		var a marks.Alone
		err = marks.Decode(m.Name, m.Data, &a)
		o.alone = time.Duration(a.Took)
	case marks.NameCapacity:
		run, err := marks.DecodeRun(m.Data)
		if err != nil {
			return err
		}
		o.found = run.Capacity
	case marks.NameEnd:
		o.end = new(marks.End)
		err = marks.Decode(m.Name, m.Data, o.end)
	}
	return err
}
