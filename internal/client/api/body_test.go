package api

import (
	"encoding/json"
	"slices"
	"testing"

	"pgregory.net/rapid"

	_ "pitot/internal/rapidtest" // the same draws each time
	"pitot/internal/workload"
	"pitot/internal/workload/token"
)

func user(segments ...workload.Segment) []workload.Message {
	return []workload.Message{{Role: "user", Segments: segments}}
}

func TestBodyGolden(t *testing.T) {
	generated := workload.Segment{Seed: 7, Words: 4}
	words := string(user(generated)[0].Append(nil, token.Universal()))
	literal := workload.Segment{Text: "say \"hi\"\n\\ é😀 <b>\x01"}
	const escaped = `say \"hi\"\n\\ é😀 \u003cb\u003e\u0001`
	base := Options{Model: "m", Stream: true, Vocab: token.Universal(), MaxField: "max_tokens"}
	with := func(f func(*Options)) Options { o := base; f(&o); return o }
	for _, c := range []struct {
		name string
		api  API
		req  workload.Request
		o    Options
		want string
	}{
		{"chat", Chat, workload.Request{Messages: user(generated), Output: 5}, base,
			`{"model":"m","messages":[{"role":"user","content":"` + words + `"}],"max_tokens":5,"temperature":0,"stream":true,"stream_options":{"include_usage":true}}`},
		{"completions", Completions, workload.Request{Messages: user(generated), Output: 5}, base,
			`{"model":"m","prompt":"` + words + `","max_tokens":5,"temperature":0,"stream":true,"stream_options":{"include_usage":true}}`},
		{"chat, literal", Chat, workload.Request{Messages: user(literal), Output: workload.Unknown}, with(func(o *Options) { o.Stream = false }),
			`{"model":"m","messages":[{"role":"user","content":"` + escaped + `"}],"temperature":0}`},
		{"completions, literal", Completions, workload.Request{Messages: user(literal)}, with(func(o *Options) { o.Stream = false }),
			`{"model":"m","prompt":"` + escaped + `","temperature":0}`},
		{"several messages", Chat, workload.Request{Messages: append([]workload.Message{{Role: "system", Segments: []workload.Segment{{Text: "be \"brief\""}}}}, user(generated)...), Output: 1}, with(func(o *Options) { o.Stream = false }),
			`{"model":"m","messages":[{"role":"system","content":"be \"brief\""},{"role":"user","content":"` + words + `"}],"max_tokens":1,"temperature":0}`},
		{"exact", Chat, workload.Request{Messages: user(generated), Output: 5, Exact: true}, with(func(o *Options) { o.IgnoreEOS, o.MinTokens, o.Stream = true, true, false }),
			`{"model":"m","messages":[{"role":"user","content":"` + words + `"}],"max_tokens":5,"min_tokens":5,"ignore_eos":true,"temperature":0}`},
		{"not exact", Chat, workload.Request{Messages: user(generated), Output: 5}, with(func(o *Options) { o.IgnoreEOS, o.MinTokens, o.Stream = true, true, false }),
			`{"model":"m","messages":[{"role":"user","content":"` + words + `"}],"max_tokens":5,"temperature":0}`},
		{"usage with every event", Completions, workload.Request{Messages: user(generated)}, with(func(o *Options) { o.RunningUsage = true }),
			`{"model":"m","prompt":"` + words + `","temperature":0,"stream":true,"stream_options":{"include_usage":true,"continuous_usage_stats":true}}`},
		{"concessions", Chat, workload.Request{Messages: user(generated), Output: 5}, with(func(o *Options) { o.MaxField, o.NoUsage, o.NoTemperature = "max_completion_tokens", true, true }),
			`{"model":"m","messages":[{"role":"user","content":"` + words + `"}],"max_completion_tokens":5,"stream":true}`},
		{"model with quotes", Chat, workload.Request{Messages: user(generated)}, with(func(o *Options) { o.Model, o.Stream = `a"b`, false }),
			`{"model":"a\"b","messages":[{"role":"user","content":"` + words + `"}],"temperature":0}`},
		{"merged", Chat, workload.Request{Messages: user(generated), Output: 5, Body: []byte(`{"top_p":0.5,"seed":1,"stream_options": null}`)}, with(func(o *Options) { o.Body = []byte(`{"temperature":null,"seed":2,"extra":{"a":[1]}}`) }),
			`{"extra":{"a":[1]},"max_tokens":5,"messages":[{"role":"user","content":"` + words + `"}],"model":"m","seed":2,"stream":true,"top_p":0.5}`},
		{"responses", Responses, workload.Request{Messages: user(generated), Output: 5, Exact: true}, with(func(o *Options) { o.IgnoreEOS = true }),
			`{"model":"m","input":[{"role":"user","content":"` + words + `"}],"max_output_tokens":5,"ignore_eos":true,"temperature":0,"store":false,"stream":true}`},
		{"responses, conceded", Responses, workload.Request{Messages: user(generated), Output: 5}, with(func(o *Options) { o.LeastTokens, o.NoStore, o.NoTemperature = 16, true, true }),
			`{"model":"m","input":[{"role":"user","content":"` + words + `"}],"max_output_tokens":16,"stream":true}`},
		{"messages", Anthropic, workload.Request{Messages: append([]workload.Message{{Role: "system", Segments: []workload.Segment{{Text: "be \"brief\""}}}}, user(generated)...), Output: 5, Exact: true}, base,
			`{"model":"m","system":"be \"brief\"","messages":[{"role":"user","content":"` + words + `"}],"max_tokens":5,"temperature":0,"stream":true}`},
		{"messages without a limit", Anthropic, workload.Request{Messages: user(generated), Output: workload.Unknown}, base,
			`{"model":"m","messages":[{"role":"user","content":"` + words + `"}],"max_tokens":4096,"temperature":0,"stream":true}`},
		{"sglang", SGLang, workload.Request{Messages: user(generated), Output: 5, Exact: true}, with(func(o *Options) { o.IgnoreEOS = true }),
			`{"text":"` + words + `","sampling_params":{"temperature":0,"max_new_tokens":5,"ignore_eos":true},"stream":true}`},
		{"tgi", TGI, workload.Request{Messages: user(generated), Output: 5}, base,
			`{"inputs":"` + words + `","parameters":{"max_new_tokens":5,"do_sample":false,"details":true}}`},
		{"ollama", Ollama, workload.Request{Messages: user(generated), Output: 5}, with(func(o *Options) { o.Route = "/api/chat" }),
			`{"model":"m","messages":[{"role":"user","content":"` + words + `"}],"options":{"temperature":0,"num_predict":5}}`},
		{"ollama, a prompt", Ollama, workload.Request{Messages: user(generated), Output: 5}, with(func(o *Options) { o.Route, o.Stream = "/api/generate", false }),
			`{"model":"m","prompt":"` + words + `","options":{"temperature":0,"num_predict":5},"stream":false}`},
		{"llamacpp", LlamaCpp, workload.Request{Messages: user(generated), Output: 5, Exact: true}, with(func(o *Options) { o.IgnoreEOS = true }),
			`{"prompt":"` + words + `","temperature":0,"n_predict":5,"ignore_eos":true,"stream":true}`},
		{"gemini", Gemini, workload.Request{Messages: append([]workload.Message{{Role: "system", Segments: []workload.Segment{{Text: "be \"brief\""}}}, {Role: "assistant", Segments: []workload.Segment{{Text: "ok"}}}}, user(generated)...), Output: 5}, base,
			`{"contents":[{"role":"model","parts":[{"text":"ok"}]},{"role":"user","parts":[{"text":"` + words + `"}]}],"systemInstruction":{"parts":[{"text":"be \"brief\""}]},"generationConfig":{"temperature":0,"maxOutputTokens":5}}`},
		{"triton", Triton, workload.Request{Messages: user(generated), Output: 5}, base,
			`{"text_input":"` + words + `","temperature":0,"max_tokens":5,"stream":true}`},
		{"embeddings", Embeddings, workload.Request{Messages: append(user(generated), user(literal)...)}, base,
			`{"model":"m","input":["` + words + `","` + escaped + `"],"encoding_format":"float"}`},
		{"rerank", Rerank, workload.Request{Messages: append(user(literal), user(generated)...)}, with(func(o *Options) { o.Body = []byte(`{"top_n":1}`) }),
			`{"documents":["` + words + `"],"model":"m","query":"` + escaped + `","top_n":1}`},
		{"rerank, before there is a query", Rerank, workload.Request{Messages: user(generated)}, base,
			`{"model":"m","query":"a","documents":["` + words + `"]}`},
		{"tei-embed", TEIEmbed, workload.Request{Messages: user(generated)}, base,
			`{"inputs":["` + words + `"]}`},
		{"tei-rerank", TEIRerank, workload.Request{Messages: append(user(generated), user(literal)...)}, base,
			`{"query":"` + words + `","texts":["` + escaped + `"]}`},
	} {
		got, err := c.api.Body([]byte("kept"), &c.req, c.o)
		if err != nil || string(got) != "kept"+c.want {
			t.Errorf("%s: %v\n got %s\nwant kept%s", c.name, err, got, c.want)
		}
	}
	for _, bad := range []string{"", "[1]", "{", `"x"`, "{} {}"} {
		if got, err := Chat.Body(nil, &workload.Request{Messages: user(generated), Body: []byte(bad)}, base); err == nil {
			t.Errorf("merged with %q: %s", bad, got)
		}
	}
}

// Whatever the text, it is what a server reads out of the body.
func TestBodyIsWhatWasMeant(t *testing.T) {
	vocab := token.Universal()
	rapid.Check(t, func(t *rapid.T) {
		segment := rapid.Custom(func(t *rapid.T) workload.Segment {
			if rapid.Bool().Draw(t, "literal") {
				return workload.Segment{Text: rapid.String().Draw(t, "text")}
			}
			return workload.Segment{Seed: rapid.Uint64().Draw(t, "seed"), Words: rapid.IntRange(1, 30).Draw(t, "words")}
		})
		req := workload.Request{Output: rapid.IntRange(-1, 9).Draw(t, "output")}
		for range rapid.IntRange(1, 3).Draw(t, "messages") {
			req.Messages = append(req.Messages, workload.Message{Role: "user", Segments: rapid.SliceOfN(segment, 1, 4).Draw(t, "segments")})
		}
		o := Options{Model: rapid.String().Draw(t, "model"), Stream: true, Vocab: vocab, MaxField: "max_tokens"}
		var body struct {
			Model, Prompt string
			Messages      []struct{ Role, Content string }
		}
		chat, err := Chat.Body(nil, &req, o)
		if err != nil || json.Unmarshal(chat, &body) != nil || len(body.Messages) != len(req.Messages) || body.Model != o.Model {
			t.Fatalf("%v in %s", err, chat)
		}
		for i, m := range req.Messages {
			if want := string(m.Append(nil, vocab)); body.Messages[i].Content != want {
				t.Fatalf("message %q, want %q", body.Messages[i].Content, want)
			}
		}
		completions, err := Completions.Body(nil, &req, o)
		if want := string(req.AppendPrompt(nil, vocab)); err != nil || json.Unmarshal(completions, &body) != nil || body.Prompt != want {
			t.Fatalf("prompt %q, want %q (%v)", body.Prompt, want, err)
		}
	})
}

// A prompt of token ids has one for each generated word, the same for the same word; text
// has none.
func TestPromptIDs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		vocab := token.Universal()
		o := Options{Model: "m", Vocab: vocab, MaxField: "max_tokens", IDs: true}
		seeds, words := rapid.SliceOfN(rapid.Uint64(), 1, 3).Draw(t, "seeds"), rapid.IntRange(1, 300).Draw(t, "words")
		ids := func(of ...uint64) []int {
			t.Helper()
			var segments []workload.Segment
			for _, s := range of {
				segments = append(segments, workload.Segment{Seed: s, Words: words})
			}
			r := workload.Request{Messages: user(segments...), Output: 1}
			var prompt struct {
				Prompt []int `json:"prompt"`
				IDs    []int `json:"input_ids"`
			}
			for _, a := range []API{Completions, SGLang} {
				if body, err := a.Body(nil, &r, o); err != nil || json.Unmarshal(body, &prompt) != nil {
					t.Fatalf("%s %v", body, err)
				}
			}
			if !slices.Equal(prompt.Prompt, prompt.IDs) || len(prompt.IDs) != words*len(of) || slices.Min(prompt.IDs) < 1000 || slices.Max(prompt.IDs) >= 4000 {
				t.Fatalf("%v, %v", prompt.Prompt, prompt.IDs)
			}
			return prompt.IDs
		}
		if all := ids(seeds...); !slices.Equal(all[:words], ids(seeds[0])) {
			t.Fatal("what prompts share is not the same")
		}
	})
	o := Options{Model: "m", Vocab: token.Universal(), MaxField: "max_tokens", IDs: true}
	for _, a := range []API{Completions, SGLang} {
		if body, err := a.Body(nil, &workload.Request{Messages: user(workload.Segment{Text: "x"})}, o); err == nil {
			t.Errorf("%s: text becomes %s", a.Name(), body)
		}
	}
}

func BenchmarkBody(b *testing.B) {
	req := workload.Request{Messages: user(workload.Segment{Seed: 1, Words: 1024}), Output: 128, Exact: true}
	o := Options{Model: "m", Stream: true, Vocab: token.Universal(), IgnoreEOS: true, MaxField: "max_tokens"}
	var dst []byte
	b.ReportAllocs()
	for b.Loop() {
		dst, _ = Chat.Body(dst[:0], &req, o)
	}
}

// The examples of RFC 7396, appendix A, of those whose patch is an object, and what a
// body needs of them.
func TestMergePatch(t *testing.T) {
	for _, c := range []struct{ target, patch, want string }{
		{`{"a":"b"}`, `{"a":"c"}`, `{"a":"c"}`},
		{`{"a":"b"}`, `{"b":"c"}`, `{"a":"b","b":"c"}`},
		{`{"a":"b"}`, `{"a":null}`, `{}`},
		{`{"a":"b","b":"c"}`, `{"a":null}`, `{"b":"c"}`},
		{`{"a":["b"]}`, `{"a":"c"}`, `{"a":"c"}`},
		{`{"a":"c"}`, `{"a":["b"]}`, `{"a":["b"]}`},
		{`{"a":{"b":"c"}}`, `{"a":{"b":"d","c":null}}`, `{"a":{"b":"d"}}`},
		{`{"a":[{"b":"c"}]}`, `{"a":[1]}`, `{"a":[1]}`},
		{`{"e":null}`, `{"a":1}`, `{"a":1,"e":null}`},
		{`[1,2]`, `{"a":"b","c":null}`, `{"a":"b"}`},
		{`{}`, `{"a":{"bb":{"ccc":null}}}`, `{"a":{"bb":{}}}`},
		{`{"stream_options":{"include_usage":true}}`, ` {"stream_options" : {"continuous_usage_stats": true}}`, `{"stream_options":{"continuous_usage_stats":true,"include_usage":true}}`},
		{`{"n":12345678901234567890}`, `{"x":{"y":1e400}}`, `{"n":12345678901234567890,"x":{"y":1e400}}`},
	} {
		if got, err := mergeJSON([]byte(c.target), []byte(c.patch)); err != nil || string(got) != c.want {
			t.Errorf("%s over %s: %s, %v, want %s", c.patch, c.target, got, err, c.want)
		}
	}
	// What the user gives lies over what the workload does, and both over the request.
	if got, err := mergeJSON([]byte(`{"a":{"x":0}}`), []byte(`{"a":{"x":1,"y":1}}`), nil, []byte(`{"a":{"x":2}}`)); err != nil || string(got) != `{"a":{"x":2,"y":1}}` {
		t.Errorf("%s, %v", got, err)
	}
}
