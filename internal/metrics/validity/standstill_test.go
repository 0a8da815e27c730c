package validity

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pitot/internal/results/result"
)

// stoodStill measures requests that are sent at a rate and answered 30 ms later.
func stoodStill(rate float64, seconds int, seed uint64, stop func(t int64) int64) *result.Standstills {
	return stoodStillAt(poisson(rate, seconds, seed), 30e6, seconds, stop)
}

// poisson are the times of arrivals at a rate.
func poisson(rate float64, seconds int, seed uint64) (times []int64) {
	rng := rand.New(rand.NewPCG(seed, 1))
	for at := rng.ExpFloat64() / rate; at < float64(seconds); at += rng.ExpFloat64() / rate {
		times = append(times, int64(at*1e9))
	}
	return times
}

// stoodStillAt measures requests of 50 tokens, one each 10 ms, the first so long
// after each was sent; stop holds back whatever would come at a time.
func stoodStillAt(sends []int64, ttft int64, seconds int, stop func(t int64) int64) *result.Standstills {
	c := Conditions{T1: int64(seconds) * 1e9, Load: result.Load{Loop: "closed"}}
	var chunks Arrivals
	var cohort []Times
	for _, sent := range sends {
		q := Times{Due: sent, Sent: sent}
		for i := range int64(50) {
			t := stop(sent + ttft + i*10e6)
			if i == 0 {
				q.First = t
			}
			q.Last, q.Done = t, t
			if c.InWindow(t) {
				chunks.Add(t)
			}
		}
		if c.InWindow(sent) {
			cohort = append(cohort, q)
		}
	}
	return chunks.FindStandstills(&c, slices.Values(cohort))
}

// each stops everything for so long, again and again.
func each(period, length int64) func(int64) int64 {
	return func(t int64) int64 {
		if from := t / period * period; t-from < length {
			return from + length
		}
		return t
	}
}

// A pause by the clock is found, with its period and its length.
func TestStandstills(t *testing.T) {
	for _, c := range []struct{ every, length, rate float64 }{{1, .05, 4}, {1, .05, 1}, {.5, .06, 4}, {3.7, .2, 1.5}, {1, .05, 10}, {1, .05, 100}} {
		s := stoodStill(c.rate, 60, 1, each(int64(c.every*1e9), int64(c.length*1e9)))
		if s == nil {
			t.Errorf("%+v: not found", c)
			continue
		}
		if math.Abs(s.EveryS-c.every) > .02*c.every || math.Abs(s.ForMS-1e3*c.length) > 12 || s.N < leastStands {
			t.Errorf("%+v: %+v", c, *s)
		}
	}
}

// Without one, and with pauses that come by chance, nothing is said.
func TestNoStandstills(t *testing.T) {
	seeds := uint64(40)
	if testing.Short() { // the race detector is slow
		seeds = 4
	}
	for seed := range seeds {
		if s := stoodStill(1+float64(seed%10), 60, seed, func(t int64) int64 { return t }); s != nil {
			t.Errorf("seed %d: %+v of a steady server", seed, *s)
		}
		rng := rand.New(rand.NewPCG(seed, 2))
		var pauses []int64
		for at := 0.0; at < 70; at += rng.ExpFloat64() {
			pauses = append(pauses, int64(at*1e9))
		}
		irregular := func(t int64) int64 {
			for _, p := range pauses {
				if t >= p && t < p+60e6 {
					t = p + 60e6
				}
			}
			return t
		}
		if s := stoodStill(3, 60, seed, irregular); s != nil {
			t.Errorf("seed %d: %+v of pauses by chance", seed, *s)
		}
	}
}

// Where prompts are always waited for it is found too, unless they may be the
// cause: those that come by the clock hold up all others likewise.
func TestStandstillsAmongPrompts(t *testing.T) {
	seeds := uint64(20)
	if testing.Short() { // the race detector is slow
		seeds = 4
	}
	found := uint64(0)
	for seed := range seeds {
		for _, rate := range []float64{4, 12} {
			sends := poisson(rate, 30, seed)
			if s := stoodStillAt(sends, 400e6, 30, each(1e9, 60e6)); s != nil && math.Abs(s.EveryS-1) < .02 {
				found++
			}
			for k := range int64(29) {
				sends = append(sends, k*1e9+500e6)
			}
			slices.Sort(sends)
			prompts := func(t int64) int64 { // sent at 500 ms, computed from 510 to 580 ms
				if in := t % 1e9; in > 510e6 && in < 580e6 {
					return t - in + 580e6
				}
				return t
			}
			if s := stoodStillAt(sends, 80e6, 30, prompts); s != nil {
				t.Errorf("seed %d, %v requests/s: %+v of prompts by the clock", seed, rate, *s)
			}
		}
	}
	// Prompts that take two steps: the second begins long after its request was sent.
	var sends []int64
	for k := range int64(60) {
		sends = append(sends, k*500e6)
	}
	steps := func(t int64) int64 {
		for _, step := range [][2]int64{{100e6, 130e6}, {140e6, 200e6}} {
			if in := t % 500e6; in > step[0] && in < step[1] {
				return t - in + step[1]
			}
		}
		return t
	}
	if s := stoodStillAt(sends, 200e6, 30, steps); s != nil {
		t.Errorf("%+v of prompts in two steps", *s)
	}
	if found < 2*seeds*8/10 {
		t.Errorf("found in %d of %d", found, 2*seeds)
	}
}

// A stamp far outside takes no memory.
func TestArrivalsAreBounded(t *testing.T) {
	var a Arrivals
	a.Add(math.MaxInt64)
	a.Add(-1)
	if len(a.bins) > 0 {
		t.Errorf("%d words", len(a.bins))
	}
	for s := range a.eachSilence(math.MaxInt) {
		t.Errorf("a silence of nothing: %v", s)
	}
}

// A period shows among many standstills of which some are missing and some are others.
func TestPeriodOfMany(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 1))
	var stands []silence
	for i := range 3_000 {
		if at := 500 * i; rng.Float64() < .93 {
			stands = append(stands, silence{at + rng.IntN(4), at + 40})
		} else if rng.Float64() < .5 {
			stands = append(stands, silence{at + rng.IntN(400), at + 420})
		}
	}
	s, _ := periodicStandstills(stands, 500*3_000)
	if s == nil || math.Abs(s.EveryS/(500*float64(1<<quietShift)/1e9)-1) > .01 {
		t.Errorf("%+v", s)
	}
}

// A long run that stands still 20,000 times at random: asking each time between two of
// all others took 25 s.
func BenchmarkPeriodic(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 1))
	var stands []silence
	at := 0
	for range 20_000 {
		at += 20 + rng.IntN(2_400)
		stands = append(stands, silence{at, at + 8 + rng.IntN(60)})
	}
	for b.Loop() {
		if s, _ := periodicStandstills(stands, at); s != nil {
			b.Fatal(s)
		}
	}
}

// Silences are the stretches between bins with a chunk, however far apart these are, and
// none behind the window.
func TestSilences(t *testing.T) {
	dice := rand.New(rand.NewPCG(1, 1))
	for range 200 {
		var a Arrivals
		bins, came := dice.IntN(400), map[int]bool{}
		for range dice.IntN(40) {
			i := dice.IntN(500)
			came[i] = true
			a.Add(int64(i) << quietShift)
		}
		var want []silence
		from := 0
		for i := range bins {
			if came[i] {
				if i > from {
					want = append(want, silence{from, i})
				}
				from = i + 1
			}
		}
		if got := slices.Collect(a.eachSilence(bins)); !slices.Equal(got, want) {
			t.Fatalf("%d bins: %v, want %v", bins, got, want)
		}
	}
}
