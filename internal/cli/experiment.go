package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/term"

	"pitot/internal/config"
	"pitot/internal/experiment"
	"pitot/internal/report"
	"pitot/internal/report/page"
	"pitot/internal/results/rundir"
	"pitot/internal/say"
	"pitot/internal/session"
)

// experimentAction is one thing that pitot experiment does.
type experimentAction struct {
	name, args, about string
	run               func(ctx context.Context, e *Env, p *config.Experimenting, args []string) (int, error)
}

func experimentActions() []experimentAction {
	return []experimentAction{
		{"new", "[NAME]", "write a commented plan to stdout or --out: chat, rag, batch or mixed", newExperiment},
		{"forecast", "PLAN", "check the plan, its duration, and what it can show", forecastExperiment},
		{"run", "PLAN", "measure until the result is clear; continues a stopped run", runExperiment},
		{"status", "PLAN", "show how far it is and what is known so far", statusExperiment},
		{"report", "PLAN", "show the decision record again", reportExperiment},
		{"trend", "DIR…", "show when something changed over many records", trendExperiment},
		{"schema", "", "print the JSON Schema of plans, for editors", schemaExperiment},
	}
}

// experimentVerb takes a contract to a decision.
func experimentVerb(ctx context.Context, e *Env) (int, error) {
	var names []string
	for _, a := range experimentActions() {
		names = append(names, a.name)
	}
	if len(e.Args) == 0 {
		return Usage, say.Errorf("what of the experiment?").WithHint("pitot experiment new chat > plan.yaml writes a plan, pitot experiment run plan.yaml carries it out")
	}
	for _, a := range experimentActions() {
		if a.name != e.Args[0] {
			continue
		}
		var p config.Experimenting
		args, err := config.DecodeParts(config.VerbExperiment, e.Args[1:], e.Environ, &e.Display, &p)
		var other *config.OtherVerb
		if errors.As(err, &other) && slices.Contains([]string{"launches", "seed", "budget"}, other.Flag) {
			return Usage, say.Errorf("unknown flag --%s", other.Flag).WithHint("it is a key of the plan: write " + other.Flag + ": there")
		}
		if err != nil {
			return Usage, err
		}
		return a.run(ctx, e, &p, args)
	}
	hint := say.KnownHint(e.Args[0], names)
	if fileExists(e.Args[0]) {
		hint = "pitot experiment run " + e.Args[0]
	}
	return Usage, say.Errorf("unknown action %q", e.Args[0]).WithHint(hint)
}

// loadPlan is the one plan that an action takes, and the directory of its experiment.
func loadPlan(action string, o *config.Experimenting, args []string) (p *experiment.Plan, source []byte, dir string, err error) {
	if len(args) != 1 {
		return nil, nil, "", say.Errorf("%s takes one plan, and %d are named", action, len(args)).WithHint("for example pitot experiment " + action + " plan.yaml")
	}
	path := args[0]
	if info, e := os.Stat(path); e == nil && info.IsDir() && experiment.IsBegun(path) { // its directory has the plan
		o.Out, path = path, filepath.Join(path, "plan.yaml")
	}
	if filepath.Base(path) == experiment.RecordJSON { // a record holds its plan
		if p, source, err = experiment.PlanOfRecord(path); err != nil {
			return nil, nil, "", err
		}
		if dir = o.Out; dir == "" {
			dir = filepath.Join("experiments", p.Name()+"-again")
		}
		return p, source, dir, nil
	}
	if p, err = experiment.Read(path); err != nil {
		return nil, nil, "", err
	}
	source = p.Source()
	if dir = o.Out; dir == "" {
		dir = filepath.Join("experiments", p.Name())
	}
	return p, source, dir, nil
}

func newExperiment(ctx context.Context, e *Env, o *config.Experimenting, args []string) (int, error) {
	kind := experiment.Kinds()[0]
	switch {
	case len(args) > 1:
		return Usage, say.Errorf("new takes one kind of traffic, and %d are named", len(args))
	case len(args) == 1:
		kind = args[0]
	}
	text, err := experiment.Template(kind)
	if err == nil && o.GPU != "" {
		view := newProgress(e.Stderr, o.Quiet, e.Getenv)
		within, stop := interruptibleContext(ctx, view)
		text, err = experiment.TemplateFor(within, kind, o.GPU, versionOf(), quiet{view})
		stop()
		view.close()
	}
	if err != nil {
		return Usage, err
	}
	if o.Out == "" {
		_, err = e.Stdout.Write(text)
		return Done, err
	}
	f, err := os.OpenFile(o.Out, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return Usage, say.Errorf("--out: %v", err).WithHint("choose a file that is not there yet")
	}
	_, err = f.Write(text)
	if closed := f.Close(); err == nil {
		err = closed
	}
	return Done, err
}

// forecastExperiment shows what a plan takes and what its launches can tell.
func forecastExperiment(ctx context.Context, e *Env, o *config.Experimenting, args []string) (int, error) {
	p, _, dir, err := loadPlan("forecast", o, args)
	if err != nil {
		return Usage, err
	}
	if err := p.CheckFiles(); err != nil {
		return Usage, err
	}
	view := newProgress(e.Stderr, o.Quiet, e.Getenv)
	defer view.close()
	ctx, stop := interruptibleContext(ctx, view)
	defer stop()
	if o.GPU != "" {
		if err := p.AssumeTwin(ctx, o.GPU); err != nil {
			return Usage, err
		}
	}
	x, err := experiment.Load(p, dir)
	if err != nil {
		return Usage, err
	}
	if code, err := simulatePlan(ctx, x, true, view); err != nil {
		return code, err
	}
	view.close()
	if o.Format == "json" {
		return Done, report.WriteJSON(e.Stdout, x.Forecast())
	}
	return Done, report.WriteForecast(e.Stdout, x.Forecast(), e.styleOf(e.Stdout))
}

// simulatePlan carries a plan out on its twin, for a forecast. The exit code is that of an error.
func simulatePlan(ctx context.Context, x *experiment.Experiment, power bool, view *progress) (int, error) {
	err := x.Simulate(ctx, power, versionOf(), quiet{view})
	if err != nil && ctx.Err() != nil {
		return Interrupted, err
	}
	return Usage, err
}

// quiet is a live view without lines of its own.
type quiet struct{ *progress }

// ShowLine implements [session.Progress].
func (quiet) ShowLine(string) {}

// hands are those of the user at the terminal: the live view, and the answers to it.
type hands struct {
	*progress
	launched bool
	stdin    io.Reader    // nil where nobody is there
	read     chan error   // of a line that is waited for, nil for none
	crew     session.Crew // nil where this process carries loads out
}

// Crew implements [experiment.Crewed].
func (h *hands) Crew() session.Crew { return h.crew }

// Launched implements [experiment.Hands].
func (h *hands) Launched() (yes bool) {
	yes, h.launched = h.launched, false
	return yes
}

// Ask implements [experiment.Hands].
func (h *hands) Ask(ctx context.Context, w *experiment.Waiting) bool {
	if h.stdin == nil {
		return false
	}
	if w.Why != "" {
		fmt.Fprintf(h, "%s\n", w.Why)
	}
	fmt.Fprintf(h, "%s (%s, launch %d), then press Enter\n", w.Sentence(), w.Configuration, w.Launch)
	if f, ok := h.stdin.(interface{ SetReadDeadline(time.Time) error }); ok && f.SetReadDeadline(time.Time{}) == nil {
		stop := context.AfterFunc(ctx, func() { _ = f.SetReadDeadline(time.Unix(1, 0)) })
		defer stop()
		return readLine(h.stdin) == nil && ctx.Err() == nil
	}
	if h.read == nil { // else one is under way that was given up
		read := make(chan error, 1)
		h.read = read
		go func() { read <- readLine(h.stdin) }()
	}
	select {
	case err := <-h.read:
		h.read = nil
		return err == nil
	case <-ctx.Done():
		return false
	}
}

// readLine reads to the end of a line, and nothing behind it.
func readLine(r io.Reader) error {
	var one [1]byte
	for {
		if n, err := r.Read(one[:]); err != nil || n > 0 && one[0] == '\n' {
			return err
		}
	}
}

// interruptibleStdin returns standard input so that waiting for a line of it can be ended, where
// the system allows that.
func interruptibleStdin(stdin *os.File) io.Reader {
	if f, err := os.Open("/dev/stdin"); err == nil {
		if f.SetReadDeadline(time.Time{}) == nil {
			return f
		}
		_ = f.Close()
	}
	return stdin
}

// showWaiting says which launch is to be made by hand.
func showWaiting(e *Env, w *experiment.Waiting, path, format string) error {
	if format == "json" {
		return report.WriteJSON(e.Stdout, map[string]*experiment.Waiting{"waits": w})
	}
	again := say.ShellLine([]string{"pitot", "experiment", "run", path})
	_, err := fmt.Fprintf(e.Stdout, "%s, and go on: %s\n%s, launch %d\n", w.Sentence(), again, w.Configuration, w.Launch)
	if w.Why != "" && err == nil {
		_, err = fmt.Fprintln(e.Stdout, w.Why)
	}
	if err == nil {
		_, err = fmt.Fprintf(e.Stdout, "if the server does not report its start time, say that it is started: %s --launched\n", again)
	}
	return err
}

func runExperiment(ctx context.Context, e *Env, o *config.Experimenting, args []string) (int, error) {
	p, source, dir, err := loadPlan("run", o, args)
	if err != nil {
		return Usage, err
	}
	if err := p.CheckFiles(); err != nil {
		return Usage, err
	}
	if _, _, err := readRecords(o.Against); err != nil { // before hours of measuring
		return Usage, err
	}
	view := newProgress(e.Stderr, o.Quiet, e.Getenv)
	ctx, stop := interruptibleContext(ctx, view)
	defer stop()
	by := &hands{progress: view, launched: o.Launched}
	if f, ok := e.Stdin.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		by.stdin = interruptibleStdin(f)
	}
	if p.Server != nil {
		for _, n := range p.Server.Notes {
			view.ShowLine("note: " + n)
		}
	}
	if o.Fleet.Workers > 0 {
		if strings.HasPrefix(p.Target, "sim:") {
			return Usage, say.Errorf("--fleet needs a target behind a socket, and %s is simulated", p.Target).WithHint("leave it out: in virtual time nothing is sent")
		}
		crew, disband, err := crewOf(ctx, e, &o.Fleet, view.ShowLine)
		if err != nil {
			view.close()
			return Usage, err
		}
		defer disband()
		by.crew = crew
	}
	if !strings.HasPrefix(p.Target, "sim:") { // in virtual time nobody waits
		begun, err := experiment.Load(p, dir)
		code := Usage
		if err == nil {
			code, err = simulatePlan(ctx, begun, false, view)
		}
		if err != nil {
			view.close()
			return code, err
		}
		forecast := begun.Forecast()
		if forecast.TwinFailed != "" {
			view.ShowLine("note: " + say.PlainLine(forecast.TwinFailed))
		}
		view.ShowLine(report.ToGo(forecast))
	}
	x, err := experiment.Measure(ctx, p, source, dir, versionOf(), by)
	view.close()
	if x == nil {
		return Usage, err
	}
	if w := x.AwaitedLaunch(); w != nil && err == nil && ctx.Err() == nil {
		if err := writeRecord(x.Dir, x.Record(), report.BuildDecision(x.Record())); err != nil {
			return Done, err
		}
		return ByHand, showWaiting(e, w, args[0], o.Format)
	}
	code, shown := showRecord(e, x, o)
	switch {
	case err != nil && ctx.Err() != nil:
		return Interrupted, err
	case err != nil:
		return Done, err
	case shown != nil:
		return Done, shown
	case ctx.Err() != nil:
		return Interrupted, nil
	}
	return code, nil
}

func statusExperiment(_ context.Context, e *Env, o *config.Experimenting, args []string) (int, error) {
	return lookAt("status", e, o, args)
}

func reportExperiment(_ context.Context, e *Env, o *config.Experimenting, args []string) (int, error) {
	return lookAt("report", e, o, args)
}

// lookAt shows what is known; status in short.
func lookAt(action string, e *Env, o *config.Experimenting, args []string) (int, error) {
	p, _, dir, err := loadPlan(action, o, args)
	if err != nil {
		return Usage, err
	}
	if !experiment.IsBegun(dir) {
		return Usage, say.Errorf("nothing is measured of %s in %s", p.Path, dir).WithHint("pitot experiment run " + p.Path + " begins it; --out names the directory of one that is elsewhere")
	}
	x, err := experiment.Load(p, dir)
	if err != nil {
		return Usage, err
	}
	x.Version = versionOf()
	if action == "status" {
		return Done, report.WriteStatus(e.Stdout, x.Status(), x.Forecast(), report.BuildDecision(x.Record()), e.styleOf(e.Stdout))
	}
	code, err := showRecord(e, x, o)
	if err == nil && code != Fired { // what the contract came to is run's to say
		code = Done
	}
	return code, err
}

// showRecord writes the record into the experiment's directory, and shows it.
func showRecord(e *Env, x *experiment.Experiment, o *config.Experimenting) (int, error) {
	r := x.Record()
	if err := compareEarlier(r, x.Dir, o.Against); err != nil {
		return Usage, err
	}
	m := report.BuildDecision(r)
	if err := writeRecord(x.Dir, r, m); err != nil {
		return Done, err
	}
	var err error
	switch o.Format {
	case "json":
		err = report.WriteJSON(e.Stdout, r)
	case "md":
		err = m.WriteMarkdown(e.Stdout)
	case "html":
		err = page.WriteDecision(e.Stdout, m)
	default:
		if err = m.WriteTerminal(e.Stdout, e.styleOf(e.Stdout)); err == nil {
			_, err = fmt.Fprintf(e.Stdout, "\nsaved in %s: %s, %s and the page %s\n", x.Dir, experiment.RecordMarkdown, experiment.RecordJSON, experiment.RecordPage)
		}
	}
	code := Done
	switch {
	case r.Since != nil && r.Since.Worse > 0:
		code = Fired
	case r.Answer == experiment.AnswerNone:
		code = SLOMissed
	}
	return code, err
}

// writeRecord writes the three forms of the record.
func writeRecord(dir string, r *experiment.Record, m report.DecisionModel) error {
	if err := r.WriteJSON(dir); err != nil {
		return err
	}
	var md, html bytes.Buffer
	if err := m.WriteMarkdown(&md); err != nil {
		return err
	}
	if err := page.WriteDecision(&html, m); err != nil {
		return err
	}
	if err := rundir.WriteFile(dir, experiment.RecordMarkdown, md.Bytes()); err != nil {
		return err
	}
	return rundir.WriteFile(dir, experiment.RecordPage, html.Bytes())
}

func schemaExperiment(_ context.Context, e *Env, _ *config.Experimenting, _ []string) (int, error) {
	text, err := experiment.JSONSchema()
	if err == nil {
		_, err = e.Stdout.Write(text)
	}
	return Done, err
}

func experimentHelp() manual {
	actions := section{Group: config.Group{Title: "Actions", Topic: "actions"}}
	for _, a := range experimentActions() {
		actions.items = append(actions.items, item{name: a.name, head: strings.TrimSpace(a.name + " " + a.args), brief: a.about, text: a.about})
	}
	return manual{sections: []section{actions},
		about: "Try engine settings one at a time and record the decision.",
		usage: "pitot experiment ACTION PLAN [flags]",
		examples: `pitot experiment new chat > plan.yaml       # a commented plan to edit
			pitot experiment forecast plan.yaml         # what it takes, and what it can show
			pitot experiment run plan.yaml`,
		notes: `A plan names the SLO, the workloads, and the engine settings to try. Pitot starts the server
several times with each setting, in random order, and measures it. The result is decision.md,
decision.json and a page.

run continues after Ctrl-C or a kill and keeps what it measured. If it cannot start a server,
it shows the flags and waits for Enter, or ends with exit code 7.`,
	}
}

// experimentArguments are its actions, and behind them files.
func experimentArguments(args []string, _ string) (found completion) {
	if len(args) > 0 {
		found.files = true
		return found
	}
	for _, a := range experimentActions() {
		found.words = append(found.words, config.Choice{Name: a.name, About: a.about})
	}
	return found
}
