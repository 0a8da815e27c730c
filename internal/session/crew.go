package session

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"pitot/internal/config"
	"pitot/internal/loadgen"
	"pitot/internal/metrics"
	"pitot/internal/results/marks"
	"pitot/internal/results/record"
	"pitot/internal/results/result"
	"pitot/internal/say"
	"pitot/internal/target"
	"pitot/internal/telemetry/scrape"
	"pitot/internal/workload/seed"
)

// Crew are workers that carry out loads together: each sends its share of every point, and
// records it by itself. What is asked beforehand, what is decided and what comes of it are
// the session's, as of a load that it sends alone.
type Crew interface {
	// Size returns the number of workers, now or later.
	Size() int
	// Gather waits until the workers are there, and returns at once where they are. It is
	// asked before each load: when the target is known to be there, and before it is
	// prepared for the load.
	Gather(ctx context.Context) error
	// Who returns the workers that carry out loads from now on. If this process dies, those who
	// continue the run need it.
	Who() marks.Crew
	// Left brings the journal that a worker keeps whose coordinator died, into a directory. It
	// is told when that is kept elsewhere: [Crew.Collected].
	Left(ctx context.Context, who marks.Crew, rank int) (dir string, err error)
	Collected(who marks.Crew, rank int)
	// Forget deletes what a bus keeps of that run, when the journals are collected.
	Forget(who marks.Crew)
	// Carry has the load of a point carried out, and returns when every worker has ended
	// and all records are home. When ctx is done the workers stop early, as a load does. A
	// [LostError] may come with what there is of the load. With an [AbsentError] nothing of it
	// was sent.
	Carry(ctx context.Context, t *Task, with Sums) (*Carried, error)
}

// Task is a point as a worker is told of it: all that its share of the load follows from.
// There is no secret in it.
type Task struct {
	Verb   config.Verb `json:"verb"`
	Config []byte      `json:"config"` // the plan, as config.yaml
	Seed   uint64      `json:"seed"`
	Point  int32       `json:"point"`
	Draw   int         `json:"draw"` // see [config.Ask]

	Rate        float64          `json:"rate"`
	Concurrency int              `json:"concurrency"`
	Requests    int64            `json:"requests"`
	Duration    time.Duration    `json:"duration_ns"`
	Warmup      time.Duration    `json:"warmup_ns"`
	Burst       [2]time.Duration `json:"burst_ns"`
	Stage       string           `json:"stage"`
	GiveUp      bool             `json:"give_up"`
	WindowBy    time.Duration    `json:"window_by_ns"` // see [PointSpec]

	Found   target.Found `json:"target"`
	Workers int          `json:"workers"` // that share it: those of lower rank
	Asks    []byte       `json:"asks"`    // what requests ask, described: files have their digests there
}

// Sums holds what a crew needs of the session, since decisions rest on all workers together. No two
// goroutines call any of it at once.
type Sums struct {
	// Begun is called when the load begins, with the reading of this process's clock that
	// is time 0.
	Begun func(origin int64)
	// Home takes the records of a worker, whole frames of its journal in order, and keeps them.
	Home func(frames []byte) error
	// Extend is [loadgen.Config]'s, asked when all workers' requests of the window have ended
	// and their records are home. Nil for a window that stays as it is.
	Extend func(t0, t1 int64) (end int64, known bool)
	// GiveUp is loadgen.Config's, with the sum over the workers. Nil for never.
	GiveUp func(elapsed int64, underWay []float64) bool
	// Enough says whether a window would do that ended where a worker was last heard of
	// that was lost. The others then go on until their requests of it have ended; else they
	// stop at once.
	Enough func(t0, t1 int64) bool
	// Update shows how the load goes on. Nil for nobody who looks.
	Update func(Status)
}

// Carried describes the load of a point that several workers carried out.
type Carried struct {
	T0, T1 int64 // the window of all
	Ended  int64 // the last of them
	Begun  int64 // items that came by themselves
	GaveUp bool
	Gone   *int64 // since when every worker was refused
	Notes  []string

	Workers []result.Worker // by rank
	Spent   []Spent         // likewise, nothing of one that was lost
}

// Asks holds the questions of a worker to the decider for all: as [loadgen.Config] has them.
type Asks struct {
	Extend func(t0, t1 int64) (end int64, known bool)
	GiveUp func(elapsed int64, underWay []float64) bool
	Cutoff func() int64
}

// LostError says that a worker was lost, and with it records: of what it had sent, and that it
// had yet to send the rest. Nobody sends that in its place, since it may have been sent.
type LostError struct {
	Rank int
	Host string
	Why  string
	All  int // how many were lost, where none is left; 0 otherwise

	resumes bool // the verb has --resume
}

func (e *LostError) Error() string {
	if e.All > 1 {
		return fmt.Sprintf("all %d workers were lost, the last of them worker %d on %s (%s)", e.All, e.Rank, e.Host, e.Why)
	}
	if e.All == 1 {
		return fmt.Sprintf("the only worker of the load, on %s, was lost (%s)", e.Host, e.Why)
	}
	return fmt.Sprintf("worker %d on %s was lost (%s): its requests were not sent, and the load was stopped", e.Rank, e.Host, e.Why)
}

// AbsentError says that a load was not begun, since a worker is not there or cannot carry out its
// share.
type AbsentError struct{ Err error }

func (e *AbsentError) Error() string { return e.Err.Error() }
func (e *AbsentError) Unwrap() error { return e.Err }

// workerCount returns the number of workers that share a load. It is at most the number of users,
// or of requests that may be in flight. Where no schedule assigns requests, it is at most the
// number of requests.
func workerCount(workers int, l *config.Load) int {
	if l.Rate == 0 {
		workers = min(workers, l.Concurrency)
		if l.Requests > 0 {
			workers = int(min(int64(workers), l.Requests))
		}
	}
	if l.MaxInFlight > 0 {
		workers = min(workers, l.MaxInFlight)
	}
	return max(workers, 1)
}

// shareSeed is the seed of which worker sends what of a point.
func shareSeed(runSeed uint64, point int32) uint64 {
	return seed.At(seed.Point(runSeed, point), seed.Workload, betweenWorkers)
}

// betweenWorkers is the index of a workload's seed that workers are drawn from.
const betweenWorkers = 0x776f_726b_6572_7300

// byCrew has the load of a point carried out by the runner's crew.
func (s *Session) byCrew(ctx context.Context, x *pointLoad) (*carried, error) {
	l, index, setup, cfg, tap := &x.spec.Load, x.index, x.setup, x.cfg, x.tap
	r, p, t, j := s.runner, s.plan, s.Target, s.journal
	found, err := t.Found()
	if err != nil {
		return nil, err
	}
	asks, err := whatIsAsked(x.src)
	if err != nil {
		return nil, err
	}
	task := &Task{
		Verb: r.planVerb(), Config: p.YAML(r.planVerb()), Seed: p.Seed, Point: index, Draw: p.Ask.Draw,
		Rate: l.Rate, Concurrency: l.Concurrency, Requests: l.Requests, Duration: l.Duration, Warmup: l.Warmup, Burst: l.Burst,
		Stage: x.spec.Stage, GiveUp: cfg.GiveUp != nil, WindowBy: x.spec.WindowBy, Found: found, Workers: workerCount(s.workers.present.Size(), l), Asks: asks,
	}
	if n := s.workers.present.Size(); task.Workers < n {
		r.showLine(fmt.Sprintf("note: %d of %s send: a load has a user, a request, or one that may be in flight, for each", task.Workers, say.Plural(n, "worker")))
	}
	if setup.Sharing = 0; task.Workers > 1 {
		setup.Sharing = task.Workers
	}
	told := new(scrape.Watch)
	// Workers whose requests follow answers cannot know when all of them together have had
	// as many as the window counts: so they have some more, which come behind its end.
	counts := setup.Requests > 0 && (cfg.Arrivals == nil || cfg.Follow != nil)
	var dues []int64
	var spent Spent
	sums := Sums{
		Begun: func(origin int64) {
			s.noteBegin(index, setup)
			spent = Spent{Origin: origin, CPU: -cpuTime()}
			who := s.workers.present.Who()
			who.Workers = who.Workers[:task.Workers]
			writeMark(j, marks.NameCrew, index, marks.Encode(who))
			told = scrape.Begin(ctx, t.Sources, p.ScrapeInterval, index, j.AddSample)
			told.Start(ctx, origin)
		},
		Home: func(frames []byte) error {
			return j.TakeCarried(frames, index, func(rows []record.Row, chunks int64) {
				tap.addWorkerRows(rows, chunks)
				for i := range rows {
					if counts {
						dues = append(dues, rows[i].Due)
					}
				}
			})
		},
		Extend: cfg.Extend, GiveUp: cfg.GiveUp,
		Enough: func(t0, t1 int64) bool { return 2*(t1-t0) >= plannedWindow(setup) },
	}
	if r.Progress != nil {
		sums.Update = r.Progress.Update
	}
	c, err := s.workers.present.Carry(ctx, task, sums)
	lost := (*LostError)(nil)
	if errors.As(err, &lost); lost == nil && err != nil {
		return nil, err
	}
	if lost != nil {
		lost.resumes = slices.ContainsFunc(config.Settings(), func(x config.Setting) bool { return x.Name == "resume" && x.AppliesTo(r.planVerb()) })
	}
	if c == nil && lost == nil {
		return nil, errors.New("carry out load: the workers gave nothing")
	}
	if c == nil {
		return nil, &RecordsError{Err: lost}
	}
	for _, note := range c.Notes {
		r.showLine("note: " + note)
	}
	if r.Loaded != nil {
		spent.CPU += cpuTime()
		for _, w := range c.Spent {
			spent.CPU, spent.Wall = spent.CPU+w.CPU, max(spent.Wall, w.Wall)
		}
		spent.Workers = c.Spent
		r.Loaded(spent)
	}
	if c.T0 < 0 { // no worker told of its window
		c.T0 = setup.T0
	}
	c.T1 = max(c.T1, c.T0)
	if counts && !c.GaveUp && c.Gone == nil && ctx.Err() == nil {
		c.T1 = endOf(dues, c.T0, c.T1, setup.Requests)
	}
	out := &carried{
		window: marks.Window{T1: c.T1, Ended: c.Ended, GaveUp: c.GaveUp, Gone: c.Gone, Workers: c.Workers},
		begun:  c.Begun, told: told, close: func() {},
	}
	if lost != nil {
		out.lost = &RecordsError{Err: lost, told: true}
	}
	for _, w := range c.Workers {
		if w.Lost != nil {
			s.workers.mustered = nil // it takes part in no other load
		}
		if w.Lost != nil && lost == nil {
			r.showLine(fmt.Sprintf("note: worker %d on %s was lost (%s): the window ends where it was last heard of, %s after the load began", w.Rank, w.Host, w.Lost.Why, say.Duration(w.Lost.SinceBegin().Round(100*time.Millisecond))))
		}
	}
	if c.T0 != setup.T0 {
		out.window.T0 = &c.T0
	}
	if cfg.Follow == nil { // an id is then an item
		out.items = &itemized{}
	}
	return out, nil
}

// whatIsAsked describes what requests ask, so that two processes can tell whether it is the same.
func whatIsAsked(src *source) ([]byte, error) {
	about, err := json.Marshal(src.about)
	if err != nil {
		return nil, fmt.Errorf("describe workload: %w", err)
	}
	return about, nil
}

// plannedWindow returns the planned length of a window. Where only its requests are counted and no
// rate gives their time, it returns more than it can be.
func plannedWindow(s *metrics.Setup) int64 {
	switch {
	case s.T1 != loadgen.Never:
		return s.T1 - s.T0
	case s.Load.Rate != nil:
		return int64(float64(s.Requests) / *s.Load.Rate * 1e9)
	}
	return loadgen.Never
}

// endOf is when a window ends that begins at t0, ends at t1 at the latest and counts so many
// requests: when the one behind them is due.
func endOf(dues []int64, t0, t1, requests int64) int64 {
	dues = slices.DeleteFunc(dues, func(due int64) bool { return due < t0 || due >= t1 })
	slices.Sort(dues)
	for i := requests; i > 0 && i < int64(len(dues)); i++ {
		if dues[i] > dues[i-1] {
			return dues[i]
		}
	}
	return t1
}

// addWorkerRows keeps of a worker's records what is kept of this process's own.
func (t *tap) addWorkerRows(rows []record.Row, chunks int64) {
	t.chunks.Add(chunks)
	for i := range rows {
		t.note(&rows[i])
	}
}

// Hand is a worker: it carries out its share of the tasks that it is given, one after the
// other, and records it in a journal of its own.
type Hand struct {
	Runner *Runner
	Rank   int
	Dir    string // of its journal
	Copied bool   // that is read where it is, and comes to the disk with the run's
	// Others is the processor time of the run's other processes on this machine, nil where
	// there are none.
	Others func() time.Duration
	// Self is the worker as it stands: its machine and clock.
	Self func() result.Worker

	session *Session
	found   string // what the target was opened with

	// Of the task that is prepared:
	l     config.Load
	setup metrics.Setup
	cfg   loadgen.Config
	src   source
	tap   *tap
	wall  *loadgen.Wall
	point int32
}

// Open makes the journal, in a directory that is there.
func (h *Hand) Open() error {
	j, err := record.Create(h.Dir)
	if err != nil {
		return err
	}
	j.SetWorker(int32(h.Rank))
	if h.Copied {
		j.SyncAtEnd()
	}
	h.session = &Session{runner: h.Runner, Dir: h.Dir, journal: j}
	return nil
}

// Close ends the journal.
func (h *Hand) Close() error {
	if h.session.Target != nil {
		h.session.Target.Close()
	}
	return h.session.journal.Close()
}

// Journal returns the journal that it records in.
func (h *Hand) Journal() *record.Journal { return h.session.journal }

// Prepare makes its share of a task ready to be sent: the target, connections, the first
// requests. file is where the task's plan was written to; what it leaves out,
// being secret, comes from the environment.
func (h *Hand) Prepare(ctx context.Context, t *Task, file string, environ []string) error {
	p, err := config.ReadForWorker(t.Verb, file, environ)
	if err != nil {
		return say.Errorf("%v", err).WithHint("no secret is sent to a worker: give each PITOT_HEADER in its environment, keys with --key-env or --key-file, and what is none with --header-public")
	}
	p.Seed = t.Seed
	if err := p.Check(t.Verb); err != nil {
		return err
	}
	s := h.session
	if found := fmt.Sprintf("%s %+v", t.Config, t.Found); found != h.found {
		if s.Target != nil {
			s.Target.Close()
		}
		if s.Target, err = target.OpenFound(ctx, target.WantedBy(&p), &t.Found); err != nil {
			return err
		}
		h.found = found
	}
	s.plan, h.point, p.Ask.Draw = &p, t.Point, t.Draw
	spec := PointSpec{Load: p.Load, Stage: t.Stage, GiveUp: t.GiveUp}
	spec.Rate, spec.Concurrency, spec.Requests = t.Rate, t.Concurrency, t.Requests
	spec.Duration, spec.Warmup, spec.Burst = t.Duration, t.Warmup, t.Burst
	h.l = spec.Load
	if h.src, err = newSource(&p.Ask, s.Target, t.Point); err != nil {
		return err
	}
	if asks, err := whatIsAsked(&h.src); err != nil || !bytes.Equal(asks, t.Asks) {
		h.src.close()
		return cmp.Or[error](err, say.Errorf("a workload file differs on this worker").WithHint("every worker reads the files of the plan by itself: put the same ones under the same names everywhere"))
	}
	if h.cfg, err = scheduleConfig(&p, &h.l, s.Target, &h.src, t.Point); err != nil {
		h.src.close()
		return err
	}
	alignRows(&p.Ask, &h.src, h.cfg.Arrivals)
	if err := h.src.setArrivals(&p.Ask, &h.l, arrivalSeed(t.Seed, t.Point), h.cfg.Warmup); err != nil {
		h.src.close()
		return err
	}
	h.setup = plannedPoint(&p, s.Target, &spec, &h.src, &h.cfg, 0)
	giveUp(&h.cfg, &spec, h.setup.Residence, h.src.meanTurns(&p.Ask))
	h.cfg.WindowBy = int64(t.WindowBy)
	h.cfg = h.cfg.ForShare(loadgen.Share{Rank: h.Rank, Of: t.Workers, Seed: shareSeed(t.Seed, t.Point)})
	own := h.l
	own.Rate, own.Concurrency, own.MaxInFlight = h.l.Rate/float64(t.Workers), h.cfg.Users, h.cfg.Cap
	h.tap = newTap(s.journal)
	h.wall, err = s.prepareWall(ctx, &own, h.src, h.tap, t.Point, h.cfg.Share)
	if err != nil {
		h.src.close()
	}
	return err
}

// ProcessorTime returns the processor time that this process has used so far.
func ProcessorTime() time.Duration { return cpuTime() }

// Ended describes a worker's share of a task after its end.
type Ended struct {
	T0, T1 int64
	Ended  int64
	Begun  int64
	GaveUp bool
	Gone   *int64
	Notes  []string
	Spent  Spent
}

// Carry sends what was prepared, from a reading of the clock on.
func (h *Hand) Carry(ctx context.Context, origin int64, ask Asks) (*Ended, error) {
	j := h.session.journal
	defer h.Drop()
	ctx, lost := context.WithCancel(ctx)
	defer lost()
	go func() {
		select {
		case <-j.Failed():
			lost()
		case <-ctx.Done():
		}
	}()
	j.SetPoint(h.point)
	cfg := h.cfg
	asked := int64(loadgen.Never) // of which end of the window, all requests of which had ended
	cfg.Extend, cfg.Cutoff = func(t0, t1 int64) (end int64, known bool) {
		asked = t1
		return ask.Extend(t0, t1)
	}, ask.Cutoff
	if cfg.GiveUp != nil {
		cfg.GiveUp = ask.GiveUp
	}
	core := loadgen.NewCore(cfg)
	h.wall.BeginAt(origin)
	begin, cpu := time.Now(), cpuTime()
	writeMark(j, marks.NamePoint, h.point, marks.Encode(&h.setup))
	in := watchInstrument(j.AddSample, h.point, origin, h.Others)
	var world loadgen.World = h.wall
	if h.Runner.Progress != nil {
		world = &reporting{World: world, core: core, tap: h.tap, told: new(scrape.Watch), to: h.Runner.Progress}
	}
	loadgen.Run(ctx, core, world)
	in.stop()
	e := &Ended{Ended: world.Now(), Begun: core.BegunItems(), GaveUp: core.GaveUp(), Spent: Spent{Origin: origin, CPU: cpuTime() - cpu, Wall: time.Since(begin)}}
	e.T0, e.T1 = core.MeasuredWindow()
	if since, gone := core.TargetGone(); gone {
		e.Gone = &since
	}
	if n, why := h.wall.UncountedAnswers(); n > 0 {
		e.Notes = append(e.Notes, fmt.Sprintf("%s without a count of tokens: %v", say.Plural(n, "answer"), why))
	}
	if asked == e.T1 || ctx.Err() == nil { // else it was stopped, and another may be in its place
		self := result.Worker{Rank: h.Rank}
		if h.Self != nil {
			self = h.Self()
		}
		w := marks.Window{T0: &e.T0, T1: e.T1, Ended: e.Ended, GaveUp: e.GaveUp, Gone: e.Gone, Workers: []result.Worker{self}}
		writeMark(j, marks.NameWindow, h.point, marks.Encode(w))
	}
	if err := j.Flush(); err != nil {
		return nil, &RecordsError{Err: err}
	}
	return e, nil
}

// Drop gives up what was prepared, or what it was needed for.
func (h *Hand) Drop() {
	if h.wall != nil {
		h.wall.Close()
		h.src.close()
		h.wall = nil
	}
}
