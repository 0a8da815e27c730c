// Package wire speaks to servers: sockets whose reads carry the kernel's
// receive stamps, an HTTP/1.1 codec, event streams, and one file per API.
//
// All parsers are push-style and do no I/O: [Exchange.Feed] takes whatever
// bytes a read gave and the time they arrived, so that plain sockets, TLS,
// scripted connections and fuzzers share one path.
package wire

import (
	"pitot/internal/data/record"
	"pitot/internal/workload"
	"pitot/internal/workload/token"
)

// API is the dialect of a target. An API is one file: how a request is put,
// and how an answer is read.
type API interface {
	// Name is the word used in flags and reports: "openai-chat".
	Name() string
	// Route is the path it is served under: "/v1/chat/completions".
	Route() string
	// Body appends the request's body, JSON, to dst.
	Body(dst []byte, r *workload.Request, o Options) ([]byte, error)
	// Asked says how much of an answer such a request asks for.
	Asked(r *workload.Request, o Options) Asked
	// Decoder gives a reader of one answer after another.
	Decoder() Decoder
}

// Decoder reads the answers of one connection. Framing (SSE) is done before
// it; it sees one event at a time.
type Decoder interface {
	// Reset prepares for the next answer.
	Reset()
	// Event reads one event of a stream. It fills d, which the caller has
	// cleared. An error means that the event could not be understood.
	Event(name, data []byte, d *Delta) error
	// Whole reads an answer that was not streamed.
	Whole(body []byte, d *Delta) error
	// Ended says whether the stream may end here: an end mark or a
	// finish reason has come.
	Ended() bool
	// Remembered gives what Event compares the next event with, if it does: a
	// reader of many streams has it fetched from memory ahead.
	Remembered() []byte
}

// Options are what is the same for every request of a run.
type Options struct {
	Model         string
	Stream        bool
	Vocab         *token.Vocabulary // of generated prompts
	IgnoreEOS     bool              // the engine knows ignore_eos
	MinTokens     bool              // the engine knows min_tokens
	NoUsage       bool              // the server does not take stream_options
	NoTemperature bool              // the server does not take a temperature
	MaxField      string            // name of the output limit: max_tokens or max_completion_tokens
	Body          []byte            // JSON object merged over everything else, nil if none
}

// Delta is what one event, or one whole answer, says.
type Delta struct {
	Parts  []Part // non-empty text, per choice and kind
	Empty  bool   // it had a choice, but no text
	Finish string // finish_reason of choice 0
	Ended  bool   // some choice had a finish_reason
	Done   bool   // the end mark, [DONE]
	Usage  Usage
	Fault  *Fault // an error in place of an answer

	Most   int  // parts that there may be, 0 for any number; not cleared
	Excess bool // there were more: the rest was not read
}

// Part is text of one kind of one choice.
type Part struct {
	Choice int32
	Kind   record.Kind
	Bytes  int32
	Tokens int32 // told by token ids or logprobs, 0 if not; a choice's first part has those of all its parts
}

// Usage is the server's own count, Unset where it says nothing, impossible
// where it says what no count can be.
type Usage struct {
	Prompt, Cached, Completion, Reasoning int32
}

// noUsage is a count that says nothing.
var noUsage = Usage{record.Unset, record.Unset, record.Unset, record.Unset}

// Clear empties a Delta for the next event.
func (d *Delta) Clear() {
	d.Parts, d.Empty, d.Finish, d.Ended, d.Done, d.Usage, d.Fault, d.Excess = d.Parts[:0], false, "", false, false, noUsage, nil, false
}

// Fault is an error as a server tells it in a body or an event.
type Fault struct {
	Message string
	Type    string
}

// APIs lists the APIs there are.
func APIs() []API { return []API{Chat{}, Completions{}} }
