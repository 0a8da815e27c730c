package fleet

import (
	"math"
	"slices"

	"pitot/internal/sim"
)

// Pools is a [sim.Model] of engines that compute prompts and engines that go on with the
// answers (prefill-decode disaggregation). A job goes through both as vLLM has it with a
// KV connector (vllm/v1/core/sched/scheduler.py and kv_connector of 0.32): a proxy has
// an engine of the first pool compute the prompt, for an answer of one token that it throws
// away; the KV cache of the prompt goes over that engine's link, one prompt after the
// other; an engine of the second pool computes the prompt's last token again, and so the
// first token of the answer is its own.
type Pools struct {
	first, then stage
	split       int                    // engines of the first
	link        func(prompt int) int64 // how long a prompt of so many tokens takes, ns
	free        []int64                // when the link of each engine of the first pool is free
	jobs        map[int64]*passage     // that have not ended
	moving      []*passage             // by when they are through
	now         int64
	out         []sim.Emission
}

// stage is a pool and when it is to be stepped.
type stage struct {
	*Fleet
	next int64
}

// passage is a job on its way through the pools.
type passage struct {
	sim.Job
	trace   sim.Trace // of the first
	through int64     // when its KV cache is with the second
	leg     leg
}

// leg is where a job is on its way.
type leg uint8

const (
	prefilling leg = iota
	travelling
	decoding
)

// NewPools puts two pools behind one another; link says how long the KV cache of a prompt
// takes from an engine of the first to one of the second, in nanoseconds.
func NewPools(c Config, prefill, decode []sim.Model, link func(prompt int) int64) *Pools {
	p := &Pools{split: len(prefill), link: link, free: make([]int64, len(prefill)), jobs: make(map[int64]*passage)}
	c.Changes, c.Again, c.Steps = nil, nil, nil
	p.first = stage{New(c, prefill), math.MaxInt64}
	c.Seed = sim.Mix(c.Seed + 1)
	p.then = stage{New(c, decode), math.MaxInt64}
	return p
}

// Add implements [sim.Engine].
func (p *Pools) Add(now int64, j sim.Job) {
	if p.jobs[j.ID] != nil {
		return
	}
	j.Prompt = min(max(j.Prompt, 1), p.MaxModelLen()-1)
	p.jobs[j.ID] = &passage{Job: j}
	one := j
	one.Output, one.Limit = 1, 1
	p.first.Add(now, one)
	p.first.next = min(p.first.next, now)
}

// Abort implements [sim.Engine].
func (p *Pools) Abort(id int64) {
	j := p.jobs[id]
	if j == nil {
		return
	}
	delete(p.jobs, id)
	switch j.leg {
	case prefilling:
		p.first.Abort(id)
		p.first.next = min(p.first.next, p.now)
	case travelling:
		p.moving = slices.DeleteFunc(p.moving, func(m *passage) bool { return m == j })
	case decoding:
		p.then.Abort(id)
		p.then.next = min(p.then.next, p.now)
	}
}

// Step implements [sim.Engine]: what happens by now happens in the order of its times.
func (p *Pools) Step(now int64) sim.Step {
	p.out = p.out[:0]
	for {
		through := int64(math.MaxInt64)
		if len(p.moving) > 0 {
			through = p.moving[0].through
		}
		at := min(through, p.first.next, p.then.next)
		if at > now {
			if len(p.out) > 0 {
				return sim.Step{End: now, Out: p.out, Next: at}
			}
			return sim.Step{End: at, Idle: true}
		}
		p.now = max(p.now, at)
		switch at {
		case through:
			p.admitTransferred()
		case p.first.next:
			for _, e := range p.first.step(p.now) {
				p.startTransfer(e)
			}
		default:
			for _, e := range p.then.step(p.now) {
				p.forwardEmission(e)
			}
		}
	}
}

// step steps a pool.
func (s *stage) step(now int64) []sim.Emission {
	r := s.Fleet.Step(now)
	s.next = max(r.End, r.Next)
	return r.Out
}

// startTransfer sends the KV cache of a prompt that is computed on its way.
func (p *Pools) startTransfer(e sim.Emission) {
	j := p.jobs[e.ID]
	switch {
	case j == nil || e.Finish == "":
		return
	case e.Finish == sim.Lost:
		delete(p.jobs, e.ID)
		p.out = append(p.out, e)
		return
	}
	if e.Trace != nil {
		j.trace = *e.Trace
	}
	link := &p.free[e.Engine]
	*link = max(*link, e.At) + p.link(j.Prompt)
	j.through, j.leg = *link, travelling
	i, _ := slices.BinarySearchFunc(p.moving, j.through, func(m *passage, at int64) int {
		if m.through <= at { // of those that come at once the first that left
			return -1
		}
		return 1
	})
	p.moving = slices.Insert(p.moving, i, j)
}

// admitTransferred has the second pool go on with a prompt whose KV cache has come.
func (p *Pools) admitTransferred() {
	j := p.moving[0]
	p.moving = slices.Delete(p.moving, 0, 1)
	j.leg, j.Received = decoding, j.Prompt
	p.then.Add(j.through, j.Job)
	p.then.next = min(p.then.next, j.through)
}

// forwardEmission hands on what the second pool gave.
func (p *Pools) forwardEmission(e sim.Emission) {
	j := p.jobs[e.ID]
	if j == nil {
		return
	}
	e.Engine += p.split
	if e.Finish != "" {
		delete(p.jobs, e.ID)
	}
	if e.Trace != nil {
		t := *e.Trace
		t.Arrived, t.Queued, t.Scheduled, t.Cached = j.trace.Arrived, j.trace.Queued, j.trace.Scheduled, j.trace.Cached
		t.Preemptions += j.trace.Preemptions
		t.Steps += j.trace.Steps
		e.Trace = &t
	}
	p.out = append(p.out, e)
}

// Replicas implements [sim.Replicated]: those of the first pool, then those of the second.
func (p *Pools) Replicas() []sim.Observable {
	list := p.first.Replicas()
	for i := range p.then.of {
		list = append(list, numbered{place{p.then.Fleet, i}, p.split + i})
	}
	return list
}

// numbered is an engine of the second pool, by its number among all.
type numbered struct {
	place
	number int
}

// Watch implements [sim.Observable].
func (n numbered) Watch(watch func(sim.StepInfo)) {
	if watch == nil {
		n.place.Watch(nil)
		return
	}
	n.place.Watch(func(s sim.StepInfo) {
		s.Engine = n.number
		watch(s)
	})
}

// Stats implements [sim.Observable]. Jobs whose KV cache is on its way wait.
func (p *Pools) Stats() sim.Stats {
	s, then := p.first.Stats(), p.then.Stats()
	s.Add(&then)
	s.Waiting += len(p.moving)
	return s
}

// Watch implements [sim.Observable].
func (p *Pools) Watch(watch func(sim.StepInfo)) {
	for _, e := range p.Replicas() {
		e.Watch(watch)
	}
}

// MaxModelLen implements [sim.Limited].
func (p *Pools) MaxModelLen() int { return p.first.MaxModelLen() }

// Pace implements [sim.Model].
func (p *Pools) Pace(pace func(start int64) float64) {
	p.first.Pace(pace)
	p.then.Pace(pace)
}

// Brief implements [sim.Model].
func (p *Pools) Brief() {
	p.first.Brief()
	p.then.Brief()
}

// Warm implements [sim.Warmable]: where prompts are computed.
func (p *Pools) Warm(j sim.Job) { p.first.Warm(j) }
