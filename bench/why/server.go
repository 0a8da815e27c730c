package main

import (
	"cmp"
	"math"
	"slices"
	"time"

	"pitot/internal/analysis/explain"
	"pitot/internal/sim"
	"pitot/internal/sim/deploy"
	"pitot/internal/telemetry"
)

// surroundings are what stands around an engine and is no part of it.
type surroundings struct {
	RoundTrip     time.Duration
	Flush         time.Duration // of a proxy that lets tokens go by the clock, 0 for none
	Slower        float64       // factor on every step while the clock is held down, 1 for none
	Foreign       float64       // requests a second of others
	ForeignLength [2]int        // prompt and answer
	Every, Freeze time.Duration // nothing leaves the server for so long, again and again
	Hiccups       float64       // freezes a second that come by chance, of Freeze each
	Lag           time.Duration // mean of a client that is late
	Relay         time.Duration // mean time that a proxy takes for each request before it sends it on
	Behind        time.Duration // round trip between that proxy and the server
}

// without takes one cause of them away; ok is false where there is none.
func (s surroundings) without(cause explain.Cause) (_ surroundings, ok bool) {
	switch cause {
	case explain.Network:
		ok = s.RoundTrip > 0 || s.Behind > 0
		s.RoundTrip, s.Behind = 0, 0
	case explain.Proxy:
		ok = s.Flush > 0 || s.Relay > 0
		s.Flush, s.Relay, s.Behind = 0, 0, 0
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
	sim.Model
	s       surroundings
	seed    uint64
	other   int64     // when the next request of others comes
	way     []arrival // requests on their way to the engine, in order
	id      int64
	count   uint64
	out     []sim.Emission
	page    page
	front   sim.Frontend
	hiccups []int64 // when each begins
}

// arrival is a request that reaches the server.
type arrival struct {
	at  int64
	job sim.Job
}

// foreignIDs are those of requests of others.
const foreignIDs = 1 << 40

// page is what its metrics show, read each second.
type page struct {
	second               int64
	running, waiting, kv float64 // of the latest step
	until                int64   // its end
	samples              telemetry.Samples
	queue, prefill       float64 // s, sums
	decode               float64
	requests             float64
	steps, stepTokens    float64
	front                float64 // ns of a core that the API server took
	own, all             float64 // tokens of requests that ended
	tokens               map[int64]int
	stats                func() sim.Stats
}

func newAround(d *deploy.Deployment, s surroundings, seed uint64) *around {
	a := &around{Model: d.Engine(seed), s: s, seed: seed, other: math.MaxInt64, id: foreignIDs}
	a.front = d.Settings.Frontend
	if s.Hiccups > 0 {
		for k, at := uint64(0), int64(0); at < 600e9; k++ {
			at += int64(-math.Log(uniform(seed^0xf2ee^k<<20))/s.Hiccups*1e9) + int64(s.Freeze)
			a.hiccups = append(a.hiccups, at)
		}
	}
	a.page.tokens, a.page.stats = map[int64]int{}, a.Model.Stats
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
	return int64(-math.Log(uniform(a.seed^sim.Mix(a.count))) / a.s.Foreign * 1e9)
}

// uniform is a number between 0 and 1 that hangs on a seed alone.
func uniform(seed uint64) float64 { return (float64(sim.Mix(seed)>>11) + 0.5) / (1 << 53) }

// Add implements [sim.Engine].
func (a *around) Add(now int64, j sim.Job) {
	a.others(now)
	a.page.tokens[j.ID] = j.Prompt + j.Output
	f := &a.front
	a.page.front += float64(f.PerRequest + time.Duration(j.Prompt)*f.PerPromptToken)
	relay := -math.Log(uniform(a.seed^uint64(j.ID)<<8)) * float64(a.s.Relay)
	at := now + int64(a.s.RoundTrip+a.s.Behind)/2 + int64(relay)
	k, _ := slices.BinarySearchFunc(a.way, at, func(x arrival, at int64) int { return cmp.Compare(x.at, at+1) })
	a.way = slices.Insert(a.way, k, arrival{at, j})
}

// next is when a request comes by itself.
func (a *around) next() int64 {
	if len(a.way) > 0 {
		return min(a.way[0].at, a.other)
	}
	return a.other
}

// others lets those requests come that are due.
func (a *around) others(now int64) {
	for ; len(a.way) > 0 && a.way[0].at <= now; a.way = a.way[1:] {
		a.Model.Add(a.way[0].at, a.way[0].job)
	}
	for a.other <= now {
		a.page.tokens[a.id] = a.s.ForeignLength[0] + a.s.ForeignLength[1]
		a.Model.Add(a.other, sim.Job{ID: a.id, Prompt: a.s.ForeignLength[0], Output: a.s.ForeignLength[1]})
		a.id++
		a.other += a.gap()
	}
}

// Step implements [sim.Engine].
func (a *around) Step(now int64) sim.Step {
	a.others(now)
	st := a.Model.Step(now)
	if st.Idle {
		st.End = min(st.End, a.next())
		return st
	}
	a.out = a.out[:0]
	a.page.front += float64(a.front.PerStep) + float64(len(st.Out))*float64(a.front.PerChunk)
	for _, e := range st.Out {
		if e.Trace != nil {
			a.page.ended(&e, e.ID >= foreignIDs)
		}
		if e.ID < foreignIDs {
			e.At = a.delivered(e.At)
			a.out = append(a.out, e)
		}
	}
	st.Out, st.Next = a.out, min(st.Next, a.next())
	return st
}

// delivered is when a client has what left the server.
func (a *around) delivered(at int64) int64 {
	if every := int64(a.s.Every); every > 0 && a.s.Freeze > 0 && at%every < int64(a.s.Freeze) && at > every {
		at += int64(a.s.Freeze) - at%every
	}
	for _, x := range a.hiccups {
		if at >= x && at < x+int64(a.s.Freeze) {
			at = x + int64(a.s.Freeze)
		}
	}
	if f := int64(a.s.Flush); f > 0 {
		at = (at + f - 1) / f * f
	}
	return at + int64(a.s.RoundTrip+a.s.Behind)/2
}

// step lets the page be read at each second that has passed.
func (p *page) step(i sim.StepInfo) {
	for ; p.second <= i.Start; p.second += 1e9 {
		if p.second > p.until { // idle
			p.running, p.waiting, p.kv = 0, 0, 0
		}
		p.read(p.second)
	}
	p.steps++
	p.stepTokens += float64(i.Tokens)
	p.running, p.waiting, p.kv, p.until = float64(i.Running), float64(i.Waiting), i.KVCacheUsage, i.End
}

// read takes samples.
func (p *page) read(at int64) {
	st := p.stats()
	for signal, x := range map[telemetry.Signal]float64{
		telemetry.Running: p.running, telemetry.Waiting: p.waiting, telemetry.KVUse: p.kv,
		telemetry.QueueSum: p.queue, telemetry.QueueCount: p.requests, telemetry.PrefillSum: p.prefill, telemetry.PrefillCount: p.requests,
		telemetry.DecodeSum: p.decode, telemetry.DecodeCount: p.requests, telemetry.Requests: p.requests, telemetry.Preemptions: float64(st.Preemptions),
		telemetry.PrefixQueries: float64(st.PrefixQueries), telemetry.PrefixHits: float64(st.PrefixHits),
		telemetry.ProcessCPU: p.front / 1e9, telemetry.Steps: p.steps, telemetry.StepTokens: p.stepTokens,
		telemetry.PromptTokens: p.all, telemetry.OutputTokens: 0, // together: their sum is what is asked of them
	} {
		p.samples.Add("server", signal, at, x)
	}
}

// ended adds up the sums of histograms.
func (p *page) ended(e *sim.Emission, foreign bool) {
	t := e.Trace
	p.requests++
	p.queue += float64(t.Scheduled-t.Queued) / 1e9
	p.prefill += float64(t.First-t.Scheduled) / 1e9
	p.decode += float64(t.Last-t.First) / 1e9
	n := float64(p.tokens[e.ID])
	if p.all += n; !foreign {
		p.own += n
	}
	delete(p.tokens, e.ID)
}

// told returns the page's samples, and those of an exporter of the GPU's clock.
func (a *around) told() Told {
	p := &a.page
	end := max(p.second, p.until) + 1
	p.read(end)
	p.samples.Add("gpu", telemetry.GPUClock, end/2, 2000/max(a.s.Slower, 1))
	p.samples.Add("gpu", telemetry.GPUClockMost, end/2, 2000)
	t := Told{Window: p.samples.WindowOf(0, end)}
	if p.all > 0 {
		t.Foreign = 1 - p.own/p.all
	}
	return t
}

// Told are a server's metrics.
type Told struct {
	Window  telemetry.Window
	Foreign float64 // share of its tokens
}

// add puts it into facts.
func (t *Told) add(f explain.Facts) {
	f.AddServer(&t.Window)
	f.Set(explain.ForeignShare, t.Foreign, "share", explain.FromServer)
}
