package vllmapi_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"pitot/internal/sim/serve"
)

// contents are the answers' texts of a stream, delta by delta, with the field
// that each came in.
func contents(t *testing.T, body string) (got []string) {
	t.Helper()
	for ev := range strings.SplitSeq(body, "\n\n") {
		data, ok := strings.CutPrefix(ev, "data: ")
		if !ok || data == "[DONE]" {
			continue
		}
		var e struct {
			Choices []struct {
				Index  int
				Delta  map[string]any
				Text   *string
				Finish *string `json:"finish_reason"`
				Stop   *string `json:"stop_reason"`
			}
		}
		if err := json.Unmarshal([]byte(data), &e); err != nil {
			t.Fatal(err)
		}
		for _, c := range e.Choices {
			text := ""
			for _, field := range []string{"reasoning", "content"} {
				if v, ok := c.Delta[field].(string); ok && c.Delta["role"] == nil {
					text += field + ":" + v
				}
			}
			if c.Text != nil {
				text += *c.Text
			}
			if c.Finish != nil {
				text += "|" + *c.Finish
			}
			if c.Stop != nil {
				text += "|" + *c.Stop
			}
			if text != "" {
				got = append(got, text)
			}
		}
	}
	return got
}

func TestAnswerKinds(t *testing.T) {
	long := serve.Config{Model: "m", Ends: func(int64) int { return 6 }}
	thinking := serve.Config{Model: "m", Reasoning: 0.5}
	for _, c := range []struct {
		name   string
		config serve.Config
		body   string
		want   []string
	}{
		{"the model ends it", long, `"max_tokens":9`, []string{
			"content: the", "content: air", "content: of", "content: and", "content: flow", "content: to|stop"}},
		{"ignored", long, `"max_tokens":7,"ignore_eos":true`, []string{
			"content: the", "content: air", "content: of", "content: and", "content: flow", "content: to", "content: in|length"}},
		{"not before", long, `"max_tokens":9,"min_tokens":7`, []string{
			"content: the", "content: air", "content: of", "content: and", "content: flow", "content: to", "content: in|stop"}},
		{"cut off", long, `"max_tokens":9,"max_completion_tokens":2`, []string{"content: the", "content: air|length"}},
		{"stop string", serve.Config{}, `"max_tokens":9,"stop":["of a"]`, []string{
			"content: ", "content:the ", "content:air", "content: |stop|of a"}},
		{"stop string kept", serve.Config{}, `"max_tokens":9,"stop":"of a","include_stop_str_in_output":true`, []string{
			"content: the", "content: air", "content: of", "content: a|stop|of a"}},
		{"stop string not found", serve.Config{}, `"max_tokens":2,"stop":"nowhere"`, []string{"content:", "content: the air|length"}},
		{"stop after min_tokens", serve.Config{}, `"max_tokens":60,"min_tokens":34,"stop":" air"`, nil},
		{"reasoning", thinking, `"max_tokens":6`, []string{
			"reasoning: the", "reasoning: air", "reasoning: of", "content: flow", "content: to|length"}},
		{"reasoning hidden", thinking, `"max_tokens":6,"include_reasoning":false`, []string{"content: flow", "content: to|length"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := start(t, fast, c.config)
			_, body := r.do(post("/v1/chat/completions", `{"messages":[{"role":"user","content":"x"}],"stream":true,`+c.body+`}`))
			got := contents(t, body)
			if c.want == nil { // the second time round
				if n := len(got); n != 34 || got[33] != "content:the|stop| air" {
					t.Errorf("%d deltas, the last %q", n, got[n-1])
				}
				return
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got\n%q\nwant\n%q", got, c.want)
			}
			tr := r.stop()[0]
			sum := 0
			for _, n := range tr.Tokens {
				sum += n
			}
			if tr.Tokens != nil && sum != tr.OutputTokens {
				t.Errorf("truth %+v", tr)
			}
		})
	}
}

// Arguments of calls are valid for their schemas, streamed or not.
func TestToolArguments(t *testing.T) {
	const parameters = `{"type":"object","additionalProperties":false,
		"properties":{"city":{"type":"string","maxLength":6},"days":{"type":"integer","minimum":3},"unit":{"enum":["c","f"]},
			"at":{"anyOf":[{"type":"array","items":{"type":"number"},"minItems":2},{"type":"null"}]},"deep":{"type":"object",
			"properties":{"ok":{"type":"boolean"},"what":{"type":["string","null"],"minLength":40}},"required":["ok","what"]}},
		"required":["city","days","unit","deep"]}`
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(parameters))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("p.json", doc); err != nil {
		t.Fatal(err)
	}
	schema, err := compiler.Compile("p.json")
	if err != nil {
		t.Fatal(err)
	}
	check := func(args string) {
		t.Helper()
		v, err := jsonschema.UnmarshalJSON(strings.NewReader(args))
		if err == nil {
			err = schema.Validate(v)
		}
		if err != nil {
			t.Errorf("%s: %v", args, err)
		}
	}
	r := start(t, fast, serve.Config{})
	ask := func(more string) string {
		_, body := r.do(post("/v1/chat/completions", `{"messages":[{"role":"user","content":"x"}],"max_tokens":500,`+more+
			`,"tools":[{"type":"function","function":{"name":"weather","parameters":`+parameters+`}}]}`))
		return body
	}
	var whole struct {
		Choices []struct {
			Finish  string `json:"finish_reason"`
			Message struct {
				Calls []struct {
					Function struct{ Name, Arguments string }
				} `json:"tool_calls"`
			}
		}
	}
	if err := json.Unmarshal([]byte(ask(`"tool_choice":"required"`)), &whole); err != nil {
		t.Fatal(err)
	}
	if c := whole.Choices[0]; c.Finish != "tool_calls" || len(c.Message.Calls) != 1 || c.Message.Calls[0].Function.Name != "weather" {
		t.Errorf("%+v", c)
	} else {
		check(c.Message.Calls[0].Function.Arguments)
	}
	args, fragments := "", 0
	for ev := range strings.SplitSeq(ask(`"stream":true,"tool_choice":{"type":"function","function":{"name":"weather"}}`), "\n\n") {
		if _, rest, ok := strings.Cut(ev, `"arguments":`); ok {
			var text string
			if err := json.NewDecoder(strings.NewReader(rest)).Decode(&text); err != nil {
				t.Fatal(err)
			}
			args += text
			fragments++
		}
		if strings.Contains(ev, `"finish_reason":"`) && !strings.Contains(ev, `"delta":{},"logprobs":null,"finish_reason":"stop"`) {
			t.Errorf("the end is %s", ev)
		}
	}
	check(args)
	if fragments < 10 {
		t.Errorf("%d fragments", fragments)
	}
}
