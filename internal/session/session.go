package session

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"time"

	"pitot/internal/capacity"
	"pitot/internal/config"
	"pitot/internal/metrics"
	"pitot/internal/report/reasons"
	"pitot/internal/results/marks"
	"pitot/internal/results/metric"
	"pitot/internal/results/record"
	"pitot/internal/results/result"
	"pitot/internal/results/rundir"
	"pitot/internal/results/spill"
	"pitot/internal/say"
	"pitot/internal/session/hits"
	"pitot/internal/slo"
	"pitot/internal/target"
	"pitot/internal/workload"
)

// PointSpec describes one point of a session to measure: a load, and how to carry it out.
type PointSpec struct {
	config.Load

	Stage    string        // what the point is for, "" for nothing special
	GiveUp   bool          // an open loop that is hopeless may end early
	WindowBy time.Duration // since its begin, when the window ends at the latest; 0 for no such time
	EndBy    time.Duration // likewise, when all does, see [loadgen.Config]; not of a load that workers share

	// Counted has the requests of a simulated target counted and not recorded, which takes a
	// fraction of the work. What limits on requests need is known of each, but not its gaps.
	Counted bool

	// Decided ends a load that is counted, see [capacity.Probe]. It gets the violations of Claims.
	Claims  []slo.Claim
	Decided func(violations []int, left int) bool
}

// Session is a run directory to which points are added one after the other,
// each with prompts and arrivals of its own. A session that was ended early
// can go on later: the points it has are then given again instead of being
// measured.
type Session struct {
	Target *target.Target
	Dir    string

	runner  *Runner
	plan    *config.Plan
	dir     sessionDir
	journal *record.Journal // nil while a resumed session has nothing new: until then its files stay as they are
	store   *spill.Store    // of the points, see [Session.sharedStore]
	resumed resumedRun
	workers sessionWorkers
	cache   sentPrompts
	answers *answers // to questions that were sent alone, nil before and without any

	head    []byte // what is known of the run before its load, as a mark
	next    int32  // index of the next point
	counted int32  // loads that are counted and not recorded
	latest  int32  // index of the point whose load began last
	alone   time.Duration
	light   int64            // shortest mean E2E of a point so far, nanoseconds
	found   *result.Capacity // of a search
}

// sessionDir is the run directory, as far as the session made it.
type sessionDir struct {
	unlock func() // nil where the directory is not locked
	made   made   // what of the directory is this session's own making
	loaded bool   // some load has begun: there is something to keep
}

// resumedRun holds the points and requests of a resumed session that came before it was opened.
type resumedRun struct {
	points      []earlier // by index
	begun       int32     // points that had begun: some of their prompts were sent
	probes      int64     // requests that were sent besides the load
	serverStart string    // when the server's process began
	// concluded is the result of an earlier search that went to its end, in a session that
	// continues. Another program may search otherwise, and has nothing to add.
	concluded *result.Capacity
}

// sessionWorkers are the workers that carry a session's loads out.
type sessionWorkers struct {
	present   Crew    // of the present load, nil where this process carries it out
	mustered  Crew    // that was started for a load that needed it and has lost no worker, nil for none
	saidShort bool    // it was said that one process sends more than it reads well
	replaced  bool    // mustered workers are to come in the place of others, which was said
	perUser   float64 // tokens a second, at the last load of users that was measured; 0 before
}

// sentPrompts models the content of the target's prefix cache.
type sentPrompts struct {
	model  *hits.Simulation   // nil before the first load
	sent   []workload.Request // before a load, and not in the model yet
	warmed int                // of them, to warm the cache
}

// made is the part of a directory that a session has made.
type made int

const (
	nothing  made = iota // it goes on with a run that was there
	contents             // the directory was there, and empty
	all                  // the directory too
)

// earlier is a point that a session had when it was opened.
type earlier struct {
	setup metrics.Setup
	fold  *metrics.Fold
}

// Measured is a point with what a search counts in it.
type Measured struct {
	result.Point
	Index  int
	window *windowSeen    // of a load that was looked at while it went on, nil of others
	Extent metrics.Extent // of all that was recorded of it
	claims func([]slo.Claim, int) metrics.Violations
}

// CountViolations counts the requests that violate claims, in blocks too.
func (m *Measured) CountViolations(claims []slo.Claim, blocks int) metrics.Violations {
	return m.claims(claims, blocks)
}

// Open asks the target, makes the run directory and writes down what is
// planned. With p.Resume the directory may hold an earlier session of the same
// plan. An error may come with a directory.
func (r *Runner) Open(ctx context.Context, p *config.Plan) (_ *Session, err error) {
	s := &Session{runner: r, plan: p}
	defer func() {
		if err != nil {
			s.letGo()
		}
	}()
	resumed := p.Resume && p.Out != "" && rundir.StateOf(p.Out) >= rundir.Measured
	switch {
	case resumed:
		if err := s.lockDir(p.Out); err != nil {
			return nil, err
		}
		if err := s.collectRecords(ctx); err != nil {
			return nil, err
		}
		if err := s.readPoints(); err != nil {
			return nil, err
		}
	case !p.SeedSet:
		p.Seed = freshSeed()
	}
	// What a user asked for is looked at before the server is asked anything.
	if !resumed {
		if err := checkVacant(p.Out); err != nil {
			return nil, err
		}
	}
	if err := plannedFiles(p); err != nil {
		return nil, err
	}
	if err := SuitsName(p); err != nil {
		return nil, err
	}
	src, err := fromFile(&p.Ask, unknownTarget(), 0)
	if err != nil {
		return nil, err
	}
	src.close()
	t, err := target.Open(ctx, target.WantedBy(p), r.showLine)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			t.Close()
		}
	}()
	if err := checkAPI(p, t.API); err != nil {
		return nil, err
	}
	for _, a := range t.Adaptations {
		r.showLine("note: " + reasons.AdaptationText(a))
	}
	for _, n := range t.Notes {
		r.showLine("note: " + n)
	}
	var odd []workload.Finding
	if !r.Figures {
		odd = Lint(ctx, p, t)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	for _, f := range odd {
		line := "note: " + f.Name + ": " + f.Text
		if f.Hint != "" {
			line += " (" + f.Hint + ")"
		}
		r.showLine(line)
	}
	if src.Source == nil {
		if src, err = newSource(&p.Ask, t, 0); err != nil {
			return nil, err
		}
		src.close()
	}
	s.Target = t
	if resumed {
		t.ProbedBefore(s.resumed.probes)
		if now := t.Server[metric.ProcessStart]; now != "" && s.resumed.serverStart != "" && now != s.resumed.serverStart {
			r.showLine("note: the server has been restarted since: what follows is measured on another launch of it")
		}
		s.Dir = p.Out
		return s, nil
	}
	existed := p.Out != "" && exists(p.Out)
	if s.Dir, err = r.makeDir(p, t); err != nil {
		return s, err
	}
	if s.dir.made = all; existed {
		s.dir.made = contents
	}
	if err = s.lockDir(s.Dir); err != nil {
		return nil, err
	}
	if s.journal, err = record.Create(s.Dir); errors.Is(err, fs.ErrExist) { // another run began at the same moment
		return nil, notEmpty(s.Dir)
	} else if err != nil {
		return s, fmt.Errorf("open run directory: %w", err)
	}
	s.head = s.describeRun(src, time.Now())
	probes, first := s.Target.DrainProbes(), int32(0)
	if len(probes) > 0 { // with them: behind a point's own record lost ones pass for requests of the point
		first = record.Probing
	}
	writeMark(s.journal, marks.NameRun, first, s.head)
	s.recordProbes(probes)
	return s, nil
}

// describeRun returns what is known of the run before its load, as a mark.
func (s *Session) describeRun(src source, started time.Time) []byte {
	head := s.runner.resultHead(s.plan, s.Target, started)
	head.Workload, _ = json.Marshal(s.runner.describeSetup(s.plan, s.Target, src))
	return marks.EncodeHead(&head)
}

// lockDir takes the directory for this session alone: two that write to one would
// destroy each other's records. What is locked is the plan, which every directory
// of a run has and none changes; the lock goes with the process, so a session that
// was killed leaves none.
func (s *Session) lockDir(dir string) (err error) {
	s.dir.unlock, err = rundir.LockDir(dir)
	if errors.Is(err, rundir.ErrLive) {
		return StillGoingOn(dir)
	}
	if err == nil {
		rundir.RemoveTemps(dir)
	}
	return nil // whoever reads the plan next says what is wrong with it
}

func (s *Session) letGo() {
	s.store.Close()
	if s.dir.unlock != nil {
		s.dir.unlock()
		s.dir.unlock = nil
	}
}

// sharedStore returns the store that all points of the session share.
func (s *Session) sharedStore() *spill.Store {
	if s.store == nil {
		s.store = newStore(cmp.Or(s.Dir, s.plan.Out))
	}
	return s.store
}

// StillGoingOn says that another process has the directory: one that measures, or
// one that finishes a run that was killed.
func StillGoingOn(dir string) error {
	return say.Errorf("the run in %s is still going on, or another process finishes it", dir).WithHint("wait for its end, or stop it with Ctrl-C")
}

// Repeat measures the plan's own load, as often as it says. It is for sessions
// that measure nothing else.
func (s *Session) Repeat(ctx context.Context) error {
	n := s.plan.Repeat
	if s.plan.Cache == config.CacheBoth {
		n = 2
	}
	for i := range n {
		spec := s.NewSpec()
		spec.Stage = cacheStage(&s.plan.Ask, int32(i))
		setup, err := s.measurePoint(ctx, &spec, int32(i))
		if err != nil || ctx.Err() != nil {
			return err
		}
		if setup.Gone != nil {
			return s.Target.WentAway(time.Duration(*setup.Gone))
		}
	}
	return nil
}

// MeasureAlone is about how long one request takes on an idle target. It asks the
// target if that is not known yet and may be asked.
//
// A session that goes on gives what it gave before: what is measured next
// follows from it.
func (s *Session) MeasureAlone(ctx context.Context) (time.Duration, error) {
	if s.alone > 0 {
		return s.alone, ctx.Err()
	}
	if s.Target.Residence == 0 && !s.plan.NoProbe {
		src, err := newSource(&s.plan.Ask, s.Target, 0)
		if err != nil {
			return 0, err
		}
		defer src.close()
		s.Target.SendWarmup(ctx, src, target.Primings)
	}
	if s.alone = s.Target.Residence; s.alone == 0 {
		s.alone = unknownResidence
	}
	if err := s.checkWritable(); err != nil {
		return 0, err
	}
	s.noteProbes()
	writeMark(s.journal, marks.NameAlone, 0, marks.Encode(marks.Alone{Took: int64(s.alone)}))
	return s.alone, ctx.Err()
}

// sessionStats returns the session statistics of a load of the plan, where requests follow one
// another.
func (s *Session) sessionStats(closed bool) (capacity.Sessions, error) {
	a := &s.plan.Ask
	if !a.HasConversations() {
		return capacity.Sessions{}, nil
	}
	x := capacity.Sessions{Turns: a.MeanTurns(), Cluster: a.MeanCluster()}
	if !a.IsGenerated() && a.Recorded == nil { // how long a file's conversations are is known when it is open
		src, err := newSource(a, s.Target, 0)
		if err != nil {
			return x, err
		}
		defer src.close()
		x.Turns = src.meanTurns(a)
		x.Cluster = max(x.Turns, min(x.Cluster, 2*x.Turns))
	}
	x.Pause, x.Even = max(x.Turns-1, 0)*a.MeanThink().Seconds(), a.EvenThink()
	if closed {
		x.Pause += a.Think.Mean().Seconds()
	}
	return x, nil
}

// unknownResidence stands for how long a request takes where none may be sent to find out.
const unknownResidence = time.Second

// hasEarlierPoint says that the next point was measured before, by what the session resumes.
func (s *Session) hasEarlierPoint() bool { return int(s.next) < len(s.resumed.points) }

// NewSpec returns the plan's own load, for the caller to change.
func (s *Session) NewSpec() PointSpec { return PointSpec{Load: s.plan.Load} }

// Measure measures the next point. When ctx ends the point is cut short: it
// counts as stopped by the user, and ctx.Err says so. What is returned is then of the
// requests that had time to end.
func (s *Session) Measure(ctx context.Context, spec PointSpec) (*Measured, error) {
	if spec.Counted {
		return s.countLoad(ctx, spec)
	}
	index := s.next
	s.next++
	if int(index) < len(s.resumed.points) {
		e := s.resumed.points[index]
		if had, want := e.setup.Load, describeLoad(&s.plan.Ask, &spec.Load); !sameLoad(had, want) || e.setup.Stage != spec.Stage || e.setup.Requests != spec.Requests {
			return nil, say.Errorf("the run in %s cannot be resumed: its point %d had another load", s.Dir, index+1).WithHint("start again with another --out")
		}
		return s.measuredPoint(e.fold, index), nil
	}
	if err := s.checkWritable(); err != nil {
		return nil, err
	}
	offset, err := s.journal.Offset()
	if err != nil {
		return nil, &RecordsError{Err: err}
	}
	setup, err := s.measurePoint(ctx, &spec, index)
	if err != nil {
		return nil, err
	}
	if setup == nil { // stopped before its load began
		return nil, ctx.Err()
	}
	if err := s.journal.Flush(); err != nil {
		return nil, &RecordsError{Err: err}
	}
	setups := map[int32]metrics.Setup{index: *setup}
	metrics.SettleWindows(setups, record.RowsSince(s.Dir, offset))
	if ctx.Err() != nil {
		cut := setups[index]
		cut.T1 = endedBy(&cut, record.RowsSince(s.Dir, offset))
		setups[index] = cut
	}
	fold := metrics.NewFoldIn(s.sharedStore(), setups[index])
	for f, err := range record.FramesSince(s.Dir, offset) {
		if err != nil {
			return nil, fmt.Errorf("read records: %w", err)
		}
		if f.Point == index {
			fold.Add(f)
		}
	}
	return s.measuredPoint(fold, index), nil
}

// endedBy is up to when the requests of a window that was cut short had time to end: as much before
// the cut as the longest took that ended. One that came earlier and had not ended counts as one
// that did not end well: a server that never answers some is not taken for one that answers all.
// Where none ended nothing is known.
func endedBy(setup *metrics.Setup, rows iter.Seq2[record.Frame, error]) int64 {
	longest := int64(-1)
	for f, err := range rows {
		if err != nil {
			break // what cannot be read is told elsewhere
		}
		for i := range f.Rows {
			if r := &f.Rows[i]; r.Due >= setup.T0 && r.Due < setup.T1 && r.Outcome == record.OK {
				longest = max(longest, r.Done-r.Due)
			}
		}
	}
	if longest < 0 {
		return setup.T0
	}
	return max(setup.T0, min(setup.T1, setup.Ended-longest))
}

// firstCounted is the index of the first load that is counted: points have lower ones, and
// loads of one index have the same arrivals and prompts.
const firstCounted = 1 << 24

// countLoad measures a load that is [PointSpec.Counted]. A resumed session counts its loads again.
func (s *Session) countLoad(ctx context.Context, spec PointSpec) (*Measured, error) {
	index := firstCounted + s.counted
	s.counted++
	kept := &keptRecords{point: index, rows: true}
	inner, stop := context.WithCancel(ctx)
	defer stop()
	var seen *windowSeen
	if spec.Decided != nil && spec.Rate > 0 {
		spec.Requests, spec.Duration = 0, secondsToDuration(float64(spec.Requests)/spec.Rate)
		seen = spec.watchWindow()
		seen.stop = stop
		kept.windows = []*windowSeen{seen}
	}
	fold, err := s.runner.inMemory(inner, s.plan, s.Target, inMemoryPoint{&spec, index, kept, s.light, s.sharedStore()})
	if err != nil {
		return nil, err
	}
	m := s.measuredPoint(fold, index)
	m.Index, m.Extent.Events, m.window = Unrecorded, kept.chunks, seen
	return m, ctx.Err()
}

// Unrecorded is the index of a load of which nothing is.
const Unrecorded = -1

func (s *Session) measuredPoint(fold *metrics.Fold, index int32) *Measured {
	m := &Measured{Point: fold.Point(), Index: int(index), Extent: fold.DataExtent(), claims: fold.CountViolations}
	if e := m.Metrics.SummaryOf(metric.E2E); e != nil && e.Mean != nil {
		if took := int64(*e.Mean * 1e6); s.light == 0 || took < s.light {
			s.light = took
		}
	}
	if x, users := m.Throughput.OutputTokensPerS, m.Load.Concurrency; x != nil && users != nil {
		s.workers.perUser = *x / float64(max(*users, 1))
	}
	return m
}

func sameLoad(a, b result.Load) bool {
	x, _ := json.Marshal(a)
	y, _ := json.Marshal(b)
	return bytes.Equal(x, y)
}

// Close ends the session and gives the result of all its points. stopped says
// that the user ended it; err is why it ends early, nil if it does not.
func (s *Session) Close(stopped bool, err error) (*result.Run, error) {
	defer s.letGo()
	defer s.Target.Close()
	if s.journal == nil && err != nil { // nothing new: what there was stays as it was
		return nil, err
	}
	if err != nil && s.dir.made != nothing && !s.dir.loaded { // refused: there is nothing to keep
		s.removeMade()
		return nil, err
	}
	if e := s.checkWritable(); e != nil {
		return nil, errors.Join(err, e)
	}
	s.noteProbes()
	if s.found != nil {
		writeMark(s.journal, marks.NameCapacity, s.latest, marks.EncodeCapacity(s.found))
	}
	writeMark(s.journal, marks.NameEnd, s.latest, marks.Encode(marks.End{Ended: time.Now().Format(time.RFC3339), Interrupted: stopped}))
	if e := s.journal.Close(); e != nil && err == nil {
		err = &RecordsError{Err: e}
	}
	lost := (*RecordsError)(nil)
	incomplete := errors.As(err, &lost)
	run, e := makeResults(s.Dir, incomplete && !lost.told, s.sharedStore())
	if run != nil {
		for _, n := range s.Target.FitDepartures(target.ObservedRange(run.Points)) {
			s.runner.showLine("note: " + n)
		}
	}
	if incomplete {
		return run, err // that the rest could not be written either is no news
	}
	return run, errors.Join(err, e)
}

// ConcludedCapacity returns the result of the search of a session that continues, nil if it had
// none. If there is one, nothing more needs measuring.
func (s *Session) ConcludedCapacity() *result.Capacity { return s.resumed.concluded }

// SetFound notes the result of a search. It is kept with the records, so that finishing the run
// finds it.
func (s *Session) SetFound(c *result.Capacity) { s.found = c }

// noteBegin notes that the load of a point does.
func (s *Session) noteBegin(point int32, setup *metrics.Setup) {
	s.dir.loaded, s.latest = true, point
	s.runner.began.Store(true)
	if s.Target.Kind != "sim" {
		setup.Began = time.Now()
	}
	s.journal.AddPlan(
		record.Mark{Point: point, Name: marks.NameRun, Data: s.head},
		record.Mark{Point: point, Name: marks.NamePoint, Data: marks.Encode(setup)})
}

// removeMade takes away what a session has made that came to no load, so that the
// next one finds the place as this one did.
func (s *Session) removeMade() {
	_ = s.journal.Close()
	s.letGo()
	for _, name := range []string{rundir.Journal, rundir.Config} {
		_ = os.Remove(filepath.Join(s.Dir, name))
	}
	if s.dir.made == all {
		_ = os.Remove(s.Dir) // unless others have put something there
	}
	s.Dir = ""
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
