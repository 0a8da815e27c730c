package main

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"pitot/bench/stat/queue"
	"pitot/internal/capacity"
	"pitot/internal/stats"
)

// drawnSearches is the table of searches of servers that a seed draws: a third whose seats end
// before a limit is missed, a third that go on with requests whose clients left, drift, or fail in
// bursts, and a third as they are in the other tables.
func drawnSearches() table {
	return table{
		name: "drawn", slow: true, reps: 9,
		about: "`pitot find` with its defaults, and with a budget of 10 minutes, on 24 servers that the seed draws, slowed to a capacity of 5 to 30 requests a second. " +
			"Seats: their seats end before a limit is missed. Disturbed: they go on with requests whose client left, drift by ±10 % over the search, or fail for a while now and then. " +
			"At least, at most, interval, floor: how many were wrong of those that were given; a floor is wrong on all of them. Allowed: as many as 99 % of such counts have at the most, where 2.5 % are wrong. Ratio: the share of searches whose upper bound is at most 2 (defaults) or 4 times (10 minutes) the lower one.",
		header: []string{"third", "budget", "searches", "at least", "allowed", "at most", "allowed", "interval", "floor", "ratio"},
		rows:   drawnRows,
	}
}

func drawnRows(reps int, seed uint64) (rows [][]string) {
	for _, minutes := range []float64{0, 10} {
		for third, name := range []string{"seats", "disturbed", "usual"} {
			all := &drawnCount{}
			for i := range 8 {
				one := piece(fmt.Sprintf("drawn %v %d %d %d %d", minutes, third, i, reps, seed), func() *drawnCount {
					s := drawQueue(rand.New(rand.NewPCG(seed, uint64(third*8+i))), third, i)
					counts := make([]drawnCount, reps)
					together(reps, func(r int) {
						counts[r].count(s, minutes, s.find(minutes, rand.New(rand.NewPCG(seed^uint64(third*8+i)<<32, uint64(r)))))
					})
					c := &drawnCount{}
					for r := range counts {
						c.merge(&counts[r])
					}
					return c
				})
				if one != nil {
					all.merge(one)
				}
			}
			budget := "defaults"
			if minutes > 0 {
				budget = fmt.Sprintf("%.0f min", minutes)
			}
			rows = append(rows, append([]string{name, budget}, all.row()...))
		}
	}
	return rows
}

// disturbedQueue is a queue with one limit. Its times are in mean services, of which one takes so
// many seconds.
type disturbedQueue struct {
	servers  int
	law      queue.Law
	ttft     float64 // limit, 0 where none is ever missed
	allowed  float64
	capacity float64 // requests per mean service
	service  float64 // seconds
	ignores  bool    // it goes on with requests whose client left
	drifts   float64 // by how much, from the begin of a search to its end, in ln
	outages  float64 // share of the time in which all requests fail
	outage   float64 // seconds that one lasts
}

func drawQueue(rng *rand.Rand, third, i int) *disturbedQueue {
	pick := func(list ...float64) float64 { return list[rng.IntN(len(list))] }
	s := &disturbedQueue{
		servers: int(pick(4, 8, 16, 32, 64)), allowed: pick(0.01, 0.01, 0.05, 0.1),
		law: queue.Law{Services: pick(0.3, 1, 1, 2), Arrivals: pick(1, 1, 0.25)},
	}
	rate := 5 * math.Exp(rng.Float64()*math.Log(6))
	if third == 0 {
		s.capacity = float64(s.servers)
		s.service = s.capacity / rate
		return s
	}
	if third == 1 {
		switch i % 3 {
		case 0:
			s.ignores = true
		case 1:
			s.drifts = pick(-0.1, 0.1)
		default:
			s.outages, s.outage = 0.3*s.allowed, 2+8*rng.Float64()
		}
	}
	share := (s.allowed - s.outages) / (1 - s.outages)
	for { // until it is the load that misses the limit
		s.capacity = float64(s.servers) * (0.6 + 0.35*rng.Float64())
		s.service = s.capacity / rate
		waits := s.waits(1, 2_000_000, rng.Uint64())
		s.ttft = waits[int(float64(len(waits))*(1-share))]
		light := s.waits(0.5, 200_000, rng.Uint64())
		if over, _ := slices.BinarySearch(light, s.ttft); float64(len(light)-over) < share/3*float64(len(light)) {
			return s
		}
	}
}

// waits returns the sorted TTFTs of n requests at a part of the capacity.
func (s *disturbedQueue) waits(part float64, n int, seed uint64) []float64 {
	q := queue.NewOf(s.law, s.servers, part*s.capacity/float64(s.servers), seed)
	q.Warm(2000)
	list := q.TTFTs(n)
	slices.Sort(list)
	return list
}

// truth returns the least and the most that the capacity was during a search, in requests a second.
func (s *disturbedQueue) truth() (least, most float64) {
	at := s.capacity / s.service
	far := math.Exp(math.Abs(s.drifts))
	return at / far, at * far
}

// find searches for the capacity.
func (s *disturbedQueue) find(minutes float64, rng *rand.Rand) capacity.Found {
	cfg := capacity.FindConfig{Eps: []float64{s.allowed}, Residence: s.service, Seed: rng.Uint64(),
		Traffic: capacity.Traffic{Allowed: s.allowed, Lengths: s.law.Services * s.law.Services, Gaps: 1 / s.law.Arrivals, Plain: true},
		Budget:  capacity.Budget{Seconds: 60 * minutes}}
	whole := 60 * minutes // of the search, about
	if minutes == 0 {
		cfg.Budget.Requests = capacity.EnoughRequests
		whole = float64(capacity.EnoughRequests) * s.service / s.capacity
	}
	now, left := 0., 0. // seconds since the search began, and for how long the server still works on what is left
	c, err := capacity.Find(context.Background(), cfg, func(_ context.Context, p capacity.Probe) (capacity.Seen, error) {
		wait := 0.
		if left > 0 { // as session.Searcher waits for an empty server
			wait = left
			if minutes > 0 {
				wait = min(wait, 0.15*whole)
			}
		}
		now, left = now+wait, left-wait
		seen, backlog := s.measure(&p, now, whole, left, rng)
		now += seen.Seconds
		seen.Seconds += wait
		if left = 0; s.ignores {
			left = backlog
		}
		return seen, nil
	})
	if err != nil {
		panic(err)
	}
	return c
}

// measure puts a load on the server at a time since the search began. busy is for how long its
// seats are taken then, and backlog for how long it works on after the client left, both in
// seconds.
func (s *disturbedQueue) measure(p *capacity.Probe, now, whole, busy float64, rng *rand.Rand) (seen capacity.Seen, backlog float64) {
	q := queue.NewOf(s.law, s.servers, p.Load*s.service/float64(s.servers), rng.Uint64())
	q.Closed = busy / s.service
	q.Slower = func(at float64) float64 { return math.Exp(-s.drifts * (2*(now+at*s.service)/whole - 1)) }
	warmup := p.Residences * p.Residence / s.service
	var before, jobs []queue.Job // that came in the warm-up, and in the window
	for len(jobs) < p.Requests {
		j := q.Next()
		if j.Arrival < warmup {
			before = append(before, j)
			continue
		}
		if p.WindowBy > 0 && j.Arrival*s.service > p.WindowBy && len(jobs) > 0 {
			break
		}
		jobs = append(jobs, j)
	}
	n, from, to := len(jobs), warmup, jobs[len(jobs)-1].Arrival
	end := to // when the client leaves: all of the window have ended, or it lasted as long again
	for _, j := range jobs {
		end = max(end, min(j.End, to+max(to-from, 60/s.service)))
	}
	if p.EndBy > 0 {
		end = min(end, max(to, p.EndBy/s.service))
	}
	seen = capacity.Seen{Load: p.Load, N: n, Violations: []int{0}, Blocks: [][]int{make([]int, min(n, p.Blocks))}, Stability: stats.Undecided, Seconds: end * s.service, Sent: n}
	period := s.outage / max(s.outages, 1e-9)
	phase := 0.
	if s.outages > 0 {
		phase = period * rng.Float64()
	}
	const parts = 10
	served, took, ended := [parts]float64{}, []float64{}, 0.
	for i, j := range jobs {
		backlog = max(backlog, (j.End-end)*s.service)
		failed := s.outages > 0 && math.Mod(now+j.Arrival*s.service+phase, period) < s.outage
		if j.End > end {
			failed = true
			seen.TimedOut++
		}
		if failed {
			seen.Errors++
		} else {
			took = append(took, j.End-j.Arrival)
		}
		seen.Residence += min(j.End, end) - j.Arrival
		if failed || s.ttft > 0 && j.TTFT > s.ttft {
			seen.Violations[0]++
			seen.Blocks[0][i*len(seen.Blocks[0])/n]++
		}
	}
	for _, j := range append(before, jobs...) {
		if at := (j.End - from) / (to - from); at >= 0 && at < 1 {
			ended++
			if at >= 0.5 {
				served[min(parts-1, int((at-0.5)*2*parts))]++
			}
		}
	}
	seen.Residence *= s.service / float64(n)
	seen.Joint, seen.JointBlock = seen.Violations[0], seen.Blocks[0]
	window := (to - from) * s.service
	for i := range served {
		served[i] *= 2 * parts / window
	}
	mean, sd := stats.Moments(served[:])
	half := stats.StudentQuantile(0.975, parts-1) * sd / math.Sqrt(parts)
	point := capacity.CurvePoint{Load: p.Load, Offered: float64(n) / window, RequestsPerS: ended / window, OutputTokensPerS: ended / window,
		Late: mean, LateCI95: &[2]float64{mean - half, mean + half}, TokensPerAnswer: 1, Window: window, Stability: stats.Undecided}
	if len(took) > 0 {
		slices.Sort(took)
		point.E2E = took[len(took)/2] * s.service * 1e3
	}
	if seen.Behind = point.IsBehind(); seen.Behind {
		seen.Carried = capacity.CarriedAt(point)
	}
	return seen, backlog
}

// drawnCount is how searches came out: of each kind the wrong ones, of those that were given.
type drawnCount struct{ Least, Most, Interval, Floor, Ratio tally }

func (t *drawnCount) count(s *disturbedQueue, minutes float64, c capacity.Found) {
	lowest, highest := s.truth()
	if c.AtLeast > 0 {
		t.Least.count(c.AtLeast > highest)
	}
	if c.AtMost > 0 {
		t.Most.count(c.AtMost < lowest)
	}
	if x := c.Carried.Interval; x.Hi > 0 {
		t.Interval.count(x.Lo > highest || x.Hi < lowest)
	} else if c.Estimate > 0 {
		t.Interval.count(c.Interval.Lo > highest || c.Interval.Hi < lowest)
	}
	t.Floor.count(c.Floor.Lower > 0)
	ratio := 2.
	if minutes > 0 {
		ratio = 4
	}
	t.Ratio.count(c.AtLeast > 0 && c.AtMost > 0 && c.AtMost <= ratio*c.AtLeast)
}

func (t *drawnCount) merge(o *drawnCount) {
	for _, x := range [][2]*tally{{&t.Least, &o.Least}, {&t.Most, &o.Most}, {&t.Interval, &o.Interval}, {&t.Floor, &o.Floor}, {&t.Ratio, &o.Ratio}} {
		x[0].Held, x[0].Of = x[0].Held+x[1].Held, x[0].Of+x[1].Of
	}
}

// allowedWrong returns how many of n are wrong at the most in 99 % of cases, where each is with a
// chance of p.
func allowedWrong(n int, p float64) int {
	chance, sum := math.Pow(1-p, float64(n)), 0.
	for k := 0; ; k++ {
		if sum += chance; sum >= 0.99 || k >= n {
			return k
		}
		chance *= float64(n-k) / float64(k+1) * p / (1 - p)
	}
}

func (t *drawnCount) row() []string {
	of := func(x tally) string { return fmt.Sprintf("%d of %d", x.Held, x.Of) }
	return []string{fmt.Sprint(t.Floor.Of), of(t.Least), fmt.Sprint(allowedWrong(t.Least.Of, 0.025)), of(t.Most), fmt.Sprint(allowedWrong(t.Most.Of, 0.025)),
		of(t.Interval), of(t.Floor), t.Ratio.String()}
}
