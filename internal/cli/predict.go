package cli

import (
	"context"
	"fmt"
	"io"
	"math"

	"pitot/internal/plan"
	"pitot/internal/predict"
	"pitot/internal/report"
	"pitot/internal/twin/deploy"
	"pitot/internal/user"
)

func predictSettings() []string {
	return []string{"input", "output", "gpu-price", "replay", "format"}
}

// predictVerb says what to expect of a deployment, or how near the twin comes
// to a recording.
func predictVerb(_ context.Context, e *Env) (int, error) {
	p, args, err := plan.Decode(predictSettings(), e.Args, e.Environ)
	if err != nil {
		return Usage, err
	}
	if len(args) > 1 {
		return Usage, user.Errorf("", "more than one deployment: %q and %q", args[0], args[1])
	}
	spec := ""
	if len(args) == 1 {
		spec = args[0]
	}
	if p.Replay != "" {
		return replay(e, &p, spec)
	}
	if spec == "" {
		return Usage, user.Errorf("for example pitot predict llama-3.1-8b@h100", "no deployment given")
	}
	d, err := deploy.Parse(spec)
	if err != nil {
		return Usage, err
	}
	if p.GPUPrice > 0 {
		d.USDPerHour = p.GPUPrice
	}
	x, err := predict.Predict(d, mean(p.Input), mean(p.Output))
	if err != nil {
		return Usage, err
	}
	if p.Format == "json" {
		return Done, report.JSON(e.Stdout, x)
	}
	return Done, report.Prediction(e.Stdout, x, report.Style{Color: colored(e.Stdout, e.Getenv)})
}

func replay(e *Env, p *plan.Plan, spec string) (int, error) {
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
		return Done, report.JSON(e.Stdout, x)
	}
	return Done, report.Replay(e.Stdout, x, report.Style{Color: colored(e.Stdout, e.Getenv)})
}

func mean(l interface{ Mean() float64 }) int { return max(int(math.Round(l.Mean())), 1) }

func predictHelp(w io.Writer) {
	fmt.Fprint(w, `pitot predict MODEL@GPU [flags]

What to expect of a deployment before there is one: the arithmetic of bandwidth
and compute in the open, and the twin's curve over concurrency.

MODEL   a name of the catalogue, or a directory with a Hugging Face config.json
GPU     h100, 2xa100, …; with ?max_num_seqs=64&kv_dtype=fp8 for the engine

pitot predict [MODEL@GPU] --replay DIR [flags]

Sends the requests of a recording (meta.json, requests.jsonl) to the twin at
their recorded times and lays what it does beside what was recorded.
`)
	printSettings(w, predictSettings())
}
