package cli

import (
	"context"

	"pitot/internal/plan"
	"pitot/internal/point"
	"pitot/internal/result"
	"pitot/internal/sweep"
)

// searchSettings are what sweep and find share.
func searchSettings() []string { return append(measuringSettings(), "over", "max-load", "resume") }

// sweepSettings are what `pitot sweep` knows.
func sweepSettings() []string {
	return append(searchSettings(), "loads", "points", "duration", "requests", "warmup", "repeat")
}

func sweepVerb(ctx context.Context, e *Env) (int, error) {
	v := measuring{settings: sweepSettings(), check: (*plan.Plan).CheckSweep, expect: estimateSweep, loads: measureCurve}
	return v.run(ctx, e)
}

func measureCurve(ctx context.Context, s *point.Session, p *plan.Plan, view *progress) (func(*result.Run), error) {
	closed := p.Over == "concurrency"
	alone, err := s.Alone(ctx)
	if err != nil {
		return nil, err
	}
	loads := sweep.NewLoads(sweep.LoadsConfig{
		Given: p.Loads, Points: p.Points, Repeat: p.Repeat, Closed: closed, MaxLoad: p.MaxLoad,
		Residence: alone.Seconds(), Seed: p.Seed,
	})
	err = sweep.NewSession(s, nil, closed, view).Sweep(ctx, loads, point.Load{Requests: p.Requests, Duration: p.Duration, Warmup: p.Warmup})
	return func(run *result.Run) { run.Curve = sweep.CurveOf(run.Points) }, err
}
