package workload

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// A share of shared tokens keeps every length, and what whole blocks of the prompts hold of
// the common text is that share: where the prompts are long enough for it.
func TestReuseReachesItsShare(t *testing.T) {
	const n = 2000
	for _, law := range []string{"1024", "lognormal(800,600)", "uniform(10,60)", "gamma(300,250)", "zipf(1.2,4000)", "normal(500,100)", "quantiles(0:1,50:200,100:4000)"} {
		for _, share := range []float64{.05, .2, .5, .8, .95} {
			for _, block := range []int{1, 16, 128} {
				for _, k := range []Calibration{{}, {Overhead: 25, PerWord: 1}, {Overhead: 40, PerWord: 1.37}} {
					c := RandomConfig{Input: lengths(t, law), Output: FixedLength(8), Seed: 3, Nonce: 4, Calibration: k}
					plain, err := NewRandom(c)
					if err != nil {
						t.Fatal(err)
					}
					c.Reuse = Reuse{share, block}
					r, err := NewRandom(c)
					if err != nil {
						t.Fatal(err)
					}
					perWord := max(k.PerWord, 1)
					if k == (Calibration{}) {
						perWord = 1
					}
					var all, cached, least, most float64
					for i := range int64(n) {
						a, _ := plain.At(i)
						b, _ := r.At(i)
						if a.Input != b.Input || a.Output != b.Output || a.Class != b.Class {
							t.Fatalf("%s: request %d is %+v, %+v with nothing shared", law, i, b, a)
						}
						s := b.Messages[0].Segments
						text := float64(k.HeadTokens())
						if len(s) == 2 {
							if s[0].Seed != r.prefix.Seed {
								t.Fatalf("%s: request %d shares another text", law, i)
							}
							text += float64(s[0].Words) * perWord
						}
						cached += math.Floor(text/float64(block)) * float64(block)
						least += math.Floor(float64(k.HeadTokens())/float64(block)) * float64(block)
						own := s[len(s)-1].Words
						if own < 1 {
							t.Fatalf("%s: request %d has %d words of its own", law, i, own)
						}
						words := 0
						for _, x := range s {
							words += x.Words
						}
						all += float64(b.Input)
						most += max(math.Floor((float64(k.HeadTokens())+float64(words-1)*perWord)/float64(block)), 0) * float64(block)
					}
					want := max(min(share, most/all), least/all)
					// A word of several tokens may tip a block over; few requests make chance.
					if got := cached / all; math.Abs(got-want) > .02 && !(perWord > 1 && block == 1 && math.Abs(got-want) < .03) {
						t.Errorf("%s, blocks of %d, %+v: %.4f of the tokens, want %.4f", law, block, k, got, want)
					}
				}
			}
		}
	}
}

// What is asked before a load covers all that its requests have in common.
func TestSharedCovers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := RandomConfig{Input: FixedLength(rapid.IntRange(1, 300).Draw(t, "input")), Output: FixedLength(5), PrefixShare: 1, Seed: rapid.Uint64().Draw(t, "seed"), Nonce: 9}
		switch rapid.IntRange(0, 2).Draw(t, "kind") {
		case 0:
			c.Prefix = rapid.IntRange(1, 500).Draw(t, "prefix")
		case 1:
			tree, err := ParseTree(rapid.SampledFrom([]string{"tree(3x40)", "tree(2x7, 5xuniform(1,30) zipf(1))", "0.5*tree(1x16) + 0.3*tree(2x3,2x2) + 0.2*none"}).Draw(t, "tree"))
			if err != nil {
				t.Fatal(err)
			}
			c.Tree = tree
		default:
			c.Reuse = Reuse{rapid.Float64Range(.01, .99).Draw(t, "share"), 16}
		}
		r, err := NewRandom(c)
		if err != nil {
			t.Fatal(err)
		}
		list, err := r.SharedRequests(4000)
		if err != nil {
			t.Fatal(err)
		}
		covered := map[Segment]bool{} // by the seed of the text before
		longest := map[uint64]int{}
		for _, q := range list {
			above := uint64(0)
			for _, s := range q.Messages[0].Segments {
				covered[Segment{Seed: s.Seed ^ above}] = true
				longest[s.Seed] = max(longest[s.Seed], s.Words)
				above = s.Seed
			}
		}
		for i := range int64(50) {
			q, _ := r.At(i)
			above := uint64(0)
			s := q.Messages[0].Segments
			for _, x := range s[:len(s)-1] {
				if !covered[Segment{Seed: x.Seed ^ above}] || longest[x.Seed] < x.Words {
					t.Fatalf("request %d has a text of %d words that was not asked for before", i, x.Words)
				}
				above = x.Seed
			}
		}
		c.Cold = true
		cold, err := NewRandom(c)
		if err != nil {
			t.Fatal(err)
		}
		for i := range int64(20) {
			a, _ := r.At(i)
			b, _ := cold.At(i)
			if len(b.Messages[0].Segments) != 1 || a.Input != b.Input || a.Output != b.Output {
				t.Fatalf("cold request %d is %+v, want the lengths of %+v", i, b, a)
			}
		}
		if list, err := cold.SharedRequests(4000); err != nil || len(list) > 0 {
			t.Fatalf("%d requests before a cold load, %v", len(list), err)
		}
	})
}
