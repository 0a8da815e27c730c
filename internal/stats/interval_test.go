package stats

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"pitot/bench/stat/queue"
)

// tally counts how often something holds.
type tally struct{ held, of int }

func (t *tally) add(held bool) {
	t.of++
	if held {
		t.held++
	}
}

func (t tally) share() float64 { return float64(t.held) / float64(t.of) }

// within reports a share that is out of bounds.
func (t tally) within(tt *testing.T, what string, least, most float64) {
	tt.Helper()
	if s := t.share(); !(s >= least && s <= most) {
		tt.Errorf("%s: %.3f of %d, want %g to %g", what, s, t.of, least, most)
	}
}

func TestRankInterval(t *testing.T) {
	for _, c := range []struct {
		n      int64
		p      float64
		lo, hi int64
	}{
		{10, .5, 2, 9}, {100, .5, 40, 61}, {100, .95, 90, 100}, {367, .99, 359, 368}, {368, .99, 360, 368},
		{500, .99, 490, 500}, {1000, .99, 983, 997}, {10000, .999, 9983, 9997},
		{0, .5, 0, 1}, {1, .5, 0, 2}, {5, .5, 0, 6}, {6, .5, 1, 6}, {100, .01, 0, 4},
	} {
		if lo, hi := RankInterval(c.n, c.p, .95); lo != c.lo || hi != c.hi {
			t.Errorf("RankInterval(%d, %g) = %d, %d, want %d, %d", c.n, c.p, lo, hi, c.lo, c.hi)
		}
	}
}

// The ranks are the narrowest whose tails are small enough.
func TestRankIntervalIsTight(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64Range(1, 5000).Draw(t, "n")
		p := rapid.Float64Range(.001, .999).Draw(t, "p")
		level := rapid.Float64Range(.5, .999).Draw(t, "level")
		lo, hi := RankInterval(n, p, level)
		if BinomialCDF(lo-1, n, p) > tailProbability(level) || BinomialCDF(lo, n, p) <= tailProbability(level) {
			t.Errorf("lower rank %d", lo)
		}
		if BinomialTail(hi-1, n, p) > tailProbability(level) || BinomialTail(hi-2, n, p) <= tailProbability(level) {
			t.Errorf("upper rank %d", hi)
		}
	})
}

func TestEffectiveRankInterval(t *testing.T) {
	for _, c := range []struct {
		n         int64
		effective float64
		lo, hi    int64
	}{
		{1000, 1000, 983, 997}, {1000, 5000, 983, 997},
		{10_000, 1000, 9830, 9970}, {10_000, 1000.9, 9830, 9970},
		{1100, 367, 1076, 1101}, // 359 and open
		{1000, .5, 0, 1001}, {1000, 0, 0, 1001}, {1000, -1, 0, 1001},
	} {
		if lo, hi := EffectiveRankInterval(c.n, c.effective, .99, .95); lo != c.lo || hi != c.hi {
			t.Errorf("EffectiveRankInterval(%d, %g) = %d, %d, want %d, %d", c.n, c.effective, lo, hi, c.lo, c.hi)
		}
	}
}

// run gives TTFTs of M/G/32 in their steady state.
func run(utilisation float64, n int, seed uint64) []float64 {
	q := queue.New(32, utilisation, seed)
	q.Warm(60)
	return q.TTFTs(n)
}

// The interval of p99 holds it with φ pooled over neighbouring loads. It does
// not with the requests taken as independent, and gating on a run's own φ
// picks the runs that are wrong.
func TestPercentileIntervalOfAQueue(t *testing.T) {
	if testing.Short() {
		t.Skip("simulations on one goroutine are slow under the race detector")
	}
	for _, c := range []struct {
		utilisation, truth float64 // p99 of 10 million
		n, runs            int
		least              float64
	}{
		{.5, .5368, 5_000, 150, .93},
		{.8, .679, 5_000, 60, .85},
		{.9, 1.39, 20_000, 25, .82},
	} {
		var iid, pooled, gated tally
		for r := range c.runs {
			var phis []float64
			var here []float64
			for i, load := range []float64{.92, 1.08, 1} {
				xs := run(c.utilisation*load, c.n, uint64(3*r+i))
				here = slices.Clone(xs)
				SortFloat64(here)
				phi, ok := batchesOf(MarkExceeding(xs, Percentile(here, .99)), 10).Overdispersion()
				if !ok {
					t.Fatal("no φ")
				}
				phis = append(phis, phi)
			}
			n := int64(c.n)
			hold := func(phi float64) (holds, closed bool) {
				lo, hi := EffectiveRankInterval(n, float64(n)/phi, .99, .95)
				return (lo == 0 || here[lo-1] <= c.truth) && (hi > n || here[hi-1] >= c.truth), lo > 0 && hi <= n
			}
			h, _ := hold(1)
			iid.add(h)
			h, _ = hold(PooledOverdispersion(phis...))
			pooled.add(h)
			if h, closed := hold(max(1, phis[2])); closed {
				gated.add(h)
			}
		}
		pooled.within(t, "pooled φ holds p99", c.least, 1)
		if c.utilisation == .8 {
			iid.within(t, "independence holds p99", 0, .35)
			gated.within(t, "gating on the own φ holds p99", 0, .7)
		}
	}
}

// chain is a two-state Markov chain of 0s and 1s with the share p of 1s and the
// lag-1 correlation r. Its φ is (1+r)/(1−r).
func chain(rng *rand.Rand, n int, p, r float64) []float64 {
	out := make([]float64, n)
	x := 0.0
	if rng.Float64() < p {
		x = 1
	}
	for i := range out {
		if rng.Float64() >= r {
			if x = 0; rng.Float64() < p {
				x = 1
			}
		}
		out[i] = x
	}
	return out
}

func TestOverdispersion(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for _, r := range []float64{0, .5, .9} {
		var sum float64
		const runs = 300
		for range runs {
			phi, ok := batchesOf(chain(rng, 4000, .1, r), 10).Overdispersion()
			if !ok {
				t.Fatal("no φ")
			}
			sum += phi / runs
		}
		if want := (1 + r) / (1 - r); !near(sum, want, .12) {
			t.Errorf("correlation %g: φ is %.3f on average, want %.3f", r, sum, want)
		}
	}
	for _, hits := range [][]float64{nil, {1, 0, 1}, make([]float64, 100), MarkExceeding([]float64{1, 2, 3}, 0)} {
		if phi, ok := batchesOf(hits, 10).Overdispersion(); ok || phi != 0 {
			t.Errorf("%v: φ = %v", hits, phi)
		}
	}
	if got := PooledOverdispersion(.3, 7, 2); got != 7 {
		t.Errorf("pooled: %v", got)
	}
	if PooledOverdispersion() != 1 || PooledOverdispersion(.3) != 1 {
		t.Error("φ is 1 at least")
	}
}

// autoregressive is a series of mean 0 with the lag-1 correlation r.
func autoregressive(rng *rand.Rand, n int, r float64) []float64 {
	out := make([]float64, n)
	x := rng.NormFloat64() / math.Sqrt(1-r*r)
	for i := range out {
		out[i] = x
		x = r*x + rng.NormFloat64()
	}
	return out
}

func TestBatchMeans(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 1))
	var batches tally
	for range 400 {
		xs := autoregressive(rng, 2000, .8)
		m, ok := BatchMeans(xs, 10, .95)
		if !ok {
			t.Fatal("no mean")
		}
		batches.add(m.Contains(0))
	}
	batches.within(t, "batch means hold the mean", .92, .98)
	m, ok := BatchMeans([]float64{1, 3, 2, 4, 8, 6, 100}, 3, .95) // batches of 2, 2, 3
	if _, sd := Moments([]float64{2, 3, 38}); !ok || m.DF != 2 || m.N != 7 || !near(m.SE, sd/math.Sqrt(3), 1e-12) || !near(m.Mean, 124./7, 1e-12) {
		t.Errorf("%+v", m)
	}
	for _, c := range []struct{ n, batches int }{{0, 10}, {19, 10}, {100, 1}, {100, 0}, {100, -1}} {
		if _, ok := BatchMeans(make([]float64, c.n), c.batches, .95); ok {
			t.Errorf("%d samples in %d batches", c.n, c.batches)
		}
	}
}

// statsmodels' proportion_confint, method beta.
func TestProportions(t *testing.T) {
	for _, c := range []struct {
		got  Interval
		want Interval
	}{
		{ClopperPearson(8, 100, 1, .95), Interval{.0351715625181628, .15155763586442098}},
		{ClopperPearson(0, 20, 1, .95), Interval{0, .16843347098308534}},
		{ClopperPearson(20, 20, 1, .95), Interval{.8315665290169146, 1}},
		{ClopperPearson(80, 1000, 10, .95), Interval{.0351715625181628, .15155763586442098}}, // n/φ counts
		{ClopperPearson(0, 0, 1, .95), Interval{0, 1}},
		{Interval{0, ClopperPearson(0, 299, 1, OneSided(.95)).Hi}, Interval{0, 1 - math.Pow(.05, 1./299)}},
	} {
		if !near(c.got.Lo, c.want.Lo, 1e-8) || !near(c.got.Hi, c.want.Hi, 1e-8) {
			t.Errorf("%v, want %v", c.got, c.want)
		}
	}
}

// Coverage, by summing over all counts.
func TestProportionCoverage(t *testing.T) {
	const n = 60
	for i := 1; i < 100; i++ {
		p := float64(i) / 100
		var exact float64
		for k := range n + 1 {
			chance := BinomialCDF(int64(k), n, p) - BinomialCDF(int64(k)-1, n, p)
			if ClopperPearson(k, n, 1, .95).Contains(p) {
				exact += chance
			}
		}
		if exact < .95 {
			t.Errorf("Clopper-Pearson holds %g with %.4f", p, exact)
		}
	}
}

// With its φ known, the interval of a share holds it however the 1s cluster.
func TestProportionOfAChain(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 1))
	var naive, exact tally
	for range 400 {
		const n, p, r = 4000, .1, .9
		hits := 0
		for _, x := range chain(rng, n, p, r) {
			hits += int(x)
		}
		naive.add(ClopperPearson(hits, n, 1, .95).Contains(p))
		exact.add(ClopperPearson(hits, n, (1+r)/(1-r), .95).Contains(p))
	}
	naive.within(t, "independence", 0, .5)
	exact.within(t, "Clopper-Pearson", .93, .99)
}
