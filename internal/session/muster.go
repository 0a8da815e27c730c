package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"

	"pitot/internal/config"
	"pitot/internal/results/rundir"
	"pitot/internal/say"
)

// CoreReads is the number of tokens a second that one core of a client reads. Each comes in an
// event of its own: go run ./bench/client.
const CoreReads = 100_000

// workerReads is the number of tokens a second for one worker, so that a third of its core is
// spare. On a full core the client itself causes delays.
const workerReads = 0.7 * CoreReads

// leastCores are those of a machine that has room for workers, where the server is elsewhere and
// where it is on the same one.
const leastCores, leastCoresHere = 3, 8

// roomForWorkers returns the number of workers that there are cores for. Without a server on the
// same machine (here) they may have all cores but one, which the coordinator keeps. Else they may
// have a quarter, since they would take cores from the measured server.
func roomForWorkers(cores int, here bool) int {
	switch {
	case here && cores >= leastCoresHere:
		return cores / 4
	case !here && cores >= leastCores:
		return cores - 1
	}
	return 0
}

// Sending is by how many processes --fleet auto has a load sent, and why.
type Sending struct {
	Workers int    // 0: one process
	Why     string // as it follows "2 workers" or "one process sends"
	Short   bool   // more is to be read than they read well
}

func (s Sending) String() string {
	if s.Workers > 0 {
		return say.Plural(s.Workers, "worker") + s.Why
	}
	return "one process sends" + s.Why
}

// SendingOf decides it for a load on a machine of so many cores. perUser is as in
// [ExpectedTokens]. here says whether the server is on this machine, and is asked where that
// matters.
func SendingOf(p *config.Plan, l *config.Load, perUser float64, cores int, here func() bool) Sending {
	tokens := ExpectedTokens(&p.Ask, l, perUser)
	much := tokens > CoreReads
	though := ""
	if much {
		though = fmt.Sprintf(", though about %s tokens/s are to be read and one core reads %s", say.Count(int64(tokens)), say.Count(int64(CoreReads)))
	}
	noRoom := say.Plural(cores, "core") + " have no room for workers"
	if cores == 1 {
		noRoom = "1 core has no room for workers"
	}
	by := func(why string) Sending { return Sending{Why: though + why, Short: much} }
	switch {
	case p.Kind() == config.KindMock:
		return by(": the target is in this process")
	case p.Respect:
		return by(": --respect-limits is kept to by one")
	case !p.VerifiedShares().IsNone():
		return by(": questions (--check-answers) are sent and checked by one")
	case p.NoStream || p.Pooling:
		return by(": answers come whole, and cost little to read")
	case tokens == 0 && cores < leastCores:
		return by(": " + noRoom)
	case tokens == 0:
		return by(fmt.Sprintf(": what is to come is not known beforehand; a load that is known to bring over %s tokens/s, which one core reads, has workers", say.Count(int64(CoreReads))))
	case !much:
		return by(fmt.Sprintf(": about %s tokens/s are to be read, and one core reads %s", say.Count(int64(tokens)), say.Count(int64(CoreReads))))
	}
	beside := here()
	spare := roomForWorkers(cores, beside)
	if spare < 2 {
		why := ": " + noRoom
		if beside && cores >= leastCores {
			why = fmt.Sprintf(": the server is on this machine, whose %d cores have no room for workers beside it", cores)
		}
		return by(why + "; --fleet N has them all the same, here or on other machines")
	}
	wanted := workerCount(int(math.Ceil(tokens/workerReads)), l)
	if wanted < 2 {
		return by(": the load has no more than one user, or request in flight")
	}
	s := Sending{Workers: min(wanted, spare), Why: fmt.Sprintf(", as about %s tokens/s are to be read and one core reads %s", say.Count(int64(tokens)), say.Count(int64(CoreReads)))}
	if float64(s.Workers)*CoreReads < tokens {
		s.Short = true
		s.Why += fmt.Sprintf(": more than these read well, for which %d would be needed and %s have no room", wanted, say.Plural(cores, "core"))
	}
	s.Why += "; --fleet none keeps one process"
	return s
}

// ExpectedTokens returns the number of output tokens a second that a load is to bring in events of
// their own. It assumes that everything due is served. It returns 0 where that is not known or
// answers come whole. perUser is the rate of one user at another load of users, 0 without one. The
// rate of users on an idle server says nothing of many.
func ExpectedTokens(a *config.Ask, l *config.Load, perUser float64) float64 {
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
func (s *Session) gather(ctx context.Context, l *config.Load) error {
	if s.runner.Crew != nil {
		s.workers.present = s.runner.Crew
		return s.workers.present.Gather(ctx)
	}
	by := s.sendingOf(l)
	if by.Workers > 0 {
		return s.musterWorkers(ctx, by)
	}
	if by.Short && !s.workers.saidShort {
		s.workers.saidShort = true
		s.runner.showLine("note: " + by.String())
	}
	s.workers.present = nil
	return nil
}

// musterWorkers has workers carry a load out that nobody asked for: those of the load before, where
// they are as many and all are there.
func (s *Session) musterWorkers(ctx context.Context, by Sending) error {
	crew, r := s.workers.mustered, s.runner
	if crew != nil && crew.Size() >= by.Workers {
		err := crew.Gather(ctx)
		if err == nil || ctx.Err() != nil {
			s.workers.present = crew
			return ctx.Err()
		}
		s.replaceWorkers(err)
	} else if !s.workers.replaced {
		r.showLine("note: " + by.String())
	}
	s.workers.replaced = false
	crew, err := r.Muster(by.Workers)
	if err == nil {
		err = crew.Gather(ctx)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil { // nobody asked for them
		r.showLine(fmt.Sprintf("note: they did not come, and one process sends: %v", err))
		r.Muster, s.workers.present, s.workers.mustered = nil, nil, nil
		return nil
	}
	s.workers.present, s.workers.mustered = crew, crew
	return nil
}

// replaceWorkers lets workers go that nobody asked for, of which one is not there: others come in
// their place for the next load.
func (s *Session) replaceWorkers(why error) {
	s.runner.showLine(fmt.Sprintf("note: %v; others come in the place of all", why))
	s.workers.mustered, s.workers.replaced = nil, true
}

// carryOut has the load of a point carried out. Where nothing of it was sent, since a worker that
// nobody asked for was not there, others do so, and then one process.
func (s *Session) carryOut(ctx context.Context, x *pointLoad) (*carried, error) {
	for again := false; ; again = true {
		if s.workers.present == nil {
			x.setup.Sharing = 0
			return s.byItself(ctx, x)
		}
		c, err := s.byCrew(ctx, x)
		if absent := (*AbsentError)(nil); !errors.As(err, &absent) || s.workers.present != s.workers.mustered || ctx.Err() != nil {
			return c, err
		}
		if again {
			s.runner.showLine(fmt.Sprintf("note: %v; one process sends", err))
			s.runner.Muster, s.workers.present, s.workers.mustered = nil, nil, nil
			continue
		}
		s.replaceWorkers(err)
		if err := s.musterWorkers(ctx, Sending{Workers: s.workers.present.Size()}); err != nil {
			return nil, err
		}
	}
}

// sendingOf is by how many processes a load is sent that nobody said anything of.
func (s *Session) sendingOf(l *config.Load) Sending {
	r, p, t := s.runner, s.plan, s.Target
	if r.Muster == nil || p.Workers != config.AutoFleet || t.Kind != config.KindServer {
		return Sending{}
	}
	by := SendingOf(p, l, s.workers.perUser, cmp.Or(r.Cores, runtime.GOMAXPROCS(0)), t.IsLocal)
	if by.Workers > 0 {
		if _, err := config.ReadForWorker(r.planVerb(), filepath.Join(s.Dir, rundir.Config), os.Environ()); err != nil {
			return Sending{Why: ", though one core does not read well what is to come: a secret of the plan is sent to no worker", Short: true}
		}
	}
	return by
}
