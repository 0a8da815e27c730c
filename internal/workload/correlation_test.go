package workload

import (
	"math"
	"slices"
	"testing"

	"pitot/internal/stats"
)

// A correlation of lengths is the one asked for; each length keeps its distribution, and a
// request can be made again alone. Without one the lengths of a seed are what they were.
func TestCorrelation(t *testing.T) {
	const n = 20_000
	in, _ := ParseLengths("lognormal(1000,800)")
	out, _ := ParseLengths("gamma(300,200)")
	lengths := func(r float64) (t2 *Trace) {
		w, err := NewRandom(RandomConfig{Input: in, Output: out, Seed: 5, Nonce: 6, Correlation: r})
		if err != nil {
			t.Fatal(err)
		}
		t2 = &Trace{}
		for i := range int64(n) {
			q, err := w.At(i)
			if err != nil {
				t.Fatal(err)
			}
			t2.Input, t2.Output = append(t2.Input, int32(q.Input)), append(t2.Output, int32(q.Output))
		}
		return t2
	}
	none := lengths(0)
	for _, r := range []float64{-1, -0.6, 0, 0.3, 0.8, 1} {
		got := lengths(r)
		if !slices.Equal(got.Input, none.Input) {
			t.Errorf("%g: prompts have other lengths", r)
		}
		if rho := got.LengthCorrelation(); math.Abs(rho-r) > .025 {
			t.Errorf("rank correlation %.4f, want %g", rho, r)
		}
		if r == 0 && !slices.Equal(got.Output, none.Output) {
			t.Error("answers have other lengths")
		}
		slices.Sort(got.Output)
		worst := 0.0
		for i, x := range got.Output { // Kolmogorov-Smirnov, at the ends of each length
			if i+1 < n && got.Output[i+1] == x {
				continue
			}
			f := stats.IncompleteGamma(2.25, (float64(x)+.5)/(200*200/300.))
			worst = max(worst, math.Abs(f-float64(i+1)/n))
		}
		if limit := 1.95 / math.Sqrt(n); worst > limit { // 0.1 %
			t.Errorf("%g: answers are %.5f from their distribution, want below %.5f", r, worst, limit)
		}
	}
	if _, err := NewRandom(RandomConfig{Input: in, Output: out, Correlation: 1.5}); err == nil {
		t.Error("a correlation of 1.5")
	}
}
