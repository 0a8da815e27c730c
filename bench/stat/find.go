package main

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"

	"pitot/internal/capacity"
	"pitot/internal/stats"
)

const findAbout = "The highest rate at which 1 % of requests at most violate each limit, searched by search.Find with a budget of requests in windows, from nothing but the time of a request alone. " +
	"Answered: there is an estimate. Error: median of |estimate ÷ truth − 1|. Half-width: median, of the 95 % interval. Holds: the interval holds the truth. " +
	"Quoted: the lower limit passed a long look. Too high: of the quotes, above the truth, or over 2 % above. Quote: median, ÷ truth. Bounds: both hold the truth, or there are none. " +
	"Bisection halves a bracket of ±30 % nine times by whether a probe's p99 passes; its answer is quoted."

func findHeader() []string {
	return []string{"system", "budget", "used", "answered", "error", "half-width", "holds", "quoted", "quote", "too high", "over 2 % too high", "bounds"}
}

// find is on the queue alone, which is fast.
func find() table {
	return table{
		name: "find", about: findAbout, header: findHeader(), reps: 300,
		rows: func(reps int, seed uint64) [][]string {
			return findRows(systems()[:1], []int{10_000, 20_000, 40_000, 80_000, 160_000}, []int{10_000, 30_000}, reps, seed, 1)
		},
	}
}

// findTwins are the same on the twin, a table for each system.
func findTwins() (tables []table) {
	for _, s := range systems()[1:] {
		t := find()
		t.name, t.slow, t.reps = "find-"+strings.ReplaceAll(s.name, " ", "-"), true, 100
		t.about += " The system is the twin in virtual time, " + s.about + ". Bisection has a quarter of the repetitions."
		t.rows = func(reps int, seed uint64) [][]string {
			return findRows([]system{s}, []int{10_000, 40_000, 80_000}, []int{10_000}, reps, seed, 4)
		}
		tables = append(tables, t)
	}
	return tables
}

func findRows(of []system, budgets, bisections []int, reps int, seed uint64, fewer int) (rows [][]string) {
	for _, s := range of {
		for _, budget := range budgets {
			rows = append(rows, piece(fmt.Sprintf("find %s %v %d %d %d", s.about, s.capacity, budget, reps, seed), func() []string { return findRow(s, budget, reps, seed) }))
		}
		for _, n := range bisections {
			rows = append(rows, piece(fmt.Sprintf("bisection %s %v %d %d %d", s.about, s.capacity, n, reps, seed), func() []string { return bisectionRow(s, n, max(1, reps/fewer), seed) }))
		}
	}
	return rows
}

// searches does so many of a system, each with a budget of requests.
// ofWork stands for the budget of a search on sim:, in which the loads that are fitted are
// counted and not recorded; workRequests is how many requests it pays to record.
const ofWork, workRequests = -1, 40_000

func searches(s system, budget, reps int, seed uint64) []capacity.Found {
	found := make([]capacity.Found, reps)
	together(reps, func(r int) {
		rng := rand.New(rand.NewPCG(seed, uint64(r)))
		cfg := capacity.FindConfig{Eps: s.eps(), Residence: s.residence, Sessions: s.sessions, Traffic: s.traffic, Budget: capacity.Budget{Requests: budget}, Seed: rng.Uint64()}
		if budget == ofWork { // that of sim:, where recording a request takes 1
			cfg.Budget, cfg.Count = capacity.Budget{Requests: capacity.EnoughRequests, Work: workRequests}, true
		}
		took := func(p capacity.Probe, seen capacity.Seen, drain float64) capacity.Seen {
			sent := float64(p.Requests) + (p.Residences+drain)*p.Residence*cfg.Rate(p.Load, p.Takes)
			if seen.Sent, seen.Work = int(sent), sent; p.Counted {
				seen.Work *= capacity.CountedWork
			}
			return seen
		}
		c, err := capacity.Find(context.Background(), cfg, func(_ context.Context, p capacity.Probe) (capacity.Seen, error) {
			return took(p, s.probe(p, rng.Uint64()), capacity.Drain), nil
		})
		if err != nil {
			panic(err)
		}
		found[r] = c
	})
	return found
}

func findRow(s system, budget, reps int, seed uint64) []string {
	var answered, holds, quoted, high, tooHigh, bracket tally
	var errs, widths, quotes, used []float64
	for _, c := range searches(s, budget, reps, seed) {
		used = append(used, float64(c.Requests))
		bracket.count(c.AtLeast <= s.capacity && (c.AtMost == 0 || s.capacity <= c.AtMost))
		answered.count(c.Estimate > 0)
		if c.Estimate > 0 {
			errs = append(errs, math.Abs(c.Estimate/s.capacity-1))
			widths = append(widths, (c.Interval.Hi-c.Interval.Lo)/2/c.Estimate)
			holds.count(c.Interval.Contains(s.capacity))
		}
		quoted.count(c.Quote > 0)
		if c.Quote > 0 {
			quotes = append(quotes, c.Quote/s.capacity)
			high.count(c.Quote > s.capacity)
			tooHigh.count(c.Quote > 1.02*s.capacity)
		}
	}
	return []string{
		s.name, fmt.Sprint(budget), fmt.Sprintf("%.0f", median(used)), answered.String(), percent(errs), percent(widths), holds.String(),
		quoted.String(), percent(quotes), high.String(), tooHigh.String(), bracket.String(),
	}
}

// bisectionRow is what most tools do.
func bisectionRow(s system, n, reps int, seed uint64) []string {
	const probes = 9
	answers := make([]float64, reps)
	together(reps, func(r int) {
		rng := rand.New(rand.NewPCG(seed, uint64(r)))
		c := s.capacity * math.Exp(0.15*(2*rng.Float64()-1))
		low, high := c*math.Exp(-0.3), c*math.Exp(0.3)
		for range probes {
			middle := math.Sqrt(low * high)
			p := s.probe(capacity.Probe{Load: middle, Requests: n, Residences: capacity.Warmup, Residence: s.residence * 1.5, Blocks: 1}, rng.Uint64())
			if float64(slices.Max(p.Violations)) <= s.allowed*float64(n) {
				low = middle
			} else {
				high = middle
			}
		}
		answers[r] = low
	})
	var high, tooHigh tally
	var errs, quotes []float64
	for _, a := range answers {
		errs, quotes = append(errs, math.Abs(a/s.capacity-1)), append(quotes, a/s.capacity)
		high.count(a > s.capacity)
		tooHigh.count(a > 1.02*s.capacity)
	}
	return []string{s.name, fmt.Sprintf("bisection, %d a probe", n), fmt.Sprint(probes * n), "100 %", percent(errs), "none", "none", "100 %", percent(quotes), high.String(), tooHigh.String(), "none"}
}

// verification is how often one load passes.
func verification() table {
	return table{
		name: "verify",
		about: "Does the SLO of M/G/32 hold at this load? search.Verify, with two thirds of the requests at the load and the rest at +5 and +10 % for the over-dispersion, of few requests at twice the load and at +10 %. " +
			"Next to it what the first window alone would say: its ten blocks' upper limit at 95 %, and whether its p99 passes.",
		header: []string{"load ÷ capacity", "requests", "passed", "refuted", "ten blocks pass", "p99 passes"},
		reps:   300,
		rows: func(reps int, seed uint64) (rows [][]string) {
			s := systems()[0]
			for _, n := range []int{1_500, 3_000, 10_000, 30_000} {
				for _, at := range []float64{0.4, 0.85, 0.9, 0.95, 1, 1.03, 1.1} {
					rows = append(rows, verifyRow(s, at, n, reps, seed))
				}
			}
			return rows
		},
	}
}

// verificationAtCapacity is how often a load passes that no smaller one would have to.
func verificationAtCapacity() table {
	return table{
		name: "verify-capacity",
		about: "Of how many searches a load passes that is exactly the capacity, by search.Verify with so many requests in all, on the systems of `bounds`: 5 % may. " +
			"Each row is a system, and last the mean.",
		header: []string{"system", "1500", "3000", "7500", "15000", "30000"},
		reps:   80,
		rows: func(reps int, seed uint64) (rows [][]string) {
			budgets, all := []int{1_500, 3_000, 7_500, 15_000, 30_000}, make([]tally, 5)
			for _, s := range bounded() {
				if s.capacity == 0 || s.sessions != (capacity.Sessions{}) {
					continue
				}
				row := []string{s.name}
				for i, n := range budgets {
					passed := make([]bool, reps)
					together(reps, func(r int) {
						rng := rand.New(rand.NewPCG(seed, uint64(r)))
						c, err := capacity.Verify(context.Background(), capacity.FindConfig{Eps: s.eps(), Residence: s.residence, Traffic: s.traffic, Budget: capacity.Budget{Requests: n}}, s.capacity,
							func(_ context.Context, p capacity.Probe) (capacity.Seen, error) { return s.probe(p, rng.Uint64()), nil })
						if err != nil {
							panic(err)
						}
						passed[r] = c.Verified.Passed
					})
					var one tally
					for _, p := range passed {
						one.count(p)
						all[i].count(p)
					}
					row = append(row, one.String())
				}
				rows = append(rows, row)
			}
			last := []string{"all"}
			for i := range all {
				last = append(last, all[i].String())
			}
			return append(rows, last)
		},
	}
}

func verifyRow(s system, at float64, n, reps int, seed uint64) []string {
	var passed, refuted, blocks, p99 tally
	for r := range reps {
		rng := rand.New(rand.NewPCG(seed, uint64(r)))
		c, err := capacity.Verify(context.Background(), capacity.FindConfig{Eps: s.eps(), Residence: s.residence, Budget: capacity.Budget{Requests: n}}, at*s.capacity,
			func(_ context.Context, p capacity.Probe) (capacity.Seen, error) { return s.probe(p, rng.Uint64()), nil })
		if err != nil {
			panic(err)
		}
		passed.count(c.Verified.Passed)
		refuted.count(c.Verified.Refuted)
		long := slices.IndexFunc(c.Trail, func(s capacity.Step) bool { return s.Stage == capacity.Verifying })
		if long < 0 { // refuted by short looks
			blocks.count(false)
			p99.count(false)
			continue
		}
		first := c.Trail[long].Seen
		means := make([]float64, len(first.Blocks[0]))
		for i, b := range first.Blocks[0] {
			means[i] = float64(b) * float64(len(means)) / float64(first.N)
		}
		m, sd := stats.Moments(means)
		k := float64(len(means))
		blocks.count(m+stats.StudentQuantile(0.95, k-1)*sd/math.Sqrt(k) <= epsilon)
		p99.count(m <= epsilon)
	}
	return []string{number(at), fmt.Sprint(n), passed.String(), refuted.String(), blocks.String(), p99.String()}
}

// truth is where the true capacities of systems come from.
func truth() table { return truthOf("truth", systems()) }

// boundedTruth is the same of those that bounds are asked of.
func boundedTruth() table { return truthOf("truth-bounds", append(bounded(), boundedTwins()...)) }

func truthOf(name string, of []system) table {
	return table{
		name: name, slow: true, reps: 200_000,
		about: "The capacity of each system by nine loads ±4 % (±12 % where violations rise slowly), put around it beforehand by a tenth and then all of the requests. " +
			"The repetitions are the requests at each.",
		header: []string{"system", "capacity", "95 % interval", "slope", "φ", "in systems()"},
		rows: func(n int, seed uint64) (rows [][]string) {
			for _, s := range of {
				if s.capacity == 0 {
					continue
				}
				rows = append(rows, piece(fmt.Sprintf("truth %s %v %d %d", s.about, s.capacity, n, seed), func() []string {
					at, fit := s.measuredCapacity(n, seed)
					return []string{s.name, number(at.Load), fmt.Sprintf("%.4g to %.4g", at.Lo, at.Hi), fmt.Sprintf("%.0f", fit.B), fmt.Sprintf("%.0f", fit.Phi), number(s.capacity)}
				}))
			}
			return rows
		},
	}
}

// measuredCapacity goes from what is written of a system to where its capacity is.
func (s system) measuredCapacity(n int, seed uint64) (_ stats.Inverse, fit stats.Logistic) {
	centre, step := s.capacity, 0.03
	const rounds = 8 // beforehand
	for round := 0; round <= rounds; round++ {
		requests := n / 10
		if round == rounds {
			requests = n
		}
		loads, seen := make([]float64, 9), make([]capacity.Seen, 9)
		together(len(loads), func(i int) {
			loads[i] = centre * math.Exp(step*float64(i-4))
			seen[i] = s.probe(capacity.Probe{Load: loads[i], Requests: requests, Residences: 50, Residence: (&capacity.FindConfig{Sessions: s.sessions}).MemoryTime(s.residence), Blocks: 1}, seed+uint64(100*round+i))
		})
		at, over := stats.Inverse{}, false // of the limit that is reached first
		for l := range s.limits {
			points := make([]stats.Share, len(loads))
			for i := range loads {
				points[i] = stats.Share{Load: loads[i], Violations: seen[i].Violations[l], N: requests}
			}
			over = over || points[4].Violations > int(s.allowed*float64(requests))
			of := stats.FitLogistic(points, stats.Prior{})
			if x := of.LoadAt(s.allowed, 0.95, 0.05); x.Load > 0 && (at.Load == 0 || x.Load < at.Load) {
				at, fit = x, of
			}
		}
		if round == rounds {
			return at, fit
		}
		switch {
		case at.Load > 0:
			shift := math.Log(at.Load / centre)
			centre *= math.Exp(max(-4*step, min(4*step, shift)))
			if math.Abs(shift) < step && round > 0 {
				round = rounds - 1
			}
		case over:
			centre *= math.Exp(-4 * step)
		default:
			centre *= math.Exp(4 * step)
		}
		if fit.B > 12 {
			step = 0.01
		}
	}
	panic("no round was the last")
}

// together calls do for 0 to n−1 on all processors.
func together(n int, do func(i int)) {
	var group sync.WaitGroup
	for w := range runtime.GOMAXPROCS(0) {
		group.Go(func() {
			for i := w; i < n; i += runtime.GOMAXPROCS(0) {
				do(i)
			}
		})
	}
	group.Wait()
}

func median(xs []float64) float64 {
	stats.SortFloat64(xs)
	return stats.Percentile(xs, 0.5)
}

func percent(xs []float64) string {
	if len(xs) == 0 {
		return "none"
	}
	return fmt.Sprintf("%.1f %%", 100*median(xs))
}
