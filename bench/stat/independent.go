package main

import (
	"math"
	"math/rand/v2"
	"slices"

	"pitot/bench/stat/alternative"
	"pitot/internal/stats"
)

func independent() table {
	return table{
		name:   "independent",
		about:  "Intervals and tests on independent samples, where theory says what they do.",
		header: []string{"what", "share", "in theory"},
		reps:   4000,
		rows: func(reps int, seed uint64) (rows [][]string) {
			for _, c := range independentCases() {
				rng := rand.New(rand.NewPCG(seed, 0))
				var t tally
				for range reps {
					t.count(c.holds(rng))
				}
				rows = append(rows, []string{c.what, t.String(), c.theory})
			}
			return rows
		},
	}
}

type independentCase struct {
	what, theory string
	holds        func(*rand.Rand) bool
}

func independentCases() []independentCase {
	return []independentCase{
		{"95 % rank interval holds p50, n = 101", "≥ 95 %", rankCase(101, 0.5)},
		{"95 % rank interval holds p99, n = 1,000", "≥ 95 %", rankCase(1000, 0.99)},
		{"95 % Wilson interval holds a share of 2 %, n = 1,000", "about 95 %", shareCase(alternative.Wilson)},
		{"95 % Clopper-Pearson interval holds it", "≥ 95 %", shareCase(stats.ClopperPearson)},
		{"95 % interval of Hodges-Lehmann holds a shift, 5 + 5 Cauchy", "96.8 %", func(rng *rand.Rand) bool {
			return stats.HodgesLehmann(cauchy(rng, 5, 0), cauchy(rng, 5, 3), 0.95).Contains(3)
		}},
		{"95 % interval of Welch holds a difference, 4 + 8, spreads 3 : 1", "about 95 %", func(rng *rand.Rand) bool {
			d, _ := stats.Welch(normals(rng, 4, 0, 3), normals(rng, 8, 2, 1), 0.95)
			return d.Contains(2)
		}},
		{"TOST passes at the very margin, 5 + 5", "≤ 5 %", func(rng *rand.Rand) bool {
			d, _ := stats.Welch(normals(rng, 5, 0, 0.3), normals(rng, 5, 1, 0.3), 0.95)
			return d.TOST(1) < 0.05
		}},
		{"Holm rejects any of 5 true hypotheses at 5 %", "≤ 5 %", func(rng *rand.Rand) bool {
			ps := make([]float64, 5)
			for i := range ps {
				ps[i] = rng.Float64()
			}
			return slices.Min(stats.Holm(ps)) < 0.05
		}},
		{"Mann-Kendall rises, 12 values without a trend", "≤ 5 %", func(rng *rand.Rand) bool {
			_, z := stats.MannKendall(normals(rng, 12, 0, 1))
			return z > stats.NormalQuantile(0.95)
		}},
		{"Anderson-Darling rejects 200 exponential gaps at 5 %", "5 %", func(rng *rand.Rand) bool {
			_, a2, _ := andersonDarling(exponentials(rng, 200))
			return a2 > stats.AndersonDarling5
		}},
		{"Anderson-Darling rejects 200 gaps of CV 0.71 at 5 %", "high", func(rng *rand.Rand) bool {
			xs, ys := exponentials(rng, 200), exponentials(rng, 200)
			for i := range xs {
				xs[i] += ys[i]
			}
			_, a2, _ := andersonDarling(xs)
			return a2 > stats.AndersonDarling5
		}},
		{"early stopping passes p99 with 1 % over, one look", "≤ 1 %", func(rng *rand.Rand) bool {
			return earlyStop(rng, 662)
		}},
		{"the same with further requests and looks up to 5,000", "≤ 1 %, were it sound", func(rng *rand.Rand) bool {
			return earlyStop(rng, 5000)
		}},
	}
}

func rankCase(n int, p float64) func(*rand.Rand) bool {
	lo, hi := stats.RankInterval(int64(n), p, 0.95)
	return func(rng *rand.Rand) bool {
		below := int64(0) // ranks at or below the true quantile
		for range n {
			if rng.Float64() <= p {
				below++
			}
		}
		return lo <= below && below < hi
	}
}

func shareCase(interval func(hits, n int, phi, level float64) stats.Interval) func(*rand.Rand) bool {
	return func(rng *rand.Rand) bool {
		const n, share = 1000, 0.02
		hits := 0
		for range n {
			if rng.Float64() < share {
				hits++
			}
		}
		return interval(hits, n, 1, 0.95).Contains(share)
	}
}

// earlyStop says whether a look passes although 1 % exceed the limit: one after
// 662 requests, and then one after each number that the bound asks for, given
// what is over by then, as long as that is not above most.
func earlyStop(rng *rand.Rand, most int) bool {
	over, done := 0, 0
	for need := 662; need <= most; {
		for ; done < need; done++ {
			if rng.Float64() < 0.01 {
				over++
			}
		}
		if need, _ = alternative.EarlyStopping(over, 0.99, 0.99); need <= done {
			return true
		}
	}
	return false
}

func normals(rng *rand.Rand, n int, mean, sd float64) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = mean + sd*rng.NormFloat64()
	}
	return out
}

func cauchy(rng *rand.Rand, n int, centre float64) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = centre + math.Tan(math.Pi*(rng.Float64()-0.5))
	}
	return out
}

func exponentials(rng *rand.Rand, n int) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = rng.ExpFloat64()
	}
	return out
}

// andersonDarling is that of gaps in any order.
func andersonDarling(gaps []float64) (a2, adjusted float64, ok bool) {
	mean, _ := stats.Moments(gaps)
	return stats.AndersonDarling(slices.Values(slices.Sorted(slices.Values(gaps))), int64(len(gaps)), mean)
}
