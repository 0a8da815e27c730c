package explain

import (
	"math"
	"slices"
	"strings"
	"testing"

	"pitot/internal/results/metric"
	"pitot/internal/sim/engine/sglang"
)

var (
	tail  = Symptom{metric.TTFT, "p90"}
	token = Symptom{metric.TPOT, "mean"}
	stall = Symptom{metric.Stall, "p90"}
)

// twin is one of which most would agree.
func twin(gains map[Cause]float64) *Twin {
	t := &Twin{Name: "twin", Value: 100, Off: 0.05, Slower: 1, Reliefs: map[Cause]Relief{}}
	most := 0.0
	for _, g := range gains {
		most = max(most, g)
	}
	for cause, g := range gains {
		r := Relief{Gain: g}
		if g >= Least && g >= most/2 {
			r.Among = 1
		}
		t.Reliefs[cause] = r
	}
	return t
}

// facts are pairs of a signal and its value.
func facts(pairs ...any) Facts {
	f := Facts{}
	for i := 0; i < len(pairs); i += 2 {
		f.Set(pairs[i].(Signal), pairs[i+1].(float64), "", FromServer)
	}
	return f
}

func TestDiagnose(t *testing.T) {
	for _, c := range []struct {
		name string
		of   Case
		want Cause
	}{
		{"nothing is known", Case{Symptom: tail, Value: 100}, Unknown},
		{"the twins agree", Case{Symptom: tail, Value: 100, Twin: twin(map[Cause]float64{Seats: .6, Compute: .2})}, Seats},
		{"the twins are far off", Case{Symptom: tail, Value: 100, Twin: func() *Twin {
			x := twin(map[Cause]float64{Seats: .6})
			x.Off = 1
			return x
		}()}, Unknown},
		{"nothing helps", Case{Symptom: tail, Value: 100, Twin: twin(map[Cause]float64{Seats: 0, Compute: .02})}, Unknown},
		{"a limit goes before the host, which no server is rid of", Case{Symptom: tail, Value: 100, Twin: twin(map[Cause]float64{Host: .6, Budget: .5})}, Budget},
		{"a limit that matters less does not", Case{Symptom: tail, Value: 100, Twin: twin(map[Cause]float64{Host: .6, Budget: .32})}, Host},
		{"seats were free", Case{Symptom: tail, Value: 100, Twin: twin(map[Cause]float64{Seats: .6, Compute: .2}),
			Facts: facts(RunningMost, 3., MaxSeats, 8., Samples, 20.)}, Compute},
		{"how many ran is not known, which is not 0", Case{Symptom: tail, Value: 100, Twin: twin(map[Cause]float64{Seats: .6, Compute: .2}),
			Facts: facts(MaxSeats, 8.)}, Seats},
		{"the KV cache had room", Case{Symptom: tail, Value: 100, Twin: twin(map[Cause]float64{KVCache: .6, Bandwidth: .2}),
			Facts: facts(KVMost, .4, Preempted, 0., Samples, 20., PlannedHits, 0.)}, Bandwidth},
		{"a long round trip", Case{Symptom: tail, Value: 100, Twin: twin(map[Cause]float64{Compute: .1}), Facts: facts(RoundTrip, 60.)}, Network},
		{"a late client", Case{Symptom: tail, Value: 100, Twin: twin(map[Cause]float64{Compute: .1}), Facts: facts(LagShare, .6)}, Client},
		{"a proxy", Case{Symptom: stall, Value: 200, Facts: facts(PerArrival, 8., Evenness, .05, GapMedian, 200., TPOTMean, 25.)}, Proxy},
		{"several tokens now and then are no proxy", Case{Symptom: stall, Value: 100, Facts: facts(PerArrival, 1.8, Evenness, .05, GapMedian, 8., TPOTMean, 8.5)}, Unknown},
		{"chunks of several tokens are no proxy", Case{Symptom: stall, Value: 200, Facts: facts(PerArrival, 8., Evenness, .8, GapMedian, 200., TPOTMean, 20.)}, Unknown},
		{"others", Case{Symptom: token, Value: 20, Twin: twin(map[Cause]float64{Bandwidth: .1}), Facts: facts(ForeignShare, .5)}, Foreign},
		{"a clock held down", Case{Symptom: token, Value: 20, Twin: twin(map[Cause]float64{Bandwidth: .1}), Facts: facts(ClockShare, .6)}, Throttling},
		{"too slow for any like it", Case{Symptom: token, Value: 20, Twin: func() *Twin {
			x := twin(map[Cause]float64{Bandwidth: .2})
			x.Slower = 2
			return x
		}()}, Unknown},
		{"a queue before full seats, and no twin", Case{Symptom: tail, Value: 1000,
			Facts: facts(QueueMean, 800., TTFTMean, 900., WaitingOften, .9, Running, 7.9, RunningMost, 8., KVMost, .5, Preempted, 0.)}, Seats},
		{"a queue before a full cache, and no twin", Case{Symptom: tail, Value: 1000,
			Facts: facts(QueueMean, 800., TTFTMean, 900., WaitingOften, .9, Running, 6., RunningMost, 8., KVUse, .97, KVMost, 1., Preempted, 0.)}, KVCache},
		{"a queue before full seats, a late client, and no twin", Case{Symptom: tail, Value: 1000,
			Facts: facts(LagShare, .3, QueueMean, 800., TTFTMean, 900., WaitingOften, .9, Running, 7.9, RunningMost, 8., KVMost, .5, Preempted, 0.)}, Client},
		{"prefixes that the cache loses, and no twin", Case{Symptom: tail, Value: 1000,
			Facts: facts(PlannedHits, .9, HitShare, .3, QueueMean, 10., PrefillMean, 700., TTFTMean, 900.)}, PrefixCache},
		{"prefixes that the cache has, and no twin", Case{Symptom: tail, Value: 1000,
			Facts: facts(PlannedHits, .9, HitShare, .89, QueueMean, 10., PrefillMean, 850., TTFTMean, 900.)}, Compute},
		{"tokens that the engine had long ago, and no twin", Case{Symptom: token, Value: 20,
			Facts: facts(AnswerMean, 2000., AnswerError, 200., DecodeMean, 900., PerArrival, 1., Evenness, .8, GapMedian, 20., TPOTMean, 20.)}, Frontend},
		{"means of answers as far apart as chance makes them, and no twin", Case{Symptom: token, Value: 20,
			Facts: facts(AnswerMean, 4600., AnswerError, 350., DecodeMean, 4200., PerArrival, 1., Evenness, .4, GapMedian, 13., TPOTMean, 22.)}, Steps},
		{"requests that the engine has not, and no twin", Case{Symptom: tail, Value: 5000,
			Facts: facts(InFlight, 40., Running, 1., Waiting, 0., Samples, 9., TTFTMean, 4000., AnswerMean, 500., Evenness, .8)}, Frontend},
		{"fewer in the engine than in flight, by the chance of the samples, and no twin", Case{Symptom: tail, Value: 40,
			Facts: facts(InFlight, .0759, Running, .0702, Waiting, 0., Samples, 641., TTFTMean, 31.4, AnswerMean, 889., Evenness, .03)}, Unknown},
		{"a front end that has less of the time than prefill", Case{Symptom: tail, Value: 44, Twin: twin(map[Cause]float64{Frontend: .163, Compute: .151}),
			Facts: facts(QueueMean, .3, PrefillMean, 26., TTFTMean, 31.4)}, Compute},
		{"a front end that has more of it", Case{Symptom: tail, Value: 44, Twin: twin(map[Cause]float64{Frontend: .5, Compute: .1}),
			Facts: facts(QueueMean, .3, PrefillMean, 10., TTFTMean, 31.4)}, Frontend},
		{"a front end that has less of it, and no twin", Case{Symptom: tail, Value: 44,
			Facts: facts(InFlight, 40., Running, 1., Waiting, 0., Samples, 99., AnswerMean, 500., Evenness, .8, QueueMean, .3, PrefillMean, 26., TTFTMean, 31.4)}, Compute},
		{"stalls while others' prompts are computed in several steps", Case{Symptom: stall, Value: 300,
			Facts: facts(AtFirsts, .3, AtFirstsBy, .02, Beside, .9, BesideBy, .1)}, Compute},
		{"others' prompts are always there", Case{Symptom: stall, Value: 300,
			Facts: facts(AtFirsts, .3, AtFirstsBy, .02, Beside, .9, BesideBy, .9)}, Unknown},
		{"every seat is taken and requests wait, with prompts that take long too, and no twin", Case{Symptom: tail, Value: 4000,
			Facts: facts(QueueMean, 1500., PrefillMean, 900., TTFTMean, 2600., WaitingOften, .9, Running, 54., RunningUsual, 64., RunningMost, 64., MaxSeats, 64., Samples, 10., KVMost, .4, Preempted, 0.)}, Seats},
		{"the client holds requests back", Case{Symptom: tail, Value: 1000, Facts: facts(HeldShare, .8, MostInFlight, 20.)}, Hold},
		{"an API server that has a quarter of the time of answers, and the engine the rest", Case{Symptom: token, Value: 182,
			Facts: facts(AnswerMean, 5642., AnswerError, 100., DecodeMean, 4181., Answered, 250., EngineServed, 250., ForeignShare, 0.)}, Steps},
		{"a proxy that is slow, and an API server that has little work", Case{Symptom: tail, Value: 900,
			Facts: facts(QueueMean, 5., PrefillMean, 60., TTFTMean, 480., Answered, 200., EngineServed, 200., ForeignShare, 0., FrontWork, 8., FrontBusy, .05, RoundTrip, .4)}, Proxy},
		{"prompts alone, and no twin", Case{Symptom: tail, Value: 1000, Facts: facts(QueueMean, 10., PrefillMean, 850., TTFTMean, 900.)}, Compute},
		{"requests were sent again", Case{Symptom: Symptom{metric.TTFT, "p99"}, Value: 100, Twin: twin(map[Cause]float64{Seats: .6}), Facts: facts(SentAgain, .02)}, Unknown},
		{"some of them, far beyond the median", Case{Symptom: Symptom{metric.TTFT, "p50"}, Value: 100, Twin: twin(map[Cause]float64{Seats: .6}), Facts: facts(SentAgain, .02)}, Seats},
		{"sent again, of tokens", Case{Symptom: token, Value: 100, Twin: twin(map[Cause]float64{Seats: .6}), Facts: facts(SentAgain, .5)}, Seats},
		{"most requests failed", Case{Symptom: tail, Value: 100, Twin: twin(map[Cause]float64{Seats: .6}), Facts: facts(Unanswered, .7)}, Unknown},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.of.Facts == nil {
				c.of.Facts = Facts{}
			}
			d := Diagnose(&c.of)
			if p := d.Primary; p.Cause != c.want || p.Claim == "" || p.Confirm == "" || (p.Cause == Unknown) != (p.Confidence == "") {
				t.Errorf("%+v, want %s", p, c.want)
			}
		})
	}
}

// A cause is ruled out by a test that would have shown it, with the most that it may have, and by
// nothing else.
func TestRuledOut(t *testing.T) {
	full := facts(QueueMean, 1500., PrefillMean, 900., TTFTMean, 2600., WaitingOften, .9, Running, 54., RunningUsual, 64., RunningMost, 64., MaxSeats, 64., Samples, 10., KVMost, .4, Preempted, 0.,
		Answered, 250., EngineServed, 250., ForeignShare, 0.)
	engine := func(answered float64) Facts { // of a request that takes 100 ms, 4 ms outside the engine
		return facts(QueueMean, 6., PrefillMean, 90., TTFTMean, 97., Answered, answered, EngineServed, 250., ForeignShare, 0.)
	}
	for name, c := range map[string]struct {
		of     Symptom
		value  float64
		facts  Facts
		cause  Cause
		atMost float64 // ruled out with that; else
		lacks  Signal  // not tested for lack of that; else not ruled out
	}{
		"64 of 64 seats run, others wait":                {tail, 4000, full, Seats, -1, ""},
		"fewer run than may":                             {tail, 100, facts(RunningMost, 3., MaxSeats, 8., Samples, 20.), Seats, 0, ""},
		"the running requests were read too rarely":      {tail, 100, facts(RunningMost, 3., MaxSeats, 8., Samples, 2.), Seats, -1, ""},
		"nothing was held":                               {tail, 1000, facts(HeldShare, 0., MostInFlight, 20.), Hold, 0, ""},
		"a fifth of it was held":                         {tail, 1000, facts(HeldShare, .2, MostInFlight, 20.), Hold, -1, ""},
		"a short first hop, and no metrics":              {tail, 1000, facts(RoundTrip, .3), Network, -1, QueueMean},
		"a short first hop, and 400 ms beyond it":        {tail, 1000, facts(RoundTrip, .3, QueueMean, 10., PrefillMean, 90., TTFTMean, 500., Answered, 250., EngineServed, 250., ForeignShare, 0.), Network, -1, ""},
		"the engine's own times are the client's":        {tail, 200, engine(250), Network, .0115, ""},
		"the engine's times are those of other requests": {tail, 200, engine(200), Network, -1, ""},
		"a proxy is as far away":                         {tail, 200, engine(250), Proxy, .0115, ""},
		"silence through most of the stalls":             {stall, 400, facts(SilentInTail, 380.), Freezes, -1, ""},
		"others' streams went on":                        {stall, 2000, facts(SilentInTail, 60.), Freezes, .03, ""},
		"decode is three quarters":                       {token, 182, facts(AnswerMean, 5642., DecodeMean, 4181., Answered, 250., EngineServed, 250., ForeignShare, 0.), Frontend, -1, ""},
		"decode is all of it":                            {token, 182, facts(AnswerMean, 5642., DecodeMean, 5600., Answered, 250., EngineServed, 250., ForeignShare, 0.), Frontend, 42. / 5642, ""},
		"a queue is longer than what is in front of it":  {tail, 4000, facts(QueueMean, 1500., PrefillMean, 900., TTFTMean, 2900., Answered, 250., EngineServed, 250., ForeignShare, 0.), Frontend, -1, ""},
		"prompts have nothing in common":                 {tail, 100, facts(PlannedHits, 0.), PrefixCache, 0, ""},
		"what prompts have in common is not known":       {tail, 100, facts(HitShare, 0.), PrefixCache, -1, PlannedHits},
		"requests wait longer than their prompts take":   {tail, 4000, full, Compute, -1, TensorBusy},
	} {
		p := Diagnose(&Case{Symptom: c.of, Value: c.value, Facts: c.facts}).Primary
		i := slices.IndexFunc(p.Excluded, func(e Excluded) bool { return e.Cause == c.cause })
		if i >= 0 != (c.atMost >= 0) {
			t.Errorf("%s: ruled out: %v", name, p.Excluded)
		}
		if e := (Excluded{}); i >= 0 {
			if e = p.Excluded[i]; math.Abs(e.AtMost-c.atMost) > 1e-6 || len(e.Evidence) == 0 || p.Cause == c.cause {
				t.Errorf("%s: %+v, want %v", name, e, c.atMost)
			}
		}
		if c.lacks != "" && !slices.ContainsFunc(p.Untested, func(u Untested) bool { return u.Cause == c.cause && slices.Contains(u.Lacks, c.lacks) }) {
			t.Errorf("%s: not tested: %+v", name, p.Untested)
		}
	}
	if p := Diagnose(&Case{Symptom: tail, Value: 1000, Facts: facts(HeldShare, 0.)}).Primary; len(p.Excluded)+len(p.Untested) == 0 || slices.ContainsFunc(p.Excluded, func(e Excluded) bool { return e.Cause == Hold }) {
		t.Errorf("a load without --max-in-flight: %+v", p)
	}
}

// The parts of the mean are known where the engine tells of the same requests.
func TestParts(t *testing.T) {
	f := facts(HeldMean, 100., LagMean, 0., ConnectMean, 0., RoundTrip, 10., QueueMean, 20., PrefillMean, 40., TTFTMean, 100., Answered, 250., EngineServed, 250., ForeignShare, 0.)
	want := map[PartName]float64{HeldPart: .5, LagPart: 0, ConnectPart: 0, NetworkPart: .05, OutsidePart: .15, QueuePart: .1, PrefillPart: .2}
	for _, x := range Diagnose(&Case{Symptom: tail, Value: 100, Facts: f}).Parts {
		if math.Abs(x.Share-want[x.Name]) > 1e-9 || math.Abs(x.MS-200*x.Share) > 1e-9 {
			t.Errorf("%+v, want %v", x, want[x.Name])
		}
		delete(want, x.Name)
	}
	if len(want) > 0 {
		t.Errorf("%v are missing", want)
	}
	f = facts(AnswerMean, 5642., DecodeMean, 4181., Answered, 250., EngineServed, 250., ForeignShare, 0.)
	if p := Diagnose(&Case{Symptom: token, Value: 182, Facts: f}).Parts; len(p) != 2 || math.Abs(p[1].Share-4181./5642) > 1e-9 || p[1].Name != DecodePart {
		t.Errorf("%+v", p)
	}
	f.Set(ForeignShare, .3, "share", FromServer)
	if p := Diagnose(&Case{Symptom: token, Value: 182, Facts: f}).Parts; p != nil {
		t.Errorf("%+v, and the engine's times are of others too", p)
	}
}

// The rules: each has a source, what it needs, and words for its cause.
func TestRules(t *testing.T) {
	for i, r := range rules {
		if r.source == "" || len(r.needs) == 0 || len(r.of) == 0 {
			t.Errorf("rule %d, of %s, lacks a part", i, r.cause)
		}
	}
	for _, cause := range causes {
		for _, m := range every {
			if w := wording(cause, m, Facts{}); w.Claim == "" || w.Confirm == "" {
				t.Errorf("%s of %s has no words", cause, m)
			}
		}
	}
	if len(wordings()) != len(causes) {
		t.Errorf("%d wordings of %d causes", len(wordings()), len(causes))
	}
}

// stream is a request whose tokens come at times.
func stream(due, sent float64, chunks ...float64) Request {
	n := len(chunks)
	r := Request{Due: due, Sent: sent, First: chunks[0], Last: chunks[n-1], Connect: math.NaN(), Input: 100, Output: n, Chunks: chunks, Measured: true}
	r.TPOT = (r.Last - r.First) / float64(n-1)
	s := r.longestGap()
	r.Stall = s.to - s.from
	return r
}

// steady is times a step apart, those that a change moves moved.
func steady(from, step float64, n int, change func(float64) float64) (list []float64) {
	for i := range n {
		at := from + step*float64(i)
		if change != nil {
			at = change(at)
		}
		list = append(list, at)
	}
	return list
}

func TestObserveLag(t *testing.T) {
	var list []Request
	for i := range 50 {
		lag := 0.0
		if i%10 == 0 {
			lag = .5
		}
		at := float64(i)
		late := stream(at, at+lag, steady(at+lag+.1, .02, 20, nil)...)
		late.Lag = lag
		list = append(list, late)
	}
	f := ObserveFacts(Symptom{metric.TTFT, "p99"}, list)
	if x := f.Get(LagShare); math.Abs(x-500./600) > 1e-9 || f.Get(HeldShare) != 0 {
		t.Errorf("%v of it by lag, %v held", x, f.Get(HeldShare))
	}
	if x, _ := SymptomValue(Symptom{metric.TTFT, "p99"}, list); math.Abs(x-600) > 1 {
		t.Errorf("p99 %v ms", x)
	}
}

func TestObserveProxy(t *testing.T) {
	flushed := func(at float64) float64 { return math.Ceil(at/.2-1e-9) * .2 }
	var held, free []Request
	for i := range 40 {
		at := .137 * float64(i)
		held = append(held, stream(at, at, steady(at+.1, .02, 60, flushed)...))
		free = append(free, stream(at, at, steady(at+.1, .02, 60, nil)...))
	}
	if f := ObserveFacts(stall, held); !isBuffered(f) || f.Get(GapMedian) < 190 {
		t.Errorf("a proxy is not seen: %v", f)
	}
	if f := ObserveFacts(stall, free); isBuffered(f) {
		t.Errorf("a proxy is seen where there is none: %v", f)
	}
}

func TestObserveFreezes(t *testing.T) {
	frozen := func(at float64) float64 {
		if in := math.Mod(at, 2); at > 2 && in < .4 {
			return at - in + .4
		}
		return at
	}
	var stops, runs []Request
	for i := range 80 {
		at := .3 * float64(i)
		stops = append(stops, stream(at, at, steady(at+.1, .02, 60, frozen)...))
		runs = append(runs, stream(at, at, steady(at+.1, .02, 60, nil)...))
	}
	if f := ObserveFacts(stall, stops); f.Get(FrozenInTail) < 300 {
		t.Errorf("standstills are not seen: %v", f)
	}
	// One freeze alone, while no request waits for its first token, is none of a prompt's.
	once := func(at float64) float64 {
		if at > 10.45 && at < 12 {
			return 12
		}
		return at
	}
	var stopped []Request
	for i := range 80 {
		if at := .3 * float64(i); at < 10 || at > 12 {
			stopped = append(stopped, stream(at, at, steady(at+.1, .02, 60, once)...))
		}
	}
	if f := ObserveFacts(stall, stopped); f.Get(StoppedInTail) < 100 || f.hasAll(Standstill) {
		t.Errorf("a freeze is not seen: %v", f)
	}
	if f := ObserveFacts(stall, runs); f.hasAll(Standstill) {
		t.Errorf("standstills are seen where there are none: %v", f)
	}
}

// Where a prompt is in the way, the longest gaps end as its first token comes.
func TestObserveInTheWay(t *testing.T) {
	var list []Request
	for i := range 60 {
		at := .5 * float64(i)
		chunks := steady(at+.1, .01, 100, nil)
		for k := range chunks { // the step in which the next prompt is computed
			if chunks[k] >= at+.505 {
				chunks[k] += .095
			}
		}
		list = append(list, stream(at, at, chunks...))
	}
	if f := ObserveFacts(stall, list); f.Get(AtFirsts) < .9 || f.Get(AtFirstsBy) > .3 {
		t.Errorf("%v of the stalls at first tokens, %v by chance", f.Get(AtFirsts), f.Get(AtFirstsBy))
	}
}

// What cannot be measured is not known, and nothing panics.
func TestObserveNothing(t *testing.T) {
	nan := math.NaN()
	for _, list := range [][]Request{nil, {{}}, {{First: nan, TPOT: nan, Stall: nan, Connect: nan, Measured: true}}} {
		for _, s := range []Symptom{tail, token, stall, {"nonsense", "p50"}} {
			for signal, r := range ObserveFacts(s, list) {
				if math.IsNaN(r.Value) || math.IsInf(r.Value, 0) {
					t.Errorf("%s is %v", signal, r.Value)
				}
			}
			Diagnose(&Case{Symptom: s, Facts: ObserveFacts(s, list)})
		}
	}
}

// What is said of an SGLang server has none of vLLM's names, and its flags.
func TestSGLangsNames(t *testing.T) {
	for _, cause := range causes {
		for _, m := range []metric.Name{metric.TTFT, metric.TPOT} {
			for _, f := range []Facts{{}, {HitShare: {Value: 0.5}}} {
				w := wordingFor(&sglang.Kind, cause, m, f)
				for _, text := range []string{w.Claim, w.Confirm, w.Knob, InWords(&sglang.Kind, string(cause))} {
					for _, alone := range []string{"vllm", "max_num", "gpu_memory_utilization", "enable_prefix_caching", "async_scheduling", "tensor_parallel_size"} {
						if strings.Contains(text, alone) {
							t.Errorf("%s of %s: %q", cause, m, text)
						}
					}
				}
			}
		}
	}
	c := Case{Symptom: Symptom{metric.TTFT, "p90"}, Value: 2000, Names: &sglang.Kind, Facts: Facts{}}
	for signal, x := range map[Signal]float64{QueueMean: 1800, TTFTMean: 1900, WaitingOften: 1, Running: 8, RunningMost: 8, KVMost: .1, Preempted: 0, MaxSeats: 8} {
		c.Facts.Set(signal, x, "", FromServer)
	}
	p := Diagnose(&c).Primary
	if p.Cause != Seats || p.Try == nil || p.Try.Knob != "max_running_requests" || !strings.Contains(p.Confirm, "sglang:num_queue_reqs") {
		t.Errorf("%+v, try %+v", p, p.Try)
	}
	for _, e := range p.Evidence {
		if strings.Contains(string(e.Signal), "max_num") {
			t.Errorf("evidence %q", e.Signal)
		}
	}
}

// Of two causes that requests drawn again do not tell apart none is sure, and both are
// named in an order that does not hang on chance. A limit that a setting lifts stands alone.
func TestAlike(t *testing.T) {
	diagnose := func(a, b Cause, gainA, gainB, noise float64) Diagnosis {
		chances := func(gain, by float64) (list []float64) {
			for i := range 20 {
				list = append(list, gain+by*float64(i%5-2))
			}
			return list
		}
		facts := Facts{}
		facts.Set(Running, 1, "", FromServer)
		return Diagnose(&Case{Symptom: Symptom{metric.TTFT, "p90"}, Value: 100, Facts: facts, Twin: &Twin{AtTwice: 1.1, Reliefs: map[Cause]Relief{
			a: {gainA, 1, chances(gainA, noise)}, b: {gainB, 1, chances(gainB, -noise)},
		}}})
	}
	if d := Diagnose(&Case{Symptom: Symptom{metric.TTFT, "p90"}, Value: 100, Queued: true, Twin: &Twin{AtTwice: 1.1, Reliefs: map[Cause]Relief{
		Compute: {0.2, 1, nil},
	}}}); d.IsLightLoad() || d.AtTwice != 0 {
		t.Errorf("behind a queue: at twice the load %v, light %v", d.AtTwice, d.IsLightLoad())
	}
	for _, c := range []struct {
		a, b  Cause
		noise float64
		alike []Cause
		sure  Confidence
		light bool
	}{
		{Compute, Host, 0.02, []Cause{Host, Compute}, Likely, true},
		{Compute, Host, 0.001, []Cause{Compute}, Sure, true},
		{Seats, Compute, 0.02, []Cause{Seats}, Likely, false},
	} {
		d := diagnose(c.a, c.b, 0.2, 0.15, c.noise)
		if d.Primary.Cause != c.a || d.Primary.Confidence != c.sure || !slices.Equal(d.Alike(), c.alike) || d.IsLightLoad() != c.light {
			t.Errorf("%s and %s: %s (%s), alike %v, light %v", c.a, c.b, d.Primary.Cause, d.Primary.Confidence, d.Alike(), d.IsLightLoad())
		}
	}
}

// Only a setting that relieves the cause is tried. One that helps more against another is no proof
// of the cause.
func TestTrialsRelieveTheirCause(t *testing.T) {
	fewer, graphs := Trial{Knob: "quantization", From: "bf16", To: "fp8", Gain: .4}, Trial{Knob: "max_cudagraph_capture_size", To: "512", Gain: .3}
	for name, c := range map[string]struct {
		cause  Cause
		trials []Trial
		want   string
		sure   Confidence
	}{
		"fewer bits, and the host":         {Host, []Trial{fewer}, "", Likely},
		"fewer bits, and the host's graph": {Host, []Trial{fewer, graphs}, "max_cudagraph_capture_size", Likely},
		"the host's graph":                 {Host, []Trial{graphs, fewer}, "max_cudagraph_capture_size", Sure},
		"fewer bits, and links":            {Links, []Trial{fewer}, "", Likely},
		"fewer bits, and bandwidth":        {Bandwidth, []Trial{fewer}, "quantization", Sure},
		"fewer bits, and computing":        {Compute, []Trial{fewer}, "quantization", Sure},
		"too little":                       {Host, []Trial{{Knob: "max_cudagraph_capture_size", To: "512", Gain: .01}}, "", Sure},
	} {
		x := twin(map[Cause]float64{c.cause: .35})
		x.Trials = map[Cause][]Trial{c.cause: c.trials}
		p := Diagnose(&Case{Symptom: token, Value: 15, Facts: facts(Running, 1.), Twin: x}).Primary
		got := ""
		if p.Try != nil {
			got = p.Try.Knob
		}
		if p.Cause != c.cause || p.Confidence != c.sure || got != c.want {
			t.Errorf("%s: %s (%s), try %q, want %q (%s)", name, p.Cause, p.Confidence, got, c.want, c.sure)
		}
	}
}
