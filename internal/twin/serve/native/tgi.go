package native

import (
	"encoding/json"
	"fmt"
	"net/http"

	"pitot/internal/twin/serve/dialect"
)

// TGI is Text Generation Inference: /generate and /generate_stream.
func TGI(s dialect.Served, base dialect.Dialect) dialect.Dialect {
	generate := func(stream bool) func(*dialect.Request) (*dialect.Call, *dialect.Reply) {
		return func(req *dialect.Request) (*dialect.Call, *dialect.Reply) { return tgiGenerate(s, req, stream) }
	}
	info := func(*dialect.Request) dialect.Reply {
		return dialect.Reply{Status: http.StatusOK, Body: fmt.Appendf(nil,
			`{"model_id":%s,"model_sha":null,"model_pipeline_tag":"text-generation","max_concurrent_requests":128,"max_best_of":2,"max_stop_sequences":4,`+
				`"max_input_tokens":%d,"max_total_tokens":%d,"validation_workers":2,"max_client_batch_size":4,"router":"text-generation-router","version":"3.3.6","sha":null,"docker_label":null}`,
			dialect.Marshal(s.Name), s.MaxModelLen-1, s.MaxModelLen)}
	}
	own := []dialect.Route{
		{Path: "/generate", Methods: post, Generate: generate(false)},
		{Path: "/generate_stream", Methods: post, Generate: generate(true)},
		{Path: "/", Methods: post, Generate: func(req *dialect.Request) (*dialect.Call, *dialect.Reply) {
			var in struct {
				Stream bool `json:"stream"`
			}
			_ = json.Unmarshal(req.Body, &in) // what is wrong with it is said below
			call, refused := tgiGenerate(s, req, in.Stream)
			if refused == nil {
				call.Writer.(*tgiWriter).listed = true
			}
			return call, refused
		}},
		{Path: "/info", Methods: get, Reply: info},
		health(healthy),
	}
	return &face{base, with(base, own, "/v1/chat/completions", "/v1/completions", "/v1/models"), func(status int, message string) dialect.Reply {
		return tgiError(status, "generation", message)
	}}
}

func tgiError(status int, kind, message string) dialect.Reply {
	return dialect.Reply{Status: status, Body: fmt.Appendf(nil, `{"error":%s,"error_type":%s}`, dialect.Marshal(message), dialect.Marshal(kind))}
}

func tgiGenerate(s dialect.Served, req *dialect.Request, stream bool) (*dialect.Call, *dialect.Reply) {
	var in struct {
		Inputs *string `json:"inputs"`
		Params struct {
			Max         *int     `json:"max_new_tokens"`
			Temperature *float64 `json:"temperature"`
			Sample      bool     `json:"do_sample"`
			Seed        *int64   `json:"seed"`
			Stop        []string `json:"stop"`
			Details     bool     `json:"details"`
		} `json:"parameters"`
	}
	refuse := func(format string, args ...any) (*dialect.Call, *dialect.Reply) {
		r := tgiError(http.StatusUnprocessableEntity, "validation", fmt.Sprintf("Input validation error: "+format, args...))
		return nil, &r
	}
	if problem := decode(req, &in); problem != "" || in.Inputs == nil {
		return refuse("`inputs` must be a string")
	}
	p := &in.Params
	a := asked{text: []byte(*in.Inputs), stream: stream, stops: p.Stop, seed: p.Seed}
	switch {
	case p.Temperature != nil && *p.Temperature <= 0:
		return refuse("`temperature` must be strictly positive")
	case p.Max != nil && *p.Max <= 0:
		return refuse("`max_new_tokens` must be strictly positive")
	case *in.Inputs == "":
		return refuse("`inputs` cannot be empty")
	case p.Max != nil:
		a.limit = *p.Max
	default:
		a.limit = 100
	}
	if !p.Sample && p.Seed == nil { // the likeliest tokens
		zero := 0.0
		a.temperature = &zero
	}
	w, call, ok := begin(s, req, a)
	if !ok || w.plan.Limit < a.limit {
		tokens := s.Model.TextPrompt(a.text, 0).Tokens
		return refuse("`inputs` tokens + `max_new_tokens` must be <= %d. Given: %d `inputs` tokens and %d `max_new_tokens`", s.MaxModelLen, tokens, a.limit)
	}
	call.Comment = ":\n\n"
	call.Writer = &tgiWriter{answering: w, details: p.Details}
	return call, nil
}

// tgiWriter writes an answer: one event for each token, the last with the whole text.
type tgiWriter struct {
	*answering
	details bool
	listed  bool // a whole answer is the only element of a list
	all     []byte
}

// Tokens implements [dialect.Writer].
func (w *tgiWriter) Tokens(b []byte, _, from, to int, finish string) ([]byte, bool) {
	for i := from; i < to; i++ {
		end := finish
		if i < to-1 {
			end = ""
		}
		at := len(w.all)
		w.all = w.text(w.all, i, i+1, end != "")
		b = append(w.token(append(b, fmt.Sprintf(`data:{"index":%d,"token":`, i+1)...), i, w.all[at:]), `,"generated_text":`...)
		if end == "" {
			b = append(b, `null,"details":null}`+"\n\n"...)
			continue
		}
		b = append(append(append(b, '"'), w.all...), `","details":`...)
		b = append(w.ends(b, end), "}}\n\n"...)
	}
	return b, true
}

// token appends a token whose text stands inside a JSON string.
func (w *tgiWriter) token(b []byte, i int, text []byte) []byte {
	return fmt.Appendf(b, `{"id":%d,"text":"%s","logprob":-0.5,"special":false}`, w.answer.ID(i), text)
}

// ends appends the details of an answer that has ended, without the closing brace.
func (w *tgiWriter) ends(b []byte, finish string) []byte {
	why := "length"
	switch {
	case finish != "length" && w.answer.Stop != "":
		why = "stop_sequence"
	case finish != "length":
		why = "eos_token"
	}
	return fmt.Appendf(b, `{"finish_reason":"%s","generated_tokens":%d,"input_length":%d,"seed":null`, why, w.output, w.prompt.Tokens)
}

// Done implements [dialect.Writer]: the last token has ended the stream.
func (w *tgiWriter) Done(b []byte) []byte { return b }

// Error implements [dialect.Writer].
func (w *tgiWriter) Error(b []byte) []byte {
	return append(b, `data:{"error":"Request failed during generation: the engine failed","error_type":"generation"}`+"\n\n"...)
}

// Malformed implements [dialect.Writer].
func (w *tgiWriter) Malformed(b []byte) []byte { return append(b, `data:{"index":1,"tok`+"\n\n"...) }

// Whole implements [dialect.Writer].
func (w *tgiWriter) Whole(b []byte, parts []dialect.Part, _ dialect.Counts) []byte {
	n := parts[0].Tokens
	var tokens []byte
	for i := range n {
		at := len(w.all)
		w.all = w.text(w.all, i, i+1, i == n-1)
		if i > 0 {
			tokens = append(tokens, ',')
		}
		tokens = w.token(tokens, i, w.all[at:])
	}
	if w.listed {
		b = append(b, '[')
	}
	b = fmt.Appendf(b, `{"generated_text":"%s"`, w.all)
	if w.details {
		b = w.ends(append(b, `,"details":`...), parts[0].Finish)
		b = fmt.Appendf(b, `,"prefill":[],"tokens":[%s]}`, tokens)
	}
	if b = append(b, '}'); w.listed {
		b = append(b, ']')
	}
	return b
}
