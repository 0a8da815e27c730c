package load

import (
	"slices"

	"pitot/internal/twin"
)

// chained is a content of a session, with what was worked out of it: what is asked next begins
// with it, and need not be gone through from the beginning.
type chained struct {
	*content
	block int      // tokens of a block, 0 where nobody asked yet
	chain []uint64 // of its first blocks
}

// Chain implements [twin.Chained].
func (c *chained) Chain(block, n int) []uint64 {
	if c.block != block {
		c.block, c.chain = block, nil
	}
	c.chain = slices.Grow(c.chain, max(n-len(c.chain), 0))
	for k := len(c.chain); k < n; k++ {
		before := uint64(0)
		if k > 0 {
			before = c.chain[k-1]
		}
		c.chain = append(c.chain, twin.Chain(before, c.Tokens(k*block, (k+1)*block)))
	}
	return c.chain[:n]
}

// after gives a content what was worked out of another one of its session, as far as both are
// the same, the answer included.
func (c *content) after(before *chained) *chained {
	now := &chained{content: c}
	if before == nil || before.block == 0 {
		return now
	}
	same := 0
	for same < min(len(c.parts), len(before.parts)) && c.parts[same] == before.parts[same] {
		same++
	}
	tokens := 0
	switch {
	case same == len(before.parts) && same < len(c.parts) && c.parts[same].key == before.answer:
		tokens = c.parts[same].end
	case same > 0:
		tokens = c.parts[same-1].end
	}
	now.block, now.chain = before.block, before.chain[:min(tokens/before.block, len(before.chain))]
	if len(now.chain) < len(before.chain) {
		now.chain = slices.Clip(now.chain)
	}
	before.chain = slices.Clip(before.chain) // what is added to either is not the other's
	return now
}
