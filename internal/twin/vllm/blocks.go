package vllm

import "pitot/internal/twin"

// null is the block that stands for none; vLLM takes it out of the pool when
// it starts (BlockPool.null_block).
const null = 0

// pool is the KV cache: blocks of equal size, those that nobody uses in a
// queue in the order in which they will be evicted, and an index from the
// content of full blocks to blocks. It follows BlockPool and
// FreeKVCacheBlockQueue of vllm/v1/core/block_pool.py and kv_cache_utils.py.
type pool struct {
	caching bool
	ref     []int32
	hash    []uint64 // content of a full block and of all before it, 0 if not cached
	same    []int32  // next block with the same content, null at the end
	first   map[uint64]int32

	// The free queue is a ring through the null block: next[null] is evicted
	// first, prev[null] last.
	next, prev []int32
	free       int
}

func newPool(blocks int, caching bool) *pool {
	p := &pool{
		caching: caching,
		ref:     make([]int32, blocks),
		hash:    make([]uint64, blocks),
		same:    make([]int32, blocks),
		first:   make(map[uint64]int32),
		next:    make([]int32, blocks),
		prev:    make([]int32, blocks),
		free:    blocks - 1,
	}
	for i := range blocks {
		p.next[i] = int32((i + 1) % blocks)
		p.prev[i] = int32((i + blocks - 1) % blocks)
	}
	return p
}

// size is the number of blocks that can be used.
func (p *pool) size() int { return len(p.ref) - 1 }

// usage is the share of the blocks in use; cached blocks that nobody refers
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
	b := p.next[null]
	p.unlink(b)
	p.evict(b)
	p.ref[b] = 1
	return b
}

// touch refers to a cached block once more; one that was free leaves the
// queue (BlockPool.touch).
func (p *pool) touch(b int32) {
	if p.ref[b] == 0 {
		p.unlink(b)
	}
	p.ref[b]++
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
		if p.ref[b]--; p.ref[b] > 0 {
			continue
		}
		if p.hash[b] == 0 || !p.caching {
			p.link(b, front)
			front = b
		} else {
			p.link(b, p.prev[null])
		}
	}
}

// link puts a block behind another in the free queue.
func (p *pool) link(b, after int32) {
	n := p.next[after]
	p.next[after], p.prev[b] = b, after
	p.next[b], p.prev[n] = n, b
	p.free++
}

func (p *pool) unlink(b int32) {
	p.next[p.prev[b]] = p.next[b]
	p.prev[p.next[b]] = p.prev[b]
	p.free--
}

// cached gives the block with a content, null if there is none; of several
// the one that was cached first (BlockHashToBlockMap.get_one_block).
func (p *pool) cached(hash uint64) int32 { return p.first[hash] }

// cache makes a full block findable (BlockPool.cache_full_blocks).
func (p *pool) cache(b int32, hash uint64) {
	p.hash[b], p.same[b] = hash, null
	head := p.first[hash]
	if head == null {
		p.first[hash] = b
		return
	}
	for p.same[head] != null {
		head = p.same[head]
	}
	p.same[head] = b
}

// evict makes a block unfindable.
func (p *pool) evict(b int32) {
	h := p.hash[b]
	if h == 0 {
		return
	}
	p.hash[b] = 0
	head := p.first[h]
	switch {
	case head == b && p.same[b] == null:
		delete(p.first, h)
	case head == b:
		p.first[h] = p.same[b]
	default:
		for p.same[head] != b {
			head = p.same[head]
		}
		p.same[head] = p.same[b]
	}
}

// chain is the content of a block and of all before it
// (kv_cache_utils.hash_block_tokens); it is never 0.
func chain(parent, content uint64) uint64 {
	return max(twin.Mix(twin.Mix(parent)^content), 1)
}
