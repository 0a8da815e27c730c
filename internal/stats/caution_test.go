package stats

import (
	"math"
	"math/rand/v2"
	"testing"
)

func fine(xs []float64) *Batches { return batchesOf(xs, FineBatches) }

// Merged batches are what fewer batches are, to the last digit of a sum.
func TestMerged(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 1))
	for _, n := range []int{280, 301, 1000, 12_345} {
		xs := autoregressive(rng, n, .9)
		for _, k := range []int{20, 10, 7, 5} {
			direct, merged := batchesOf(xs, k), fine(xs).MergeTo(k)
			a, ok := direct.Mean(.95)
			b, same := merged.Mean(.95)
			if !ok || !same || !near(a.SE, b.SE, 1e-9) || !near(a.Mean, b.Mean, 1e-12) || a.DF != b.DF {
				t.Errorf("%d values in %d batches: %+v, merged %+v", n, k, a, b)
			}
		}
	}
	for _, b := range []*Batches{fine(make([]float64, 279)), batchesOf(make([]float64, 1000), 10), fine(nil)} {
		if _, _, ok := b.WidestInterval(.95); ok {
			t.Error("a width of too few values, or of other batches")
		}
		if _, ok := b.WidestDispersion(.95); ok {
			t.Error("a dispersion of too few values, or of other batches")
		}
	}
}

// The widest of several is not narrower than that of ten.
func TestWidest(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 1))
	for range 20 {
		xs := autoregressive(rng, 1400, .5)
		mean, half, ok := fine(xs).WidestInterval(.95)
		ten, _ := BatchMeans(xs, 10, .95)
		if !ok || !near(mean, ten.Mean, 1e-12) || half < ten.Hi-ten.Mean-1e-12 {
			t.Errorf("%v ± %v, ten batches %+v", mean, half, ten)
		}
		hits := MarkExceeding(xs, 0)
		phi, ok := fine(hits).WidestDispersion(.95)
		if own, _ := batchesOf(hits, 10).Overdispersion(); !ok || phi < own || phi < 1 {
			t.Errorf("φ %v, of ten batches %v", phi, own)
		}
		counts := make([]float64, 20)
		for i, x := range xs {
			counts[i/70] += x
		}
		if _, of := WidestOf(counts, .95); of < 70*(ten.Hi-ten.Mean)-1e-9 {
			t.Errorf("of counts ±%v, ten batches ±%v", of, 70*(ten.Hi-ten.Mean))
		}
	}
}

func TestCorrelation(t *testing.T) {
	rng := rand.New(rand.NewPCG(6, 1))
	for _, r := range []float64{-.5, 0, .5, .9, .99} {
		xs := autoregressive(rng, 20_000, r)
		for i := range xs {
			xs[i] += 1e3 // far from zero
		}
		mean, _ := Moments(xs)
		var product, square float64
		for i, x := range xs {
			square += (x - mean) * (x - mean)
			if i > 0 {
				product += (x - mean) * (xs[i-1] - mean)
			}
		}
		if got := AutoCorrelation(xs); !near(got, product/square, 1e-9) || math.Abs(got-r) > .03 {
			t.Errorf("r = %g: %v, by the formula %v", r, got, product/square)
		}
	}
	for _, xs := range [][]float64{nil, {1}, {1, 2}, {3, 3, 3, 3}, {.1, .1, .1, .1, .1}} {
		if got := AutoCorrelation(xs); got != 0 {
			t.Errorf("%v: %v", xs, got)
		}
	}
	if got := fine(make([]float64, 1000)).MemoryLength(); got != 0 {
		t.Errorf("a constant remembers %v", got)
	}
}

// Of an autoregressive series it is twice the time in which the correlation falls to 1/e, for small
// steps.
func TestMemory(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 1))
	for r, want := range map[float64]float64{0: 0, .5: 2, .9: 18} { // blocks
		if got := 20_000 * SeriesMemory(autoregressive(rng, 20_000, r)); math.Abs(got-want) > .1*want+.05 {
			t.Errorf("correlation %g: %v blocks, want %v", r, got, want)
		}
	}
}

// A series that remembers for a fifth of a run has an interval that holds its mean
// with caution; without, seldom.
func TestCaution(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 1))
	var plain, cautious tally
	for range 300 {
		xs := autoregressive(rng, 1400, math.Exp(-5./1400))
		ten, _ := BatchMeans(xs, 10, .95)
		plain.add(ten.Contains(0))
		b := fine(xs)
		mean, half, _ := b.WidestInterval(.95)
		cautious.add(math.Abs(mean) <= half*WideningFactor(CautionOfTime(100, 1), b.MemoryLength()))
	}
	plain.within(t, "ten batches hold the mean", .3, .8)
	cautious.within(t, "the widest with caution does", .93, 1)
	for _, c := range []struct{ got, want float64 }{
		{CautionOfTime(100, 1), 1.8}, {CautionOfTime(1e9, 1), 1}, {CautionOfTime(1, 1), 5}, {CautionOfTime(0, 0), 5}, {CautionOfTime(math.NaN(), 0), 5},
		{WideningFactor(1.8, 0), 1.8}, {WideningFactor(1.8, .02), 2.8}, {WideningFactor(1.8, 1), 5},
	} {
		if !near(c.got, c.want, 1e-6) {
			t.Errorf("caution %v, want %v", c.got, c.want)
		}
	}
}
