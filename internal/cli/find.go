package cli

import (
	"context"
	"errors"
	"fmt"

	"pitot/internal/plan"
	"pitot/internal/point"
	"pitot/internal/result"
	"pitot/internal/sweep"
	"pitot/internal/user"
)

// searchSettings are what sweep and find share.
func searchSettings() []string {
	return []string{
		"api", "model", "key-env", "key-file", "header", "ca-cert", "insecure", "proxy", "timeout", "wait-ready", "no-probe",
		"input", "output", "prefix", "prefix-share", "workload", "body", "no-stream", "seed",
		"arrival", "think", "max-in-flight", "over", "max-load",
		"slo", "gpus", "gpu-price",
		"out", "resume", "format", "launch", "note", "quiet",
		"ttft", "itl", "jitter", "slots", "tokens-per-chunk", "role-chunk", "max-model-len",
		"speed", "startup-delay", "reasoning", "prompt-tokens-details", "faults", "truth",
	}
}

// findSettings are what `pitot find` knows.
func findSettings() []string { return append(searchSettings(), "budget", "verify") }

func findVerb(ctx context.Context, e *Env) (int, error) {
	return search(ctx, e, findSettings(), (*plan.Plan).CheckFind, func(ctx context.Context, s *point.Session, p *plan.Plan, view *progress) (func(*result.Run), error) {
		claims, err := p.SLO.Claims()
		if err != nil {
			return nil, err
		}
		in := sweep.NewSession(s, claims, p.Over == "concurrency", view)
		alone, err := s.Alone(ctx)
		if err != nil {
			return nil, err
		}
		c, err := in.Find(ctx, sweep.Search{Objective: p.SLO, Budget: p.Budget, MaxLoad: p.MaxLoad, Alone: alone, Verify: p.Verify, Seed: p.Seed})
		return func(run *result.Run) { run.Capacity = c }, err
	})
}

// search does what sweep and find have in common: a session of many points,
// kept whatever ends it.
func search(ctx context.Context, e *Env, settings []string, check func(*plan.Plan) error,
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
	finish, err := measure(ctx, s, &p, view)
	if errors.Is(err, context.Canceled) {
		err = nil
	}
	run, closing := s.Close(ctx.Err() != nil, err)
	view.close()
	if run != nil {
		if finish != nil {
			finish(run)
			closing = errors.Join(closing, point.Save(s.Dir, run))
		}
		if len(run.Points) == 0 && closing != nil { // the error says it all
		} else if e := show(e, run, s.Dir, p.Format); e != nil && closing == nil {
			closing = e
		}
	}
	if closing != nil {
		fmt.Fprintf(e.Stderr, "pitot: what was measured is in %s\n", s.Dir)
		if ctx.Err() != nil {
			return Interrupted, closing
		}
		return Done, closing
	}
	return exitCode(run), nil
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
