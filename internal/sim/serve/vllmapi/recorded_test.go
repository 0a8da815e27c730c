package vllmapi_test

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pitot/bench/likeness/exchange"
	"pitot/internal/sim"
	"pitot/internal/sim/serve"
	"pitot/internal/sim/serve/prom"
	"pitot/internal/sim/vllm"
	"pitot/internal/workload/token"
)

// recorded are the exchanges of a file in testdata, which says with whom.
func recorded(t *testing.T, name string) []exchange.Exchange {
	t.Helper()
	f, err := exchange.Read(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return f.Exchanges
}

// send gives what the mock answers.
func (r *rig) send(x *exchange.Exchange) exchange.Answer {
	r.t.Helper()
	a, err := x.Ask(client, r.url)
	if err != nil {
		r.t.Fatal(err)
	}
	return a
}

// What the real server refuses, the mock refuses with the same bytes, and leaves
// a line in the log of the truth.
func TestRecordedErrors(t *testing.T) {
	for file, c := range map[string]serve.Config{
		"errors.json": {}, "sampling.json": {Vocab: 8000}, "keys.json": {APIKey: "k1", APIKeys: []string{"k2"}},
	} {
		c.Model, c.MaxModelLen = "tiny", 4096
		r := start(t, fast, c)
		for _, x := range recorded(t, file) {
			got := r.send(&x)
			if x.Path == "/ping" { // there it is a matter of chance which method the header names
				x.Allow = got.Allow
			}
			if d := exchange.Difference(x.Answer, got); d != "" && (x.Status >= 400 || got.Status != x.Status) {
				t.Errorf("%s:\n%s", x.Name, d)
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
	for _, x := range slices.Concat(recorded(t, "answers.json"), recorded(t, "small.json"), recorded(t, "structured.json"),
		recorded(t, "messages.json"), recorded(t, "responses.json")) {
		t.Run(x.Name, func(t *testing.T) {
			r := start(t, fast, serve.Config{Model: "tiny", MaxModelLen: 4096, PromptTokensDetails: true})
			switch stop := x.Request.Body["stop"].(type) {
			case string:
				x.Request.Body["stop"] = stops[stop]
			case []any:
				x.Request.Body["stop"] = stops[stop[0].(string)]
			}
			if many, ok := x.Request.Body["stop_sequences"].([]any); ok {
				x.Request.Body["stop_sequences"] = []string{stops[many[0].(string)]}
				delete(x.Request.Body, "temperature")
			}
			if x.Request.Body["stop"] != nil {
				delete(x.Request.Body, "temperature") // so that the words are those
			}
			if x.Path == "/detokenize" {
				x.Request.Body["tokens"] = r.tokenized(`{"prompt":"hello there"}`).Tokens
			}
			got := r.send(&x)
			if d := exchange.Difference(x.Answer, got); d != "" {
				t.Error(d)
			}
		})
	}
}

// A model that does nothing but reason.
func TestRecordedThinking(t *testing.T) {
	for _, x := range recorded(t, "thinking.json") {
		r := start(t, fast, serve.Config{Model: "tiny", MaxModelLen: 4096, PromptTokensDetails: true, Reasoning: 1})
		if d := exchange.Difference(x.Answer, r.send(&x)); d != "" {
			t.Errorf("%s:\n%s", x.Name, d)
		}
	}
}

// letters are words of which the longest has, with a space, as many characters
// as the longest token of the recorded server: 15.
type letters struct{}

func (letters) Size() int                { return 1 }
func (letters) Word(int) []byte          { return []byte("eeeeeeeeeeeeee") }
func (letters) Index([]byte) (int, bool) { return 0, false }

// The whole face: limits, echoes, suffixes, content types, browsers, redirects.
func TestRecordedFace(t *testing.T) {
	r := start(t, fast, serve.Config{Model: "tiny", MaxModelLen: 4096, PromptTokensDetails: true, Vocab: 8000,
		Tokenize: token.Universal().Split, Words: letters{}})
	for _, x := range recorded(t, "face.json") {
		if x.Path == "/load" {
			waitFor(t, "the end of answers", func() bool { return r.Stats().Active == 0 })
		}
		got := r.send(&x)
		if x.Name == "400010 letters" { // the chat's template has 10 more there
			got.Body = strings.ReplaceAll(got.Body, "400010", "400020")
		}
		if d := exchange.Difference(x.Answer, got); d != "" {
			t.Errorf("%s:\n%.2000s", x.Name, d)
		}
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

func (quick) Step(*sim.Batch) time.Duration { return 100 * time.Microsecond }

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
		got := r.send(&x)
		if got.Status != x.Status {
			t.Errorf("%s: %d %s", x.Name, got.Status, got.Body)
		}
		for _, b := range []string{got.Body, x.Answer.Body} {
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
		steps := strings.HasPrefix(series, "vllm:iteration_tokens_total") && !strings.Contains(series, "_sum")
		if strings.Contains(series, "seconds") || strings.Contains(series, "_created") || strings.Contains(series, "estimated") || steps {
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
	python := func(line string) bool { return strings.Contains(line, "python_") } // not in this recording
	want := slices.DeleteFunc(identities(real), theirs)
	got := slices.DeleteFunc(slices.DeleteFunc(identities(r.scrape()), ours), python)
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

// Refused methods, slashes too many and unknown paths are counted under the labels
// of the real server.
func TestRecordedHandlers(t *testing.T) {
	r := start(t, fast, serve.Config{Model: "m"})
	for _, ask := range []request{
		{method: "DELETE", path: "/v1/models"}, get("/v1/models/"), get("/v1/models//"), {method: "HEAD", path: "/v1/models"},
		{method: "PUT", path: "/v1/chat/completions"}, {method: "POST", path: "/v1/chat/completions/"}, {method: "OPTIONS", path: "/v1/completions"},
		get("/nothing"), get("/nothing/"), {method: "POST", path: "/health"}, get("/health/"), get("/v1/models?x=/"), get("/tokenize"),
	} {
		r.do(ask)
	}
	got := map[string]float64{}
	for series, v := range values(t, r.scrape()) {
		if strings.HasPrefix(series, "http_requests_total{") {
			got[series] = v
		}
	}
	if diff := cmp.Diff(values(t, readMetrics(t, "handlers.prom")), got); diff != "" {
		t.Error(diff)
	}
}

// The page has the families of a real server that was started for calls of tools,
// in its order and of its types.
func TestRecordedFamilies(t *testing.T) {
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Skip("only Linux tells of processes")
	}
	r := start(t, fast, serve.Config{})
	var got []string
	for line := range strings.Lines(r.scrape()) {
		if strings.HasPrefix(line, "# TYPE ") {
			got = append(got, line)
		}
	}
	if diff := cmp.Diff(slices.Collect(strings.Lines(readMetrics(t, "types.prom"))), got); diff != "" {
		t.Error(diff)
	}
}

// Outputs that are looked through for calls of tools are counted, as vLLM does:
// of a stream each delta, otherwise each choice; without tools, or where none may
// be called, none is.
func TestParserIsCounted(t *testing.T) {
	const tools = `"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object"}}}]`
	for _, c := range []struct {
		more string
		want map[string]float64
	}{
		{`"n":1`, nil},
		{tools + `,"tool_choice":"none"`, nil},
		{tools, map[string]float64{`mode="non_streaming",model_name="m",outcome="no_tool_call"`: 1}},
		{tools + `,"stream":true`, map[string]float64{`mode="streaming",model_name="m",outcome="no_tool_call"`: 20}},
		{tools + `,"tool_choice":"required"`, map[string]float64{`mode="non_streaming",model_name="m",outcome="tool_call"`: 1}},
		// Of the call's ten tokens six come before its name, two behind the arguments.
		{tools + `,"tool_choice":"required","stream":true`, map[string]float64{
			`mode="streaming",model_name="m",outcome="tool_call"`: 2, `mode="streaming",model_name="m",outcome="no_tool_call"`: 8}},
	} {
		r := start(t, fast, serve.Config{})
		r.do(post("/v1/chat/completions", `{"messages":[{"role":"user","content":"x"}],"max_tokens":20,`+c.more+`}`))
		for series, n := range values(t, r.scrape()) {
			labels, ok := strings.CutPrefix(series, "vllm:tool_call_parser_invocations_total{")
			labels = strings.TrimSuffix(labels, `,request_type="chat_completions"}`)
			if ok && n != c.want[labels] {
				t.Errorf("%s: %s is %v, want %v", c.more, labels, n, c.want[labels])
			}
		}
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
		if prom.FormatFloat(f) != line[at+1:] {
			t.Errorf("%q is written %s here", line, prom.FormatFloat(f))
		}
		v[line[:at]] = f
	}
	return v
}
