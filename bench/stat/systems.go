package main

import (
	"fmt"
	"math/rand/v2"
	"time"

	"pitot/bench/stat/queue"
	"pitot/internal/capacity"
	"pitot/internal/stats"
)

// system can be put under any load, and its capacity is known.
type system struct {
	name      string
	about     string
	capacity  float64 // requests a second at which a limit is violated by 1 % of the requests
	residence float64 // seconds, of a request alone
	limits    int
	allowed   float64 // share that may violate each limit
	measure   func(p capacity.Probe, seed uint64) counted
	sessions  capacity.Sessions
	traffic   capacity.Traffic // the zero one is the usual
}

// counted is what one load did to the requests of its window, in order of
// their arrival.
type counted struct {
	violations []uint8 // a bit for each limit violated
	of         []int   // the session of each, nil where they stand alone
	errors     int     // of them, by requests that failed
	residence  float64 // seconds, mean
	seconds    float64
}

// systems are what capacities are searched for. Their true capacities are from
// `-only truth`.
func systems() []system {
	light := served{spec: "llama-3.1-8b@h100", input: 256, output: 32, burst: 1, ttft: 150 * time.Millisecond}
	bursty, slots := light, light
	bursty.burst, bursty.ttft = 4, 300*time.Millisecond
	slots.spec += "?max_num_seqs=32"
	return []system{
		{name: "M/G/32", about: "TTFT under one mean service time", capacity: 32 * queue.Capacity, residence: 1, limits: 1, allowed: epsilon,
			measure: queued{servers: 32, law: queue.Usual, ttft: limit}.measure},
		light.system("light", 121.2, 0.25),
		bursty.system("bursty", 121.1, 0.25),
		slots.system("32 slots", 52.11, 0.25),
		served{spec: "qwen3-32b@h100", input: 1024, output: 32, burst: 1, ttft: 1900 * time.Millisecond}.system("heavy", 7.176, 0.8),
		served{spec: "llama-3.1-8b@l4", input: 128, output: 128, burst: 1, ttft: 400 * time.Millisecond, tpot: 95 * time.Millisecond}.system("long output", 8.614, 8),
	}
}

func (s served) system(name string, carries, residence float64) system {
	about := fmt.Sprintf("%s, %.0f tokens in and %.0f out, TTFT under %v", s.spec, s.input, s.output, s.ttft)
	limits := 1
	if s.tpot > 0 {
		about += fmt.Sprintf(" and TPOT under %v", s.tpot)
		limits = 2
	}
	if s.burst > 1 {
		about += fmt.Sprintf(", gaps between arrivals gamma with CV² %.0f", s.burst)
	}
	if s.spread > 0 {
		about += fmt.Sprintf(", coefficient of variation of the lengths %g", s.spread)
	}
	return system{name, about, carries, residence, limits, epsilon, func(p capacity.Probe, seed uint64) counted {
		return s.run(p.Load, p.Requests, p.Residences*p.Residence, seed)
	}, capacity.Sessions{}, capacity.Traffic{}}
}

// queued is an M/G/c queue with a limit, in which a mean service takes a second. It
// fails some requests at random.
type queued struct {
	servers   int
	law       queue.Law
	ttft, e2e float64                  // limits, 0 for none
	fails     float64                  // share of the requests
	slower    func(at float64) float64 // how many times as long a request takes that is begun then, nil for none
}

func (s queued) system(name string, carries, allowed float64) system {
	about := fmt.Sprintf("%d servers, services of coefficient of variation %g", s.servers, s.law.Services)
	if s.law.Arrivals != 1 {
		about += fmt.Sprintf(", gamma(%g) gaps", s.law.Arrivals)
	}
	for _, t := range s.law.Turns {
		about += fmt.Sprintf(", arrivals at %.3g for %g", t.Rate, t.Time)
	}
	if s.ttft > 0 {
		about += fmt.Sprintf(", %g %% over TTFT %g", 100*allowed, s.ttft)
	}
	if s.e2e > 0 {
		about += fmt.Sprintf(", %g %% over E2E %g", 100*allowed, s.e2e)
	}
	if s.fails > 0 {
		about += fmt.Sprintf(", %g %% fail", 100*s.fails)
	}
	cycle := queue.Cycle(s.law.Turns)
	traffic := capacity.Traffic{Allowed: allowed, Lengths: s.law.Services * s.law.Services, Gaps: 1 / s.law.Arrivals, Cycle: cycle, Plain: true}
	for _, t := range s.law.Turns {
		traffic.Gaps += (t.Rate - 1) * (t.Rate - 1) * t.Time / cycle
	}
	return system{name, about, carries, 1, 1, allowed, s.measure, capacity.Sessions{}, traffic}
}

func (s queued) measure(p capacity.Probe, seed uint64) counted {
	q := queue.NewOf(s.law, s.servers, p.Load/float64(s.servers), seed)
	q.Slower = s.slower
	return s.window(q, &p, rand.New(rand.NewPCG(seed, 3)))
}

// window is a warm-up and what comes due behind it.
func (s queued) window(q *queue.Queue, p *capacity.Probe, fails *rand.Rand) (c counted) {
	q.Warm(p.Residences * p.Residence)
	var jobs []queue.Job
	longest, cut := 0., false // that ended; some had not when all did
	for len(jobs) < p.Requests {
		j := q.Next()
		if p.WindowBy > 0 && j.Arrival > p.WindowBy {
			break
		}
		if jobs = append(jobs, j); p.EndBy > 0 && j.End > p.EndBy {
			cut = true
		} else {
			longest = max(longest, j.End-j.Arrival)
		}
	}
	for _, j := range jobs {
		if cut && (longest == 0 || j.Arrival > p.EndBy-longest) { // it had no time to end
			break
		}
		violated := uint8(0)
		failed := s.fails > 0 && fails.Float64() < s.fails || cut && j.End > p.EndBy
		if failed {
			c.errors++
		}
		if failed || s.ttft > 0 && j.TTFT > s.ttft || s.e2e > 0 && j.End-j.Arrival > s.e2e {
			violated = 1
		}
		c.violations = append(c.violations, violated)
		c.residence += j.End - j.Arrival
		c.seconds = max(c.seconds, j.End) // all requests of the window are followed
	}
	if cut {
		c.seconds = p.EndBy
	}
	c.residence /= float64(max(len(c.violations), 1))
	return c
}

// probe measures a load as sweep wants it.
func (s system) probe(p capacity.Probe, seed uint64) capacity.Seen {
	return s.seen(p, s.measure(p, seed))
}

// seen is a load as a search sees it.
func (s system) seen(p capacity.Probe, c counted) capacity.Seen {
	seen := capacity.Seen{Load: p.Load, N: len(c.violations), Violations: make([]int, s.limits), Residence: c.residence, Seconds: c.seconds, Errors: c.errors, Stability: stats.Undecided}
	blocks := min(p.Blocks, seen.N)
	seen.JointBlock, seen.Blocks = make([]int, blocks), make([][]int, s.limits)
	for l := range seen.Blocks {
		seen.Blocks[l] = make([]int, blocks)
	}
	in := func(i, blocks int) int { return i * blocks / seen.N }
	if c.of != nil {
		in, seen.Cluster = bySession(c.of)
	}
	for i, v := range c.violations {
		if v == 0 {
			continue
		}
		block := in(i, blocks)
		for l := range seen.Violations {
			seen.Violations[l] += int(v >> l & 1)
			seen.Blocks[l][block] += int(v >> l & 1)
		}
		seen.Joint++
		seen.JointBlock[block]++
	}
	return seen
}

// eps is what each limit allows.
func (s system) eps() []float64 {
	list := make([]float64, s.limits)
	for i := range list {
		list[i] = s.allowed
	}
	return list
}
