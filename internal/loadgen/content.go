package loadgen

import (
	"hash/fnv"
	"slices"

	"pitot/internal/sim"
	"pitot/internal/workload"
	"pitot/internal/workload/seed"
)

// content is the content of a request, for the prefix cache of an engine without a socket. It has
// the prompt's segments, stretched to the number of tokens it counts, and an answer of its own.
type content struct {
	answer uint64 // key of what is answered
	parts  []part
}

// part is a stretch of the prompt that ends at a token.
type part struct {
	key uint64
	end int
}

// PromptContent lays a request's segments over so many prompt tokens.
func PromptContent(r *workload.Request, tokens int) sim.Content {
	c := &content{answer: answerKey(r.ID)}
	words := 0
	for _, m := range r.Messages {
		for _, s := range m.Segments {
			words += segmentSize(s)
		}
	}
	at := 0
	for _, m := range r.Messages {
		role := hash(m.Role)
		for _, s := range m.Segments {
			at += segmentSize(s)
			key := seed.Mix(s.Seed ^ role)
			switch {
			case s.Served:
				key = answerKey(s.Item)
			case s.Words == 0:
				key = seed.Mix(hash(s.Text) ^ role)
			}
			c.parts = append(c.parts, part{key, int(int64(tokens) * int64(at) / int64(max(words, 1)))})
		}
	}
	return c
}

// segmentSize is a segment's share of the prompt: its words, or a quarter of its
// bytes, which is about what a token of English takes.
func segmentSize(s workload.Segment) int {
	if s.Words > 0 {
		return s.Words
	}
	return max(len(s.Text)/4, 1)
}

// Tokens implements [sim.Content].
func (c *content) Tokens(from, to int) uint64 {
	h, begin := uint64(0), 0
	first, _ := slices.BinarySearchFunc(c.parts, from+1, func(p part, end int) int { return p.end - end })
	if first > 0 {
		begin = c.parts[first-1].end
	}
	for _, p := range c.parts[first:] {
		if from >= to {
			break
		}
		if from < p.end {
			n := min(to, p.end) - from
			h = seed.At(h, p.key, uint64(from-begin)<<32|uint64(n))
			from += n
		}
		begin = p.end
	}
	if from < to {
		h = seed.At(h, c.answer, uint64(from-begin)<<32|uint64(to-from))
	}
	return h
}

// answerKey returns the key of the answer tokens of an item. The key is the same where they are
// generated and where a later prompt repeats them.
func answerKey(item int64) uint64 { return seed.Mix(^uint64(item)) }

// hash is the FNV-1a hash of a text.
func hash(s string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(s))
	return h.Sum64()
}
