package report

import (
	"strings"
	"testing"

	"pitot/internal/analysis/explain"
	"pitot/internal/analysis/inspect"
	"pitot/internal/results/metric"
	"pitot/internal/results/result"
)

// Of a limit that no load meets the search says why: no part of the server is blamed for it.
func TestNothingIsShortBelowAFloor(t *testing.T) {
	of := func(f *result.Floor) Model {
		m := Model{Run: &result.Run{Capacity: &result.Capacity{Floor: f}}, Limited: []string{shortUnknown}}
		m.AddExplanation(&inspect.Explanation{Points: []inspect.ExplainedPoint{{Load: "0.1 req/s", Met: result.No, Symptoms: []explain.Diagnosis{{
			Symptom: explain.Symptom{Metric: metric.TTFT, Of: "p99"},
			Primary: explain.Finding{Cause: explain.Host, Claim: "the host", Confidence: explain.Sure},
		}}}}})
		return m
	}
	floor := &result.Floor{Spec: "p99 ttft<5ms", Load: 0.1, Requests: 50, Violations: 50, Lower: 0.9, Allowed: 0.01}
	if m := of(floor); m.Why != "" || len(m.Limited) != 1 || !strings.Contains(m.Limited[0], "took longer than the limit") {
		t.Errorf("%q %q", m.Why, m.Limited)
	}
	floor.Confidence = 0.9 // it is none yet
	if m := of(floor); !strings.Contains(m.Why, "CPU launch overhead (sure) limits") {
		t.Errorf("%q %q", m.Why, m.Limited)
	}
}

// The head of a load that met the SLO is a whole sentence, with or without findings below it.
func TestHeadOfALoadThatMet(t *testing.T) {
	head := func(symptoms ...explain.Diagnosis) string {
		var b strings.Builder
		p := &printer{w: &b}
		writePoint(p, new(result.Point), &inspect.ExplainedPoint{Load: "2 req/s", Met: result.Yes, Symptoms: symptoms}, false)
		return b.String()
	}
	if got, want := head(), "\n2 req/s: the SLO is met\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	got := head(explain.Diagnosis{Symptom: explain.Symptom{Metric: metric.TTFT, Of: "p99"}, Primary: explain.Finding{Cause: explain.Host, Claim: "the host"}})
	if want := "the SLO is met; what its latencies depend on:\n"; !strings.Contains(got, want) {
		t.Errorf("%q lacks %q", got, want)
	}
}

// A search of many loads is explained on one screen, and what was not tested is not ruled out.
func TestExplanationFitsAScreen(t *testing.T) {
	finding := explain.Finding{Cause: explain.Compute, Claim: "prefill compute: prompts", Confidence: explain.Sure, Confirm: "run at half the load",
		Evidence: []explain.Evidence{{Signal: "a third more compute", Value: .32, Unit: explain.LowerBy, From: explain.FromTwins}},
		Excluded: []explain.Excluded{{Cause: explain.Client}, {Cause: explain.KVCache, AtMost: .013}},
		Untested: []explain.Untested{{Cause: explain.Network, AtMost: .13}, {Cause: explain.Freezes, AtMost: 1}, {Cause: explain.Throttling, Lacks: []explain.Signal{explain.ClockShare}}},
		Try:      &explain.Trial{Knob: "quantization", From: "bf16", To: "fp8", Gain: .63, ChangesAnswers: true},
	}
	of := func(m metric.Name) explain.Diagnosis {
		return explain.Diagnosis{Symptom: explain.Symptom{Metric: m, Of: "p90"}, AtTwice: 4.4, Primary: finding,
			Parts: []explain.Part{{Name: explain.QueuePart, MS: 16, Share: .2}, {Name: explain.PrefillPart, MS: 64, Share: .8}},
			Also:  []explain.Finding{{Cause: explain.Bandwidth, Alike: true}}}
	}
	run := &result.Run{}
	x := &inspect.Explanation{Run: "s24", Deployment: "llama-3.1-8b@h100", Notes: []string{"one", "two", "three"}}
	for i := range 12 {
		run.Points = append(run.Points, result.Point{SLO: &result.SLO{}})
		x.Points = append(x.Points, inspect.ExplainedPoint{Index: i, Load: "24 req/s", Met: result.No, Symptoms: []explain.Diagnosis{of(metric.TTFT), of(metric.TPOT), of(metric.Stall)}})
	}
	var brief, full strings.Builder
	if err := WriteExplanation(&brief, run, x, Style{}); err != nil {
		t.Fatal(err)
	}
	fitsScreen(t, brief.String())
	for _, want := range []string{
		"Bottleneck of p90 TTFT at 24 req/s: prefill compute or memory bandwidth (sure)\nThe SLO is not met here.\n",
		"\np90 TTFT          –  prefill compute or            sure          4.4×\n                     memory bandwidth\n",
		"Evidence     mean TTFT over the whole load 80.0 ms = 64.0 prefill + 16.0 queue\n             with a third more compute: p90 TTFT about 32 % lower (simulation)\n",
		"Ruled out    slow client, KV cache (each at most 1.3 % of p90 TTFT)\n",
		"May add to it network (up to 13 % of p90 TTFT), server freezes\n",
		"Not tested   GPU clock (GPU metrics were not read)\n",
		"+3 more: --full\n",
	} {
		if !strings.Contains(brief.String(), want) {
			t.Errorf("no %q in\n%s", want, brief.String())
		}
	}
	if err := WriteExplanation(&full, run, x, Style{Full: true}); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(full.String(), "24 req/s: the SLO is not met"); n != 12 {
		t.Errorf("%d loads in full", n)
	}
}
