package vllm

import (
	"math/bits"
	"slices"
)

// null is the block that stands for none; vLLM takes it out of the pool when
// it starts (BlockPool.null_block).
const null = 0

// pool is the KV cache: blocks of equal size, those that are not in use in a
// queue in the order in which they will be evicted, and an index from the
// content of full blocks to blocks. It follows BlockPool and
// FreeKVCacheBlockQueue of vllm/v1/core/block_pool.py and kv_cache_utils.py.
//
// Blocks that were never used stay together in the queue, in the order of their
// numbers: what is freed comes before or behind all of them. So one of them, the
// last that was made, stands for the others until it is taken: of a large cache
// only what is used takes memory and time.
type pool struct {
	caching bool
	blocks  int     // with the null block
	made    []block // by their numbers

	// The index is a hash table of chains: head has the first block of each.
	// Contents are mixed well already, so their low bits choose the chain.
	head   []int32
	listed int // blocks in it
	free   int

	touches int64 // how often a cached block was referred to once more
}

// private stands behind a cached block that is in no chain: only the request that filled it
// can find it again.
const private = -1

// block is what is known of one, together in memory: it is looked up at once.
type block struct {
	hash   uint64 // content of a full block and of all before it, 0 if not cached
	ref    int32
	behind int32 // the next in its chain, null at the end, in the order they were cached
	// The free queue is a ring through the null block: the one that is next there is evicted
	// first, prev last.
	next, prev int32

	after int32 // the one that was cached behind it last, null for none
	again bool  // another of its content was cached before it
}

func newPool(blocks int, caching bool) *pool {
	p := &pool{caching: caching, blocks: blocks, free: blocks - 1}
	const first = 64 // blocks, as many as a request or two need
	p.head = make([]int32, 1<<bits.Len(uint(min(blocks, first))))
	p.makeNext(null) // itself
	if blocks > 1 {
		p.makeNext(null)
	}
	return p
}

// makeNext makes one more of the blocks that were never used, in the queue behind
// another. It is counted as free already.
func (p *pool) makeNext(after int32) {
	b := int32(len(p.made))
	if len(p.made) == cap(p.made) {
		p.made = slices.Grow(p.made, max(min(len(p.made), p.blocks-len(p.made)), 1))
	}
	p.made = append(p.made, block{})
	if b != null {
		p.insert(b, after)
	}
}

// widen doubles the index; blocks of one content keep their order.
func (p *pool) widen() {
	old := p.head
	p.head = make([]int32, 2*len(old))
	for _, b := range old {
		for b != null {
			following := p.made[b].behind
			p.list(b, p.made[b].hash)
			b = following
		}
	}
}

// size is the number of blocks that can be used.
func (p *pool) size() int { return p.blocks - 1 }

// usage is the share of the blocks in use; cached blocks that no request refers
// to count as free (BlockPool.get_usage).
func (p *pool) usage() float64 {
	if p.size() == 0 {
		return 0
	}
	return 1 - float64(p.free)/float64(p.size())
}

// getNewBlock takes the block that is next to be evicted and forgets what it
// held (BlockPool.get_new_blocks, _maybe_evict_cached_block). The caller has
// made sure that there is one.
func (p *pool) getNewBlock() int32 {
	b := p.made[null].next
	if int(b) == len(p.made)-1 && len(p.made) < p.blocks {
		p.makeNext(b)
	}
	p.unlink(b)
	p.evict(b)
	p.made[b].ref = 1
	return b
}

// touch refers to a cached block once more; one that was free leaves the
// queue (BlockPool.touch).
func (p *pool) touch(b int32) {
	p.touches++
	if p.made[b].ref == 0 {
		p.unlink(b)
	}
	p.made[b].ref++
}

// freeBlocks gives up a request's blocks from the last to the first, so that
// the tail of a prefix is evicted before its head. Blocks without content
// worth keeping go to the front of the queue, the others to its end
// (SingleTypeKVCacheManager.free, BlockPool.free_blocks).
func (p *pool) freeBlocks(blocks []int32) {
	// The front keeps the order of the list: the last block of the request
	// is the first of the queue.
	front := int32(null)
	for i := len(blocks) - 1; i >= 0; i-- {
		b := blocks[i]
		if p.made[b].ref--; p.made[b].ref > 0 {
			continue
		}
		if p.made[b].hash == 0 || !p.caching {
			p.link(b, front)
			front = b
		} else {
			p.link(b, p.made[null].prev)
		}
	}
}

// link puts a block behind another in the free queue.
func (p *pool) link(b, after int32) {
	p.insert(b, after)
	p.free++
}

func (p *pool) insert(b, after int32) {
	n := p.made[after].next
	p.made[after].next, p.made[b].prev = b, after
	p.made[b].next, p.made[n].prev = n, b
}

func (p *pool) unlink(b int32) {
	p.made[p.made[b].prev].next = p.made[b].next
	p.made[p.made[b].next].prev = p.made[b].prev
	p.free--
}

// chained is the place in the index where the chain of a content begins.
func (p *pool) chained(hash uint64) *int32 { return &p.head[hash&uint64(len(p.head)-1)] }

// cached gives the block with a content, null if there is none; of several
// the one that was cached first (BlockHashToBlockMap.get_one_block).
func (p *pool) cached(hash uint64) int32 {
	b := *p.chained(hash)
	for b != null && p.made[b].hash != hash {
		b = p.made[b].behind
	}
	return b
}

// cachedAfter does so where the content stands behind a cached block: mostly the block that was
// cached behind that one has it, and is the first that has.
func (p *pool) cachedAfter(b int32, hash uint64) int32 {
	if next := p.made[b].after; next != null && p.made[next].hash == hash && !p.made[next].again && p.made[next].behind != private {
		return next
	}
	return p.cached(hash)
}

// cache makes a full block findable that stands behind another, null for none
// (BlockPool.cache_full_blocks).
func (p *pool) cache(b, before int32, hash uint64) {
	if p.listed++; p.listed > len(p.head) {
		p.widen()
	}
	p.made[b].again = p.list(b, hash)
	if before != null {
		p.made[before].after = b
	}
}

// keep makes a full block one that whoever knows its number finds.
func (p *pool) keep(b int32, hash uint64) {
	p.made[b].hash, p.made[b].behind = hash, private
}

// list puts a block at the end of its chain, and says whether another of its content is there.
func (p *pool) list(b int32, hash uint64) (again bool) {
	at := p.chained(hash)
	for *at != null {
		again = again || p.made[*at].hash == hash
		at = &p.made[*at].behind
	}
	*at = b
	p.made[b].hash, p.made[b].behind = hash, null
	return again
}

// evict makes a block unfindable.
func (p *pool) evict(b int32) {
	switch {
	case p.made[b].hash == 0:
		return
	case p.made[b].behind == private:
		p.made[b].hash, p.made[b].behind = 0, null
		return
	}
	p.listed--
	at := p.chained(p.made[b].hash)
	for *at != b {
		at = &p.made[*at].behind
	}
	*at = p.made[b].behind
	p.made[b].hash = 0
}
