package fleet

import (
	"math"
	"math/rand/v2"
	"testing"

	"pitot/internal/sim"
)

// counter is a server with one place that takes each job as long as it says: its output
// in nanoseconds.
type counter struct {
	sim.Model
	line []sim.Job
	ends int64 // of the first in line
	out  [1]sim.Emission
}

func (c *counter) Add(now int64, j sim.Job) {
	if c.line = append(c.line, j); len(c.line) == 1 {
		c.ends = now + int64(j.Output)
	}
}

func (c *counter) Step(now int64) sim.Step {
	if len(c.line) == 0 {
		return sim.Step{End: math.MaxInt64, Idle: true}
	}
	if c.ends > now {
		return sim.Step{End: c.ends, Idle: true}
	}
	c.out[0] = sim.Emission{ID: c.line[0].ID, At: c.ends, Tokens: 1, Finish: "stop"}
	if c.line = c.line[1:]; len(c.line) > 0 {
		c.ends += int64(c.line[0].Output)
	}
	return sim.Step{End: now, Out: c.out[:]}
}

func (c *counter) Stats() sim.Stats {
	return sim.Stats{Running: min(len(c.line), 1), Waiting: max(len(c.line)-1, 0)}
}

// stay gives so many servers a Poisson stream of jobs that keeps each busy for a share
// of its time, and returns the mean time from arrival to end in service times, which are
// exponential with mean 1.
func stay(router string, servers int, load float64, jobs int) float64 {
	rnd := rand.New(rand.NewPCG(5, 6))
	var engines []sim.Model
	for range servers {
		engines = append(engines, &counter{})
	}
	c := Defaults(1)
	c.Router = router
	f := New(c, engines)
	const unit = 1e6 // ns
	at, total := 0.0, 0.0
	came := make([]int64, jobs)
	take := func(to int64) {
		for _, o := range f.Step(to).Out {
			if o.ID > int64(jobs)/20 { // the first are left out
				total += float64(o.At-came[o.ID]) / unit
			}
		}
	}
	for id := range came {
		at += rnd.ExpFloat64() * unit / (load * float64(servers))
		came[id] = int64(at)
		take(came[id])
		f.Add(came[id], sim.Job{ID: int64(id), Output: int(rnd.ExpFloat64()*unit) + 1})
	}
	take(math.MaxInt64 - 1)
	return total / float64(jobs-jobs/20-1)
}

// Random splitting of a Poisson stream makes independent Poisson streams, so each server
// is a queue M/M/1, whose mean stay is 1/(1 − load).
func TestRandomSplittingIsIndependentQueues(t *testing.T) {
	for _, load := range []float64{0.5, 0.7} {
		want := 1 / (1 - load)
		if got := stay("random", 2, load, 250_000); math.Abs(got/want-1) > 0.025 {
			t.Errorf("at a load of %v a job stays %.4f service times, M/M/1 says %.4f", load, got, want)
		}
	}
}

// Of a single server every router is M/M/1.
func TestOneServer(t *testing.T) {
	for _, router := range Routers() {
		if got := stay(router, 1, 0.6, 60_000); math.Abs(got*(1-0.6)-1) > 0.04 {
			t.Errorf("%s: a job stays %.4f service times, M/M/1 says %.4f", router, got, 1/(1-0.6))
		}
	}
}

// Joining the shorter of two queues, ties at random: the mean stay is that of the Markov
// chain of both lengths, solved here by itself (the queue of Flatto and McKean, 1977).
func TestJoiningTheShorterQueue(t *testing.T) {
	for _, load := range []float64{0.5, 0.8} {
		want := shorter(load)
		if got := stay("least_requests", 2, load, 250_000); math.Abs(got/want-1) > 0.025 {
			t.Errorf("at a load of %v a job stays %.4f service times, the chain says %.4f", load, got, want)
		}
	}
}

// shorter is the mean stay of a job that joins the shorter of two queues M/M: from the
// stationary distribution of their lengths by successive over-relaxation, and Little's
// law.
func shorter(load float64) float64 {
	const n = 60 // longer queues have a probability below 10⁻⁸
	rate := 2 * load
	var p [n + 2][n + 2]float64 // [a][b], padded
	at := func(a, b int) float64 {
		if a < 0 || b < 0 || a >= n || b >= n {
			return 0
		}
		return p[a][b]
	}
	join := func(a, b int) float64 { // the rate at which a grows
		switch {
		case a < b:
			return rate
		case a == b:
			return rate / 2
		}
		return 0
	}
	p[0][0] = 1
	for range 3000 {
		total := 0.0
		for a := range n {
			for b := range n {
				in := at(a+1, b) + at(a, b+1)
				if a > 0 {
					in += at(a-1, b) * join(a-1, b)
				}
				if b > 0 {
					in += at(a, b-1) * join(b-1, a)
				}
				out := rate
				if a > 0 {
					out++
				}
				if b > 0 {
					out++
				}
				p[a][b] = in / out
				total += p[a][b]
			}
		}
		for a := range n {
			for b := range n {
				p[a][b] /= total
			}
		}
	}
	jobs := 0.0
	for a := range n {
		for b := range n {
			jobs += float64(a+b) * p[a][b]
		}
	}
	return jobs / rate
}
