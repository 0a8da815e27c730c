package main

import (
	"fmt"
	"math"
	"math/rand/v2"

	"pitot/bench/stat/queue"
	"pitot/internal/stat"
)

func capacity() table {
	return table{
		name: "capacity",
		about: "The highest utilisation of M/G/32 at which 1 % of TTFTs at most exceed the limit (truth: " + number(trueCapacity) + "), searched from within ±15 %. " +
			"Regression: staircases of five loads ±8 % find the centre, then 16 loads fixed beforehand are measured and fitted by logistic regression; these span the fitted 1 % point ± a half-width, or the fitted 0.3 % to 10 %. " +
			"Bisection: nine probes, a probe passes if its p99 does. " +
			"Holds: the 95 % interval holds the truth. Too high: the one-sided 95 % lower limit (bisection: the answer) is above the truth, or over 2 % above.",
		header: []string{"method", "requests", "answered", "median error", "holds", "too high", "over 2 % too high"},
		reps:   200,
		rows: func(reps int, seed uint64) (rows [][]string) {
			for _, s := range []search{
				{name: "regression, ±8 %", stair: 500, main: 2000, least: 0.08},
				{name: "regression, ±8 %", stair: 1000, main: 4000, least: 0.08},
				{name: "regression, 0.3–10 %", stair: 500, main: 2000},
				{name: "regression, 0.3–10 %", stair: 1000, main: 4000},
			} {
				rows = append(rows, capacityRow(s.name, reps, seed, s.regression))
			}
			for _, n := range []int{1_000, 10_000} {
				rows = append(rows, capacityRow(fmt.Sprintf("bisection, %d a probe", n), reps, seed, bisection(n)))
			}
			return rows
		},
	}
}

// answer is what a search says. Without an interval the estimate is the limit.
type answer struct {
	stat.Inverse
	requests int
}

func capacityRow(name string, reps int, seed uint64, find func(*rand.Rand) answer) []string {
	var answered, holds, high, tooHigh tally
	var errs []float64
	requests := 0
	for r := range reps {
		a := find(rand.New(rand.NewPCG(seed, uint64(r))))
		requests += a.requests
		answered.add(a.Reason == "")
		if a.Reason != "" {
			continue
		}
		errs = append(errs, math.Abs(a.Load/trueCapacity-1))
		holds.addIf(a.Hi > 0, a.Holds(trueCapacity))
		high.add(a.Lower > trueCapacity)
		tooHigh.add(a.Lower > 1.02*trueCapacity)
	}
	stat.SortFloat64(errs)
	return []string{name, fmt.Sprint(requests / reps), answered.String(), fmt.Sprintf("%.1f %%", 100*stat.Percentile(errs, 0.5)),
		holds.String(), high.String(), tooHigh.String()}
}

// probe measures one load.
func probe(load float64, n int, rng *rand.Rand) stat.Share {
	q := queue.New(32, load, rng.Uint64())
	q.Warm(10)
	return stat.Share{Load: load, N: n, Violations: int(average(over(q.TTFTs(n), limit))*float64(n) + 0.5)}
}

func guess(rng *rand.Rand) float64 {
	return trueCapacity * math.Exp(0.15*(2*rng.Float64()-1))
}

// search is a design of a regression.
type search struct {
	name        string
	stair, main int     // requests a load
	least       float64 // half-width of the main loads in ln; 0: from fitted shares
}

// slope is what is known of violations beforehand: they rise steeply.
func slope() stat.Prior { return stat.Prior{Mean: 25, SD: 25} }

func (s search) regression(rng *rand.Rand) answer {
	fit, requests := s.centre(rng)
	at := fit.LoadAt(epsilon, 0.95, 0.05).Load
	if at == 0 {
		return answer{stat.Inverse{Reason: "no centre"}, requests}
	}
	lowest, highest := math.Log(at)-s.least, math.Log(at)+s.least
	if s.least == 0 {
		lowest, highest = math.Log(fit.LoadAt(0.003, 0.95, 0.05).Load), math.Log(fit.LoadAt(0.1, 0.95, 0.05).Load)
		if half := (highest - lowest) / 2; half < 0.04 || half > 0.08 { // in proportion
			scale := min(0.08, max(0.04, half)) / half
			lowest, highest = math.Log(at)-scale*(math.Log(at)-lowest), math.Log(at)+scale*(highest-math.Log(at))
		}
	}
	const loads = 16
	var points []stat.Share
	for i := range loads {
		points = append(points, probe(math.Exp(lowest+(highest-lowest)*float64(i)/(loads-1)), s.main, rng))
	}
	return answer{stat.FitLogistic(points, slope()).LoadAt(epsilon, 0.95, 0.05), requests + loads*s.main}
}

// centre climbs staircases until they lie around the limit, and gives the fit
// of them all.
func (s search) centre(rng *rand.Rand) (fit stat.Logistic, requests int) {
	c := guess(rng)
	var points []stat.Share
	for range 6 {
		above, below := false, false
		for i := -2; i <= 2; i++ {
			p := probe(c*math.Exp(0.04*float64(i)), s.stair, rng)
			points = append(points, p)
			requests += p.N
			violating := float64(p.Violations) / float64(p.N)
			above = above || violating > 2*epsilon
			below = below || violating < epsilon
		}
		fit = stat.FitLogistic(points, slope())
		shift := 0.08
		if at := fit.LoadAt(epsilon, 0.95, 0.05).Load; at > 0 {
			shift = min(0.16, max(-0.16, math.Log(at/c)))
		} else if above {
			shift = -shift
		}
		c *= math.Exp(shift)
		if math.Abs(shift) < 0.05 && above && below {
			break
		}
	}
	return fit, requests
}

// bisection halves a bracket by whether p99 meets the limit.
func bisection(n int) func(*rand.Rand) answer {
	return func(rng *rand.Rand) answer {
		c := guess(rng)
		low, high := c*math.Exp(-0.3), c*math.Exp(0.3)
		const probes = 9
		for range probes {
			middle := math.Sqrt(low * high)
			if p := probe(middle, n, rng); float64(p.Violations) <= epsilon*float64(n) {
				low = middle
			} else {
				high = middle
			}
		}
		return answer{stat.Inverse{Load: low, Lower: low}, probes * n}
	}
}
