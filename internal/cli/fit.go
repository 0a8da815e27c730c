package cli

import (
	"context"
	"fmt"
	"io"

	"pitot/internal/analysis/predict"
	"pitot/internal/config"
	"pitot/internal/report"
	"pitot/internal/say"
	"pitot/internal/session"
	"pitot/internal/sim/deploy"
)

// fitVerb calibrates the twin from measured runs.
func fitVerb(_ context.Context, e *Env) (int, error) {
	var p config.Fitting
	args, err := config.DecodeParts(config.VerbFit, e.Args, e.Environ, &p)
	if err != nil {
		return Usage, err
	}
	if err := session.NotOwn(p.Profile); err != nil {
		return Usage, err
	}
	if len(args) < 2 {
		return Usage, say.Errorf("fit needs a deployment and at least one run of it").WithHint("for example pitot fit llama-3.1-8b@h100?max_num_seqs=256 runs/A runs/B --out h100.yaml")
	}
	d, err := deploy.Parse(config.EngineOf(args[0]))
	if err != nil {
		return Usage, err
	}
	if err := predict.CheckDistinct(args[1:]); err != nil {
		return Usage, err
	}
	var runs []*predict.Recording
	for _, dir := range args[1:] {
		points, err := predict.ReadRuns(dir)
		if err != nil {
			return Usage, err
		}
		runs = append(runs, points...)
	}
	fit, err := predict.FitRuns(d, runs)
	if err != nil {
		return Usage, err
	}
	if p.Profile != "" {
		if err := fit.Profile(d.Given).Write(p.Profile); err != nil {
			return Usage, err
		}
	}
	if p.Format == "json" {
		return Done, report.WriteJSON(e.Stdout, fit)
	}
	return Done, report.WriteFit(e.Stdout, fit, p.Profile, e.styleOf(e.Stdout))
}

func fitHelp(w io.Writer) {
	fmt.Fprint(w, `pitot fit MODEL@GPU[?settings] RUN… --out PROFILE

Calibrates the twin from runs of a real engine: moves what a step, a row, a
prompt token and a chunk cost until the twin serves the same requests as the
engine did. The settings must be the engine's own (max_num_seqs, …). Two runs,
one with few users and long prompts and one with many and short ones
(--concurrency), determine more than one.

mock:, sim: and pitot predict take the profile: MODEL@GPU?profile=PROFILE
`)
	printSettings(w, config.VerbFit)
}
