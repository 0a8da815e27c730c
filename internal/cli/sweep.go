package cli

import (
	"context"

	"pitot/internal/plan"
	"pitot/internal/run"
	"pitot/internal/run/search"
)

func sweepVerb(ctx context.Context, e *Env) (int, error) {
	v := measuring{verb: plan.VerbSweep, loads: measureCurve}
	return v.run(ctx, e)
}

func measureCurve(ctx context.Context, s *run.Session, p *plan.Plan, view *progress) error {
	closed := p.IsClosedLoop()
	alone, err := s.MeasureAlone(ctx)
	if err != nil {
		return err
	}
	loads := search.NewLoads(search.LoadsConfig{
		Given: p.Loads, Points: p.Points, Repeat: p.Repeat, Closed: closed, MaxLoad: p.MaxLoad,
		Residence: alone.Seconds(), Seed: p.Seed,
	})
	return run.NewSearcher(s, nil, closed, view).Sweep(ctx, loads)
}
