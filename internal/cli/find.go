package cli

import (
	"context"

	"pitot/internal/plan"
	"pitot/internal/run"
)

func findVerb(ctx context.Context, e *Env) (int, error) {
	v := measuring{verb: plan.VerbFind, loads: measureCapacity}
	return v.run(ctx, e)
}

func measureCapacity(ctx context.Context, s *run.Session, p *plan.Plan, view *progress) error {
	if c := s.Concluded(); c != nil {
		s.Found(c)
		return nil
	}
	claims, err := p.SLO.Claims()
	if err != nil {
		return err
	}
	in := run.NewSearcher(s, claims, p.Over == "concurrency", view)
	alone, err := s.Alone(ctx)
	if err != nil {
		return err
	}
	c, err := in.Find(ctx, run.Goal{Objective: p.SLO, Budget: p.SearchTime(), MaxLoad: p.MaxLoad, Alone: alone, Verify: p.Verify, Seed: p.Seed})
	s.Found(c)
	return err
}
