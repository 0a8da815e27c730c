package export

import (
	"bytes"
	"encoding/json"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"pitot/internal/analysis/tools"
	"pitot/internal/results/record"
	"pitot/internal/results/result"
)

// A run of a few requests with times known to the nanosecond: two ended well,
// one failed, one was due before the window.
const (
	ms     = int64(1e6)
	second = int64(1e9)
)

func sampleRow(id, due, sent, first int64, tokens int32) record.Row {
	r := record.BlankRow()
	r.ID, r.Due, r.Eligible, r.Ready, r.Sent, r.Stream = id, due, due, sent, sent, true
	r.FirstEvent, r.FirstToken, r.FirstAnswer = first, first, first
	r.LastToken = first + int64(tokens-1)*10*ms
	r.Done = r.LastToken + ms
	r.InputPlanned, r.PromptTokens, r.CompletionTokens, r.OutputPlanned = 100, 101, tokens, tokens
	r.Chunks, r.Arrivals, r.Finish, r.Status, r.FirstTokens = tokens, tokens, "length", 200, 1
	return r
}

func sampleChunks(r *record.Row) (out []record.Chunk) {
	for i := range int64(r.CompletionTokens) {
		t := r.FirstToken + i*10*ms
		out = append(out, record.Chunk{Request: r.ID, T: t, Earliest: t, Tokens: 1, Bytes: 4})
	}
	return out
}

// sampleRun writes such a run and gives its directory.
func sampleRun(t testing.TB) (*result.Run, string) {
	t.Helper()
	rows := []record.Row{
		sampleRow(0, 0, 0, 50*ms, 3),
		sampleRow(1, second, second+2*ms, second+52*ms, 5),
		sampleRow(2, second+500*ms, second+500*ms, second+600*ms, 3),
		sampleRow(3, second+700*ms, second+700*ms, second+800*ms, 2),
	}
	failed := &rows[3]
	failed.Outcome, failed.Error, failed.Detail = record.Failed, record.ServerError(500), "out of memory"
	failed.FirstToken, failed.FirstAnswer, failed.LastToken, failed.CompletionTokens = -1, -1, -1, -1
	frame := record.Frame{Marks: []record.Mark{{Name: "run", Data: []byte("{}")}}}
	for i := range rows {
		if rows[i].Outcome == record.OK {
			frame.Chunks = append(frame.Chunks, sampleChunks(&rows[i])...)
		}
		frame.Rows = append(frame.Rows, rows[i])
	}
	dir := t.TempDir()
	err := record.WriteParquet(dir, func(yield func(record.Frame, error) bool) { yield(frame, nil) })
	if err != nil {
		t.Fatal(err)
	}
	rate := 2.
	run := &result.Run{
		Schema: result.Schema, Pitot: result.Version{Version: "1.0"}, Started: "2026-11-20T10:00:00Z", Ended: "2026-11-20T10:00:03Z",
		Target: result.Target{Model: "org/model", API: "openai-completions"}, Notes: map[string]string{"tp": "4", "date": "never"},
		Verdict: result.Valid,
		Points: []result.Point{{
			Load:    result.Load{Loop: "open", Rate: &rate, Arrival: "poisson"},
			Seconds: result.Seconds{Warmup: 1, Window: 1}, Requests: result.Requests{Due: 3, OK: 2, Failed: 1},
			SLO:     &result.SLO{Limits: []result.Limit{{Metric: "ttft", Limit: 60}}},
			Verdict: result.Valid,
		}},
	}
	return run, dir
}

func near(got, want float64) bool { return math.Abs(got-want) <= 1e-9*math.Abs(want) }

func written(t testing.TB, write func(io.Writer, *result.Run, string) error, run *result.Run, dir string) map[string]any {
	t.Helper()
	var b bytes.Buffer
	if err := write(&b, run, dir); err != nil {
		t.Fatal(err)
	}
	var m map[string]any
	if err := json.Unmarshal(b.Bytes(), &m); err != nil {
		t.Fatalf("%v: %s", err, b.String())
	}
	return m
}

// keysOf gives the keys of a JSON object in their order.
func keysOf(t testing.TB, data []byte) (keys []string) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(data))
	if _, err := d.Token(); err != nil {
		t.Fatal(err)
	}
	for d.More() {
		k, err := d.Token()
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, k.(string))
		var skip json.RawMessage
		if err := d.Decode(&skip); err != nil {
			t.Fatal(err)
		}
	}
	return keys
}

// The keys are those that vLLM 0.32 itself wrote, in its order, and two more
// that say who measured, in the place where --metadata stands.
func TestVLLMHasVLLMsKeys(t *testing.T) {
	run, dir := sampleRun(t)
	run.Notes = nil
	for file, detailed := range map[string]bool{"vllm-0.32.json": false, "vllm-0.32-detailed.json": true} {
		want, err := os.ReadFile(filepath.Join("../../analysis/tools/testdata", file))
		if err != nil {
			t.Fatal(err)
		}
		var got bytes.Buffer
		as := func(p *result.Point) VLLM {
			v := vllmOf(run, p)
			v.Detailed, v.Metrics, v.Percentiles = detailed, []string{"ttft", "tpot", "itl"}, []float64{99}
			return v
		}
		if err := VLLMBenchmark(run, dir, as, func(b *Benchmark) error { return b.JSON(&got) }); err != nil {
			t.Fatal(err)
		}
		ours := slices.DeleteFunc(keysOf(t, got.Bytes()), func(k string) bool { return k == "measured_by" || k == "pitot_verdict" })
		if theirs := keysOf(t, want); !slices.Equal(ours, theirs) {
			t.Errorf("%s: keys\n%v, vLLM's are\n%v", file, ours, theirs)
		}
	}
}

func TestVLLMFigures(t *testing.T) {
	run, dir := sampleRun(t)
	m := written(t, writeVLLMDetailed, run, dir)
	// Requests 1 and 2: TTFT 50 and 100 ms from sent, 5 and 3 tokens 10 ms apart.
	// The window begins at 1 s; the last ends: request 3, which failed, at 1.811 s.
	for key, want := range map[string]float64{
		"num_prompts": 3, "completed": 2, "failed": 1, "total_input_tokens": 202, "total_output_tokens": 8,
		"request_rate": 2, "burstiness": 1, "duration": .811, "request_throughput": 2 / .811, "output_throughput": 8 / .811,
		"total_token_throughput": 210 / .811, "request_goodput": 1 / .811,
		"mean_ttft_ms": 75, "median_ttft_ms": 75, "std_ttft_ms": 25, "p99_ttft_ms": 99.5,
		"mean_tpot_ms": 10, "p99_tpot_ms": 10, "mean_itl_ms": 10, "std_itl_ms": 0,
		"mean_e2el_ms": (90 + 120) / 2., "p90_e2el_ms": 117,
		"max_output_tokens_per_s": 8, "max_concurrent_requests": 2,
	} {
		if got, ok := m[key].(float64); !ok || !near(got, want) {
			t.Errorf("%s is %v, want %v", key, m[key], want)
		}
	}
	for key, want := range map[string]string{
		"input_lens": "[101,101,101]", "output_lens": "[5,3,0]", "ttfts": "[0.05,0.1,0]",
		"itls": "[[0.01,0.01,0.01,0.01],[0.01,0.01],[]]", "latencies": "[0.09,0.12,0]", "queue_times": "[0.002,0,0]",
		"start_times": "[1.002,1.5,1.7]", "generated_texts": `["","",""]`, "errors": `["","","http_500: out of memory"]`,
		"label": "null", "tokenizer_id": "null", "max_concurrency": "null", "model_id": `"org/model"`, "backend": `"openai"`,
		"tp": `"4"`, "measured_by": `"pitot 1.0"`,
	} {
		if got, _ := json.Marshal(m[key]); string(got) != want {
			t.Errorf("%s is %s, want %s", key, got, want)
		}
	}
	if m["date"] == "never" {
		t.Error("a note took the place of vLLM's own key")
	}
}

// Without a request that ended well vLLM writes zeros, and its readers want
// the keys.
func TestVLLMOfNothing(t *testing.T) {
	run, dir := sampleRun(t)
	run.Points[0].Seconds = result.Seconds{Warmup: 1.7, Window: .1}
	m := written(t, writeVLLM, run, dir)
	if m["completed"] != 0. || m["failed"] != 1. || m["mean_ttft_ms"] != 0. || m["p99_itl_ms"] != 0. {
		t.Errorf("got %v", m)
	}
}

// A file that is written is read with the same figures.
func TestVLLMRoundTrip(t *testing.T) {
	run, dir := sampleRun(t)
	for _, write := range []func(io.Writer, *result.Run, string) error{writeVLLM, writeVLLMDetailed} {
		var b bytes.Buffer
		if err := write(&b, run, dir); err != nil {
			t.Fatal(err)
		}
		r, err := tools.Parse(b.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		p := r.Points[0]
		if r.Tool != "vllm bench serve" || r.Model != "org/model" || *p.OK != 2 || *p.Failed != 1 || *p.Rate != 2 || !near(*p.TTFT.Mean, 75) || !near(*p.E2E.P("p90"), 117) {
			t.Errorf("got %+v, %+v", r, p)
		}
	}
}

// Several points are one array, as vLLM's sweeps write them.
func TestVLLMOfSeveralPoints(t *testing.T) {
	run, dir := sampleRun(t)
	run.Points = append(run.Points, run.Points[0])
	var b bytes.Buffer
	if err := writeVLLM(&b, run, dir); err != nil {
		t.Fatal(err)
	}
	var list []map[string]any
	if err := json.Unmarshal(b.Bytes(), &list); err != nil || len(list) != 1 || list[0]["run_number"] != "0" {
		t.Errorf("%v: %s", err, b.String())
	}
}

func TestVLLMTable(t *testing.T) {
	run, dir := sampleRun(t)
	var b strings.Builder
	as := func(p *result.Point) VLLM { return vllmOf(run, p) }
	if err := VLLMBenchmark(run, dir, as, func(x *Benchmark) error { return x.Table(&b) }); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"============ Serving Benchmark Result ============",
		"Successful requests:                     2         ",
		"Request rate configured (RPS):           2.00      ",
		"---------------Time to First Token----------------",
		"-----Time per Output Token (excl. 1st token)------",
		"Mean TTFT (ms):                          75.00     ",
		"P99 E2EL (ms):                           119.70    ",
	} {
		if !strings.Contains(b.String(), line+"\n") {
			t.Errorf("no line %q in\n%s", line, b.String())
		}
	}
}

// numpy.percentile([15, 20, 35, 40, 50], 40) is 29, and so on.
func TestSpreadIsNumpys(t *testing.T) {
	s := spreadOf([]int64{15, 20, 35, 40, 50}, 1)
	if s.mean != 32 || math.Abs(s.sd-12.884098726725126) > 1e-12 || s.at(40) != 29 || s.at(50) != 35 || s.at(100) != 50 || s.at(0) != 15 {
		t.Errorf("got %v %v %v", s.mean, s.sd, s.at(40))
	}
	rapid.Check(t, func(t *rapid.T) {
		xs := rapid.SliceOfN(rapid.Int64Range(0, 1e12), 1, 50).Draw(t, "xs")
		slices.Sort(xs)
		s := spreadOf(xs, 1)
		p, q := rapid.Float64Range(0, 100).Draw(t, "p"), rapid.Float64Range(0, 100).Draw(t, "q")
		if lo, hi := s.at(min(p, q)), s.at(max(p, q)); lo > hi || lo < s.min || hi > s.max {
			t.Fatalf("p%v is %v, p%v is %v", min(p, q), lo, max(p, q), hi)
		}
	})
}
