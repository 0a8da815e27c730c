package native

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"pitot/internal/sim/serve/dialect"
	"pitot/internal/sim/serve/lm"
)

// OllamaDialect is Ollama's server: /api/chat and /api/generate.
func OllamaDialect(s dialect.Served, base dialect.Dialect) dialect.Dialect {
	answer := func(chat bool) func(*dialect.Request) (*dialect.Call, *dialect.Reply) {
		return func(req *dialect.Request) (*dialect.Call, *dialect.Reply) { return ollamaAnswer(s, req, chat) }
	}
	about := func(text string) func(*dialect.Request) dialect.Reply {
		return func(*dialect.Request) dialect.Reply {
			return dialect.Reply{Status: http.StatusOK, Type: "application/json; charset=utf-8", Body: []byte(text)}
		}
	}
	name := string(dialect.Marshal(s.Name))
	began := time.Unix(int64(s.Began), 0).UTC().Format(time.RFC3339Nano)
	models := fmt.Sprintf(`{"models":[{"name":%s,"model":%s,"modified_at":"%s","size":0,"digest":"","details":{"parent_model":"","format":"gguf","family":"","families":null,"parameter_size":"","quantization_level":""}}]}`, name, name, began)
	root := dialect.Route{Path: "/", Methods: get, Early: true, Reply: func(*dialect.Request) dialect.Reply {
		return dialect.Reply{Status: http.StatusOK, Type: "text/plain; charset=utf-8", Body: []byte("Ollama is running")}
	}}
	own := []dialect.Route{
		{Path: "/api/chat", Methods: post, Generate: answer(true)},
		{Path: "/api/generate", Methods: post, Generate: answer(false)},
		{Path: "/api/version", Methods: get, Early: true, Reply: about(`{"version":"0.13.0+pitot.mock"}`)},
		{Path: "/api/tags", Methods: get, Reply: about(models)},
		{Path: "/api/ps", Methods: get, Reply: about(models)},
		{Path: "/v1/models", Methods: get, Reply: about(fmt.Sprintf(`{"object":"list","data":[{"id":%s,"object":"model","created":%d,"owned_by":"library"}]}`, name, int64(s.Began)))},
		root,
	}
	return &face{base, prependRoutes(base, own, "/v1/chat/completions", "/v1/completions"), ollamaError}
}

func ollamaError(status int, message string) dialect.Reply {
	return dialect.JSON(status, map[string]string{"error": message})
}

// ollamaMessage is one message of a chat.
type ollamaMessage struct {
	Role    string          `json:"role"`
	Content string          `json:"content"`
	Calls   json.RawMessage `json:"tool_calls"`
}

func ollamaAnswer(s dialect.Served, req *dialect.Request, chat bool) (*dialect.Call, *dialect.Reply) {
	in := struct {
		Model    string          `json:"model"`
		Prompt   string          `json:"prompt"`
		System   string          `json:"system"`
		Messages []ollamaMessage `json:"messages"`
		Stream   *bool           `json:"stream"`
		Tools    []struct {
			Function lm.Function `json:"function"`
		} `json:"tools"`
		Options struct {
			Max         int      `json:"num_predict"`
			Temperature *float64 `json:"temperature"`
			Seed        *int64   `json:"seed"`
			Stop        list     `json:"stop"`
		} `json:"options"`
	}{}
	refuse := func(status int, format string, args ...any) (*dialect.Call, *dialect.Reply) {
		r := ollamaError(status, fmt.Sprintf(format, args...))
		return nil, &r
	}
	if problem := decodeBody(req, &in); problem != "" {
		return refuse(http.StatusBadRequest, "%s", problem)
	}
	if in.Model != s.Name && in.Model != s.Name+":latest" {
		return refuse(http.StatusNotFound, "model '%s' not found", in.Model)
	}
	a := asked{chat: chat, stream: in.Stream == nil || *in.Stream, limit: in.Options.Max, temperature: in.Options.Temperature,
		seed: in.Options.Seed, stops: in.Options.Stop, text: []byte(in.System + in.Prompt)}
	last := ""
	for i, m := range in.Messages {
		if i > 0 {
			a.text = append(a.text, '\n')
		}
		a.text = append(append(a.text, m.Content...), m.Calls...)
		last = m.Role
	}
	if len(a.text) == 0 { // it only loads the model
		field := `"response":""`
		if chat {
			field = `"message":{"role":"assistant","content":""}`
		}
		return nil, &dialect.Reply{Status: http.StatusOK, Type: "application/json; charset=utf-8", Body: fmt.Appendf(nil,
			`{"model":%s,"created_at":"%s",%s,"done_reason":"load","done":true}`, dialect.Marshal(in.Model), now(), field)}
	}
	for _, t := range in.Tools {
		if chat && last != "tool" {
			a.tools = append(a.tools, t.Function)
		}
	}
	w, call, ok := beginCall(s, req, a)
	if !ok {
		return refuse(http.StatusBadRequest, "the input length exceeds the context length")
	}
	call.Type, call.Comment = "application/x-ndjson", ""
	call.Writer = &ollamaWriter{answering: w, model: string(dialect.Marshal(in.Model)), chat: chat}
	return call, nil
}

func now() string { return time.Now().UTC().Format(time.RFC3339Nano) }

// ollamaWriter writes an answer: a line for what each step says, and one at the end
// that counts.
type ollamaWriter struct {
	*answering
	model  string // as JSON
	chat   bool
	finish string
}

// WithoutUsage implements [dialect.Uncounted].
func (w *ollamaWriter) WithoutUsage() { w.silent = true }

// appendLine appends a line, up to what it ends with.
func (w *ollamaWriter) appendLine(b []byte, text, thought, call []byte) []byte {
	b = fmt.Appendf(b, `{"model":%s,"created_at":"%s",`, w.model, now())
	if w.chat {
		b = append(b, `"message":{"role":"assistant","content":"`...)
	} else {
		b = append(b, `"response":"`...)
	}
	b = append(append(b, text...), '"')
	if len(thought) > 0 {
		b = append(append(append(b, `,"thinking":"`...), thought...), '"')
	}
	b = append(b, call...)
	if w.chat {
		b = append(b, '}')
	}
	return b
}

// splitPieces gives what the tokens [from, to) say; a call is told when it is complete.
func (w *ollamaWriter) splitPieces(from, to int, end bool) (text, thought, call []byte) {
	w.eachPiece(from, to, end, func(kind lm.Kind, piece []byte) {
		switch kind {
		case lm.Text:
			text = append(text, piece...)
		case lm.Thought:
			thought = append(thought, piece...)
		}
	})
	if c := w.plan.Call; c != nil && end && to >= c.Tokens() {
		call = fmt.Appendf(nil, `,"tool_calls":[{"function":{"name":%s,"arguments":%s}}]`, dialect.Marshal(c.Name), c.Args)
	}
	return text, thought, call
}

// Tokens implements [dialect.Writer].
func (w *ollamaWriter) Tokens(b []byte, _, from, to int, finish string) ([]byte, bool) {
	if finish != "" {
		w.finish = finish
	}
	text, thought, call := w.splitPieces(from, to, finish != "")
	if len(text)+len(thought)+len(call) == 0 {
		return b, false
	}
	return append(w.appendLine(b, text, thought, call), ",\"done\":false}\n"...), true
}

// Done implements [dialect.Writer].
func (w *ollamaWriter) Done(b []byte) []byte {
	if w.failed {
		return b
	}
	return append(w.appendFinish(w.appendLine(b, nil, nil, nil), w.finish), '\n')
}

// appendFinish appends how the answer has ended.
func (w *ollamaWriter) appendFinish(b []byte, finish string) []byte {
	b = fmt.Appendf(b, `,"done":true,"done_reason":"%s"`, finish)
	if !w.silent {
		b = fmt.Appendf(b, `,"prompt_eval_count":%d,"eval_count":%d`, w.prompt.Tokens, w.output)
	}
	return append(b, '}')
}

// Error implements [dialect.Writer].
func (w *ollamaWriter) Error(b []byte) []byte {
	w.failed = true
	return append(b, `{"error":"an error was encountered while running the model: the engine failed"}`+"\n"...)
}

// Malformed implements [dialect.Writer].
func (w *ollamaWriter) Malformed(b []byte) []byte { return append(b, `{"model":"m","mess`+"\n"...) }

// Whole implements [dialect.Writer].
func (w *ollamaWriter) Whole(b []byte, parts []dialect.Part, _ dialect.Counts) []byte {
	text, thought, call := w.splitPieces(0, parts[0].Tokens, true)
	return w.appendFinish(w.appendLine(b, text, thought, call), parts[0].Finish)
}
