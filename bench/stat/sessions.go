package main

import (
	"container/heap"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"pitot/internal/capacity"
)

// conversed is a queue of several servers whose requests come in sessions: each of them a
// while after the answer before it. A mean service takes a second.
type conversed struct {
	servers   int
	least     int     // requests of a session: evenly from least to most, or
	most      int     // where it is 0, as often one more as makes the mean so many as least
	pause     float64 // mean, exponential
	alike     float64 // coefficient of variation of what sessions differ by: the services of one are all so many times as long
	ttft, e2e float64 // limits, 0 for none
}

func (s conversed) turns() (mean, cluster float64) {
	if s.most == 0 {
		n := float64(s.least)
		return n, 2*n - 1 // of a geometric law
	}
	n, squares, sum := 0., 0., 0.
	for k := s.least; k <= s.most; k++ {
		n, sum, squares = n+1, sum+float64(k), squares+float64(k*k)
	}
	return sum / n, squares / sum
}

// Conversations of a few turns and agents of many, whose services are drawn for each or are
// all of a session alike.
var (
	chats       = conversed{servers: 16, least: 2, most: 6, pause: 5, ttft: 1}
	chatsE2E    = conversed{servers: 16, least: 2, most: 6, pause: 5, alike: .7, e2e: 6}
	agents      = conversed{servers: 8, least: 20, pause: 2, ttft: 2}
	agentsAlike = conversed{servers: 8, least: 20, pause: 2, alike: .5, ttft: 3}
)

// sessioned are systems whose requests come in sessions. Their true capacities, in sessions
// a second, are from `-only truth-sessions`.
func sessioned() []system {
	return []system{
		chats.system("chats", 3.185, .01),
		chatsE2E.system("chats, E2E", 3.742, .05),
		agents.system("agents", 0.3074, .01),
		agentsAlike.system("agents, alike", 0.3494, .05),
	}
}

func (s conversed) system(name string, carries, allowed float64) system {
	mean, cluster := s.turns()
	return system{name, fmt.Sprintf("%+v, %g may", s, allowed), carries, 1, 1, allowed, s.measure, capacity.Sessions{Turns: mean, Cluster: cluster, Pause: (mean - 1) * s.pause}, capacity.Traffic{}}
}

func sessionBounds() table {
	t := boundsOf("bounds-sessions", sessioned(), 10_000, 40_000, ofWork)
	t.about += " Requests come in sessions, which are what is counted by the load."
	return t
}

func sessionTruth() table { return truthOf("truth-sessions", sessioned()) }

// due is a request of a session.
type due struct {
	at            float64
	session, left int
	scale         float64
}

// dues are those to come, the earliest first.
type dues []due

func (d dues) Len() int           { return len(d) }
func (d dues) Less(i, j int) bool { return d[i].at < d[j].at }
func (d dues) Swap(i, j int)      { d[i], d[j] = d[j], d[i] }
func (d *dues) Push(x any)        { *d = append(*d, x.(due)) }
func (d *dues) Pop() any {
	old := *d
	x := old[len(old)-1]
	*d = old[:len(old)-1]
	return x
}

// conversing is such a queue under way.
type conversing struct {
	conversed
	rng   *rand.Rand
	later dues
	begun int
	next  float64 // session
	rate  float64
	free  []float64
}

func (s conversed) begin(seed uint64) *conversing {
	return &conversing{conversed: s, rng: rand.New(rand.NewPCG(seed, 0x73657373)), free: make([]float64, s.servers)}
}

// lognormal of mean 1.
func (q *conversing) lognormal(cv float64) float64 {
	if cv == 0 {
		return 1
	}
	v := math.Log1p(cv * cv)
	return math.Exp(math.Sqrt(v)*q.rng.NormFloat64() - v/2)
}

// step serves the next request.
func (q *conversing) step() (r due, wait, took float64) {
	if len(q.later) > 0 && q.later[0].at < q.next {
		r = heap.Pop(&q.later).(due)
	} else {
		r = due{at: q.next, session: q.begun, scale: q.lognormal(q.alike)}
		if q.most > 0 {
			r.left = q.least + q.rng.IntN(q.most-q.least+1) - 1
		} else {
			r.left = int(math.Log(1-q.rng.Float64()) / math.Log(1-1/float64(q.least)))
		}
		q.begun++
		q.next += q.rng.ExpFloat64() / q.rate
	}
	k := 0
	for i := range q.free {
		if q.free[i] < q.free[k] {
			k = i
		}
	}
	start := max(r.at, q.free[k])
	end := start + r.scale*q.lognormal(1)
	q.free[k] = end
	if r.left > 0 {
		heap.Push(&q.later, due{end + q.pause*q.rng.ExpFloat64(), r.session, r.left - 1, r.scale})
	}
	return r, start - r.at, end - r.at
}

// window is a warm-up from now on and what comes due behind it.
func (q *conversing) window(p *capacity.Probe) (c counted) {
	q.rate = p.Load
	from := math.Inf(1)
	for {
		r, wait, took := q.step()
		from = min(from, r.at)
		if r.at < from+p.Residences*p.Residence {
			continue
		}
		c.violations, c.of = append(c.violations, 0), append(c.of, r.session)
		if q.ttft > 0 && wait > q.ttft || q.e2e > 0 && took > q.e2e {
			c.violations[len(c.violations)-1] = 1
		}
		c.residence += took / float64(p.Requests)
		if c.seconds = r.at - from; len(c.violations) == p.Requests {
			return c
		}
	}
}

func (s conversed) measure(p capacity.Probe, seed uint64) counted {
	q := s.begin(seed)
	return q.window(&p)
}

// bySession puts the requests of a window into blocks of whole sessions, in the order in
// which these began; cluster is how many requests the session has that one is of.
func bySession(of []int) (blocks func(i, blocks int) int, cluster float64) {
	sizes := map[int]int{}
	for _, s := range of {
		sizes[s]++
	}
	var order []int
	for s, n := range sizes {
		order = append(order, s)
		cluster += float64(n*n) / float64(len(of))
	}
	slices.Sort(order)
	before, at := map[int]int{}, 0
	for _, s := range order {
		before[s] = at
		at += sizes[s]
	}
	return func(i, blocks int) int { return before[of[i]] * blocks / len(of) }, cluster
}
