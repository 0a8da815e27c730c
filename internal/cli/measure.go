package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"pitot/internal/config"
	"pitot/internal/report"
	"pitot/internal/report/export"
	"pitot/internal/results/result"
	"pitot/internal/results/rundir"
	"pitot/internal/say"
	"pitot/internal/session"
	"pitot/internal/target"
)

// measuring is a verb that measures a target: what it has of its own. The way
// from its arguments to its exit code is that of all:
//
//	prepare    arguments, file and environment → a plan that can be carried out
//	           at a price that is allowed, and the exports it is to end with
//	dryRun     says what would be sent: the end, if that was asked for
//	carryOut   opens the target and a run directory, puts the loads on, closes both
//	conclude   page, answer and exports of what was measured → exit code
type measuring struct {
	verb  config.Verb                                                            // whose flags it takes
	loads func(context.Context, *session.Session, *config.Plan, *progress) error // measures in a session
}

// run carries out all of it.
func (v *measuring) run(ctx context.Context, e *Env) (int, error) {
	p, exports, err := v.preparePlan(e)
	if err != nil {
		return Usage, err
	}
	return v.measure(ctx, e, p, exports)
}

// measure carries out a plan and shows what it measured.
func (v *measuring) measure(ctx context.Context, e *Env, p *config.Plan, exports []export.Export) (int, error) {
	if p.DryRun {
		return v.dryRun(ctx, e, p)
	}
	if p.Launches > 1 {
		return v.eachLaunch(ctx, e, p)
	}
	view := newProgress(e.Stderr, p.Quiet, e.Getenv)
	ctx, stop := interruptibleContext(ctx, view)
	defer stop()
	measured, dir, err := v.carryOut(ctx, e, p, view)
	code, err := showResult(ctx, e, measured, dir, p.Format, exports, err)
	return gatedCode(&p.Output, e, measured, code), err
}

// preparePlan makes the plan. Its errors are the user's.
func (v *measuring) preparePlan(e *Env) (*config.Plan, []export.Export, error) {
	p, args, err := config.Decode(v.verb, e.Args, e.Environ)
	if err != nil {
		return nil, nil, err
	}
	return v.checkPlan(e, p, args)
}

// checkPlan refuses a plan that cannot be carried out. Its errors are the user's.
func (v *measuring) checkPlan(e *Env, p config.Plan, args []string) (*config.Plan, []export.Export, error) {
	e.Display = p.Display
	if len(args) > 1 {
		return nil, nil, say.Errorf("more than one target: %q and %q", args[0], args[1]).WithHint("one run measures one target")
	}
	if err := p.Check(v.verb); err != nil {
		return nil, nil, err
	}
	if err := session.SuitsName(&p); err != nil { // of which it depends what is expected
		return nil, nil, err
	}
	if v.verb == config.VerbFind && !p.Resume {
		if err := session.CanVerify(&p, p.At, p.SearchTime()); err != nil {
			return nil, nil, err
		}
	}
	if err := withinLimit(p.SpendLimit, estimatePlan(v.verb, &p, target.ResidenceOf(target.WantedBy(&p)))); err != nil {
		return nil, nil, err
	}
	exports, err := export.ParseExports(p.Export)
	return &p, exports, err
}

// dryRun says what would be sent, of what would not be refused.
func (v *measuring) dryRun(ctx context.Context, e *Env, p *config.Plan) (int, error) {
	if p.Launches > 1 {
		parent := launchesDir(p)
		if err := checkLaunches(p, parent); err != nil {
			return Usage, err
		}
		return Done, writeDryRun(ctx, e.Stdout, v.verb, p, launchLines(p, parent)...)
	}
	if err := session.Check(p); err != nil && !p.Resume {
		return Usage, err
	}
	return Done, writeDryRun(ctx, e.Stdout, v.verb, p)
}

// carryOut measures. What was measured comes back whatever ended it, with the
// directory that holds it.
func (v *measuring) carryOut(ctx context.Context, e *Env, p *config.Plan, view *progress) (*result.Run, string, error) {
	defer view.close()
	if from := p.Provenance(); from != "" {
		view.ShowLine("settings: " + from)
	}
	r := session.Runner{Verb: v.verb, Command: e.Command, Version: versionOf(), Progress: view, Late: e.Late}
	if p.SpendLimit > 0 { // how long a chosen warm-up lasts is known only then
		r.Primed = func(residence time.Duration) error {
			return withinLimit(p.SpendLimit, estimatePlan(v.verb, p, residence))
		}
	}
	defer leaveUnlessBegun(ctx, r.Began, os.Exit)()
	switch {
	case p.Workers == config.AutoFleet:
		var disband func()
		r.Muster, disband = musterHere(ctx, e, view.ShowLine)
		defer disband()
	case p.Workers > 0:
		crew, disband, err := crewOf(ctx, e, &p.Fleet, view.ShowLine)
		if err != nil {
			return nil, "", err
		}
		defer disband()
		r.Crew = crew
	}
	s, err := r.Open(ctx, p)
	if err != nil {
		return nil, "", err
	}
	err = v.loads(ctx, s, p, view)
	if errors.Is(err, context.Canceled) {
		err = nil // the run says that it was interrupted
	}
	measured, err := s.Close(ctx.Err() != nil, err)
	if measured != nil && len(measured.Points) == 0 && err != nil {
		return nil, "", err // which says it all
	}
	return measured, s.Dir, err
}

// showResult shows the result of a measurement and gives the exit code. Whatever went
// wrong, what was measured is shown.
func showResult(ctx context.Context, e *Env, measured *result.Run, dir, format string, exports []export.Export, err error) (int, error) {
	model := concludedModel(measured, dir)
	page, missing := writePage(e.Stderr, measured, model, dir) // first: whoever reads the answer may stop early, and that ends the process
	saved := measured == nil || session.IsSaved(dir, measured)
	if measured != nil {
		shown := showRun(e, measured, shownFrom{model, dir, saved, page, missing}, format)
		if exported := writeExports(e, exports, measured, dir); err == nil {
			err = errors.Join(shown, exported)
		}
	}
	if err == nil {
		return exitCode(measured), nil
	}
	if dir != "" && saved && rundir.StateOf(dir) >= rundir.Measured {
		fmt.Fprintf(e.Stderr, "pitot: what was measured is in %s\n", dir)
	}
	if ctx.Err() != nil {
		return Interrupted, err
	}
	if measured != nil && windowEmpty(measured) { // an export of it fails too
		return Invalid, err
	}
	return Done, err
}

// shownFrom is where a run that is shown is, and what of it.
type shownFrom struct {
	model   report.Model
	dir     string
	saved   bool     // its result is there, and not only its records
	page    string   // path of its page, "" if it could not be written
	missing []string // what of its records cannot be read
}

// showRun writes a run in the format asked for.
func showRun(e *Env, measured *result.Run, from shownFrom, format string) error {
	switch format {
	case "json":
		return report.WriteJSON(e.Stdout, measured)
	case "csv":
		return export.CSV(e.Stdout, measured)
	case "html":
		page, _, err := makePage(measured, from.model, from.dir)
		if err == nil {
			_, err = e.Stdout.Write(page)
		}
		return err
	}
	m := from.model
	m.Page, m.Unsaved, m.Warnings = from.page, !from.saved, append(m.Warnings, from.missing...)
	if format == "md" {
		return m.WriteMarkdown(e.Stdout)
	}
	return m.WriteTerminal(e.Stdout, e.styleOf(e.Stdout))
}
