package main

import (
	"fmt"
	"math"

	"pitot/bench/stat/queue"
	"pitot/internal/results/record"
)

// queueSystem is a queue, and how long it is looked at.
type queueSystem struct {
	law     queue.Law
	servers int
	window  float64 // in what a request takes alone
}

func (s queueSystem) String() string {
	arrivals := "Poisson"
	switch {
	case s.law.Phases > 0:
		arrivals = fmt.Sprintf("hyperexponential(%g)", s.law.Phases)
	case s.law.Arrivals != 1:
		arrivals = fmt.Sprintf("gamma(%g)", s.law.Arrivals)
	}
	return fmt.Sprintf("%d servers, %s, services %g, window %g", s.servers, arrivals, s.law.Services, s.window)
}

// intervalSystems are half of a chequerboard of servers and laws: they have each of them.
func intervalSystems() (systems []queueSystem) {
	add := func(servers int, law queue.Law) {
		for _, window := range []float64{100, 300} {
			if servers < 256 || window == 100 {
				systems = append(systems, queueSystem{law, servers, window})
			}
		}
	}
	for i, servers := range []int{1, 4, 16, 64, 256} {
		for k, law := range []queue.Law{queue.Usual, {Services: 0.3, Arrivals: 1}, {Services: 2, Arrivals: 1}, {Services: 1, Arrivals: 0.25}} {
			if (i+k)%2 == 1 {
				add(servers, law)
			}
		}
	}
	return systems
}

// warmIntervals is from when on an empty queue is measured, in what a request
// takes alone.
const warmIntervals = 15

// tokensOfService is how many a request gets in a mean service.
const tokensOfService = 100

// answered are the jobs of a queue that arrive before a time, as records: a mean
// service is a second, and the tokens come with the end of theirs.
func answered(q *queue.Queue, until float64) (f record.Frame) {
	for j := q.Next(); j.Arrival < until; j = q.Next() {
		r := rowOf(j, int64(len(f.Rows)))
		r.CompletionTokens, r.Chunks = max(int32(math.Round(tokensOfService*(j.End-j.Start))), 1), 1
		f.Chunks = append(f.Chunks, record.Chunk{Request: r.ID, T: r.LastToken, Earliest: r.LastToken, Tokens: r.CompletionTokens})
		f.Rows = append(f.Rows, r)
	}
	return f
}
