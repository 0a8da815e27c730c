// Package vllm is the scheduling behaviour of vLLM's V1 engine: one budget of
// tokens for each step, chunked prefill, a paged KV cache with prefix
// caching, preemption, asynchronous scheduling, and the API server in front.
// Names are vLLM's. It knows no model and no hardware: how long a step takes
// is a [Cost]. It has no goroutine, no clock and no I/O.
//
// Source of the rules: vllm/v1 of vLLM 0.19 to 0.32 (Apache-2.0); each is
// described, none is copied. Where the versions differ the later one is
// followed.
package vllm

import (
	"math"
	"time"

	"pitot/internal/sim"
)

// Engine is a [sim.Engine] that behaves as vLLM V1.
type Engine struct {
	sim.Stepper
	set     Settings
	cost    sim.Cost
	slow    phases
	lock    *Lockstep // nil: its steps are its own
	planned bool      // in lock step, what comes after the step that has ended

	now     int64
	pool    *pool
	waiting queue
	running []*request // in the order they were admitted
	byID    map[int64]*request
	front   front

	cruise cruise

	flight []*plan // steps that run or are planned, the first runs
	ended  int64   // when the last step ended
	free   int64   // when the last of them ends
	spare  []*plan
	steps  int64
	gone   []*request // aborted and not yet taken out
	hits   []part     // that were found last
	stats  sim.Stats
	out    []sim.Emission
}

// New gives an engine without requests. The settings must pass Check.
func New(s Settings, c sim.Cost) *Engine {
	return &Engine{
		Stepper: sim.NewStepper(s.Seed, s.StepJitter),
		set:     s, cost: c,
		slow:    phases{sigma: s.SlowCV, grain: max(int64(s.SlowTime)/perSlowTime, 1)},
		pool:    newPool(s.NumGPUBlocks, s.EnablePrefixCaching),
		waiting: queue{byPriority: s.Priority},
		byID:    make(map[int64]*request),
		front:   front{cost: s.Frontend},
		stats:   sim.Stats{AcceptedPerPosition: make([]int64, s.NumSpeculativeTokens)},
	}
}

// Settings are those it was made with.
func (e *Engine) Settings() Settings { return e.set }

// Stats implements [sim.Observable].
func (e *Engine) Stats() sim.Stats {
	s := e.stats
	s.Steps, s.Running, s.Waiting, s.KVCacheUsage = e.steps, len(e.running), e.waiting.len(), e.pool.usage()
	s.AcceptedPerPosition = append([]int64(nil), s.AcceptedPerPosition...)
	return s
}

// MaxModelLen implements [sim.Limited].
func (e *Engine) MaxModelLen() int { return e.set.MaxModelLen }

// Add implements [sim.Engine]. A prompt that leaves no room for an answer is
// for the caller to refuse, as the API server does; here it is cut. A job
// whose id is still known is ignored.
func (e *Engine) Add(now int64, j sim.Job) {
	if e.byID[j.ID] != nil {
		return
	}
	j.Prompt = min(max(j.Prompt, 1), e.set.MaxModelLen-1)
	j.Output = max(j.Output, 1)
	r := &request{job: j, trace: sim.Trace{Arrived: now, Queued: -1, Scheduled: -1, First: -1, Last: -1}}
	e.byID[j.ID] = r
	e.front.beside = len(e.flight) > 0
	e.delayForFrontend(e.front.queueRequest(now, r, e.frontFactor(r)))
}

// delayForFrontend lets the steps in flight end later because the front end took time
// from the cores they run on.
func (e *Engine) delayForFrontend(d time.Duration) {
	lost := int64(e.set.Frontend.Contention * float64(d))
	if lost <= 0 || len(e.flight) == 0 || e.lock != nil {
		return
	}
	for _, p := range e.flight {
		p.end += lost
	}
	e.free += lost
}

// Abort implements [sim.Engine]. The request's blocks come free when the
// engine next looks at its queue: between two steps.
func (e *Engine) Abort(id int64) {
	r := e.byID[id]
	if r == nil {
		return
	}
	if r.cruise.on {
		e.endCruise()
	}
	r.pending = 0
	delete(e.byID, id)
	if r.trace.Queued < 0 {
		r.status = finished // the front end will drop it
		return
	}
	e.gone = append(e.gone, r)
}

// Step implements [sim.Engine]. It lets everything happen that is due by
// now, and gives what came out of the front end, or when more will.
func (e *Engine) Step(now int64) sim.Step {
	e.out = e.out[:0]
	if len(e.flight) == 0 {
		e.abortRequests()
	}
	for {
		if e.IsBrief && e.lock == nil {
			e.front.leaveOut(min(e.stepEnd(), e.front.in.next()))
		}
		in, out, end := e.front.in.next(), e.front.out.next(), e.stepEnd()
		at := min(in, out, end)
		if at > now {
			if len(e.out) > 0 {
				return sim.Step{End: now, Out: e.out, Next: at}
			}
			return sim.Step{End: at, Idle: true}
		}
		e.now = max(e.now, at)
		switch at {
		case in:
			e.addRequest(e.front.in.pop().r)
			if len(e.flight) == 0 && e.front.in.next() > at {
				e.fillFlight()
			}
		case end:
			e.finishStep()
		default:
			if em, ok := e.front.popEmission(); ok {
				if em.Finish != "" {
					delete(e.byID, em.ID)
				}
				e.out = append(e.out, em)
			}
		}
	}
}

// stepEnd is when the running step ends, math.MaxInt64 if none runs.
func (e *Engine) stepEnd() int64 {
	if len(e.flight) == 0 {
		return math.MaxInt64
	}
	return e.flight[0].end
}

// addRequest queues what the front end has let through
// (Scheduler.add_request).
func (e *Engine) addRequest(r *request) {
	if r.status == finished {
		return
	}
	r.arrived, r.trace.Queued = e.now, e.now
	e.waiting.push(r)
}

// abortRequests takes out those whose client has gone
// (Scheduler.finish_requests).
func (e *Engine) abortRequests() {
	for i, r := range e.gone {
		if r.status != finished {
			e.freeRequest(r)
		}
		e.gone[i] = nil
	}
	e.gone = e.gone[:0]
}

// finishStep is one turn of the engine's loop: the step that ran is done,
// and the next is planned (EngineCore.step, step_with_batch_queue).
func (e *Engine) finishStep() {
	p := e.flight[0]
	if e.cruise.behind = e.front.chunked >= p.end; e.cruise.behind {
		e.endCruise()
	}
	n := copy(e.flight, e.flight[1:])
	e.flight = e.flight[:n]
	e.abortRequests() // what the step gave them is not handed out
	e.updateFromOutput(p)
	e.spare = append(e.spare, p)
	e.fillFlight()
}

// fillFlight plans steps until enough are in flight: one, or with asynchronous
// scheduling the next one behind the one that runs.
func (e *Engine) fillFlight() {
	e.planStep()
	if e.lock != nil {
		e.lock.notePlanned(e)
	}
}

func (e *Engine) planStep() {
	depth := 1
	if e.set.AsyncScheduling {
		depth = 2
	}
	for len(e.flight) < depth {
		preemptions := e.stats.Preemptions
		p := e.schedule()
		if p == nil {
			if len(e.flight) == 0 && e.stats.Preemptions > preemptions {
				continue // the first in turn had to go, now the others may
			}
			return
		}
		if e.lock != nil {
			p.end = unknown
			e.flight = append(e.flight, p)
			continue
		}
		start := max(e.now, e.free)
		p.end = start + e.stepDuration(float64(e.cost.Step(&p.batch)), p.number, start)
		e.free = p.end
		e.flight = append(e.flight, p)
		e.reportStep(p, start)
	}
}

// reportStep tells of a step whose times are known.
func (e *Engine) reportStep(p *plan, start int64) {
	if e.Watched == nil {
		return
	}
	e.Watched(sim.StepInfo{
		Number: p.number, Start: start, End: p.end, Requests: p.batch.Requests, Tokens: p.batch.Tokens,
		Running: len(e.running), Waiting: e.waiting.len(), KVCacheUsage: e.pool.usage(),
	})
}

// stepDuration returns the random duration of a step, see [sim.Stepper.StepDuration].
func (e *Engine) stepDuration(d float64, number, start int64) int64 {
	slow := 1.0
	if e.slow.sigma > 0 {
		slow = e.slowFactor(start)
	}
	return e.StepDuration(d, slow, number, start)
}

// streamInterval hands tokens on when there are enough for a chunk: the
// first, then every so many, and the end (RequestState.make_request_output).
func (e *Engine) streamInterval(r *request, tokens int, finish string, at int64) {
	r.unsent += tokens
	if finish == "" && r.streamed && r.unsent < e.set.StreamInterval {
		return
	}
	e.front.queueChunk(at, r, r.unsent, finish)
	r.unsent, r.streamed = 0, true
}

// newPlan gives an empty plan.
func (e *Engine) newPlan() *plan {
	if n := len(e.spare); n > 0 {
		p := e.spare[n-1]
		e.spare = e.spare[:n-1]
		clear(p.items)
		*p = plan{items: p.items[:0], batch: sim.Batch{Prefills: p.batch.Prefills[:0]}}
		return p
	}
	return &plan{}
}
