package predict

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pitot/internal/sim"
	"pitot/internal/sim/deploy"
	"pitot/internal/stats"
)

// simulated is a run that a deployment served, as a client records it.
func simulated(t *testing.T, d *deploy.Deployment, rate float64, n int, seed uint64) *Recording {
	t.Helper()
	r := &Recording{Dir: "simulated", AtClient: true}
	at := 0.0
	for i := range n {
		u := func(k uint64) float64 {
			return (float64(sim.Mix(seed^sim.Mix(uint64(i)<<8|k))>>12) + 0.5) / (1 << 52)
		}
		at += -math.Log(u(1)) / rate
		r.Requests = append(r.Requests, Recorded{Arrival: at, Input: 100 + int(u(2)*1500), Output: 20 + int(u(3)*150), measured: true})
	}
	times := make([][]float64, n)
	for i, t := range r.serve(d, seed, func(request, at int64) bool {
		times[request] = append(times[request], float64(at)/1e9)
		return true
	}) {
		q := &r.Requests[i]
		late := q.Arrival - t.sent // less than a nanosecond, which a client would see too
		q.seen, q.times = t, times[i]
		q.seen.sent, q.seen.ttft, q.seen.e2e = q.Arrival, t.ttft-late, t.e2e-late
	}
	return r
}

// calibrated is what FitRuns fits, without what judges it: predictions of the requests
// that were held back, and fits that leave a load out, which take most of the time.
func calibrated(t *testing.T, start *deploy.Deployment, runs ...*Recording) (*fitter, slowness) {
	t.Helper()
	f, _, slow, err := fitParameters(start, nil, shownOf(runs), mostSlopes)
	if err != nil {
		t.Fatal(err)
	}
	return f, slow
}

// A fit finds the engine that made the runs: its parameters where they can be
// told apart, and another load of it within a few percent.
func TestFitFindsTheTruth(t *testing.T) {
	if testing.Short() {
		t.Skip("replays for seconds")
	}
	truth, err := deploy.Parse("llama-3.1-8b@rtx4090?step_overhead=6ms&row_overhead=60us&compute_efficiency=0.5&frontend_request=8ms&frontend_chunk=90us&max_num_seqs=48")
	if err != nil {
		t.Fatal(err)
	}
	start, err := deploy.Parse("llama-3.1-8b@rtx4090?max_num_seqs=48")
	if err != nil {
		t.Fatal(err)
	}
	calm, busy := simulated(t, truth, 0.5, 150, 1), simulated(t, truth, 3, 400, 2)
	calm.Dir, busy.Dir = "calm", "busy" // two loads
	fit, err := FitRuns(start, []*Recording{calm, busy})
	if err != nil {
		t.Fatal(err)
	}
	// What a step costs is found, whichever parameter it is ascribed to.
	for _, b := range []sim.Batch{
		{Requests: 1, Tokens: 1, Logits: 1, Decodes: 1, DecodeContext: 500},
		{Requests: 16, Tokens: 16, Logits: 16, Decodes: 16, DecodeContext: 16 * 800},
		{Requests: 9, Tokens: 1008, Logits: 9, Decodes: 8, DecodeContext: 8 * 800, Prefills: []sim.Chunk{{New: 1000}}},
	} {
		got, want := fit.Fitted.Parts(&b).Total(), truth.Parts(&b).Total()
		if got < want*0.93 || got > want*1.07 {
			t.Errorf("a step of %d tokens takes %.2f ms, fitted %.2f ms", b.Tokens, want*1e3, got*1e3)
		}
	}
	for _, p := range fit.Parameters {
		want, known := map[string]float64{"step_overhead": 6e-3, "row_overhead": 60e-6, "compute_efficiency": 0.5, "frontend_request": 8e-3, "frontend_chunk": 90e-6}[p.Name]
		if far := math.Abs(math.Log(p.Value / want)); known && !p.AtBound && p.Reason == "" && (far > 1.5*math.Log(p.Factor) || p.Identified && far > 0.15) || p.Name == "frontend_contention" && p.Identified {
			t.Errorf("%+v, the truth is %g", p, want)
		}
		if p.AtBound != (p.Reason == "at its bound") || p.AtBound && p.Factor != 1 {
			t.Errorf("a range at a bound: %+v", p)
		}
		if !p.AtBound && p.Reason == "" && (p.Low > p.Value || p.High < p.Value) {
			t.Errorf("a value beyond its range: %+v", p)
		}
	}
	for _, r := range fit.Runs { // of the few that are held back, tails tell nothing
		for _, q := range []Quantities{r.ErrorPct.TTFT, r.ErrorPct.TPOT, r.ErrorPct.E2E} {
			if r.Held == 0 || math.Abs(q.Mean) > 4 || math.Abs(q.P50) > 4 {
				t.Errorf("held back: %+v", r)
			}
		}
	}
	if !(fit.Next.ThenPct < fit.Next.NowPct) {
		t.Errorf("a further load: %+v", fit.Next)
	}
	if len(fit.LeftOut) != 2 {
		t.Fatalf("left out: %+v", fit.LeftOut)
	}
	for i, l := range fit.LeftOut { // one load alone tells less of the other
		if want := []string{"calm", "busy"}[i]; !slices.Equal(l.Runs, []string{want}) || l.ErrorPct == nil || math.Abs(l.ErrorPct.TPOT.Mean) > 15 {
			t.Errorf("left out: %+v %+v", l, l.ErrorPct)
		}
	}
	other := simulated(t, truth, 2, 1000, 3) // a p99 needs a thousand
	if w := worst(PercentErrors(other.Replay(fit.Fitted).Metrics(), other.RecordedSeries().Metrics())); w > 6 {
		t.Errorf("another load is off by %.1f %%: %+v", w, PercentErrors(other.Replay(fit.Fitted).Metrics(), other.RecordedSeries().Metrics()))
	}
}

// faster is an engine whose front is faster than the default twin's, and whose
// prompts cost something beside their tokens.
const faster = "llama-3.1-8b@rtx4090?step_overhead=3ms&prefill_overhead=2ms&frontend_latency=600us&frontend_request=400us&frontend_jitter=0.3&max_num_seqs=48"

// What the gaps say nothing of begins where it is plausible and can go down too:
// no parameter ends at a bound that the runs do not ask for, and what is
// called determined is.
func TestFitBeginsFromBelow(t *testing.T) {
	if testing.Short() {
		t.Skip("replays for seconds")
	}
	t.Parallel()
	truth, err := deploy.Parse(faster)
	if err != nil {
		t.Fatal(err)
	}
	start, err := deploy.Parse("llama-3.1-8b@rtx4090?max_num_seqs=48")
	if err != nil {
		t.Fatal(err)
	}
	f, _ := calibrated(t, start, simulated(t, truth, 0.5, 80, 1), simulated(t, truth, 3, 160, 2))
	found := map[string]Fitted{}
	known, _ := f.parameterUncertainty()
	for _, x := range known {
		found[x.Name] = x
	}
	moved, _ := priors(start)
	for _, p := range moved {
		x := found[p.name]
		if v := p.value(truth); v > 2*p.lo && (x.Low > v || x.High < v) {
			t.Errorf("%s is %.3g, said to lie from %.3g to %.3g", x.Name, v, x.Low, x.High)
		}
	}
	if x := found["prefill_overhead"]; x.AtBound || x.Value < 100e-6 {
		t.Errorf("%+v", x)
	}
	if x := found["frontend_latency"]; x.Value > 2.5e-3 {
		t.Errorf("%+v", x)
	}
}

// Of two runs, the fit is of the body: a rare request that took long makes
// neither the middle nor the width of TTFT wrong.
func TestFitOfTheBody(t *testing.T) {
	if testing.Short() {
		t.Skip("replays for seconds")
	}
	t.Parallel()
	truth, err := deploy.Parse("llama-3.1-8b@rtx4090?frontend_jitter=0.2&max_num_seqs=48")
	if err != nil {
		t.Fatal(err)
	}
	runs := []*Recording{simulated(t, truth, 0.3, 100, 1), simulated(t, truth, 2, 180, 2)}
	for _, r := range runs {
		for i := range r.Requests {
			if i%60 == 7 { // it waited in front
				q := &r.Requests[i]
				q.seen.ttft, q.seen.e2e = q.seen.ttft+0.5, q.seen.e2e+0.5
				for j := range q.times {
					q.times[j] += 0.5
				}
			}
		}
	}
	f, slow := calibrated(t, truth, runs...)
	slow.applyTo(&f.d)
	other := simulated(t, truth, 0.3, 1000, 3)
	a, b := slices.Sorted(slices.Values(other.Replay(&f.d).TTFT)), slices.Sorted(slices.Values(other.RecordedSeries().TTFT))
	for _, q := range []float64{.1, .5, .9} {
		if r := stats.Percentile(a, q)/stats.Percentile(b, q) - 1; math.Abs(r) > 0.05 {
			t.Errorf("p%.0f of TTFT is off by %+.1f %%", 100*q, 100*r)
		}
	}
}

func TestFitRefusesTooFew(t *testing.T) {
	d, err := deploy.Parse("llama-3.1-8b@rtx4090")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := FitRuns(d, []*Recording{simulated(t, d, 1, 10, 1)}); err == nil {
		t.Error("ten requests were enough")
	}
}

// noisy is the deployment of which the tests of slow phases simulate runs.
func noisy(t *testing.T, settings string) *deploy.Deployment {
	t.Helper()
	d, err := deploy.Parse("llama-3.1-8b@rtx4090?step_overhead=6ms&row_overhead=60us&compute_efficiency=0.5&frontend_request=8ms&max_num_seqs=48&step_jitter=0.1&" + settings)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// Slow phases are found in the gaps of two runs, however long they are, and
// none where there are none.
func TestSlowPhasesAreFound(t *testing.T) {
	if testing.Short() {
		t.Skip("simulates for seconds")
	}
	t.Parallel()
	for _, c := range []struct{ cv, time float64 }{{0, 1}, {0.1, 1}, {0.2, 0.3}, {0.2, 3}, {0.35, 1}} {
		const seeds = 2
		logCV, logTime := 0.0, 0.0
		for seed := range uint64(seeds) {
			truth := noisy(t, fmt.Sprintf("slow_cv=%v&slow_time=%vs", c.cv, c.time))
			var g regression
			g.addGaps(simulated(t, truth, 1, 200, 10*seed+1))
			g.addGaps(simulated(t, truth, 2, 400, 10*seed+2))
			s := g.slowPhases()
			if c.cv == 0 {
				if s.cv != 0 {
					t.Errorf("slow phases of %.3f over %.2f s where there are none", s.cv, s.time)
				}
				continue
			}
			if math.Abs(math.Log(s.cv/c.cv)) > math.Log(1.25) || math.Abs(math.Log(s.time/c.time)) > math.Log(2) {
				t.Errorf("slow_cv %v and slow_time %v s, found %.3f and %.2f s", c.cv, c.time, s.cv, s.time)
			}
			logCV, logTime = logCV+math.Log(s.cv/c.cv)/seeds, logTime+math.Log(s.time/c.time)/seeds
		}
		// The mean of two scatters by 0.25 where a phase takes 3 s.
		if math.Abs(logCV) > 0.1 || math.Abs(logTime) > 0.35 {
			t.Errorf("slow_cv %v and slow_time %v s, found %.2f and %.2f times as large in the mean", c.cv, c.time, math.Exp(logCV), math.Exp(logTime))
		}
	}
}

// series are residuals of steps of 10 ms: slow phases, jitter, and now and then
// a stall of 50 times a step.
func series(n int, cv, time, jitter, stalls float64, seed uint64) []stepResidual {
	dice := rand.New(rand.NewPCG(seed, 7))
	list := make([]stepResidual, n)
	x, rho := cv*dice.NormFloat64(), math.Exp(-0.01/time)
	for i := range list {
		x = rho*x + cv*math.Sqrt(1-rho*rho)*dice.NormFloat64()
		list[i] = stepResidual{float64(i) * 0.01, x + jitter*dice.NormFloat64()}
		if dice.Float64() < stalls {
			list[i].log += math.Log(50)
		}
	}
	return list
}

// The intervals hold the truth about as often as they say, with stalls too.
func TestSlowPhasesIntervals(t *testing.T) {
	if testing.Short() {
		t.Skip("slow under the race detector")
	}
	t.Parallel()
	const seeds, cv, time = 20, 0.15, 1.0
	for _, stalls := range []float64{0, 0.002} {
		inCV, inTime := 0, 0
		for seed := range uint64(seeds) {
			list := series(9_000, cv, time, 0.15, stalls, seed)
			winsorise(list)
			v, ok := autocovariances([][]stepResidual{list}, nil)
			if !ok {
				t.Fatal("too few")
			}
			s := v.estimateSlowness()
			if math.Abs(math.Log(s.cv/cv)) < 1.96*s.cvSE {
				inCV++
			}
			if math.Abs(math.Log(s.time/time)) < 1.96*s.timeSE {
				inTime++
			}
		}
		t.Logf("%d and %d of %d intervals hold the truth", inCV, inTime, seeds)
		if inCV < seeds*85/100 || inTime < seeds*85/100 {
			t.Errorf("%d of %d intervals hold slow_cv, %d slow_time", inCV, seeds, inTime)
		}
	}
}

// What a fit cannot know it says.
func TestSlowPhasesNotDetermined(t *testing.T) {
	for want, s := range map[string]slowness{
		"too few steps":        {},
		"no slow phases found": {seconds: 100},
		"12 correlation times": {cv: 0.2, time: 10, seconds: 120, cvSE: 0.1, timeSE: 0.1},
		"":                     {cv: 0.2, time: 1, seconds: 120, cvSE: 0.1, timeSE: 0.1},
	} {
		for _, f := range s.parameters() {
			if !strings.Contains(f.Reason, want) || (f.Reason == "") != (want == "") || (f.Factor == 1) != (want != "") {
				t.Errorf("%q: %+v", want, f)
			}
		}
	}
}

// Over a short run slow phases alone move the means, and it is said.
func TestRedoSaysWhatPhasesMayDo(t *testing.T) {
	d := noisy(t, "slow_cv=0.2&slow_time=3s")
	if s := chanceText(&d.Settings, 60); !strings.Contains(s, "differ by up to 18 %") {
		t.Error(s)
	}
	if s := chanceText(&d.Settings, 36_000); s != "" {
		t.Error(s)
	}
	if s := chanceText(&noisy(t, "slow_cv=0").Settings, 60); s != "" {
		t.Error(s)
	}
}

// The tail of another load needs the slow phases: TPOT of answers that are
// shorter than a phase has the spread of phases, which jitter averages out.
func TestFitFindsTheTail(t *testing.T) {
	if testing.Short() {
		t.Skip("replays for seconds")
	}
	truth := noisy(t, "slow_cv=0.2&slow_time=3s")
	start, err := deploy.Parse("llama-3.1-8b@rtx4090?max_num_seqs=48")
	if err != nil {
		t.Fatal(err)
	}
	// A run has few phases that are that slow: one alone has them by chance.
	p99 := func(d *deploy.Deployment) float64 {
		var all []float64
		for k := range uint64(6) {
			all = append(all, simulated(t, d, 2, 500, 100+k).RecordedSeries().TPOT...)
		}
		return quantities(all).P99
	}
	want := p99(truth)
	f, slow := calibrated(t, start, simulated(t, truth, 1, 150, 1), simulated(t, truth, 3, 300, 2))
	slow.applyTo(&f.d)
	fitted, plain := &f.d, f.d
	plain.Settings.SlowCV = 0
	with, without := p99(fitted)/want-1, p99(&plain)/want-1
	t.Logf("p99 of TPOT %+.1f %% with slow phases of %.3f over %v, %+.1f %% without", 100*with, fitted.Settings.SlowCV, fitted.Settings.SlowTime, 100*without)
	if math.Abs(with) > 0.06 || without > -0.05 {
		t.Errorf("p99 of TPOT is off by %.1f %% with slow phases and by %.1f %% without", 100*with, 100*without)
	}
}

// Runs in which the phases are all the noise there is, with a pause longer than
// a grain, have a course all the same.
func TestCourseWithoutJitter(t *testing.T) {
	s := slowness{cv: 0.2, time: 2, fast: 0}
	var list []stepResidual
	for i := range 200 {
		at := float64(i) / 10
		if i >= 100 {
			at += 5
		}
		list = append(list, stepResidual{at: at, log: 0.2 * math.Sin(at)})
	}
	c := s.drawCourse(list)
	for _, f := range c.factors {
		if !(f > 0) || math.IsInf(f, 1) {
			t.Fatalf("a factor of %v", f)
		}
	}
}

// Long prompts that are computed in parts make steps longer for seconds, which the
// regression of gaps has no column for. A replay without slow phases does so too: they are
// taken for none.
func TestLongPromptsAreNoSlowPhases(t *testing.T) {
	if testing.Short() {
		t.Skip("replays for seconds")
	}
	t.Parallel()
	const spec = "mistral-small-24b@2xl40s?max_model_len=16384&max_num_seqs=128&max_num_batched_tokens=2048"
	truth, err := deploy.Parse(spec + "&step_overhead=2ms&compute_efficiency=0.5&prompt_attention_efficiency=0.3&step_jitter=0.05")
	if err != nil {
		t.Fatal(err)
	}
	start, err := deploy.Parse(spec)
	if err != nil {
		t.Fatal(err)
	}
	var runs []*Recording
	for i, l := range []DesignLoad{{16, 6000, 16}, {16, 6000, 16}, {16, 512, 128}, {64, 64, 128}} {
		runs = append(runs, l.LoadFor(12, 2).Serve(truth.Engine(uint64(i)+50), uint64(i)))
	}
	gaps, _ := gapsOf(shownOf(runs))
	if gaps.slowPhases().cv == 0 {
		t.Fatal("these runs do not tell: no phases are suspected")
	}
	f, slow := calibrated(t, start, runs...)
	if slow.cv != 0 {
		t.Errorf("slow phases of %.3f over %.2f s", slow.cv, slow.time)
	}
	b := sim.Batch{Requests: 16, Tokens: 16, Logits: 16, Decodes: 16, DecodeContext: 16 * 800}
	if got, want := f.d.Parts(&b).Total(), truth.Parts(&b).Total(); math.Abs(got/want-1) > 0.05 {
		t.Errorf("a step takes %.2f ms, fitted %.2f ms", want*1e3, got*1e3)
	}
}
