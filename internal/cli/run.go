package cli

import (
	"context"

	"pitot/internal/plan"
	"pitot/internal/run"
)

// oneLoad is `pitot run`.
func oneLoad() *measuring {
	return &measuring{verb: plan.VerbRun, loads: measureLoad}
}

func runVerb(ctx context.Context, e *Env) (int, error) { return oneLoad().run(ctx, e) }

func measureLoad(ctx context.Context, s *run.Session, _ *plan.Plan, _ *progress) error {
	return s.Repeat(ctx)
}
