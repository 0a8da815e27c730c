package main

import (
	"fmt"
	"math"
	"time"

	"pitot/bench/stat/queue"
	"pitot/internal/capacity"
)

// bounded are systems of many kinds: how steeply violations rise, how much they
// cluster, what may violate, and what does so without any load. The constants of the
// search were chosen on every second one, the first among them; the others are
// reported. Where no load meets the limit the capacity is 0.
func bounded() []system {
	gamma := func(services float64) queue.Law { return queue.Law{Services: services, Arrivals: 0.25} }
	poisson := func(services float64) queue.Law { return queue.Law{Services: services, Arrivals: 1} }
	return []system{
		queued{servers: 4, law: poisson(2), ttft: 4}.system("few, long", 2.226, .01),
		queued{servers: 8, law: poisson(2), ttft: 2}.system("some, long", 5.045, .01),
		queued{servers: 16, law: gamma(1), ttft: 1}.system("bursts", 8.583, .01),
		queued{servers: 32, law: gamma(1), ttft: 2}.system("more, bursts", 26.81, .01),
		queued{servers: 1, law: poisson(1), ttft: 5}.system("one", 0.2508, .01),
		queued{servers: 2, law: poisson(.3), ttft: 2}.system("two, even", 1.016, .01),
		queued{servers: 16, law: poisson(1), ttft: .6}.system("p90", 13.0, .1),
		queued{servers: 8, law: gamma(2), ttft: 3}.system("p95, bursts", 5.542, .05),
		queued{servers: 32, law: poisson(1), ttft: 1, fails: .005}.system("0.5 % fail", 26.81, .01),
		queued{servers: 16, law: poisson(1), ttft: 1, fails: .003}.system("0.3 % fail", 11.94, .01),
		queued{servers: 16, law: poisson(1), e2e: 6}.system("E2E", 14.86, .01),
		queued{servers: 32, law: poisson(1), ttft: 1, fails: .02}.system("2 % fail", 0, .01),
		queued{servers: 16, law: poisson(2), e2e: 6}.system("too long", 0, .01),
	}
}

// boundedTwins are likewise, of the twin in virtual time: none was chosen on.
func boundedTwins() []system {
	seventy := served{spec: "llama-3.1-70b@4xh100", input: 2000, output: 60, spread: 1.5, longest: 30_000, burst: 1, ttft: 3 * time.Second}
	eight := served{spec: "llama-3.1-8b@h100?max_num_seqs=16", input: 512, output: 64, spread: 1.5, longest: 30_000, burst: 4, ttft: time.Second, tpot: 30 * time.Millisecond}
	return []system{seventy.system("70B, long prompts", 2.4, 2), eight.system("8B, bursts, two limits", 6, 0.7)}
}

func bounds() table { return boundsOf("bounds", bounded(), 3_000, 10_000, 40_000, ofWork) }

func simBounds() table { return boundsOf("bounds-sim", bounded(), ofWork) }

func twinBounds() table {
	return boundsOf("bounds-twin", boundedTwins(), 3_000, 10_000, 40_000, ofWork)
}

func boundsOf(name string, systems []system, budgets ...int) table {
	return table{
		name: name, slow: true, reps: 100,
		about: "Every bound that `pitot find` prints, over systems of many kinds, a budget of requests in windows; of sim: is that of a simulated target, whose main loads are counted and not recorded. All searches that were started count. " +
			"At least, at most: the share that has the bound, and of all searches the share whose bound holds or that have none. Of truth: median of at least ÷ the capacity. Both: neither is wrong, and no floor is named where there is none, nor an estimate given where there is one. " +
			"Interval: the share with an estimate, and of these the share whose interval holds the truth. Too high: of all, a verified load over 2 % above the truth. " +
			"Wide: median of at most ÷ at least where there are both. Floor: the share of searches that say that no load meets the limit. " +
			"Half: whether constants were chosen on it.",
		header: []string{"system", "half", "budget", "at least", "holds", "of truth", "at most", "holds", "both", "interval", "holds", "too high", "wide", "floor"},
		rows: func(reps int, seed uint64) [][]string {
			return boundRows(systems, budgets, name == "bounds" || name == "bounds-sim", reps, seed)
		},
	}
}

func boundRows(systems []system, budgets []int, halved bool, reps int, seed uint64) (rows [][]string) {
	// halves are the systems of each, by budget.
	halves := map[string][]*boundCount{}
	for i, s := range systems {
		half := "reported"
		if halved && i%2 == 0 {
			half = "chosen on"
		}
		for _, budget := range budgets {
			c := piece(fmt.Sprintf("bounds %s %v %v %d %d %d", s.about, s.capacity, s.allowed, budget, reps, seed), func() *boundCount {
				c := &boundCount{}
				c.search(s, budget, reps, seed)
				return c
			})
			if c == nil { // there was no time for it
				continue
			}
			rows = append(rows, append([]string{s.name, half, budgetName(budget)}, c.row()...))
			key := half + fmt.Sprint(budget)
			halves[key] = append(halves[key], c)
		}
	}
	for _, half := range []string{"chosen on", "reported"} {
		for _, budget := range budgets {
			if len(halves[half+fmt.Sprint(budget)]) == 0 {
				continue
			}
			all := &boundCount{}
			for _, c := range halves[half+fmt.Sprint(budget)] {
				all.merge(c)
			}
			rows = append(rows, append([]string{"all", half, budgetName(budget)}, all.row()...))
		}
	}
	return rows
}

// budgetName is a budget as tables have it.
func budgetName(budget int) string {
	if budget == ofWork {
		return "of sim:"
	}
	return fmt.Sprint(budget)
}

// boundCount is how the searches of a system came out.
type boundCount struct {
	Least, LeastHolds, Most, MostHolds, Both, Answered, Holds, TooHigh, Floor tally
	Wide, Quotes                                                              []float64
}

func (b *boundCount) search(s system, budget, reps int, seed uint64) {
	found := searches(s, budget, reps, seed)
	for i := range found {
		b.count(s, &found[i])
	}
}

func (b *boundCount) count(s system, c *capacity.Found) {
	none := s.capacity == 0 // no load meets the limit
	least := c.AtLeast == 0 || !none && c.AtLeast <= s.capacity
	most := c.AtMost == 0 || c.AtMost >= s.capacity
	b.Least.count(c.AtLeast > 0)
	b.LeastHolds.count(least)
	if c.AtLeast > 0 && !none {
		b.Quotes = append(b.Quotes, c.AtLeast/s.capacity)
	}
	b.Most.count(c.AtMost > 0)
	b.MostHolds.count(most)
	b.Both.count(least && most && (c.Floor.Lower == 0 || none) && !(none && c.Estimate > 0))
	b.Answered.count(c.Estimate > 0)
	b.Holds.addIf(c.Estimate > 0, c.Interval.Contains(s.capacity))
	b.TooHigh.count(c.Quote > 1.02*s.capacity)
	b.Floor.count(c.Floor.Lower > 0)
	if c.AtLeast > 0 && c.AtMost > 0 {
		b.Wide = append(b.Wide, c.AtMost/c.AtLeast)
	}
}

func (b *boundCount) merge(o *boundCount) {
	for _, t := range [][2]*tally{
		{&b.Least, &o.Least}, {&b.LeastHolds, &o.LeastHolds}, {&b.Most, &o.Most}, {&b.MostHolds, &o.MostHolds}, {&b.Both, &o.Both},
		{&b.Answered, &o.Answered}, {&b.Holds, &o.Holds}, {&b.TooHigh, &o.TooHigh}, {&b.Floor, &o.Floor},
	} {
		t[0].Held, t[0].Of = t[0].Held+t[1].Held, t[0].Of+t[1].Of
	}
	b.Wide, b.Quotes = append(b.Wide, o.Wide...), append(b.Quotes, o.Quotes...)
}

func (b *boundCount) row() []string {
	wide := "none"
	if len(b.Wide) > 0 {
		wide = fmt.Sprintf("%.2f", math.Max(1, median(b.Wide)))
	}
	return []string{b.Least.String(), b.LeastHolds.String(), percent(b.Quotes), b.Most.String(), b.MostHolds.String(), b.Both.String(),
		b.Answered.String(), b.Holds.String(), b.TooHigh.String(), wide, b.Floor.String()}
}
