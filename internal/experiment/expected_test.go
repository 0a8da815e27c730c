package experiment

import (
	"math"
	"strings"
	"testing"
)

// A hypothesis against a bound is of a metric and a row that have it; of a row without a
// hypothesis the twin's stands in, with its error.
func TestSettings(t *testing.T) {
	c := Configuration{Knob: "max_num_seqs", Value: "256"}
	for spec, want := range map[string]string{
		"m@h100":                  "m@h100?max_num_seqs=256",
		"m@h100?max_num_seqs=128": "m@h100?max_num_seqs=256",
		"m@h100?block_size=16&a=b&max_num_seqs=128": "m@h100?block_size=16&a=b&max_num_seqs=256",
	} {
		if got := c.targetWith(spec); got != want {
			t.Errorf("%s: %s, want %s", spec, got, want)
		}
	}
	if got := withoutSetting("m@h100?a=b", "a"); got != "m@h100" {
		t.Error(got)
	}
}

func TestExpected(t *testing.T) {
	text := `
contract: {limits: "p95 ttft<500ms, errors<1%", capacity: 10/s}
target: sim:llama-3.1-8b@h100
rows:
  A:
  C: {hypothesis: p50 tpot of C within 15% of the bandwidth bound}
  E:
  F: {requests: 40, workload: random, input: 512, output: 8, hypothesis: p95 ttft of F < 500ms}
knobs: {max_num_seqs: [4]}
`
	p, err := Parse("plan.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	list, note := p.ExpectedHypotheses(p.Row("A"))
	if len(list) != 2 || !strings.HasPrefix(list[0].Text, "p50 ttft of A within ") || !strings.Contains(note, "the twin expects it") {
		t.Errorf("%+v, %s", list, note)
	}
	for _, row := range []string{"C", "E", "F"} {
		if list, _ := p.ExpectedHypotheses(p.Row(row)); len(list) != 0 {
			t.Errorf("%s: %+v", row, list)
		}
	}
	// 8.03 billion parameters of two bytes, less the embedding's half of a billion, at 3.35 TB/s
	if ms := p.latencyBound(bandwidthBound, p.Row("C")); math.Abs(ms-4.5) > .1 {
		t.Errorf("%.2f ms a token", ms)
	}
	for hypothesis, want := range map[string]string{
		"p50 ttft of C > the bandwidth bound": "the bandwidth bound is one of a tpot",
		"p50 tpot of C > the compute bound":   "the compute bound is one of a ttft",
		"the bandwidth bound > 3ms":           "a bound compares with METRIC of ROW",
		"p50 tpot of F > the bandwidth bound": "row F has no bandwidth bound",
	} {
		_, err := Parse("plan.yaml", []byte(strings.Replace(text, "p50 tpot of C within 15% of the bandwidth bound", `"`+hypothesis+`"`, 1)))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", hypothesis, err)
		}
	}
}
