package main

import (
	"fmt"
	"math/rand/v2"

	"pitot/bench/stat/queue"
	"pitot/internal/stats"
)

// floors is how often a search says that no load meets the limit, of servers where that is
// so and of others.
func floors() table {
	return table{
		name: "floors", slow: true, reps: 200,
		about: "How often `pitot find` says that no load meets the limit, with a budget of requests, of servers that violate it by themselves as often as the row says, as a multiple of what may, and of others. " +
			"Named: of all searches, those that say so. False: those with a lower bound or an estimate where there is no capacity, or a bound that does not hold. " +
			"At most: how often a test of the same level says so that spends every request of the budget at a load where requests hardly meet.",
		header: []string{"server", "floor", "budget", "named", "false", "at most"},
		rows: func(reps int, seed uint64) (rows [][]string) {
			for _, s := range floored() {
				for _, budget := range []int{3_000, 10_000} {
					var named, wrong tally
					for _, c := range searches(s.system, budget, reps, seed) {
						named.count(c.Floor.Lower > 0)
						wrong.count(s.capacity == 0 && (c.AtLeast > 0 || c.Estimate > 0) ||
							s.capacity > 0 && (c.AtLeast > s.capacity || c.AtMost > 0 && c.AtMost < s.capacity || c.Floor.Lower > 0))
					}
					most := "none"
					if s.capacity == 0 {
						most = s.power(budget, seed).String()
					}
					rows = append(rows, []string{s.name, fmt.Sprintf("%.2g", s.floor/s.allowed), fmt.Sprint(budget), named.String(), wrong.String(), most})
				}
			}
			return rows
		},
	}
}

// floorOf is a system with the share of its requests that violate the limit by themselves.
type floorOf struct {
	system
	floor float64
}

func floored() (list []floorOf) {
	law := queue.Law{Services: 1, Arrivals: 1}
	for _, allowed := range []float64{.01, .05, .1} {
		for _, times := range []float64{1.5, 2, 3} {
			s := queued{servers: 16, law: law, ttft: 1, fails: times * allowed}
			list = append(list, floorOf{s.system(fmt.Sprintf("%g %% may", 100*allowed), 0, allowed), times * allowed})
		}
	}
	for i, s := range bounded() {
		if s.capacity > 0 {
			list = append(list, floorOf{s, []float64{8: .005, 9: .003, 10: .0025, 12: 0}[i]})
		}
	}
	return list
}

// power is how often a one-sided test at 97.5 %, as a bound of a search has it, says of n requests
// that more than may violate do, where the floor's share does, one independent of another.
func (s floorOf) power(n int, seed uint64) (says tally) {
	rng := rand.New(rand.NewPCG(seed, 7))
	for range 2_000 {
		k := 0
		for range n {
			if rng.Float64() < s.floor {
				k++
			}
		}
		says.count(stats.ClopperPearson(k, n, 1, stats.OneSided(0.975)).Lo > s.allowed)
	}
	return says
}
