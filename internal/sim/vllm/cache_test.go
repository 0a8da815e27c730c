package vllm

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"pitot/internal/sim"
)

// alike is a prompt whose first tokens are those of a group.
type alike struct{ group, common, id int }

func (a alike) Tokens(from, to int) uint64 {
	key := uint64(a.id)<<32 | 1
	if to <= a.common {
		key = uint64(a.group) << 32
	}
	return sim.Mix(key + uint64(from))
}

// Requests that come one after the other find in the cache what they find in the engine.
func TestCacheIsTheEngines(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := Default()
		s.BlockSize, s.NumGPUBlocks, s.MaxModelLen = 16, rapid.IntRange(20, 80).Draw(t, "blocks"), 256
		e, c := New(s, Flat{PerStep: 1000}), NewCache(s.NumGPUBlocks, s.BlockSize)
		now := int64(0)
		for id := range rapid.IntRange(1, 60).Draw(t, "requests") {
			common := rapid.IntRange(0, 150).Draw(t, "common")
			j := sim.Job{ID: int64(id), Prompt: common + rapid.IntRange(1, 60).Draw(t, "own"), Output: rapid.IntRange(1, 40).Draw(t, "answer"),
				Content: alike{rapid.IntRange(0, 3).Draw(t, "group"), common, id}}
			e.Add(now, j)
			want := -1
			for want < 0 {
				step := e.Step(now)
				for _, o := range step.Out {
					if o.Trace != nil {
						want = o.Trace.Cached
					}
				}
				if step.End < math.MaxInt64 {
					now = max(now, step.End)
				}
			}
			for range 4 { // what is planned ahead ends
				if step := e.Step(now); step.End < math.MaxInt64 {
					now = max(now, step.End)
				}
			}
			if found := c.CachedTokens(j); found != want {
				t.Fatalf("request %d finds %d tokens, %d in the engine", id, found, want)
			}
			h, got := c.Begin(j)
			for n := range j.Output {
				c.Grow(h, n)
			}
			c.FreeBlocks(h)
			if got != want {
				t.Fatalf("request %d finds %d tokens, %d in the engine", id, got, want)
			}
		}
	})
}

// A cache that is too small gives what it has, and loses none of it.
func TestCacheOverfull(t *testing.T) {
	c := NewCache(5, 16)
	var all []*Held
	for id := range 4 {
		h, _ := c.Begin(sim.Job{ID: int64(id), Prompt: 40, Content: alike{0, 20, id}})
		c.Grow(h, 100)
		all = append(all, h)
	}
	for _, h := range all {
		c.FreeBlocks(h)
	}
	if free := c.e.pool.free; free != 4 {
		t.Errorf("%d blocks are free, want 4", free)
	}
}
