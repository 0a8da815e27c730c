package native

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"pitot/internal/twin/serve/dialect"
	"pitot/internal/twin/serve/example"
	"pitot/internal/twin/serve/lm"
)

// Gemini is Google's Gemini API: generateContent and streamGenerateContent, which streams
// events with alt=sse and the elements of a list without, and countTokens.
func Gemini(s dialect.Served, base dialect.Dialect) dialect.Dialect {
	generate := func(stream bool) func(*dialect.Request) (*dialect.Call, *dialect.Reply) {
		return func(req *dialect.Request) (*dialect.Call, *dialect.Reply) { return geminiGenerate(s, req, stream) }
	}
	model := fmt.Sprintf(`{"name":%s,"version":"001","displayName":%s,"inputTokenLimit":%d,"outputTokenLimit":%d,"supportedGenerationMethods":["generateContent","countTokens"]}`,
		dialect.Marshal("models/"+s.Name), dialect.Marshal(s.Name), s.MaxModelLen-1, s.MaxModelLen-1)
	about := func(resource string) func(*dialect.Request) dialect.Reply {
		return func(*dialect.Request) dialect.Reply {
			return dialect.Reply{Status: http.StatusOK, Type: "application/json; charset=UTF-8", Body: []byte(resource)}
		}
	}
	var own []dialect.Route
	for _, version := range []string{"/v1beta", "/v1"} {
		path := version + "/models/" + s.Name
		own = append(own,
			dialect.Route{Path: path + ":generateContent", Methods: post, Generate: generate(false)},
			dialect.Route{Path: path + ":streamGenerateContent", Methods: post, Generate: generate(true)},
			dialect.Route{Path: path + ":countTokens", Methods: post, Reply: func(req *dialect.Request) dialect.Reply { return geminiCount(s, req) }},
			dialect.Route{Path: path, Methods: get, Reply: about(model)},
			dialect.Route{Path: version + "/models", Methods: get, Reply: about(`{"models":[` + model + `]}`)})
	}
	own = append(own, health(healthy))
	return &geminiFace{face{base, with(base, own), geminiError}}
}

// geminiFace is asked with Google's header for keys.
type geminiFace struct{ face }

// KeyHeader implements [dialect.Keyed].
func (*geminiFace) KeyHeader() string { return "X-Goog-Api-Key" }

// geminiError is an error in the form of Google's APIs (AIP-193).
func geminiError(status int, message string) dialect.Reply {
	word := map[int]string{http.StatusBadRequest: "INVALID_ARGUMENT", http.StatusUnauthorized: "UNAUTHENTICATED", http.StatusForbidden: "PERMISSION_DENIED",
		http.StatusNotFound: "NOT_FOUND", http.StatusTooManyRequests: "RESOURCE_EXHAUSTED", http.StatusServiceUnavailable: "UNAVAILABLE"}[status]
	if word == "" {
		word = "INTERNAL"
	}
	return dialect.Reply{Status: status, Type: "application/json; charset=UTF-8", Body: fmt.Appendf(nil, `{"error":{"code":%d,"message":%s,"status":"%s"}}`, status, dialect.Marshal(message), word)}
}

// geminiContent is what one side says.
type geminiContent struct {
	Role  string `json:"role"`
	Parts []struct {
		Text     string          `json:"text"`
		Call     json.RawMessage `json:"functionCall"`
		Response json.RawMessage `json:"functionResponse"`
	} `json:"parts"`
}

// appendTo appends its text, and what was called and answered.
func (c *geminiContent) appendTo(b []byte) []byte {
	for _, p := range c.Parts {
		b = append(append(append(b, p.Text...), p.Call...), p.Response...)
	}
	return b
}

// geminiRequest is a request for an answer.
type geminiRequest struct {
	Contents []geminiContent `json:"contents"`
	System   *geminiContent  `json:"systemInstruction"`
	Tools    []struct {
		Functions []struct {
			Name       string          `json:"name"`
			Parameters json.RawMessage `json:"parameters"`
			Schema     json.RawMessage `json:"parametersJsonSchema"`
		} `json:"functionDeclarations"`
	} `json:"tools"`
	Config struct {
		Max         *int     `json:"maxOutputTokens"`
		Temperature *float64 `json:"temperature"`
		Seed        *int64   `json:"seed"`
		Stop        []string `json:"stopSequences"`
		Candidates  *int     `json:"candidateCount"`
	} `json:"generationConfig"`
}

// prompt is its text.
func (r *geminiRequest) prompt() (b []byte) {
	if r.System != nil {
		b = append(r.System.appendTo(b), '\n')
	}
	for i := range r.Contents {
		if i > 0 {
			b = append(b, '\n')
		}
		b = r.Contents[i].appendTo(b)
	}
	return b
}

// tools are the functions that may be called: none where the last content answers calls.
func (r *geminiRequest) tools() (calls []lm.Call) {
	for _, p := range r.Contents[len(r.Contents)-1].Parts {
		if p.Response != nil {
			return nil
		}
	}
	for _, t := range r.Tools {
		for _, f := range t.Functions {
			schema := f.Schema
			if schema == nil {
				schema = lowered(f.Parameters)
			}
			calls = append(calls, lm.Call{Name: f.Name, Args: example.OfSchema(schema)})
		}
	}
	return calls
}

// What Google says of a request that cannot be read, or that asks nothing.
const (
	geminiUnread = "Invalid JSON payload received. %s"
	geminiNoAsk  = "* %s.contents: contents is not specified"
)

// geminiCount answers countTokens, of contents alone or of a request for an answer.
func geminiCount(s dialect.Served, req *dialect.Request) dialect.Reply {
	var in struct {
		geminiRequest
		Generate *geminiRequest `json:"generateContentRequest"`
	}
	if problem := decode(req, &in); problem != "" {
		return geminiError(http.StatusBadRequest, fmt.Sprintf(geminiUnread, problem))
	}
	counted := &in.geminiRequest
	if in.Generate != nil {
		counted = in.Generate
	}
	if len(counted.Contents) == 0 {
		return geminiError(http.StatusBadRequest, fmt.Sprintf(geminiNoAsk, "CountTokensRequest"))
	}
	p := s.Model.TextPrompt(counted.prompt(), s.Model.Template())
	return dialect.Reply{Status: http.StatusOK, Type: "application/json; charset=UTF-8", Body: fmt.Appendf(nil,
		`{"totalTokens":%d,"promptTokensDetails":[{"modality":"TEXT","tokenCount":%d}]}`, p.Tokens, p.Tokens)}
}

func geminiGenerate(s dialect.Served, req *dialect.Request, stream bool) (*dialect.Call, *dialect.Reply) {
	refuse := func(format string, args ...any) (*dialect.Call, *dialect.Reply) {
		r := geminiError(http.StatusBadRequest, fmt.Sprintf(format, args...))
		return nil, &r
	}
	var in geminiRequest
	if problem := decode(req, &in); problem != "" {
		return refuse(geminiUnread, problem)
	}
	c := &in.Config
	a := asked{chat: true, stream: stream, temperature: c.Temperature, seed: c.Seed, stops: c.Stop}
	switch {
	case len(in.Contents) == 0:
		return refuse(geminiNoAsk, "GenerateContentRequest")
	case c.Candidates != nil && *c.Candidates != 1:
		return refuse("Multiple candidates is not enabled for this model") // the mock's one
	case c.Max != nil && *c.Max <= 0:
		return refuse("max_output_tokens must be positive.")
	case c.Max != nil:
		a.limit = *c.Max
	}
	a.text, a.tools = in.prompt(), in.tools()
	w, call, ok := begin(s, req, a)
	if !ok {
		return refuse("The input token count exceeds the maximum number of tokens allowed (%d).", s.MaxModelLen)
	}
	g := &geminiWriter{answering: w, id: string(dialect.Marshal(call.ID)), model: string(dialect.Marshal(s.Name))}
	call.Comment = ""
	if stream && !strings.Contains("&"+req.Query+"&", "&alt=sse&") {
		call.Type, g.listed = "application/json; charset=UTF-8", true
	}
	call.Writer = g
	return call, nil
}

// lowered is a schema of Google's form, which writes types in capitals, as a JSON Schema.
func lowered(schema json.RawMessage) json.RawMessage {
	var v any
	if json.Unmarshal(schema, &v) != nil {
		return schema
	}
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			for key, inner := range v {
				if word, is := inner.(string); is && key == "type" {
					v[key] = strings.ToLower(word)
				}
				walk(inner)
			}
		case []any:
			for _, inner := range v {
				walk(inner)
			}
		}
	}
	walk(v)
	return dialect.Marshal(v)
}

// geminiWriter writes an answer: each event has what is new, and the counts so far.
type geminiWriter struct {
	*answering
	id, model string // as JSON
	listed    bool   // events are the elements of a list
	begun     bool
	ended     bool
	thoughts  int // tokens so far
}

// WithoutUsage implements [dialect.Uncounted].
func (w *geminiWriter) WithoutUsage() { w.silent = true }

// Tokens implements [dialect.Writer].
func (w *geminiWriter) Tokens(b []byte, _, from, to int, finish string) ([]byte, bool) {
	parts := w.parts(from, to, finish != "")
	if len(parts) == 0 && finish == "" {
		return b, false
	}
	w.ended = w.ended || finish != ""
	return w.close(w.response(w.open(b), parts, finish)), true
}

// open and close stand around an event.
func (w *geminiWriter) open(b []byte) []byte {
	switch {
	case !w.listed:
		return append(b, "data: "...)
	case !w.begun:
		w.begun = true
		return append(b, '[')
	}
	return append(b, ",\r\n"...)
}

func (w *geminiWriter) close(b []byte) []byte {
	if w.listed {
		return b
	}
	return append(b, "\r\n\r\n"...)
}

// parts are what the tokens [from, to) say, in their order; a call is told when it is
// complete.
func (w *geminiWriter) parts(from, to int, end bool) (b []byte) {
	w.pieces(from, to, end, func(kind lm.Kind, text []byte) {
		if kind != lm.Text && kind != lm.Thought {
			return
		}
		if len(b) > 0 {
			b = append(b, ',')
		}
		if b = append(append(append(b, `{"text":"`...), text...), '"'); kind == lm.Thought {
			b = append(b, `,"thought":true`...)
		}
		b = append(b, '}')
	})
	if w.plan.Call == nil {
		w.thoughts = min(to, w.plan.Reasoning)
	}
	if c := w.plan.Call; c != nil && end && to >= c.Tokens() {
		if len(b) > 0 {
			b = append(b, ',')
		}
		b = fmt.Appendf(b, `{"functionCall":{"name":%s,"args":%s}}`, dialect.Marshal(c.Name), c.Args)
	}
	return b
}

// response appends one response.
func (w *geminiWriter) response(b, parts []byte, finish string) []byte {
	b = append(b, `{"candidates":[{"content":{`...)
	if len(parts) > 0 {
		b = append(append(append(b, `"parts":[`...), parts...), `],`...)
	}
	b = append(b, `"role":"model"},`...)
	switch finish {
	case "":
	case "length":
		b = append(b, `"finishReason":"MAX_TOKENS",`...)
	default:
		b = append(b, `"finishReason":"STOP",`...)
	}
	b = append(b, `"index":0}],`...)
	if !w.silent {
		b = fmt.Appendf(b, `"usageMetadata":{"promptTokenCount":%d,"candidatesTokenCount":%d,"totalTokenCount":%d,`, w.prompt.Tokens, w.output-w.thoughts, w.prompt.Tokens+w.output)
		if w.cached > 0 {
			b = fmt.Appendf(b, `"cachedContentTokenCount":%d,`, w.cached)
		}
		b = fmt.Appendf(b, `"promptTokensDetails":[{"modality":"TEXT","tokenCount":%d}]`, w.prompt.Tokens)
		if w.thoughts > 0 {
			b = fmt.Appendf(b, `,"thoughtsTokenCount":%d`, w.thoughts)
		}
		b = append(b, "},"...)
	}
	return fmt.Appendf(b, `"modelVersion":%s,"responseId":%s}`, w.model, w.id)
}

// Done implements [dialect.Writer]: the last event has ended a stream, but for its bracket.
func (w *geminiWriter) Done(b []byte) []byte {
	if w.listed && w.begun && w.ended {
		return append(b, ']')
	}
	return b
}

// Error implements [dialect.Writer].
func (w *geminiWriter) Error(b []byte) []byte {
	w.ended = true
	return w.close(append(w.open(b), geminiError(http.StatusInternalServerError, "the engine failed").Body...))
}

// Malformed implements [dialect.Writer].
func (w *geminiWriter) Malformed(b []byte) []byte {
	return w.close(append(w.open(b), `{"candidates":[{"cont`...))
}

// Whole implements [dialect.Writer].
func (w *geminiWriter) Whole(b []byte, parts []dialect.Part, n dialect.Counts) []byte {
	w.cached = n.Cached
	said := w.parts(0, parts[0].Tokens, true)
	return w.response(b, said, parts[0].Finish)
}
