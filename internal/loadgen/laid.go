package loadgen

import (
	"math"

	"pitot/internal/sim"
	"pitot/internal/workload"
	"pitot/internal/workload/seed"
)

// LaidOutContent lays a request's segments out as a server that reads the text would: behind so
// many tokens of a template's head, which all requests have in common, with so many tokens for each
// word, or for each four bytes of text. Texts that begin alike are alike as far as they do, to 64
// bytes. What comes behind the segments is the request's own.
func LaidOutContent(r *workload.Request, head int, perWord float64) sim.Content {
	c := &content{answer: answerKey(r.ID)}
	end := 0.
	add := func(key uint64, units int) {
		end += float64(units) * perWord
		c.parts = append(c.parts, part{key, head + int(math.Round(end))})
	}
	if head > 0 {
		add(templateHead, 0)
	}
	for _, m := range r.Messages {
		role := hash(m.Role)
		for _, s := range m.Segments {
			if s.Served {
				add(answerKey(s.Item), s.Words)
				continue
			}
			if s.Words > 0 {
				add(seed.Mix(s.Seed^role), s.Words)
				continue
			}
			for from := 0; from < len(s.Text); from += piece {
				text := s.Text[from:min(from+piece, len(s.Text))]
				add(seed.Mix(hash(text)^role), max(len(text)/4, 1))
			}
		}
	}
	return c
}

// Size returns the total length of a request's segments, in words and in four bytes of text each.
func Size(r *workload.Request) (n int) {
	for _, m := range r.Messages {
		for _, s := range m.Segments {
			n += segmentSize(s)
		}
	}
	return n
}

const (
	// piece is in how many bytes texts are compared: about a block of 16 tokens.
	piece = 64
	// templateHead is the content key of a template's head.
	templateHead = 0x68656164
)
