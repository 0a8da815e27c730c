package session

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"pitot/internal/client/api"
	"pitot/internal/config"
	"pitot/internal/results/rundir"
	"pitot/internal/say"
	"pitot/internal/say/unreadable"
	"pitot/internal/target"
	"pitot/internal/workload"
	"pitot/internal/workload/arrival"
	"pitot/internal/workload/seed"
	"pitot/internal/workload/token"
)

// Check says what is wrong with a plan as far as this machine alone can tell:
// names of embedded targets, files, the run directory. Nothing is sent and
// nothing is made.
func Check(p *config.Plan) error {
	if err := checkVacant(p.Out); err != nil {
		return err
	}
	if err := target.Check(target.WantedBy(p)); err != nil {
		return err
	}
	if err := SuitsName(p); err != nil {
		return err
	}
	if err := plannedFiles(p); err != nil {
		return err
	}
	src, err := fromFile(&p.Ask, unknownTarget(), 0)
	if err != nil {
		return err
	}
	src.close()
	return nil
}

// CheckServer asks a plan's server what a run would ask it before its load: a server that is not
// there, or does not take what is planned, is known before anything is worked out for it.
// Embedded targets are always there.
func CheckServer(ctx context.Context, p *config.Plan, showLine func(string)) error {
	if p.Kind() != config.KindServer {
		return nil
	}
	t, err := target.Open(ctx, target.WantedBy(p), showLine)
	if err == nil {
		t.Close()
	}
	return err
}

// checkVacant refuses a run directory that has something in it; "" is chosen later,
// and one that is not there is made.
func checkVacant(dir string) error {
	if dir == "" {
		return nil
	}
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return unreadable.FileError("--out", dir, err, "choose another place with --out")
	case len(entries) > 0:
		return notEmpty(dir)
	}
	return nil
}

func notEmpty(dir string) error {
	hint := "choose another with --out, or leave it to Pitot"
	if v := unfinishedVerb(dir); v != "" {
		hint = "go on with what is in it and not finished: " + say.ShellLine([]string{"pitot", string(v), "--resume", "--out", dir}) + "; or " + hint
	}
	return say.Errorf("%s is not empty", dir).WithHint(hint)
}

// unfinishedVerb is the verb of a run in a directory that was killed or interrupted and can be
// resumed, "" where there is none.
func unfinishedVerb(dir string) config.Verb {
	v := config.RecordedBy(filepath.Join(dir, rundir.Config))
	if v != config.VerbSweep && v != config.VerbFind {
		return ""
	}
	switch rundir.StateOf(dir) {
	case rundir.Measured:
		return v
	case rundir.Finished:
		if r, err := rundir.ReadResult(dir); err == nil && r.Interrupted {
			return v
		}
	}
	return ""
}

// fromFile opens a workload file for one of the points. For
// generated prompts, which need the target, it gives a source of nothing.
func fromFile(p *config.Ask, t *target.Target, point int32) (source, error) {
	if p.Mix != nil {
		src, err := fromMix(p, point, func(one *config.Ask, point int32) (source, error) { return fromFile(one, t, point) })
		if err == nil && p.SomeGenerated() {
			src.close()
			return source{close: func() {}}, nil
		}
		return src, err
	}
	if p.IsGenerated() {
		return source{close: func() {}}, nil
	}
	kind, err := workload.Identify(p.Workload)
	if err != nil {
		return source{}, unusableWorkload(p.Workload, err)
	}
	switch kind {
	case workload.Recorded:
		return fromTrace(p, t, point)
	case workload.Sessioned:
		return fromSessions(p, t, point)
	}
	if kind == workload.Profiled {
		return fromProfile(p, t, point)
	}
	o := workload.FileOptions{InTime: p.InTime, Seed: seed.At(seed.Point(p.Seed, point), seed.Workload, 0)}
	if p.Output != config.Default().Ask.Output {
		o.Output = p.Output
	}
	f, err := workload.Open(p.Workload, o)
	if err != nil {
		return source{}, unusableWorkload(p.Workload, err)
	}
	src := source{Source: f, about: f.Describe(), prompts: f.Stats().Requests, close: func() { f.Close() }}
	if !p.HasConversations() {
		return src, nil
	}
	v, err := f.NewConversations(workload.RecordedConfig{Turns: p.Turns, Think: p.Think, Recorded: p.History == config.HistoryPlanned, Seed: o.Seed})
	if err != nil {
		src.close()
		return source{}, say.Errorf("--turns: %v", err).WithHint(say.HintOf(err))
	}
	src.Source, src.about.Conversations, src.turns = v, v.Describe(), v.MeanTurns()
	src.prompts = int(float64(src.prompts) * src.turns) // each turn is another
	return src, nil
}

// OpenWorkload gives what a run's point asked, as far as it is known without
// the target: lengths and what prompts share, not how many words the target
// makes of a token. Call close when done.
func OpenWorkload(p *config.Ask, point int32) (src workload.Source, close func(), err error) {
	s, err := newSource(p, unknownTarget(), point)
	return s.Source, s.close, err
}

// unknownTarget is a target that nothing is known of.
func unknownTarget() *target.Target {
	return &target.Target{Options: api.Options{Vocab: token.Universal()}}
}

// fromTrace asks the requests of a trace with words that are new for each of the points.
func fromTrace(p *config.Ask, t *target.Target, point int32) (source, error) {
	if p.HasConversations() {
		return source{}, say.Errorf("--turns: the rows of a trace are whole requests, not the turns of conversations").WithHint("leave --turns out")
	}
	rows, err := workload.OpenRows(p.Workload)
	if err != nil {
		return source{}, unusableWorkload(p.Workload, err)
	}
	s := seed.Point(p.Seed, point)
	c := workload.ReplayConfig{Seed: seed.At(s, seed.Workload, 0), Nonce: promptNonce(p, point), Calibration: t.Calibration}
	if p.Output != config.Default().Ask.Output {
		c.Output = p.Output
	}
	w, err := rows.NewReplay(c)
	if err != nil {
		return source{}, say.Errorf("--workload: %v", err).WithHint(say.HintOf(err))
	}
	src := source{Source: w.Source(), about: w.Describe(t.Options.Vocab), exact: true, close: func() {}}
	if _, follow := src.Source.(workload.Sessions); follow {
		src.turns = w.MeanTurns()
	}
	return src, nil
}

// fromSessions asks recorded sessions with words that are new for each of the points.
func fromSessions(p *config.Ask, t *target.Target, point int32) (source, error) {
	sessions, err := workload.OpenTrajectories(p.Workload)
	if err != nil {
		return source{}, say.Errorf("--workload: %v", err)
	}
	s := seed.Point(p.Seed, point)
	w := sessions.NewAgents(workload.TrajectoryConfig{
		Start: p.Start, MaxThink: p.MaxThink, Seed: seed.At(s, seed.Workload, 0), Nonce: promptNonce(p, point), Calibration: t.Calibration,
	})
	return source{Source: w, about: w.Describe(t.Options.Vocab), exact: true, close: func() {}}, nil
}

// alignRows has the requests of a file asked at the times of their own rows, where due times begin
// in the middle of it: the load before the window is the end of the file.
func alignRows(p *config.Ask, src *source, arrivals arrival.Process) {
	requests, ok := workload.WithoutAnswerEnds(src.Source).(interface{ Begin(row int64) })
	times, from := arrivals.(interface{ Row() int64 })
	_, file := requests.(*workload.File)
	_, turns := requests.(*workload.RecordedConversations)
	if ok && from && (p.InTime || !file && !turns) {
		requests.Begin(times.Row())
	}
}

// unusableWorkload says why a workload file cannot be asked.
func unusableWorkload(path string, err error) error {
	file, within := errors.AsType[*workload.FileError](err)
	if within && file.Trace {
		return say.Errorf("--workload: %s", file.PlaceAndCause()).WithHint(say.HintOf(err))
	}
	const formats = `a workload is ShareGPT JSON, OpenAI chat or batch JSONL, {"prompt": …} a line, text with one prompt a line, or a trace`
	if at := (*fs.PathError)(nil); errors.As(err, &at) {
		hint := "pitot workload list has the names there are; " + formats
		if near := say.NearestName(path, workload.PresetNames()); near != "" {
			hint = "did you mean " + near + "? " + hint
		}
		return unreadable.FileError("--workload", path, err, hint)
	}
	what := err.Error()
	if within {
		what = file.PlaceAndCause()
	}
	return say.Errorf("--workload: %s", what).WithHint(cmp.Or(say.HintOf(err), formats))
}
