package vllm

import "sort"

// none is no run; its place is where the ring of free runs begins and ends.
const none = 0

// pool is the KV cache: blocks of equal size, those that are not in use in a
// queue in the order in which they will be evicted, and an index from the
// content of full blocks to blocks. It follows BlockPool and
// FreeKVCacheBlockQueue of vllm/v1/core/block_pool.py and kv_cache_utils.py.
//
// Which of the blocks holds something makes no difference to anything that is asked here, so they
// have no numbers. Those that hold nothing that could be found are counted: the free ones of them
// are at the front of the queue. Those that do are kept in runs, as blocks that follow each other
// in a prompt have mostly the same fate, and prompts of thousands of blocks are then a few runs.
type pool struct {
	caching bool
	blocks  int // with vLLM's null block, which stands for none
	free    int // that no request holds
	empty   int // of these, that hold nothing: evicted first
	fresh   int // of these, never used

	runs  []run   // by their numbers
	spare []int32 // numbers that are not used

	// The index is a hash table of chains: head has the first run of each. It has the contents
	// that runs begin with, which are mixed well already, so their low bits choose the chain.
	head   []int32
	listed int // runs in it
}

// run is cached blocks that are held by the same requests, each the continuation of the one before
// it. Those that no request holds follow each other in the free queue, the last first.
//
// Only what a run begins with is in the index. It is enough because a content that several blocks
// have is a run of its own wherever it is: what comes after any of them begins a run, and a content
// within a run is found behind the one before it.
type run struct {
	hashes []uint64 // content of each block and of all before it, which the caller does not change
	first  uint64   // of these
	ref    int32    // requests that hold it
	behind int32    // the next in its chain, in the order they were cached
	// The free queue is a ring through none: the one that is next there is evicted first, prev
	// last.
	next, prev int32
	before     int32 // what was cut off its front last
	single     bool  // one block, of whose content there is another, or was
}

// part is some of what a request holds: so many blocks that end with a run. They are more than
// the run has once what is before was cut off.
type part struct {
	run int32
	n   int
}

func newPool(blocks int, caching bool) *pool {
	const first = 64 // runs, as many as a few requests need
	return &pool{
		caching: caching, blocks: blocks, free: blocks - 1, empty: blocks - 1, fresh: blocks - 1,
		runs: make([]run, 1, first), head: make([]int32, first),
	}
}

// size is the number of blocks that can be used.
func (p *pool) size() int { return p.blocks - 1 }

// usedBlocks returns the number of blocks that ever held something.
func (p *pool) usedBlocks() int { return p.size() - p.fresh }

// usage is the share of the blocks in use; cached blocks that no request refers
// to count as free (BlockPool.get_usage).
func (p *pool) usage() float64 {
	if p.size() == 0 {
		return 0
	}
	return 1 - float64(p.free)/float64(p.size())
}

// takeBlocks takes n blocks that are next to be evicted and forgets what they
// held (BlockPool.get_new_blocks, _maybe_evict_cached_block). The caller has
// made sure that there are as many.
func (p *pool) takeBlocks(n int) {
	p.free -= n
	nothing := min(n, p.empty)
	p.empty -= nothing
	p.fresh = min(p.fresh, p.empty)
	for n -= nothing; n > 0; {
		i := p.runs[none].next
		r := &p.runs[i]
		if left := len(r.hashes) - n; left > 0 {
			r.hashes = r.hashes[:left]
			return
		}
		n -= len(r.hashes)
		p.unlink(i)
		*p.indexSlot(i) = r.behind
		p.listed--
		*r = run{}
		p.spare = append(p.spare, i)
	}
}

// find adds to a list the cached blocks that a prompt of so many contents begins with: of each run
// how many of its first. Of several blocks of a content it is the one that was cached first
// (BlockHashToBlockMap.get_one_block).
func (p *pool) find(hashes []uint64, list []part) []part {
	for len(hashes) > 0 {
		i := p.firstRun(hashes[0])
		if i == none {
			break
		}
		n := commonPrefix(p.runs[i].hashes, hashes)
		list, hashes = append(list, part{i, n}), hashes[n:]
	}
	return list
}

// commonPrefix returns the number of contents that two lists with the same start have in common at
// the front. Each content covers all before it too, so the last common one is found by halving.
func commonPrefix(a, b []uint64) int {
	n := min(len(a), len(b))
	if a[n-1] == b[n-1] {
		return n
	}
	return sort.Search(n, func(i int) bool { return a[i] != b[i] })
}

// idleBlocks returns the number of found blocks that no request holds. They count as free.
func (p *pool) idleBlocks(found []part) (n int) {
	for _, x := range found {
		if p.runs[x.run].ref == 0 {
			n += x.n
		}
	}
	return n
}

// holdPart has one more request hold what was found; what was free leaves the
// queue (BlockPool.touch).
func (p *pool) holdPart(found part) part {
	i := found.run
	if found.n < len(p.runs[i].hashes) {
		i = p.splitRun(i, found.n)
	}
	if p.runs[i].ref == 0 {
		p.unlink(i)
		p.free -= found.n
	}
	p.runs[i].ref++
	return part{i, found.n}
}

// release gives up what a request holds from the last block to the first, so that
// the tail of a prefix is evicted before its head, and so many blocks that hold nothing
// worth keeping. These go to the front of the queue, the others to its end
// (SingleTypeKVCacheManager.free, BlockPool.free_blocks).
func (p *pool) release(list []part, nothing int) {
	p.free += nothing
	p.empty += nothing
	for k := len(list) - 1; k >= 0; k-- {
		i := list[k].run
		for n := list[k].n; n > 0; i = p.runs[i].before {
			r := &p.runs[i]
			n -= len(r.hashes)
			if r.ref--; r.ref == 0 {
				p.link(i, p.runs[none].prev)
				p.free += len(r.hashes)
			}
		}
	}
}

// cacheBlocks makes blocks of a request findable (BlockPool.cache_full_blocks): those behind the
// first listed ones, which the list has, as far as contents are given.
func (p *pool) cacheBlocks(list []part, hashes []uint64, listed int) []part {
	for i := listed; i < len(hashes); i++ {
		other := p.firstRun(hashes[i])
		if other != none {
			if len(p.runs[other].hashes) > 1 {
				other = p.splitRun(other, 1)
			}
			p.runs[other].single = true
		} else if k := len(list) - 1; k >= 0 && p.runs[list[k].run].ref == 1 && !p.runs[list[k].run].single { // nobody else holds it
			r := &p.runs[list[k].run]
			r.hashes = hashes[i-len(r.hashes) : i+1]
			list[k].n++
			continue
		}
		begun := p.numberRun(run{hashes: hashes[i : i+1], first: hashes[i], ref: 1, single: other != none})
		p.indexRun(begun)
		list = append(list, part{begun, 1})
	}
	return list
}

// splitRun makes a run of its own of the first n blocks of one.
func (p *pool) splitRun(i int32, n int) int32 {
	front := p.runs[i]
	front.hashes = front.hashes[:n]
	f := p.numberRun(front)
	*p.indexSlot(i) = f // its place in the order too
	r := &p.runs[i]
	r.hashes, r.first, r.before = r.hashes[n:], r.hashes[n], f
	p.indexRun(i)
	if r.ref == 0 {
		p.link(f, i)
	}
	return f
}

// numberRun gives a run a number.
func (p *pool) numberRun(r run) (i int32) {
	if k := len(p.spare) - 1; k >= 0 {
		i, p.spare = p.spare[k], p.spare[:k]
		p.runs[i] = r
		return i
	}
	p.runs = append(p.runs, r)
	return int32(len(p.runs) - 1)
}

// link puts a run behind another in the free queue.
func (p *pool) link(i, after int32) {
	next := p.runs[after].next
	p.runs[after].next, p.runs[i].prev = i, after
	p.runs[i].next, p.runs[next].prev = next, i
}

func (p *pool) unlink(i int32) {
	r := &p.runs[i]
	p.runs[r.prev].next, p.runs[r.next].prev = r.next, r.prev
}

// chainSlot is the place in the index where the chain of a content begins.
func (p *pool) chainSlot(hash uint64) *int32 { return &p.head[hash&uint64(len(p.head)-1)] }

// firstRun is the first that was cached of the runs that begin with a content.
func (p *pool) firstRun(hash uint64) int32 {
	i := *p.chainSlot(hash)
	for i != none && p.runs[i].first != hash {
		i = p.runs[i].behind
	}
	return i
}

// indexSlot is the place in the index that has a run.
func (p *pool) indexSlot(i int32) *int32 {
	place := p.chainSlot(p.runs[i].first)
	for *place != i {
		place = &p.runs[*place].behind
	}
	return place
}

// indexRun enters a run into the index.
func (p *pool) indexRun(i int32) {
	if p.listed++; p.listed > len(p.head) {
		p.widen()
	}
	p.appendToChain(i)
}

// appendToChain puts a run at the end of its chain.
func (p *pool) appendToChain(i int32) {
	place := p.chainSlot(p.runs[i].first)
	for *place != none {
		place = &p.runs[*place].behind
	}
	*place, p.runs[i].behind = i, none
}

// widen doubles the index; runs that begin with one content keep their order.
func (p *pool) widen() {
	old := p.head
	p.head = make([]int32, 2*len(old))
	for _, i := range old {
		for i != none {
			following := p.runs[i].behind
			p.appendToChain(i)
			i = following
		}
	}
}
