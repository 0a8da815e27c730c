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
	var earlier *run.Continued
	if p.Continue != "" {
		if earlier, err = run.Continue(p); err != nil {
			return err
		}
		if err := earlier.Launched(s); err != nil {
			return err
		}
	}
	in := run.NewSearcher(s, claims, p.Closed(), view)
	goal := run.Goal{Objective: p.SLO, Budget: p.SearchTime(), MaxLoad: p.MaxLoad, Verify: p.At, Seed: p.Seed, Continued: earlier}
	if goal.Alone, err = s.Alone(ctx); err != nil {
		return err
	}
	c, err := in.Find(ctx, goal)
	s.Found(c)
	return err
}
