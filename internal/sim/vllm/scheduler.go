package vllm

import (
	"slices"

	"pitot/internal/sim"
)

// entry is a request's part in a planned step.
type entry struct {
	r       *request
	tokens  int
	drafts  int  // of the tokens
	padded  bool // drafts are there for the step's shape alone: none is accepted
	samples bool // the step gives it a token
}

// plan is one step: SchedulerOutput.
type plan struct {
	number int64
	end    int64
	items  []entry
	batch  sim.Batch

	cruisers   int  // requests besides the entries, before them: those that cruise
	prefilling bool // one that ran before goes on with its prompt
}

// schedule plans a step (Scheduler.schedule): those that run first, then
// those that wait, within one budget of tokens. It gives nil if there is
// nothing to do.
func (e *Engine) schedule() *plan {
	p := e.newPlan()
	budget := e.set.MaxNumBatchedTokens
	threshold := e.longPrefillThreshold()
	e.scheduleCruising(p)
	budget -= p.cruisers
	stuck := e.scheduleRunning(p, &budget, threshold)
	if !stuck {
		e.scheduleWaiting(p, &budget, threshold)
	}
	if len(p.items)+p.cruisers == 0 {
		e.spare = append(e.spare, p)
		return nil
	}
	e.steps++
	p.number = e.steps
	p.batch.Drafts = e.set.DraftsFor(len(p.items))
	for i := range p.items {
		e.updateAfterSchedule(p, &p.items[i])
	}
	return p
}

// longPrefillThreshold is the cap on one prompt's share of a step; a request
// that is alone has none.
func (e *Engine) longPrefillThreshold() int {
	if len(e.running)+e.waiting.len() > 1 {
		return e.set.LongPrefillTokenThreshold
	}
	return 0
}

// scheduleRunning is the first part of Scheduler.schedule. It says whether
// anything was preempted: then nothing that waits may start.
func (e *Engine) scheduleRunning(p *plan, budget *int, threshold int) (preempting bool) {
	slots := e.set.draftSlots()
	for i := e.cruise.n; i < len(e.running) && *budget > slots; i++ {
		r := e.running[i]
		if r.lastTokenPlanned() {
			continue
		}
		n := r.numTokens() + r.drafts + r.placeholders - r.computed
		if 0 < threshold && threshold < n {
			n = threshold
		}
		n = min(n, *budget-slots, e.set.MaxModelLen-r.computed-1)
		if n <= 0 {
			continue
		}
		fits := true
		for !e.allocateSlots(r, n) {
			preempting = true
			victim := e.preemptionVictim()
			if j := e.stopRunning(victim); j < i { // only by priority
				i--
				*budget += p.removeRequest(victim, slots)
			}
			e.preempt(victim)
			if victim == r {
				fits = false
				break
			}
		}
		if !fits {
			break
		}
		p.prefilling = p.prefilling || r.inPrompt
		p.items = append(p.items, entry{r: r, tokens: n, drafts: r.plannedDrafts(n)})
		*budget -= n + slots
	}
	return preempting
}

// lastTokenPlanned says that a step which is planned surely reaches
// max_tokens, so that one more would be wasted.
func (r *request) lastTokenPlanned() bool {
	return r.placeholders > 0 && r.computed+2-r.placeholders >= r.job.Prompt+r.maxTokens()
}

// plannedDrafts returns the number of drafts to verify among n tokens.
func (r *request) plannedDrafts(n int) int {
	if r.drafts == 0 {
		return 0
	}
	d := min(max(n+r.computed-r.numTokens()-r.placeholders, 0), r.drafts)
	r.drafts = 0
	return d
}

// removeRequest removes a request from a plan and gives back its tokens and the slots
// that it took besides.
func (p *plan) removeRequest(r *request, slots int) int {
	for i := range p.items {
		if p.items[i].r == r {
			n := p.items[i].tokens
			p.items = slices.Delete(p.items, i, i+1)
			return n + slots
		}
	}
	return 0
}

// preemptionVictim returns the request to preempt when blocks are short. It is the last that was
// admitted, or the least urgent of those that came last. Of several that tie in both it is the
// first that was admitted: unlike the queue, vLLM does not look at their ids here.
func (e *Engine) preemptionVictim() *request {
	if !e.set.Priority {
		return e.running[len(e.running)-1]
	}
	v := e.running[0]
	for _, r := range e.running[1:] {
		if compareUrgency(v, r) < 0 {
			v = r
		}
	}
	return v
}

// stopRunning takes a request from the running and says where it was.
func (e *Engine) stopRunning(r *request) int {
	i := len(e.running) - 1
	if e.running[i] != r {
		i = slices.Index(e.running, r)
	}
	e.running = slices.Delete(e.running, i, i+1)
	return i
}

// preempt takes a request's blocks away; it will be computed again from the
// start (Scheduler._preempt_request).
func (e *Engine) preempt(r *request) {
	e.freeBlocks(r)
	r.status = preempted
	r.computed, r.placeholders, r.drafts = 0, 0, 0
	r.stale = r.inFlight // their tokens still come, but count for nothing else
	r.trace.Preemptions++
	e.stats.Preemptions++
	e.waiting.prepend(r)
}

// scheduleWaiting is the second part of Scheduler.schedule: the first that
// waits and does not fit holds up all behind it.
//
// vLLM passes over one whose output is still to come from a step before it was
// preempted. With the two steps that are in flight here there is none: a step that
// preempts starts nobody, and before the next is planned the step before it is done
// (TestInvariants).
func (e *Engine) scheduleWaiting(p *plan, budget *int, threshold int) {
	slots := e.set.draftSlots()
	ran := len(p.items)+p.cruisers > 0
	for e.waiting.len() > 0 && *budget > slots && len(e.running) < e.set.MaxNumSeqs {
		r := e.waiting.peek()
		hits := e.findLongestCacheHit(r)
		cached := countBlocks(hits) * e.set.BlockSize
		from := max(cached, r.receivedTokens())
		n := r.numTokens() - from
		drafts := 0
		if n == 1 && !p.prefilling && (ran || from > 0) {
			drafts = e.draftPadding(from)
		}
		if drafts > 0 {
			if n += drafts; n > *budget-slots {
				return // rather later than in a shape of its own
			}
		} else if 0 < threshold && threshold < n {
			n = threshold
		}
		if !e.set.EnableChunkedPrefill && n > *budget-slots {
			return
		}
		n = min(n, *budget-slots)
		if !e.admit(r, hits, from, n) {
			return
		}
		e.waiting.pop()
		e.countPrefix(r, cached)
		r.computed = from
		r.status = running
		e.running = append(e.running, r)
		p.items = append(p.items, entry{r: r, tokens: n, drafts: drafts, padded: drafts > 0})
		*budget -= n + slots
	}
}

// draftPadding returns the number of dummy drafts of a request that starts with its last token
// alone, all before being cached. They keep the step's rows equally long, as the CUDA graphs of
// steps with drafts need them. It is 0 where the number of drafts varies, or where context or
// budget have no room.
func (e *Engine) draftPadding(cached int) int {
	k := e.set.NumSpeculativeTokens
	if e.set.SpeculativeSchedule != nil || cached+k+2 > e.set.MaxModelLen || 1+k > e.set.MaxNumBatchedTokens-e.set.draftSlots() {
		return 0
	}
	return k
}

// findLongestCacheHit gives the blocks at the front of a request that are
// cached, until it is asked again, one token short of all: the last must be computed to get its
// logits (KVCacheManager.get_computed_blocks). A drafter that reads the
// model's hidden states, as EAGLE and MTP do, needs those before the answer
// too: the last block that hits is computed again
// (FullAttentionManager.find_longest_cache_hit).
func (e *Engine) findLongestCacheHit(r *request) []part {
	if !e.set.EnablePrefixCaching {
		return nil
	}
	r.hashFullBlocks(e.set.BlockSize, r.numTokens())
	most := (r.numTokens() - 1) / e.set.BlockSize
	e.hits = e.pool.find(r.hashes[:most], e.hits[:0])
	if last := len(e.hits) - 1; last >= 0 && e.set.lookahead() > 0 {
		if e.hits[last].n--; e.hits[last].n == 0 {
			return e.hits[:last]
		}
	}
	return e.hits
}

// countBlocks returns the number of blocks.
func countBlocks(parts []part) (n int) {
	for _, x := range parts {
		n += x.n
	}
	return n
}

// shareBlocks gives a request cached blocks that it begins with.
func (e *Engine) shareBlocks(r *request, cached []part) {
	r.blocks = countBlocks(cached)
	r.listed = r.blocks
	for _, x := range cached {
		r.parts = append(r.parts, e.pool.holdPart(x))
	}
}

// freeBlocks takes all blocks from a request.
func (e *Engine) freeBlocks(r *request) {
	e.pool.release(r.parts, r.blocks-r.listed+r.beside)
	r.parts, r.blocks, r.beside, r.listed = r.parts[:0], 0, 0, 0
}

// countPrefix keeps the prefix cache's statistics; those of a request that
// was preempted are kept apart and not shown (PrefixCacheStats.record).
func (e *Engine) countPrefix(r *request, cached int) {
	if r.trace.Preemptions == 0 {
		r.trace.Cached = cached
		if e.set.EnablePrefixCaching {
			e.stats.PrefixQueries += int64(r.numTokens())
			e.stats.PrefixHits += int64(cached)
		}
	}
}

// admit gives a waiting request its cached blocks and room for n tokens behind those that
// are there, if
// the whole of it would fit (KVCacheManager.allocate_slots with
// full_sequence_must_fit) and the watermark stays free.
func (e *Engine) admit(r *request, hits []part, from, n int) bool {
	reserve := 0
	if len(e.running) > 0 {
		reserve = int(e.set.Watermark * float64(e.set.NumGPUBlocks))
	}
	had := countBlocks(hits)
	free := e.pool.free - e.pool.idleBlocks(hits) - reserve
	if whole := min(r.numTokens(), e.set.MaxModelLen); e.set.SchedulerReserveFullISL && e.blocksFor(whole)-had+e.set.BlocksBeside(whole) > free {
		return false
	}
	upTo := min(from+n+e.set.lookahead(), e.set.MaxModelLen)
	need, beside := e.blocksFor(upTo)-had, e.set.BlocksBeside(upTo)
	if need+beside > free {
		return false
	}
	e.shareBlocks(r, hits)
	e.growBlocks(r, need, beside)
	e.cacheBlocks(r, min(from+n, r.numTokens()))
	return true
}

// allocateSlots gives a running request room for n more tokens
// (KVCacheManager.allocate_slots).
func (e *Engine) allocateSlots(r *request, n int) bool {
	upTo := min(r.computed+n+e.set.lookahead(), e.set.MaxModelLen)
	need, beside := max(e.blocksFor(upTo)-r.blocks, 0), max(e.set.BlocksBeside(upTo)-r.beside, 0)
	if need+beside > e.pool.free {
		return false
	}
	e.growBlocks(r, need, beside)
	e.cacheBlocks(r, min(r.computed+n, r.numTokens()))
	return true
}

func (e *Engine) growBlocks(r *request, blocks, beside int) {
	e.pool.takeBlocks(blocks + beside)
	r.blocks += blocks
	r.beside += beside
}

// cacheBlocks makes a request's blocks findable up to a number of tokens
// that will be computed (KVCacheManager.cache_blocks). It does so when the
// step is planned, so that an equal prompt in the same step already hits.
func (e *Engine) cacheBlocks(r *request, tokens int) {
	if tokens/e.set.BlockSize > r.listed {
		e.cacheUpTo(r, tokens)
	}
}

// cacheUpTo does so where more than is cached may be.
func (e *Engine) cacheUpTo(r *request, tokens int) {
	full := tokens / e.set.BlockSize
	if !e.set.EnablePrefixCaching || full <= r.listed {
		return
	}
	r.hashFullBlocks(e.set.BlockSize, tokens)
	r.parts = e.pool.cacheBlocks(r.parts, r.hashes[:full], r.listed)
	r.listed = full
}

func (e *Engine) blocksFor(tokens int) int {
	return (tokens + e.set.BlockSize - 1) / e.set.BlockSize
}

// updateAfterSchedule moves a request on as if the step had run already
// (Scheduler._update_after_schedule and AsyncScheduler's), and enters it into
// the batch.
func (e *Engine) updateAfterSchedule(p *plan, it *entry) {
	r := it.r
	if r.trace.Scheduled < 0 {
		r.trace.Scheduled, r.trace.FirstStep = e.now, p.number
	}
	r.trace.Steps++
	r.trace.LastStep = p.number
	b := &p.batch
	b.Requests++
	b.Tokens += it.tokens
	b.Logits += 1 + it.drafts
	if answer := it.padded || r.computed >= r.numTokens()+r.placeholders-1 && r.output+r.placeholders > 0; answer {
		b.Decodes++
		b.DecodeContext += int64(r.computed + it.tokens)
	} else {
		b.Prefills = append(b.Prefills, sim.Chunk{New: it.tokens, Context: r.computed})
		b.PrefillContext += int64(r.computed)
	}
	r.computed += it.tokens
	r.inFlight++
	r.inPrompt = r.computed-it.drafts < r.numTokens()+r.placeholders
	if r.inPrompt {
		return
	}
	it.samples = true
	r.placeholders += 1 + it.drafts
	r.drafts = b.Drafts
}

// updateFromOutput applies what a step gave (Scheduler.update_from_output).
func (e *Engine) updateFromOutput(p *plan) {
	outputs := e.updateCruising(p)
	e.ended = p.end
	for i := range p.items {
		it := &p.items[i]
		r := it.r
		r.inFlight--
		stale := r.stale > 0
		if stale {
			r.stale--
		}
		if r.status == finished || !it.samples {
			continue
		}
		accepted := 0
		if !it.padded {
			accepted = e.acceptedDrafts(r, it.drafts)
		}
		e.stats.CountVerification(it.drafts, accepted)
		n, finish := e.checkStop(r, 1+accepted)
		r.output += n
		if !stale {
			r.computed -= it.drafts - accepted
			r.placeholders -= it.drafts - accepted + n
			if e.set.AsyncScheduling { // otherwise the next step's allocateSlots does it
				e.cacheBlocks(r, r.computed-r.placeholders)
			}
		}
		if r.trace.First < 0 {
			r.trace.First = p.end
		}
		r.trace.Last = p.end
		e.stats.GenerationTokens += int64(n)
		if finish != "" {
			e.freeRequest(r)
		}
		if outputs == 0 {
			e.front.beside = len(e.running) > 0 || e.waiting.len() > 0
			e.front.addStepWork(p.end)
		}
		outputs++
		e.streamInterval(r, n, finish, p.end)
	}
}

// acceptedDrafts returns the number of drafts that the model accepts. It accepts each with the same
// probability, up to the first that it rejects.
func (e *Engine) acceptedDrafts(r *request, drafts int) (n int) {
	for n < drafts && e.Uniform(uint64(r.job.ID), uint64(r.output+n)) < e.set.AcceptanceRate {
		n++
	}
	return n
}

// checkStop cuts n new tokens off where the answer ends (sched/utils.py
// check_stop): the model's own end is looked at before the lengths. Only a job
// whose own end is its max_tokens ends by "length", as sim.Job has it.
func (e *Engine) checkStop(r *request, n int) (int, string) {
	own := r.job.Output - r.output
	limit := r.maxTokens() - r.output
	room := e.set.MaxModelLen - r.job.Prompt - r.output
	if own < limit && own <= min(room, n) {
		return max(own, 1), "stop"
	}
	if left := min(limit, room); left <= n {
		return max(left, 1), "length"
	}
	return n, ""
}

// freeRequest ends a request (Scheduler._free_request).
func (e *Engine) freeRequest(r *request) {
	switch r.status {
	case running:
		e.stopRunning(r)
	case waiting, preempted:
		e.waiting.remove(r)
	}
	e.giveUp(r)
}

// giveUp frees what a request holds that neither runs nor waits any more.
func (e *Engine) giveUp(r *request) {
	r.status = finished
	e.freeBlocks(r)
	r.parts = nil
}
