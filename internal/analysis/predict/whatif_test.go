package predict

import (
	"math"
	"testing"

	"pitot/internal/analysis/explain"
	"pitot/internal/results/metric"
	"pitot/internal/sim"
	"pitot/internal/sim/deploy"
)

func deployment(t *testing.T, spec string) *deploy.Deployment {
	t.Helper()
	d, err := deploy.Parse(spec)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// A knob turned by what was proposed changes the setting; another is none.
func TestTurn(t *testing.T) {
	d := deployment(t, "llama-3.1-8b@h100?max_num_seqs=8")
	c, ok := ApplyTrial(d, explain.Trial{Knob: "max_num_seqs", To: "16"})
	if !ok || c.Settings.MaxNumSeqs != 16 || d.Settings.MaxNumSeqs != 8 {
		t.Errorf("%v", ok)
	}
	for _, x := range []explain.Trial{{Knob: "max_num_seqs", To: "17"}, {Knob: "colour", To: "red"}} {
		if _, ok := ApplyTrial(d, x); ok {
			t.Errorf("%+v is turned", x)
		}
	}
}

// What is proposed of SGLang are its flags, and they turn the twin.
func TestTurnsOfSGLang(t *testing.T) {
	d := deployment(t, "llama-3.1-8b@h100?engine=sglang&disable_radix_cache=true&max_running_requests=8")
	seen := map[string]bool{}
	for _, cause := range modelled {
		for _, trial := range helpfulTrials(d, cause) {
			seen[trial.Knob+" "+trial.To] = true
			c, ok := ApplyTrial(d, trial)
			if !ok {
				t.Errorf("%+v turns nothing", trial)
				continue
			}
			if trial.Knob == "disable_radix_cache" && !c.Settings.EnablePrefixCaching {
				t.Errorf("%+v leaves the cache off", trial)
			}
			if trial.Knob != "tokenizer_worker_num" && !deploy.IsSetting(trial.Knob) {
				t.Errorf("%s is no setting", trial.Knob)
			}
		}
	}
	for _, want := range []string{"max_running_requests 16", "chunked_prefill_size 16384", "disable_radix_cache false", "kv_cache_dtype fp8_e4m3", "schedule_conservativeness 0.3", "tokenizer_worker_num 2"} {
		if !seen[want] {
			t.Errorf("%s is not tried, of %v", want, seen)
		}
	}
}

// Twins of the catalogue's deployment find what limits a server that differs from it.
func TestWhatIf(t *testing.T) {
	if testing.Short() {
		t.Skip("some hundred replays")
	}
	for _, c := range []struct {
		spec, stated string
		load         TwinLoad
		of           metric.Name
		want         explain.Cause
	}{
		{"llama-3.1-8b@h100?max_num_seqs=4&scale=1.2", "llama-3.1-8b@h100?max_num_seqs=4", TwinLoad{Rate: 4, Input: [2]int{200, 400}, Output: [2]int{50, 150}, Requests: 120}, metric.TTFT, explain.Seats},
		{"llama-3.1-8b@h100?scale=1.2", "llama-3.1-8b@h100", TwinLoad{Rate: 1, Input: [2]int{4000, 8000}, Output: [2]int{4, 8}, Requests: 60}, metric.TTFT, explain.Compute},
		{"llama-3.1-8b@l4?scale=0.8", "llama-3.1-8b@l4", TwinLoad{Users: 2, Input: [2]int{50, 100}, Output: [2]int{50, 100}, Requests: 40}, metric.TPOT, explain.Bandwidth},
	} {
		s := explain.Symptom{Metric: c.of, Of: "p90"}
		r := c.load.Serve(deployment(t, c.spec).Engine(3), 3)
		seen := r.SeenRequests()
		value, _ := explain.SymptomValue(s, seen)
		facts := explain.ObserveFacts(s, seen)
		d := explain.Diagnose(&explain.Case{Symptom: s, Value: value, Facts: facts, Twin: r.WhatIf(deployment(t, c.stated), facts, Thorough).Of(s)})
		p := d.Primary
		if p.Cause != c.want || p.Gain <= explain.Least || len(p.Evidence) == 0 {
			t.Errorf("%s: %+v, want %s", c.spec, p, c.want)
		}
		if p.Try != nil && p.Try.Gain != 0 {
			turned, ok := ApplyTrial(deployment(t, c.spec), *p.Try)
			if !ok {
				t.Fatalf("%+v cannot be turned", *p.Try)
			}
			better, _ := explain.SymptomValue(s, c.load.Serve(turned.Engine(3), 3).SeenRequests())
			if better >= value {
				t.Errorf("%s: %+v makes it %v ms, from %v", c.spec, *p.Try, better, value)
			}
		}
	}
}

// What a recording shows is what was measured of it.
func TestSeen(t *testing.T) {
	l := TwinLoad{Users: 4, Input: [2]int{100, 200}, Output: [2]int{1, 40}, Requests: 50}
	r := l.Serve(deployment(t, "llama-3.1-8b@h100").Engine(1), 1)
	recorded, seen := r.RecordedSeries(), r.SeenRequests()
	for _, x := range []struct {
		of metric.Name
		v  []float64
	}{{metric.TTFT, recorded.TTFT}, {metric.TPOT, recorded.TPOT}, {metric.Stall, recorded.Stall}, {metric.E2E, recorded.E2E}} {
		is, ok := explain.SymptomValue(explain.Symptom{Metric: x.of, Of: "mean"}, seen)
		want, _ := explain.Statistic("mean", x.v)
		if !ok || math.Abs(is/want-1) > 1e-9 {
			t.Errorf("mean %s %v, recorded %v", x.of, is, want)
		}
	}
}

// A load far below saturation limits nothing, whatever the schedule was; and of what its
// times hang on no schedule is sure of what another is not.
func TestNothingLimitsALightLoad(t *testing.T) {
	if testing.Short() {
		t.Skip("some hundred replays")
	}
	for _, c := range []struct {
		rate    float64
		of      explain.Symptom
		limited bool
	}{
		{0.2, explain.Symptom{Metric: metric.TTFT, Of: "p90"}, false},
		{1, explain.Symptom{Metric: metric.TTFT, Of: "p90"}, false},
		{1, explain.Symptom{Metric: metric.TPOT, Of: "mean"}, false},
		{26, explain.Symptom{Metric: metric.TTFT, Of: "p90"}, true},
	} {
		sure := map[explain.Cause]bool{}
		for seed := range uint64(2) {
			d := deployment(t, "llama-3.1-8b@h100")
			load := TwinLoad{Rate: c.rate, Input: [2]int{1024, 1024}, Output: [2]int{128, 128}, Requests: 80}
			r := load.Serve(d.Engine(seed), seed)
			seen := r.SeenRequests()
			value, _ := explain.SymptomValue(c.of, seen)
			facts := explain.ObserveFacts(c.of, seen)
			facts.Set(explain.Running, c.rate, "", explain.FromServer)
			got := explain.Diagnose(&explain.Case{Symptom: c.of, Value: value, Facts: facts, Twin: r.WhatIf(d, explain.Facts{}, AsStated).Of(c.of)})
			if got.AtTwice <= 0 || got.IsLightLoad() == c.limited {
				t.Errorf("%v at %v/s, seed %d: %v times as much at twice the load, by %s", c.of, c.rate, seed, got.AtTwice, got.Primary.Cause)
			}
			if got.Primary.Confidence == explain.Sure {
				sure[got.Primary.Cause] = true
			}
		}
		if len(sure) > 1 {
			t.Errorf("%v at %v/s: sure of %v", c.of, c.rate, sure)
		}
	}
}

// Twice the load is the same requests in half of the time, or of twice as many users.
func TestTwice(t *testing.T) {
	engine := func() sim.Model { return deployment(t, "llama-3.1-8b@h100").Engine(1) }
	load := TwinLoad{Rate: 2, Input: [2]int{100, 200}, Output: [2]int{5, 9}, Requests: 20}
	open := load.Serve(engine(), 1)
	c, ok := open.atTwiceLoad()
	if last := len(open.Requests) - 1; !ok || math.Abs(c.Requests[last].Arrival*2-open.Requests[last].Arrival) > 1e-9 || c.Requests[last].sentAt() > open.Requests[last].sentAt()/2+1 {
		t.Errorf("%v", ok)
	}
	load.Rate, load.Users = 0, 2
	closed := load.Serve(engine(), 1)
	if c, ok := closed.atTwiceLoad(); !ok || c.users != 4 || closed.users != 2 {
		t.Errorf("%v", ok)
	}
	closed.users = 8 // each would ask hardly more than once
	if _, ok := closed.atTwiceLoad(); ok {
		t.Error("20 requests of 16 users")
	}
}
