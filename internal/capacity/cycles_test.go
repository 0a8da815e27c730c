package capacity

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"pitot/internal/results/result"

	"pitot/internal/stats"
)

// slowly is a target whose arrivals are three times as many for one part in ten of the time:
// then requests violate the more the higher the load, and else none does below twice the
// capacity. A window that is shorter than the turns has one of the rates.
type slowly struct {
	cycle, capacity float64 // seconds, and the load at which one in a hundred violates
	rng             *rand.Rand
}

func (t *slowly) probe(_ context.Context, p Probe) (Seen, error) {
	s := Seen{Load: p.Load, N: p.Requests, Violations: []int{0}, Blocks: [][]int{make([]int, p.Blocks)}, JointBlock: make([]int, p.Blocks), Residence: 0.5, Stability: stats.Undecided}
	s.Seconds = (p.Residences+1)*p.Residence + float64(p.Requests)/p.Load
	many := t.rng.Float64() < 0.1
	left := t.rng.ExpFloat64() * t.turn(many)
	share := 0.1 * math.Pow(p.Load/t.capacity, 8)
	for i := range p.Requests {
		for left -= 1 / p.Load; left < 0; left += t.rng.ExpFloat64() * t.turn(many) {
			many = !many
		}
		if (many || p.Load > 2*t.capacity) && t.rng.Float64() < share {
			s.Violations[0]++
			s.Blocks[0][i*p.Blocks/p.Requests]++
		}
	}
	return s, nil
}

func (t *slowly) turn(many bool) float64 {
	if many {
		return 0.1 * t.cycle
	}
	return 0.9 * t.cycle
}

// Where arrivals take turns no bound rests on windows that are shorter than these, and it is
// said how long it would take; with the time for it there are bounds, and they hold.
func TestFindWaitsForSlowArrivals(t *testing.T) {
	search := func(cycle, seconds float64, seed uint64) Found {
		of := &slowly{cycle, 20, rand.New(rand.NewPCG(4, seed))}
		c := FindConfig{Eps: []float64{0.01}, Residence: 0.5, Traffic: Traffic{Cycle: cycle}, Budget: Budget{Seconds: seconds}, Seed: seed}
		got, err := Find(t.Context(), c, of.probe)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	bounded, looked := 0, 0
	for seed := range uint64(8) {
		got := search(1800, 3600, seed)
		if got.AtLeast != 0 || got.AtMost != 0 || got.Estimate != 0 || got.Floor.Lower > 0 || got.Reason.Code != result.ArrivalsTurnSlowly || got.Reason.Seconds != 1800 || got.Reason.Low != 17.5*3600 || got.Reason.High != 23*3600 {
			t.Errorf("an hour of turns of half an hour: %v to %v, %v, %v", got.AtLeast, got.AtMost, got.Estimate, got.Reason)
		}
		if len(got.Trail) > 0 {
			t.Errorf("%d loads were measured though nothing could be said", len(got.Trail))
		}
		got = search(180, 3600, seed) // twenty cycles take all of it
		if got.AtLeast != 0 || got.AtMost != 0 || len(got.Trail) > 0 || got.Reason.Code != result.ArrivalsTurnSlowly || got.Reason.Low != 105*60 {
			t.Errorf("an hour of turns of three minutes: %v to %v, %d loads, %v", got.AtLeast, got.AtMost, len(got.Trail), got.Reason)
		}
		// With little more than the cycles of a look they are kept for it, and no load far beyond
		// the limit is measured that nothing can rest on.
		got = search(90, 3600, seed)
		if got.AtLeast > 20 || got.AtMost > 0 && got.AtMost < 20 {
			t.Errorf("an hour of turns of 90 s: %v to %v of 20", got.AtLeast, got.AtMost)
		}
		if got.AtLeast > 0 || got.Estimate > 0 {
			looked++
		}
		for _, s := range got.Trail {
			if s.Load > 100 {
				t.Errorf("turns of 90 s: %v/s is measured", s.Load)
			}
		}
		got = search(10, 3600, seed)
		if got.AtLeast > 20 || got.AtMost > 0 && got.AtMost < 20 {
			t.Errorf("%v to %v of 20", got.AtLeast, got.AtMost)
		}
		if got.AtLeast > 0 && got.AtMost > 0 {
			bounded++
		}
	}
	if looked < 7 {
		t.Errorf("%d of 8 searches with time for a look have an answer", looked)
	}
	if bounded < 6 {
		t.Errorf("%d of 8 searches of an hour have both bounds", bounded)
	}
}

// A sweep claims nothing either of windows that are shorter than the turns.
func TestInCycles(t *testing.T) {
	f := newSearch(t.Context(), FindConfig{Eps: []float64{0.01}, Residence: 1, Traffic: Traffic{Cycle: 30}}, nil)
	if n := f.inCycles(2, 10); n != 600 {
		t.Errorf("%d requests in two cycles, want 600", n)
	}
	f.cfg.Closed = true
	if n := f.inCycles(2, 10); n != 0 {
		t.Errorf("%d requests of users, who have no arrivals", n)
	}
}
