package cli

import (
	"context"

	"pitot/internal/config"
	"pitot/internal/session"
)

// oneLoad is `pitot run`.
func oneLoad() *measuring {
	return &measuring{verb: config.VerbRun, loads: measureLoad}
}

func runVerb(ctx context.Context, e *Env) (int, error) { return oneLoad().run(ctx, e) }

func measureLoad(ctx context.Context, s *session.Session, _ *config.Plan, _ *progress) error {
	return s.Repeat(ctx)
}

func runHelp() manual {
	return manual{target: true, engine: true,
		about: "Measure one load on one server.",
		usage: "pitot run URL (--rate R | --concurrency N) [flags]",
		examples: `pitot run http://localhost:8000 --rate 4
			pitot run http://localhost:8000 --concurrency 8 --slo "p99 ttft<500ms, p99 tpot<50ms"
			pitot run https://api.example.com/v1 --model NAME --rate 0.5 --workload chat
			pitot run mock:llama-3.1-8b@h100 --rate 20       # no server needed: built-in vLLM model`,
	}
}
