package cli

import (
	"context"

	"pitot/internal/data/result"
	"pitot/internal/plan"
	"pitot/internal/run"
	"pitot/internal/run/search"
)

// measuringSettings are what all verbs know that measure a target.
func measuringSettings() []string {
	return []string{
		"api", "model", "key-env", "key-file", "header", "ca-cert", "insecure", "proxy", "timeout", "wait-ready", "no-probe",
		"input", "output", "prefix", "prefix-share", "workload", "body", "no-stream", "seed",
		"arrival", "think", "max-in-flight",
		"slo", "gpus", "gpu-price", "token-price", "spend-limit", "strict",
		"out", "format", "export", "launch", "note", "quiet", "dry-run",
		"ttft", "itl", "jitter", "slots", "tokens-per-chunk", "role-chunk", "max-model-len",
		"speed", "startup-delay", "reasoning", "prompt-tokens-details", "faults", "truth",
	}
}

// runSettings are what `pitot run` knows.
func runSettings() []string {
	return append(measuringSettings(), "rate", "concurrency", "duration", "requests", "exactly", "until", "budget", "warmup", "repeat")
}

// oneLoad is `pitot run`.
func oneLoad() *measuring {
	return &measuring{settings: runSettings(), check: (*plan.Plan).Check, expect: estimateRun, loads: measureLoad}
}

func runVerb(ctx context.Context, e *Env) (int, error) { return oneLoad().run(ctx, e) }

func measureLoad(ctx context.Context, s *run.Session, p *plan.Plan, _ *progress) (func(*result.Run), error) {
	err := s.Repeat(ctx)
	if p.Repeat == 1 {
		return nil, err
	}
	return func(measured *result.Run) { measured.Repeats = search.Repeats(measured.Points) }, err
}
