package cli

import (
	"context"

	"pitot/internal/analysis/predict"
	"pitot/internal/config"
	"pitot/internal/report"
	"pitot/internal/say"
	"pitot/internal/sim/deploy"
	"pitot/internal/workload"
)

// predictVerb predicts a deployment, or compares the twin with a recording or a run.
func predictVerb(ctx context.Context, e *Env) (int, error) {
	var p config.Prediction
	var ask config.Ask
	var good config.Good
	args, err := config.DecodeParts(config.VerbPredict, e.Args, e.Environ, &e.Display, &p, &ask, &good)
	if err != nil {
		return Usage, err
	}
	if len(args) > 1 {
		return Usage, say.Errorf("more than one deployment: %q and %q", args[0], args[1])
	}
	if p.List {
		return listKnown(e, &p, args)
	}
	spec := ""
	if len(args) == 1 {
		spec = config.EngineOf(args[0])
	}
	if p.Replay != "" {
		return replayRequests(e, &p, spec)
	}
	if p.MeasuredRun != "" && spec != "" {
		return compareWithTwin(ctx, e, &p, spec)
	}
	if spec == "" {
		return Usage, say.Errorf("no deployment given").WithHint("for example pitot predict llama-3.1-8b@h100")
	}
	d, err := deploy.Parse(spec)
	if err != nil {
		return Usage, err
	}
	if !good.GPUPrice.IsUnknown() {
		d.USDPerHour = good.GPUPrice.HourlyUSD(nil)
	}
	if preset, _ := workload.PresetNamed(ask.Workload); preset.Prefix > 0 || preset.Turns != "" {
		has := "a prefix, and predict reckons without one"
		if preset.Turns != "" {
			has = "conversations, and predict reckons with single requests"
		}
		return Usage, say.Errorf("%s has %s", preset.Name, has).WithHint("run it on the twin: pitot sweep sim:" + spec + " --workload " + preset.Name)
	}
	x, err := predict.Predict(d, ask.Input, ask.Output)
	if err != nil {
		return Usage, err
	}
	if p.Format == "json" {
		return Done, report.WriteJSON(e.Stdout, x)
	}
	return Done, report.WritePrediction(e.Stdout, x, e.styleOf(e.Stdout))
}

func replayRequests(e *Env, p *config.Prediction, spec string) (int, error) {
	r, err := predict.ReadRecording(p.Replay)
	if err != nil {
		return Usage, err
	}
	d, err := r.Deployment(spec)
	if err != nil {
		return Usage, err
	}
	x := r.Compare(d)
	if p.Format == "json" {
		return Done, report.WriteJSON(e.Stdout, x)
	}
	return Done, report.WriteReplay(e.Stdout, x, e.styleOf(e.Stdout))
}

// listKnown lists the models, accelerators and settings of deployments.
func listKnown(e *Env, p *config.Prediction, args []string) (int, error) {
	if len(args) > 0 || p.Replay != "" {
		return Usage, say.Errorf("--list lists all there is: it takes no deployment and no --replay").WithHint("leave one of them out")
	}
	k := predict.AllKnown()
	if p.Format == "json" {
		return Done, report.WriteJSON(e.Stdout, k)
	}
	return Done, report.WriteKnown(e.Stdout, k, e.styleOf(e.Stdout))
}

// compareWithTwin compares a measured run with the twin's prediction of it.
func compareWithTwin(ctx context.Context, e *Env, p *config.Prediction, spec string) (int, error) {
	x, err := predict.RedoRun(ctx, spec, p.MeasuredRun)
	if err != nil {
		return Usage, err
	}
	if p.Format == "json" {
		return Done, report.WriteJSON(e.Stdout, x)
	}
	return Done, report.WriteRunAgainstTwin(e.Stdout, x, e.styleOf(e.Stdout))
}

func predictHelp() manual {
	return manual{engine: true,
		about: "Predict latency and throughput of a deployment, no server needed.",
		usage: "pitot predict MODEL@GPU[?settings] [flags]\npitot predict --list",
		examples: `pitot predict llama-3.1-8b@h100
			pitot predict 'llama-3.1-70b@4xh100?max_num_seqs=64&kv_cache_dtype=fp8' --input 2048
			pitot predict llama-3.1-8b@h100 --run runs/before        # compare with a measured run
			pitot predict llama-3.1-8b@h100 --replay recording       # compare with a recording`,
		notes: `MODEL     a name (--list), or a directory with a Hugging Face config.json
GPU       a name (--list); 2xa100 is tensor parallelism over two; for 8xa100,
          ?data_parallel_size=4 is four engines of two GPUs each behind a router
settings  of the engine, as ?max_num_seqs=64: --help=engine lists them`,
	}
}
