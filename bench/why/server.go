package main

import (
	"math"
	"time"

	"pitot/internal/study/explain"
	"pitot/internal/twin"
	"pitot/internal/twin/deploy"
)

// surroundings are what stands around an engine and is no part of it.
type surroundings struct {
	RoundTrip     time.Duration
	Flush         time.Duration // of a proxy that lets tokens go by the clock, 0 for none
	Slower        float64       // factor on every step while the clock is held down, 1 for none
	Foreign       float64       // requests a second of others
	ForeignLength [2]int        // prompt and answer
	Every, Freeze time.Duration // nothing leaves the server for so long, again and again
	Lag           time.Duration // mean of a client that is late
}

// without takes one cause of them away; ok is false where there is none.
func (s surroundings) without(cause explain.Cause) (_ surroundings, ok bool) {
	switch cause {
	case explain.Network:
		ok = s.RoundTrip > 0
		s.RoundTrip = 0
	case explain.Proxy:
		ok = s.Flush > 0
		s.Flush = 0
	case explain.Throttling:
		ok = s.Slower > 1
		s.Slower = 1
	case explain.Foreign:
		ok = s.Foreign > 0
		s.Foreign = 0
	case explain.Freezes:
		ok = s.Freeze > 0
		s.Freeze = 0
	case explain.Client:
		ok = s.Lag > 0
		s.Lag = 0
	}
	return s, ok
}

// around is an engine with its surroundings, looked into as a page of metrics shows it.
type around struct {
	twin.Model
	s     surroundings
	seed  uint64
	other int64 // when the next request of others comes
	id    int64
	count uint64
	out   []twin.Emission
	page  page
}

// foreignIDs are those of requests of others.
const foreignIDs = 1 << 40

// page is what its metrics show.
type page struct {
	second               int64
	running, waiting, kv float64 // of the latest step
	until                int64   // its end
	samples              [][3]float64
	queue, prefill       float64 // s, sums
	decode               float64
	requests             float64
	own, foreign         float64 // tokens of requests that ended
	tokens               map[int64]int
}

func newAround(d *deploy.Deployment, s surroundings, seed uint64) *around {
	a := &around{Model: d.Engine(seed), s: s, seed: seed, other: math.MaxInt64, id: foreignIDs}
	a.page.tokens = map[int64]int{}
	if s.Slower > 1 {
		a.Model.Pace(func(int64) float64 { return s.Slower })
	}
	if s.Foreign > 0 {
		a.other = a.gap()
	}
	a.Model.Watch(a.page.step)
	return a
}

// gap is the time to the next request of others.
func (a *around) gap() int64 {
	a.count++
	u := (float64(twin.Mix(a.seed^twin.Mix(a.count))>>11) + 0.5) / (1 << 53)
	return int64(-math.Log(u) / a.s.Foreign * 1e9)
}

// Add implements [twin.Engine].
func (a *around) Add(now int64, j twin.Job) {
	a.others(now)
	a.page.tokens[j.ID] = j.Prompt + j.Output
	a.Model.Add(now+int64(a.s.RoundTrip)/2, j)
}

// others lets those requests come that are due.
func (a *around) others(now int64) {
	for a.other <= now {
		a.page.tokens[a.id] = a.s.ForeignLength[0] + a.s.ForeignLength[1]
		a.Model.Add(a.other, twin.Job{ID: a.id, Prompt: a.s.ForeignLength[0], Output: a.s.ForeignLength[1]})
		a.id++
		a.other += a.gap()
	}
}

// Step implements [twin.Engine].
func (a *around) Step(now int64) twin.Step {
	a.others(now)
	st := a.Model.Step(now)
	if st.Idle {
		st.End = min(st.End, a.other)
		return st
	}
	a.out = a.out[:0]
	for _, e := range st.Out {
		if e.Trace != nil {
			a.page.ended(&e, e.ID >= foreignIDs)
		}
		if e.ID < foreignIDs {
			e.At = a.delivered(e.At)
			a.out = append(a.out, e)
		}
	}
	st.Out = a.out
	return st
}

// delivered is when a client has what left the server.
func (a *around) delivered(at int64) int64 {
	if every := int64(a.s.Every); a.s.Freeze > 0 && at%every < int64(a.s.Freeze) && at > every {
		at += int64(a.s.Freeze) - at%every
	}
	if f := int64(a.s.Flush); f > 0 {
		at = (at + f - 1) / f * f
	}
	return at + int64(a.s.RoundTrip)/2
}

// step is read each second.
func (p *page) step(i twin.StepInfo) {
	for ; p.second <= i.Start; p.second += 1e9 {
		switch {
		case p.second <= p.until:
			p.samples = append(p.samples, [3]float64{p.running, p.waiting, p.kv})
		default: // idle
			p.samples = append(p.samples, [3]float64{})
		}
	}
	p.running, p.waiting, p.kv, p.until = float64(i.Running), float64(i.Waiting), i.KVCacheUsage, i.End
}

// ended adds up the sums of histograms.
func (p *page) ended(e *twin.Emission, foreign bool) {
	t := e.Trace
	p.requests++
	p.queue += float64(t.Scheduled-t.Queued) / 1e9
	p.prefill += float64(t.First-t.Scheduled) / 1e9
	p.decode += float64(t.Last-t.First) / 1e9
	if foreign {
		p.foreign += float64(p.tokens[e.ID])
	} else {
		p.own += float64(p.tokens[e.ID])
	}
	delete(p.tokens, e.ID)
}

// facts are what the page tells.
func (a *around) facts(f explain.Facts) {
	p := &a.page
	set := func(s explain.Signal, x float64, unit string) { f.Set(s, x, unit, explain.FromServer) }
	n, run, wait, kv, often := 0.0, 0.0, 0.0, 0.0, 0.0
	mostRun, mostKV := 0.0, 0.0
	for _, x := range p.samples {
		if x[0] == 0 && x[1] == 0 {
			continue
		}
		n++
		run, wait, kv = run+x[0], wait+x[1], kv+x[2]
		mostRun, mostKV = max(mostRun, x[0]), max(mostKV, x[2])
		if x[1] > 0 {
			often++
		}
	}
	if n > 0 {
		set(explain.Running, run/n, "")
		set(explain.Waiting, wait/n, "")
		set(explain.KVUse, kv/n, "share")
		set(explain.RunningMost, mostRun, "")
		set(explain.KVMost, mostKV, "share")
		set(explain.WaitingOften, often/n, "share")
	}
	st := a.Model.Stats()
	if p.requests > 0 {
		set(explain.QueueMean, p.queue/p.requests*1e3, "ms")
		set(explain.PrefillMean, p.prefill/p.requests*1e3, "ms")
		set(explain.DecodeMean, p.decode/p.requests*1e3, "ms")
		set(explain.Preempted, float64(st.Preemptions)/p.requests, "")
		set(explain.ForeignShare, p.foreign/max(p.own+p.foreign, 1), "share")
	}
	if st.PrefixQueries > 0 {
		set(explain.HitShare, float64(st.PrefixHits)/float64(st.PrefixQueries), "share")
	}
	f.Set(explain.ClockShare, 1/max(a.s.Slower, 1), "share", explain.FromGPU)
}
