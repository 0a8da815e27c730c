package sglang

import (
	"cmp"
	"math"
	"slices"

	"pitot/internal/sim"
)

// Constants of SGLang (schedule_policy.py, environ.py).
const (
	clipMaxNewTokens = 4096 // of the estimate of an answer's rest
	matchMost        = 128  // requests that wait: of more the tree is not asked
	inBatch          = 32   // tokens found at most, and found among those that wait at least, for a request to stand back
	initRatio        = 0.7
	minRatioFactor   = 0.14
	ratioDecaySteps  = 600
	retractSteps     = 20 // tokens that each that stays is promised after a retraction
	touchEvery       = 32 // times that those that wait are looked at, for their beginnings to be kept in the tree once
	reserveFixed     = 1  // tokens for each request whose answer has a fixed length, where nothing is kept (IGNORE_EOS_RESERVE_TOKENS)
)

func (e *Engine) firstRatio() float64 { return min(initRatio*e.set.ScheduleConservativeness, 1) }

// planNext plans a step: prompts that can begin or go on, else the answers of all that run
// (get_next_batch_to_run). nil: there is nothing to do.
func (e *Engine) planNext() *plan {
	if c := e.chunked; c != nil && c.end > c.shared { // stash_chunked_request
		e.cachePrefix(c, c.computed)
	}
	if l := e.last; l != nil && l.extend && !l.merged {
		l.merged = true
		if len(e.running) == 0 {
			e.full = false // the step is the batch from now on, and it was never full
		}
		for _, it := range l.items {
			if it.middle || it.r.finished || it.life != it.r.life {
				e.full = false // one fewer than the step had
			} else {
				e.running = append(e.running, it.r)
			}
		}
	}
	before := len(e.running)
	e.running = slices.DeleteFunc(e.running, func(r *request) bool { return r.finished })
	if len(e.running) < before {
		e.full = false
	}
	if p := e.planPrefill(); p != nil {
		return p
	}
	return e.planDecode()
}

// adder tracks the capacity that a step has left (PrefillAdder).
type adder struct {
	e            *Engine
	input, chunk int     // tokens of prompts
	total, now   float64 // tokens that are promised, and that are taken at once, of what has room or can be evicted
	p            *plan
	takes        []int    // of the items, of the KV cache
	began        *request // in part
	stays        []stay   // those that run, the one that ends first at the front
	found, fresh int      // tokens of prompts of the step that are in the tree and that are not, of requests that come for the first time
}

// stay holds the number of tokens that a request may still get, and the number it has.
type stay struct{ left, has float64 }

func (a *adder) freeTokens() float64 { return float64(a.e.availableTokens() + a.e.tree.evictable()) }

// hasCapacity says whether there is memory for another request (has_capacity).
func (a *adder) hasCapacity() bool { return a.freeTokens()-a.total > 0 && a.freeTokens()-a.now > 0 }

// planPrefill plans a step with prompts (get_new_batch_prefill).
func (e *Engine) planPrefill() *plan {
	if len(e.running) == 0 {
		e.full = false
	}
	if (e.full || len(e.waiting) == 0) && e.chunked == nil {
		return nil
	}
	places := e.set.MaxRunningRequests - e.rows
	if places <= 0 && e.chunked == nil {
		e.full = true
		return nil
	}
	e.orderWaiting()
	a := &adder{e: e, input: e.set.MaxPrefillTokens, chunk: e.set.ChunkedPrefillSize, p: &plan{extend: true}}
	if e.set.EnableMixedChunk {
		a.input, a.chunk = a.input-len(e.running), a.chunk-len(e.running)
		a.total, a.now = float64(len(e.running)), float64(len(e.running))
	}
	for _, r := range e.running {
		ratio := e.ratio
		if r.job.Limit == 0 { // it ends by its length alone
			ratio = 1
		}
		a.total += float64(min(r.limit-r.output, clipMaxNewTokens)) * ratio
	}
	if e.chunked != nil && a.goOn(e.chunked) {
		e.chunked = nil
	}
	places += len(a.p.items) // that one has its place
	for _, r := range e.waiting {
		if a.hasCapacity() && (a.input <= 0 || a.chunk <= 0) {
			break
		}
		if len(a.p.items) >= places {
			e.full = true
		}
		if e.full {
			break
		}
		added, fits := a.admitWaiting(r)
		if !fits {
			e.full = len(a.p.items) > 0 || len(e.running) > 0
		}
		if !added || !fits {
			break
		}
	}
	if len(a.p.items) == 0 {
		return nil
	}
	if all := a.found + a.fresh; all > 0 {
		e.stats.Radix.HitShare = float64(a.found) / float64(all)
	}
	for i, it := range a.p.items {
		if !it.r.row {
			it.r.row = true
			e.rows++
		}
		e.reserveTokens(it.r, a.takes[i])
	}
	e.waiting = slices.DeleteFunc(e.waiting, func(r *request) bool { return !r.queued })
	if a.began != nil {
		e.chunked = a.began
	}
	if e.set.EnableMixedChunk {
		e.mixRunning(a.p)
	}
	return a.p
}

// goOn goes on with the prompt that is computed in parts, and says whether that is its end. It
// goes on where too much is promised too, or its memory would never be free again.
func (a *adder) goOn(r *request) bool {
	n := min(a.chunk, int(a.freeTokens()-a.total))
	if n <= 0 {
		n = a.chunk
	}
	if most := a.chunkLimit(r); most > 0 {
		n = min(n, most)
	}
	if n = min(n, r.tokensToCompute()-r.computed); n <= 0 {
		return false
	}
	a.addTokens(r, n)
	return r.end == r.tokensToCompute()
}

// chunkLimit returns the part of a step that a prompt computed in parts may have. So shorter
// prompts find room beside it. 0 is the whole step (shortest_prefill_chunk_limit).
func (a *adder) chunkLimit(r *request) int {
	if a.e.schedulePolicy() != "shortest-prefill-first" || a.chunk < 2 {
		return 0
	}
	reserved := 0
	for _, w := range a.e.waiting {
		work := max(w.tokensToCompute()-w.matched, 1)
		if work >= r.tokensToCompute()-r.computed || reserved+work > a.chunk-1 {
			break
		}
		reserved += work
	}
	if reserved == 0 {
		return 0
	}
	return a.chunk - reserved
}

// admitWaiting admits a request that waits, if there is room for it and for what it may answer;
// added is false where a step has no room for it, fits where the KV cache has none, or none
// for another.
func (a *adder) admitWaiting(r *request) (added, fits bool) {
	e := a.e
	at, found := e.tree.root, 0
	if r.job.Content != nil && !e.set.DisableRadixCache {
		at, found = e.tree.match(r.job.Content, r.tokensToCompute()-1)
	}
	e.tree.hold(at)
	extend := r.tokensToCompute() - found
	most := min(r.limit-r.output, clipMaxNewTokens)
	switch {
	case e.set.DisableRadixCache && r.job.Limit == 0:
		if !a.fitsToEnd(r) {
			return false, false
		}
	case float64(extend+most+1) >= a.freeTokens()-a.total:
		e.tree.releaseNode(at)
		return false, false
	}
	if extend > a.chunk && e.chunked != nil { // one prompt at a time is computed in parts
		e.tree.releaseNode(at)
		return false, true
	}
	r.node, r.shared, r.computed, r.queued = at, found, found, false
	e.stats.Radix.Found += int64(found)
	if r.trace.Preemptions == 0 {
		r.trace.Cached = found
		a.found += found
		e.stats.PrefixQueries += int64(r.tokensToCompute())
		e.stats.PrefixHits += int64(found)
	} else {
		e.stats.Radix.FoundAgain += int64(found)
	}
	a.addTokens(r, min(extend, a.chunk))
	if r.end < r.tokensToCompute() {
		a.began = r
	}
	return true, a.hasCapacity()
}

// fitsToEnd says whether there is room for a request whose answer has a fixed length, where nothing
// is kept of those that end: none that runs may lack a token at any time until all have ended
// (add_one_req_ignore_eos).
func (a *adder) fitsToEnd(r *request) bool {
	need := float64(r.tokensToCompute() + 1)
	if need > min(a.freeTokens()-a.now, a.freeTokens()-a.total) {
		return false
	}
	rest := func(r *request) stay {
		ratio := 1.0
		if r.job.Limit > 0 {
			ratio = a.e.ratio
		}
		return stay{float64(r.limit)*ratio - float64(r.output), float64(r.tokensToCompute())}
	}
	if a.stays == nil {
		a.stays = []stay{}
		all := append([]*request{r}, a.e.running...)
		for _, it := range a.p.items {
			all = append(all, it.r)
		}
		for _, x := range all {
			if s := rest(x); s.left > 0 {
				a.stays = append(a.stays, s)
			}
		}
		slices.SortStableFunc(a.stays, func(x, y stay) int { return cmp.Compare(x.left, y.left) })
	} else if s := rest(r); s.left > 0 {
		i := 0
		for k := range a.stays {
			if i = k; s.left <= a.stays[k].left {
				break
			}
		}
		a.stays = slices.Insert(a.stays, i, s)
	}
	room, freed := a.freeTokens()-a.now-need, 0.0
	for i, s := range a.stays {
		n := float64(len(a.stays) - i)
		if room+freed-s.left*n <= reserveFixed*n {
			return false
		}
		freed += s.has
	}
	return true
}

// addTokens takes so many tokens of a prompt into the step.
func (a *adder) addTokens(r *request, n int) {
	b := &a.p.batch
	r.end = r.computed + n
	last := r.end == r.tokensToCompute()
	b.Requests++
	b.Tokens += n
	b.Prefills = append(b.Prefills, sim.Chunk{New: n, Context: r.computed})
	b.PrefillContext += int64(r.computed)
	a.p.items = append(a.p.items, item{r: r, life: r.life, middle: !last})
	a.takes = append(a.takes, n)
	r.computed = r.end
	a.e.stats.Radix.Computed += int64(n)
	if r.trace.Preemptions > 0 {
		a.e.stats.Radix.ComputedAgain += int64(n)
	} else {
		a.fresh += n
	}
	a.total += float64(n + 1) // a page more, for rounding
	a.now += float64(n + 1)
	if last {
		a.total += float64(min(r.limit, clipMaxNewTokens))
		b.Logits++
		r.planned++
	}
	a.input -= n
	a.chunk -= n
}

// mixRunning lets answers go on in a step with prompts, all or none (mix_with_running).
func (e *Engine) mixRunning(p *plan) {
	if len(e.running) == 0 {
		return
	}
	going := slices.DeleteFunc(slices.Clone(e.running), func(r *request) bool { return r.tokensLeft() <= 0 })
	if len(going) < len(e.running) {
		e.full = false
	}
	e.running = going
	if len(going) == 0 || !e.makeRoom(len(going)) {
		return
	}
	for _, r := range going {
		e.goOn(p, r)
	}
	e.running = nil // they come back behind the step's prompts
}

// makeRoom makes room for so many tokens, if it can (check_decode_capacity).
func (e *Engine) makeRoom(tokens int) bool {
	if short := tokens - e.availableTokens(); short > 0 {
		e.tree.evict(short)
	}
	return tokens <= e.availableTokens()
}

// goOn takes the next token of an answer into a step.
func (e *Engine) goOn(p *plan, r *request) {
	b := &p.batch
	e.reserveTokens(r, 1)
	r.computed++
	r.planned++
	b.Requests++
	b.Tokens++
	b.Logits++
	b.Decodes++
	b.DecodeContext += int64(r.computed)
	p.items = append(p.items, item{r: r, life: r.life, decode: true})
}

// planDecode plans a step of answers, and takes back memory where it is short
// (update_running_batch).
func (e *Engine) planDecode() *plan {
	before := len(e.running)
	going := slices.DeleteFunc(slices.Clone(e.running), func(r *request) bool { return r.tokensLeft() <= 0 })
	if len(going) < before {
		e.full = false
	}
	if len(going) == 0 {
		return nil
	}
	if !e.makeRoom(len(going)) {
		if len(going) < before { // those that end free what they have first
			return nil
		}
		going = e.retract(going)
		e.full = false
	} else {
		first := e.firstRatio()
		e.ratio = max(e.ratio-first*(1-minRatioFactor)/ratioDecaySteps, first*minRatioFactor)
	}
	if len(going) == 0 {
		return nil
	}
	p := &plan{}
	for _, r := range going {
		e.goOn(p, r)
	}
	return p
}

// retract sends back to wait those with the shortest answers, of equals with the longest
// prompts, until the others fit (retract_decode).
func (e *Engine) retract(going []*request) []*request {
	order := slices.Clone(going)
	slices.SortStableFunc(order, func(a, b *request) int {
		return cmp.Or(cmp.Compare(b.output, a.output), cmp.Compare(a.job.Prompt, b.job.Prompt))
	})
	for first := true; first || !e.makeRoom(len(order)); first = false {
		if len(order) == 1 { // at least one goes on, or none ever will
			break
		}
		r := order[len(order)-1]
		order = order[:len(order)-1]
		e.release(r)
		e.makeRoom(retractSteps * len(order))
		r.life++
		r.planned, r.computed, r.end = 0, 0, 0
		r.trace.Preemptions++
		e.stats.Preemptions++
		e.stats.Radix.RetractedPrompt += int64(r.job.Prompt)
		e.stats.Radix.RetractedAnswer += int64(r.output)
		e.enqueueWaiting(r)
	}
	if len(order) == 1 && !e.makeRoom(1) {
		e.abortForMemory(order[0])
		order = nil
	}
	e.running = order
	decoded, most := retractSteps*len(order), 1
	for _, r := range order {
		decoded += r.output
		most += r.limit
	}
	e.ratio = min(float64(decoded)/float64(most), 1)
	return order
}

// schedulePolicy is the order of those that wait: the one that was set where there is a tree to
// ask.
func (e *Engine) schedulePolicy() string {
	if e.set.DisableRadixCache && e.set.SchedulePolicy != "lof" {
		return "fcfs"
	}
	return e.set.SchedulePolicy
}

// orderWaiting sorts those that wait (SchedulePolicy.calc_priority).
func (e *Engine) orderWaiting() {
	policy := e.schedulePolicy()
	if policy == "lpm" && len(e.waiting) > matchMost {
		policy = "fcfs"
	}
	switch policy {
	case "lof":
		slices.SortStableFunc(e.waiting, func(a, b *request) int { return cmp.Compare(b.limit, a.limit) })
	case "lpm":
		back := e.match()
		e.sortByKey(func(r *request) int {
			if back[r] {
				return math.MaxInt
			}
			return -r.matched
		})
	case "shortest-prefill-first":
		back := e.match()
		slices.SortStableFunc(e.waiting, func(a, b *request) int {
			return cmp.Or(compareBool(back[a], back[b]), cmp.Compare(max(a.tokensToCompute()-a.matched, 1), max(b.tokensToCompute()-b.matched, 1)), cmp.Compare(a.entered, b.entered))
		})
	case "dfs-weight":
		e.match()
		e.depthFirst()
	}
	if (policy == "lof" || policy == "fcfs") && !e.set.DisableRadixCache && len(e.waiting) > 0 {
		if e.touches++; e.touches%touchEvery == 1 {
			for _, r := range slices.Backward(e.waiting[:min(len(e.waiting), matchMost)]) {
				if r.job.Content != nil {
					e.tree.match(r.job.Content, r.tokensToCompute())
				}
			}
		}
	}
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

func (e *Engine) sortByKey(key func(*request) int) {
	slices.SortStableFunc(e.waiting, func(a, b *request) int { return cmp.Compare(key(a), key(b)) })
}

// match asks the tree what it has of each that waits, and says which stand back: those of
// which the tree has little, and another that waits has the same beginning.
func (e *Engine) match() map[*request]bool {
	back, among := map[*request]bool{}, newTree()
	for _, r := range e.waiting {
		r.at, r.matched = e.tree.root, 0
		if r.job.Content == nil {
			continue
		}
		at, found := e.tree.match(r.job.Content, r.tokensToCompute())
		r.at, r.matched = at, min(found, r.tokensToCompute()-1)
		if found > inBatch {
			continue
		}
		if _, found := among.match(r.job.Content, r.tokensToCompute()); found >= inBatch {
			back[r] = true
		} else {
			among.insert(r.job.Content, r.tokensToCompute())
		}
	}
	return back
}

// depthFirst orders those that wait as a walk through the tree finds their nodes, which goes
// first to where most of them are.
func (e *Engine) depthFirst() {
	at, weight := map[*node][]*request{}, map[*node]int{}
	for _, r := range e.waiting {
		at[r.at] = append(at[r.at], r)
		for n := r.at; n != nil; n = n.parent {
			weight[n]++
		}
	}
	e.waiting = e.waiting[:0]
	var walk func(n *node)
	walk = func(n *node) {
		children := make([]*node, 0, len(n.children))
		for _, c := range n.children {
			if weight[c] > 0 {
				children = append(children, c)
			}
		}
		slices.SortFunc(children, func(a, b *node) int {
			return cmp.Or(cmp.Compare(weight[b], weight[a]), cmp.Compare(a.born, b.born))
		})
		for _, c := range children {
			walk(c)
		}
		e.waiting = append(e.waiting, at[n]...)
	}
	walk(e.tree.root)
}
