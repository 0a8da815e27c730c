package vllm

import (
	"cmp"
	"math"
	"slices"
	"time"

	"pitot/internal/sim"
)

// front is the API server: one thread that takes requests in and hands
// answers out in the order in which they come to it (vllm/v1/engine/async_llm.py,
// output_processor.py).
type front struct {
	cost   sim.Frontend
	free   int64 // when it will have done all it has
	last   int64 // when the latest request reaches the engine: none overtakes another
	beside bool  // the engine computes meanwhile
	in     fifo  // requests on their way to the engine
	out    fifo  // answers on their way to the client

	chunked int64 // when the last chunk of an answer is through
}

// passing is a request and when it will be through.
type passing struct {
	at int64
	r  *request
}

// fifo is a queue without gaps; times never go down.
type fifo struct {
	items []passing
	head  int
}

func (f *fifo) push(p passing) { f.items = append(f.items, p) }

// next is when the first is through, math.MaxInt64 if there is none.
func (f *fifo) next() int64 {
	if f.head == len(f.items) {
		return math.MaxInt64
	}
	return f.items[f.head].at
}

func (f *fifo) pop() passing {
	p := f.items[f.head]
	f.items[f.head].r = nil
	f.head++
	switch {
	case f.head == len(f.items):
		f.items, f.head = f.items[:0], 0
	case f.head > 1<<12 && f.head > len(f.items)/2:
		n := copy(f.items, f.items[f.head:])
		clear(f.items[n:])
		f.items, f.head = f.items[:n], 0
	}
	return p
}

// merge takes in what stands in the order of its times.
func (f *fifo) merge(list []passing) {
	if len(list) == 0 {
		return
	}
	f.items = slices.Concat(f.items[f.head:], list)
	f.head = 0
	slices.SortStableFunc(f.items, func(a, b passing) int { return cmp.Compare(a.at, b.at) })
}

// addWork lets the thread do something that comes to it at a time. On a core that it shares
// fairly with an engine that computes, each has what the other leaves.
func (f *front) addWork(at int64, d time.Duration) int64 {
	f.free = max(f.free, at) + int64(f.contendedTime(d))
	return f.free
}

func (f *front) contendedTime(d time.Duration) time.Duration {
	if f.beside {
		d += time.Duration(f.cost.Contention * float64(d))
	}
	return d
}

// queueRequest takes a request in and says how long that is work. factor is how
// much longer than usual this one takes.
func (f *front) queueRequest(now int64, r *request, factor float64) time.Duration {
	d := time.Duration(factor * float64(f.cost.PerRequest+time.Duration(r.job.Prompt)*f.cost.PerPromptToken))
	f.last = max(f.last, f.addWork(now, d)+int64(factor*float64(f.cost.Latency)))
	f.in.push(passing{f.last, r})
	return d
}

// frontFactor returns the factor by which a request takes longer than usual in the front end.
func (e *Engine) frontFactor(r *request) float64 {
	cv := e.set.Frontend.Jitter
	if cv == 0 {
		return 1
	}
	variance := math.Log1p(cv * cv)
	return math.Exp(math.Sqrt(variance)*e.Normal(uint64(r.job.ID), 1<<34, 1<<35) - variance/2)
}

// addStepWork takes a step's output over.
func (f *front) addStepWork(at int64) { f.addWork(at, f.cost.PerStep) }

// queueChunk takes tokens of an answer. When the client's last chunk is still on
// its way they join it (RequestOutputCollector.put).
func (f *front) queueChunk(at int64, r *request, tokens int, finish string) {
	waits := r.pending > 0
	r.pending += tokens
	r.finish = finish
	if !waits {
		f.chunked = f.addWork(at, f.cost.PerChunk)
		f.out.push(passing{f.chunked, r})
	}
}

// popEmission is the chunk that has come through, nothing for a client that has
// gone.
func (f *front) popEmission() (sim.Emission, bool) {
	p := f.out.pop()
	r := p.r
	n := r.held + r.pending
	r.held, r.pending = 0, 0
	if n == 0 {
		return sim.Emission{}, false
	}
	r.begun = true
	e := sim.Emission{ID: r.job.ID, At: p.at, Tokens: n, Finish: r.finish}
	if r.finish != "" {
		e.Trace = &r.trace
	}
	return e, true
}

// leaveOut takes chunks out that are neither a first nor a last one and are through before a
// time, until which nothing joins them: their tokens are handed on with what comes after.
func (f *front) leaveOut(before int64) {
	for f.out.next() < before {
		r := f.out.items[f.out.head].r
		if !r.begun || r.finish != "" {
			return
		}
		f.out.pop()
		r.held += r.pending
		r.pending = 0
	}
}
