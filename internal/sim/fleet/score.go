package fleet

import "pitot/internal/sim"

// score implements vLLM's routing of requests to the engines of data parallelism
// (DPLBAsyncMPClient.get_core_engine_for_request of vLLM 0.32). Each API server routes for itself.
// It uses its own requests in flight and the coordinator's report on all engines every 100 ms.
type score struct {
	f       *Fleet
	seed    uint64
	clients []client
	told    int64 // when the coordinator tells next
}

// client holds the state of one API server.
type client struct {
	from     int // where it begins to look
	inFlight []int
	counts   []counts
}

// counts are an engine's, as the coordinator told them.
type counts struct {
	waiting, running int
	kv               float64 // share of the cache in use
}

// every is the interval of the coordinator's reports, in nanoseconds (DPCoordinatorProc,
// stats_update_interval_ms).
const every = 100e6

func newScore(f *Fleet, c Config) *score {
	r := &score{f: f, seed: c.Seed, clients: make([]client, max(c.Frontends, 1)), told: every}
	for k := range r.clients {
		r.clients[k] = client{
			from:     len(f.of) * k / len(r.clients),
			inFlight: make([]int, len(f.of)), counts: make([]counts, len(f.of)),
		}
	}
	return r
}

// passes lets the coordinator tell, with what the engines were at that time.
func (r *score) passes(now int64) {
	if now < r.told {
		return
	}
	r.told = now - now%every + every
	for i := range r.f.of {
		s := r.f.of[i].Model.Stats()
		for k := range r.clients {
			r.clients[k].counts[i] = counts{s.Waiting, s.Running, s.KVCacheUsage}
		}
	}
}

// clientForJob is the API server that a job's connection leads to.
func (r *score) clientForJob(id int64) *client {
	if len(r.clients) == 1 {
		return &r.clients[0]
	}
	return &r.clients[sim.Mix(sim.Mix(r.seed+1)^uint64(id))%uint64(len(r.clients))]
}

func (r *score) route(now int64, j *sim.Job) int {
	r.passes(now)
	c := r.clientForJob(j.ID)
	i := c.choose(len(r.clients), r.f.open)
	c.inFlight[i]++
	return i
}

// choose takes the engine with the least score, and counts a request for it.
func (c *client) choose(clients int, open []int) int {
	best, least := open[0], 0.0
	for k := range open {
		i := open[(c.from+k)%len(open)]
		at := &c.counts[i]
		s := float64(max(clients*c.inFlight[i], at.waiting+at.running))
		// A queue counts for more, the fuller the KV cache: up to four times.
		s += float64(at.waiting) * 6 * max(0, at.kv-0.5)
		if k == 0 || s < least {
			best, least = i, s
		}
	}
	c.counts[best].waiting += clients
	c.from = (c.from + 1) % len(open)
	return best
}

// gone implements router: what is in flight has been told to end already.
func (r *score) gone(int) {}

func (r *score) ended(id int64, i int) { r.clientForJob(id).inFlight[i]-- }
