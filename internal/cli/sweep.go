package cli

import (
	"context"

	"pitot/internal/capacity"
	"pitot/internal/config"
	"pitot/internal/session"
)

func sweepVerb(ctx context.Context, e *Env) (int, error) {
	v := measuring{verb: config.VerbSweep, loads: measureCurve}
	return v.run(ctx, e)
}

func measureCurve(ctx context.Context, s *session.Session, p *config.Plan, view *progress) error {
	closed := p.IsClosedLoop()
	alone, err := s.MeasureAlone(ctx)
	if err != nil {
		return err
	}
	loads := capacity.NewLoads(capacity.LoadsConfig{
		Given: p.Loads, Points: p.Points, Repeat: p.Repeat, Closed: closed, MaxLoad: p.MaxLoad,
		Residence: alone.Seconds(), Seed: p.Seed,
	})
	return session.NewSearcher(s, nil, closed, view).Sweep(ctx, loads)
}

func sweepHelp() manual {
	return manual{target: true, engine: true,
		about: "Measure many loads: the curve of latency and throughput. For a capacity use pitot find.",
		usage: "pitot sweep URL [flags]",
		examples: `pitot sweep http://localhost:8000 --slo chat
			pitot sweep http://localhost:8000 --loads 1,2,4,8 --duration 30s
			pitot sweep http://localhost:8000 --over concurrency --workload chat`,
	}
}
