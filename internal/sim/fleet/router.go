package fleet

import (
	"fmt"

	"pitot/internal/sim"
)

// Config is a router and what it is set to.
type Config struct {
	Router string // a name of [Routers]
	Seed   uint64 // of what is drawn
	// Frontends is the number of API servers that balance independently (vLLM's api_server_count).
	Frontends int
	// Of cache_aware: the share of a prompt that must be found for it to go where that
	// is; and by how much the most and the least loaded must differ, in requests and by
	// a factor, for all to go to the least loaded instead.
	CacheThreshold      float64
	BalanceAbsThreshold int
	BalanceRelThreshold float64
	// Changes lists the engines that join and leave, in the order of their times. Again makes an
	// engine in the place of one that died.
	Changes []Change
	Again   func(engine int) sim.Model
	// Steps counts steps that all engines take together; nil: each has its own.
	Steps func() int64
}

// Defaults are vLLM's own balancing, and what SGLang's and vLLM's routers have whoever starts them
// without flags: RouterArgs of sglang_router (commit 083d601378d0) and of vllm_router
// (1700eefa945b). A policy that the Rust code of the latter makes without these has other ones
// (CacheAwareConfig::default: 0.5, 32, 1.1).
func Defaults(engines int) Config {
	return Config{Router: "vllm", Frontends: engines, CacheThreshold: 0.3, BalanceAbsThreshold: 64, BalanceRelThreshold: 1.5}
}

// router decides which engine gets a job.
type router interface {
	// route gives the number of an engine that takes jobs.
	route(now int64, j *sim.Job) int
	// ended says that a job is no longer with the engine that it was sent to.
	ended(id int64, engine int)
	// gone says that an engine has died, with all that it had in its cache.
	gone(engine int)
	// passes says that time passes: nothing happens any more before now.
	passes(now int64)
}

// idle is the part of routers that count nothing themselves.
type idle struct{}

func (idle) ended(int64, int) {}
func (idle) gone(int)         {}
func (idle) passes(int64)     {}

// routers are all, the first is vLLM's default.
var routers = []struct {
	name, about string
	open        func(f *Fleet, c Config) router
}{
	{"vllm", "vLLM's own score between the engines of one server: its API servers' own requests, and counts of all that are up to 100 ms old",
		func(f *Fleet, c Config) router { return newScore(f, c) }},
	{"round_robin", "each in turn",
		func(f *Fleet, _ Config) router { return &roundRobin{f: f} }},
	{"random", "any",
		func(f *Fleet, c Config) router { return &random{f: f, seed: c.Seed, of: 1} }},
	{"power_of_two", "the one with fewer requests of any two",
		func(f *Fleet, c Config) router { return &random{f: f, seed: c.Seed, of: 2} }},
	{"least_requests", "the one with the fewest requests",
		func(f *Fleet, _ Config) router { return &leastRequests{f: f} }},
	{"session", "the one that has the session, others in turn",
		func(f *Fleet, c Config) router { return &session{f: f, seed: c.Seed, other: roundRobin{f: f}} }},
	{"cache_aware", "SGLang's router: the one that has most of the prompt in its cache, as far as loads are even",
		func(f *Fleet, c Config) router { return newCacheAware(f, c) }},
}

// Routers gives the names of all routers.
func Routers() []string {
	names := make([]string, len(routers))
	for i, r := range routers {
		names[i] = r.name
	}
	return names
}

// DescribeRouter says in a few words what a router does.
func DescribeRouter(name string) string {
	for _, r := range routers {
		if r.name == name {
			return r.about
		}
	}
	return ""
}

// Check says what is impossible about the configuration.
func (c *Config) Check() error {
	switch {
	case DescribeRouter(c.Router) == "":
		return fmt.Errorf("there is no router %q", c.Router)
	case c.Frontends < 1 || c.Frontends > 1024:
		return fmt.Errorf("api_server_count is %d, it must be between 1 and 1024", c.Frontends)
	case !(c.CacheThreshold >= 0 && c.CacheThreshold <= 1):
		return fmt.Errorf("cache_threshold is %v, it is a share of the prompt: between 0 and 1", c.CacheThreshold)
	case c.BalanceAbsThreshold < 0:
		return fmt.Errorf("balance_abs_threshold is %d, it must be at least 0", c.BalanceAbsThreshold)
	case !(c.BalanceRelThreshold >= 1 && c.BalanceRelThreshold <= 1e6):
		return fmt.Errorf("balance_rel_threshold is %v, it is a factor of at least 1", c.BalanceRelThreshold)
	}
	return nil
}

func (c Config) newRouter(f *Fleet) router {
	for _, r := range routers {
		if r.name == c.Router {
			return r.open(f, c)
		}
	}
	return &roundRobin{f: f}
}

// roundRobin gives each engine a job in turn.
type roundRobin struct {
	idle
	f *Fleet
	n int
}

func (r *roundRobin) route(int64, *sim.Job) int {
	i := r.f.open[r.n%len(r.f.open)]
	r.n++
	return i
}

// random takes the engine with the fewest jobs of so many that are drawn. What it
// draws depends on the job alone.
type random struct {
	idle
	f    *Fleet
	seed uint64
	of   int
}

func (r *random) route(_ int64, j *sim.Job) int {
	n := len(r.f.open)
	h := sim.Mix(sim.Mix(r.seed) ^ uint64(j.ID))
	a := r.f.open[h%uint64(n)]
	if r.of == 1 || n == 1 {
		return a
	}
	b := r.f.open[(h%uint64(n)+1+sim.Mix(h)%uint64(n-1))%uint64(n)]
	if r.f.jobCount(b) < r.f.jobCount(a) {
		return b
	}
	return a
}

// leastRequests takes the engine with the fewest jobs, of equals each in turn.
type leastRequests struct {
	idle
	f *Fleet
	n int
}

func (r *leastRequests) route(int64, *sim.Job) int {
	i := r.f.leastLoaded(r.n, r.f.jobCount)
	r.n++
	return i
}

// session sends all jobs of a session to the same engine, by the greatest of hashes of
// both (Thaler and Ravishankar, 1998): an engine that goes takes along its own sessions
// only.
type session struct {
	f     *Fleet
	seed  uint64
	other roundRobin
	idle
}

func (r *session) route(now int64, j *sim.Job) int {
	if j.Session == 0 {
		return r.other.route(now, j)
	}
	best, most := r.f.open[0], uint64(0)
	for _, i := range r.f.open {
		if h := sim.Mix(sim.Mix(r.seed^j.Session) ^ uint64(i)); h > most {
			best, most = i, h
		}
	}
	return best
}
