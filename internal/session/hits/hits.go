// Package hits says what a server's prefix cache is expected to have of the prompts of a
// load: the requests are put to the engine's own cache, at the times at which they were
// sent and answered. It has no clock, no file and no socket.
package hits

import (
	"cmp"
	"container/heap"
	"math"
	"slices"

	"pitot/internal/results/marks"
	"pitot/internal/sim"
	"pitot/internal/sim/vllm"
)

// Cache holds what is known of a server's cache.
type Cache struct {
	BlockSize int // tokens; 0 where it is not known
	Blocks    int // 0 where it is not known: a cache that forgets nothing
}

// UsualBlock is the size of blocks where it is not known, vLLM's on GPUs.
const UsualBlock = 16

// unlimited stands for a cache that forgets nothing, and bounds what is kept of it: 32
// million tokens in blocks of 16.
const unlimited = 2 << 20

// most is the largest number of blocks of prompts that are simulated: a few seconds of a processor.
const most = 16 << 20

// Request is one that was sent. Times are nanoseconds on one clock, in the order sent,
// first token, done.
type Request struct {
	Sent, First, Done int64
	Prompt, Answer    int                // tokens
	Choices           int                // answers of so many tokens, each of which asks for the prompt; 0 and 1 are one
	Part              int                // that it counts for, from 0; negative for none
	Served            int                // of its prompt, from the cache, as the server said; negative where it did not, or not of which choice
	Content           func() sim.Content // what it consists of
}

// Simulation is a cache with what it holds.
type Simulation struct {
	of      Cache
	cache   *vllm.Cache
	endless *vllm.Cache
}

// New gives an empty cache.
func New(c Cache) *Simulation {
	if c.BlockSize < 1 {
		c.BlockSize = UsualBlock
	}
	blocks := c.Blocks
	if blocks < 2 || blocks > unlimited {
		blocks = unlimited
	}
	return &Simulation{of: c, cache: vllm.NewCache(blocks, c.BlockSize), endless: vllm.NewCache(unlimited, c.BlockSize)}
}

// Ask puts one request to the cache by itself, before others come.
func (s *Simulation) Ask(prompt int, content sim.Content) {
	for _, c := range []*vllm.Cache{s.cache, s.endless} {
		h, _ := c.Begin(sim.Job{Prompt: max(prompt, 1), Content: content})
		c.FreeBlocks(h)
	}
}

// SimulateRequests puts requests to the cache at their times, and says what those of each of so
// many parts find. all says that every one was looked at, and not only the first.
func (s *Simulation) SimulateRequests(list []Request, parts int) (found []marks.CachePart, all bool) {
	order := make([]int32, len(list)) // in which their prompts are computed
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortStableFunc(order, func(a, b int32) int {
		x, y := &list[a], &list[b]
		return cmp.Or(cmp.Compare(x.First, y.First), cmp.Compare(x.Sent, y.Sent))
	})
	sent := slices.Clone(order)
	slices.SortStableFunc(sent, func(a, b int32) int { return cmp.Compare(list[a].Sent, list[b].Sent) })

	found, all = make([]marks.CachePart, parts), true
	run := running{cache: s.cache, block: s.of.BlockSize}
	late := make([]int32, len(list))
	job := func(r *Request, c sim.Content) sim.Job { return sim.Job{Prompt: max(r.Prompt, 1), Content: c} }
	next, work := 0, 0
	for _, i := range order {
		r := &list[i]
		if work += r.Prompt/s.of.BlockSize + 1; work > most {
			all = false
			break
		}
		for ; next < len(sent) && list[sent[next]].Sent <= r.First; next++ {
			x := &list[sent[next]]
			run.runUntil(x.Sent)
			late[sent[next]] = int32(s.cache.CachedTokens(job(x, x.Content())))
		}
		run.runUntil(r.First)
		content := r.Content()
		h, cached := s.cache.Begin(job(r, content))
		run.addRequest(h, r)
		e, ever := s.endless.Begin(job(r, content))
		s.endless.Grow(e, r.Answer-1)
		s.endless.FreeBlocks(e)
		others := 0 // what the other choices find: the prompt that the first computes
		for range r.Choices - 1 {
			h, others = s.cache.Begin(job(r, content))
			run.addRequest(h, r)
		}
		if r.Part < 0 {
			continue
		}
		p := &found[r.Part]
		p.Requests++
		n := int64(max(r.Choices, 1))
		again := (n - 1) * int64(others)
		p.Prompt += n * int64(r.Prompt)
		p.Expected += int64(cached) + again
		p.Late += int64(min(int(late[i]), cached)) + again
		p.Endless += int64(ever) + again
		if r.Served >= 0 {
			p.Told++
			p.Served += int64(r.Served)
		}
	}
	run.runUntil(math.MaxInt64)
	return found, all
}

// running are the requests that hold blocks, by when something happens to them next: the
// answer fills another block, or ends.
type running struct {
	cache *vllm.Cache
	block int
	list  []held
}

type held struct {
	at int64
	h  *vllm.Held
	of *Request
	n  int // blocks of the answer so far
}

// addRequest takes in a request that begins.
func (r *running) addRequest(h *vllm.Held, of *Request) {
	x := held{h: h, of: of}
	x.at = r.nextBlockTime(&x)
	heap.Push(r, x)
}

// nextBlockTime is when the answer has filled its next block, at an even pace from the first token
// to the end.
func (r *running) nextBlockTime(x *held) int64 {
	at := x.of.Done
	if tokens := (x.n + 1) * r.block; tokens < x.of.Answer && x.of.Done > x.of.First {
		at = x.of.First + int64(float64(x.of.Done-x.of.First)*float64(tokens)/float64(x.of.Answer))
	}
	return at
}

// runUntil lets happen what happens before a time.
func (r *running) runUntil(at int64) {
	for len(r.list) > 0 && r.list[0].at < at {
		x := &r.list[0]
		if tokens := (x.n + 1) * r.block; tokens < x.of.Answer && x.at < x.of.Done {
			x.n++
			r.cache.Grow(x.h, tokens)
			x.at = max(r.nextBlockTime(x), x.at)
			heap.Fix(r, 0)
			continue
		}
		r.cache.Grow(x.h, x.of.Answer-1) // nothing follows the last, so it is never computed on
		r.cache.FreeBlocks(x.h)
		heap.Pop(r)
	}
}

func (r *running) Len() int           { return len(r.list) }
func (r *running) Less(i, k int) bool { return r.list[i].at < r.list[k].at }
func (r *running) Swap(i, k int)      { r.list[i], r.list[k] = r.list[k], r.list[i] }
func (r *running) Push(x any)         { r.list = append(r.list, x.(held)) }
func (r *running) Pop() any {
	n := len(r.list) - 1
	x := r.list[n]
	r.list[n] = held{}
	r.list = r.list[:n]
	return x
}
