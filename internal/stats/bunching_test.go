package stats

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// askedBy are the times at which users ask who begin at some phase of a cycle of
// 1,000 and vary it by some share.
func askedBy(users, cycles int, vary float64, seed uint64, phase func(u int, rng *rand.Rand) float64) (times []int64) {
	rng := rand.New(rand.NewPCG(seed, 7))
	for u := range users {
		t := 1000 * phase(u, rng)
		for t < float64(cycles)*1000 {
			times = append(times, int64(t))
			t += 1000 * (1 + vary*(2*rng.Float64()-1))
		}
	}
	return times
}

// judgeBunching judges those of the times that lie in the window.
func judgeBunching(times []int64, from, to int64, users int) (Bunching, bool) {
	times = slices.DeleteFunc(times, func(t int64) bool { return t < from || t >= to })
	slices.Sort(times)
	return JudgeBunching(slices.Values(times), int64(len(times)), from, to, users)
}

func TestJudgeBunching(t *testing.T) {
	if testing.Short() {
		t.Skip("simulations on one goroutine are slow under the race detector")
	}
	random := func(_ int, rng *rand.Rand) float64 { return rng.Float64() }
	const seeds = 150
	alarms := func(users, cycles int, vary float64, phase func(int, *rand.Rand) float64) (n int) {
		for seed := range uint64(seeds) {
			b, ok := judgeBunching(askedBy(users, cycles, vary, seed, phase), 0, int64(cycles)*1000, users)
			if !ok {
				t.Fatalf("%d users, %d cycles: not judged", users, cycles)
			}
			if b.InStep() {
				n++
			}
		}
		return n
	}
	for _, users := range []int{8, 64, 512} {
		for _, cycles := range []int{4, 30} {
			if n := alarms(users, cycles, 0, random); n > seeds*9/100 {
				t.Errorf("%d users in random phases, %d cycles: in step in %d of %d", users, cycles, n, seeds)
			}
			if n := alarms(users, cycles, .9, random); n > seeds*3/100 {
				t.Errorf("%d users of random lengths, %d cycles: in step in %d of %d", users, cycles, n, seeds)
			}
			quarter := func(_ int, rng *rand.Rand) float64 { return rng.Float64() / 4 }
			if n := alarms(users, cycles, .01, quarter); n < seeds*96/100 {
				t.Errorf("%d users within a quarter, %d cycles: in step in %d of %d only", users, cycles, n, seeds)
			}
		}
	}
	if _, ok := judgeBunching(askedBy(7, 30, 0, 1, random), 0, 30_000, 7); ok {
		t.Error("seven users are judged")
	}
	if _, ok := judgeBunching(askedBy(64, 2, 0, 1, random), 0, 2000, 64); ok {
		t.Error("two cycles are judged")
	}
	if _, ok := judgeBunching(nil, 0, 1000, 64); ok {
		t.Error("no requests are judged")
	}
}

func TestChiSquaredQuantile(t *testing.T) {
	for _, c := range []struct{ p, df, want float64 }{{.95, 7, 14.07}, {.999, 23, 49.73}, {.999, 79, 123.6}} { // tables
		if x := ChiSquaredQuantile(c.p, c.df); math.Abs(x-c.want) > .01*c.want {
			t.Errorf("χ²(%g, %g) = %.4g, want %.4g", c.p, c.df, x, c.want)
		}
	}
}
