package vllmapi_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pitot/internal/twin"
	"pitot/internal/twin/serve"
	"pitot/internal/twin/serve/dialect"
	"pitot/internal/twin/serve/prom"
	"pitot/internal/twin/vllm"
)

// exchange is a request and what a real server answered. The files in testdata
// say which.
type exchange struct {
	Name    string
	Method  string
	Path    string
	Body    map[string]any
	Raw     *string
	Headers map[string]string
	Status  int
	Allow   string
	Type    string
	Answer  string
}

func recorded(t *testing.T, name string) []exchange {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Origin    string
		Exchanges []exchange
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if err := d.Decode(&file); err != nil || file.Origin == "" || len(file.Exchanges) == 0 {
		t.Fatalf("%s: %v", name, err)
	}
	return file.Exchanges
}

// request is the exchange's request. Long prompts are written short: {"ids": n}
// and {"words": n}.
func (x *exchange) request() request {
	long := func(v any, words func(string) any) any {
		m, _ := v.(map[string]any)
		length := func(name string) int {
			n, _ := m[name].(json.Number)
			i, _ := n.Int64()
			return int(i)
		}
		if n := length("ids"); n > 0 {
			return slices.Repeat([]int{5}, n)
		}
		if n := length("words"); n > 0 {
			return words(strings.Repeat("hello ", n))
		}
		return v
	}
	q := request{method: x.Method, path: x.Path, header: http.Header{}}
	switch {
	case x.Raw != nil:
		q.body = *x.Raw
	case x.Body != nil:
		body := maps.Clone(x.Body)
		if p, ok := body["prompt"]; ok {
			body["prompt"] = long(p, func(s string) any { return s })
		}
		if m, ok := body["messages"]; ok {
			body["messages"] = long(m, func(s string) any { return []any{map[string]any{"role": "user", "content": s}} })
		}
		q.body = string(dialect.Marshal(body))
	}
	if x.Method == http.MethodPost {
		q.header.Set("Content-Type", "application/json")
	}
	for name, value := range x.Headers {
		q.header.Set(name, value)
	}
	return q
}

// What the real server refuses, the mock refuses with the same bytes.
func TestRecordedErrors(t *testing.T) {
	for file, c := range map[string]serve.Config{
		"errors.json": {}, "sampling.json": {Vocab: 8000}, "keys.json": {APIKey: "k1", APIKeys: []string{"k2"}},
	} {
		c.Model, c.MaxModelLen = "tiny", 4096
		r := start(t, fast, c)
		for _, x := range recorded(t, file) {
			resp, body := r.do(x.request())
			if resp.StatusCode != x.Status || resp.Header.Get("Allow") != x.Allow && x.Path != "/ping" {
				t.Errorf("%s: %d, allow %q; want %d, %q", x.Name, resp.StatusCode, resp.Header.Get("Allow"), x.Status, x.Allow)
			}
			if x.Status >= 400 && body != x.Answer {
				t.Errorf("%s:\ngot  %s\nwant %s", x.Name, body, x.Answer)
			}
			if kind := resp.Header.Get("Content-Type"); kind != x.Type {
				t.Errorf("%s: type %q, want %q", x.Name, kind, x.Type)
			}
		}
		for _, tr := range r.stop() {
			if tr.Status < 400 || tr.OutputTokens != 0 || tr.ArrivalNS == 0 {
				t.Errorf("truth of a refused request: %+v", tr)
			}
		}
	}
}

// What the mock answers has the fields of the real server's answers, in the
// same order and with the same constants; texts and most numbers are its own.
func TestRecordedAnswers(t *testing.T) {
	stops := map[string]string{"careless": "of", "rl": "ir"} // words that either has
	for _, x := range slices.Concat(recorded(t, "answers.json"), recorded(t, "small.json"), recorded(t, "structured.json")) {
		t.Run(x.Name, func(t *testing.T) {
			r := start(t, fast, serve.Config{Model: "tiny", MaxModelLen: 4096, PromptTokensDetails: true})
			switch stop := x.Body["stop"].(type) {
			case string:
				x.Body["stop"] = stops[stop]
			case []any:
				x.Body["stop"] = stops[stop[0].(string)]
			}
			if x.Body["stop"] != nil {
				delete(x.Body, "temperature") // so that the words are those
			}
			delete(x.Headers, "Authorization")
			if x.Path == "/detokenize" {
				x.Body["tokens"] = r.tokenized(`{"prompt":"hello there"}`).Tokens
			}
			resp, body := r.do(x.request())
			if resp.StatusCode != x.Status || resp.Header.Get("Content-Type") != x.Type {
				t.Fatalf("%d %s, want %d %s", resp.StatusCode, resp.Header.Get("Content-Type"), x.Status, x.Type)
			}
			got, want := skeleton(t, body), skeleton(t, x.Answer)
			if x.Name == "comp list stream" { // which prompt comes first is the scheduler's affair
				slices.Sort(got)
				slices.Sort(want)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// skeleton is what the events of an answer have in common with another one's;
// runs of the same are one.
func skeleton(t *testing.T, body string) (lines []string) {
	t.Helper()
	for line := range strings.SplitSeq(body, "\n") {
		line = strings.TrimPrefix(line, "data: ")
		if strings.HasPrefix(line, "{") {
			d := json.NewDecoder(strings.NewReader(line))
			d.UseNumber()
			line = bones(t, d, "")
		}
		if line != "" && (len(lines) == 0 || lines[len(lines)-1] != line) {
			lines = append(lines, line)
		}
	}
	return lines
}

// bones writes the next JSON value without what may differ: strings and
// numbers of fields that are not named here.
func bones(t *testing.T, d *json.Decoder, field string) string {
	t.Helper()
	token, err := d.Token()
	if err != nil {
		t.Fatal(err)
	}
	var parts []string
	switch v := token.(type) {
	case json.Delim:
		for d.More() {
			if v == '[' {
				one := bones(t, d, field)
				if len(parts) == 0 || parts[len(parts)-1] != one {
					parts = append(parts, one)
				}
				continue
			}
			key, err := d.Token()
			if err != nil {
				t.Fatal(err)
			}
			name := key.(string)
			value := bones(t, d, name)
			if field == "top_logprobs" && value == "N" && name != "logprob" {
				name = "TOKEN" // a completion's alternatives are an object
			}
			if _, err := strconv.Atoi(name); err == nil && field == "prompt_logprobs" {
				name = "TOKEN"
			}
			part := `"` + name + `":` + value
			if len(parts) == 0 || parts[len(parts)-1] != part {
				parts = append(parts, part)
			}
		}
		if _, err := d.Token(); err != nil {
			t.Fatal(err)
		}
		if v == '[' {
			if field == "bytes" {
				return "[N]"
			}
			return "[" + strings.Join(parts, ",") + "]"
		}
		return "{" + strings.Join(parts, ",") + "}"
	case string:
		switch field {
		case "object", "finish_reason", "role", "type", "name", "model", "organization":
			return `"` + v + `"`
		}
		return "S"
	case json.Number:
		switch field {
		case "index", "max_model_len", "server_load":
			return v.String()
		}
		return "N"
	case nil:
		return "null"
	default:
		return fmt.Sprint(v)
	}
}

// engineFor is the engine of the recorded server, as far as the twin has it.
func engineFor(t *testing.T) *vllm.Engine {
	t.Helper()
	s := vllm.Default()
	s.MaxNumSeqs, s.MaxModelLen, s.BlockSize, s.NumGPUBlocks = 64, 4096, 128, 16384
	if err := s.Check(); err != nil {
		t.Fatal(err)
	}
	return vllm.New(s, quick{})
}

// quick is a cost of a tenth of a millisecond a step.
type quick struct{}

func (quick) Step(*twin.Batch) time.Duration { return 100 * time.Microsecond }

// After the same requests the counts have gone up as the real server's did;
// and its families, types, labels and buckets are the same throughout.
func TestRecordedMetrics(t *testing.T) {
	r := startWith(t, engineFor(t), serve.Config{
		Model: "tiny", MaxModelLen: 4096, PromptTokensDetails: true,
		Cache: map[string]string{"block_size": "128", "num_gpu_blocks": "16384", "kv_cache_memory_bytes": "1073741824"},
	})
	before := r.scrape()
	var cached []string
	for _, x := range recorded(t, "metrics.json") {
		resp, body := r.do(x.request())
		if resp.StatusCode != x.Status {
			t.Errorf("%s: %d %s", x.Name, resp.StatusCode, body)
		}
		for _, b := range []string{body, x.Answer} {
			_, rest, _ := strings.Cut(b, `"cached_tokens":`)
			cached = append(cached, rest[:min(3, len(rest))])
		}
	}
	for i := 0; i < len(cached); i += 2 {
		if cached[i] != cached[i+1] {
			t.Errorf("request %d: cached_tokens %s, the real server had %s", i/2, cached[i], cached[i+1])
		}
	}
	after := r.scrape()
	realBefore, realAfter := readMetrics(t, "metrics-before.prom"), readMetrics(t, "metrics-after.prom")

	engine := func(line string) bool { return !strings.Contains(line, "vllm:") }
	if diff := cmp.Diff(identities(realAfter), slices.DeleteFunc(identities(after), engine)); diff != "" {
		t.Error(diff)
	}
	then, now, realThen, realNow := values(t, before), values(t, after), values(t, realBefore), values(t, realAfter)
	compared := 0
	for series, v := range realNow {
		// How many steps there were depends on when requests come together.
		parser := strings.Contains(series, "tool_call_parser")
		steps := strings.HasPrefix(series, "vllm:iteration_tokens_total") && !strings.Contains(series, "_sum")
		if strings.Contains(series, "seconds") || strings.Contains(series, "_created") || strings.Contains(series, "estimated") || steps || parser {
			continue
		}
		compared++
		if got, want := now[series]-then[series], v-realThen[series]; got != want {
			t.Errorf("%s went up by %v, the real one by %v", series, got, want)
		}
	}
	if compared < 100 {
		t.Errorf("only %d series are compared", compared)
	}
}

// What the process and the web framework tell has the form of the real
// server's: the same families with the same labels and buckets.
func TestRecordedWebMetrics(t *testing.T) {
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Skip("only Linux tells of processes")
	}
	r := start(t, fast, serve.Config{Model: "m", APIKey: "k"})
	for _, ask := range []request{
		post("/v1/completions", `{"prompt":"x","max_tokens":-1}`, "Authorization: Bearer k"),
		post("/detokenize", `{"tokens":[97]}`), post("/detokenize", `{"tokens":"x"}`), post("/tokenize", `{"prompt":"x"}`),
		post("/v1/chat/completions", `{}`, "Authorization: Bearer k"),
		post("/v1/chat/completions", `{"messages":[{"role":"user","content":"x"}],"max_tokens":2,"stream":true}`, "Authorization: Bearer k"),
		post("/v1/completions", `{"prompt":"x","max_tokens":1}`, "Authorization: Bearer k"),
		post("/v1/completions", `{}`), // turned away, and not counted
		get("/health"),
	} {
		r.do(ask)
	}
	waitFor(t, "the end", func() bool { return r.Stats().Active == 0 })
	real := readMetrics(t, "http.prom")
	ours := func(line string) bool { return strings.Contains(line, "vllm:") }
	theirs := func(line string) bool { return strings.Contains(line, `status="5xx"`) }
	want := slices.DeleteFunc(identities(real), theirs)
	got := slices.DeleteFunc(identities(r.scrape()), ours)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	v := values(t, r.scrape())
	for series, want := range map[string]float64{
		`http_requests_total{handler="/v1/completions",method="POST",status="4xx"}`:      1,
		`http_requests_total{handler="/v1/completions",method="POST",status="2xx"}`:      1,
		`http_requests_total{handler="/v1/chat/completions",method="POST",status="2xx"}`: 1,
		`http_request_size_bytes_sum{handler="/v1/completions"}`:                         30 + 29,
		"http_request_duration_highr_seconds_count":                                      7,
	} {
		if v[series] != want {
			t.Errorf("%s is %v, want %v", series, v[series], want)
		}
	}
	if rss := v["process_resident_memory_bytes"]; rss < 1<<20 || v["process_open_fds"] < 3 || v["process_start_time_seconds"] < 1.7e9 || v["process_virtual_memory_bytes"] < rss {
		t.Errorf("process: %v", v)
	}
}

// Injected errors are counted like any others.
func TestFaultsAreCounted(t *testing.T) {
	fs, _ := serve.ParseFaults("503:100%@0s-1h")
	r := start(t, fast, serve.Config{Faults: fs})
	for range 3 {
		r.do(post("/v1/completions", `{"prompt":"x","max_tokens":4}`))
	}
	if n := values(t, r.scrape())[`http_requests_total{handler="/v1/completions",method="POST",status="5xx"}`]; n != 3 {
		t.Errorf("%v of 3", n)
	}
}

// scrape reads /metrics.
func (r *rig) scrape() string {
	r.t.Helper()
	resp, body := r.do(get("/metrics"))
	if resp.StatusCode != 200 || resp.Header.Get("Content-Type") != "text/plain; version=1.0.0; charset=utf-8" {
		r.t.Fatal(resp.Status, resp.Header)
	}
	return body
}

func readMetrics(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// identities are the lines of a page without values and the words of HELP; of
// an information the values of its labels are left out too.
func identities(page string) (lines []string) {
	for line := range strings.Lines(page) {
		line = strings.TrimSuffix(line, "\n")
		if strings.Contains(line, "tool_call_parser") { // the recorded server has one
			continue
		}
		switch {
		case strings.HasPrefix(line, "# HELP "):
			line = strings.Join(strings.SplitN(line, " ", 4)[:3], " ")
		case !strings.HasPrefix(line, "#"):
			line = line[:strings.LastIndexByte(line, ' ')]
		}
		if strings.HasPrefix(line, "vllm:cache_config_info") {
			parts := strings.Split(line, `"`)
			for i := 1; i < len(parts); i += 2 {
				parts[i] = ""
			}
			line = strings.Join(parts, `"`)
		}
		lines = append(lines, line)
	}
	return lines
}

func values(t *testing.T, page string) map[string]float64 {
	t.Helper()
	v := map[string]float64{}
	for line := range strings.Lines(page) {
		line = strings.TrimSuffix(line, "\n")
		if strings.HasPrefix(line, "#") {
			continue
		}
		at := strings.LastIndexByte(line, ' ')
		f, err := strconv.ParseFloat(line[at+1:], 64)
		if err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if prom.Float(f) != line[at+1:] {
			t.Errorf("%q is written %s here", line, prom.Float(f))
		}
		v[line[:at]] = f
	}
	return v
}
