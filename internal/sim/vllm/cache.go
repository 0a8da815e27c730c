package vllm

import "pitot/internal/sim"

// Cache is the engine's KV cache without the engine: its blocks, its prefix cache and the
// order in which it forgets. When requests begin and end is for the caller to say.
type Cache struct{ e *Engine }

// NewCache gives an empty cache of so many blocks, the null block included, of so many
// tokens each.
func NewCache(blocks, blockSize int) *Cache {
	s := Default()
	s.NumGPUBlocks, s.BlockSize = max(blocks, 2), max(blockSize, 1)
	return &Cache{New(s, nil)}
}

// Warm implements [sim.Warmable].
func (e *Engine) Warm(j sim.Job) {
	c := Cache{e}
	h, _ := c.Begin(j)
	c.FreeBlocks(h)
}

// Held is a request that has blocks.
type Held struct{ r *request }

// CachedTokens returns the number of cached tokens at the front of a job's prompt; nothing changes.
func (c *Cache) CachedTokens(j sim.Job) int {
	return countBlocks(c.e.findLongestCacheHit(&request{job: j})) * c.e.set.BlockSize
}

// Begin gives a job the blocks of its prompt, and says how many of its tokens were cached
// before. All of the prompt can be found from then on, as when its step is planned. Where
// blocks are short it has as many as there are: a server would have let it wait.
func (c *Cache) Begin(j sim.Job) (h *Held, cached int) {
	r := &request{job: j}
	hits := c.e.findLongestCacheHit(r)
	c.e.shareBlocks(r, hits)
	h = &Held{r}
	c.fillBlocks(h)
	return h, countBlocks(hits) * c.e.set.BlockSize
}

// fillBlocks gives a request the blocks of the tokens that it has, as far as there are any.
func (c *Cache) fillBlocks(h *Held) {
	r := h.r
	c.e.growBlocks(r, min(c.e.blocksFor(r.numTokens())-r.blocks, c.e.pool.free), 0)
	c.e.cacheBlocks(r, min(r.numTokens(), r.blocks*c.e.set.BlockSize))
}

// Grow says how many tokens of its answer a request has by now: they take blocks too.
func (c *Cache) Grow(h *Held, answer int) {
	if answer > h.r.output {
		h.r.output = answer
		c.fillBlocks(h)
	}
}

// FreeBlocks frees the blocks of a request. What they hold can be found until they are needed for
// something else.
func (c *Cache) FreeBlocks(h *Held) {
	c.e.freeBlocks(h.r)
}

// UsedBlocks returns the number of blocks that ever held something. A cache that has more blocks
// than that never forgot any.
func (c *Cache) UsedBlocks() int { return c.e.pool.usedBlocks() }
