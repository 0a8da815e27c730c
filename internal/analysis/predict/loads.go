package predict

import (
	"math"

	"pitot/internal/sim"
)

// TwinLoad describes a load on an engine in virtual time: by users in a closed loop, or by requests at
// a rate.
type TwinLoad struct {
	Name          string  // of its recordings; those of one name are of one load
	Users         int     // that each wait for their answer; 0: requests come at Rate
	Rate          float64 // requests a second, of a Poisson process
	MostInFlight  int     // the client holds others until one of them is answered; 0 for no limit
	Input, Output [2]int  // tokens of the shortest and of the longest; all between are as likely
	Prefix        int     // tokens that some prompts begin with besides, the same of all of them
	PrefixShare   float64 // of the requests
	Requests      int     // at most
	Seconds       float64 // none is sent later; 0 for no such time
	Warmup        float64 // seconds; what is sent before loads the engine and is not measured
}

// Serve gives what a client would record of the load on an engine. The seed
// decides the lengths, and when requests come at a rate.
func (l *TwinLoad) Serve(e sim.Model, seed uint64) *Recording {
	r := &Recording{Dir: l.Name, AtClient: true, users: l.Users, lasts: l.Seconds, most: l.MostInFlight}
	shared := make([]int64, l.Prefix/hashBlock)
	for i := range shared {
		shared[i] = math.MaxInt32 + int64(i) // unlike any request's place
	}
	at := 0.0
	for i := range l.Requests {
		draw := func(k uint64) float64 {
			return (float64(sim.Mix(seed^sim.Mix(uint64(i)<<8|k))>>12) + 0.5) / (1 << 52)
		}
		between := func(of [2]int, u float64) int { return of[0] + int(u*float64(of[1]-of[0]+1)) }
		q := Recorded{Input: between(l.Input, draw(1)), Output: between(l.Output, draw(2)), measured: true}
		if l.Prefix > 0 && draw(3) < l.PrefixShare {
			q.Input += l.Prefix
			q.Hashes = shared
		}
		if l.Users == 0 {
			if at += -math.Log(draw(4)) / l.Rate; l.Seconds > 0 && at > l.Seconds {
				break
			}
			q.Arrival = at
		}
		r.Requests = append(r.Requests, q)
	}
	times, chunk := r.keepTimes()
	timings := r.serveOn(e, chunk)
	kept := r.Requests[:0]
	for i, t := range timings {
		if len(times[i]) == 0 { // it was not sent any more
			continue
		}
		q := r.Requests[i]
		if l.Users == 0 {
			q.held = max(t.sent-q.Arrival, 0)
			q.waited = q.held
		}
		q.Arrival, q.seen, q.times, q.measured = t.sent, t, times[i], t.sent >= l.Warmup
		kept = append(kept, q)
	}
	r.Requests, r.lasts, r.most = kept, 0, 0
	return r
}
