package predict

import (
	"context"

	"pitot/internal/loadgen"
	"pitot/internal/metrics"
	"pitot/internal/results/record"
	"pitot/internal/sim"
	"pitot/internal/sim/deploy"
	"pitot/internal/workload"
)

// A replay is a plan like any other, the recorded requests at their recorded
// times, which the load's core carries out in the virtual world; and it is
// measured by the definitions of any other run.

// Replay gives the metrics of the recorded requests on a deployment's twin.
func (r *Recording) Replay(d *deploy.Deployment) Series {
	return r.joinTimings(r.replay(d), everyRequest)
}

// replay is [Recording.serve] with the usual chances.
func (r *Recording) replay(d *deploy.Deployment) []timing { return r.serve(d, 1, nil) }

// serve sends the recorded requests to a deployment's engine: at their recorded
// times, or in a closed loop when those before are answered. seed decides the
// engine's chances. A function for chunks is handed each of them in the order of time,
// and stalls of the requests of which it wants them are measured: of all of them that
// takes a third more time. The front end is left out where the recording is timed at
// the engine.
func (r *Recording) serve(d *deploy.Deployment, seed uint64, chunk func(request, at int64) bool) []timing {
	c := *d
	if !r.AtClient {
		c.Settings.Frontend = sim.Frontend{}
	}
	e := c.Engine(seed)
	if r.course != nil {
		e.Pace(func(at int64) float64 { return r.course.factorAt(float64(at) / 1e9) })
	}
	return r.serveOn(e, chunk)
}

// keepTimes is a function for chunks that keeps when each of them came, in seconds by request.
func (r *Recording) keepTimes() (times [][]float64, chunk func(request, at int64) bool) {
	times = make([][]float64, len(r.Requests))
	return times, func(request, at int64) bool {
		times[request] = append(times[request], float64(at)/1e9)
		return true
	}
}

// servedBy is the run as a client would have recorded it of a deployment's twin.
func (r *Recording) servedBy(d *deploy.Deployment, seed uint64) *Recording {
	times, chunk := r.keepTimes()
	timings := r.serve(d, seed, chunk)
	c := *r
	c.Requests, c.until = nil, 0
	for i, q := range r.Requests {
		if len(times[i]) == 0 { // it was not sent any more
			continue
		}
		if r.until > 0 && q.Arrival >= r.until && c.until == 0 {
			c.until = timings[i].sent
		}
		if q.Arrival = timings[i].sent; len(q.times) > 0 {
			q.seen, q.times = timings[i], times[i]
		}
		c.Requests = append(c.Requests, q)
	}
	return &c
}

// serveOn sends them to an engine.
func (r *Recording) serveOn(e sim.Engine, chunk func(request, at int64) bool) []timing {
	to := newStopwatch(len(r.Requests), chunk)
	loadgen.Run(context.Background(), loadgen.NewCore(r.loadConfig()), loadgen.NewVirtual(loadgen.VirtualConfig{
		Engine: unlimited{e}, Source: source{r}, Sink: to, Content: r.contentOf,
	}))
	return to.timings
}

// unlimited is an engine that refuses no request for its length: the server of
// the recording took it, whatever the twin's may be.
type unlimited struct{ sim.Engine }

// stopwatch measures the requests of a replay as they end. Where no one wants
// their chunks, all that is asked of a request is in its row.
type stopwatch struct {
	gatherer *metrics.Gatherer
	streams  []*metrics.Stream // of the requests under way
	free     []*metrics.Stream
	timings  []timing
	chunk    func(request, at int64) bool
	scratch  record.Chunk // a copy of our own to point into: what is handed over must not escape to the heap
}

// newStopwatch is for so many requests.
func newStopwatch(n int, chunk func(request, at int64) bool) *stopwatch {
	return &stopwatch{gatherer: metrics.NewGatherer(nil), streams: make([]*metrics.Stream, n), timings: make([]timing, n), chunk: chunk}
}

// stream is that of a request.
func (w *stopwatch) stream(id int64) *metrics.Stream {
	s := w.streams[id]
	if s == nil {
		if n := len(w.free); n > 0 {
			s, w.free = w.free[n-1], w.free[:n-1]
		} else {
			s = new(metrics.Stream)
		}
		w.streams[id] = s
	}
	return s
}

// Chunk implements [record.Sink].
func (w *stopwatch) Chunk(c record.Chunk) {
	if w.chunk != nil && w.chunk(c.Request, c.T) {
		w.scratch = c
		w.gatherer.Chunk(w.stream(c.Request), &w.scratch)
	}
}

// Done implements [record.Sink].
func (w *stopwatch) Done(r *record.Row) {
	s := w.stream(r.ID)
	q := w.gatherer.Request(s, r)
	w.timings[r.ID], w.streams[r.ID] = timingOf(&q, r.Sent), nil
	s.Reset()
	w.free = append(w.free, s)
}

// loadConfig is the recording as a load: each request when it was sent, and in a closed
// loop those behind the first of each user when an earlier one is answered. Ids
// are places in the recording.
func (r *Recording) loadConfig() loadgen.Config {
	n := len(r.Requests)
	alone := n // come by themselves
	if r.users > 0 {
		alone = min(r.users, n)
	}
	cfg := loadgen.Config{Arrivals: &recordedArrivals{requests: r.Requests[:alone]}, Requests: int64(n), Total: int64(n), Cap: r.most}
	if alone < n {
		next, due := alone, r.Requests[alone-1].sentAt()
		cfg.Follow = func(_ int64, e loadgen.Event) []loadgen.Ask {
			if next == n || r.lasts > 0 && float64(e.At) > r.lasts*1e9 {
				return nil
			}
			q := &r.Requests[next]
			due = max(due, e.At+int64(q.pause*1e9)) // they keep their order
			next++
			return []loadgen.Ask{{Due: due, Item: int64(next - 1)}}
		}
	}
	return cfg
}

// recordedArrivals are those of a recording.
type recordedArrivals struct{ requests []Recorded }

// Next gives the next arrival in nanoseconds, [loadgen.Never] behind the last.
func (t *recordedArrivals) Next() int64 {
	if len(t.requests) == 0 {
		return loadgen.Never
	}
	due := t.requests[0].sentAt()
	t.requests = t.requests[1:]
	return due
}

// sentAt is when the request was, in nanoseconds. A stamp in seconds may be a hair
// below its nanosecond.
func (q *Recorded) sentAt() int64 {
	if q.stamp > 0 {
		return q.stamp
	}
	return int64(q.Arrival * 1e9)
}

// source is the recorded requests as what a load asks.
type source struct{ *Recording }

// At implements [workload.Source].
func (s source) At(item int64) (workload.Request, error) {
	q := &s.Requests[item]
	return workload.Request{ID: item, Input: q.Input, Output: q.Output, Exact: true, Session: workload.Unknown}, nil
}

// contentOf returns the content of a request.
func (r *Recording) contentOf(item int64, _ *workload.Request, _ int) sim.Content {
	q := &r.Requests[item]
	if q.content == nil {
		return newHashed(int(item), q)
	}
	return q.content
}

// hashed is the content of a recorded request: ids of its prompt's blocks,
// and an answer of its own.
type hashed struct {
	id     uint64
	blocks []int64 // of hashBlock tokens
}

// newHashed gives the content of the request at a place in the recording.
func newHashed(at int, r *Recorded) *hashed {
	return &hashed{uint64(at), r.Hashes[:min(len(r.Hashes), r.Input/hashBlock)]} // of full blocks only
}

// Tokens implements [sim.Content] for the engine's blocks, which may have
// another size than those of the recording. An id stands for its block and all
// before it, so the id of the last block that they touch tells them; where they
// end within it, prompts that part behind their end are taken to part before.
func (h *hashed) Tokens(from, to int) uint64 {
	if b := (to - 1) / hashBlock; b < len(h.blocks) {
		return uint64(h.blocks[b]) << 1
	}
	return (h.id<<32|uint64(from))<<1 | 1
}
