package tools

import "testing"

// What a tool means by a name is one of Pitot's metrics, or none.
func TestAlike(t *testing.T) {
	for file, want := range map[string]struct{ ttft, tpot, e2e, dataset string }{
		"vllm-0.32.json":    {"service ttft", "tpot_n1", "service e2e", ""},
		"sglang-0.5.jsonl":  {"service ttft", "tpot_n1", "service e2e", "random-ids"},
		"aiperf-0.13.json":  {"service ttft", "tpot_n1", "service e2e", "synthetic"},
		"guidellm-0.8.json": {"service ttft", "", "service e2e", ""},
	} {
		r := read(t, file)
		if r.Alike("ttft") != want.ttft || r.Alike("tpot") != want.tpot || r.Alike("e2e") != want.e2e || r.Alike("itl") != "" || r.Dataset != want.dataset {
			t.Errorf("%s: %q %q %q %q of %q", file, r.Alike("ttft"), r.Alike("tpot"), r.Alike("e2e"), r.Alike("itl"), r.Dataset)
		}
	}
}
