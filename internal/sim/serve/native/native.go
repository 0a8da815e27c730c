// Package native speaks as servers do on routes that are not vLLM's of generated text:
// Ollama's, SGLang's /generate, and vLLM's with a pooling model. What stands beside those
// routes (OpenAI's and metrics) is another dialect's, in its words. The forms are those of
// the servers' documents and sources.
package native

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"pitot/internal/sim"
	"pitot/internal/sim/serve/dialect"
	"pitot/internal/sim/serve/lm"
)

// face is a dialect: another's with routes of its own in place of some of that one's.
type face struct {
	dialect.Dialect
	routes []dialect.Route
	words  func(status int, message string) dialect.Reply // for errors
}

// Routes implements [dialect.Dialect].
func (f *face) Routes() []dialect.Route { return f.routes }

// Header implements [dialect.Dialect].
func (f *face) Header() string { return "" }

// Guarded implements [dialect.Dialect].
func (f *face) Guarded(path string) bool { return path != "/health" }

// Refuse implements [dialect.Dialect].
func (f *face) Refuse(p dialect.Problem) dialect.Reply {
	of := f.Dialect.Refuse(p)
	message := http.StatusText(of.Status)
	var said struct{ Error struct{ Message string } }
	if json.Unmarshal(of.Body, &said) == nil && said.Error.Message != "" {
		message = said.Error.Message
	}
	return f.words(of.Status, message)
}

// prependRoutes are routes in front of those that a dialect has under some paths.
func prependRoutes(base dialect.Dialect, own []dialect.Route, kept ...string) []dialect.Route {
	for _, r := range base.Routes() {
		if slices.Contains(kept, r.Path) {
			own = append(own, r)
		}
	}
	return own
}

// asked is the parsed form of a request, whatever its format.
type asked struct {
	text        []byte   // of the prompt, or
	ids         []uint32 // its tokens
	chat        bool
	stream      bool
	limit       int // tokens, 0 or less for the server's own
	stops       []string
	temperature *float64
	seed        *int64
	ignoreEOS   bool
	tools       []lm.Function
}

// generic is the maximum number of tokens in an answer where a request sets none.
const generic = 128

// answering is the answer to one request, and what its writers have in common.
type answering struct {
	dialect.Served
	answer lm.Answer
	plan   lm.Plan
	prompt lm.Prompt
	output int // tokens so far
	cached int // of the prompt
	failed bool
	silent bool // without usage
}

// beginCall makes the call of a request, whose writer is made by the caller; false where
// prompt and answer have no room.
func beginCall(s dialect.Served, req *dialect.Request, a asked) (*answering, *dialect.Call, bool) {
	w := &answering{Served: s}
	template := 0
	if a.chat {
		template = s.Model.TemplateTokens()
	}
	if a.ids != nil {
		w.prompt = s.Model.IDPrompt(a.ids)
	} else {
		w.prompt = s.Model.TextPrompt(a.text, template)
	}
	room := s.MaxModelLen - max(w.prompt.Tokens, 1)
	if room < 1 {
		return nil, nil, false
	}
	p := &w.plan
	if p.Limit = a.limit; p.Limit <= 0 {
		p.Limit = generic
	}
	p.Limit, p.Stops = min(p.Limit, room), a.stops
	prompts := []lm.Prompt{w.prompt}
	first := lm.FirstOf(prompts, req.N, a.temperature, a.seed)
	if i, calls := s.Model.CallsTool(len(a.tools), first); calls {
		p.Call = a.tools[i].NewCall()
	}
	s.Model.AnswerKnown(p, prompts, req.Garble)
	s.Model.SettleLengths(p, first, lm.Mode{Chat: a.chat, IgnoreEOS: a.ignoreEOS})
	w.answer = s.Model.Begin(p, first)
	call := &dialect.Call{
		ID: s.Name + "-" + strconv.FormatInt(req.N, 10), Stream: a.stream, Type: "text/event-stream", Comment: ":\n\n", Prompt: w.prompt.Tokens, Batch: 1,
		Jobs: []sim.Job{{Prompt: max(w.prompt.Tokens, 1), Output: w.answer.Output, Limit: p.Limit, Content: w.answer.Content(&w.prompt, 0)}},
	}
	return w, call, true
}

// Open implements [dialect.Writer].
func (w *answering) Open(b []byte, _ int) []byte { return b }

// Finish implements [dialect.Writer].
func (w *answering) Finish(_ int, finish string) string { return w.answer.FinishReason(finish) }

// Cached implements [dialect.Cached].
func (w *answering) Cached(n int) { w.cached = n }

// Usage implements [dialect.Writer]: it stands in another event.
func (w *answering) Usage(b []byte, n dialect.Counts) []byte {
	w.cached, w.output = n.Cached, n.Output
	return b
}

// eachPiece gives what the tokens [from, to) say.
func (w *answering) eachPiece(from, to int, end bool, give func(lm.Kind, []byte)) {
	w.output = to
	w.answer.EachPiece(from, to, end, give)
}

// appendText appends what they say, as it stands inside a JSON string.
func (w *answering) appendText(b []byte, from, to int, end bool) []byte {
	w.eachPiece(from, to, end, func(_ lm.Kind, text []byte) { b = append(b, text...) })
	return b
}

// appendIDs appends the ids of the tokens [from, to), as they stand inside a list of all.
func (w *answering) appendIDs(b []byte, from, to int) []byte {
	for i := from; i < to; i++ {
		if len(b) > 0 && b[len(b)-1] != '[' {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, int64(w.answer.ID(i)), 10)
	}
	return b
}

// decodeBody reads a request's body; what is wrong with it is said in plain words.
func decodeBody(req *dialect.Request, into any) (problem string) {
	d := json.NewDecoder(strings.NewReader(string(req.Body)))
	if err := d.Decode(into); err != nil {
		return "the body is not as it should be: " + err.Error()
	}
	return ""
}

// list is a string or a list of them.
type list []string

// UnmarshalJSON implements [json.Unmarshaler].
func (l *list) UnmarshalJSON(b []byte) error {
	var one string
	if json.Unmarshal(b, &one) == nil {
		*l = list{one}
		return nil
	}
	return json.Unmarshal(b, (*[]string)(l))
}

var get, post = []string{http.MethodGet}, []string{http.MethodPost}
