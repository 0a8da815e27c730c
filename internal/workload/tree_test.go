package workload

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"pitot/internal/say"
)

func mustTree(t testing.TB, s string) *Tree {
	t.Helper()
	tree, err := ParseTree(s)
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

func TestParseTree(t *testing.T) {
	for in, want := range map[string]string{
		"tree(1x512, 8x1024 zipf(1.1), 64x256)":            "tree(1x512, 8x1024 zipf(1.1), 64x256)",
		"Tree( 10x256 )":                                   "tree(10x256)",
		"tree(8xlognormal(1024,256) zipf(1), 4x9 uniform)": "tree(8xlognormal(1024,256) zipf(1), 4x9)",
		"tree(3xuniform(5, 9))":                            "tree(3xuniform(5,9))",
		"0.6*tree(10x100) + 0.3*tree(4x2000) + 0.1*none":   "0.6*tree(10x100) + 0.3*tree(4x2000) + 0.1*none",
		"1*tree(2xquantiles(0:1,100:9) zipf(0.5))":         "tree(2xquantiles(0:1,100:9) zipf(0.5))",
	} {
		if got := mustTree(t, in); got.String() != want {
			t.Errorf("%s is written %s, want %s", in, got, want)
		}
	}
	for _, in := range []string{"", "none", "tree()", "tree(8)", "tree(x8)", "tree(0x8)", "tree(8x0)", "tree(-1x8)", "tree(8x8", "tree(8x8))", "tree(2x2 zipf(11))", "tree(2x2 zipf(NaN))",
		"tree(2000000x8)", "tree(1x9) + tree(1x8)", "0.5*tree(1x9)", "0.5*tree(1x9)+0.6*tree(1x8)", "NaN*tree(1x9)", "tree(1x16777216, 1x16777216)", "tree(1x zipf(1))", "bush(1x2)"} {
		tree, err := ParseTree(in)
		if err == nil {
			t.Errorf("%q is read as %s", in, tree)
			continue
		}
		if say.HintOf(err) == "" {
			t.Errorf("%q: %v has no hint", in, err)
		}
	}
	if tree := mustTree(t, "tree(1x512, 8x1024, 64x256)"); tree.LeafCount() != 512 || tree.Mean() != 1792 {
		t.Errorf("%d leaves of %g tokens", tree.LeafCount(), tree.Mean())
	}
	if tree := (*Tree)(nil); tree.String() != "" || tree.Mean() != 0 || tree.hasPartialShare() {
		t.Error("no tree has something")
	}
}

func FuzzParseTree(f *testing.F) {
	for _, s := range []string{"tree(1x512, 8x1024 zipf(1.1), 64x256)", "0.6*tree(10x100) + 0.4*none", "tree(8xlognormal(1024,256) zipf(1), 4x9 uniform)", "tree(", "1*(", "tree(1x1 zipf(", "tree(9x(+)*)"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if len(s) > 300 {
			return
		}
		tree, err := ParseTree(s)
		if err != nil {
			return
		}
		again, err := ParseTree(tree.String())
		if err != nil || again.String() != tree.String() || again.Mean() != tree.Mean() {
			t.Fatalf("%q is written %q, which is read as %v, %v", s, tree, again, err)
		}
		for i := range uint64(4) {
			sum := 0
			for _, n := range tree.requestPath(1, 2, i) {
				sum += n.tokens
			}
			if sum < 0 {
				t.Fatalf("%q: %d tokens", s, sum)
			}
		}
	})
}

// A tree's request is pure in seed and item, its prefix is on top of its input, and the texts
// it comes by are those of its place: equal to another's exactly as far as their ways are.
func TestTreeRequests(t *testing.T) {
	c := RandomConfig{Input: lengths(t, "lognormal(300,200)"), Output: FixedLength(9), Tree: mustTree(t, "tree(1x64, 4xuniform(32,99) zipf(1), 3x16)"), PrefixShare: 1, Seed: 5, Nonce: 6}
	r, err := NewRandom(c)
	if err != nil {
		t.Fatal(err)
	}
	plain := c
	plain.Tree, plain.PrefixShare = nil, 0
	bare, _ := NewRandom(plain)
	seconds := map[uint64]int{}
	for i := range int64(500) {
		a, _ := r.At(i)
		b, _ := r.At(i)
		if !equalRequests(a, b) {
			t.Fatalf("request %d differs when it is asked for again", i)
		}
		s := a.Messages[0].Segments
		if len(s) != 4 {
			t.Fatalf("request %d has %d segments", i, len(s))
		}
		own, _ := bare.At(i)
		sum := 0
		for _, x := range s {
			sum += x.Words
		}
		if begins := sum - s[3].Words; a.Input != sum || a.Input != begins+own.Input || a.Output != own.Output {
			t.Fatalf("request %d: %d tokens of %d words, %d of them before an input of %d", i, a.Input, sum, begins, own.Input)
		}
		first, _ := r.At(0)
		if s[0] != first.Messages[0].Segments[0] {
			t.Fatalf("request %d has another root", i)
		}
		if w, seen := seconds[s[1].Seed]; seen && w != s[1].Words {
			t.Fatalf("one text has %d and %d words", w, s[1].Words)
		}
		seconds[s[1].Seed] = s[1].Words
	}
	if len(seconds) != 4 {
		t.Errorf("%d texts of the second level, want 4", len(seconds))
	}
}

func equalRequests(a, b Request) bool {
	if a.ID != b.ID || a.Input != b.Input || a.Output != b.Output || a.Class != b.Class || len(a.Messages[0].Segments) != len(b.Messages[0].Segments) {
		return false
	}
	for i, s := range a.Messages[0].Segments {
		if s != b.Messages[0].Segments[i] {
			return false
		}
	}
	return true
}

// Siblings are as popular as they are said to be: Pearson's χ² of 20,000 requests, at a
// fixed seed, below its 99.9th percentile.
func TestTreePopularity(t *testing.T) {
	const n = 20_000
	for _, c := range []struct {
		tree string
		want func(k int) float64
		of   int
		most float64 // χ² at 0.999 with of - 1 degrees of freedom
	}{
		{"tree(10x8)", func(int) float64 { return .1 }, 10, 27.88},
		{"tree(10x8 zipf(1.1))", func(k int) float64 { return math.Pow(float64(k+1), -1.1) / 2.6802 }, 10, 27.88},
		{"tree(1x8, 10x8 zipf(0.5))", func(k int) float64 { return math.Pow(float64(k+1), -.5) / 5.0210 }, 10, 27.88},
		{"0.6*tree(1x8) + 0.3*tree(1x9) + 0.1*none", func(k int) float64 { return []float64{.6, .3, .1}[k] }, 3, 13.82},
	} {
		tree := mustTree(t, c.tree)
		order := map[uint64]int{} // of the texts by how often they come
		var counts []int
		for i := range uint64(n) {
			key := uint64(0)
			if way := tree.requestPath(7, 7, i); len(way) > 0 {
				key = way[len(way)-1].key
			}
			k, seen := order[key]
			if !seen {
				k = len(counts)
				order[key], counts = k, append(counts, 0)
			}
			counts[k]++
		}
		if len(counts) != c.of {
			t.Errorf("%s: %d texts, want %d", c.tree, len(counts), c.of)
			continue
		}
		sortDown(counts)
		chi := 0.
		for k, x := range counts {
			want := n * c.want(k)
			chi += (float64(x) - want) * (float64(x) - want) / want
		}
		if chi > c.most {
			t.Errorf("%s: χ² = %.1f, want below %.1f; %v", c.tree, chi, c.most, counts)
		}
	}
}

func sortDown(x []int) {
	for i := range x {
		for k := i; k > 0 && x[k] > x[k-1]; k-- {
			x[k], x[k-1] = x[k-1], x[k]
		}
	}
}

// Whatever the tree, a share of the requests has texts of its own of the same lengths.
func TestTreeShare(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tree, err := ParseTree(rapid.SampledFrom([]string{"tree(3x40)", "tree(2x7, 5xuniform(1,30) zipf(1))", "0.5*tree(1x16) + 0.5*none"}).Draw(t, "tree"))
		if err != nil {
			t.Fatal(err)
		}
		c := RandomConfig{Input: FixedLength(20), Output: FixedLength(1), Tree: tree, PrefixShare: rapid.SampledFrom([]float64{0, .3, 1}).Draw(t, "share"), Seed: rapid.Uint64().Draw(t, "seed")}
		r, err := NewRandom(c)
		if err != nil {
			t.Fatal(err)
		}
		share := c.PrefixShare
		c.PrefixShare = 1
		all, _ := NewRandom(c)
		for i := range int64(40) {
			a, _ := r.At(i)
			b, _ := all.At(i)
			if a.Input != b.Input {
				t.Fatalf("request %d: %d tokens, %d where all share", i, a.Input, b.Input)
			}
			shares, begins := r.sharesPrefix(uint64(i)), len(b.Messages[0].Segments) > 1
			if got := len(a.Messages[0].Segments) > 1; got != (shares && begins) {
				t.Fatalf("request %d has a prefix of the tree: %v", i, got)
			}
			want := ""
			switch {
			case share == 0 || share == 1 && !tree.hasPartialShare():
			case !begins:
				want = NoPrefix
			case shares:
				want = SharedPrefix
			default:
				want = OwnPrefix
			}
			if a.Class != want {
				t.Fatalf("request %d is %q, want %q", i, a.Class, want)
			}
		}
	})
}
