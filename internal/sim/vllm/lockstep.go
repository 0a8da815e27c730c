package vllm

import (
	"math"
	"time"

	"pitot/internal/sim"
)

// Lockstep is engines whose steps begin and end together, as those that share the experts
// of a model: each step needs all of them (DPEngineCoreProc.run_busy_loop). While any has
// something to do, one that has not computes a dummy batch, and a request that comes
// meanwhile waits for its end.
type Lockstep struct {
	of    []*Engine
	cost  func(batches []*sim.Batch) time.Duration
	steps int64
	runs  bool
	done  int // engines that have planned what they do next, at the end of a step
	batch []*sim.Batch
}

// NewLockstep puts engines that nothing was added to into step. cost says how long a step
// takes in which each computes its batch.
func NewLockstep(engines []*Engine, cost func(batches []*sim.Batch) time.Duration) *Lockstep {
	l := &Lockstep{of: engines, cost: cost, batch: make([]*sim.Batch, len(engines))}
	for _, e := range engines {
		e.lock = l
	}
	return l
}

// Steps returns the number of steps that have begun. Each step changes the times at which all
// engines are due.
func (l *Lockstep) Steps() int64 { return l.steps }

// notePlanned hears that an engine has planned what it does next: at the end of a step, or
// because a request came while all rest.
func (l *Lockstep) notePlanned(e *Engine) {
	if !l.runs {
		l.begin(e.now)
		return
	}
	if !e.planned { // or a request came since
		e.planned = true
		l.done++
	}
	if l.done == len(l.of) {
		l.begin(e.now)
	}
}

// begin begins a step with what is planned first on each engine, if there is anything.
func (l *Lockstep) begin(now int64) {
	l.done, l.runs = 0, false
	for _, e := range l.of {
		e.planned = false
		l.runs = l.runs || len(e.flight) > 0
	}
	if !l.runs {
		return
	}
	var lead *Engine
	for i, e := range l.of {
		if len(e.flight) == 0 {
			dummy := e.newPlan()
			dummy.batch.Requests, dummy.batch.Tokens, dummy.batch.Logits = 1, 1, 1
			dummy.batch.Decodes, dummy.batch.DecodeContext = 1, 1
			e.flight = append(e.flight, dummy)
		} else if lead == nil {
			lead = e
		}
		l.batch[i] = &e.flight[0].batch
	}
	l.steps++
	end := now + lead.stepDuration(float64(l.cost(l.batch)), lead.flight[0].number, now)
	for _, e := range l.of {
		p := e.flight[0]
		p.end, e.free = end, end
		if len(p.items) > 0 {
			e.reportStep(p, now)
		}
	}
}

// unknown is the end of a step that has not begun.
const unknown = math.MaxInt64
