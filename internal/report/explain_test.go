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
	if m := of(floor); !strings.Contains(m.Why, "the host") {
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
	if got, want := head(), "\n2 req/s: the SLO is met, nothing has to be done\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	got := head(explain.Diagnosis{Symptom: explain.Symptom{Metric: metric.TTFT, Of: "p99"}, Primary: explain.Finding{Cause: explain.Host, Claim: "the host"}})
	if want := "nothing has to be done; what its times hang on:\n"; !strings.Contains(got, want) {
		t.Errorf("%q lacks %q", got, want)
	}
}
