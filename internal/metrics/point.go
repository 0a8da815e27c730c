package metrics

import (
	"errors"

	"pitot/internal/metrics/validity"
	"pitot/internal/results/metric"
	"pitot/internal/results/result"
)

// Point is the result of all that was added so far. More can be added after.
func (f *Fold) Point() result.Point {
	scratch := f.store.NewScratch()
	defer func() { f.broken = errors.Join(f.broken, scratch.Err(), scratch.Close()) }()
	all := f.buildPart(f.groups.list, scratch)
	all.makeOutline()
	p := result.Point{
		Stage: f.setup.Stage,
		Load:  f.setup.Load,

		PrefixCache: f.setup.PrefixCache(),
		Seconds:     f.windowSeconds(),
		Requests:    all.countOutcomes(),
		Throughput:  f.windowThroughput(all.tally.dueCount() + int64(f.questions.dueCount())),
		Answers:     f.questions.result(),
	}
	took := all.answerTimes()
	p.Seconds.Residence = f.queue.ResidenceTime(took)
	f.queue.SetStability(&p, took, f.end)
	p.OverTime = f.overTime(all, &p)
	f.conf = f.assessConfidence(all, p.Stability, took, p.Seconds.Residence)
	p.Sessions = f.sessionsOf()
	f.setRateIntervals(&p.Throughput, f.conf)
	p.Throughput.Late = f.lateThroughput(p.Throughput.OutputTokensPerS)
	classes := f.groups.shownClasses()
	parts := []*part{all}
	for i := range classes {
		parts = append(parts, f.buildPart(classes[i].groups, scratch))
	}
	metrics := metricsOf(parts)
	p.Metrics = metrics[0]
	p.Requests.Errors, p.Requests.Finish, p.Requests.LostWithWorker = clone(f.errors), clone(f.finish), f.lostWithWorker
	p.Requests.SkippedEvents = f.skipped
	if f.setup.Load.Retry != "" {
		p.Retries = f.retried.result()
	}
	p.RateLimits = f.limits.result()
	for class, e := range f.examples {
		if p.Requests.ErrorExamples == nil {
			p.Requests.ErrorExamples = map[string]string{}
		}
		p.Requests.ErrorExamples[class] = e.detail
	}
	objective, good := all.evaluateObjective(f.setup.SLO)
	var ofClasses map[string]*result.ClassSLO
	if objective != nil {
		ofClasses = f.ofClasses(f.setup.SLO, objective, scratch)
	}
	all.setGoodInterval(objective, good)
	p.SLO = objective
	if objective != nil {
		p.Goodput = f.goodputOf(good)
		if p.IsOfCurve() {
			objective.Violations = f.inBlocks()
		}
	}
	f.setWindowMetrics(&p)
	signals := f.setup.Signals
	if signals == nil {
		signals = metric.FromSignals()
	}
	p.Server, p.ServerMissing = f.server.signalValues(signals), f.setup.Missing
	p.Energy = f.gpuEnergy(&p)
	p.Cost = f.servingCost(&p)
	p.Outcome = serverOutcome(validity.CountLost(p.Requests))
	for i, c := range classes {
		if p.Classes == nil {
			p.Classes = map[string]result.Class{}
		}
		p.Classes[c.name] = result.Class{Requests: parts[i+1].countOutcomes(), Metrics: metrics[i+1], SLO: ofClasses[c.name]}
	}
	validity.WithholdUnsteady(&p, &f.conditions)
	p.Standstills = f.arrivals.FindStandstills(&f.conditions, all.times())
	f.untilReached(&p)
	p.Checks = f.gatherEvidence(all, &p).ApplicableChecks()
	f.judgeWorkers(&p)
	p.Verdict = validity.VerdictOf(p.Checks)
	return p
}

func clone(m map[string]int) map[string]int {
	out := make(map[string]int, len(m))
	for k, v := range m {
		out[k] = v
	}
	return out
}

func (f *Fold) windowSeconds() result.Seconds {
	return result.Seconds{
		Warmup: float64(f.setup.T0) / 1e9,
		Window: f.conditions.Seconds(),
		Drain:  float64(f.lastDone-f.setup.T1) / 1e9,
	}
}

func (f *Fold) windowThroughput(due int64) result.Throughput {
	s, w := f.conditions.Seconds(), &f.flow
	switch {
	case s <= 0:
		return result.Throughput{Why: result.Reason{Code: result.WindowEmpty}}
	case s < validity.Shortest:
		return result.Throughput{Why: result.Reason{Code: result.WindowTooShort, Seconds: s}}
	}
	per := func(n float64) *float64 { x := n / s; return &x }
	t := result.Throughput{DuePerS: per(float64(due)), RequestsPerS: per(float64(w.requests)), RPM: per(60 * float64(w.requests))}
	rate := func(millionths int64) *float64 { x := float64(millionths) / 1e6 / s; return &x }
	if w.noInput == 0 {
		t.InputTokensPerS = rate(w.input)
	}
	output, uncounted := w.output, w.lostOutput
	if w.oneEach() {
		output, uncounted = output+1e6*uncounted, 0
	}
	if w.noOutput == 0 && w.generating > 0 {
		t.OutputTokensPerS = rate(output)
	}
	switch {
	case w.noOutput > 0:
		t.Why = result.Reason{Code: result.OutputNotCounted}
	case w.noInput > 0:
		t.Why = result.Reason{Code: result.InputNotCounted}
	case uncounted > 0:
		t.Why = result.Reason{Code: result.FailedNotCounted}
	case w.noUsage > 0:
		t.Why = result.Reason{Code: result.CountedByClient}
	}
	if n := f.setup.GPUs; n > 0 {
		t.PerGPU = &result.PerGPU{GPUs: n, RequestsPerS: *t.RequestsPerS / float64(n)}
		if t.OutputTokensPerS != nil {
			x := *t.OutputTokensPerS / float64(n)
			t.PerGPU.OutputTokensPerS = &x
		}
	}
	return t
}

// setWindowMetrics fills in the metrics of the window that have no field of their own.
func (f *Fold) setWindowMetrics(p *result.Point) {
	s := f.conditions.Seconds()
	for i := range f.others {
		d := &f.others[i]
		var x float64
		switch {
		case s < validity.Shortest:
			continue
		case d.Count != nil:
			x = float64(f.counts[i]) / s
		default:
			known := false
			if x, known = d.Window(f, p); !known {
				continue
			}
		}
		if p.Window == nil {
			p.Window = map[string]float64{}
		}
		p.Window[d.FieldName()] = x
	}
}

// goodputOf returns what the good requests of the cohort amount to, per second of the window.
func (f *Fold) goodputOf(good *judgement) *result.Goodput {
	s := f.conditions.Seconds()
	if s < validity.Shortest {
		return nil
	}
	g := &result.Goodput{RequestsPerS: float64(good.good) / s}
	if good.uncounted {
		return g
	}
	x := float64(good.output) / s
	g.OutputTokensPerS = &x
	return g
}

// serverOutcome is the server's side: what share of the requests it answered.
func serverOutcome(lost, of int) result.Outcome {
	switch {
	case of > 0 && 2*lost >= of:
		return result.Failing
	case of > 0 && 100*lost >= of:
		return result.Degraded
	}
	return result.OK
}
