package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"pitot/bench/stat/queue"
	"pitot/internal/capacity"
)

// drifts is the table of searches of servers whose speed changes meanwhile.
func drifts() table {
	return table{
		name: "drift", slow: true, reps: 48,
		about: "`pitot find --budget` on servers whose speed changes by up to ±10 % while they are searched: not at all, by a trend from the one to the other, or in waves, of which so many come within the budget. " +
			"Four queues of 8 to 32 servers, slowed to a capacity of 10 requests a second; of two hours half the repetitions. " +
			"The truth is the load at which 1 % violate the limit over the time that the loads around it took. Below and above: the share of intervals that lie wholly there. " +
			"Both: neither bound is wrong. Half-width and error are medians.",
		header: []string{"drift", "budget", "interval", "holds", "below", "above", "half-width", "error", "both"},
		rows: func(reps int, seed uint64) (rows [][]string) {
			for _, d := range []drift{{"none", 0}, {"trend", 0}, {"1.5 waves", 1.5}, {"3 waves", 3}, {"6 waves", 6}, {"15 waves", 15}} {
				for _, budget := range []time.Duration{30 * time.Minute, 2 * time.Hour} {
					all := &driftCount{}
					for i := range drifting() {
						n := reps
						if budget > time.Hour {
							n = max(1, n/2)
						}
						if one := piece(fmt.Sprintf("drift %s %v %d %d %d", d.name, budget, i, n, seed), func() *driftCount { return searchDrifting(i, d, budget, n, seed) }); one != nil {
							all.merge(one)
						}
					}
					rows = append(rows, append([]string{d.name, budget.String()}, all.row()...))
				}
			}
			return rows
		},
	}
}

// driftingServer is a server whose speed changes. Near its capacity the odds of a violation rise
// with this power of the load.
type driftingServer struct {
	queued
	capacity, slope float64
}

func drifting() []driftingServer {
	return []driftingServer{
		{queued{servers: 32, law: queue.Usual, ttft: limit}, 32 * queue.Capacity, 23},
		{queued{servers: 16, law: queue.Usual, e2e: 6}, 14.86, 25},
		{queued{servers: 32, law: queue.Law{Services: 1, Arrivals: 0.25}, ttft: 2}, 26.81, 18},
		{queued{servers: 8, law: queue.Law{Services: 2, Arrivals: 1}, ttft: 2}, 5.045, 9.4},
	}
}

// drift is how a speed changes.
type drift struct {
	name  string
	waves float64 // within the budget, 0 for a trend
}

const driftRate, driftFar = 10, 0.1

// slower is the logarithm of how many times as long a request takes, by when it begins, in seconds.
func (d drift) slower(rng *rand.Rand, budget float64) func(at float64) float64 {
	phase, far := rng.Float64(), driftFar
	if phase < 0.5 {
		far = -far
	}
	switch {
	case d.name == "none":
		return func(float64) float64 { return 0 }
	case d.waves == 0:
		return func(at float64) float64 { return far * (2*at/budget - 1) }
	}
	return func(at float64) float64 { return far * math.Sin(2*math.Pi*(at/budget*d.waves+phase)) }
}

// driftCount is how the searches came out.
type driftCount struct {
	Answered, Holds, Below, Above, Both tally
	Half, Errors                        []float64
}

func searchDrifting(i int, d drift, budget time.Duration, reps int, seed uint64) *driftCount {
	found, truths := make([]timedOutcome, reps), make([]float64, reps)
	together(reps, func(r int) {
		q := drifting()[i]
		by := q.capacity / driftRate
		rng, now := rand.New(rand.NewPCG(seed, uint64(r))), new(float64)
		slower := d.slower(rng, budget.Seconds())
		q.slower = func(at float64) float64 { return math.Exp(slower(*now + by*at)) }
		s := q.system("", q.capacity, epsilon).slowed(by)
		found[r] = searchOnce(s, budget, rng, now)
		truths[r] = q.truth(found[r].Trail, slower)
	})
	c := &driftCount{}
	for r := range found {
		c.count(&found[r].Found, truths[r])
	}
	return c
}

// truth is the load at which the share of violations that may be is that of all the time in which
// loads around the limit were measured.
func (q *driftingServer) truth(trail []capacity.Step, slower func(float64) float64) float64 {
	from, to, at := math.Inf(1), 0., 0.
	for i := range trail {
		s := &trail[i]
		if s.Stage == capacity.Main || s.Stage == capacity.Centre {
			from, to = min(from, at), at+s.Seen.Seconds
		}
		at += s.Seen.Seconds
	}
	if math.IsInf(from, 1) {
		from, to = 0, at
	}
	const steps = 200
	odds := 0.
	for k := range steps {
		odds += math.Exp(q.slope*slower(from+(to-from)*(float64(k)+.5)/steps)) / steps
	}
	return driftRate * math.Pow(odds, -1/q.slope)
}

func (t *driftCount) count(c *capacity.Found, truth float64) {
	t.Answered.count(c.Estimate > 0)
	if c.Estimate > 0 {
		t.Half = append(t.Half, (c.Interval.Hi-c.Interval.Lo)/2/c.Estimate)
		t.Errors = append(t.Errors, math.Abs(c.Estimate/truth-1))
		t.Holds.count(c.Interval.Contains(truth))
		t.Below.count(c.Interval.Hi < truth)
		t.Above.count(c.Interval.Lo > truth)
	}
	t.Both.count((c.AtLeast == 0 || c.AtLeast <= truth) && (c.AtMost == 0 || c.AtMost >= truth))
}

func (t *driftCount) merge(o *driftCount) {
	for _, x := range [][2]*tally{{&t.Answered, &o.Answered}, {&t.Holds, &o.Holds}, {&t.Below, &o.Below}, {&t.Above, &o.Above}, {&t.Both, &o.Both}} {
		x[0].Held, x[0].Of = x[0].Held+x[1].Held, x[0].Of+x[1].Of
	}
	t.Half, t.Errors = append(t.Half, o.Half...), append(t.Errors, o.Errors...)
}

func (t *driftCount) row() []string {
	return []string{t.Answered.String(), t.Holds.String(), t.Below.String(), t.Above.String(), percent(t.Half), percent(t.Errors), t.Both.String()}
}
