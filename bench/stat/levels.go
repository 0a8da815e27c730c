package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"pitot/bench/stat/queue"
	"pitot/internal/stats"
)

// levels is the test that tells a server that is slower at some times of a long window from
// one that is always alike.
func levels() table {
	return table{
		name: "levels",
		about: "How often twelve stretches of a long window are said to differ, in TTFT or in E2E (each at 0.25 %, as a report has it, beside how many requests were in flight when each came), in M/G/c queues: 1, 4 and 16 servers; " +
			"services of coefficient of variation 1, 0.3 and 2 with Poisson arrivals, and of 1 with arrivals in bursts (gamma(0.25)); windows of so many times what a request takes alone, of up to 9,000 requests. " +
			"The constants were chosen on one half of these systems; this is the other. Alike: the server is, so it is a false alarm. Worst: the most of a system. " +
			"×1.3 and ×2: services take so many times as long at the slowest time as at the quickest, one sine over the window. Phases: the logarithm of that is an Ornstein-Uhlenbeck process of deviation 0.3 that remembers for a sixth of the window.",
		header: []string{"window", "utilisation", "alike", "worst", "×1.3", "×2", "phases"},
		reps:   100,
		slow:   true,
		rows: func(reps int, seed uint64) (rows [][]string) {
			for _, window := range []float64{360, 1200, 3600} {
				for _, u := range []float64{0.15, 0.3, 0.5, 0.7, 0.85, 0.95} {
					var systems []queueSystem
					for _, s := range intervalSystems() {
						if s.window == 100 && s.servers <= 16 && window*u*float64(s.servers) <= 9000 {
							systems = append(systems, s)
						}
					}
					found := make([]levelsFound, len(systems))
					together(len(systems), func(i int) {
						for r := range reps {
							found[i].look(systems[i], u, window, seed+uint64(i)<<32+uint64(r))
						}
					})
					var all levelsFound
					worst := 0.0
					for _, f := range found {
						for k := range f.swings {
							all.swings[k].Held, all.swings[k].Of = all.swings[k].Held+f.swings[k].Held, all.swings[k].Of+f.swings[k].Of
						}
						if f.swings[0].Of >= reps/2 {
							worst = max(worst, float64(f.swings[0].Held)/float64(f.swings[0].Of))
						}
					}
					rows = append(rows, []string{number(window), number(u), all.swings[0].String(), fmt.Sprintf("%.0f %%", 100*worst), all.swings[1].String(), all.swings[2].String(), all.swings[3].String()})
				}
			}
			return rows
		},
	}
}

// levelsFound is what came of the windows of a system, by how the server's speed goes: alike,
// by 1.3, by 2, in phases.
type levelsFound struct{ swings [4]tally }

// look takes a window of each. One with too few requests in a stretch counts nowhere.
func (f *levelsFound) look(s queueSystem, utilisation, window float64, seed uint64) {
	for k := range f.swings {
		q := queue.NewOf(s.law, s.servers, utilisation, seed)
		q.Warm(30)
		q.Rest()
		switch k {
		case 1, 2:
			log := math.Log([]float64{1.3, 2}[k-1]) / 2
			q.Slower = func(at float64) float64 { return math.Exp(log * (math.Sin(2*math.Pi*at/window) - 1)) }
		case 3:
			rng := rand.New(rand.NewPCG(seed, 1))
			const spread, grains = 0.3, 32
			x, now := rng.NormFloat64(), 0.0
			q.Slower = func(at float64) float64 {
				for ; now < at; now += window / 6 / grains {
					x = math.Exp(-1./grains)*x + math.Sqrt(-math.Expm1(-2./grains))*rng.NormFloat64()
				}
				return math.Exp(spread * (x - 1))
			}
		}
		const stretches = 12
		var ttft, e2e, beside [stretches][]float64
		var jobs []queue.Job
		var ends []float64
		for j := q.Next(); j.Arrival < window; j = q.Next() {
			jobs, ends = append(jobs, j), append(ends, max(j.End, j.Arrival+j.TTFT))
		}
		slices.Sort(ends)
		ended := 0
		for n, j := range jobs {
			for ended < len(ends) && ends[ended] <= j.Arrival {
				ended++
			}
			i := int(j.Arrival / window * stretches)
			ttft[i], e2e[i], beside[i] = append(ttft[i], j.TTFT), append(e2e[i], j.End-j.Arrival), append(beside[i], float64(n-ended))
		}
		p, ok := stats.LevelsDiffer(ttft[:], beside[:])
		if !ok {
			continue
		}
		other, _ := stats.LevelsDiffer(e2e[:], beside[:])
		f.swings[k].count(min(p, other) < 0.0025)
	}
}
