package vllm

import "slices"

// Of an answer that is long most steps are alike: it is given a token, and every so many steps a
// block. An engine of which only first and last tokens are asked does not visit such requests
// step by step: those at the front of the running cruise, which means that what the next
// steps make of each is known, and they are counted. They are visited when they need a block, when
// one is full, and when they end. Whatever else happens to one (blocks are short, the front
// end lags behind, its client goes) ends the cruise of all, which are then as if each step had
// been taken with each of them; so nothing that is handed on differs.

// cruise is the requests that are counted.
type cruise struct {
	n       int          // of the running, from the first on
	ends    []*request   // they, by the step that gives them their last token, then in their order
	planned int          // of these, whose last token is planned
	context int64        // tokens that the others look back on, with what is planned
	grow    [][]*request // by the number of a step, modulo the tokens of a block: those that need one then
	list    [][]*request // and of which one is full, when the step is planned
	from    int64        // no request joins before this step
	behind  bool         // when the last step ended not all that came before was through the front end
	chunks  chunks       // of the last step that ended
}

// chunks holds the front end's work on the output that a step gave to cruising requests.
type chunks struct {
	begun int64 // when the front end begins with them
	each  int64 // what one takes
	n     int
	ended []int // places of those whose answers are whole with it
}

// completionTime is when the chunk of a place is through the front end.
func (c *chunks) completionTime(place int) int64 { return c.begun + int64(place+1)*c.each }

// rest is for how many steps nobody joins after a cruise has ended: what ended it may last.
const rest = 16

// cruising is a request's part in it.
type cruising struct {
	on          bool
	first, last int64 // steps: what its request says of itself is as of those before the first
	grow, list  int   // where it is in the lists of the same names
}

// includesStep says whether a step is one of its.
func (c *cruising) includesStep(step int64) bool { return c.first <= step && step <= c.last }

// stepsUpTo returns the number of the cruising's steps up to a given step.
func (c *cruising) stepsUpTo(to int64) int { return int(max(min(to, c.last)-c.first+1, 0)) }

// mayCruise says whether requests of the engine can be counted: their steps are of one token, and
// one of them is nobody's victim before those behind it.
func (e *Engine) mayCruise() bool {
	s := &e.set
	return e.IsBrief && e.lock == nil && !s.Priority && s.NumSpeculativeTokens == 0 && s.StreamInterval <= 1 && s.LongPrefillTokenThreshold == 0
}

// lastFinishedStep is the number of the step that ended last.
func (e *Engine) lastFinishedStep() int64 { return e.steps - int64(len(e.flight)) }

// joinCruise lets those that follow the ones that cruise join them, as far as they can from the
// step on that is planned next.
func (e *Engine) joinCruise() {
	c := &e.cruise
	next := e.steps + 1
	if c.behind || next < c.from {
		return
	}
	if c.grow == nil {
		c.grow, c.list = make([][]*request, e.set.BlockSize), make([][]*request, e.set.BlockSize)
	}
	for c.n < len(e.running) && e.canJoin(e.running[c.n]) {
		r := e.running[c.n]
		c.n++
		r.cruise = cruising{
			on: true, first: next, last: next + int64(r.maxTokens()-r.output-r.placeholders) - 1,
			grow: e.stepInBlock(next - int64(r.computed)), list: e.stepInBlock(next - int64(r.numTokens())),
		}
		i, _ := slices.BinarySearchFunc(c.ends, r.cruise.last+1, func(r *request, step int64) int { return int(r.cruise.last - step) })
		c.ends = slices.Insert(c.ends, i, r)
		c.context += int64(r.computed)
		c.grow[r.cruise.grow] = append(c.grow[r.cruise.grow], r)
		c.list[r.cruise.list] = append(c.list[r.cruise.list], r)
	}
}

// stepInBlock is the place of a step's number among as many as a block has tokens.
func (e *Engine) stepInBlock(step int64) int {
	size := int64(e.set.BlockSize)
	return int((step%size + size) % size)
}

// canJoin says whether a running request is given a token in each step from now on, and ends
// when its answer is as long as it may be.
func (e *Engine) canJoin(r *request) bool {
	inFlight := 0
	if e.set.AsyncScheduling {
		inFlight = 1
	}
	limit := r.job.Prompt + r.maxTokens()
	return r.begun && !r.inPrompt && r.drafts == 0 && r.stale == 0 && r.unsent == 0 &&
		len(e.flight) == inFlight && r.inFlight == inFlight && r.placeholders == inFlight &&
		r.maxTokens() <= r.job.Output && limit <= e.set.MaxModelLen && r.output+inFlight < r.maxTokens() &&
		r.computed == r.numTokens()+inFlight-1 && r.blocks == e.blocksFor(r.computed) &&
		(!e.set.EnablePrefixCaching || r.listed == (r.numTokens()-1)/e.set.BlockSize) &&
		r.beside == e.set.BlocksBeside(r.computed) && r.beside == e.set.BlocksBeside(limit)
}

// scheduleCruising enters those that cruise into a step that is planned, each with a token.
// Where blocks are short for them they cruise no longer.
func (e *Engine) scheduleCruising(p *plan) {
	if !e.mayCruise() {
		return
	}
	e.joinCruise()
	c := &e.cruise
	if c.n == 0 {
		return
	}
	step := e.steps + 1
	for c.planned < len(c.ends) && c.ends[c.planned].cruise.last < step {
		r := c.ends[c.planned]
		c.context -= int64(r.computed + r.cruise.stepsUpTo(step))
		c.planned++
	}
	growing := c.grow[e.stepInBlock(step)]
	need := 0
	for _, r := range growing {
		if r.cruise.includesStep(step) {
			need++
		}
	}
	if need > e.pool.free {
		e.endCruise()
		return
	}
	for _, r := range growing {
		if r.cruise.includesStep(step) {
			e.growBlocks(r, 1, 0)
		}
	}
	for _, r := range c.list[e.stepInBlock(step)] {
		if r.cruise.includesStep(step) {
			e.cacheUpTo(r, r.numTokens()+r.cruise.stepsUpTo(e.lastFinishedStep()))
		}
	}
	n := len(c.ends) - c.planned
	c.context += int64(n)
	p.cruisers = n
	p.batch.Requests, p.batch.Tokens, p.batch.Logits, p.batch.Decodes = n, n, n, n
	p.batch.DecodeContext = c.context
}

// updateCruising applies what a step gave those that cruise, and says of how many.
func (e *Engine) updateCruising(p *plan) int {
	if p.cruisers == 0 {
		return 0
	}
	c, f := &e.cruise, &e.front
	ends := func() bool { return len(c.ends) > 0 && c.ends[0].cruise.last == p.number }
	others := len(e.running)
	if ends() && e.running[0] == c.ends[0] {
		others--
	}
	f.beside = others > 0 || e.waiting.len() > 0
	f.addStepWork(p.end)
	c.chunks = chunks{f.free, int64(f.contendedTime(f.cost.PerChunk)), p.cruisers, c.chunks.ended[:0]}
	for ends() {
		r := c.ends[0]
		i := slices.Index(e.running[:c.n], r)
		place := i + len(c.chunks.ended)
		c.chunks.ended = append(c.chunks.ended, place)
		c.removeEnded(r, p.number)
		e.settleCruise(r, p.number, p.end)
		r.held-- // that of this step is on its way
		r.pending, r.finish = 1, "length"
		if e.set.AsyncScheduling {
			e.cacheBlocks(r, r.computed-r.placeholders)
		}
		e.running = slices.Delete(e.running, i, i+1)
		e.giveUp(r)
		f.out.push(passing{c.chunks.completionTime(place), r})
	}
	f.free = c.chunks.completionTime(p.cruisers - 1)
	f.chunked = f.free
	e.stats.GenerationTokens += int64(p.cruisers)
	return p.cruisers
}

// removeEnded takes the first of those that end off the lists, after so many steps.
func (c *cruise) removeEnded(r *request, ended int64) {
	if c.planned > 0 { // else its last step was the last that is planned
		c.planned--
	} else {
		c.context -= int64(r.computed + r.cruise.stepsUpTo(ended))
	}
	c.n--
	c.ends = slices.Delete(c.ends, 0, 1)
	for _, list := range []*[]*request{&c.grow[r.cruise.grow], &c.list[r.cruise.list]} {
		i := slices.Index(*list, r)
		*list = slices.Delete(*list, i, i+1)
	}
}

// settleCruise counts into a request that cruises what it was part of: all that is planned, of
// which so much has ended, the last at a time.
func (e *Engine) settleCruise(r *request, ended, at int64) {
	all, done := r.cruise.stepsUpTo(e.steps), r.cruise.stepsUpTo(ended)
	r.computed += all
	r.output += done
	r.placeholders += all - done
	r.inFlight += all - done
	r.held += done
	r.trace.Steps += all
	if all > 0 {
		r.trace.LastStep = min(e.steps, r.cruise.last)
	}
	if done > 0 {
		r.trace.Last = at
	}
	r.cruise.on = false
}

// endCruise makes ordinary requests of all that cruise, in the steps too that are under way.
func (e *Engine) endCruise() {
	c, f := &e.cruise, &e.front
	if c.n == 0 {
		return
	}
	ended := e.lastFinishedStep()
	for _, p := range e.flight {
		if p.cruisers == 0 {
			continue
		}
		items := make([]entry, 0, p.cruisers+len(p.items))
		for _, r := range e.running[:c.n] {
			if r.cruise.includesStep(p.number) {
				items = append(items, entry{r: r, tokens: 1, samples: true})
			}
		}
		p.items, p.cruisers = append(items, p.items...), 0
	}
	var late []passing
	place := 0
	for _, r := range e.running[:c.n] {
		e.settleCruise(r, ended, e.ended)
		for slices.Contains(c.chunks.ended, place) {
			place++
		}
		if at := c.chunks.completionTime(place); place < c.chunks.n && at >= e.now && r.cruise.includesStep(ended) {
			r.held--
			r.pending++
			late = append(late, passing{at, r})
		}
		place++
	}
	f.out.merge(late)
	for i := range c.grow {
		clear(c.grow[i])
		clear(c.list[i])
		c.grow[i], c.list[i] = c.grow[i][:0], c.list[i][:0]
	}
	clear(c.ends)
	c.n, c.ends, c.planned, c.context, c.from = 0, c.ends[:0], 0, 0, e.steps+1+rest
}
