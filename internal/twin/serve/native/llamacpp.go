package native

import (
	"encoding/json"
	"fmt"
	"net/http"

	"pitot/internal/twin/serve/dialect"
)

// LlamaCpp is llama.cpp's server: /completion.
func LlamaCpp(s dialect.Served, base dialect.Dialect) dialect.Dialect {
	models := func(*dialect.Request) dialect.Reply {
		return dialect.Reply{Status: http.StatusOK, Body: fmt.Appendf(nil,
			`{"object":"list","data":[{"id":%s,"object":"model","created":%d,"owned_by":"llamacpp","meta":{"n_ctx_train":%d,"n_vocab":%d}}]}`,
			dialect.Marshal(s.Name), int64(s.Began), s.MaxModelLen, s.Model.Size())}
	}
	props := func(*dialect.Request) dialect.Reply {
		return dialect.Reply{Status: http.StatusOK, Body: fmt.Appendf(nil,
			`{"default_generation_settings":{"n_ctx":%d},"total_slots":1,"model_alias":%s,"model_path":%s,"build_info":"pitot mock"}`,
			s.MaxModelLen, dialect.Marshal(s.Name), dialect.Marshal(s.Name))}
	}
	alive := func(r *dialect.Request) dialect.Reply {
		if r.Loading {
			return llamacppError(http.StatusServiceUnavailable, "Loading model")
		}
		return dialect.Reply{Status: http.StatusOK, Body: []byte(`{"status":"ok"}`)}
	}
	complete := func(req *dialect.Request) (*dialect.Call, *dialect.Reply) { return llamacppComplete(s, req) }
	own := []dialect.Route{
		{Path: "/completion", Methods: post, Generate: complete},
		{Path: "/props", Methods: get, Reply: props},
		{Path: "/v1/models", Methods: get, Reply: models},
		health(alive),
	}
	return &face{base, with(base, own, "/v1/chat/completions", "/v1/completions", "/v1/responses", "/v1/messages"), llamacppError}
}

func llamacppError(status int, message string) dialect.Reply {
	kind := "server_error"
	switch status {
	case http.StatusBadRequest:
		kind = "invalid_request_error"
	case http.StatusUnauthorized:
		kind = "authentication_error"
	case http.StatusNotFound:
		kind = "not_found_error"
	case http.StatusServiceUnavailable:
		kind = "unavailable_error"
	}
	return dialect.Reply{Status: status, Body: fmt.Appendf(nil, `{"error":{"code":%d,"message":%s,"type":"%s"}}`, status, dialect.Marshal(message), kind)}
}

func llamacppComplete(s dialect.Served, req *dialect.Request) (*dialect.Call, *dialect.Reply) {
	var in struct {
		Prompt      json.RawMessage `json:"prompt"`
		Stream      bool            `json:"stream"`
		Max         *int            `json:"n_predict"`
		Temperature *float64        `json:"temperature"`
		Seed        *int64          `json:"seed"`
		Stop        list            `json:"stop"`
		IgnoreEOS   bool            `json:"ignore_eos"`
		Tokens      bool            `json:"return_tokens"`
	}
	refuse := func(format string, args ...any) (*dialect.Call, *dialect.Reply) {
		r := llamacppError(http.StatusBadRequest, fmt.Sprintf(format, args...))
		return nil, &r
	}
	if problem := decode(req, &in); problem != "" {
		return refuse("%s", problem)
	}
	a := asked{stream: in.Stream, temperature: in.Temperature, stops: in.Stop, ignoreEOS: in.IgnoreEOS}
	if in.Seed != nil && *in.Seed >= 0 {
		a.seed = in.Seed
	}
	if in.Max != nil {
		a.limit = *in.Max
	}
	var text string
	switch {
	case json.Unmarshal(in.Prompt, &text) == nil:
		a.text = []byte(text)
	case json.Unmarshal(in.Prompt, &a.ids) != nil || len(a.ids) == 0:
		return refuse("\"prompt\" must be a string or a list of token ids")
	}
	for _, id := range a.ids {
		if int(id) >= s.Model.Size() {
			return refuse("token %d is not in the vocabulary", id)
		}
	}
	w, call, ok := begin(s, req, a)
	if !ok {
		r := dialect.Reply{Status: http.StatusBadRequest, Body: fmt.Appendf(nil,
			`{"error":{"code":400,"message":"the request exceeds the available context size, try increasing it","type":"exceed_context_size_error","n_ctx":%d}}`, s.MaxModelLen)}
		return nil, &r
	}
	call.Writer = &llamacppWriter{answering: w, tokens: in.Tokens}
	return call, nil
}

// llamacppWriter writes an answer: events with the tokens so far, and one at the end
// that has no text.
type llamacppWriter struct {
	*answering
	tokens bool // each event lists its tokens
	finish string
}

// WithoutUsage implements [dialect.Uncounted].
func (w *llamacppWriter) WithoutUsage() { w.silent = true }

// Tokens implements [dialect.Writer].
func (w *llamacppWriter) Tokens(b []byte, _, from, to int, finish string) ([]byte, bool) {
	if finish != "" {
		w.finish = finish
	}
	b = append(w.text(append(b, `data: {"index":0,"content":"`...), from, to, finish != ""), `","tokens":[`...)
	if w.tokens {
		b = w.appendIDs(b, from, to)
	}
	return fmt.Appendf(b, "],\"stop\":false,\"id_slot\":-1,\"tokens_predicted\":%d,\"tokens_evaluated\":%d}\n\n", to, w.prompt.Tokens), true
}

// Done implements [dialect.Writer].
func (w *llamacppWriter) Done(b []byte) []byte {
	if w.failed {
		return b
	}
	return append(w.end(append(b, "data: "...), nil, w.finish), "\n\n"...)
}

// end appends the answer as it has ended, with its text where that has not come before.
func (w *llamacppWriter) end(b, text []byte, finish string) []byte {
	why, word := "limit", ""
	switch {
	case finish != "length" && w.answer.Stop != "":
		why, word = "word", w.answer.Stop
	case finish != "length":
		why = "eos"
	}
	b = fmt.Appendf(b, `{"index":0,"content":"%s","tokens":[],"id_slot":0,"stop":true,"model":%s`, text, dialect.Marshal(w.Name))
	if !w.silent {
		b = fmt.Appendf(b, `,"tokens_predicted":%d,"tokens_evaluated":%d,"tokens_cached":%d,"timings":{"cache_n":%d,"prompt_n":%d,"predicted_n":%d}`,
			w.output, w.prompt.Tokens, w.prompt.Tokens+w.output-1, w.cached, w.prompt.Tokens-w.cached, w.output)
	}
	return fmt.Appendf(b, `,"has_new_line":false,"truncated":false,"stop_type":"%s","stopping_word":%s}`, why, dialect.Marshal(word))
}

// Error implements [dialect.Writer].
func (w *llamacppWriter) Error(b []byte) []byte {
	w.failed = true
	return append(b, `data: {"error":{"code":500,"message":"the engine failed","type":"server_error"}}`+"\n\n"...)
}

// Malformed implements [dialect.Writer].
func (w *llamacppWriter) Malformed(b []byte) []byte {
	return append(b, `data: {"index":0,"conte`+"\n\n"...)
}

// Whole implements [dialect.Writer].
func (w *llamacppWriter) Whole(b []byte, parts []dialect.Part, n dialect.Counts) []byte {
	text := w.text(nil, 0, parts[0].Tokens, true)
	w.cached = n.Cached
	return w.end(b, text, parts[0].Finish)
}
