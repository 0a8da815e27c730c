package tools

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pitot/internal/say"
)

func read(t *testing.T, name string) *Result {
	t.Helper()
	r, err := Read(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Files that the tools themselves wrote, of the versions that their names say.
func TestReadWhatToolsWrote(t *testing.T) {
	for name, want := range map[string]struct {
		tool, model string
		ok          float64
		points      int
	}{
		"vllm-0.32.json":          {"vllm bench serve", "org/tiny", 3, 1},
		"vllm-0.32-detailed.json": {"vllm bench serve", "org/tiny", 3, 1},
		"aiperf-0.13.json":        {"aiperf", "reference", 5, 1},
		"guidellm-0.8.json":       {"guidellm", "reference", 6, 1},
		"sglang-0.5.jsonl":        {"sglang bench_serving", "", 3, 1},
	} {
		r := read(t, name)
		if r.Tool != want.tool || r.Model != want.model || len(r.Points) != want.points {
			t.Errorf("%s: %q of %q with %d points", name, r.Tool, r.Model, len(r.Points))
			continue
		}
		p := r.Points[0]
		if p.OK == nil || *p.OK != want.ok || p.RequestsPerS == nil || p.OutputTokensPerS == nil {
			t.Errorf("%s: %+v", name, p)
		}
		// The server's time to the first token was 30 ms, and 5 ms a token from then on.
		if p.TTFT == nil || *p.TTFT.Mean < 30 || *p.TTFT.Mean > 300 || p.TTFT.P("p99") == nil {
			t.Errorf("%s: TTFT %+v", name, p.TTFT)
		}
		if p.TPOT == nil || *p.TPOT.Mean < 1 || *p.TPOT.Mean > 60 {
			t.Errorf("%s: TPOT %+v", name, p.TPOT)
		}
		if p.E2E != nil && (*p.E2E.Mean < 40 || *p.E2E.Mean > 400) {
			t.Errorf("%s: E2E %v ms", name, *p.E2E.Mean)
		}
	}
	a := read(t, "aiperf-0.13.json").Points[0]
	if a.Concurrency == nil || *a.Concurrency != 2 || a.TTFT.P("p50") == nil || *a.TTFT.N != 5 {
		t.Errorf("aiperf: %+v", a)
	}
	g := read(t, "guidellm-0.8.json").Points[0]
	if g.Concurrency == nil || *g.Concurrency != 2 || !strings.Contains(g.TPOT.What, "includes TTFT") {
		t.Errorf("guidellm: %+v", g)
	}
}

const vllmLine = `{"endpoint_type":"vllm","num_prompts":10,"request_rate":"inf","max_concurrency":4,"duration":2.5,"completed":10,"request_throughput":4,"output_throughput":40,"total_input_tokens":100,"mean_ttft_ms":52.1,"median_ttft_ms":50,"p99_ttft_ms":71,"p99.9_ttft_ms":80}`

// What other versions write, and what Python writes that is no JSON.
func TestParseOtherVersions(t *testing.T) {
	r, err := Parse([]byte(vllmLine))
	if err != nil {
		t.Fatal(err)
	}
	p := r.Points[0]
	if !p.Unlimited || p.Rate != nil || *p.Concurrency != 4 || p.Failed != nil || p.ITL != nil || *p.TTFT.P("p99.9") != 80 || *p.TTFT.P("p50") != 50 || p.TTFT.P("p90") != nil {
		t.Errorf("an old vLLM's: %+v", p)
	}
	rust := `{"backend":"openai","date":"2026-08-03T10:00:00Z","model_id":"m","num_prompts":2,"request_rate":5,"completed":1,"failed":1,"request_throughput":1.5,"mean_ttft_ms":9,"p99_ttft_ms":9,"steady_state":null,"failed_requests":[{"index":1}]}`
	if r, err := Parse([]byte(rust)); err != nil || *r.Points[0].Failed != 1 || *r.Points[0].Rate != 5 || r.Started != "2026-08-03T10:00:00Z" {
		t.Errorf("the Rust client's: %+v, %v", r, err)
	}
	bare := `{"backend":"sglang","dataset_name":"random","request_rate":Infinity,"completed":2,"request_throughput":1,"mean_ttft_ms":NaN,"median_ttft_ms":7,"mean_e2e_latency_ms":-Infinity,"tag":"a NaN \" Infinity"}`
	r, err = Parse([]byte(bare))
	if err != nil {
		t.Fatal(err)
	}
	if p := r.Points[0]; !p.Unlimited || p.TTFT.Mean != nil || *p.TTFT.P("p50") != 7 || p.E2E != nil {
		t.Errorf("bare NaN: %+v", p)
	}
}

func TestParseSeveral(t *testing.T) {
	r, err := Parse([]byte(vllmLine + "\n" + vllmLine + "\n"))
	if err != nil || len(r.Points) != 2 {
		t.Fatalf("two lines: %+v, %v", r, err)
	}
	if r, err = Parse([]byte("[" + vllmLine + "," + vllmLine + "]")); err != nil || len(r.Points) != 2 {
		t.Fatalf("an array: %+v, %v", r, err)
	}
	r, err = Parse([]byte(vllmLine + "\n" + vllmLine[:50]))
	if err != nil || len(r.Points) != 1 || len(r.Notes) != 1 || !strings.Contains(r.Notes[0], "cut off") {
		t.Errorf("cut off in the second: %+v, %v", r, err)
	}
}

// Zeros of a run without a success are no latencies.
func TestParseZeroSuccesses(t *testing.T) {
	r, err := Parse([]byte(strings.Replace(vllmLine, `"completed":10`, `"completed":0`, 1)))
	if err != nil {
		t.Fatal(err)
	}
	if p := r.Points[0]; p.TTFT != nil || *p.OK != 0 || len(r.Notes) != 1 {
		t.Errorf("%+v %v", p, r.Notes)
	}
}

func TestParseBad(t *testing.T) {
	for text, want := range map[string]string{
		"":                    "the file is empty",
		" \n\t":               "the file is empty",
		`{"completed":`:       "cut off",
		vllmLine[:40]:         "cut off",
		"hello":               "not JSON",
		"[]":                  "no result in it",
		"[1]":                 "no result of a tool",
		"null":                "no result of a tool",
		"{}":                  "no result of a tool",
		`{"a":1}`:             "no result of a tool",
		`{"benchmarks":[]}`:   "no benchmark in it",
		`{"benchmarks":[{}]}`: "has no metrics",
		`{"benchmarks":[3]}`:  "no list of objects",
		`{"benchmarks":"x"}`:  "no result of a tool",
		`{"aiperf_version":"0.13.0","metrics":[]}`: "they are in profile_export_aiperf.json",
		"\xff\xfe{\x00":             "not JSON",
		`{"schema":"pitot.run/v1"}`: "Pitot's own",
		vllmLine + `{"aiperf_version":"1","request_count":{"unit":"requests","avg":1}}`: "results of vllm bench serve and of aiperf",
	} {
		_, err := Parse([]byte(text))
		var u *say.Error
		if !errors.As(err, &u) || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v, want %q", text, err, want)
		}
	}
	// Fields of another type are not there; the rest stays.
	r, err := Parse([]byte(`{"request_throughput":{},"completed":"many","num_prompts":[],"mean_ttft_ms":"fast","model_id":7}`))
	if err != nil || r.Points[0].OK != nil || r.Points[0].TTFT != nil || r.Model != "" {
		t.Errorf("other types: %+v, %v", r, err)
	}
}

func TestReadFile(t *testing.T) {
	var u *say.Error
	if _, err := Read("nowhere.json"); !errors.As(err, &u) || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("missing: %v", err)
	}
	path := filepath.Join(t.TempDir(), "r.json")
	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(path); !errors.As(err, &u) || !strings.Contains(err.Error(), path) || u.Hint == "" {
		t.Errorf("cut off: %v", err)
	}
}

func TestClaim(t *testing.T) {
	c := read(t, "vllm-0.32.json").Claim()
	if c.Tool != "vllm bench serve" || *c.Requests != 3 || *c.MeanTTFT < 30 || c.MedianITL == nil || c.P99ITL == nil {
		t.Errorf("%+v", c)
	}
	if c := read(t, "guidellm-0.8.json").Claim(); c.MedianITL != nil || c.MeanTTFT == nil {
		t.Errorf("guidellm keeps no gaps: %+v", c)
	}
	if c := (&Result{}).Claim(); c.Requests != nil {
		t.Errorf("of nothing: %+v", c)
	}
}

// No file brings a reader down, and what it gives is finite.
func FuzzParse(f *testing.F) {
	for _, name := range []string{"vllm-0.32-detailed.json", "aiperf-0.13.json", "guidellm-0.8.json", "sglang-0.5.jsonl"} {
		data, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte(vllmLine))
	f.Add([]byte(`{"backend":"x","dataset_name":"","request_rate":Infinity,"completed":0,"request_throughput":NaN}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := Parse(data)
		if err != nil {
			if u := (*say.Error)(nil); !errors.As(err, &u) {
				t.Fatalf("%T: %v", err, err)
			}
			return
		}
		if r.Tool == "" || len(r.Points) == 0 {
			t.Fatalf("%+v", r)
		}
		r.Claim()
	})
}
