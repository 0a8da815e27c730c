package vllm

import (
	"math/bits"

	"pitot/internal/twin"
)

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

	// The index is a hash table of chains: head has the first block of each,
	// behind the others, null at the end, in the order they were cached.
	// Contents are mixed well already, so their low bits choose the chain.
	head   []int32
	behind []int32

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
		head:    make([]int32, 1<<bits.Len(uint(blocks))),
		behind:  make([]int32, blocks),
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

// chained is the place in the index where the chain of a content begins.
func (p *pool) chained(hash uint64) *int32 { return &p.head[hash&uint64(len(p.head)-1)] }

// cached gives the block with a content, null if there is none; of several
// the one that was cached first (BlockHashToBlockMap.get_one_block).
func (p *pool) cached(hash uint64) int32 {
	b := *p.chained(hash)
	for b != null && p.hash[b] != hash {
		b = p.behind[b]
	}
	return b
}

// cache makes a full block findable (BlockPool.cache_full_blocks).
func (p *pool) cache(b int32, hash uint64) {
	at := p.chained(hash)
	for *at != null {
		at = &p.behind[*at]
	}
	*at = b
	p.hash[b], p.behind[b] = hash, null
}

// evict makes a block unfindable.
func (p *pool) evict(b int32) {
	if p.hash[b] == 0 {
		return
	}
	at := p.chained(p.hash[b])
	for *at != b {
		at = &p.behind[*at]
	}
	*at = p.behind[b]
	p.hash[b] = 0
}

// chain is the content of a block and of all before it
// (kv_cache_utils.hash_block_tokens); it is never 0.
func chain(parent, content uint64) uint64 {
	return max(twin.Mix(twin.Mix(parent)^content), 1)
}
