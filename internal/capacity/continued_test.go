package capacity

import (
	"math"
	"math/rand/v2"
	"testing"
)

// A search goes on: on the same launch as one search of all requests, without a bracket of
// its own; over restarts its interval is of launches like those seen, and as wide as what
// they differ by.
func TestFindGoesOn(t *testing.T) {
	const reps, capacity, spread = 10, 37.0, 0.035
	held := map[bool]int{}
	went, short := 0, 0 // searches that go on from an estimate, those of them without a bracket
	for r := range reps {
		rng := rand.New(rand.NewPCG(3, uint64(r)))
		for _, restart := range []bool{false, true} {
			var earlier []Step
			before := 0. // the estimate of the search before
			for k := range 3 {
				c := FindConfig{Eps: []float64{0.01}, Residence: 0.5, Budget: Budget{Requests: 25_000}, Seed: rng.Uint64(), Earlier: earlier}
				of := truthAt(capacity)
				if restart {
					c.Launch, of = k, truthAt(capacity*math.Exp(spread*rng.NormFloat64()))
				}
				of.rng = rng
				got, err := Find(t.Context(), c, of.probe)
				if err != nil || got.Requests > c.Budget.Requests {
					t.Fatalf("%v, %d requests", err, got.Requests)
				}
				if before > 0 {
					went++
					count(&short, got.Trail[len(earlier)].Stage != Light)
				}
				width := math.Log(got.Interval.Hi / got.Interval.Lo)
				switch {
				case k < 2 || got.Estimate == 0:
				case restart:
					if got.Launches > 1 && width < 2*launchSpread {
						t.Errorf("of %d launches: %v, %s", got.Launches, got.Interval, got.Label)
					}
				default:
					if got.Launches != 1 || got.Label != ThisLaunch {
						t.Errorf("of %d launches: %v, %s", got.Launches, got.Interval, got.Label)
					}
				}
				if k == 2 && got.Interval.Contains(capacity) {
					held[restart]++
				}
				earlier, before = got.Trail, got.Estimate
			}
		}
	}
	if went < reps || 5*short < 4*went {
		t.Errorf("%d of %d searches went on without a bracket", short, went)
	}
	if least := reps * 80 / 100; held[false] < least || held[true] < least {
		t.Errorf("of %d intervals each %v hold", reps, held)
	}
}
