package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"

	"pitot/internal/data/rundir"
	"pitot/internal/load"
	"pitot/internal/measure"
	"pitot/internal/plan"
	"pitot/internal/say"
)

// CoreReads is how many tokens a second one core of a client reads, each in an event of its own:
// go run ./bench/client.
const CoreReads = 100_000

// workerReads is how many one worker is given, so that a third of its core is to spare: what
// is late on a full one is late by the client's doing.
const workerReads = 0.7 * CoreReads

// Needed is how many workers --fleet auto has on a machine of so many cores for a load that
// is to bring so many tokens a second, 0 where one process is enough. Without a server on the
// same machine (here) they may have all cores but one, which the coordinator keeps; else a
// quarter, since they would take them from what is measured.
func Needed(tokens float64, cores int, here bool) int {
	spare := cores - 1
	if here {
		spare = cores / 4
	}
	if tokens <= CoreReads || spare < 2 {
		return 0
	}
	return min(spare, int(math.Ceil(tokens/workerReads)))
}

// MusterText says why a load has several workers.
func MusterText(workers int, tokens float64) string {
	return fmt.Sprintf("%s, as about %s tokens/s are to be read and one core reads %s; --fleet none keeps one process",
		say.Plural(workers, "worker"), say.Count(int64(tokens)), say.Count(int64(CoreReads)))
}

// AutoFleet says whether --fleet auto may divide the loads of a plan: what the workers of
// --fleet N cannot keep to together one process does.
func AutoFleet(p *plan.Plan) bool {
	return p.Workers == plan.AutoFleet && p.Kind() == plan.KindServer && !p.Respect && p.Verifying().None()
}

// ExpectedTokens is how many output tokens a second a load is to bring in events of their own if
// all that is due is served, 0 where that is not known or answers come whole. perUser is what one
// user had at another load of them, 0 without one: what users have on an idle server tells nothing
// of many.
func ExpectedTokens(a *plan.Ask, l *plan.Load, perUser float64) float64 {
	if a.NoStream || a.Pooling {
		return 0
	}
	if l.Rate == 0 {
		return perUser * float64(l.Concurrency)
	}
	_, out := a.MeanTokens()
	return l.Rate * a.MeanTurns() * out
}

// gather waits for the workers of a load, if it has any, of which --fleet auto decides here.
func (s *Session) gather(ctx context.Context, l *plan.Load) error {
	if s.runner.Crew != nil {
		s.crew = s.runner.Crew
		return s.crew.Gather(ctx)
	}
	if workers, tokens := s.needed(l); workers > 0 {
		return s.muster(ctx, workers, tokens)
	}
	s.crew = nil
	return nil
}

// muster has workers carry a load out that nobody asked for: those of the load before, where they
// are as many and all are there.
func (s *Session) muster(ctx context.Context, workers int, tokens float64) error {
	crew, r := s.mustered, s.runner
	if crew != nil && crew.Size() >= workers {
		err := crew.Gather(ctx)
		if err == nil || ctx.Err() != nil {
			s.crew = crew
			return ctx.Err()
		}
		s.replace(err)
	} else if !s.replaced {
		r.showLine("note: " + MusterText(workers, tokens))
	}
	s.replaced = false
	crew, err := r.Muster(workers)
	if err == nil {
		err = crew.Gather(ctx)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil { // nobody asked for them
		r.showLine(fmt.Sprintf("note: they did not come, and one process sends: %v", err))
		r.Muster, s.crew, s.mustered = nil, nil, nil
		return nil
	}
	s.crew, s.mustered = crew, crew
	return nil
}

// replace lets workers go that nobody asked for, of which one is not there: others come in their
// place for the next load.
func (s *Session) replace(why error) {
	s.runner.showLine(fmt.Sprintf("note: %v; others come in the place of all", why))
	s.mustered, s.replaced = nil, true
}

// carry has the load of a point carried out. Where nothing of it was sent, since a worker that
// nobody asked for was not there, others do so, and then one process.
func (s *Session) carry(ctx context.Context, l *plan.Load, what Load, index int32, setup *measure.Setup, cfg *load.Config, tap *tap, src *source) (*carried, error) {
	for again := false; ; again = true {
		if s.crew == nil {
			setup.Sharing = 0
			return s.byItself(ctx, l, what, index, setup, cfg, tap, src)
		}
		c, err := s.byCrew(ctx, l, what, index, setup, cfg, tap, src)
		if absent := (*AbsentError)(nil); !errors.As(err, &absent) || s.crew != s.mustered || ctx.Err() != nil {
			return c, err
		}
		if again {
			s.runner.showLine(fmt.Sprintf("note: %v; one process sends", err))
			s.runner.Muster, s.crew, s.mustered = nil, nil, nil
			continue
		}
		s.replace(err)
		if err := s.muster(ctx, s.crew.Size(), 0); err != nil {
			return nil, err
		}
	}
}

// needed is how many workers a load has by itself, and for how many tokens a second.
func (s *Session) needed(l *plan.Load) (workers int, tokens float64) {
	r, p, t := s.runner, s.plan, s.Target
	if r.Muster == nil || !AutoFleet(p) || t.Kind != plan.KindServer {
		return 0, 0
	}
	tokens = ExpectedTokens(&p.Ask, l, s.perUser)
	if tokens <= CoreReads {
		return 0, 0
	}
	workers = ranks(Needed(tokens, cmp.Or(r.Cores, runtime.NumCPU()), t.Here()), l)
	if workers < 2 {
		return 0, 0
	}
	if _, err := plan.Carried(r.verb(), filepath.Join(s.Dir, rundir.Config), os.Environ()); err != nil { // a secret that no worker is sent
		return 0, 0
	}
	return workers, tokens
}
