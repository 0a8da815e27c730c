package loadgen

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	_ "pitot/internal/rapidtest" // the same draws each time
	"pitot/internal/sim"
	"pitot/internal/workload"
)

// What a content keeps of its chain, and takes over from what was asked before, is what is worked
// out of its tokens anew: whether or not it begins as that one, and repeats its answer.
func TestChainGoesOn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		block := rapid.IntRange(1, 9).Draw(t, "block")
		words := func(name string) int { return rapid.IntRange(1, 40).Draw(t, name) }
		r := workload.Request{Messages: []workload.Message{{Role: "user", Segments: []workload.Segment{{Seed: 1, Words: words("first")}}}}}
		var before *chained
		for turn := range rapid.IntRange(1, 6).Draw(t, "turns") {
			prompt := Size(&r)
			if rapid.IntRange(0, 9).Draw(t, "stretched") == 0 {
				prompt += rapid.IntRange(0, 7).Draw(t, "by")
			}
			r.ID = int64(turn)
			c := PromptContent(&r, prompt).(*content).reuseHashes(before)
			answer := words("answer")
			for _, block := range []int{block, 2*block + 1, block} { // of an engine and a router
				for _, n := range []int{prompt / block, (prompt + answer) / block} {
					var want []uint64
					for k := range n {
						last := uint64(0)
						if k > 0 {
							last = want[k-1]
						}
						want = append(want, sim.ChainHash(last, c.Tokens(k*block, (k+1)*block)))
					}
					if got := c.Chain(block, n); !slices.Equal(got, want) {
						t.Fatalf("turn %d: chain %x, want %x", turn, got, want)
					}
				}
			}
			next := workload.Segment{Served: true, Item: r.ID, Words: answer}
			switch rapid.IntRange(0, 5).Draw(t, "goes on") {
			case 0: // what was asked differs from here on
				r.Messages = r.Messages[:rapid.IntRange(1, len(r.Messages)).Draw(t, "as far as")]
			case 1: // and not with what was answered
				next = workload.Segment{Seed: 77, Words: answer}
			}
			r.Messages = append(slices.Clone(r.Messages), workload.Message{Role: "assistant", Segments: []workload.Segment{next}},
				workload.Message{Role: "user", Segments: []workload.Segment{{Seed: uint64(turn) + 5, Words: words("more")}}})
			before = c
		}
	})
}
