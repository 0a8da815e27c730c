// Package api is the dialects of targets, one file each: how a request is put,
// how its answer is framed and read, and what a server that is stricter than
// others makes of it. It does no I/O.
package api

import (
	"fmt"
	"slices"
	"strings"

	"pitot/internal/results/record"
	"pitot/internal/results/result"
	"pitot/internal/workload"
	"pitot/internal/workload/token"
)

// API is the dialect of a target. A new one is a file with a [dialect] and its entry in [All].
type API interface {
	// Name is the word used in flags and reports: "openai-chat".
	Name() string
	// Routes are the paths it is served under, the usual one first: "/v1/chat/completions".
	// In a path {model} stands for the name of the model: "/models/{model}:generate".
	// Requests may differ by route: which is asked is among the [Options].
	Routes() []string
	// Models is the path at which its servers list their models, "" if they do
	// not: then none need be named. Where a route is served elsewhere than under
	// /v1, so is this.
	Models() string
	// List reads what is found there, nothing where it is in no known form.
	List(body []byte) []Model
	// Sign returns the sign by which its servers are recognised, the zero value for those that have
	// none.
	Sign() Sign
	// Prepare sets what requests of this API need, and what the engine is known to
	// take beyond it. It is called when the API is chosen, with no engine, and again
	// once the server has reported which one it is. Where the options ask for another of
	// its routes, it changes that too. An error says what of the options cannot be
	// asked for in this API.
	Prepare(engine string, o *Options) error
	// Messages says whether it takes a conversation, rather than a bare prompt.
	Messages(o Options) bool
	// KeyVariable is the environment variable in which its users keep their key:
	// "OPENAI_API_KEY".
	KeyVariable() string
	// Alias returns the name of the API in the files of another tool ("vllm", "aiperf", "sglang").
	// It returns "" where that tool has no word for it.
	Alias(tool string) string
	// Headers are those that its requests need; key is "" where there is none.
	Headers(key string) []Header
	// Framing says how its streams are cut into events.
	Framing() Framing
	// Body appends the request's body, JSON, to dst.
	Body(dst []byte, r *workload.Request, o Options) ([]byte, error)
	// Asked says how much of an answer such a request asks for.
	Asked(r *workload.Request, o Options) Asked
	// Decoder gives a reader of one answer after another.
	Decoder() Decoder
	// Fault returns the message in the body of a refusal, "" if it is in no known form.
	Fault(body []byte) string
	// Concede changes what a server has refused, as far as it is something that
	// can be left out or named otherwise, and returns what it changed: no kind if
	// nothing. refusal is the server's message.
	Concede(refusal string, o *Options) result.Adaptation
}

// Model is an entry of a server's list of models.
type Model struct {
	Name    string
	Engine  string // that serves it, as it calls itself; "" if it does not tell
	Context int    // tokens of prompt and answer, 0 if it does not tell
	Root    string // path or repository that it was loaded from, "" if it does not tell
}

// Sign holds the features by which a server of an API is recognised.
type Sign struct {
	Host  string // it is this one: "api.example.com"
	Path  string // or it answers here, behind the base of its address, with
	Field string // an object that has this field,
	Of    string // and then is this: "llama.cpp's server"
}

// IsIn says whether an answer bears the sign.
func (s Sign) IsIn(status int, body []byte) bool {
	if s.Path == "" || status != 200 {
		return false
	}
	found := false
	in := scanner{b: body}
	ok := in.eachKey(func(key []byte) bool {
		found = found || string(key) == s.Field
		return in.skipValue()
	})
	return ok && in.atEnd() && found
}

// Header is one line of a request's head.
type Header struct{ Name, Value string }

// requestHeaders says what an answer may be; headers without a value are left out.
func requestHeaders(accept string, more ...Header) []Header {
	more = slices.DeleteFunc(more, func(h Header) bool { return h.Value == "" })
	return append([]Header{{"Accept", accept}}, more...)
}

// eventsOrJSON names the types of most servers' answers.
const eventsOrJSON = "text/event-stream, application/json"

// bearer is the header of a key, without a value where there is none.
func bearer(key string) Header {
	if key == "" {
		return Header{}
	}
	return Header{"Authorization", "Bearer " + key}
}

// Asked holds the limits that a request sets on its answer. Zero stands for no limit.
type Asked struct {
	Tokens     int64 // of each choice at most
	Choices    int64 // n
	Candidates int64 // listed with each token, with their probabilities
}

// Decoder reads the answers of one connection. Framing is done before it: it sees
// one event at a time.
type Decoder interface {
	// Reset prepares for the next answer.
	Reset()
	// Event reads one event of a stream. It fills d, which the caller has
	// cleared. An error means that the event could not be understood.
	Event(name, data []byte, d *Delta) error
	// Ahead reads the event that data begins with where an empty line is behind it and it is like
	// those before it, so that it need not be cut out first. It gives how many bytes
	// both are, 0 where [Decoder.Event] has to see the event.
	Ahead(data []byte, d *Delta) int
	// Whole reads an answer that was not streamed.
	Whole(body []byte, d *Delta) error
	// Ended says whether the stream may end here: an end mark or a
	// finish reason has come.
	Ended() bool
	// Remembered gives what Event compares the next event with, if it does: a
	// reader of many streams has it fetched from memory ahead.
	Remembered() []byte
}

// Holder is a [Decoder] that holds text of the answer.
type Holder interface {
	Held() int // bytes
	Trim()     // gives a large buffer back, once the answer has been read
}

// Unmarked is a [Decoder] of streams that have no end mark: one that breaks off is known
// by its HTTP body alone.
type Unmarked interface{ Unmarked() }

// Options holds the settings that are the same for every request of a run.
type Options struct {
	Model         string
	Route         string // that is asked, as the API lists it
	Stream        bool
	Vocab         *token.Vocabulary // of generated prompts
	IDs           bool              // prompts are token ids in place of text
	Encode        Encode            `json:"-"` // what makes them of text, nil where prompts are generated words alone
	IgnoreEOS     bool              // the engine knows ignore_eos
	MinTokens     bool              // the engine knows min_tokens
	NoUsage       bool              // the server does not take stream_options
	RunningUsage  bool              // the engine tells its usage with every event if asked to
	NoTemperature bool              // the server does not take a temperature
	NoStore       bool              // the server does not take store
	LeastTokens   int               // the server wants to be asked for no fewer
	MaxField      string            // name of the output limit: max_tokens or max_completion_tokens
	Body          []byte            // JSON Merge Patch (RFC 7396) of every request, nil if none
}

// Encode appends the token ids that a text is to ids. It is safe for concurrent use.
type Encode func(ids []uint32, text []byte) ([]uint32, error)

// Delta holds the content of one event, or of one whole answer.
type Delta struct {
	Parts  []Part // non-empty text, per choice and kind
	Empty  bool   // it had a choice, but no text
	Opaque bool   // it had content that is no text: audio, an image, encrypted reasoning
	Finish string // finish_reason of choice 0
	Broken string // the first finish_reason, of any choice, that says failure or a content filter
	Ended  bool   // some choice had a finish_reason
	Done   bool   // the end mark, [DONE]
	// Nothing says that the event is a heartbeat: it is no part of the response.
	Nothing bool
	Usage   Usage
	Fault   *Fault // an error in place of an answer
	// Summarised says that the reasoning in this event sums up tokens that are
	// themselves never shown.
	Summarised bool

	Keep bool   // the text of the answer is wanted; not cleared
	Text []byte // with Keep: of choice 0, without reasoning, refusals and calls, in one piece with that of earlier events; not cleared

	Spell bool   // the text of all parts is wanted; not cleared
	Spelt []byte // with Spell: of every part in turn, in one piece with that of earlier events; not cleared

	Most   int  // parts that there may be, 0 for any number; not cleared
	Excess bool // there were more: the rest was not read
}

// Part is text of one kind of one choice.
type Part struct {
	Choice int32
	Kind   record.Kind
	Bytes  int32
	Tokens int32 // counted from token ids or logprobs, 0 without;  a choice's first part has those of all its parts
}

// Usage is the server's own count, Unset where it says nothing, [Impossible]
// where it says what no count can be.
type Usage struct {
	Prompt, Cached, Completion, Reasoning int32
}

// Unsaid is a usage that says nothing.
var Unsaid = Usage{record.Unset, record.Unset, record.Unset, record.Unset}

// Clear empties a Delta for the next event.
func (d *Delta) Clear() {
	d.Parts, d.Usage, d.Fault = d.Parts[:0], Unsaid, nil
	d.Empty, d.Opaque, d.Ended, d.Done, d.Nothing, d.Summarised, d.Excess = false, false, false, false, false, false, false
	d.Finish, d.Broken = "", ""
}

// endChoice notes that a choice has ended, and for which reason.
func (d *Delta) endChoice(choice int32, reason string) {
	d.Ended = true
	if choice == 0 {
		d.Finish = reason
	}
	if d.Broken == "" {
		switch record.KindOfFinish(reason) {
		case record.FinishFailed, record.FinishFiltered:
			d.Broken = reason
		}
	}
}

// Fault is an error as a server tells it in a body or an event.
type Fault struct {
	Message string
	Type    string
}

const (
	// MaxEvent bounds one event; logprobs and whole tool calls are large.
	MaxEvent = 16 << 20
	// MaxKept is the size of a buffer that is kept for the next answer.
	MaxKept = 64 << 10
)

// OversizedError is an answer that is larger than its bounds.
type OversizedError struct {
	What  string // "events", "bytes", …
	Limit int64
}

func (e *OversizedError) Error() string {
	return fmt.Sprintf("the response has more %s than the request allows: over %d", e.What, e.Limit)
}

// All lists the APIs there are. Of two routes with the same end the longer stands
// first.
func All() []API {
	return []API{Chat, Completions, Responses, Anthropic, Ollama, Triton, SGLang, TGI, LlamaCpp, Gemini,
		Embeddings, TEIRerank, Rerank, TEIEmbed}
}

// Default is the API of a server of which nothing is known yet.
func Default() API { return Chat }

// Names lists their names.
func Names() (names []string) {
	for _, a := range All() {
		names = append(names, a.Name())
	}
	return names
}

// ByName gives the API of a name.
func ByName(name string) (API, bool) {
	for _, a := range All() {
		if a.Name() == name {
			return a, true
		}
	}
	return nil, false
}

// ByHost gives the API that is all that a host serves.
func ByHost(host string) (API, bool) {
	for _, a := range All() {
		if sign := a.Sign(); sign.Host != "" && strings.EqualFold(sign.Host, host) {
			return a, true
		}
	}
	return nil, false
}

// FaultOf returns the message in the body of a refusal, in the form of any API.
func FaultOf(body []byte) string {
	for _, a := range All() {
		if message := a.Fault(body); message != "" {
			return message
		}
	}
	return ""
}
