package stats

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestRank(t *testing.T) {
	for _, c := range []struct {
		n    int64
		p    float64
		want int64
	}{
		{100, .99, 99}, {1000, .999, 999}, {1000, .99, 990}, {10, .5, 5}, {11, .5, 6},
		{1, .5, 1}, {1, .999, 1}, {20, .95, 19}, {200, .95, 190}, {100, .29, 29},
		{100, .57, 57}, {101, .99, 100}, {10_000_000, .999, 9_990_000}, {980, .99, 971},
		{5, 0, 1}, {5, 1, 5}, {0, .5, 1},
	} {
		if got := Rank(c.n, c.p); got != c.want {
			t.Errorf("Rank(%d, %g) = %d, want %d", c.n, c.p, got, c.want)
		}
	}
}

// ⌈n·k/d⌉ in integers is what Rank(n, k/d) must give.
func TestRankIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := rapid.SampledFrom([]int64{10, 100, 1000, 10000}).Draw(t, "d")
		k := rapid.Int64Range(1, d-1).Draw(t, "k")
		n := rapid.Int64Range(1, 100_000_000).Draw(t, "n")
		if got, want := Rank(n, float64(k)/float64(d)), (n*k+d-1)/d; got != want {
			t.Fatalf("Rank(%d, %d/%d) = %d, want %d", n, k, d, got, want)
		}
	})
}

func TestPercentile(t *testing.T) {
	xs := make([]int, 100)
	for i := range xs {
		xs[i] = i + 1
	}
	for p, want := range map[float64]int{.5: 50, .9: 90, .95: 95, .99: 99, .999: 100, .001: 1} {
		if got := Percentile(xs, p); got != want {
			t.Errorf("p%g = %d, want %d", p*100, got, want)
		}
	}
	if Percentile([]int(nil), .5) != 0 {
		t.Error("no data must give zero")
	}
}

func TestLinearRank(t *testing.T) {
	for _, c := range []struct {
		n    int64
		p    float64
		i    int64
		frac float64
	}{
		{100, .99, 99, .01}, // numpy.percentile(range(1, 101), 99) = 99.01
		{4, .5, 2, .5},      // numpy.percentile([1, 2, 3, 4], 50) = 2.5
		{1, .99, 1, 0}, {5, 1, 5, 0}, {5, 0, 1, 0}, {5, .5, 3, 0}, {0, .5, 1, 0},
	} {
		if i, frac := LinearRank(c.n, c.p); i != c.i || math.Abs(frac-c.frac) > 1e-12 {
			t.Errorf("LinearRank(%d, %g) = %d, %g, want %d, %g", c.n, c.p, i, frac, c.i, c.frac)
		}
	}
}

func TestSupport(t *testing.T) {
	for p, want := range map[float64][2]int64{
		.5: {2, 20}, .9: {10, 100}, .95: {20, 200}, .99: {100, 1000}, .999: {1000, 10000}, 1: {math.MaxInt64, math.MaxInt64},
	} {
		few, full := SamplesNeeded(p)
		if few != want[0] || full != want[1] {
			t.Errorf("Support(%g) = %d, %d, want %v", p, few, full, want)
		}
	}
}

func TestMoments(t *testing.T) {
	mean, sd := Moments([]int64{2, 4, 4, 4, 5, 5, 7, 9})
	if mean != 5 || math.Abs(sd-math.Sqrt(32.0/7)) > 1e-15 {
		t.Errorf("mean %v, sd %v", mean, sd)
	}
	// A spread of 1 on a mean of 1e9, where one pass over squares cancels.
	mean, sd = Moments([]float64{1e9 + 4, 1e9 + 5, 1e9 + 6})
	if mean != 1e9+5 || sd != 1 {
		t.Errorf("mean %v, sd %v", mean, sd)
	}
	if m, s := Moments([]float64{3}); m != 3 || !math.IsNaN(s) {
		t.Errorf("one sample: %v, %v", m, s)
	}
}

func TestSortsAgree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.SampledFrom([]int{0, 1, 17, radixFrom - 1, radixFrom, 3*radixFrom + 5}).Draw(t, "n")
		bits := rapid.IntRange(1, 62).Draw(t, "bits")
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		i64, u32, f64 := make([]int64, n), make([]uint32, n), make([]float64, n)
		for i := range n {
			i64[i] = rng.Int64N(1<<bits) - rng.Int64N(1<<bits)
			u32[i] = uint32(rng.Uint64() & (1<<bits - 1))
			f64[i] = float64(i64[i]) / 1024
		}
		for _, ok := range []bool{
			sorted(i64, func(a []int64) { SortInt64(a, nil) }),
			sorted(i64, func(a []int64) { SortInt64(a, make([]int64, n+3)) }),
			sorted(u32, func(a []uint32) { SortUint32(a, nil) }),
			sorted(f64, SortFloat64),
		} {
			if !ok {
				t.Fatal("order differs from slices.Sort")
			}
		}
	})
}

func sorted[T int64 | uint32 | float64](in []T, sort func([]T)) bool {
	got, want := slices.Clone(in), slices.Clone(in)
	sort(got)
	slices.Sort(want)
	return slices.Equal(got, want)
}

func BenchmarkSortUint32(b *testing.B) {
	const n = 10_000_000
	in, a, buf := make([]uint32, n), make([]uint32, n), make([]uint32, n)
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range in {
		in[i] = uint32(1e7 + 3e6*rng.NormFloat64()*rng.NormFloat64())
	}
	for b.Loop() {
		copy(a, in)
		SortUint32(a, buf)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/value")
}

func BenchmarkSortInt64(b *testing.B) {
	const n = 10_000_000
	in, a, buf := make([]int64, n), make([]int64, n), make([]int64, n)
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range in {
		in[i] = int64(1e7 + 3e6*rng.NormFloat64()*rng.NormFloat64())
	}
	for b.Loop() {
		copy(a, in)
		SortInt64(a, buf)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/value")
}
