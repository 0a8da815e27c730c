package cli

import (
	"context"
	"fmt"
	"io"
	"strings"

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

func predictHelp(w io.Writer) {
	fmt.Fprint(w, `pitot predict MODEL@GPU[?settings] [flags]

What to expect of a deployment before there is one: the arithmetic of bandwidth
and compute in the open, and the twin's curve over concurrency.

MODEL     a name (pitot predict --list), or a directory with a Hugging Face
          config.json
GPU       a name (--list); 2xa100 for two, with tensor parallelism;
          8xa100?data_parallel_size=4 for four engines of two behind a router
settings  of the engine, as in ?max_num_seqs=64&kv_cache_dtype=fp8

pitot predict [MODEL@GPU] --replay DIR [flags]

Sends the requests of a recording (meta.json, requests.jsonl) to the twin at
their recorded times and compares what it does with what was recorded.
`)
	fmt.Fprint(w, `
pitot predict MODEL@GPU --run DIR [flags]

Does a measured run again on the twin, the same requests at the same times, and
says what a difference usually means.
`)
	printSettings(w, config.VerbPredict)
	fmt.Fprint(w, "\nSettings of the engine, behind ? and joined by &, with vLLM's names where it has one\n")
	names := append(deploy.SettingNames(), "profile")
	for _, line := range wrapText(strings.Join(names, ", "), helpWidth-2) {
		fmt.Fprintln(w, "  "+line)
	}
}
