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
	if c := s.ConcludedCapacity(); c != nil {
		s.SetFound(c)
		return nil
	}
	claims, err := p.SLO.SplitClaims()
	if err != nil {
		return err
	}
	var earlier *run.Continued
	if p.Continue != "" {
		if earlier, err = run.ReadContinued(p); err != nil {
			return err
		}
		if err := earlier.Launched(s); err != nil {
			return err
		}
	}
	in := run.NewSearcher(s, claims, p.IsClosedLoop(), view)
	goal := run.Goal{Objective: p.SLO, Budget: p.SearchTime(), MaxLoad: p.MaxLoad, Verify: p.At, Seed: p.Seed, Continued: earlier}
	if goal.Alone, err = s.MeasureAlone(ctx); err != nil {
		return err
	}
	c, err := in.Find(ctx, goal)
	s.SetFound(c)
	return err
}
