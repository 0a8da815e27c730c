package api

import (
	"cmp"

	"pitot/internal/data/record"
	"pitot/internal/data/result"
	"pitot/internal/workload"
)

// Ollama is Ollama's own API: a conversation at /api/chat, a bare prompt at
// /api/generate. Its streams are lines of JSON.
//
// Not known from it: tokens of the prompt that were cached, how many of an answer's
// are reasoning, and how many an event has. It cannot be held to a length: answers may
// end early.
type Ollama struct{}

// Name implements [API].
func (Ollama) Name() string            { return "ollama" }
func (Ollama) Routes() []string        { return []string{"/api/chat", "/api/generate"} }
func (Ollama) Messages(o Options) bool { return o.Route != "/api/generate" }
func (Ollama) Models() string          { return "/api/tags" }
func (Ollama) KeyVariable() string     { return "OLLAMA_API_KEY" }
func (Ollama) Framing() Framing        { return JSONLines }
func (Ollama) Decoder() Decoder        { return newFast(new(ollamaDecoder)) }
func (Ollama) Alias(string) string     { return "" }

// Sign implements [API].
func (Ollama) Sign() Sign { return Sign{Path: "/api/version", Field: "version", Of: "Ollama"} }

// List implements [API].
func (Ollama) List(body []byte) (list []Model) {
	r := reading{s: scanner{b: body}}
	s := &r.s
	if !s.eachKey(func(key []byte) bool {
		if string(key) != "models" {
			return s.skipValue()
		}
		return r.eachObject(func() bool {
			var name string
			ok := r.eachField(func(key []byte) bool {
				if string(key) != "name" || s.peek() != '"' {
					return s.skipValue()
				}
				raw, ok := s.rawString()
				name = unquote(raw)
				return ok
			})
			if name != "" {
				list = append(list, Model{Name: name, Engine: "ollama"})
			}
			return ok
		})
	}) {
		return nil
	}
	return list
}

// Headers implements [API].
func (Ollama) Headers(key string) []Header {
	h := []Header{{"Accept", "application/x-ndjson, application/json"}}
	if key != "" {
		h = append(h, Header{"Authorization", "Bearer " + key})
	}
	return h
}

// Prepare implements [API].
func (Ollama) Prepare(_ string, o *Options) error {
	o.MaxField = "num_predict"
	return nil
}

// Fault implements [API].
func (Ollama) Fault(body []byte) string { return faultOf(new(ollamaDecoder), body) }

// Concede implements [API].
func (Ollama) Concede(string, *Options) (none result.Adaptation) { return none }

// Asked implements [API].
func (Ollama) Asked(r *workload.Request, o Options) Asked {
	return Asked{Tokens: limitOf(&workload.Request{Body: innerObject(r.Body, "options")},
		Options{Body: innerObject(o.Body, "options")}, int64(r.Output), "num_predict")}
}

// Body implements [API].
func (a Ollama) Body(dst []byte, r *workload.Request, o Options) ([]byte, error) {
	start := len(dst)
	dst = appendJSON(append(dst, `{"model":`...), []byte(o.Model))
	if a.Messages(o) {
		dst = appendMessages(append(dst, `,"messages":`...), r, o)
	} else {
		dst = appendPrompt(append(dst, `,"prompt":`...), r, o)
	}
	dst = append(dst, `,"options":{`...)
	dst = o.appendLimit(dst, r, "num_predict", "")
	dst = append(dst, '}')
	if !o.Stream { // it streams unless told not to
		dst = append(dst, `,"stream":false`...)
	}
	return withExtras(append(dst, '}'), start, r, o)
}

// ollamaDecoder reads lines, of which a whole answer is one.
type ollamaDecoder struct{ reading }

// Event implements [Decoder].
func (x *ollamaDecoder) Event(name, data []byte, d *Delta) error {
	if x.handlePlain(name, data, d) {
		return nil
	}
	return x.Whole(data, d)
}

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
			raw, ok := x.readWord()
			reason = finishReason(raw)
			return ok
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
	switch k := string(key); {
	case (k == "content" || k == "response") && s.peek() == '"':
		return x.readText(d, record.Answer)
	case k == "thinking" && s.peek() == '"':
		return x.readText(d, record.Reasoning)
	case k == "tool_calls":
		return x.eachObject(func() bool {
			return x.eachField(func(key []byte) bool {
				if string(key) != "function" {
					return s.skipValue()
				}
				return x.eachField(func(key []byte) bool { return x.readCallField(key, d) })
			})
		})
	}
	return s.skipValue()
}

// readCallField reads a field of a call: its name, or its arguments, which are an object.
func (x *ollamaDecoder) readCallField(key []byte, d *Delta) bool {
	s := &x.s
	switch k := string(key); {
	case k == "name" && s.peek() == '"':
		return x.readText(d, record.ToolCall)
	case k == "arguments":
		s.skipSpace()
		from := s.i
		return s.skipValue() && x.addRaw(d, record.ToolCall, s.b[from:s.i])
	}
	return s.skipValue()
}
