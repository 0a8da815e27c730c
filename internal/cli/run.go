package cli

import (
	"context"

	"pitot/internal/data/result"
	"pitot/internal/plan"
	"pitot/internal/run"
	"pitot/internal/run/search"
)

// oneLoad is `pitot run`.
func oneLoad() *measuring {
	return &measuring{verb: plan.VerbRun, expect: estimateRun, loads: measureLoad}
}

func runVerb(ctx context.Context, e *Env) (int, error) { return oneLoad().run(ctx, e) }

func measureLoad(ctx context.Context, s *run.Session, p *plan.Plan, _ *progress) (func(*result.Run), error) {
	err := s.Repeat(ctx)
	if p.Repeat == 1 {
		return nil, err
	}
	return func(measured *result.Run) { measured.Repeats = search.Repeats(measured.Points) }, err
}
