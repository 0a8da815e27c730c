package main

import (
	"math"
	"math/rand/v2"
	"testing"
)

// The error to expect holds on four fifths of the loads of a further system, or
// somewhat more, whatever systems have in common and however many loads each has.
func TestExpectedHolds(t *testing.T) {
	dice := rand.New(rand.NewPCG(1, 2))
	for _, k := range []int{5, 8, 16} {
		for _, bias := range []float64{0, 0.5, 2} { // of systems, in units of what their loads scatter
			draw := func() []float64 {
				b, e := bias*dice.NormFloat64(), make([]float64, 3+dice.IntN(30))
				for i := range e {
					e[i] = 0.1 * math.Abs(b+dice.NormFloat64())
				}
				return e
			}
			const trials = 2000
			held := 0.0
			for range trials {
				var known [][]float64
				for range k {
					known = append(known, draw())
				}
				limit, next, n := expected(known, k), draw(), 0
				for _, v := range next {
					if v <= limit {
						n++
					}
				}
				held += float64(n) / float64(len(next)) / trials
			}
			if held < 0.8 || held > 0.9 {
				t.Errorf("%d systems that differ by %v: it holds on %.1f %% of a further system's loads", k, bias, 100*held)
			}
		}
	}
}
