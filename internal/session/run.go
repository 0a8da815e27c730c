// Package session takes a plan to a result: it opens the target and the run
// directory, runs the load, and measures what was recorded.
package session

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"runtime/debug"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"pitot/internal/client"
	"pitot/internal/client/stamp"
	"pitot/internal/config"
	"pitot/internal/cost"
	"pitot/internal/loadgen"
	"pitot/internal/metrics"
	"pitot/internal/metrics/validity"
	"pitot/internal/results/marks"
	"pitot/internal/results/record"
	"pitot/internal/results/result"
	"pitot/internal/results/rundir"
	"pitot/internal/say"
	"pitot/internal/session/hits"
	"pitot/internal/sim"
	"pitot/internal/target"
	"pitot/internal/telemetry"
	"pitot/internal/telemetry/scrape"
	"pitot/internal/workload"
	"pitot/internal/workload/arrival"
	"pitot/internal/workload/seed"
	"pitot/internal/workload/token"
)

// Runner does the runs that plans describe.
type Runner struct {
	Verb     config.Verb // whose settings are kept in config.yaml, "" for those of run
	Command  []string    // as typed, for the record
	Version  result.Version
	Progress Progress    // nil for none
	Loaded   func(Spent) // called with what each load took, may be nil
	// Primed is called before the first load with what a request takes alone, 0 where none was
	// answered. Its error ends the run. It may be nil.
	Primed func(residence time.Duration) error
	// Late is by how much the client of a simulated target is late with each request of a
	// point, and with what it reads; nil: never. So a starved client is simulated.
	Late func(point int32) time.Duration
	// Figures says that nothing but the run's figures is asked for, as of a forecast: what a
	// prefix cache is expected to have had is not worked out, and the workload is not judged.
	Figures bool
	Crew    Crew // carries loads out, nil where this process does
	// Muster has so many workers of this machine carry loads out, in place of those it gave
	// before. It is asked where a load with --fleet auto needs them; nil for never.
	Muster func(workers int) (Crew, error)
	Cores  int // of this machine, for these, 0 for as many as it says it has

	began atomic.Bool // some load has
}

// Began reports whether a load has begun: whether there is something to keep. It may be called
// from any goroutine.
func (r *Runner) Began() bool { return r.began.Load() }

// planVerb returns the verb that config.yaml is for.
func (r *Runner) planVerb() config.Verb { return cmp.Or(r.Verb, config.VerbRun) }

// Spent holds what the load of a point used of the processes that carried it out.
type Spent struct {
	Origin  int64         // reading of this process's clock that is the point's time 0
	CPU     time.Duration // processor time of all
	Wall    time.Duration
	Workers []Spent // of a load that workers carried out, by rank, each by its own clock
}

// Progress shows how a run goes on; it is called from one goroutine at a time.
type Progress interface {
	ShowLine(line string)
	Update(Status)
}

// Status holds the progress of a point.
type Status struct {
	Phase            string        // "priming" (nothing else is known then), "warm-up", "measuring" or "finishing"
	At, T0, T1       time.Duration // now and the window; T1 is negative while it is not known
	Sent, OK, Failed int64
	InFlight, Held   int64
	Chunks           int64
	TTFT, TPOT       time.Duration // medians of the last requests, 0 if there were none
	Waiting, KVUse   *float64      // requests that wait in the server, and the share of its KV cache in use, as it told last; nil where it does not
}

// Run does the whole of a plan and gives its result and directory. An error
// may come with a directory: what was measured is in there.
func (r *Runner) Run(ctx context.Context, p *config.Plan) (*result.Run, string, error) {
	s, err := r.Open(ctx, p)
	if err != nil {
		if s == nil {
			return nil, "", err
		}
		return nil, s.Dir, err
	}
	err = s.Repeat(ctx)
	run, err := s.Close(ctx.Err() != nil, err)
	return run, s.Dir, err
}

// RecordsError says that records could not be written: how many are missing
// is not known, so the measurement is INVALID.
type RecordsError struct {
	Err error

	told bool // what is missing has rows, and a check of its own
}

func (e *RecordsError) Error() string {
	var lost *LostError
	if errors.As(e.Err, &lost) {
		return lost.Error()
	}
	return "write records: " + e.Err.Error()
}

// Hint says what to do.
func (e *RecordsError) Hint() string {
	var lost *LostError
	if errors.As(e.Err, &lost) {
		hint := "see what it says where it ran, and measure again"
		if lost.All > 1 {
			hint = "what ended all of them? see what they say where they ran, whether memory was enough and the network was there; then measure again"
		}
		if lost.resumes {
			hint += "; with --resume the points before it are kept"
		}
		return hint
	}
	if errors.Is(e.Err, record.ErrInterference) {
		return "measure again, with --out where nothing else writes or cleans up"
	}
	return "free space where the run directory is, or choose another place with --out"
}

// Unwrap gives the cause.
func (e *RecordsError) Unwrap() error { return e.Err }

func (r *Runner) showLine(line string) {
	if r.Progress != nil {
		r.Progress.ShowLine(line)
	}
}

func freshSeed() uint64 {
	var b [8]byte
	_, _ = rand.Read(b[:])
	return binary.LittleEndian.Uint64(b[:]) >> seedSpare
}

// seedSpare are the bits that a seed leaves out so that it fits every JSON reader's
// numbers.
const seedSpare = 11

// LaunchSeed is the seed of the nth launch of an embedded target that is measured
// with a seed, counted from 1.
func LaunchSeed(of uint64, n int) uint64 {
	const stream = 0x6c61756e63686573
	return seed.At(of, stream, uint64(n)) >> seedSpare
}

// makeDir makes the run directory and writes the plan into it.
func (r *Runner) makeDir(p *config.Plan, t *target.Target) (string, error) {
	dir := p.Out
	if dir == "" {
		dir = rundir.DefaultPath(time.Now(), client.Redact(t.Options.Model, t.Secret))
	}
	err := rundir.NewDir(dir)
	for n := 2; p.Out == "" && errors.Is(err, rundir.ErrNotEmpty) && n < 100; n++ { // another run of this second
		again := fmt.Sprintf("%s-%d", dir, n)
		if err = rundir.NewDir(again); err == nil {
			dir = again
		}
	}
	if err != nil {
		if errors.Is(err, rundir.ErrNotEmpty) {
			return "", notEmpty(dir)
		}
		return "", say.Errorf("%v", err).WithHint("choose another place with --out")
	}
	// Whoever writes the plan has the directory: it is never replaced.
	if err = rundir.WriteNew(dir, rundir.Config, p.YAML(r.planVerb())); errors.Is(err, fs.ErrExist) {
		return "", notEmpty(dir)
	}
	return dir, err
}

// resultHead is the part of run.json that is known before the load.
func (r *Runner) resultHead(p *config.Plan, t *target.Target, started time.Time) result.Run {
	var settings map[string]string // of an embedded target
	if t.Kind != config.KindServer {
		if _, simulated, err := config.ParseSimulated(p.Spec); err == nil {
			settings = simulated.ChangedSettings()
		}
	}
	run := result.Run{
		Schema: result.Schema, Pitot: r.Version, Command: redactCommand(r.Command, t.Secret), Seed: p.Seed,
		Started: started.Format(time.RFC3339), Environment: environment(),
		Target: result.Target{Spec: p.Spec, Kind: t.Kind, URL: t.URL, API: t.API.Name(), Model: client.Redact(t.Options.Model, t.Secret), Server: redactAll(t.Server, t.Secret), Settings: settings, Adaptations: t.Adaptations},
		Notes:  p.KeptNotes(),
		Launch: p.Launch,
	}
	if told, _ := t.EngineChanges(); told != "" {
		run.Notes["replica_events"] = told
	}
	if shares := p.VerifiedShares(); !shares.IsNone() && t.Kind != "sim" {
		run.Notes["verify"] = shares.String()
	}
	run.Environment.Stamps = stampSource(t)
	return run
}

// stampSource says where the chunk times come from.
func stampSource(t *target.Target) string {
	switch {
	case t.Kind == "sim":
		return "virtual"
	case stamp.Kernel && t.Dialer.Stamps && !t.Dialer.Endpoint.Unix:
		return "kernel"
	}
	return "user"
}

// redactAll takes secrets out of what a server tells of itself: it may repeat
// what it was sent.
func redactAll(facts map[string]string, secret string) map[string]string {
	out := make(map[string]string, len(facts))
	for name, value := range facts {
		out[name] = client.Redact(value, secret)
	}
	return out
}

// redactCommand takes secrets out of a command line.
func redactCommand(argv []string, secret string) []string {
	out := config.RedactArgs(argv)
	for i, a := range out {
		out[i] = client.Redact(a, secret)
	}
	return out
}

// described is the workload section of run.json.
type described struct {
	workload.Description
	Sampling map[string]any `json:"sampling"`
}

func (r *Runner) describeSetup(p *config.Plan, t *target.Target, s source) described {
	d := described{Description: s.about, Sampling: map[string]any{"temperature": 0, "stream": t.Options.Stream}}
	if t.Options.NoTemperature {
		delete(d.Sampling, "temperature")
	}
	switch {
	case p.Stop.Natural:
		if d.Sampling["stop"] = "natural"; p.Stop.Most > 0 {
			d.Sampling["max_tokens"] = p.Stop.Most
		}
	default:
		if t.Options.IgnoreEOS {
			d.Sampling["ignore_eos"] = true
		}
		if t.Options.MinTokens {
			d.Sampling["min_tokens"] = "output"
		}
	}
	if t.Options.RunningUsage && t.Options.Stream && !t.Options.NoUsage {
		d.Sampling["stream_options"] = map[string]bool{"include_usage": true, "continuous_usage_stats": true}
	}
	if fields := p.PublicFields(); fields != "" {
		var over map[string]any
		if json.Unmarshal([]byte(fields), &over) == nil {
			maps.Copy(d.Sampling, over)
		}
	}
	headers := map[string]string{}
	for _, h := range p.Headers {
		name, value, _ := strings.Cut(h, "=")
		if !config.PublicHeader(name) {
			value = "[redacted]"
		}
		headers[name] = value
	}
	for _, h := range p.PublicHeaders {
		name, value, _ := strings.Cut(h, "=")
		headers[name] = value
	}
	if len(headers) > 0 {
		d.Sampling["headers"] = headers
	}
	return d
}

// source is a point's workload with what belongs to it.
type source struct {
	workload.Source
	about   workload.Description
	cold    bool
	shared  []workload.Request // that ask for what is shared, once, before the load
	prompts int                // distinct ones, 0 for no end of them
	exact   bool               // output lengths are held to
	turns   float64            // of a file's conversations on average, 0 where the plan says it
	close   func()
	check   loadgen.Checker // knows the answers of questions among them, nil without any
}

// meanTurns returns the mean number of requests for each that comes by itself.
func (s *source) meanTurns(p *config.Ask) float64 { return cmp.Or(s.turns, p.MeanTurns()) }

// newSource gives the workload of a point: new words and a new order for each.
func newSource(p *config.Ask, t *target.Target, point int32) (source, error) {
	src, err := sourceOf(p, t, point)
	switch {
	case err != nil:
	case p.Pooling && p.Mix == nil: // its classes have it each
		src.batchRequests(p, t, point)
	case p.Stop.Natural:
		src.Source, src.exact = p.Stop.Of(src.Source), false
	}
	return src, err
}

// promptNonce returns the number that makes the prompts of a point differ from those of all others.
func promptNonce(p *config.Ask, point int32) uint64 {
	return seed.At(seed.Point(p.Seed, point), seed.Nonce, uint64(p.Draw))
}

// sourceOf is the workload with answers as long as they are planned.
func sourceOf(p *config.Ask, t *target.Target, point int32) (source, error) {
	if p.Mix != nil {
		return fromMix(p, point, func(one *config.Ask, point int32) (source, error) { return newSource(one, t, point) })
	}
	if !p.IsGenerated() {
		return fromFile(p, t, point)
	}
	stage := cacheStage(p, point)
	s := seed.Point(p.Seed, pairedWith(stage, point))
	reuse := workload.Reuse{Share: p.Reused(), Block: cmp.Or(t.KV.BlockSize, hits.UsualBlock)}
	w, err := workload.NewRandom(workload.RandomConfig{
		Reuse: reuse, Cold: stage == result.StageCold,
		Preset: p.WholePreset(),
		Input:  p.Input, Output: p.Output, Prefix: p.Prefix, PrefixShare: p.PrefixShare, Tree: p.Tree, Correlation: p.Correlation,
		Seed: seed.At(s, seed.Workload, 0), Nonce: promptNonce(p, point), Calibration: t.Calibration,
	})
	if err != nil {
		return source{}, say.Errorf("%v", err)
	}
	var shared []workload.Request
	if p.Cache == config.CacheWarm || stage == result.StageWarm || reuse.Share > 0 {
		most := workload.MaxLength
		if limit, err := strconv.Atoi(t.Server["max_model_len"]); err == nil {
			most = limit - 1
		}
		if shared, err = w.SharedRequests(most); err != nil {
			return source{}, say.Errorf("%v", err)
		}
	}
	cold := p.Prefix == 0 && p.Tree == nil && reuse.Share == 0 || stage == result.StageCold
	about := w.Describe(t.Options.Vocab)
	about.Cache = p.Cache
	src := source{Source: w, about: about, cold: cold, shared: shared, close: func() {}}
	if !p.HasConversations() {
		return src, nil
	}
	v, err := workload.NewConversations(workload.ConversationConfig{
		First: w, Turns: p.Turns, Input: p.FurtherInput(), Output: p.Output, Think: p.Think, System: p.System, SubAgents: p.SubAgents, Planned: p.History == config.HistoryPlanned,
		Seed: seed.At(s, seed.Workload, 0), Nonce: seed.At(s, seed.Nonce, 0), Calibration: t.Calibration,
	})
	if err != nil {
		return source{}, say.Errorf("%v", err).WithHint(say.HintOf(err))
	}
	src.Source, src.about.Conversations, src.cold = v, v.Describe(), false
	if p.Cache == config.CacheWarm {
		src.shared = v.SharedRequests(shared)
	}
	return src, nil
}

// cacheStage is which of the two points with --cache both a point is, "" without.
func cacheStage(p *config.Ask, point int32) string {
	if p.Cache != config.CacheBoth {
		return ""
	}
	return []string{result.StageCold, result.StageWarm}[point%2]
}

// warmCache puts what requests share into the cache of an engine in virtual time.
func warmCache(e sim.Engine, shared []workload.Request) sim.Engine {
	if w, ok := e.(sim.Warmable); ok {
		for i := range shared {
			prompt := max(shared[i].Input, 1)
			w.Warm(sim.Job{Prompt: prompt, Content: loadgen.PromptContent(&shared[i], prompt)})
		}
	}
	return e
}

// pointLoad is the load of a point that is ready to be carried out.
type pointLoad struct {
	spec  *PointSpec
	index int32
	setup *metrics.Setup
	cfg   *loadgen.Config
	tap   *tap
	src   *source
}

// measurePoint measures one point and returns the setup to read its records with; nil if it was
// stopped before its load began.
func (s *Session) measurePoint(ctx context.Context, spec *PointSpec, index int32) (*metrics.Setup, error) {
	r, p, t, j, l := s.runner, s.plan, s.Target, s.journal, &spec.Load
	if err := s.gather(ctx, l); err != nil {
		return nil, err
	}
	src, err := newSource(&p.Ask, t, index)
	if err != nil {
		return nil, err
	}
	defer src.close()
	if t.Kind != "sim" && !p.NoProbe && t.Residence == 0 {
		if r.Progress != nil {
			r.Progress.Update(Status{Phase: "priming"})
		}
		s.cache.sent = append(s.cache.sent, t.SendWarmup(ctx, src, target.Primings)...)
		if ctx.Err() != nil {
			return nil, nil
		}
		if r.Primed != nil {
			if err := r.Primed(t.Residence); err != nil {
				return nil, err
			}
		}
	}
	if len(src.shared) > 0 {
		answered := src.shared
		if t.Kind != config.KindSim {
			if r.Progress != nil {
				r.Progress.Update(Status{Phase: "priming"})
			}
			answered = t.Warm(ctx, src.shared)
			if ctx.Err() != nil {
				return nil, nil
			}
			if n := len(src.shared) - len(answered); n > 0 {
				r.showLine(fmt.Sprintf("note: %s of %s that send the shared prefixes failed: the cache is not as warm as requested", say.Plural(n, "request"), say.Count(len(src.shared))))
			}
		}
		s.cache.sent = append(s.cache.sent, answered...)
		s.cache.warmed = len(answered)
	}
	cfg, err := scheduleConfig(p, l, t, &src, index)
	if err != nil {
		return nil, err
	}
	alignRows(&p.Ask, &src, cfg.Arrivals)
	if err := src.setArrivals(&p.Ask, l, arrivalSeed(p.Seed, index), cfg.Warmup); err != nil {
		return nil, err
	}
	if err := s.sendQuestions(ctx); err != nil || ctx.Err() != nil {
		return nil, err
	}
	setup := plannedPoint(p, t, spec, &src, &cfg, s.light)
	setup.Seeded = setup.Seeded || index < s.resumed.begun && t.Kind == "http" // it is measured again
	if s.answers != nil {
		c := s.answers.addQuestions(src.Source, seed.Point(p.Seed, index))
		src.Source, src.check, setup.Alone = c, c, s.answers.alone
	}
	// A load that leaves no trace, or one that something interferes with, is not
	// worth going on with.
	ctx, lost := context.WithCancel(ctx)
	defer lost()
	go func() {
		select {
		case <-j.Failed():
			lost()
		case <-ctx.Done():
		}
	}()
	s.noteProbes()
	j.SetPoint(index)
	var look *looker
	// A longer window costs more than was reckoned with a limit.
	if setup.Requests == 0 && (setup.AutoWarmup && p.SpendLimit == 0 || !l.Until.IsNone()) {
		if look, err = s.newLooker(l.Until, index, setup); err != nil {
			return nil, &RecordsError{Err: err}
		}
		cfg.Extend = look.extendWindow
	}
	giveUp(&cfg, spec, setup.Residence, src.meanTurns(&p.Ask))
	cfg.WindowBy, cfg.EndBy = int64(spec.WindowBy), int64(spec.EndBy)
	tap := newTap(j)
	c, err := s.carryOut(ctx, &pointLoad{spec, index, &setup, &cfg, tap, &src})
	if c == nil || err != nil {
		return nil, err
	}
	defer c.close()
	if look != nil {
		c.window.Until = look.untilResult()
	}
	s.markEnd(index, &setup, c, tap, src)
	c.told.End(ctx)
	for _, sentence := range c.told.UserSentences() {
		r.showLine("note: " + sentence)
	}
	if err := j.Err(); err != nil {
		return nil, &RecordsError{Err: err}
	}
	if c.lost != nil {
		return nil, c.lost
	}
	setup = endedSetup(setup, c.window)
	return &setup, nil
}

// markEnd works out what is known of a point when its load has ended, and writes down how it did.
func (s *Session) markEnd(index int32, setup *metrics.Setup, c *carried, tap *tap, src source) {
	end := &c.window
	t0 := setup.T0
	if end.T0 != nil {
		t0 = *end.T0
	}
	if !s.plan.IsGenerated() {
		end.PlannedHits = repeatedShare(src, c.begun)
	}
	if !s.runner.Figures && c.items != nil && !s.plan.Pooling {
		end.PrefixCache = s.cacheReuse(src, &tap.sent, c.items, t0, end.T1)
	}
	end.Missing = c.told.MissingSources()
	writeMark(s.journal, marks.NamePoint, index, marks.Encode(setup))
	writeMark(s.journal, marks.NameWindow, index, marks.Encode(end))
}

// carried describes the load of a point after its end.
type carried struct {
	window marks.Window
	begun  int64         // items that came by themselves
	items  *itemized     // what requests asked, nil where that is not known
	told   *scrape.Watch // of the server while it went on
	lost   error         // a worker was, too early for what there is to be enough
	close  func()
}

// byItself carries out the load of a point in this process; nil if it was stopped before it
// began.
func (s *Session) byItself(ctx context.Context, x *pointLoad) (*carried, error) {
	r, p, t, j := s.runner, s.plan, s.Target, s.journal
	l, index, tap := &x.spec.Load, x.index, x.tap
	core := loadgen.NewCore(*x.cfg)
	c := &carried{told: new(scrape.Watch), close: func() {}}
	stop, tellLast := func() {}, func() {}
	var world loadgen.World
	uncounted := func() (int, error) { return 0, nil }
	if t.Kind == "sim" {
		s.noteBegin(index, x.setup)
		var sink record.Sink = tap
		if r.Late != nil {
			sink = &late{tap, int64(r.Late(index))}
		}
		sim := newVirtual(p, l, t, *x.src, sink, index, func(at int64, signal telemetry.Signal, x float64) {
			j.AddSample(record.Sample{Point: index, T: at, Source: record.SourceServer, Name: string(signal), Value: x})
		})
		world, tellLast = sim, sim.ReportNow
	} else {
		wall, err := s.prepareWall(ctx, l, *x.src, tap, index, loadgen.Share{})
		if ctx.Err() != nil && err != nil {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		c.close = wall.Close
		uncounted = wall.UncountedAnswers
		c.told = scrape.Begin(ctx, t.Sources, p.ScrapeInterval, index, j.AddSample)
		s.noteBegin(index, x.setup)
		wall.Begin(5 * time.Millisecond)
		c.told.Start(ctx, wall.Origin())
		begin, cpu := time.Now(), cpuTime()
		if r.Loaded != nil {
			defer func() { r.Loaded(Spent{Origin: wall.Origin(), CPU: cpuTime() - cpu, Wall: time.Since(begin)}) }()
		}
		stop = watchInstrument(j.AddSample, index, wall.Origin(), nil).stop
		world = wall
	}
	if r.Progress != nil && t.Kind != "sim" {
		world = &reporting{World: world, core: core, tap: tap, told: c.told, to: r.Progress}
	}
	c.items = &itemized{World: world, items: map[int64]int64{}}
	loadgen.Run(ctx, core, c.items)
	stop()
	tellLast()
	if n, why := uncounted(); n > 0 {
		r.showLine(fmt.Sprintf("note: %s without a count of tokens: %v", say.Plural(n, "answer"), why))
	}
	c.ended(core, x.setup, world.Now())
	return c, nil
}

// ended takes in how a load ended that this process carried out.
func (c *carried) ended(core *loadgen.Core, setup *metrics.Setup, at int64) {
	t0, t1 := core.MeasuredWindow()
	c.window = marks.Window{T1: t1, Ended: at, GaveUp: core.GaveUp()}
	if t0 != setup.T0 { // the users of a closed loop took longer to begin
		c.window.T0 = &t0
	}
	if since, gone := core.TargetGone(); gone {
		c.window.Gone = &since
	}
	c.begun = core.BegunItems()
}

// giveUp lets a hopeless load of an open loop end early, where that is wanted; light is
// what a request takes at a light load, in nanoseconds, and turns how many requests each
// arrival brings.
func giveUp(cfg *loadgen.Config, spec *PointSpec, light int64, turns float64) {
	if !spec.GiveUp || spec.Rate == 0 {
		return
	}
	rate := spec.Rate * turns
	cfg.Expect = cmp.Or(cfg.Window, int64(float64(spec.Requests)/rate*1e9))
	cfg.GiveUp = func(elapsed int64, underWay []float64) bool {
		return validity.IsHopeless(underWay, float64(elapsed)/1e9, rate, float64(light)/1e9)
	}
}

// plannedPoint returns the settings with which a point's records are read, as far as its plan gives
// them. light is the time of a request at a light load in nanoseconds, 0 if that is not known yet.
func plannedPoint(p *config.Plan, t *target.Target, spec *PointSpec, src *source, cfg *loadgen.Config, light int64) metrics.Setup {
	setup := metrics.Setup{
		T0: cfg.Warmup, T1: cfg.Warmup + cfg.Window, Load: describeLoad(&p.Ask, &spec.Load), SLO: p.SLO,
		GPUs: cmp.Or(p.GPUs, t.GPUs), Price: p.Price(), Stamps: stampSource(t),
		// An embedded target starts fresh with every run and remembers no prompt.
		Cold: src.cold, Seeded: p.SeedSet && t.Kind == "http",
		Exact: !p.Stop.Natural && (p.IsGenerated() || src.exact), Prompts: src.prompts,
		Stage: spec.Stage, Residence: cmp.Or(light, int64(t.Residence)), AutoWarmup: spec.Warmup == config.AutoWarmup,
	}
	if src.turns > 0 {
		setup.Load.Turns = &src.turns
	}
	if t.Held != nil {
		match := *t.Held
		match.Prompts = t.Options.Encode != nil
		setup.Tokenizer = &match
	}
	if told, _ := t.EngineChanges(); setup.Load.HasVaryingRate() || told != "" {
		setup.AutoWarmup = false // it does not settle
	}
	if cfg.Requests > 0 {
		setup.T1, setup.Requests = loadgen.Never, cfg.Requests
	}
	if setup.Price.IsUnknown() && t.GPUPrice > 0 {
		setup.Price.GPU, setup.Price.Listed = cost.GPU{Hour: t.GPUPrice}, true
	}
	return setup
}

// newVirtual is the world of a simulated target; tell takes what its server tells of itself,
// nil for nothing.
func newVirtual(p *config.Plan, l *config.Load, t *target.Target, src source, sink record.Sink, index int32, tell loadgen.Tell) *loadgen.Virtual {
	overhead, every := 0, int64(cmp.Or(p.ScrapeInterval, time.Second))
	if p.NoScrape {
		tell = nil
	}
	if t.API.Messages(t.Options) {
		overhead = target.ChatOverhead
	}
	own := seed.Point(p.Seed, pairedWith(cacheStage(&p.Ask, index), index))
	var refuse func(n, at int64) (int, int64)
	if t.Refuse != nil {
		refuse = func(n, at int64) (int, int64) { return t.Refuse(own, n, at) }
	}
	return loadgen.NewVirtual(loadgen.VirtualConfig{
		Choices: p.Choices, Overhead: overhead, Engine: warmCache(t.Engine(own), src.shared), Source: src.Source, Sink: sink, Point: index, Thaw: t.Thaw, Count: token.Universal().Count,
		Tell: tell, Every: every, Refuse: refuse, Retry: l.Retry.Times > 0,
	})
}

// prepareWall prepares sockets and requests, for a share of the load.
func (s *Session) prepareWall(ctx context.Context, l *config.Load, src source, sink record.Sink, index int32, share loadgen.Share) (*loadgen.Wall, error) {
	w, conns, err := s.wallOf(ctx, l, src, sink, index, share)
	if err != nil {
		return nil, err
	}
	if err := s.connectWall(ctx, w, conns); err != nil {
		w.Close()
		return nil, err
	}
	return w, nil
}

// connectWall makes a wall's connections before its load.
func (s *Session) connectWall(ctx context.Context, w *loadgen.Wall, conns int) error {
	if err := w.Open(ctx, conns); err != nil {
		class, detail := client.Classify(err)
		return s.Target.ExplainFailure(class, 0, detail)
	}
	w.WaitPrepared(ctx, min(w.Ahead(), conns))
	// What the probes left behind is not to be collected under load.
	debug.FreeOSMemory()
	return nil
}

// wallOf is one without connections, and how many are to be made for it beforehand.
func (s *Session) wallOf(ctx context.Context, l *config.Load, src source, sink record.Sink, index int32, share loadgen.Share) (_ *loadgen.Wall, conns int, err error) {
	p, t := s.plan, s.Target
	conns = l.Concurrency
	spare := 0
	if l.Rate > 0 {
		// As many as a load of this rate keeps busy, and some for its bursts.
		busy := l.Rate * src.meanTurns(&p.Ask) * max(t.Residence, 100*time.Millisecond).Seconds()
		conns = int(busy+4*math.Sqrt(busy)) + 4
		spare = 4 + conns/16
	}
	if l.MaxInFlight > 0 {
		conns = min(conns, l.MaxInFlight)
	}
	if err := enoughFiles(p, conns, laterFiles); err != nil {
		return nil, 0, err
	}
	conns = min(conns, 20_000)
	// Requests are prepared ahead in about 64 MiB, a token taken for 8 bytes, but
	// enough of them that long prompts too are sent in time.
	ahead := min(max(conns, 64), int(max(8, 64<<20/(8*(p.Input.Mean()+p.PrefixMean())))))
	w := loadgen.NewWall(context.WithoutCancel(ctx), loadgen.WallConfig{
		Dialer: t.Dialer, API: t.API, Route: t.Route, Options: t.Options, Headers: t.Headers, Secret: t.Secret, Memory: t.Memory,
		Source: src.Source, Sink: sink, Point: index, Share: share, Ahead: ahead, Spare: spare,
		Nonce: fmt.Sprintf("pitot-%x-%d", p.Seed, index), Retry: l.Retry.Times > 0, Count: loadgen.NewCounter(t.Tokenizer), Check: src.check,
	})
	if p.NoProbe {
		conns = min(conns, 8)
	}
	return w, conns, nil
}

// scheduleConfig makes the decisions' input of a load.
func scheduleConfig(p *config.Plan, l *config.Load, t *target.Target, src *source, point int32) (loadgen.Config, error) {
	point = pairedWith(cacheStage(&p.Ask, point), point)
	lasts := t.Residence // what comes by itself, with what follows it
	if p.HasConversations() && lasts > 0 {
		d := describeLoad(&p.Ask, l)
		lasts = time.Duration(d.SessionSeconds(lasts.Seconds()) * 1e9)
	}
	cfg := loadgen.Config{
		Follow: loadgen.FollowOf(src.Source),
		Users:  l.Concurrency, Cap: l.MaxInFlight, Warmup: int64(l.WarmupFor(lasts)),
		Window: int64(l.Duration), Requests: l.Requests, Timeout: int64(t.Timeout), Gone: int64(goneAfter),
	}
	if l.Retry.Times > 0 {
		of := seed.At(seed.Point(p.Seed, point), seed.Workload, retryDraws)
		cfg.Retry = func(id int64, earlier int, e loadgen.Event) (int64, bool) {
			wait, again := l.Retry.Wait(earlier, time.Duration(e.RetryAfter), seed.Float(seed.At(of, uint64(earlier), uint64(id))))
			return int64(wait), again
		}
	}
	cfg.Limits = l.Respect
	if l.Requests > 0 {
		cfg.Window = 0
	}
	if l.Exactly {
		cfg.Total = l.Requests
	}
	_, first := t.EngineChanges()
	change := l.Warmup == config.AutoWarmup && first > 0 // which is to be measured, not warmed up over
	if change {
		cfg.Warmup = min(cfg.Warmup, int64(first))
	}
	if l.Rate == 0 {
		// Users who begin at once stay in step where answers take equally long. A
		// warm-up of a given length has half of it for them to begin in; another
		// waits for them.
		switch {
		case l.Warmup == config.AutoWarmup && !change:
			cfg.Begun, cfg.Settle = int64(l.LongestWarmup()/2), true
		case cfg.Warmup > 0:
			cfg.Begun = cfg.Warmup / 2
		}
		if cfg.Begun > 0 {
			cfg.Stagger = int64(cmp.Or(lasts, unknownResidence) + p.Think.Mean())
		}
	}
	if l.Rate > 0 {
		law, err := l.ArrivalLaw()
		if err != nil {
			return cfg, err
		}
		a, err := law.NewProcess(l.Rate, arrivalSeed(p.Seed, point), cfg.Warmup)
		if err != nil {
			return cfg, say.Errorf("%v", err).WithHint(say.HintOf(err))
		}
		cfg.Arrivals, cfg.Burst = a, [2]int64{int64(l.Burst[0]), int64(l.Burst[1])}
	}
	if !p.Think.IsNone() && l.Rate == 0 {
		of := seed.At(seed.Point(p.Seed, point), seed.Workload, 0)
		cfg.Think = func(id int64) int64 { return int64(p.Think.Draw(seed.At(of, betweenRequests, uint64(id)))) }
	}
	return cfg, nil
}

// betweenRequests is the stream of a workload's seed that the pauses of users are drawn
// from between requests that do not follow one another.
const betweenRequests = 0x7061_7573_0000_0000

// retryDraws is where the jitter of retries begins in a workload's seed.
const retryDraws = 0x7265_7472_7900_0000

// goneAfter is the time for which a target must refuse every connection to count as gone. It is
// longer than a target takes to hand its socket on to another process. It is shorter than one takes
// to load a model.
const goneAfter = 5 * time.Second

// ExpectedArrivals returns what the arrival process of an open loop makes one expect. It returns
// nil for a Poisson process, which everyone knows.
func ExpectedArrivals(l *config.Load) *result.Arrivals {
	law, err := l.ArrivalLaw()
	if err != nil || law.String() == "poisson" {
		return nil
	}
	e := law.ExpectedAt(l.Rate)
	a := &result.Arrivals{Varies: e.Varies, CycleS: e.Cycle, ChangesS: e.Changes}
	if !math.IsNaN(e.CV) {
		a.CV = &e.CV
	}
	for i, t := range arrival.Scales {
		if x := e.Dispersion[i]; !math.IsNaN(x) {
			if a.Dispersion == nil {
				a.Dispersion = map[string]float64{}
			}
			a.Dispersion[strconv.Itoa(int(t))] = x
		}
	}
	return a
}

func describeLoad(a *config.Ask, l *config.Load) result.Load {
	d := result.Load{Loop: "closed"}
	if l.Open() {
		d.Loop, d.Rate, d.Arrival = "open", &l.Rate, l.Arrival
		d.Expected = ExpectedArrivals(l)
	} else {
		d.Concurrency = &l.Concurrency
	}
	if pause := a.MeanThink(); pause > 0 {
		ms := pause.Seconds() * 1e3
		d.ThinkMS = &ms
	}
	if a.HasConversations() {
		turns := a.MeanTurns()
		d.Turns = &turns
		if longest := a.LongestTurns(); longest != turns {
			d.LongestTurns = &longest
		}
	}
	if l.MaxInFlight > 0 {
		d.MaxInFlight = &l.MaxInFlight
	}
	if l.Retry.Times > 0 {
		d.Retry = l.Retry.String()
	}
	d.RespectLimits = l.Respect
	return d
}
