package loadgen

import (
	"slices"

	"pitot/internal/sim"
)

// chained is a content of a session, with what was worked out of it: what is asked next begins
// with it, and need not be gone through from the beginning.
type chained struct {
	*content
	chains []chain
}

// chain holds the key that an engine or a router uses: hashes of the first blocks of a fixed number
// of tokens.
type chain struct {
	block  int
	hashes []uint64
}

// Chain implements [sim.Chained].
func (c *chained) Chain(block, n int) []uint64 {
	i := slices.IndexFunc(c.chains, func(of chain) bool { return of.block == block })
	if i < 0 {
		i = len(c.chains)
		c.chains = append(c.chains, chain{block: block})
	}
	of := &c.chains[i]
	of.hashes = slices.Grow(of.hashes, max(n-len(of.hashes), 0))
	for k := len(of.hashes); k < n; k++ {
		before := uint64(0)
		if k > 0 {
			before = of.hashes[k-1]
		}
		of.hashes = append(of.hashes, sim.ChainHash(before, c.Tokens(k*block, (k+1)*block)))
	}
	return of.hashes[:n]
}

// reuseHashes gives a content what was worked out of another one of its session, as far as both are
// the same, the answer included.
func (c *content) reuseHashes(before *chained) *chained {
	now := &chained{content: c}
	if before == nil {
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
	for i := range before.chains {
		of := &before.chains[i]
		kept := of.hashes[:min(tokens/of.block, len(of.hashes))]
		if len(kept) < len(of.hashes) {
			kept = slices.Clip(kept)
		}
		of.hashes = slices.Clip(of.hashes) // what is added to either is not the other's
		now.chains = append(now.chains, chain{of.block, kept})
	}
	return now
}
