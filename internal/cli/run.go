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
