package fleet

import (
	"math"

	"pitot/internal/twin"
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
	c Config
	f *Fleet
	// owners has the engines that were sent a stretch of tokens behind all before it, by
	// the hash of these.
	owners map[uint64][]int
	memory []memory
	hashes []uint64 // of the prompt at hand
}

// memory is what was sent to one engine: its stretches, the latest last. A stretch that
// was sent again stands at several places, of which the last counts.
type memory struct {
	sent  []uint64
	times map[uint64]int // how often a stretch stands there
	old   int            // of sent, forgotten
	other int64          // stretches of prompts that no other can share
}

const (
	stretch = 64 // tokens that the tree takes together
	// most is how many stretches are kept for one engine: 2²⁶ characters, at four a token.
	most = 1 << 26 / 4 / stretch
)

func newCacheAware(f *Fleet, c Config) *cacheAware {
	r := &cacheAware{c: c, f: f, owners: make(map[uint64][]int), memory: make([]memory, len(f.of))}
	for i := range r.memory {
		r.memory[i].times = make(map[uint64]int)
	}
	return r
}

func (r *cacheAware) route(_ int64, j *twin.Job) int {
	r.hash(j)
	i := r.choose(j)
	r.remember(i, j)
	return i
}

// hash takes a prompt apart: each stretch with all before it.
func (r *cacheAware) hash(j *twin.Job) {
	r.hashes = r.hashes[:0]
	if j.Content == nil {
		return
	}
	h := uint64(0)
	for from := 0; from < j.Prompt; from += stretch {
		h = twin.Mix(h ^ j.Content.Tokens(from, min(from+stretch, j.Prompt)))
		r.hashes = append(r.hashes, h)
	}
}

func (r *cacheAware) choose(j *twin.Job) int {
	least, mostLoaded := math.MaxInt, 0
	for _, i := range r.f.open {
		least, mostLoaded = min(least, r.f.jobs(i)), max(mostLoaded, r.f.jobs(i))
	}
	if mostLoaded-least > r.c.BalanceAbsThreshold && float64(mostLoaded) > float64(least)*r.c.BalanceRelThreshold {
		return r.f.fewest(0, r.f.jobs)
	}
	found, owner := 0, -1
	for n, h := range r.hashes {
		of := r.taking(r.owners[h])
		if of < 0 {
			break
		}
		found, owner = n+1, of
	}
	if float64(min(found*stretch, j.Prompt)) > r.c.CacheThreshold*float64(j.Prompt) {
		return owner
	}
	return r.f.fewest(0, func(i int) int { return r.memory[i].size() })
}

// taking is the engine of a list that takes jobs and came last, -1 if there is none.
func (r *cacheAware) taking(of []int) int {
	for k := len(of) - 1; k >= 0; k-- {
		if r.f.takes(of[k]) {
			return of[k]
		}
	}
	return -1
}

func (m *memory) size() int { return len(m.times) + int(m.other) }

// remember notes that a prompt was sent to an engine.
func (r *cacheAware) remember(i int, j *twin.Job) {
	m := &r.memory[i]
	if j.Content == nil {
		m.other = min(m.other+int64((j.Prompt+stretch-1)/stretch), most)
		return
	}
	for _, h := range r.hashes {
		m.sent = append(m.sent, h)
		m.times[h]++
		r.owners[h] = append(without(r.owners[h], i), i)
	}
	for len(m.times) > most || len(m.sent)-m.old > 4*most {
		r.forget(i)
	}
	if m.old > len(m.sent)/2 && m.old > 1<<12 {
		m.sent = append([]uint64(nil), m.sent[m.old:]...)
		m.old = 0
	}
}

// forget takes away what is oldest at an engine.
func (r *cacheAware) forget(i int) {
	m := &r.memory[i]
	h := m.sent[m.old]
	m.old++
	if m.times[h]--; m.times[h] > 0 {
		return
	}
	delete(m.times, h)
	if left := without(r.owners[h], i); len(left) > 0 {
		r.owners[h] = left
	} else {
		delete(r.owners, h)
	}
}

// gone forgets all that was sent to an engine.
func (r *cacheAware) gone(i int) {
	m := &r.memory[i]
	for m.old < len(m.sent) {
		r.forget(i)
	}
	*m = memory{times: m.times}
}

// without is a list in its order without one of its numbers.
func without(list []int, i int) []int {
	for k, x := range list {
		if x == i {
			return append(list[:k], list[k+1:]...)
		}
	}
	return list
}
