package sglangapi

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	_ "pitot/internal/rapidtest" // the same draws each time
	"pitot/internal/sim"
	"pitot/internal/sim/serve/dialect"
	"pitot/internal/sim/serve/lm"
	"pitot/internal/sim/serve/prom"
)

// opened is the dialect of a model.
func opened(c lm.Config) *api {
	none := func() int64 { return 1 }
	return Open(dialect.Served{Model: lm.New(c), Name: "m", MaxModelLen: 1000, Active: none, Aborted: none}).(*api)
}

func asking(body string) *dialect.Request {
	return &dialect.Request{Method: http.MethodPost, Header: http.Header{"Content-Type": {"application/json"}}, Body: []byte(body), N: 1}
}

// The page has the families, types, labels and buckets that SGLang's own collectors wrote.
func TestRecordedMetrics(t *testing.T) {
	a := opened(lm.Config{})
	m := a.Metrics(1)
	c := m.Of(0)
	c.Tokens(1)
	c.FirstToken(1, 2, 1, true)
	c.NextTokens(1)
	c.Finished(dialect.Finished{Reason: "stop", Stream: true, PromptTokens: 2, Computed: 1, Output: 2})
	var web prom.HTTP
	const route = "/v1/chat/completions"
	web.Begin(route, http.MethodPost)
	web.Begin(route, http.MethodPost)
	web.Count(prom.Exchange{Route: route, Method: http.MethodPost, Status: 200, Begun: true})
	stats := sim.Stats{Preemptions: 1, GenerationTokens: 1, Radix: sim.Radix{
		Tokens: 10, Computed: 3, Found: 2, RetractedPrompt: 1, RetractedAnswer: 1, Evicted: 1, Evictions: 1, PromptSteps: 1, AnswerSteps: 1,
	}}
	page := m.Page([]dialect.Reading{{Stats: stats}}, &web)()
	real, err := os.ReadFile("testdata/metrics.prom")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(series(string(real)), series(string(page))); diff != "" {
		t.Errorf("the real page (-) and this one (+):\n%s", diff)
	}
	for _, line := range []string{
		`sglang:http_requests_total{endpoint="/v1/chat/completions",method="POST"} 2.0`,
		`sglang:http_requests_active{endpoint="/v1/chat/completions",method="POST"} 1.0`,
		`sglang:http_responses_total{endpoint="/v1/chat/completions",method="POST",status_code="200"} 1.0`,
		`sglang:realtime_tokens_total{engine_type="unified",mode="prefill_compute",model_name="m",moe_ep_rank="0",pp_rank="0",tp_rank="0"} 3.0`,
		`sglang:prompt_tokens_total{engine_type="unified",is_streaming="true",model_name="m"} 2.0`,
		`sglang:fwd_occupancy{engine_type="unified",model_name="m",moe_ep_rank="0",pp_rank="0",tp_rank="0"} NaN`,
	} {
		if !strings.Contains(string(page), line+"\n") {
			t.Errorf("the page lacks %s", line)
		}
	}
	// Of several engines each scheduler tells its rank, and what takes requests tells of all.
	m = a.Metrics(2)
	page = m.Page(make([]dialect.Reading, 2), &web)()
	for _, line := range []string{`sglang:num_running_reqs{dp_rank="1",engine_type="unified",`, `sglang:startup_time_seconds{engine_type="unified",model_name="m",phase="load_weight"}`} {
		if !strings.Contains(string(page), "\n"+line) {
			t.Errorf("the page of two engines lacks %s", line)
		}
	}
}

// process is a label whose value is a number of a process.
var process = regexp.MustCompile(`pid="[0-9]+"`)

// series are the lines of a page without their values and comments, in order.
func series(page string) (all []string) {
	for line := range strings.Lines(page) {
		if line = strings.TrimSpace(line); !strings.HasPrefix(line, "#") {
			line = line[:strings.LastIndexByte(line, ' ')]
		} else if strings.HasPrefix(line, "# HELP") {
			continue
		}
		all = append(all, process.ReplaceAllString(line, "pid"))
	}
	slices.Sort(all)
	return all
}

// play streams an answer in pieces of some tokens each.
func play(w dialect.Writer, c *dialect.Call, step int) (stream string) {
	var b []byte
	for i := range c.Opening {
		b = w.Open(b, i)
	}
	for i, j := range c.Jobs {
		for from := 0; from < j.Output; from += step {
			to, finish := min(from+step, j.Output), ""
			if to == j.Output {
				finish = w.Finish(i, "length")
			}
			event, shown := w.Tokens(nil, i, from, to, finish)
			if shown {
				b = append(b, event...)
			}
		}
	}
	b = w.Usage(b, dialect.Counts{Output: 3, Cached: 2})
	return string(w.Done(b))
}

// A stream is the role, the words, why it ended in an event of its own, and the usage.
func TestStream(t *testing.T) {
	a := opened(lm.Config{Vocab: 2000})
	a.PromptTokensDetails = true
	call, refused := a.beginChat(asking(`{"model":"any","messages":[{"role":"user","content":"a b"}],"max_tokens":3,"stream":true,"stream_options":{"include_usage":true},"rid":"r"}`))
	if refused != nil {
		t.Fatalf("%s", refused.Body)
	}
	got := regexp.MustCompile(`"created":[0-9]+`).ReplaceAllString(play(call.Writer, call, 2), `"created":1`)
	const head = `data: {"id":"r","object":"chat.completion.chunk","created":1,"model":"any","choices":[`
	want := head + `{"index":0,"delta":{"reasoning_content":null,"role":"assistant","content":""},"logprobs":null,"finish_reason":null,"matched_stop":null}]}` + "\n\n" +
		head + `{"index":0,"delta":{"reasoning_content":null,"content":" a speed"},"logprobs":null,"finish_reason":null,"matched_stop":null}]}` + "\n\n" +
		head + `{"index":0,"delta":{"reasoning_content":null,"content":" is"},"logprobs":null,"finish_reason":null,"matched_stop":null}]}` + "\n\n" +
		head + `{"index":0,"delta":{"reasoning_content":null},"logprobs":null,"finish_reason":"length","matched_stop":null}]}` + "\n\n" +
		head + `],"usage":{"prompt_tokens":2,"total_tokens":5,"completion_tokens":3,"prompt_tokens_details":{"cached_tokens":2},"reasoning_tokens":0,"completion_tokens_details":null}}` + "\n\n" +
		"data: [DONE]\n\n"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if !call.Waits {
		t.Error("the head of a stream does not wait for the first token")
	}
}

// What a request may not say is refused as SGLang does, with its object.
func TestRefused(t *testing.T) {
	a := opened(lm.Config{})
	const hello = `"messages":[{"role":"user","content":"x"}]`
	for body, want := range map[string]string{
		`{}`:                                `{"object":"error","message":"1 validation error:\n  body.messages: Field required","type":"Bad Request","param":null,"code":400}`,
		`{"messages":[]}`:                   `{"object":"error","message":"Messages cannot be empty.","type":"BadRequestError","param":null,"code":400}`,
		`{` + hello + `,"n":0}`:             "n must be at least 1",
		`{` + hello + `,"n":"x"`:            "JSON decode error",
		`{` + hello + `,"max_tokens":2000}`: "maximum context length of 1000 tokens. You requested a total of 2001",
		`{` + hello + `,"max_tokens":9223372036854775807}`:            "You requested a total of 9223372036854775808 tokens",
		`{` + hello + `,"top_p":0}`:                                   "top_p must be in (0, 1], got 0.",
		`{` + hello + `,"temperature":-1}`:                            "temperature must be a non-negative",
		`{` + hello + `,"tool_choice":"required"}`:                    "Tools cannot be empty",
		`{` + hello + `,"response_format":{"type":"json_schema"}}`:    "schema_ is required",
		`{"messages":[{"role":"user","content":[{"type":"image"}]}]}`: "takes text alone",
	} {
		_, refused := a.beginChat(asking(body))
		if refused == nil || refused.Status != 400 || !strings.Contains(string(refused.Body), want) {
			t.Errorf("%s: %+v", body, refused)
		}
	}
	if _, refused := a.beginCompletion(asking(`{"prompt":""}`)); refused == nil || !strings.Contains(string(refused.Body), "Prompt cannot be empty") {
		t.Errorf("an empty prompt: %+v", refused)
	}
	for _, prompts := range []string{`["a","b"]`, `["a","b","c","d"]`} { // times n is more than an int holds
		if _, refused := a.beginCompletion(asking(`{"prompt":` + prompts + `,"n":4611686018427387904}`)); refused == nil || !strings.Contains(string(refused.Body), "n must be at least 1, and at most 1024") {
			t.Errorf("%s: %+v", prompts, refused)
		}
	}
}

// Every event and every whole answer is JSON, whatever is asked; counts make sense.
func FuzzRequest(f *testing.F) {
	const hello = `"messages":[{"role":"user","content":"x"}]`
	for _, s := range []string{
		`{` + hello + `}`, `{` + hello + `,"stream":true,"n":2,"stop":[" of"],"stream_options":{"continuous_usage_stats":true,"include_usage":true}}`,
		`{"prompt":"a","echo":true,"logprobs":2,"stream":true}`, `{"prompt":[1,2]}`, `{"prompt":[[1],"x"],"n":2}`, `{` + hello + `,"logprobs":true,"top_logprobs":2}`,
		`{` + hello + `,"tools":[{"function":{"name":"f\"","parameters":{}}}],"tool_choice":"required","stream":true}`,
		`{` + hello + `,"regex":"a+b","separate_reasoning":false}`, `{` + hello + `,"response_format":{"type":"json_object"},"temperature":0,"seed":3}`,
	} {
		f.Add([]byte(s), true)
		f.Add([]byte(s), false)
	}
	a := opened(lm.Config{Reasoning: 0.3, ToolCalls: 0.5})
	f.Fuzz(func(t *testing.T, body []byte, chat bool) {
		call, refused := a.beginAnswer(asking(string(body)), chat)
		if refused != nil {
			if refused.Status != 400 || !json.Valid(refused.Body) {
				t.Fatalf("refused with %d: %s", refused.Status, refused.Body)
			}
			return
		}
		if call.Prompt < 0 || len(call.Jobs) == 0 || len(call.Jobs) > maxChoices {
			t.Fatalf("%d tokens of prompts, %d jobs", call.Prompt, len(call.Jobs))
		}
		parts := make([]dialect.Part, len(call.Jobs))
		for i, j := range call.Jobs {
			if j.Prompt < 1 || j.Output < 1 || j.Output > j.Limit || j.Prompt+j.Limit > a.MaxModelLen {
				t.Fatalf("job %+v", j)
			}
			parts[i] = dialect.Part{Tokens: j.Output, Finish: call.Writer.Finish(i, "length")}
		}
		if b := call.Writer.Whole(nil, parts, dialect.Counts{}); !call.Stream && !json.Valid(b) {
			t.Fatalf("whole answer %q", b)
		}
		if !call.Stream {
			return
		}
		again, _ := a.beginAnswer(asking(string(body)), chat)
		for ev := range strings.SplitSeq(strings.TrimSuffix(play(again.Writer, again, 3), "\n\n"), "\n\n") {
			data, ok := strings.CutPrefix(ev, "data: ")
			if !ok || data != "[DONE]" && !json.Valid([]byte(data)) {
				t.Fatalf("event %q", ev)
			}
		}
		if !bytes.Contains(again.Writer.Error(nil), []byte(`"object":"error"`)) {
			t.Fatal("no error event")
		}
	})
}

// Whatever is served, what the server tells of itself is JSON.
func TestTold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := opened(lm.Config{})
		a.Name = rapid.String().Draw(t, "name")
		a.Settings = map[string]string{"max_total_tokens": "100", rapid.String().Draw(t, "key"): rapid.String().Draw(t, "value")}
		for _, r := range []dialect.Reply{a.answerModels(nil), a.modelInfo(nil), a.serverInfo(nil)} {
			if !json.Valid(r.Body) || string(r.Body) == "null" {
				t.Fatalf("%s", r.Body)
			}
		}
	})
}
