package vllmapi

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"pgregory.net/rapid"

	_ "pitot/internal/rapidtest" // the same draws each time
	"pitot/internal/sim/serve/dialect"
	"pitot/internal/sim/serve/lm"
	"pitot/internal/workload/token"
)

// opened is the dialect of a model.
func opened(c lm.Config, longest int) *api {
	return Open(dialect.Served{Model: lm.New(c), Name: "m", MaxModelLen: longest}).(*api)
}

func asking(body []byte) *dialect.Request {
	return &dialect.Request{Method: http.MethodPost, Header: http.Header{"Content-Type": {"application/json"}}, Body: body, N: 1}
}

// Every event is JSON, whatever the names in it.
func TestEventsAreJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := opened(lm.Config{}, 1000)
		a.Name, a.PromptTokensDetails = rapid.String().Draw(t, "model"), rapid.Bool().Draw(t, "details")
		if rapid.Bool().Draw(t, "reasons") {
			a.model = lm.New(lm.Config{Reasoning: 0.3})
		}
		asked := ask{
			chat: rapid.Bool().Draw(t, "chat"), continuous: rapid.Bool().Draw(t, "continuous"), usage: true, stream: true, n: 2,
			logprobs: rapid.IntRange(-1, 3).Draw(t, "logprobs"), promptLogprobs: -1, prompt: 10, plan: lm.Plan{Limit: 60},
		}
		asked.prompts = []lm.Prompt{a.model.TextPrompt([]byte(rapid.String().Draw(t, "prompt")), 0)}
		asked.echo = !asked.chat && rapid.Bool().Draw(t, "echo")
		if asked.echo {
			asked.echoOnly = rapid.Bool().Draw(t, "echoOnly")
			a.model.Tell(&asked.prompts[0], 0, lm.Truncation{})
		}
		if asked.chat {
			asked.hideReasoning = rapid.Bool().Draw(t, "hide")
			if rapid.Bool().Draw(t, "call") {
				asked.plan.Call = &lm.Call{Name: "f\"", Args: `{"a": "some\u00e9"}`}
			}
		}
		a.model.SettleLengths(&asked.plan, 1, lm.Mode{Chat: asked.chat})
		w := a.newWriter(asked, rapid.String().Draw(t, "id"), "text_completion", 1)
		all := w.choices[1].Output
		cut := rapid.IntRange(1, all-1).Draw(t, "cut")
		counts := dialect.Counts{Output: 2, Cached: 3, Stored: 4}
		one, shown := w.Tokens(nil, 1, 0, cut, "")
		last, _ := w.Tokens(nil, 1, cut, all, "stop")
		events := [][]byte{w.Open(nil, 1), last, w.Usage(nil, counts), w.Error(nil)}
		if shown {
			events = append(events, one)
		}
		for _, ev := range events {
			data, ok := bytes.CutPrefix(ev, []byte("data: "))
			if !ok || !json.Valid(data) || bytes.Count(ev, []byte("\n")) != 2 {
				t.Fatalf("event %q", ev)
			}
		}
		if data, ok := bytes.CutPrefix(w.Malformed(nil), []byte("data: ")); !ok || json.Valid(data) {
			t.Fatalf("malformed event %q", data)
		}
		if b := w.Whole(nil, []dialect.Part{{Tokens: cut, Finish: "length"}, {Tokens: all, Finish: "stop"}}, counts); !json.Valid(b) {
			t.Fatalf("whole answer %q", b)
		}
	})
}

// Bodies of any kind are answered or refused, with JSON and with counts that
// make sense.
func FuzzRequest(f *testing.F) {
	const hello = `"messages":[{"role":"user","content":"x"}]`
	for _, s := range []string{
		`{"messages":[{"role":"user","content":"a b"}],"max_tokens":3}`, `{"prompt":"a"}`, `{"prompt":[1,2]}`,
		`{"prompt":[["a"]]}`, `{"prompt":[[[1]]]}`, `{"prompt":[null]}`, `{"prompt":null}`, `{"prompt":[]}`, `{"prompt":[{}]}`, `null`, `[]`,
		`{"messages":[{"content":[{"text":"x"}]},{"content":null}]}`, `{"messages":[{"content":3}]}`, `{"max_tokens":-1,"prompt":""}`,
		`{"stream":true,"stream_options":{"continuous_usage_stats":true},"prompt":"x"}`,
		`{` + hello + `,"tools":[{"type":"function","function":{"name":"f","parameters":{"properties":{"a":{"type":"array"}}}}}],"tool_choice":"required"}`,
		`{"prompt":["a",[1,2]],"n":2,"stop":["air"],"echo":true,"logprobs":2,"min_tokens":1}`, `{"tokens":[281612415729763,5]}`,
		`{` + hello + `,"response_format":{"type":"json_schema","json_schema":{"name":"x","schema":{"$ref":"#"}}}}`,
		`{` + hello + `,"structured_outputs":{"choice":["yes","no"]},"stop":["s"]}`, `{` + hello + `,"structured_outputs":{"regex":"[ab]{3}|\\d+"},"truncate_prompt_tokens":1}`,
		`{` + hello + `,"logit_bias":{"5":1},"seed":3,"stop_token_ids":[1],"allowed_token_ids":[],"bad_words":["x"]}`, `{` + hello + `,"response_format":{"type":"bogus"}}`,
		`{"prompt":[1,-2],"prompt_logprobs":3,"return_token_ids":true}`,
	} {
		f.Add([]byte(s))
	}
	const longest = 100
	a := opened(lm.Config{Tokenize: token.Universal().Split, Words: token.Universal(), Reasoning: .3, ToolCalls: .5, Cached: true}, longest)
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, generate := range []func(*dialect.Request) (*dialect.Call, *dialect.Reply){a.beginChat, a.beginCompletion} {
			call, refused := generate(asking(body))
			if refused != nil {
				if refused.Status < 400 || !json.Valid(refused.Body) {
					t.Errorf("refused with %d %s", refused.Status, refused.Body)
				}
				continue
			}
			if n := len(call.Jobs); n < 1 || n > maxChoices || n%call.Batch != 0 {
				t.Errorf("%q asks for %d choices", body, n)
			}
			var parts []dialect.Part
			for _, j := range call.Jobs {
				if j.Output < 1 || j.Output > j.Limit || j.Prompt+j.Limit > longest {
					t.Errorf("%q asks %+v", body, j)
				}
				parts = append(parts, dialect.Part{Tokens: min(j.Output, 50), Finish: "length"})
			}
			event, _ := call.Writer.Tokens(nil, 0, 0, parts[0].Tokens, "length")
			if data := strings.TrimSpace(strings.TrimPrefix(string(event), "data: ")); !json.Valid([]byte(data)) {
				t.Errorf("%s", data)
			}
			if whole := call.Writer.Whole(nil, parts, dialect.Counts{Output: 1}); !json.Valid(whole) {
				t.Errorf("%s", whole)
			}
		}
		for _, r := range []dialect.Reply{a.tokenize(asking(body)), a.answerDetokenize(asking(body))} {
			if !json.Valid(r.Body) {
				t.Errorf("answer %s", r.Body)
			}
		}
	})
}

func TestTooManyChoices(t *testing.T) {
	a := opened(lm.Config{}, 100)
	for _, prompts := range []string{`["a","b"]`, `["a","b","c","d"]`} { // times n is more than an int holds
		if _, refused := a.beginCompletion(asking([]byte(`{"prompt":` + prompts + `,"n":4611686018427387904}`))); refused == nil || !strings.Contains(string(refused.Body), "n must be at most") {
			t.Errorf("%s: %+v", prompts, refused)
		}
	}
}

func TestFailureTypes(t *testing.T) {
	for status, want := range map[int]string{
		http.StatusBadRequest: "BadRequestError", http.StatusNotFound: "NotFoundError", http.StatusBadGateway: "InternalServerError",
	} {
		if got := failureType(status); got != want {
			t.Errorf("%d is %s", status, got)
		}
	}
}

func TestTokenBuckets(t *testing.T) {
	if got := tokenBuckets(4096); len(got) != 11 || got[10] != 2000 {
		t.Errorf("%v", got)
	}
}

// BenchmarkEvent is what building one event of a stream costs.
func BenchmarkEvent(b *testing.B) {
	a := opened(lm.Config{}, 1000)
	call, refused := a.beginChat(asking([]byte(`{"messages":[{"role":"user","content":"x"}],"stream":true}`)))
	if refused != nil {
		b.Fatal(string(refused.Body))
	}
	buf := make([]byte, 0, 1<<10)
	b.ReportAllocs()
	for b.Loop() {
		buf, _ = call.Writer.Tokens(buf[:0], 0, 0, 1, "")
	}
}
