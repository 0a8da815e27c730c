package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"pitot/internal/capacity"
	"pitot/internal/stats"
)

// slowed is a system in which all takes so many times as long.
func (s system) slowed(by float64) system {
	measure := s.measure
	s.capacity, s.residence = s.capacity/by, s.residence*by
	s.measure = func(p capacity.Probe, seed uint64) counted {
		p.Load, p.Residence, p.WindowBy, p.EndBy = p.Load*by, p.Residence/by, p.WindowBy/by, p.EndBy/by
		c := measure(p, seed)
		c.seconds, c.residence = c.seconds*by, c.residence*by
		return c
	}
	return s
}

// timedSearches is the table of searches with a budget of minutes, as a user of a server gives it.
func timedSearches() table {
	return table{
		name: "timed", slow: true, reps: 40,
		about: "`pitot find --budget` of minutes on a server, over the systems of `bounds` that have a capacity, slowed to 1, 3 and 10 requests a second there. All searches that were started count. " +
			"Spent: median share of the budget, its 99th percentile, and the share of searches over 110 %. Interval: the share with an estimate; of these holds: the share whose interval holds the truth, half-width: its median, error: median of |estimate ÷ truth − 1|. " +
			"Both: neither bound is wrong. At least: the share with that bound, and its median as a share of the truth; wrong: of these, the share above the truth. Useful: both bounds are known, and the upper one is at most 4 times the lower. Likely: of searches that name two loads between which the capacity probably lies, the share in which it does. Forecast: median of the half-width that was forecast, of searches that forecast one. " +
			"Kept: of all, those whose interval is no more than a quarter wider than the forecast, or that forecast none and have a bound.",
		header: []string{"system", "rate", "budget", "spent", "p99", "over 110 %", "interval", "holds", "half-width", "error", "both", "at least", "of truth", "wrong", "useful", "likely", "forecast", "kept"},
		rows:   timedRows,
	}
}

// timedBudget is a budget and how many requests a second the capacity is.
type timedBudget struct {
	rate   float64
	budget time.Duration
}

func timedRows(reps int, seed uint64) (rows [][]string) {
	for _, half := range []string{"chosen on", "reported"} {
		for _, b := range []timedBudget{{1, 10 * time.Minute}, {1, 30 * time.Minute}, {3, 20 * time.Minute}, {10, 10 * time.Minute}, {10, 30 * time.Minute}} {
			all := &timedCount{}
			for i, s := range bounded() {
				if s.capacity == 0 || (i%2 == 0) != (half == "chosen on") {
					continue
				}
				one := piece(fmt.Sprintf("timed %s %v %v %v %d %d", s.about, s.capacity, b.rate, b.budget, reps, seed), func() *timedCount {
					return searchTimed(s.slowed(s.capacity/b.rate), b.budget, reps, seed)
				})
				if one == nil {
					continue
				}
				all.merge(one)
				rows = append(rows, append([]string{s.name, fmt.Sprint(b.rate), b.budget.String()}, one.row()...))
			}
			rows = append(rows, append([]string{"all " + half, fmt.Sprint(b.rate), b.budget.String()}, all.row()...))
		}
	}
	return rows
}

// timedCount is how the searches of a system came out.
type timedCount struct {
	Answered, Holds, Both, Least, Kept    tally
	Useful, Wrong                         tally // upper ÷ lower is at most 4; of lower bounds, those above the truth
	Likely                                tally // the truth is between [capacity.Found.Likely]
	Spent, Half, Errors, Quotes, Forecast []float64
}

func searchTimed(s system, budget time.Duration, reps int, seed uint64) *timedCount {
	list := make([]timedOutcome, reps)
	together(reps, func(r int) { list[r] = searchOnce(s, budget, rand.New(rand.NewPCG(seed, uint64(r))), new(float64)) })
	c := &timedCount{}
	for i := range list {
		c.count(s, &list[i].Found, list[i].forecast, budget)
	}
	return c
}

// searchOnce is a search with a budget of time. now is how many seconds of it have passed.
func searchOnce(s system, budget time.Duration, rng *rand.Rand, now *float64) (o timedOutcome) {
	cfg := capacity.FindConfig{Eps: s.eps(), Residence: s.residence, Traffic: s.traffic, Budget: capacity.Budget{Seconds: budget.Seconds()}, Seed: rng.Uint64()}
	said := false
	tell := func(p capacity.Probe) {
		if p.Stage == capacity.Centre && !said {
			said = true
			o.forecast = capacity.ForecastNear(p.Residence, cfg.Rate(p.Load, p.Takes), cfg.Budget, s.traffic).HalfWidth
		}
	}
	var err error
	o.Found, err = capacity.Find(context.Background(), cfg, func(_ context.Context, p capacity.Probe) (capacity.Seen, error) {
		tell(p)
		seen := s.probe(p, rng.Uint64())
		*now += seen.Seconds
		return seen, nil
	})
	if err != nil {
		panic(err)
	}
	return o
}

// timedOutcome is what a search came to, and the half-width that was forecast of it.
type timedOutcome struct {
	capacity.Found
	forecast float64
}

func (t *timedCount) count(s system, c *capacity.Found, forecast float64, budget time.Duration) {
	t.Spent = append(t.Spent, c.Seconds/budget.Seconds())
	half := 0.
	t.Answered.count(c.Estimate > 0)
	if c.Estimate > 0 {
		half = (c.Interval.Hi - c.Interval.Lo) / 2 / c.Estimate
		t.Half = append(t.Half, half)
		t.Errors = append(t.Errors, max(c.Estimate/s.capacity, s.capacity/c.Estimate)-1)
		t.Holds.count(c.Interval.Contains(s.capacity))
	}
	t.Both.count((c.AtLeast == 0 || c.AtLeast <= s.capacity) && (c.AtMost == 0 || c.AtMost >= s.capacity) && c.Floor.Lower == 0)
	t.Least.count(c.AtLeast > 0)
	if c.Likely.Hi > 0 {
		t.Likely.count(c.Likely.Contains(s.capacity))
	}
	t.Useful.count(c.AtLeast > 0 && c.AtMost > 0 && c.AtMost <= 4*c.AtLeast)
	if c.AtLeast > 0 {
		t.Wrong.count(c.AtLeast > s.capacity)
	}
	if c.AtLeast > 0 {
		t.Quotes = append(t.Quotes, c.AtLeast/s.capacity)
	}
	if forecast > 0 {
		t.Forecast = append(t.Forecast, forecast)
		t.Kept.count(half > 0 && half <= 1.25*forecast)
	} else {
		t.Kept.count(half > 0 || c.AtLeast > 0 || c.AtMost > 0)
	}
}

func (t *timedCount) merge(o *timedCount) {
	for _, x := range [][2]*tally{{&t.Answered, &o.Answered}, {&t.Holds, &o.Holds}, {&t.Both, &o.Both}, {&t.Least, &o.Least}, {&t.Kept, &o.Kept}, {&t.Useful, &o.Useful}, {&t.Wrong, &o.Wrong}, {&t.Likely, &o.Likely}} {
		x[0].Held, x[0].Of = x[0].Held+x[1].Held, x[0].Of+x[1].Of
	}
	for _, x := range [][2]*[]float64{{&t.Spent, &o.Spent}, {&t.Half, &o.Half}, {&t.Errors, &o.Errors}, {&t.Quotes, &o.Quotes}, {&t.Forecast, &o.Forecast}} {
		*x[0] = append(*x[0], *x[1]...)
	}
}

func (t *timedCount) row() []string {
	middle := func(list []float64) string {
		if len(list) == 0 {
			return "none"
		}
		return fmt.Sprintf("%.1f %%", 100*median(list))
	}
	high, over := "none", tally{}
	if len(t.Spent) > 0 { // there was time for some
		spent := slices.Sorted(slices.Values(t.Spent))
		high = fmt.Sprintf("%.0f %%", 100*stats.Percentile(spent, 0.99))
		for _, x := range spent {
			over.count(x > 1.1)
		}
	}
	return []string{middle(t.Spent), high, over.String(), t.Answered.String(), t.Holds.String(), middle(t.Half), middle(t.Errors),
		t.Both.String(), t.Least.String(), middle(t.Quotes), t.Wrong.String(), t.Useful.String(), t.Likely.String(), middle(t.Forecast), t.Kept.String()}
}
