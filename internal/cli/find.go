package cli

import (
	"context"

	"pitot/internal/config"
	"pitot/internal/session"
)

func findVerb(ctx context.Context, e *Env) (int, error) {
	v := measuring{verb: config.VerbFind, loads: measureCapacity}
	return v.run(ctx, e)
}

func measureCapacity(ctx context.Context, s *session.Session, p *config.Plan, view *progress) error {
	if c := s.ConcludedCapacity(); c != nil {
		s.SetFound(c)
		return nil
	}
	claims, err := p.SLO.SplitClaims()
	if err != nil {
		return err
	}
	var earlier *session.Continued
	if p.Continue != "" {
		if earlier, err = session.ReadContinued(p); err != nil {
			return err
		}
		if err := earlier.Launched(s); err != nil {
			return err
		}
	}
	in := session.NewSearcher(s, claims, p.IsClosedLoop(), view)
	goal := session.Goal{Objective: p.SLO, Budget: p.SearchTime(), MaxLoad: p.MaxLoad, Verify: p.At, Seed: p.Seed, Continued: earlier}
	if goal.Alone, err = s.MeasureAlone(ctx); err != nil {
		return err
	}
	c, err := in.Find(ctx, goal)
	s.SetFound(c)
	return err
}

func findHelp() manual {
	return manual{target: true, engine: true,
		about: "Find the highest load that meets an SLO.",
		usage: "pitot find URL --slo LIMITS [flags]",
		examples: `pitot find http://localhost:8000 --slo chat
			pitot find http://localhost:8000 --slo "p99 ttft<500ms, p99 tpot<50ms" --budget 30m
			pitot find http://localhost:8000 --slo chat --workload chat --over concurrency
			pitot find http://localhost:8000 --slo chat --at 4     # does 4/s meet it?`,
		notes: `Near the limit, requests miss the SLO in bursts, so a single measurement is unreliable.
Pitot measures many loads around the limit and fits a curve through them. Then it verifies
one load in a long measurement. A smaller --budget gives a wider interval.`,
	}
}
