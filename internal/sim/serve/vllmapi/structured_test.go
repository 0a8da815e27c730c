package vllmapi_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"pitot/internal/sim"
	"pitot/internal/sim/serve"
	"pitot/internal/sim/serve/dialect"
)

// valid says what is wrong with a value by a schema, as another reader of JSON
// Schema has it.
func valid(schema, value string) error {
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(schema))
	if err != nil {
		return err
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource("s.json", doc); err != nil {
		return err
	}
	s, err := c.Compile("s.json")
	if err != nil {
		return err
	}
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(value))
	if err != nil {
		return err
	}
	return s.Validate(v)
}

// schemas are some of those that package example is held against.
var schemas = map[string]string{
	"nested": `{"$defs":{"Unit":{"enum":["celsius","kelvin"],"type":"string"},"Place":{"type":"object","properties":{"city":{"type":"string","minLength":20},"unit":{"$ref":"#/$defs/Unit"}},"required":["city","unit"],"additionalProperties":false}},
		"type":"object","properties":{"place":{"$ref":"#/$defs/Place"},"all":{"type":"array","items":{"$ref":"#/$defs/Place"},"minItems":2}},"required":["place","all"]}`,
	"definitions": `{"definitions":{"a/b":{"type":"integer"}},"type":"object","properties":{"x":{"$ref":"#/definitions/a~1b"}},"required":["x"]}`,
	"characters":  `{"type":"object","properties":{"stadt":{"enum":["München, Größe: „XL“ 東京"]}},"required":["stadt"]}`,
}

// content is what an answer says, with why it ended and how many tokens it has.
func (r *rig) content(body string) (text, finish string, tokens int) {
	r.t.Helper()
	resp, answer := r.do(post("/v1/chat/completions", body))
	if resp.StatusCode != 200 {
		r.t.Fatal(resp.Status, answer)
	}
	if !strings.HasPrefix(answer, "data:") {
		answer = "data: " + answer
	}
	for event := range strings.SplitSeq(answer, "\n\n") {
		var e struct {
			Choices []struct {
				Delta, Message struct{ Content string }
				Finish         string `json:"finish_reason"`
			}
			Usage struct {
				Tokens int `json:"completion_tokens"`
			}
		}
		if err := json.Unmarshal([]byte(strings.TrimPrefix(event, "data: ")), &e); err != nil {
			continue // the end
		}
		for _, c := range e.Choices {
			text += c.Delta.Content + c.Message.Content
			finish += c.Finish
		}
		tokens += e.Usage.Tokens
	}
	return text, finish, tokens
}

const asking = `{"messages":[{"role":"user","content":"x"}],"max_tokens":4000,`

func TestResponseFormat(t *testing.T) {
	for _, c := range []serve.Config{tokenizer(serve.Config{}), {}, {Reasoning: .5}} {
		r := start(t, sim.FixedConfig{}, c)
		for name, schema := range schemas {
			for _, how := range []string{
				`"response_format":{"type":"json_schema","json_schema":{"name":"x","schema":` + schema + `}}}`,
				`"stream":true,"stream_options":{"include_usage":true},"structured_outputs":{"json":` + schema + `}}`,
				`"structured_outputs":{"json":` + string(dialect.Marshal(schema)) + `}}`,
			} {
				text, finish, tokens := r.content(asking + how)
				if err := valid(schema, text); err != nil || finish != "stop" || tokens < 2 {
					t.Errorf("%s: %s after %d tokens, %s: %v", name, finish, tokens, text, err)
				}
			}
		}
		for _, how := range []string{`"response_format":{"type":"json_object"}}`, `"stream":true,"structured_outputs":{"json_object":true}}`} {
			text, finish, _ := r.content(asking + how)
			var object map[string]any
			if err := json.Unmarshal([]byte(text), &object); err != nil || len(object) == 0 || finish != "stop" {
				t.Errorf("%s %s: %v", finish, text, err)
			}
		}
		if text, _, _ := r.content(asking + `"response_format":{"type":"text"},"max_tokens":3}`); !strings.HasPrefix(text, " ") {
			t.Errorf("text is %q", text)
		}
	}
}

// The limit rules: what does not fit is cut off in the middle, and said to be.
func TestStructuredLimit(t *testing.T) {
	r := start(t, sim.FixedConfig{}, tokenizer(serve.Config{}))
	const how = `"structured_outputs":{"choice":["the first of the choices"]}`
	whole, finish, all := r.content(asking + how + `}`)
	if whole != "the first of the choices" || finish != "stop" || all != 6 {
		t.Errorf("%q %s %d", whole, finish, all)
	}
	for _, stream := range []string{"", `"stream":true,"stream_options":{"include_usage":true},`} {
		for n := 1; n <= all; n++ {
			text, finish, tokens := r.content(fmt.Sprintf(`{"messages":[{"role":"user","content":"x"}],"max_tokens":%d,%s%s}`, n, stream, how))
			want := "length"
			if n == all {
				want = "stop"
			}
			if !strings.HasPrefix(whole, text) || tokens != n || finish != want || n == all && text != whole {
				t.Errorf("of %d tokens %d: %q, %s", n, tokens, text, finish)
			}
		}
	}
	if text, finish, _ := r.content(asking + how + `,"stop":"of"}`); text != "the first " || finish != "stop" {
		t.Errorf("%q %s", text, finish)
	}
	if text, _, _ := r.content(asking + how + `,"stop":["choi"],"stream":true}`); text != "the first of the " {
		t.Errorf("%q", text)
	}
}

// One of the choices, and over many prompts each of them.
func TestChoice(t *testing.T) {
	r := start(t, sim.FixedConfig{}, serve.Config{})
	got := map[string]bool{}
	for i := range 40 {
		text, _, _ := r.content(fmt.Sprintf(`{"messages":[{"role":"user","content":"%d"}],"max_tokens":9,"structured_outputs":{"choice":["yes","no"]}}`, i))
		got[text] = true
	}
	if len(got) != 2 || !got["yes"] || !got["no"] {
		t.Errorf("%v", got)
	}
}

func TestPattern(t *testing.T) {
	r := start(t, sim.FixedConfig{}, serve.Config{})
	for _, p := range []string{`[ab]{3}`, `\d{4}-\d{2}-\d{2}`, `(yes|no), (it|that) is\.?`, `[^a-z0-9]+`, `^\w+@\w+\.com$`, ``, `(a{1,3}b*)*c`, `\p{Greek}{2}`, `(?i)ok`, `.+`} {
		text, finish, _ := r.content(asking + `"structured_outputs":{"regex":` + string(dialect.Marshal(p)) + `}}`)
		if !regexp.MustCompile(`^(?:`+p+`)$`).MatchString(text) || finish != "stop" {
			t.Errorf("%s: %q, %s", p, text, finish)
		}
	}
	for _, more := range []string{
		`"structured_outputs":{"regex":"(("}}`, `"structured_outputs":{"regex":"(?=a)a"}}`,
		`"structured_outputs":{"grammar":"root ::= \"a\""}}`, `"response_format":{"type":"structural_tag","format":{"type":"any_text"}}}`,
	} {
		if resp, body := r.do(post("/v1/chat/completions", asking+more)); resp.StatusCode != 400 {
			t.Errorf("%s: %d %s", more, resp.StatusCode, body)
		}
	}
}

// Arguments of tools come from the same examples: pydantic's nested models and
// enums are references.
func TestToolArgumentsByReference(t *testing.T) {
	r := start(t, sim.FixedConfig{}, serve.Config{})
	for name, schema := range schemas {
		_, body := r.do(post("/v1/chat/completions", asking+`"tool_choice":"required","tools":[{"type":"function","function":{"name":"f","parameters":`+schema+`}}]}`))
		var whole struct {
			Choices []struct {
				Message struct {
					Calls []struct{ Function struct{ Arguments string } } `json:"tool_calls"`
				}
			}
		}
		if err := json.Unmarshal([]byte(body), &whole); err != nil || len(whole.Choices) != 1 || len(whole.Choices[0].Message.Calls) != 1 {
			t.Fatalf("%v %s", err, body)
		}
		if args := whole.Choices[0].Message.Calls[0].Function.Arguments; valid(schema, args) != nil {
			t.Errorf("%s: %s: %v", name, args, valid(schema, args))
		}
	}
	// The fragments of a stream keep characters together.
	_, body := r.do(post("/v1/chat/completions", asking+`"stream":true,"tool_choice":"required","tools":[{"type":"function","function":{"name":"f","parameters":`+schemas["characters"]+`}}]}`))
	args := ""
	for _, event := range strings.Split(body, "\n\n") {
		if _, rest, ok := strings.Cut(event, `"arguments":`); ok {
			var text string
			_ = json.NewDecoder(strings.NewReader(rest)).Decode(&text)
			args += text
		}
	}
	if err := valid(schemas["characters"], args); err != nil {
		t.Errorf("%s: %v", args, err)
	}
}

// Tokens that are told by id are those of the text.
func TestReturnTokenIDs(t *testing.T) {
	r := start(t, sim.FixedConfig{}, tokenizer(serve.Config{PromptOverhead: 3}))
	prompt := r.tokenized(`{"messages":[{"role":"user","content":"x"}]}`).Tokens
	for _, how := range []string{`"temperature":0`, `"structured_outputs":{"regex":"[a-z]{9} wörld"}`, `"stream":true`} {
		_, body := r.do(post("/v1/chat/completions", `{"messages":[{"role":"user","content":"x"}],"max_tokens":20,"return_token_ids":true,`+how+`}`))
		var ids []uint32
		var text string
		for event := range strings.SplitSeq(body, "\n\n") {
			var e struct {
				Prompt  []uint32 `json:"prompt_token_ids"`
				Choices []struct {
					Delta, Message struct{ Content string }
					IDs            []uint32 `json:"token_ids"`
				}
			}
			if json.Unmarshal([]byte(strings.TrimPrefix(event, "data: ")), &e) != nil {
				continue
			}
			if e.Prompt != nil && !slices.Equal(e.Prompt, prompt) {
				t.Errorf("prompt %v, want %v", e.Prompt, prompt)
			}
			for _, c := range e.Choices {
				ids = append(ids, c.IDs...)
				text += c.Message.Content + c.Delta.Content
			}
		}
		if back := r.detokenized(ids); back != text || text == "" {
			t.Errorf("%s: %q, ids of %q", how, text, back)
		}
	}
}

// Log-probabilities are of the tokens that are sent, whatever they say.
func TestLogprobsOfScripts(t *testing.T) {
	r := start(t, sim.FixedConfig{}, tokenizer(serve.Config{}))
	const regex = `"structured_outputs":{"regex":"\"wörld\" of [a-z]{9} \\\\ 東京"}`
	_, body := r.do(post("/v1/chat/completions", asking+regex+`,"logprobs":true,"top_logprobs":3}`))
	var chat struct {
		Choices []struct {
			Message  struct{ Content string }
			Logprobs struct {
				Content []struct {
					Token string
					Bytes []int
					Top   []struct{ Token string } `json:"top_logprobs"`
				}
			}
		}
	}
	if err := json.Unmarshal([]byte(body), &chat); err != nil || len(chat.Choices) != 1 {
		t.Fatalf("%v %s", err, body)
	}
	c, output, raw := chat.Choices[0], "", []byte{}
	for _, token := range c.Logprobs.Content {
		output += token.Token
		for _, b := range token.Bytes {
			raw = append(raw, byte(b))
		}
		if len(token.Top) != 3 || token.Top[0].Token != token.Token {
			t.Errorf("%+v", token)
		}
	}
	if output != c.Message.Content || string(raw) != output || !strings.Contains(output, `"wörld"`) || !strings.Contains(output, "東京") {
		t.Errorf("%q, tokens %q, bytes %q", c.Message.Content, output, raw)
	}
	_, body = r.do(post("/v1/completions", `{"prompt":"x","max_tokens":40,"logprobs":2,`+regex+`}`))
	var completion struct {
		Choices []struct {
			Text     string
			Logprobs struct {
				Tokens  []string
				Offsets []int `json:"text_offset"`
			}
		}
	}
	if err := json.Unmarshal([]byte(body), &completion); err != nil || len(completion.Choices) != 1 {
		t.Fatalf("%v %s", err, body)
	}
	one := completion.Choices[0]
	if strings.Join(one.Logprobs.Tokens, "") != one.Text || one.Text != output {
		t.Errorf("%q, tokens %q", one.Text, one.Logprobs.Tokens)
	}
	if last := len(one.Logprobs.Offsets) - 1; one.Logprobs.Offsets[last] != utf8.RuneCountInString(one.Text) {
		t.Errorf("offsets %v of %d", one.Logprobs.Offsets, len(one.Text))
	}
}
