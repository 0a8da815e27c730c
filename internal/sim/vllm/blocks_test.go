package vllm

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	_ "pitot/internal/rapidtest" // the same draws each time
	"pitot/internal/sim"
)

// blockwise is vLLM's pool as it is written there: every block by itself.
type blockwise struct {
	queue []*single            // free ones, the first is evicted first
	index map[uint64][]*single // by content, in the order they were cached
}

type single struct {
	hash uint64 // 0 if not cached
	ref  int
}

func newBlockwise(blocks int) *blockwise {
	p := &blockwise{index: map[uint64][]*single{}}
	for range blocks {
		p.queue = append(p.queue, &single{})
	}
	return p
}

func (p *blockwise) take(n int) (list []*single) {
	list, p.queue = slices.Clone(p.queue[:n]), p.queue[n:]
	for _, b := range list {
		p.index[b.hash] = slices.DeleteFunc(p.index[b.hash], func(o *single) bool { return o == b })
		b.hash, b.ref = 0, 1
	}
	return list
}

func (p *blockwise) find(hashes []uint64) (list []*single) {
	for _, h := range hashes {
		if len(p.index[h]) == 0 {
			break
		}
		list = append(list, p.index[h][0])
	}
	return list
}

func (p *blockwise) touch(b *single) {
	if b.ref == 0 {
		p.queue = slices.DeleteFunc(p.queue, func(o *single) bool { return o == b })
	}
	b.ref++
}

func (p *blockwise) cache(b *single, hash uint64) {
	b.hash = hash
	p.index[hash] = append(p.index[hash], b)
}

func (p *blockwise) release(list []*single) {
	var front []*single
	for _, b := range slices.Backward(list) {
		if b.ref--; b.ref > 0 {
			continue
		}
		if b.hash == 0 {
			front = append(front, b)
		} else {
			p.queue = append(p.queue, b)
		}
	}
	p.queue = append(front, p.queue...)
}

// A pool of runs is one of blocks: it finds, evicts and counts the same.
func TestRunsAreBlocks(t *testing.T) {
	type holder struct {
		hashes []uint64
		parts  []part
		blocks []*single
		listed int
	}
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.IntRange(3, 40).Draw(t, "blocks")
		p, want := newPool(size+1, true), newBlockwise(size)
		var holders []*holder
		prompt := func(begun []uint64, least int) (hashes []uint64) {
			hashes = slices.Clip(begun)
			for _, token := range rapid.SliceOfN(rapid.Uint64Range(1, 2), least, 7).Draw(t, "content") {
				before := uint64(0)
				if len(hashes) > 0 {
					before = hashes[len(hashes)-1]
				}
				hashes = append(hashes, sim.ChainHash(before, token))
			}
			return hashes
		}
		grow := func(h *holder, n int) {
			p.takeBlocks(n)
			h.blocks = append(h.blocks, want.take(n)...)
		}
		list := func(h *holder) {
			to := rapid.IntRange(h.listed, min(len(h.hashes), len(h.blocks))).Draw(t, "full")
			h.parts = p.cacheBlocks(h.parts, h.hashes[:to], h.listed)
			for ; h.listed < to; h.listed++ {
				want.cache(h.blocks[h.listed], h.hashes[h.listed])
			}
		}
		for range rapid.IntRange(1, 60).Draw(t, "operations") {
			var h *holder
			if len(holders) > 0 {
				h = rapid.SampledFrom(holders).Draw(t, "which")
			}
			switch rapid.IntRange(0, 3).Draw(t, "operation") {
			case 0: // a request comes; not all of it that is cached has to be taken
				h = &holder{hashes: prompt(nil, 1)}
				most := rapid.IntRange(0, len(h.hashes)).Draw(t, "most")
				hits, blocks := p.find(h.hashes[:most], nil), want.find(h.hashes[:most])
				idle := 0
				for _, b := range blocks {
					if b.ref == 0 {
						idle++
					}
				}
				if countBlocks(hits) != len(blocks) || p.idleBlocks(hits) != idle {
					t.Fatalf("%d blocks are found, %d of them idle: want %d and %d", countBlocks(hits), p.idleBlocks(hits), len(blocks), idle)
				}
				if len(h.hashes)-len(blocks) > len(want.queue)-idle {
					continue
				}
				for _, x := range hits {
					h.parts = append(h.parts, p.holdPart(x))
				}
				for _, b := range blocks {
					want.touch(b)
				}
				h.blocks, h.listed = blocks, len(blocks)
				grow(h, len(h.hashes)-len(blocks))
				list(h)
				holders = append(holders, h)
			case 1: // one goes on with its prompt
				if h != nil {
					list(h)
				}
			case 2: // or with its answer
				if n := rapid.IntRange(1, 3).Draw(t, "more"); h != nil && n <= len(want.queue) {
					grow(h, n)
					h.hashes = prompt(h.hashes, 0)
					list(h)
				}
			case 3: // one ends
				if h != nil {
					p.release(h.parts, len(h.blocks)-h.listed)
					want.release(h.blocks)
					holders = slices.DeleteFunc(holders, func(o *holder) bool { return o == h })
				}
			}
			if p.free != len(want.queue) {
				t.Fatalf("%d blocks are free, want %d", p.free, len(want.queue))
			}
			queue := make([]uint64, p.empty)
			for i := p.runs[none].next; i != none; i = p.runs[i].next {
				for _, hash := range slices.Backward(p.runs[i].hashes) {
					queue = append(queue, hash)
				}
			}
			if !slices.EqualFunc(queue, want.queue, func(hash uint64, b *single) bool { return hash == b.hash }) {
				t.Fatalf("the queue is %x, want that of %d blocks", queue, len(want.queue))
			}
		}
	})
}
