package cli

import (
	"context"
	"errors"

	"pitot/internal/foreign"
	"pitot/internal/plan"
	"pitot/internal/point"
	"pitot/internal/result"
	"pitot/internal/user"
)

// searchSettings are what sweep and find share.
func searchSettings() []string {
	return append(measuringSettings(), "over", "max-load", "resume", "token-price", "spend-limit", "dry-run")
}

// search does what sweep and find have in common: a session of many points,
// kept whatever ends it. measure gives what is to be said of the run as a whole.
func search(ctx context.Context, e *Env, settings []string, check func(*plan.Plan) error, expect func(*plan.Plan) estimate,
	measure func(context.Context, *point.Session, *plan.Plan, *progress) (func(*result.Run), error)) (int, error) {
	p, args, err := plan.Decode(settings, e.Args, e.Environ)
	if err != nil {
		return Usage, err
	}
	if len(args) > 1 {
		return Usage, user.Errorf("one run measures one target", "more than one target: %q and %q", args[0], args[1])
	}
	if err := check(&p); err != nil {
		return Usage, err
	}
	if err := withinLimit(&p, expect(&p)); err != nil {
		return Usage, err
	}
	exports, err := foreign.ParseExports(p.Export)
	if err != nil {
		return Usage, err
	}
	if p.DryRun {
		if err := point.Check(&p); err != nil && !p.Resume {
			return Usage, err
		}
		return Done, dryRun(e.Stdout, &p, expect(&p))
	}
	view := newProgress(e.Stderr, p.Quiet, e.Getenv)
	if from := p.Provenance(); from != "" {
		view.Say("settings: " + from)
	}
	ctx, stop := interruptible(ctx, view)
	defer stop()
	r := point.Runner{Names: settings, Command: e.Command, Version: versionOf(), Progress: view}
	s, err := r.Open(ctx, &p)
	if err != nil {
		if ctx.Err() != nil {
			return Interrupted, err
		}
		return Done, err
	}
	say, err := measure(ctx, s, &p, view)
	if errors.Is(err, context.Canceled) {
		err = nil
	}
	run, err := s.Close(ctx.Err() != nil, err)
	view.close()
	switch {
	case run == nil:
	case len(run.Points) == 0 && err != nil:
		run = nil // the error says it all
	case say != nil:
		say(run)
		err = errors.Join(err, point.Save(s.Dir, run))
	}
	code, err := concluded(ctx, e, run, s.Dir, p.Format, exports, err)
	return strictly(&p, e, run, code), err
}

// searched says how a sweep or a search ended. That a load beyond the knee is
// not served well is what they are for.
func searched(run *result.Run) int {
	switch c := run.Capacity; {
	case unserved(run):
		return TargetFailed
	case c != nil && c.Verified != nil && c.Estimate == nil && c.Verified.Refuted: // the one load that was asked about
		return SLOMissed
	}
	switch {
	case run.Verdict == result.Invalid:
		return Invalid
	case neverMet(run.Capacity):
		return SLOMissed
	}
	return Done
}

// neverMet says that a search found the SLO missed even at the lightest load.
func neverMet(c *result.Capacity) bool {
	return c != nil && c.Load == nil && c.Bracket != nil && c.Bracket[0] == nil && c.Bracket[1] != nil
}
