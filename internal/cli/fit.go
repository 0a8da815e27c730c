package cli

import (
	"context"

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

func fitHelp() manual {
	return manual{engine: true,
		about: "Calibrate the simulation with measured runs of a server.",
		usage: "pitot fit MODEL@GPU[?settings] RUN… --out PROFILE [flags]",
		examples: `pitot fit 'llama-3.1-8b@h100?max_num_seqs=256' runs/few runs/many --out server.profile
			pitot predict 'llama-3.1-8b@h100?profile=server.profile'`,
		notes: `Give the settings that the engine was started with. Two runs with --concurrency work best: one
with few users and long prompts, one with many users and short prompts.`,
	}
}
