// Package sglang is the scheduling behaviour of SGLang's engine: prompts come first, in
// chunks, answers go on in steps of their own; a radix tree of what was computed; the order
// of admission by what is found in it; memory that is promised by an estimate of how long
// answers get, and taken back when it runs out; the next step planned while one runs. Names
// are SGLang's. It knows no model and no hardware: how long a step takes is a [sim.Cost]. It
// has no goroutine, no clock and no I/O.
//
// Source of the rules: sglang/srt/managers (scheduler.py, schedule_policy.py,
// schedule_batch.py) and mem_cache (radix_cache.py, and unified_radix_cache.py, which decides
// the same) of SGLang 0.5.23 (Apache-2.0), with pages of one token; each is described, none is
// copied.
package sglang

import (
	"math"
	"slices"
	"time"

	"pitot/internal/sim"
)

// Engine is a [sim.Engine] that behaves as SGLang.
type Engine struct {
	sim.Stepper
	set  Settings
	cost sim.Cost

	now     int64
	tree    *tree
	used    int // tokens of the KV cache that requests have for themselves
	waiting []*request
	running []*request // that go on with their answers
	chunked *request   // whose prompt is computed in parts
	entries int64      // times that a request came to wait
	touches int        // times that those that wait were looked at without their order being the tree's
	rows    int        // requests that have memory
	full    bool       // nothing more is admitted until something ends (batch_is_full)
	ratio   float64    // share of the rest of their answers that running requests are promised
	byID    map[int64]*request
	gone    []*request
	front   front

	flight  []*plan // steps that run or are planned, the first runs
	last    *plan   // the latest
	free    int64   // when the last of them ends
	steps   int64
	stats   sim.Stats
	rated   int64 // tokens and time at which the rate was reckoned
	ratedAt int64
	out     []sim.Emission
}

// request is one request (Req).
type request struct {
	job      sim.Job
	output   int // tokens of the answer
	planned  int // tokens that steps in flight will give
	computed int // tokens in the KV cache when these are done (prefix_len, then seq_len)
	end      int // of the stretch of the prompt that is planned (extend_end)
	shared   int // of computed, in the tree
	own      int // of computed, its own
	node     *node
	row      bool // it has memory (req_pool_idx)
	life     int  // counts retractions: what a step in flight gives to an earlier life is dropped
	finished bool
	queued   bool
	limit    int
	entered  int64 // its turn among all that have come to wait, which it does again when it was taken back
	at       *node // where the policy found it in the tree, and how much
	matched  int

	unsent   int
	held     int // tokens that were not handed on
	streamed bool
	trace    sim.Trace
}

// tokensToCompute is the tokens that must be computed before the next is sampled.
func (r *request) tokensToCompute() int { return r.job.Prompt + r.output }

// tokensLeft returns the number of tokens that the answer may still get, beside those of steps in
// flight.
func (r *request) tokensLeft() int { return r.limit - r.output - r.planned }

// plan is one step (ScheduleBatch).
type plan struct {
	number     int64
	start, end int64
	extend     bool
	merged     bool // its requests are among the running
	items      []item
	batch      sim.Batch
}

// item is a request's part in a step.
type item struct {
	r      *request
	life   int
	middle bool // a part of a prompt, which gives no token
	decode bool
}

// New gives an engine without requests. The settings must pass Check.
func New(s Settings, c sim.Cost) *Engine {
	e := &Engine{Stepper: sim.NewStepper(s.Seed, s.StepJitter), set: s, cost: c, tree: newTree(), byID: make(map[int64]*request), front: front{cost: s.Frontend}}
	e.ratio = e.firstRatio()
	return e
}

// MaxModelLen implements [sim.Limited].
func (e *Engine) MaxModelLen() int { return e.set.ContextLength }

// Stats implements [sim.Observable].
func (e *Engine) Stats() sim.Stats {
	s := e.stats
	s.Steps, s.Running, s.Waiting, s.KVCacheUsage = e.steps, e.runningCount(), len(e.waiting), e.usage()
	r := &s.Radix
	r.Tokens, r.Used, r.Evictable = e.set.MaxTotalTokens, e.inUse(), e.tree.evictable()
	r.Evicted, r.Evictions, r.Promised = e.tree.evicted, e.tree.evictions, e.ratio
	for _, q := range e.running {
		r.Context += q.computed
	}
	if s.Running == 0 {
		r.Rate = 0
	}
	return s
}

// runningCount returns the number of requests being computed.
func (e *Engine) runningCount() int {
	n := len(e.running)
	if e.last != nil && e.last.extend && !e.last.merged {
		for _, it := range e.last.items {
			if !it.middle && !it.r.finished {
				n++
			}
		}
	}
	if e.chunked != nil {
		n++
	}
	return n
}

// usage is the share of the KV cache that requests hold (token_usage).
func (e *Engine) usage() float64 {
	return float64(e.inUse()) / float64(e.set.MaxTotalTokens)
}

// inUse returns the number of tokens that cannot be evicted, as far as there is memory: see
// [adder.goOn].
func (e *Engine) inUse() int {
	return min(e.used+e.tree.held, e.set.MaxTotalTokens)
}

// availableTokens returns the number of tokens that have room, without evicting.
func (e *Engine) availableTokens() int { return e.set.MaxTotalTokens - e.used - e.tree.tokens }

// reserveTokens gives a request room for so many tokens, which there is or can be made.
func (e *Engine) reserveTokens(r *request, tokens int) {
	if short := tokens - e.availableTokens(); short > 0 {
		e.tree.evict(short)
	}
	r.own += tokens
	e.used += tokens
}

// Warm implements [sim.Warmable].
func (e *Engine) Warm(j sim.Job) {
	if j.Content == nil || e.set.DisableRadixCache || j.Prompt > e.availableTokens() {
		return
	}
	e.tree.insert(j.Content, j.Prompt)
}

// Add implements [sim.Engine]. A job whose id is still known is ignored; a prompt that
// leaves no room for an answer is cut.
func (e *Engine) Add(now int64, j sim.Job) {
	if e.byID[j.ID] != nil {
		return
	}
	j.Prompt = min(max(j.Prompt, 1), e.set.ContextLength-3)
	j.Output = max(j.Output, 1)
	r := &request{job: j, limit: j.Output, trace: sim.Trace{Arrived: now, Queued: -1, Scheduled: -1, First: -1, Last: -1}}
	if j.Limit > 0 {
		r.limit = j.Limit
	}
	r.limit = max(min(r.limit, e.set.ContextLength-2-j.Prompt), 1) // init_req_max_new_tokens
	e.byID[j.ID] = r
	e.front.queueRequest(now, r)
}

// Abort implements [sim.Engine].
func (e *Engine) Abort(id int64) {
	r := e.byID[id]
	if r == nil {
		return
	}
	delete(e.byID, id)
	e.gone = append(e.gone, r)
}

// Step implements [sim.Engine].
func (e *Engine) Step(now int64) sim.Step {
	e.out = e.out[:0]
	if len(e.flight) == 0 {
		e.removeAborted()
	}
	for {
		in, out, end := e.front.in.next(), e.front.out.next(), int64(math.MaxInt64)
		if len(e.flight) > 0 {
			end = e.flight[0].end
		}
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
			if r := e.front.in.pop().r; e.byID[r.job.ID] == r {
				r.trace.Queued = e.now
				e.enqueueWaiting(r)
			}
			if len(e.flight) == 0 && e.front.in.next() > at {
				e.launchSteps()
			}
		case end:
			p := e.flight[0]
			e.flight = e.flight[:copy(e.flight, e.flight[1:])]
			e.removeAborted()
			e.process(p)
			e.launchSteps()
		default:
			if em := e.front.out.pop().em; e.byID[em.ID] != nil {
				if em.Finish != "" {
					delete(e.byID, em.ID)
				}
				e.out = append(e.out, em)
			}
		}
	}
}

// removeAborted takes out those whose client has gone.
func (e *Engine) removeAborted() {
	for _, r := range e.gone {
		if r.finished {
			continue
		}
		r.finished = true
		if r.queued {
			e.waiting = removeRequest(e.waiting, r)
		}
		if e.chunked == r {
			e.chunked = nil
		}
		e.release(r)
	}
	clear(e.gone)
	e.gone = e.gone[:0]
}

// launchSteps plans steps until enough are in flight (event_loop_normal, event_loop_overlap).
func (e *Engine) launchSteps() {
	depth := 2
	if e.set.DisableOverlapSchedule {
		depth = 1
	}
	for len(e.flight) < depth {
		p := e.runTurn()
		if p == nil {
			return
		}
		e.steps++
		p.number, p.start = e.steps, max(e.now, e.free)
		for _, it := range p.items {
			t := &it.r.trace
			if t.Scheduled < 0 {
				t.Scheduled, t.FirstStep = e.now, p.number
			}
			t.Steps, t.LastStep = t.Steps+1, p.number
		}
		p.end = p.start + e.StepDuration(float64(e.cost.Step(&p.batch)), 1, p.number, p.start)
		e.free = p.end
		e.flight = append(e.flight, p)
		if e.Watched != nil {
			e.Watched(sim.StepInfo{
				Number: p.number, Start: p.start, End: p.end, Requests: p.batch.Requests, Tokens: p.batch.Tokens,
				Running: e.runningCount(), Waiting: len(e.waiting), KVCacheUsage: e.usage(),
			})
		}
	}
}

// runTurn returns the loop's decision in one turn: the next step, nil where there is none.
func (e *Engine) runTurn() *plan {
	e.last = e.planNext()
	if e.last == nil && len(e.flight) == 0 && len(e.running) == 0 && len(e.waiting) == 0 && e.chunked == nil {
		e.ratio = e.firstRatio() // on_idle
	}
	return e.last
}

// enqueueWaiting puts a request behind those that wait.
func (e *Engine) enqueueWaiting(r *request) {
	e.entries++
	r.queued, r.entered = true, e.entries
	e.waiting = append(e.waiting, r)
}

// process applies what a step gave (process_batch_result).
func (e *Engine) process(p *plan) {
	e.countStep(p)
	given := false
	for _, it := range p.items {
		r := it.r
		if r.finished || it.life != r.life || it.middle {
			continue
		}
		r.output++
		r.planned--
		if r.trace.First < 0 {
			r.trace.First = p.end
		}
		r.trace.Last = p.end
		e.stats.GenerationTokens++
		finish := ""
		switch {
		case r.job.Output < r.limit && r.output >= r.job.Output:
			finish = "stop"
		case r.output >= r.limit:
			finish = "length"
		}
		if finish != "" {
			r.finished = true
			e.cachePrefix(r, min(r.computed, r.tokensToCompute())) // its last token too, where a step in flight reads it
			e.release(r)
		} else if !it.decode {
			e.cachePrefix(r, r.end)
		}
		if !given {
			e.front.addStepWork(p.end)
			given = true
		}
		r.unsent++
		if finish == "" && r.streamed && r.unsent < e.set.StreamInterval {
			continue
		}
		if e.IsBrief && finish == "" && r.streamed {
			e.front.addWork(p.end, e.front.cost.PerChunk)
			r.held, r.unsent = r.held+r.unsent, 0
			continue
		}
		e.front.queueChunk(p.end, r, r.held+r.unsent, finish)
		r.unsent, r.held, r.streamed = 0, 0, true
	}
}

// rateSteps is over how many steps of answers the engine reckons its rate
// (decode_log_interval).
const rateSteps = 40

// countStep counts a step that has ended.
func (e *Engine) countStep(p *plan) {
	r := &e.stats.Radix
	if p.extend {
		r.PromptSteps++
		return
	}
	if r.AnswerSteps++; r.AnswerSteps%rateSteps == 0 {
		r.Rate = float64(e.stats.GenerationTokens-e.rated) / (float64(p.end-e.ratedAt) / 1e9)
		e.rated, e.ratedAt = e.stats.GenerationTokens, p.end
	}
}

// cachePrefix puts the first n tokens of a request, which are computed, into the tree, the prompt
// apart from the answer; what others put there meanwhile it need not have twice (checkpoint).
func (e *Engine) cachePrefix(r *request, n int) {
	if r.job.Content == nil || e.set.DisableRadixCache || n < r.shared {
		return
	}
	end := e.tree.insert(r.job.Content, n)
	if r.job.Prompt < n {
		e.tree.match(r.job.Content, r.job.Prompt)
		e.tree.match(r.job.Content, n)
	}
	e.tree.hold(end)
	e.tree.releaseNode(r.node)
	r.node = end
	r.own -= n - r.shared
	e.used -= n - r.shared
	r.shared = n
}

// release gives back what a request holds.
func (e *Engine) release(r *request) {
	if r.row {
		e.rows--
	}
	e.used -= r.own
	e.tree.releaseNode(r.node)
	r.row, r.own, r.shared, r.node = false, 0, 0, nil
}

// abortForMemory ends a request for which there is no memory, nor will be (FINISH_ABORT).
func (e *Engine) abortForMemory(r *request) {
	r.finished = true
	e.release(r)
	at := e.front.addWork(e.now, 0)
	e.front.out = append(e.front.out, passing{at: at, em: sim.Emission{ID: r.job.ID, At: at, Finish: sim.Lost}})
}

// removeRequest is a list without one of its requests, in its order.
func removeRequest(list []*request, r *request) []*request {
	return slices.DeleteFunc(list, func(x *request) bool { return x == r })
}

// front is the processes before and behind the engine: one thread that works in the order
// in which things come to it.
type front struct {
	cost sim.Frontend
	free int64
	last int64
	in   fifo
	out  fifo
}

// passing is a request that comes to the engine at a time, or an emission that goes out.
type passing struct {
	at int64
	r  *request
	em sim.Emission
}

func (f *front) addWork(at int64, d time.Duration) int64 {
	f.free = max(f.free, at) + int64(d)
	return f.free
}

func (f *front) queueRequest(now int64, r *request) {
	at := f.addWork(now, f.cost.PerRequest+time.Duration(r.job.Prompt)*f.cost.PerPromptToken) + int64(f.cost.Latency)
	f.last = max(f.last, at)
	f.in = append(f.in, passing{at: f.last, r: r})
}

func (f *front) addStepWork(at int64) { f.addWork(at, f.cost.PerStep) }

func (f *front) queueChunk(at int64, r *request, tokens int, finish string) {
	at = f.addWork(at, f.cost.PerChunk)
	em := sim.Emission{ID: r.job.ID, At: at, Tokens: tokens, Finish: finish}
	if finish != "" {
		em.Trace = &r.trace
	}
	f.out = append(f.out, passing{at: at, em: em})
}

// fifo has what passes in the order of its times.
type fifo []passing

// next is when the first passes, math.MaxInt64 where there is none.
func (f *fifo) next() int64 {
	if len(*f) == 0 {
		return math.MaxInt64
	}
	return (*f)[0].at
}

func (f *fifo) pop() passing {
	p := (*f)[0]
	(*f)[0] = passing{}
	if *f = (*f)[1:]; len(*f) == 0 {
		*f = nil
	}
	return p
}
