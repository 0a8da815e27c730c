package fleet

import (
	"math"
	"slices"

	"pitot/internal/sim"
)

// cacheAware is SGLang's router (sgl-router, policies/cache_aware.rs): it remembers
// which prompts it sent where, as a tree of their beginnings, and takes that for what is
// in the caches. A prompt of which more than a share is found goes where that was sent
// last, any other to the engine of which it remembers least. When loads are uneven all go
// to the engine with the fewest requests.
//
// The original's tree has the characters of the text; this one has stretches of tokens.
// What an engine is remembered for is cut down when a new stretch would exceed the limit,
// the oldest first; the original does so every two minutes.
type cacheAware struct {
	idle
	c      Config
	f      *Fleet
	tree   []node // by their numbers; 0 stands for none, and for what all prompts begin with
	spare  []int32
	index  map[uint64]int32
	memory []memory
	most   int      // stretches that are kept for one engine
	hashes []uint64 // of the prompt at hand
}

// node is a stretch of tokens behind all before it, by the hash of these.
type node struct {
	hash  uint64
	after int32   // what was sent behind it last: mostly what is sent behind it next
	sent  []owner // who was sent it, the latest last
}

// owner is an engine that was sent a stretch, and how often it is remembered for that.
type owner struct{ engine, times int32 }

// memory records the stretches sent to one engine, the latest last. A stretch that was sent again
// has several places, and the last counts.
type memory struct {
	sent     []int32
	old      int   // of sent, forgotten
	distinct int   // stretches
	other    int64 // stretches of prompts that no other can share
}

const (
	stretch = 64 // tokens that the tree takes together
	// most is the maximum number of stretches kept for one engine: 2²⁶ characters, at four a token.
	most = 1 << 26 / 4 / stretch
)

func newCacheAware(f *Fleet, c Config) *cacheAware {
	return &cacheAware{c: c, f: f, tree: make([]node, 1), index: make(map[uint64]int32), memory: make([]memory, len(f.of)), most: most}
}

func (r *cacheAware) route(_ int64, j *sim.Job) int {
	r.hashPrompt(j)
	i := r.choose(j)
	r.remember(i, j)
	return i
}

// hashPrompt takes a prompt apart: each stretch with all before it.
func (r *cacheAware) hashPrompt(j *sim.Job) {
	r.hashes = r.hashes[:0]
	if j.Content == nil {
		return
	}
	h := uint64(0)
	if c, ok := j.Content.(sim.Chained); ok {
		if r.hashes = append(r.hashes, c.Chain(stretch, j.Prompt/stretch)...); len(r.hashes) > 0 {
			h = r.hashes[len(r.hashes)-1]
		}
	}
	for from := len(r.hashes) * stretch; from < j.Prompt; from += stretch {
		h = sim.ChainHash(h, j.Content.Tokens(from, min(from+stretch, j.Prompt)))
		r.hashes = append(r.hashes, h)
	}
}

// find is the stretch with a hash behind another, 0 if none is remembered.
func (r *cacheAware) find(before int32, hash uint64) int32 {
	if n := r.tree[before].after; n != 0 && r.tree[n].hash == hash {
		return n
	}
	return r.index[hash]
}

func (r *cacheAware) choose(j *sim.Job) int {
	least, mostLoaded := math.MaxInt, 0
	for _, i := range r.f.open {
		least, mostLoaded = min(least, r.f.jobCount(i)), max(mostLoaded, r.f.jobCount(i))
	}
	if mostLoaded-least > r.c.BalanceAbsThreshold && float64(mostLoaded) > float64(least)*r.c.BalanceRelThreshold {
		return r.f.leastLoaded(0, r.f.jobCount)
	}
	found, owner, at := 0, -1, int32(0)
	for n, h := range r.hashes {
		if at = r.find(at, h); at == 0 {
			break
		}
		of := r.latestOwner(r.tree[at].sent)
		if of < 0 {
			break
		}
		found, owner = n+1, of
	}
	if float64(min(found*stretch, j.Prompt)) > r.c.CacheThreshold*float64(j.Prompt) {
		return owner
	}
	return r.f.leastLoaded(0, func(i int) int { return r.memory[i].size() })
}

// latestOwner is the latest of a list that takes jobs, -1 if there is none.
func (r *cacheAware) latestOwner(of []owner) int {
	for k := len(of) - 1; k >= 0; k-- {
		if i := int(of[k].engine); r.f.takesJobs(i) {
			return i
		}
	}
	return -1
}

func (m *memory) size() int { return m.distinct + int(m.other) }

// remember notes that a prompt was sent to an engine.
func (r *cacheAware) remember(i int, j *sim.Job) {
	m := &r.memory[i]
	if j.Content == nil {
		m.other = min(m.other+int64((j.Prompt+stretch-1)/stretch), int64(r.most))
		return
	}
	m.sent = slices.Grow(m.sent, len(r.hashes))
	before := int32(0)
	for _, h := range r.hashes {
		n := r.find(before, h)
		if n == 0 {
			n = r.newStretch(h)
		}
		r.tree[before].after = n
		m.sent = append(m.sent, n)
		r.tree[n].noteEngine(m, i)
		before = n
	}
	for m.distinct > r.most || len(m.sent)-m.old > 4*r.most {
		r.forget(i)
	}
	if m.old > len(m.sent)/2 && m.old > 1<<12 {
		m.sent = append([]int32(nil), m.sent[m.old:]...)
		m.old = 0
	}
}

// newStretch makes a stretch that nobody is remembered for yet.
func (r *cacheAware) newStretch(hash uint64) (n int32) {
	if k := len(r.spare); k > 0 {
		n, r.spare = r.spare[k-1], r.spare[:k-1]
	} else {
		n = int32(len(r.tree))
		r.tree = append(r.tree, node{})
	}
	r.tree[n].hash = hash
	r.index[hash] = n
	return n
}

// noteEngine makes an engine the latest that was sent a stretch.
func (n *node) noteEngine(m *memory, i int) {
	o, last := owner{engine: int32(i)}, len(n.sent)-1
	switch k := n.ownerIndex(i); {
	case k < 0:
		m.distinct++
		n.sent = append(n.sent, o)
		last++
	case k < last:
		o = n.sent[k]
		copy(n.sent[k:], n.sent[k+1:])
		n.sent[last] = o
	}
	n.sent[last].times++
}

// ownerIndex is the place of an engine among those that were sent a stretch, -1 if it was not.
func (n *node) ownerIndex(i int) int {
	for k := len(n.sent) - 1; k >= 0; k-- {
		if int(n.sent[k].engine) == i {
			return k
		}
	}
	return -1
}

// forget takes away what is oldest at an engine.
func (r *cacheAware) forget(i int) {
	m := &r.memory[i]
	at := m.sent[m.old]
	m.old++
	n := &r.tree[at]
	k := n.ownerIndex(i)
	if n.sent[k].times--; n.sent[k].times > 0 {
		return
	}
	m.distinct--
	if n.sent = slices.Delete(n.sent, k, k+1); len(n.sent) == 0 {
		delete(r.index, n.hash)
		n.hash, n.after = 0, 0
		r.spare = append(r.spare, at)
	}
}

// gone forgets all that was sent to an engine.
func (r *cacheAware) gone(i int) {
	m := &r.memory[i]
	for m.old < len(m.sent) {
		r.forget(i)
	}
	*m = memory{}
}
