package api

import (
	"cmp"
	"encoding/json"

	"pitot/internal/results/record"
	"pitot/internal/workload"
)

// Ollama is Ollama's own API: a conversation at /api/chat, a bare prompt at
// /api/generate. Its streams are lines of JSON.
//
// Not known from it: tokens of the prompt that were cached, how many of an answer's
// are reasoning, and how many an event has. It cannot be held to a length: answers may
// end early.
var Ollama API = &dialect{
	name: "ollama", routes: []string{"/api/chat", ollamaGenerate}, bareRoute: ollamaGenerate,
	models: "/api/tags", key: "OLLAMA_API_KEY", framing: JSONLines, maxField: "num_predict",
	sign:    Sign{Path: "/api/version", Field: "version", Of: "Ollama"},
	decoder: func() Decoder { return newFast(new(ollamaDecoder)) },
	headers: func(key string) []Header {
		return requestHeaders("application/x-ndjson, application/json", bearer(key))
	},
	list: ollamaModels, asked: ollamaAsked, body: ollamaBody,
}

// ollamaGenerate is the route that takes a bare prompt.
const ollamaGenerate = "/api/generate"

func ollamaModels(body []byte) (list []Model) {
	var answer struct{ Models []struct{ Name string } }
	_ = json.Unmarshal(body, &answer)
	for _, m := range answer.Models {
		if m.Name != "" {
			list = append(list, Model{Name: m.Name, Engine: "ollama"})
		}
	}
	return list
}

func ollamaAsked(r *workload.Request, o Options) Asked {
	return Asked{Tokens: overlays(r, o, "options").number(int64(r.Output), "num_predict")}
}

func ollamaBody(dst []byte, r *workload.Request, o Options) ([]byte, error) {
	start := len(dst)
	dst = appendModel(dst, o)
	if o.Route != ollamaGenerate {
		dst = appendMessages(append(dst, `,"messages":`...), r, o)
	} else {
		dst = appendPrompt(append(dst, `,"prompt":`...), r, o)
	}
	dst = append(dst, `,"options":{`...)
	dst = o.appendLimit(dst, r, "num_predict", "")
	dst = append(dst, '}')
	dst = appendIf(dst, !o.Stream, `,"stream":false`) // it streams unless told not to
	return withExtras(append(dst, '}'), start, r, o)
}

// ollamaDecoder reads lines, of which a whole answer is one.
type ollamaDecoder struct{ reading }

func (x *ollamaDecoder) readEvent(data []byte, d *Delta) error { return x.Whole(data, d) }

// Whole implements [Decoder].
func (x *ollamaDecoder) Whole(data []byte, d *Delta) error {
	x.beginEvent(data)
	s := &x.s
	reason, done := "", false
	ok := s.eachKey(func(key []byte) bool {
		switch k := string(key); k {
		case "message":
			return x.eachField(func(key []byte) bool { return x.textField(key, d) })
		case "response", "thinking":
			return x.textField(key, d)
		case "created_at":
			return x.skipVarying()
		case "done":
			done = s.peek() == 't'
		case "done_reason":
			return x.readReason(&reason)
		case "prompt_eval_count":
			return s.countNumber(&d.Usage.Prompt)
		case "eval_count":
			return s.countNumber(&d.Usage.Completion)
		case "error":
			return s.null() || x.readFault(d)
		}
		return s.skipValue()
	})
	if done && ok {
		d.Done, x.done = true, true
		d.endChoice(0, cmp.Or(reason, "stop")) // older servers do not say
	}
	x.assignChoice(d, 0, 0, 0)
	return x.endEvent(ok, d)
}

// textField reads a field that may be text, or the calls of tools.
func (x *ollamaDecoder) textField(key []byte, d *Delta) bool {
	s := &x.s
	switch string(key) {
	case "content", "response":
		return x.readText(d, record.Answer)
	case "thinking":
		return x.readText(d, record.Reasoning)
	case "tool_calls":
		return x.eachObject(func() bool {
			return x.fieldIn("function", func() bool {
				return x.eachField(func(key []byte) bool { return x.readCallField(key, d) })
			})
		})
	}
	return s.skipValue()
}

// readCallField reads a field of a call: its name, or its arguments, which are an object.
func (x *ollamaDecoder) readCallField(key []byte, d *Delta) bool {
	switch string(key) {
	case "name":
		return x.readText(d, record.ToolCall)
	case "arguments":
		return x.readArguments(d)
	}
	return x.s.skipValue()
}
