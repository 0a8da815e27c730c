package inspect

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pitot/internal/analysis/explain"
	"pitot/internal/results/metric"
	"pitot/internal/results/result"
)

// measuredAt is a run with points at rates, all of which miss their objective.
func measuredAt(rates ...float64) *result.Run {
	run := &result.Run{Schema: result.Schema, Target: result.Target{Kind: "http"}}
	for _, r := range rates {
		run.Points = append(run.Points, result.Point{Load: result.Load{Loop: "open", Rate: &r}, SLO: &result.SLO{Met: result.No}})
	}
	return run
}

// explained is an explanation with one diagnosis a point.
func explained(run *result.Run, causes ...explain.Cause) *Explanation {
	x := &Explanation{Schema: Schema, Run: "dir", Deployment: "model@gpu", Points: []ExplainedPoint{}, Notes: []string{"a note"}}
	for i, cause := range causes {
		p := pointOf(run, i)
		p.Symptoms = append(p.Symptoms, explain.Diagnosis{
			Symptom: explain.Symptom{Metric: metric.TTFT, Of: "p90"}, Value: 120, AtTwice: 1.5,
			Primary: explain.Finding{Cause: cause, Claim: "it is", Confidence: explain.Likely, Gain: .4, Confirm: "look",
				Evidence: []explain.Evidence{{Signal: explain.Running, Value: 4, From: explain.FromServer}},
				Excluded: []explain.Excluded{{Cause: explain.Client, AtMost: .02, Evidence: []explain.Evidence{{Signal: explain.RoundTrip, Value: .3, Unit: "ms", From: explain.FromClient}}}},
				Try:      &explain.Trial{Knob: "max_num_seqs", From: "4", To: "8", Gain: .3, ChangesAnswers: true}},
			Also: []explain.Finding{{Cause: explain.Compute, Claim: "too", Confidence: explain.Possible, Gain: .2, Confirm: "look there", Alike: true}},
		})
		x.Points = append(x.Points, p)
	}
	x.Over = causeRanges(x.Points)
	return x
}

// What was found comes back from run.json as it was.
func TestFindingsComeBack(t *testing.T) {
	run := measuredAt(1, 2)
	want := explained(run, explain.Seats, explain.KVCache)
	run.Findings = want.Findings("v1", true)
	data, err := json.Marshal(run.Findings)
	if err != nil {
		t.Fatal(err)
	}
	run.Findings = nil
	if err := json.Unmarshal(data, &run.Findings); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, StoredExplanation("dir", run)); d != "" {
		t.Errorf("put in (-), taken out (+):\n%s", d)
	}
	if f := run.Findings; f.By != "v1" || !f.Brief || f.Version != result.FindingsVersion {
		t.Errorf("%+v", f)
	}
}

// What no program like this wrote, or speaks of points that are not there, is not taken.
func TestFindingsOfOthers(t *testing.T) {
	run := measuredAt(1)
	if StoredExplanation("dir", run) != nil {
		t.Error("a run without any has some")
	}
	x := explained(run, explain.Seats)
	x.Points[0].Symptoms[0].Value = math.NaN()
	run.Findings = x.Findings("v1", false)
	if _, err := json.Marshal(run.Findings); err != nil {
		t.Errorf("a figure that is none: %v", err)
	}
	for _, at := range []int{-1, 1} {
		run.Findings.Points[0].Point = at
		if got := StoredExplanation("dir", run); len(got.Points) != 0 {
			t.Errorf("point %d of one: %+v", at, got.Points)
		}
	}
	run.Findings.Version++
	if StoredExplanation("dir", run) != nil {
		t.Error("findings of a later version are taken for known ones")
	}
}

// A comparison says which cause took the place of which, at loads that both measured.
func TestChanged(t *testing.T) {
	kept := func(rates []float64, causes ...explain.Cause) *result.Run {
		run := measuredAt(rates...)
		run.Findings = explained(run, causes...).Findings("v1", true)
		return run
	}
	met := func(run *result.Run) *result.Run {
		for i := range run.Points {
			run.Points[i].SLO.Met = result.Yes
		}
		return run
	}
	symptom := explain.Symptom{Metric: metric.TTFT, Of: "p90"}
	for _, c := range []struct {
		name string
		a, b *result.Run
		want []Change
	}{
		{"another cause", kept([]float64{4}, explain.Seats), kept([]float64{4}, explain.KVCache), []Change{{symptom, "4.00 req/s", string(explain.Seats), string(explain.KVCache)}}},
		{"the same", kept([]float64{4}, explain.Seats), kept([]float64{4}, explain.Seats), nil},
		{"not known of one", kept([]float64{4}, explain.Seats), kept([]float64{4}, explain.Unknown), nil},
		{"another load", kept([]float64{4}, explain.Seats), kept([]float64{5}, explain.KVCache), nil},
		{"one of two loads", kept([]float64{1, 4}, explain.Compute, explain.Seats), kept([]float64{1, 4}, explain.Compute, explain.KVCache), []Change{{symptom, "4.00 req/s", string(explain.Seats), string(explain.KVCache)}}},
		{"an objective that both meet", met(kept([]float64{4}, explain.Seats)), met(kept([]float64{4}, explain.KVCache)), nil},
		{"an objective that one meets", met(kept([]float64{4}, explain.Seats)), kept([]float64{4}, explain.KVCache), nil},
		{"records that are gone", measuredAt(4), kept([]float64{4}, explain.KVCache), nil},
	} {
		if d := cmp.Diff(c.want, ChangedLimits("no such a", c.a, "no such b", c.b)); d != "" {
			t.Errorf("%s: want (-), got (+):\n%s", c.name, d)
		}
	}
}
