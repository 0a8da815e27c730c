package experiment

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"pitot/internal/experiment/server"
	"pitot/internal/results/result"
	"pitot/internal/results/rundir"
	"pitot/internal/say"
	"pitot/internal/target"
	"pitot/internal/userfile"
)

// A launch of a server is one start of it with the settings of one configuration. What it
// told of itself, its log and the rows that were measured on it are kept. One that dies is
// made again: what was being measured is put away, what had been measured stays.

// LaunchSchema names the version of launch.json.
const LaunchSchema = "pitot.launch/v1"

const (
	launchesDir = "launches"
	launchFile  = "launch.json"
)

// launchRecord is launch.json: the starts that one launch took.
type launchRecord struct {
	Schema        string        `json:"schema"`
	Configuration string        `json:"configuration"`
	Launch        int           `json:"launch"`
	Flags         string        `json:"flags"`
	Starts        []startRecord `json:"starts"`
}

// startRecord is one start of the server.
type startRecord struct {
	Began       string            `json:"began"`                  // RFC 3339
	Ended       string            `json:"ended,omitempty"`        // "" where pitot was killed
	Starting    float64           `json:"starting_s"`             // until it was ready, or failed
	Stopping    float64           `json:"stopping_s"`             //
	Engine      string            `json:"engine,omitempty"`       // as it tells
	Version     string            `json:"version,omitempty"`      //
	Model       string            `json:"model,omitempty"`        //
	Mark        string            `json:"process_mark,omitempty"` // of this start, by which another is told from it
	Reported    map[string]string `json:"reported,omitempty"`     // settings, by name
	NotReported []string          `json:"not_reported,omitempty"` // that were asked for, and nothing tells
	Log         string            `json:"log,omitempty"`          // file, beside this one
	Description string            `json:"description,omitempty"`  // file: what describe printed
	Rows        []string          `json:"rows"`                   // that were measured on it
	Why         result.Reason     `json:"why,omitzero"`           // it ended
}

// Failure is a configuration of which no launch could be made.
type Failure struct {
	Configuration string   `json:"configuration"`
	Launch        int      `json:"launch"`
	Tries         int      `json:"tries"` // in a row
	Why           string   `json:"why"`
	Log           string   `json:"log,omitempty"`
	Last          []string `json:"last_lines,omitempty"` // of the log
}

func (x *Experiment) launchDir(c Configuration, block int) string {
	return filepath.Join(x.Dir, launchesDir, c.Name, strconv.Itoa(block))
}

// readLaunch reads what is kept of a launch, an empty record where there is nothing.
func (x *Experiment) readLaunch(c Configuration, block int) (*launchRecord, error) {
	rec := &launchRecord{Schema: LaunchSchema, Configuration: c.Name, Launch: block, Flags: x.Plan.Flags(c)}
	path := filepath.Join(x.launchDir(c, block), launchFile)
	data, err := userfile.Read(path, userfile.MostResult)
	if errors.Is(err, fs.ErrNotExist) {
		return rec, nil
	}
	var was launchRecord
	if err == nil {
		err = json.Unmarshal(data, &was)
	}
	if err == nil && was.Schema != LaunchSchema {
		err = fmt.Errorf("it is of version %.60q", was.Schema)
	}
	if err != nil {
		return nil, say.Errorf("%s: %v", path, err).WithHint("move it away: what was measured is in runs")
	}
	rec.Starts = was.Starts
	return rec, nil
}

// openLaunch is [Experiment.readLaunch], with a directory for what is to be kept of it.
func (x *Experiment) openLaunch(c Configuration, block int) (rec *launchRecord, dir string, err error) {
	if rec, err = x.readLaunch(c, block); err != nil {
		return nil, "", err
	}
	dir = x.launchDir(c, block)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, "", fmt.Errorf("make %s: %w", dir, err)
	}
	return rec, dir, nil
}

// lastMark is that of the start on which it was measured last, "" where there is none.
func (rec *launchRecord) lastMark() string {
	if len(rec.Starts) == 0 {
		return ""
	}
	return rec.Starts[len(rec.Starts)-1].Mark
}

func (rec *launchRecord) write(dir string) error {
	data, err := json.MarshalIndent(rec, "", "  ")
	if err == nil {
		err = rundir.WriteFile(dir, launchFile, append(data, '\n'))
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", filepath.Join(dir, launchFile), err)
	}
	return nil
}

// startCosts is the time that starts and stops of servers took, in seconds, and what that
// cost at the price of the GPUs.
func (x *Experiment) startCosts() (seconds, usd float64) {
	for _, c := range x.Plan.plannedConfigurations() {
		took := 0.0
		for block := 1; block <= x.Plan.Launches; block++ {
			rec, err := x.readLaunch(c, block)
			if err != nil {
				continue
			}
			for _, s := range rec.Starts {
				took += s.Starting + s.Stopping
			}
		}
		seconds, usd = seconds+took, usd+x.hourlyCost(c)*took/3600
	}
	return seconds, usd
}

// leaveOut takes configurations out of the plan that could not be started.
func (x *Experiment) leaveOut() {
	x.Plan.left = map[string]bool{}
	if x.state == nil {
		return
	}
	for _, f := range x.state.Failed {
		x.Plan.left[f.Configuration] = f.Configuration != Baseline
	}
}

// NotStarted are the configurations of which no launch could be made.
func (x *Experiment) NotStarted() []Failure {
	if x.state == nil {
		return nil
	}
	return x.state.Failed
}

// notReported are settings of a configuration that a start of it, on which something was
// measured, did not tell.
func (x *Experiment) notReported(c Configuration) (names []string) {
	for block := 1; block <= x.Plan.Launches; block++ {
		rec, err := x.readLaunch(c, block)
		if err != nil {
			continue
		}
		for _, s := range rec.Starts {
			for _, name := range s.NotReported {
				if len(s.Rows) > 0 && !slices.Contains(names, name) {
					names = append(names, name)
				}
			}
		}
	}
	return names
}

// brokenOff says that the server went away, or was started again, while it was measured.
func brokenOff(measured *result.Run) bool {
	for i := range measured.Points {
		p := &measured.Points[i]
		if p.WentAway != nil {
			return true
		}
		for _, c := range p.Checks {
			if c.Name == result.CheckRestarts && c.Status != result.Pass {
				return true
			}
		}
	}
	return false
}

// missingParts are the parts of a launch that are still to be measured.
func (x *Experiment) missingParts(c Configuration, block int) (list []Part) {
	for _, part := range x.Plan.launchParts(c, block) {
		if x.finishedRun(&part) == nil {
			list = append(list, part)
		}
	}
	return list
}

// launchServer measures what is not yet there of one launch of a server.
func (x *Experiment) launchServer(ctx context.Context, c Configuration, block int, head string, view View) (fresh bool, err error) {
	if len(x.missingParts(c, block)) == 0 {
		return false, nil
	}
	if x.Plan.ByHand() {
		return true, x.launchByHand(ctx, c, block, head, view)
	}
	for try := 1; ; try++ {
		before := len(x.missingParts(c, block))
		err := x.oneStart(ctx, c, block, head, view)
		var failed *server.Failed
		if ctx.Err() != nil || !errors.As(err, &failed) {
			return true, err
		}
		left := len(x.missingParts(c, block))
		if left < before { // not in a row: it served some of it
			try = 1
		}
		ignored := errors.Is(err, errIgnored) || failed.Final // which another try would be too
		view.ShowLine(fmt.Sprintf("%s: %s (try %d of %d)", head, failed.Msg, try, x.Plan.Server.Tries))
		for _, line := range failed.Last {
			view.ShowLine("  " + line)
		}
		if left == 0 { // it died behind the last row
			return true, nil
		}
		if try < x.Plan.Server.Tries && !ignored {
			continue
		}
		f := Failure{Configuration: c.Name, Launch: block, Tries: try, Why: failed.Msg, Log: filepath.Join(x.launchDir(c, block), filepath.Base(failed.Log)), Last: failed.Last}
		x.state.Failed = append(x.state.Failed, f)
		x.leaveOut()
		if c.Name == Baseline {
			return true, &target.Error{Msg: fmt.Sprintf("the baseline cannot be started: %s (tries in a row: %d)", failed.Msg, try), Hint: "its log is " + f.Log}
		}
		view.ShowLine(fmt.Sprintf("note: %s is left out: %s; the others go on", c.Name, failed.Msg))
		return false, x.state.write(x.Dir)
	}
}

// errIgnored says that a server reports other settings than it was asked for.
var errIgnored = errors.New("a setting was ignored")

// ignored is such a launch.
type ignored struct{ *server.Failed }

func (i ignored) Unwrap() []error { return []error{i.Failed, errIgnored} }

// endOf is why a start ended.
func endOf(ctx context.Context, err error) result.Reason {
	switch {
	case ctx.Err() != nil:
		return result.Reason{Code: result.SittingInterrupted}
	case err != nil:
		return result.Reason{Code: result.SittingFailed, Quote: err.Error()}
	}
	return result.Reason{Code: result.SittingDone}
}

// notStopped is a server that may still run, which a user must know who interrupts.
type notStopped struct{ error }

func (n notStopped) Unwrap() error { return n.error }

// freeWithin is the maximum time for which an address may still answer after a server was stopped.
const freeWithin = 30 * time.Second

// oneStart starts the server, measures what is missing, and stops it. Errors are
// [server.Failed] where the server is at fault.
func (x *Experiment) oneStart(ctx context.Context, c Configuration, block int, head string, view View) (err error) {
	p := x.Plan
	rec, dir, err := x.openLaunch(c, block)
	if err != nil {
		return err
	}
	n := len(rec.Starts) + 1
	name := "start-" + strconv.Itoa(n)
	log, err := filepath.Abs(filepath.Join(dir, name+".log"))
	if err != nil {
		return fmt.Errorf("start server: %w", err)
	}
	view.About(head + ", starting")
	if err := x.waitUntilVacated(ctx, head, view); err != nil {
		return err
	}
	asked := &server.Asked{Configuration: c.Name, Settings: settingsOf(c), Flags: p.Flags(c), URL: p.Target, Log: log}
	began := time.Now()
	proc, err := server.Start(x.Dir, p.Server.Commands, asked)
	if err != nil {
		return err
	}
	rec.Starts = append(rec.Starts, startRecord{Began: began.Format(time.RFC3339), Log: name + ".log", Rows: []string{}})
	s := &rec.Starts[n-1]
	defer func() {
		stopped := time.Now()
		stop := proc.Stop(x.Dir)
		s.Stopping, s.Ended, s.Why = time.Since(stopped).Seconds(), now(), endOf(ctx, err)
		if stop != nil { // another start beside it would be no launch
			if err != nil && ctx.Err() == nil {
				view.ShowLine(head + ": " + err.Error())
			}
			err = notStopped{fmt.Errorf("the server of %s may still run: %w", c.Name, stop)}
		}
		err = errors.Join(err, rec.write(dir))
	}()
	if err := rec.write(dir); err != nil {
		return err
	}
	starting := fmt.Sprintf("starting %s %d of %d", c.Name, block, p.Launches)
	shown := showWaiting(view, starting, p.Server.Commands.Within, func() string { return strings.Join(server.Tail(log, 1), "") })
	err = proc.WaitReady(ctx, x.serverAnswers)
	shown()
	s.Starting = time.Since(began).Seconds()
	if err != nil {
		return err
	}
	if err := rec.write(dir); err != nil { // a kill leaves what the start took
		return err
	}
	if err := x.describeServer(ctx, s, asked, dir, name, func(ctx context.Context) (string, error) { return proc.Describe(ctx) }); err != nil {
		return err
	}
	view.ShowLine(fmt.Sprintf("%s: ready after %s%s", head, say.Seconds(s.Starting), s.describeServer()))
	x.sameServer(s, view)
	return x.onStart(ctx, s, c, block, head, view, proc)
}

// showWaiting shows each second what is waited for and how long, of a time, with the last line of a
// log, until stop is called.
func showWaiting(view View, what string, within time.Duration, log func() string) (stop func()) {
	w, ok := view.(Waiter)
	if !ok {
		return func() {}
	}
	began, quit, ended := time.Now(), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-quit:
				return
			case <-tick.C:
				n := int(time.Since(began) / time.Second)
				w.Waiting(fmt.Sprintf("%s, %d:%02d of %s", what, n/60, n%60, say.Duration(within)), log())
			}
		}
	}()
	return func() {
		close(quit)
		<-ended
	}
}

// sameServer says where a launch is of another version or model than those before.
func (x *Experiment) sameServer(s *startRecord, view View) {
	now := strings.Join(strings.Fields(s.Engine+" "+s.Version+" "+s.Model), " ")
	switch was := x.state.Server; {
	case was == "":
		x.state.Server = now
	case now != "" && now != was:
		view.ShowLine("note: the server is " + say.PlainLine(now) + " now, and was " + say.PlainLine(was) + " in the first launch: they are compared all the same")
	}
}

// describeServer says what the server is, for a line.
func (s *startRecord) describeServer() string {
	out := strings.TrimSpace(s.Engine + " " + s.Version)
	if out != "" {
		out = ", " + out
	}
	if len(s.NotReported) > 0 {
		out += "; it does not report " + strings.Join(s.NotReported, ", ")
	}
	return out
}

// serverAnswers says whether the server's URL does, as a server that is ready.
func (x *Experiment) serverAnswers(ctx context.Context) error {
	_, err := target.IdentifyServer(ctx, x.wantedTarget())
	return err
}

func (x *Experiment) wantedTarget() target.Wanted {
	one := x.Plan.ContractRow().Plan
	one.Spec = x.Plan.Target
	return target.WantedBy(&one)
}

// waitUntilVacated waits until nothing answers any more: what would is not the launch that is to be
// measured. Where a command says what is ready, something else may well answer.
func (x *Experiment) waitUntilVacated(ctx context.Context, head string, view View) error {
	if x.Plan.Server.Commands.Ready != "" {
		return nil
	}
	for try, until := 0, time.Now().Add(freeWithin); ; try++ {
		if x.serverAnswers(ctx) != nil || ctx.Err() != nil {
			return ctx.Err()
		}
		if time.Now().After(until) {
			return say.Errorf("something answers at %s before the server is started", x.Plan.Target).WithHint("stop it; or give target: a ready command, if that is a gateway")
		}
		if try == 1 { // a server that was just stopped is gone by now
			view.ShowLine(fmt.Sprintf("%s: something answers at %s before the server is started: waiting up to %s for it to end", head, x.Plan.Target, say.Duration(freeWithin)))
		}
		time.Sleep(400 * time.Millisecond)
	}
}

// describeServer asks a server that is ready what it is, and holds what it reports against
// what was asked.
func (x *Experiment) describeServer(ctx context.Context, s *startRecord, asked *server.Asked, dir, name string, describe func(context.Context) (string, error)) error {
	told, err := target.IdentifyServer(ctx, x.wantedTarget())
	if err != nil {
		return server.NewFailed(asked.Log, "the server is ready, and does not answer at %s: %v", x.Plan.Target, err)
	}
	s.Engine, s.Version, s.Model, s.Mark = told.Engine, told.Version, told.Model, told.Began
	s.Reported = server.Read(told.Page)
	merge := func(more map[string]string) {
		for name, v := range more {
			s.Reported[name] = v
		}
	}
	if asked.Log != "" {
		if data, err := os.ReadFile(asked.Log); err == nil {
			merge(server.ReadLog(string(data)))
		}
	}
	if x.Plan.Server.Commands.Describe != "" {
		text, err := describe(ctx)
		if err != nil {
			return server.NewFailed(asked.Log, "describe: %v", err)
		}
		s.Description = name + ".describe"
		if err := rundir.WriteFile(dir, s.Description, []byte(server.Redact(text))); err != nil {
			return fmt.Errorf("write %s: %w", s.Description, err)
		}
		more := server.Read(text)
		merge(more)
		for _, to := range []struct {
			name string
			to   *string
		}{{"version", &s.Version}, {"engine", &s.Engine}} {
			if v := more[to.name]; v != "" {
				*to.to = v
			}
		}
	}
	wrong, silent := server.CompareSettings(asked.Settings, s.Reported)
	s.NotReported = silent
	if len(wrong) > 0 {
		return ignored{server.NewFailed(asked.Log, "%s", wrong[0])}
	}
	return nil
}

// onStart measures what is missing of a launch on a start of the server. proc is nil where
// somebody else started it.
func (x *Experiment) onStart(ctx context.Context, s *startRecord, c Configuration, block int, head string, view View, proc *server.Process) error {
	log := ""
	if proc != nil {
		log = proc.Log
	}
	for _, part := range x.missingParts(c, block) {
		view.About(head + ", row " + part.Row.Name)
		err := x.whileAlive(ctx, proc, func(ctx context.Context) error { return x.measurePart(ctx, &part, view) })
		when := "while"
		if x.finishedRun(&part) != nil { // whatever came then
			s.Rows, when = append(s.Rows, part.Row.Name), "after"
		}
		if ctx.Err() != nil {
			if x.finishedRun(&part) == nil {
				view.ShowLine(fmt.Sprintf("note: row %s of %s, launch %d, was cut short: it is measured anew when run goes on", part.Row.Name, c.Name, block))
			}
			return ctx.Err()
		}
		if proc != nil {
			if how, died := proc.HasDied(); died {
				return server.NewFailed(log, "the server died %s row %s was measured (%s)", when, part.Row.Name, how)
			}
		}
		var refused *target.Error
		switch measured, e := rundir.ReadResult(part.runDir(x.Dir)); {
		case errors.As(err, &refused):
			return server.NewFailed(log, "row %s: %v", part.Row.Name, err)
		case err != nil && e == nil && brokenOff(measured):
			return server.NewFailed(log, "the server went away while row %s was measured", part.Row.Name)
		case err != nil:
			return err
		}
	}
	return nil
}

// settling is the maximum time between the closing of a process's sockets and the visible end of
// the process.
const settling = 2 * time.Second

// whileAlive does something that ends when the server does.
func (x *Experiment) whileAlive(ctx context.Context, proc *server.Process, do func(context.Context) error) error {
	if proc == nil {
		return do(ctx)
	}
	within, cancel := proc.WhileAlive(ctx)
	defer cancel()
	err := do(within)
	if err != nil && within.Err() == nil {
		select {
		case <-proc.Ended():
		case <-time.After(settling):
		}
	}
	return err
}
