package search

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"pitot/internal/stat"
)

// lognormals is an engine without a queue: a request takes (load/10)³ times a lognormal
// time that it draws, and a window shares a part of it. Slowed by k, everything comes k
// times as fast and takes k times as long.
type lognormals struct {
	k       float64 // how much slower than the twin the server is
	unlike  float64 // the part of a request's luck that the twin does not share
	windows []lognormalWindow
	fails   float64
	err     error
}

type lognormalWindow struct {
	load float64
	n    int
	seed uint64
}

const lognormalSpread = 0.5

// luck of the requests of a window: alone is what the twin does not have.
func (e *lognormals) luck(seed uint64, n int) (shared, alone []float64) {
	rng := rand.New(rand.NewPCG(seed, 1))
	window := 0.3 * rng.NormFloat64()
	own := 0.3 * rng.NormFloat64()
	for range n {
		shared = append(shared, window+rng.NormFloat64())
		alone = append(alone, own+rng.NormFloat64())
	}
	return shared, alone
}

// takes is by how many times the limit a request of such luck takes.
func takes(load, luck float64) float64 {
	return math.Pow(load/10, 3) * math.Exp(lognormalSpread*luck)
}

func (e *lognormals) probe(_ context.Context, p Probe, seed uint64) (Seen, error) {
	e.windows = append(e.windows, lognormalWindow{p.Load, p.Requests, seed})
	s := Seen{Load: p.Load, N: p.Requests, Violations: []int{0}, Residence: 0.1, Seconds: float64(p.Requests) / p.Load, Stability: stat.Undecided,
		Blocks: [][]int{make([]int, max(1, p.Blocks))}, JointBlock: make([]int, max(1, p.Blocks))}
	shared, alone := e.luck(seed, p.Requests)
	rng := rand.New(rand.NewPCG(seed, 2))
	for i := range shared {
		luck := math.Sqrt(1-e.unlike)*shared[i] + math.Sqrt(e.unlike)*alone[i]
		failed := rng.Float64() < e.fails
		if failed {
			s.Errors++
		}
		if failed || e.k*takes(e.k*p.Load, luck) >= 1 {
			s.Violations[0]++
			s.Blocks[0][i*len(s.Blocks[0])/p.Requests]++
		}
	}
	s.Joint, s.JointBlock = s.Violations[0], s.Blocks[0]
	return s, nil
}

// Again implements [Twin].
func (e *lognormals) Again(_ context.Context, steps []int, k float64) (counts [][]int, _ error) {
	for _, i := range steps {
		w := e.windows[i]
		shared, _ := e.luck(w.seed, w.n)
		n := 0
		for _, luck := range shared {
			if k*takes(k*w.load, luck) >= 1 {
				n++
			}
		}
		counts = append(counts, []int{n, n})
	}
	return counts, e.err
}

// Long implements [Twin].
func (e *lognormals) Long(_ context.Context, loads []float64, n int) (all [][][]float64, _ error) {
	for _, load := range loads {
		rng := rand.New(rand.NewPCG(math.Float64bits(load), 3))
		times := make([]float64, n)
		for i := range times { // the luck of windows has its spread, of many of them
			times[i] = takes(load, math.Sqrt(1.09)*rng.NormFloat64())
		}
		all = append(all, [][]float64{times})
	}
	return all, e.err
}

// capacity is where a share eps violates.
func (e *lognormals) capacity(eps float64) float64 {
	z := stat.NormalQuantile(1 - eps)
	// k·(k·load/10)³·exp(spread·√1.09·z) = 1
	return 10 * math.Pow(math.Exp(-lognormalSpread*math.Sqrt(1.09)*z)/e.k, 1./3) / e.k
}

func (e *lognormals) find(t testing.TB, eps float64, budget int, seed uint64) Capacity {
	rng := rand.New(rand.NewPCG(seed, 9))
	c, err := Find(t.Context(), FindConfig{Eps: []float64{eps}, Residence: 0.5, Budget: Budget{Requests: budget}, Seed: seed, Twin: e},
		func(ctx context.Context, p Probe) (Seen, error) { return e.probe(ctx, p, rng.Uint64()) })
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Where the twin has the schedule's luck, the interval of a small search is a good part
// narrower than without it and holds the truth about as often as it says, whatever the
// server's speed.
func TestReplayNarrows(t *testing.T) {
	const searches = 14
	held, known := 0, 0
	var narrower []float64
	for i := range searches {
		e := &lognormals{k: 0.5 * math.Pow(4, float64(i)/searches), unlike: 0.1}
		c := e.find(t, 0.05, 4_000, uint64(i))
		r := c.Replayed
		if r == nil || r.Reason != "" || c.Estimate == 0 {
			continue
		}
		if known++; c.Interval.Holds(e.capacity(0.05)) {
			held++
		}
		if a := r.Alone; a.Reason == "" {
			narrower = append(narrower, math.Log(c.Interval.Hi/c.Interval.Lo)/math.Log(a.Hi/a.Lo))
		}
		if math.Abs(math.Log(r.K/e.k)) > 0.15 {
			t.Errorf("a server %.3g times as slow is taken for %.3g", e.k, r.K)
		}
	}
	slices.Sort(narrower)
	if known < searches*8/10 || held < known*8/10 || len(narrower) == 0 || narrower[len(narrower)/2] > 0.8 {
		t.Errorf("of %d searches %d have an interval, %d hold; they are %.3g times as wide", searches, known, held, narrower)
	}
}

// What the schedule explains is known: much where the twin shares the luck, nothing where
// it does not, and then nothing is taken off.
func TestReplayRho(t *testing.T) {
	if r := (&lognormals{k: 1.3}).find(t, 0.05, 10_000, 3).Replayed; r == nil || r.Reason != "" || r.Rho < 0.9 {
		t.Errorf("all luck shared: %+v", r)
	}
	c := (&lognormals{k: 1.3, unlike: 1}).find(t, 0.05, 10_000, 3)
	if r := c.Replayed; r == nil || r.Reason == "" || r.Rho > leastRho || r.Alone.Load != c.Estimate {
		t.Errorf("none shared: %+v", r)
	}
}

// Errors are not the twin's: they are taken from the violations that it is to make, and
// stay among those that are fitted.
func TestReplayErrors(t *testing.T) {
	e := &lognormals{k: 1.2, unlike: 0.1, fails: 0.02}
	c := e.find(t, 0.06, 10_000, 5)
	truth := (&lognormals{k: 1.2}).capacity((0.06 - 0.02) / 0.98)
	if r := c.Replayed; r == nil || r.Reason != "" || r.Errors == 0 || math.Abs(c.Estimate/truth-1) > 0.05 {
		t.Errorf("%+v, truth %.4g", r, truth)
	}
}

// A twin that is nowhere near the server gives a reason, and so does one that fails, or a
// search without violations: what the counts say alone then stands.
func TestReplayKnowsWhatItCannot(t *testing.T) {
	for about, e := range map[string]*lognormals{"six times as slow": {k: 6}, "a twin that fails": {k: 1, err: errors.New("no records")}} {
		c := e.find(t, 0.05, 4_000, 1)
		if r := c.Replayed; r == nil || r.Reason == "" || r.Alone.Load != c.Estimate {
			t.Errorf("%s: %+v", about, r)
		}
	}
	r := newReplayer(t.Context(), &FindConfig{Eps: []float64{0.01}, Level: 0.95, Twin: &lognormals{k: 1}}, 100)
	r.trail = []Step{{Probe: Probe{Load: 1}, Seen: Seen{Load: 1, N: 100, Violations: []int{0}}}}
	var out Replayed
	if _, _, _, ok := r.agree(0, &out); ok || out.Reason == "" {
		t.Errorf("no violation: %+v", out)
	}
}

func TestRising(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		xs := rapid.SliceOfN(rapid.Float64Range(0, 1e6), 1, 40).Draw(t, "xs")
		got := rising(xs)
		var a, b float64
		for i := range xs {
			a, b = a+xs[i], b+got[i]
		}
		if len(got) != len(xs) || !slices.IsSorted(got) || math.Abs(a-b) > 1e-6*(1+a) {
			t.Fatalf("%v of %v", got, xs)
		}
	})
}

// Beyond the ends of the lattice no k is known, and none is cut off to be one.
func TestReachHasNoEnds(t *testing.T) {
	p := profile{at: []int{-slowest, 0, slowest}, raw: []float64{2, 10, 50}, rising: []float64{2, 10, 50}}
	for want, end := range map[float64]int{1: -1, 2: -1, 50: 1, 51: 1} {
		if lo, hi := p.reach(want); !math.IsInf(lo, end) && !math.IsInf(hi, end) {
			t.Errorf("%v is reached from %v to %v", want, lo, hi)
		}
	}
	if lo, hi := p.reach(10); lo != 0 || hi != 0 {
		t.Errorf("%v to %v", lo, hi)
	}
}

// flat is a twin on which as many requests violate at every load, a few more at higher ones.
type flat struct{ share float64 }

// Again implements [Twin].
func (flat) Again(context.Context, []int, float64) ([][]int, error) {
	return nil, errors.ErrUnsupported
}

// Long implements [Twin].
func (t flat) Long(_ context.Context, loads []float64, n int) (all [][][]float64, _ error) {
	for _, load := range loads {
		times := make([]float64, n)
		for i := range int(float64(n) * t.share * (1 + load/1000)) {
			times[i] = 2
		}
		all = append(all, [][]float64{times})
	}
	return all, nil
}

// The capacity of a twin that violates the limit at any load is no load far below all that were
// asked, for a long run there would never end.
func TestReplayOfATwinThatAlwaysViolates(t *testing.T) {
	r := newReplayer(t.Context(), &FindConfig{Eps: []float64{0.01}, Level: 0.95, Twin: flat{0.02}}, 3_000)
	if s, ok := r.curve(0, 0.01, 0, []int{0, 20, 40, 60, 80}, r.long); ok || s.Reason == "" {
		t.Errorf("a capacity of %v: %q", s.capacity, s.Reason)
	}
}

// Where a twin has no say, whatever the reason, the interval is that of the counts alone.
func TestReplayWithoutASayChangesNothing(t *testing.T) {
	reasons := map[string]int{}
	for i := range uint64(12) {
		e := &lognormals{k: 1.3, unlike: 0.5}
		c := e.find(t, 0.05, 4_000, i)
		r := c.Replayed
		if r == nil || r.Reason == "" || c.Estimate == 0 {
			continue
		}
		if reasons[r.Reason]++; r.Alone.Load != c.Estimate || r.Alone.Interval != c.Interval {
			t.Errorf("search %d: %.4g, %v, by the counts alone %.4g, %v: %s", i, c.Estimate, c.Interval, r.Alone.Load, r.Alone.Interval, r.Reason)
		}
	}
	if reasons[noNarrower] == 0 {
		t.Errorf("no interval would be no narrower: %v", reasons)
	}
}
