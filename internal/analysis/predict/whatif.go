package predict

import (
	"cmp"
	"math"
	"slices"
	"time"

	"pitot/internal/analysis/explain"
	"pitot/internal/results/metric"
	"pitot/internal/sim"
	"pitot/internal/sim/deploy"
	"pitot/internal/sim/engines"
	"pitot/internal/stats"
)

// What if: a server is never quite what the catalogue has. So twins are drawn that differ
// from the stated deployment as servers do, those are kept that come nearest to what was
// measured, and of each it is asked what it would do with one cause relieved. What they
// all say does not hang on what is not known of the server (approximate Bayesian
// computation by rejection: Pritchard et al., 1999; sequentially: Sisson et al., 2007).

// WhatIf are the twins that a recording was served by as well as can be told.
type WhatIf struct {
	Name    string
	of      *Recording
	stated  *deploy.Deployment
	members []member
}

// member is a twin and what it does.
type member struct {
	d        *deploy.Deployment
	off      float64 // the mean of |ln(twin ÷ measured)| over statistics
	base     Series
	twice    Series // at twice the load; empty where it cannot be doubled
	relieved map[explain.Cause]Series
}

// Effort holds the number of twins that are drawn, the number around the best of them, and the
// number that are simulated.
type Effort struct{ drawn, near, kept int }

// Thorough takes some seconds of a processor, Brief a tenth of that. How often a
// diagnosis is right ./bench/why says, of the thorough one. AsStated draws none: the
// stated deployment itself is asked, as where that is what was simulated.
var (
	Thorough = Effort{15, 9, 5}
	Brief    = Effort{5, 2, 3}
	AsStated = Effort{1, 0, 1}
)

// SeenRequests gives the recording's requests as its client saw them.
func (r *Recording) SeenRequests() []explain.Request {
	known := func(x float64) float64 {
		if x < 0 {
			return math.NaN()
		}
		return x
	}
	list := make([]explain.Request, 0, len(r.Requests))
	for i := range r.Requests {
		q := &r.Requests[i]
		if q.seen.e2e <= 0 {
			continue
		}
		connect := cmp.Or(q.connect, math.NaN())
		list = append(list, explain.Request{
			Due: q.Arrival - q.waited, Held: q.held, Lag: q.late, Sent: q.Arrival, First: q.Arrival + known(q.seen.ttft), Last: q.Arrival + q.seen.e2e, Connect: connect,
			Input: q.Input, Output: q.Output, Chunks: q.times, TPOT: known(q.seen.tpot), Stall: known(q.seen.stall), Measured: q.measured,
		})
	}
	return list
}

// WhatIf draws the twins of a deployment and asks them. Facts that the server's metrics
// tell are held against the twins' own too. Constants of time, a way to the server that
// takes so long and that no twin has, are taken off the recording first.
func (r *Recording) WhatIf(d *deploy.Deployment, facts explain.Facts, effort Effort) *WhatIf {
	r = r.withClientDelay(facts[explain.RoundTrip].Value / 1e3)
	w := &WhatIf{Name: d.Spec, of: r, stated: d}
	if d.Kind != engines.Default() {
		w.Name += "?engine=" + d.Kind.Name
	}
	seen := r.features(facts)
	w.members = make([]member, effort.drawn)
	InParallel(effort.drawn, func(i int) { w.members[i] = w.newMember(perturbDeployment(d, uint64(i), 1), seen) })
	w.keepNearest(effort.kept)
	near := make([]member, effort.near)
	InParallel(effort.near, func(i int) {
		near[i] = w.newMember(perturbDeployment(w.members[i%len(w.members)].d, uint64(100+i), 0.4), seen)
	})
	w.members = append(w.members, near...)
	w.keepNearest(effort.kept)
	InParallel(len(w.members), func(i int) { w.members[i].relieveCauses(r) })
	return w
}

// Served says that the nearest twin does what was measured.
func (w *WhatIf) Served() bool { return len(w.members) > 0 && w.members[0].off < servedOff }

// servedOff is the mean |ln(twin ÷ measured)| below which what is left is chance.
const servedOff = 0.05

// withClientDelay is the recording of users who are a way from the server that no twin has: they
// send again when the answer has come all the way.
func (r *Recording) withClientDelay(seconds float64) *Recording {
	if r.users == 0 || seconds <= 0 {
		return r
	}
	c := *r
	c.Requests = slices.Clone(r.Requests)
	for i := range c.Requests {
		c.Requests[i].pause += seconds
	}
	return &c
}

// keepNearest keeps the nearest.
func (w *WhatIf) keepNearest(n int) {
	stats.SortStable(w.members, func(a, b member) int { return cmp.Compare(a.off, b.off) })
	w.members = slices.Clip(w.members[:min(n, len(w.members))])
}

// newMember is a twin, made as fast as the tokens came.
func (w *WhatIf) newMember(d *deploy.Deployment, seen []feature) member {
	m := member{d: d}
	for range 2 {
		run := w.of.replayWatched(m.d)
		m.base = run.Series
		m.off = meanLogDistance(seen, &run)
		is, known := explain.Statistic("p50", w.of.RecordedSeries().TPOT)
		has, modelled := explain.Statistic("p50", m.base.TPOT)
		if !known || !modelled || math.Abs(math.Log(is/has)) < 0.02 {
			break
		}
		faster := copyDeployment(m.d)
		faster.Efficiency.Scale *= min(max(is/has, 0.3), 4)
		again := w.of.replayWatched(faster)
		if off := meanLogDistance(seen, &again); off < m.off {
			m.d, m.base, m.off = faster, again.Series, off
		} else {
			break
		}
	}
	return m
}

// relieveCauses asks it.
func (m *member) relieveCauses(r *Recording) {
	if twice, ok := r.atTwiceLoad(); ok {
		m.twice = twice.replayWithGaps(m.d)
	}
	m.relieved = map[explain.Cause]Series{}
	for _, cause := range modelled {
		if d, ok := RelieveCause(m.d, cause); ok {
			m.relieved[cause] = r.replayWithGaps(d)
		}
	}
}

// atTwiceLoad is the recording at twice the load: the same requests in half of the time, or of
// twice as many users. ok is false where there are too few for it.
func (r *Recording) atTwiceLoad() (_ *Recording, ok bool) {
	c := *r
	if r.users > 0 {
		c.users, c.lasts = 2*r.users, 0
		return &c, 2*c.users <= len(r.Requests)
	}
	c.Requests = slices.Clone(r.Requests)
	for i := range c.Requests {
		q := &c.Requests[i]
		q.Arrival, q.stamp = q.Arrival/2, q.stamp/2
	}
	return &c, len(c.Requests) > 1
}

// replayWithGaps replays the recording, gaps and all.
func (r *Recording) replayWithGaps(d *deploy.Deployment) Series {
	return r.joinTimings(r.serve(d, 1, everyChunk), everyRequest)
}

// watched is a replay whose engine was looked into as a server's metrics show it.
type watched struct {
	Series
	signals map[explain.Signal]float64 // means over time, or over requests
}

// traced adds up what an engine tells of each request that ends, as its histograms do.
type traced struct {
	sim.Model
	queue, prefill, n float64 // ns
}

// Step implements [sim.Engine].
func (t *traced) Step(now int64) sim.Step {
	st := t.Model.Step(now)
	for i := range st.Out {
		if x := st.Out[i].Trace; x != nil {
			t.n++
			t.queue += float64(x.Scheduled - x.Queued)
			t.prefill += float64(x.First - x.Scheduled)
		}
	}
	return st
}

// replayWatched replays the recording and looks.
func (r *Recording) replayWatched(d *deploy.Deployment) (w watched) {
	e := d.Engine(1)
	begin, end := int64(-1), int64(0)
	var running, waiting, kv float64
	e.Watch(func(i sim.StepInfo) {
		t := float64(i.End - i.Start)
		if begin < 0 {
			begin = i.Start
		}
		end = i.End
		running += t * float64(i.Running)
		waiting += t * float64(i.Waiting)
		kv += t * i.KVCacheUsage
	})
	t := &traced{Model: e}
	w.Series = r.joinTimings(r.serveOn(t, everyChunk), everyRequest)
	if busy := float64(end - begin); busy > 0 { // and idle, as samples by the clock
		running, waiting, kv = running/busy, waiting/busy, kv/busy/float64(d.DataParallel)
	}
	w.signals = map[explain.Signal]float64{
		explain.Running: running, explain.Waiting: waiting, explain.KVUse: kv,
		explain.Preempted: float64(e.Stats().Preemptions) / float64(max(len(r.Requests), 1)),
		explain.QueueMean: t.queue / max(t.n, 1) / 1e6, explain.PrefillMean: t.prefill / max(t.n, 1) / 1e6,
	}
	return w
}

// feature is a statistic that a twin should have too.
type feature struct {
	value float64
	floor float64 // in its unit: what is below does not matter
	of    func(*watched) float64
}

// features are those of the recording, and of the server's metrics as far as they are
// known.
func (r *Recording) features(facts explain.Facts) (list []feature) {
	recorded := r.RecordedSeries()
	coalesced := facts[explain.PerArrival].Value > 1.5 // gaps are those of whatever holds tokens back
	back := 0.0                                        // ms, of the way to the server, which no twin has
	if x, ok := facts[explain.RoundTrip]; ok {
		back = x.Value
	}
	for _, x := range []struct {
		metric metric.Name
		of     []string
		ms     float64
	}{
		{metric.TTFT, []string{"mean", "p50", "p90"}, back}, {metric.TPOT, []string{"mean", "p90"}, 0},
		{metric.Stall, []string{"p50", "p90"}, 0}, {metric.E2E, []string{"mean"}, back},
	} {
		for _, of := range x.of {
			v, ok := explain.Statistic(of, recorded.metricValues(x.metric))
			if !ok || coalesced && x.metric == metric.Stall {
				continue
			}
			list = append(list, feature{max(v-x.ms, 0), 1, func(w *watched) float64 {
				v, _ := explain.Statistic(of, w.metricValues(x.metric))
				return v
			}})
		}
	}
	for _, x := range []struct {
		signal explain.Signal
		floor  float64
	}{
		{explain.Running, 1}, {explain.Waiting, 1}, {explain.KVUse, 0.05}, {explain.Preempted, 0.05}, {explain.QueueMean, 1}, {explain.PrefillMean, 1},
	} {
		if v, ok := facts[x.signal]; ok {
			list = append(list, feature{v.Value, x.floor, func(w *watched) float64 { return w.signals[x.signal] }})
		}
	}
	return list
}

// meanLogDistance is the mean of |ln(twin ÷ measured)|.
func meanLogDistance(seen []feature, w *watched) float64 {
	sum := 0.0
	for i := range seen {
		f := &seen[i]
		sum += min(math.Abs(math.Log((f.of(w)+f.floor)/(f.value+f.floor))), 2)
	}
	return sum / float64(max(len(seen), 1))
}

// perturbDeployment is a deployment that differs from another as servers differ from the
// catalogue, times so much.
func perturbDeployment(d *deploy.Deployment, seed uint64, much float64) *deploy.Deployment {
	c := copyDeployment(d)
	n := uint64(0)
	factor := func(sd float64) float64 {
		n++
		u := (float64(sim.Mix(sim.Mix(seed)^n)>>11) + 0.5) / (1 << 53)
		v := (float64(sim.Mix(sim.Mix(seed+1<<32)^n)>>11) + 0.5) / (1 << 53)
		return math.Exp(much * sd * math.Sqrt(-2*math.Log(u)) * math.Cos(2*math.Pi*v))
	}
	if seed == 0 && much == 1 {
		return c // the stated one is the first guess
	}
	front := 1.0 // an API server that is short of processor is slower by far
	if much == 1 && seed%3 == 2 {
		front = 1 + float64(seed)
	}
	span := func(t *time.Duration, sd float64) { *t = time.Duration(float64(*t) * factor(sd)) }
	compute := factor(0.2)
	for t := range c.Accelerator.TFLOPS {
		c.Accelerator.TFLOPS[t] *= compute
	}
	c.Accelerator.BandwidthGBs *= factor(0.15)
	e, f := &c.Efficiency, &c.Settings.Frontend
	e.PromptAttention = min(e.PromptAttention*factor(0.3), 1)
	e.Attention *= factor(0.2)
	e.CollectiveGBs *= factor(0.3)
	span(&e.Collective, 0.3)
	e.ExchangeGBs *= factor(0.3)
	span(&e.Exchange, 0.3)
	span(&e.PerStep, 0.4)
	span(&e.PerRequest, 0.4)
	span(&e.PerPrefill, 0.4)
	span(&e.PerLayer, 0.3)
	span(&f.Latency, 0.6)
	for _, t := range []*time.Duration{&f.PerRequest, &f.PerPromptToken, &f.PerStep, &f.PerChunk} {
		span(t, 0.7)
		*t = time.Duration(front * float64(*t))
	}
	return c
}

// metricValues are those of a symptom's metric.
func (s *Series) metricValues(m metric.Name) []float64 {
	switch m {
	case metric.TTFT:
		return s.TTFT
	case metric.TPOT:
		return s.TPOT
	case metric.Stall:
		return s.Stall
	case metric.E2E:
		return s.E2E
	}
	return nil
}

// supportedSymptom is the symptom that so many requests tell: of a p99 of few, which hangs on
// one or two of them, the tail is asked that ten of them have.
func supportedSymptom(s explain.Symptom, n int) explain.Symptom {
	if (s.Of == "p99" || s.Of == "p95") && n < 1000 {
		s.Of = "p90"
	}
	return s
}

// Of returns what the twins say of a symptom. It returns nil if they say nothing.
func (w *WhatIf) Of(s explain.Symptom) *explain.Twin {
	asked := s
	if len(w.members) > 0 {
		s = supportedSymptom(s, len(w.members[0].base.metricValues(s.Metric)))
	}
	t := &explain.Twin{Name: w.Name, Off: math.Inf(1), Reliefs: map[explain.Cause]explain.Relief{}, Trials: map[explain.Cause][]explain.Trial{}}
	gains := map[explain.Cause][]float64{}
	again := bootstrapGains(w, s)
	among := map[explain.Cause]float64{}
	var bases, scales, twice []float64
	for i := range w.members {
		m := &w.members[i]
		scales = append(scales, m.d.Efficiency.Scale/w.stated.Efficiency.Scale)
		t.Off = min(t.Off, m.off)
		base, ok := explain.Statistic(s.Of, m.base.metricValues(s.Metric))
		if !ok || base <= 0 {
			return nil
		}
		bases = append(bases, base)
		if x, ok := explain.Statistic(s.Of, m.twice.metricValues(s.Metric)); ok {
			twice = append(twice, x/base)
		}
		most, of := 0.0, map[explain.Cause]float64{}
		for cause, series := range m.relieved {
			x, ok := explain.Statistic(s.Of, series.metricValues(s.Metric))
			if !ok {
				continue
			}
			of[cause] = 1 - x/base
			most = max(most, of[cause])
		}
		for cause, g := range of {
			gains[cause] = append(gains[cause], g)
			if g >= explain.Least && g >= most/2 {
				among[cause] += 1 / float64(len(w.members))
			}
		}
	}
	if s == asked {
		t.Value, _ = explain.Statistic("p50", bases)
	}
	t.Slower, _ = explain.Statistic("p50", scales)
	t.AtTwice, _ = explain.Statistic("p50", twice)
	for cause, list := range gains {
		g, _ := explain.Statistic("p50", list)
		t.Reliefs[cause] = explain.Relief{Gain: g, Among: among[cause], Chances: again[cause]}
	}
	for _, cause := range modelled {
		if r := t.Reliefs[cause]; r.Gain >= explain.Least && r.Among >= 0.5 {
			t.Trials[cause] = w.bestTrials(s, cause)
		}
	}
	return t
}

// How often requests are drawn again, and in how many parts of the load: what follows each
// other is not independent.
const draws, parts = 64, 20

// bootstrapGains are the gains of each cause on the nearest twin, of parts of the load drawn again,
// the same ones for all: a bootstrap of blocks (Künsch, 1989). Requests of which too few have
// a value, or other ones than without the relief, tell none.
func bootstrapGains(w *WhatIf, s explain.Symptom) map[explain.Cause][]float64 {
	list := map[explain.Cause][]float64{}
	if len(w.members) == 0 {
		return list
	}
	m := &w.members[0]
	base := m.base.metricValues(s.Metric)
	n := len(base)
	if n < parts {
		return list
	}
	for k := range uint64(draws) {
		take := func(v []float64) (list []float64) {
			for j := range uint64(parts) {
				p := int(sim.Mix(k<<32|j) % parts)
				list = append(list, v[p*n/parts:(p+1)*n/parts]...)
			}
			return list
		}
		was, _ := explain.Statistic(s.Of, take(base))
		for cause, series := range m.relieved {
			if v := series.metricValues(s.Metric); len(v) == n && was > 0 {
				is, _ := explain.Statistic(s.Of, take(v))
				list[cause] = append(list[cause], 1-is/was)
			}
		}
	}
	return list
}

// bestTrials returns what the nearest twins expect of the knobs against a cause, the best first.
func (w *WhatIf) bestTrials(s explain.Symptom, cause explain.Cause) []explain.Trial {
	list := helpfulTrials(w.members[0].d, cause)
	const asked = 2 // twins
	for i := range list {
		least := 1.0
		for k := range w.members[:min(asked, len(w.members))] {
			m := &w.members[k]
			d, ok := ApplyTrial(m.d, list[i])
			base, known := explain.Statistic(s.Of, m.base.metricValues(s.Metric))
			if !ok || !known {
				least = 0
				break
			}
			series := w.of.replayWithGaps(d)
			x, _ := explain.Statistic(s.Of, series.metricValues(s.Metric))
			least = min(least, 1-x/base)
		}
		list[i].Gain = least
	}
	stats.SortStable(list, func(a, b explain.Trial) int { return cmp.Compare(trialWorth(&b), trialWorth(&a)) })
	return list
}

// trialWorth returns the gain of a trial. It counts half where answers have to be judged again. A
// setting that leaves the model as it is costs a restart and no more.
func trialWorth(t *explain.Trial) float64 {
	if t.ChangesAnswers {
		return t.Gain / 2
	}
	return t.Gain
}
