package main

import (
	"fmt"
	"time"

	"pitot/bench/stat/queue"
	"pitot/internal/run/search"
	"pitot/internal/stat"
)

// system can be put under any load, and its capacity is known.
type system struct {
	name      string
	about     string
	capacity  float64 // requests a second at which a limit is violated by 1 % of the requests
	residence float64 // seconds, of a request alone
	limits    int
	measure   func(p search.Probe, seed uint64) counted
}

// counted is what one load did to the requests of its window, in order of
// their arrival.
type counted struct {
	violations []uint8 // a bit for each limit violated
	residence  float64 // seconds, mean
	seconds    float64
}

// systems are what capacities are searched for. The true capacities of those on the
// twin are of a twin whose steps were quicker (light took 121/s, and takes about 90):
// measure them anew before their tables are made again. They are from
// `-only truth`: with 900,000 and with 1,350,000 requests around them they come
// out within 0.4 % of these.
func systems() []system {
	light := served{spec: "llama-3.1-8b@h100", input: 256, output: 32, burst: 1, ttft: 150 * time.Millisecond}
	bursty, slots := light, light
	bursty.burst, bursty.ttft = 4, 300*time.Millisecond
	slots.spec += "?max_num_seqs=32"
	return []system{
		{name: "M/G/32", about: "TTFT under one mean service time", capacity: 32 * queue.Capacity, residence: 1, limits: 1, measure: measureQueue},
		light.system("light", 121.3, 0.25),
		bursty.system("bursty", 120.2, 0.25),
		slots.system("32 slots", 68.7, 0.25),
		served{spec: "qwen3-32b@h100", input: 1024, output: 32, burst: 1, ttft: 1900 * time.Millisecond}.system("heavy", 7.43, 0.8),
		served{spec: "llama-3.1-8b@l4", input: 128, output: 128, burst: 1, ttft: 400 * time.Millisecond, tpot: 95 * time.Millisecond}.system("long output", 9.45, 8),
	}
}

func (s served) system(name string, capacity, residence float64) system {
	about := fmt.Sprintf("%s, %.0f tokens in and %.0f out, TTFT under %v", s.spec, s.input, s.output, s.ttft)
	limits := 1
	if s.tpot > 0 {
		about += fmt.Sprintf(" and TPOT under %v", s.tpot)
		limits = 2
	}
	if s.burst > 1 {
		about += fmt.Sprintf(", gaps between arrivals gamma with CV² %.0f", s.burst)
	}
	return system{name, about, capacity, residence, limits, func(p search.Probe, seed uint64) counted {
		return s.run(p.Load, p.Requests, p.Residences*p.Residence, seed)
	}}
}

// measureQueue measures M/G/32, whose mean service is a second.
func measureQueue(p search.Probe, seed uint64) (c counted) {
	q := queue.New(32, p.Load/32, seed)
	q.Warm(p.Residences * p.Residence)
	c.violations = make([]uint8, p.Requests)
	for i := range c.violations {
		j := q.Next()
		if j.TTFT > limit {
			c.violations[i] = 1
		}
		c.residence += (j.End - j.Arrival) / float64(p.Requests)
		c.seconds = j.End
	}
	return c
}

// probe measures a load as sweep wants it.
func (s system) probe(p search.Probe, seed uint64) search.Seen {
	c := s.measure(p, seed)
	seen := search.Seen{Load: p.Load, N: p.Requests, Violations: make([]int, s.limits), Residence: c.residence, Seconds: c.seconds, Stability: stat.Undecided}
	seen.Blocks = make([]int, p.Blocks)
	for i, v := range c.violations {
		for l := range seen.Violations {
			seen.Violations[l] += int(v >> l & 1)
		}
		if v == 0 {
			continue
		}
		seen.Joint++
		if p.Claim == search.Joint || v>>p.Claim&1 == 1 {
			seen.Blocks[i*p.Blocks/p.Requests]++
		}
	}
	return seen
}

// eps is what each limit allows.
func (s system) eps() []float64 {
	list := make([]float64, s.limits)
	for i := range list {
		list[i] = epsilon
	}
	return list
}
