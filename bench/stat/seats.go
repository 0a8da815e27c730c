package main

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"pitot/internal/capacity"
	"pitot/internal/stats"
)

// seats is a queue that batches, simple enough to be asked millions of times: a request
// waits for a seat, its prompt for those before it, and its answer takes longer the more
// seats are taken.
type seats struct {
	Many                       int
	Prompt, Alone, Busy, Fixed float64 // seconds: of a prompt token, of an answer's token and for each seat taken, of a request
	Jitter                     float64 // coefficient of variation of what a request takes
	Slow, SlowTime             float64 // of phases, and how long they last
}

// loadOf is what was sent: when, and how many tokens.
type loadOf struct {
	due            []float64
	prompt, answer []float64
}

// took is how long requests took.
type took struct{ ttft, e2e float64 }

// serve returns how long each request of a load takes.
func (q *seats) serve(l *loadOf, seed uint64) []took {
	rng := rand.New(rand.NewPCG(seed, 11))
	free := make([]float64, q.Many)
	prompts, phase, until := 0.0, 1.0, 0.0
	out := make([]took, len(l.due))
	for i, due := range l.due {
		first, busy := 0, 0
		for s, at := range free {
			if at < free[first] {
				first = s
			}
			if at > due {
				busy++
			}
		}
		start := max(due, free[first])
		for q.Slow > 0 && start > until {
			until += q.SlowTime
			phase = math.Exp(q.Slow*rng.NormFloat64() - q.Slow*q.Slow/2)
		}
		slower := phase
		if q.Jitter > 0 {
			slower *= math.Exp(q.Jitter*rng.NormFloat64() - q.Jitter*q.Jitter/2)
		}
		prompts = max(prompts, start) + slower*q.Prompt*l.prompt[i]
		each := slower * (q.Alone + q.Busy*float64(busy))
		end := prompts + slower*q.Fixed + each*l.answer[i]
		free[first] = end
		out[i] = took{prompts + slower*q.Fixed - due, end - due}
	}
	return out
}

// longestPrompt is that of a request.
const longestPrompt = 30_000

// seatServer is a server of seats with a workload and a limit.
type seatServer struct {
	Server              seats
	Input, Output       float64
	Spread, Shape       float64
	TTFT, E2E           float64 // limits, 0 for none; of several a request violates any
	Share               float64 // that may violate
	Fails               float64
	Guess               float64
	Capacity, SE, Slope float64
	Residence           float64
}

func (r *seatServer) about() string {
	kind := "ttft"
	if r.E2E > 0 {
		kind = "e2e"
	}
	return fmt.Sprintf("%d seats, cv %g, gamma(%g), %g %% %s, %.2g %% fail", r.Server.Many, r.Spread, r.Shape, 100*r.Share, kind, 100*r.Fails)
}

// draw is a load that is long enough for so many seconds, and so many requests more.
func (r *seatServer) draw(rate, warmup float64, n int, seed uint64) (l *loadOf, from int) {
	rng := rand.New(rand.NewPCG(seed, 12))
	arrivals := &gaps{rng: rng, rate: rate, shape: r.Shape}
	input, output := lognormal(r.Input, r.Spread), lognormal(r.Output, r.Spread)
	l = &loadOf{}
	from = -1
	for {
		due := float64(arrivals.Next()) / 1e9
		if due >= warmup && from < 0 {
			from = len(l.due)
		}
		if from >= 0 && len(l.due) == from+n {
			return l, from
		}
		l.due = append(l.due, due)
		l.prompt, l.answer = append(l.prompt, float64(min(input(rng), longestPrompt))), append(l.answer, float64(output(rng)))
	}
}

// times is by how many times its limit a request took.
func (r *seatServer) times(t took) float64 {
	x := 0.0
	if r.TTFT > 0 {
		x = t.ttft / r.TTFT
	}
	if r.E2E > 0 {
		x = max(x, t.e2e/r.E2E)
	}
	return x
}

// probe measures a load of the server.
func (r *seatServer) probe(p *capacity.Probe, seed uint64) capacity.Seen {
	l, from := r.draw(p.Load, p.Residences*p.Residence, p.Requests, seed)
	s := capacity.Seen{Load: p.Load, N: p.Requests, Violations: []int{0}, Stability: stats.Undecided, Blocks: [][]int{make([]int, max(1, p.Blocks))}}
	rng := rand.New(rand.NewPCG(seed, 13))
	for i, t := range r.Server.serve(l, seed)[from:] {
		failed := r.Fails > 0 && rng.Float64() < r.Fails
		if failed {
			s.Errors++
		}
		if failed || r.times(t) >= 1 {
			s.Violations[0]++
			s.Blocks[0][i*len(s.Blocks[0])/p.Requests]++
		}
		s.Residence += t.e2e / float64(p.Requests)
	}
	s.Joint, s.JointBlock, s.Seconds = s.Violations[0], s.Blocks[0], l.due[len(l.due)-1]
	return s
}

// long is by how many times the limit requests of a long run took.
func (r *seatServer) long(load float64, n int) []float64 {
	seed := math.Float64bits(load) + uint64(n)
	l, from := r.draw(load, float64(max(n/8, 500))/load, n, seed)
	times := make([]float64, 0, n)
	for _, x := range r.Server.serve(l, seed)[from:] {
		times = append(times, r.times(x))
	}
	return times
}

// drawSeats draws seats for requests of so many tokens.
func drawSeats(rng *rand.Rand, input, output float64) seats {
	within := func(lo, hi float64) float64 { return lo + (hi-lo)*rng.Float64() }
	many := []int{8, 16, 32, 64}
	q := seats{Many: many[rng.IntN(len(many))], Alone: within(0.005, 0.02), Fixed: within(0.001, 0.01), Jitter: 0.02}
	q.Busy = q.Alone * within(0.2, 3) / float64(q.Many)
	hold := output * (q.Alone + q.Busy*float64(q.Many)) // of a seat
	q.Prompt = within(0.2, 1.3) * hold / float64(q.Many) / input
	return q
}

// drawSeatServer draws one, whose capacity is 0 where it has none. The same seed is the same
// server.
func drawSeatServer(seed uint64) *seatServer {
	rng := rand.New(rand.NewPCG(seed, 0x726976616c))
	one := func(list ...float64) float64 { return list[rng.IntN(len(list))] }
	within := func(lo, hi float64) float64 { return lo + (hi-lo)*rng.Float64() }
	r := &seatServer{Input: one(200, 500, 1000, 2000), Output: one(20, 60, 150), Spread: one(0.3, 0.5, 0.5, 1.5), Shape: one(0.25, 0.5, 1, 1, 1)}
	r.Server = drawSeats(rng, r.Input, r.Output)
	s := &r.Server
	s.Many = int(float64(s.Many) * one(0.75, 1, 1))
	s.Alone *= within(1, 1.4)
	s.Busy *= within(0.7, 1.6)
	s.Prompt *= within(0.9, 1.6)
	s.Fixed *= within(1, 3)
	s.Jitter = within(0.02, 0.3)
	if s.Slow = one(0, 0, 0.1, 0.2); s.Slow > 0 {
		s.SlowTime = within(0.5, 5)
	}
	r.Share = one(0.01, 0.01, 0.01, 0.05, 0.1)
	r.Fails = math.Round(1e4*r.Share*one(0, 0, 0, 0.3)) / 1e4
	full := s.Prompt * r.Input
	if hold := r.Output * (s.Alone + s.Busy*float64(s.Many)) / float64(s.Many); hold > full {
		full = hold
	}
	r.Guess = within(0.6, 0.9) / full
	l, from := r.draw(r.Guess, 2000/r.Guess, 60_000, seed)
	served := s.serve(l, seed)[from:]
	limit := func(of func(took) float64, share float64) float64 {
		var xs []float64
		for _, t := range served {
			xs = append(xs, of(t))
		}
		slices.Sort(xs)
		return xs[int(float64(len(xs))*(1-share))]
	}
	spare := r.Share - r.Fails
	if rng.IntN(3) == 0 {
		r.E2E = limit(func(t took) float64 { return t.e2e }, spare)
	} else {
		r.TTFT = limit(func(t took) float64 { return t.ttft }, spare)
	}
	light, _ := r.draw(r.Guess/20, 0, 2_000, seed)
	first := 0.
	for _, t := range s.serve(light, seed) {
		first += t.ttft / 2_000
		r.Residence += t.e2e / 2_000
	}
	// A queue that grew has no share at that load, and no SLO is as loose as its limit.
	const loosest = 100
	if r.TTFT > loosest*first || r.E2E > loosest*r.Residence {
		return r
	}
	r.measure()
	return r
}

// measure finds the true capacity: loads around it, narrower as it is known better.
func (r *seatServer) measure() {
	centre, step := r.Guess, 0.04
	share := (r.Share - r.Fails) / (1 - r.Fails)
	for round, n := range []int{20_000, 20_000, 50_000, 200_000} {
		var points []stats.Share
		for i := -4; i <= 4; i++ {
			load, bad := centre*math.Exp(step*float64(i)), 0
			for _, x := range r.long(load, n+round) {
				if x >= 1 {
					bad++
				}
			}
			points = append(points, stats.Share{Load: load, Violations: bad, N: n + round})
		}
		fit := stats.FitLogistic(points, stats.Prior{})
		at := fit.LoadAt(share, 0.95, 0.05)
		if at.Load > 0 && fit.B > 0 {
			centre *= math.Exp(min(8*step, max(-8*step, math.Log(at.Load/centre))))
			step = min(0.06, max(0.006, 0.6/fit.B/4))
		}
		r.Capacity, r.Slope = at.Load, fit.B
		r.SE = math.Sqrt(max(0, at.SE*at.SE-stats.ModelError*stats.ModelError))
	}
}

// traffic is what is known of it beforehand.
func (r *seatServer) traffic() capacity.Traffic {
	return capacity.Traffic{Allowed: r.Share, Lengths: r.Spread * r.Spread, Gaps: 1 / r.Shape, Plain: true}
}

// find searches for its capacity.
func (r *seatServer) find(budget int, seed uint64) capacity.Found {
	rng := rand.New(rand.NewPCG(seed, 7))
	cfg := capacity.FindConfig{Eps: []float64{r.Share}, Residence: r.Residence, Traffic: r.traffic(), Budget: capacity.Budget{Requests: budget}, Seed: rng.Uint64()}
	c, err := capacity.Find(context.Background(), cfg, func(_ context.Context, p capacity.Probe) (capacity.Seen, error) {
		return r.probe(&p, rng.Uint64()), nil
	})
	if err != nil {
		panic(err)
	}
	return c
}
