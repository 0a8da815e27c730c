package hits

import (
	"testing"

	"pgregory.net/rapid"

	_ "pitot/internal/rapidtest" // the same draws each time
	"pitot/internal/sim"
)

// text is a prompt that begins as others of its group do.
type text struct{ group, common, id int }

func (t text) Tokens(from, to int) uint64 {
	key := uint64(t.id)<<32 | 1
	if to <= t.common {
		key = uint64(t.group) << 32
	}
	return sim.Mix(key + uint64(from))
}

// One request finds what the one before left; one that is sent while the first prompt is
// computed finds it only where prompts can be found at once.
func TestEarlyAndLate(t *testing.T) {
	ask := func(id int, sent, first, done int64) Request {
		return Request{Sent: sent, First: first, Done: done, Prompt: 200, Answer: 20, Served: -1, Content: func() sim.Content { return text{1, 160, id} }}
	}
	list := []Request{ask(0, 0, 10, 100), ask(1, 5, 12, 100), ask(2, 50, 60, 150), ask(3, 500, 510, 600)}
	found, all := New(Cache{BlockSize: 16, Blocks: 100}).SimulateRequests(list, 1)
	if p := found[0]; !all || p.Requests != 4 || p.Prompt != 800 || p.Expected != 3*160 || p.Late != 2*160 || p.Endless != 3*160 {
		t.Errorf("%+v", p)
	}
	s := New(Cache{BlockSize: 16, Blocks: 100})
	s.Ask(200, text{1, 160, 9})
	if found, _ := s.SimulateRequests(list, 1); found[0].Expected != 4*160 || found[0].Late != 4*160 {
		t.Errorf("asked for before: %+v", found[0])
	}
	if found, _ := New(Cache{Blocks: 100}).SimulateRequests(nil, 1); found[0].Requests != 0 {
		t.Errorf("of nothing: %+v", found[0])
	}
}

// Whatever comes: no more is found late than at once, none of it is more than the prompt, and
// what a part has adds up.
func TestShareOfAnyLoad(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var list []Request
		at, prompts := int64(0), int64(0)
		for id := range rapid.IntRange(1, 40).Draw(t, "requests") {
			at += rapid.Int64Range(0, 50).Draw(t, "gap")
			first := at + rapid.Int64Range(0, 80).Draw(t, "first")
			common := rapid.IntRange(0, 300).Draw(t, "common")
			r := Request{Sent: at, First: first, Done: first + rapid.Int64Range(0, 300).Draw(t, "done"), Prompt: common + rapid.IntRange(1, 50).Draw(t, "own"), Answer: rapid.IntRange(0, 90).Draw(t, "answer"), Served: -1,
				Part: id % 3, Content: func() sim.Content { return text{common % 2, common, id} }}
			prompts += int64(r.Prompt)
			list = append(list, r)
		}
		found, all := New(Cache{BlockSize: 16, Blocks: rapid.IntRange(2, 60).Draw(t, "blocks")}).SimulateRequests(list, 3)
		sum := int64(0)
		for _, p := range found {
			sum += p.Prompt
			if p.Late > p.Expected || p.Expected > p.Prompt || p.Endless > p.Prompt || p.Expected < 0 || p.Late < 0 {
				t.Fatalf("%+v", p)
			}
		}
		if !all || sum != prompts {
			t.Fatalf("%d tokens of %d, all %v", sum, prompts, all)
		}
	})
}
