package slo

import (
	"strings"
	"testing"

	"pitot/internal/results/metric"
)

func TestClasses(t *testing.T) {
	const ms = 1e6
	s, err := Parse("Errors<1%; chat: p99 ttft<200ms, tpot<50ms, e2e<9s @90% ; batch: p95 e2e<60s")
	if err != nil {
		t.Fatal(err)
	}
	const canonical = "errors<1%; chat: p99 ttft<200ms, tpot<50ms, e2e<9s @90%; batch: p95 e2e<60s"
	if got := s.String(); got != canonical {
		t.Errorf("%q", got)
	}
	if again, err := Parse(s.String()); err != nil || again.String() != canonical {
		t.Errorf("%v, %v", again, err)
	}
	if !s.NeedsStream() || s.IsNone() || len(s.All()) != 5 {
		t.Errorf("%+v", s)
	}
	slowChat := request{ok: true, class: "chat", values: values{metric.TTFT: 300 * ms, metric.TPOT: 20 * ms, metric.E2E: 2000 * ms}}
	slowBatch := slowChat
	slowBatch.class = "batch"
	if s.IsMetBy(slowChat) || !s.IsMetBy(slowBatch) {
		t.Error("a request is judged by the limits of another class")
	}
	claims, err := s.SplitClaims()
	if err != nil || len(claims) != 4 {
		t.Fatalf("%v, %v", claims, err)
	}
	for _, c := range claims {
		about := map[string]string{"errors<1%": "", "chat: p99 ttft<200ms": "chat", "chat: tpot<50ms, e2e<9s @90%": "chat", "batch: p95 e2e<60s": "batch"}
		if class, ok := about[c.Spec]; !ok || c.Class != class {
			t.Errorf("%q is about %q", c.Spec, c.Class)
		}
		if want := c.Spec == "chat: p99 ttft<200ms"; c.ViolatedBy(slowChat) != want || c.ViolatedBy(slowBatch) {
			t.Errorf("%q", c.Spec)
		}
		if c.Times(slowBatch) > 1 || c.IsAbout(slowBatch) != (c.Class != "chat") {
			t.Errorf("%q", c.Spec)
		}
	}
	if s, err := Parse("chat: mlperf-llama2-70b; x: errors<2%"); err != nil || s.String() != "chat: p99 ttft<2s, p99 tpot<200ms; x: errors<2%" {
		t.Errorf("%v, %v", s, err)
	}
}

func TestClassMistakes(t *testing.T) {
	for text, want := range map[string]string{
		"chat: p99 ttft<1s; chat: p99 e2e<9s": "given twice",
		"p99 ttft<1s; p99 e2e<9s":             "of all requests are given twice",
		"chat:":                               "without limits",
		"chat: p99 ttft<1s;":                  "without limits",
		"Ch at!: p99 ttft<1s":                 "no name of a class",
		"ttft:200ms":                          "has no <",
		"chat: nothing<1s":                    "nothing",
	} {
		if _, err := Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}
