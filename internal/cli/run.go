package cli

import (
	"context"
	"errors"
	"fmt"

	"pitot/internal/foreign"
	"pitot/internal/plan"
	"pitot/internal/point"
	"pitot/internal/report"
	"pitot/internal/result"
	"pitot/internal/user"
)

// measuringSettings are what all verbs know that measure a target.
func measuringSettings() []string {
	return []string{
		"api", "model", "key-env", "key-file", "header", "ca-cert", "insecure", "proxy", "timeout", "wait-ready", "no-probe",
		"input", "output", "prefix", "prefix-share", "workload", "body", "no-stream", "seed",
		"arrival", "think", "max-in-flight",
		"slo", "gpus", "gpu-price", "strict",
		"out", "format", "export", "launch", "note", "quiet",
		"ttft", "itl", "jitter", "slots", "tokens-per-chunk", "role-chunk", "max-model-len",
		"speed", "startup-delay", "reasoning", "prompt-tokens-details", "faults", "truth",
	}
}

// runSettings are what `pitot run` knows.
func runSettings() []string {
	return append(measuringSettings(), "rate", "concurrency", "duration", "requests", "exactly", "until", "budget", "warmup", "repeat", "token-price", "spend-limit", "dry-run")
}

func runVerb(ctx context.Context, e *Env) (int, error) {
	p, args, err := plan.Decode(runSettings(), e.Args, e.Environ)
	if err != nil {
		return Usage, err
	}
	if len(args) > 1 {
		return Usage, user.Errorf("one run measures one target", "more than one target: %q and %q", args[0], args[1])
	}
	if err := p.Check(); err != nil {
		return Usage, err
	}
	if err := withinLimit(&p, estimateRun(&p)); err != nil {
		return Usage, err
	}
	exports, err := foreign.ParseExports(p.Export)
	if err != nil {
		return Usage, err
	}
	if p.DryRun {
		if err := point.Check(&p); err != nil {
			return Usage, err
		}
		return Done, dryRun(e.Stdout, &p, estimateRun(&p))
	}
	view := newProgress(e.Stderr, p.Quiet, e.Getenv)
	if from := p.Provenance(); from != "" {
		view.Say("settings: " + from)
	}
	ctx, stop := interruptible(ctx, view)
	defer stop()
	r := point.Runner{Names: runSettings(), Command: e.Command, Version: versionOf(), Progress: view}
	run, dir, err := r.Run(ctx, &p)
	view.close()
	code, err := concluded(ctx, e, run, dir, p.Format, exports, err)
	return strictly(&p, e, run, code), err
}

// concluded shows what came of a measurement and gives the exit code. Whatever
// went wrong, what was measured is told of.
func concluded(ctx context.Context, e *Env, run *result.Run, dir, format string, exports []foreign.Export, err error) (int, error) {
	writePage(e.Stderr, run, dir) // first: whoever reads the answer may stop early, and that ends the process
	if run != nil {
		shown := show(e, run, dir, format)
		if exported := export(e, exports, run, dir); err == nil {
			err = errors.Join(shown, exported)
		}
	}
	if err == nil {
		return exitCode(run), nil
	}
	if dir != "" {
		fmt.Fprintf(e.Stderr, "pitot: what was measured is in %s\n", dir)
	}
	if ctx.Err() != nil {
		return Interrupted, err
	}
	return Done, err
}

// show writes a run in the format asked for.
func show(e *Env, run *result.Run, dir, format string) error {
	switch format {
	case "json":
		return report.JSON(e.Stdout, run)
	case "csv":
		return report.Build(run, dir).CSV(e.Stdout)
	case "html":
		page, err := makePage(run, dir)
		if err == nil {
			_, err = e.Stdout.Write(page)
		}
		return err
	case "md":
		return report.Build(run, dir).Markdown(e.Stdout)
	}
	return report.Build(run, dir).Text(e.Stdout, report.Style{Color: colored(e.Stdout, e.Getenv)})
}

// strictly gives the exit code of a run under --strict: flags fail too. What
// makes the run worth less comes first, as ever.
func strictly(p *plan.Plan, e *Env, run *result.Run, code int) int {
	if !p.Strict || run == nil || run.Verdict == result.Valid || code != Done && code < Invalid || code == Interrupted {
		return code
	}
	if code != Invalid {
		fmt.Fprintln(e.Stderr, "pitot: not plainly VALID, and --strict was given")
	}
	return Invalid
}

// exitCode says how a run ended.
func exitCode(run *result.Run) int {
	if run.Interrupted {
		return Interrupted
	}
	return judged(run)
}

// judged says what came out of a run, interrupted or not.
func judged(run *result.Run) int {
	switch {
	case run.Capacity != nil, run.Curve != nil:
		return searched(run)
	case unserved(run):
		return TargetFailed
	case run.Verdict == result.Invalid:
		return Invalid
	}
	for _, p := range run.Points {
		if p.SLO != nil && p.SLO.Met == "no" {
			return SLOMissed
		}
	}
	return Done
}

// worse gives the exit code of two runs: the lower, for what makes a number
// worthless comes before what is said of its value, but Done last.
func worse(a, b int) int {
	if a == Done || b == Done {
		return max(a, b)
	}
	return min(a, b)
}

// unserved says whether the target failed: it answered less than half of what
// was due, at every point.
func unserved(run *result.Run) bool {
	for _, p := range run.Points {
		if p.Outcome != "failing" && (p.Requests.OK > 0 || p.Requests.Due == 0) {
			return false
		}
	}
	return len(run.Points) > 0
}
