// Package dialect is the seam between a server and the ways of speaking that it
// may have: what a dialect is given, and what the server asks of it. A dialect
// turns requests into jobs for an engine and tokens into bytes; it knows neither
// sockets nor time, so that the server alone decides when something is written.
package dialect

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"

	"pitot/internal/sim"
	"pitot/internal/sim/serve/lm"
	"pitot/internal/sim/serve/prom"
)

// Served describes the server that a dialect speaks for.
type Served struct {
	Model               *lm.Model
	Name                string // that the model is served by
	MaxModelLen         int    // tokens of a prompt and its answer
	PromptTokensDetails bool   // the usage tells how many tokens of the prompt were cached
	Cache               map[string]string
	Settings            map[string]string // of the engine, under its own names
	BlockSize           int               // of the engine's cache in tokens, 0 if not known
	Began               float64           // Unix time in seconds
	Active              func() int64      // answers under way
	Aborted             func() int64      // answers whose client left first
}

// Dialect is the API of one kind of server: its routes, its errors, its metrics. Its methods may be
// called by several goroutines.
type Dialect interface {
	// Routes are the paths that there are.
	Routes() []Route
	// Header is lines that every answer has, each with its CRLF.
	Header() string
	// Preflight answers a browser that asks whether it may send a request; false
	// for another OPTIONS.
	Preflight(*Request) (Reply, bool)
	// Guarded says whether a path asks for a key, where one is set.
	Guarded(path string) bool
	// Refuse returns the server's own answer to a problem that keeps it from going on.
	Refuse(Problem) Reply
	// Metrics counts what /metrics tells of so many engines; the server asks for it
	// once.
	Metrics(engines int) Metrics
}

// Problem is why a server does not let a request through to its route, or why
// the engine does not answer it.
type Problem uint8

// The problems that there are.
const (
	NotHTTP Problem = iota
	NoRoute
	NoMethod     // the route has others
	NoKey        // or a wrong one
	TooLarge     // the body
	Loading      // the model is not there yet
	ShuttingDown // and will not come back
	TooMany      // requests of this client
	EngineFailed
	Overloaded
	NoEngine // of several that are behind a router
)

// Route is one path. It either answers at once, or has an answer generated.
type Route struct {
	Path    string
	Methods []string
	// Early routes answer while the model is still being loaded, too.
	Early bool
	// Uncounted routes only look after the server, and are not in its counts.
	Uncounted bool
	// One of these answers; Metrics is the server's own.
	Metrics  bool
	Reply    func(*Request) Reply
	Generate func(*Request) (*Call, *Reply)
}

// Request is a client's request.
type Request struct {
	Method, Path string
	Header       http.Header
	Body         []byte
	N            int64 // number of a request that has an answer generated, from 0
	Loading      bool  // the model is not there yet
	Garble       bool  // a fault makes the answer wrong
}

// Reply is a response that is known as a whole.
type Reply struct {
	Status int
	Type   string // of the content; JSON if empty
	Header string // further lines, each with its CRLF
	Bare   bool   // without the lines that every answer has: it comes from in front of the application
	Body   []byte
}

// JSON is a value as a JSON response.
func JSON(status int, v any) Reply { return Reply{Status: status, Body: Marshal(v)} }

// Marshal is v as JSON, with < and > as they are; it is for values that always
// encode.
func Marshal(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return []byte("null")
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// Append appends texts to b.
func Append(b []byte, texts ...string) []byte {
	for _, text := range texts {
		b = append(b, text...)
	}
	return b
}

// AppendInt appends a text and a whole number behind it.
func AppendInt(b []byte, text string, n int) []byte {
	return strconv.AppendInt(append(b, text...), int64(n), 10)
}

// Call is a parsed request for generated answers. It holds the jobs for the engine, and the writer
// of the engine's output.
type Call struct {
	ID      string // of the answer
	Stream  bool
	Type    string // of a stream's content
	Comment string // an event that says nothing, "" where there is none
	Opening int    // events of a stream before its first token, which they come with
	Early   int    // so many of these do not wait for it
	Waits   bool   // the head of a stream is sent with its first event, not at once
	Prompt  int    // tokens of all prompts
	Batch   int    // choices that answer one prompt, which follow each other
	Jobs    []sim.Job
	Writer  Writer
}

// Counts are tokens that an answer tells of at its end.
type Counts struct {
	Output int
	Cached int // of the prompt, found in the prefix cache
	Stored int // of the prompt, newly stored there
}

// Part is the outcome of one choice.
type Part struct {
	Tokens int
	Finish string
}

// Writer writes the answer to one call. Its methods append to b, of streams one
// event each. It belongs to one goroutine.
type Writer interface {
	// Open is event number i before the first token.
	Open(b []byte, i int) []byte
	// Tokens are the tokens [from, to) of a choice, with which it ends if finish
	// says how. false: they have no event, and come with the next one.
	Tokens(b []byte, choice, from, to int, finish string) (_ []byte, shown bool)
	// Finish returns the finish reason of a choice that the engine ended with finish.
	Finish(choice int, finish string) string
	// Usage is the count of all tokens; nothing where none was asked for.
	Usage(b []byte, c Counts) []byte
	// Done marks the end of a stream.
	Done(b []byte) []byte
	// Error says that the engine failed in the middle of a stream.
	Error(b []byte) []byte
	// Malformed is an event that no client can read.
	Malformed(b []byte) []byte
	// Whole is the body of an answer that is not streamed.
	Whole(b []byte, parts []Part, c Counts) []byte
}

// Uncounted is a [Writer] whose usage stands in an event that has to come.
type Uncounted interface {
	// WithoutUsage leaves the usage out of it.
	WithoutUsage()
}

// Cached is a [Writer] whose last event of tokens tells how many of the prompt's were
// in the prefix cache.
type Cached interface{ Cached(tokens int) }

// Metrics counts what /metrics tells. It belongs to one goroutine; times are seconds.
type Metrics interface {
	// Of counts what an engine does, by its number.
	Of(engine int) Counter
	// Page gives what writes the page of now, of all engines. It may be called on
	// another goroutine, later.
	Page(engines []Reading, web *prom.HTTP) func() []byte
}

// Reading is one reading of an engine's own statistics.
type Reading struct {
	sim.Stats
	InStep int // tokens of a step that is not over
}

// Counter counts what one engine does.
type Counter interface {
	// FirstToken counts a prompt that is done with, of an answer that is streamed or not.
	FirstToken(ttft float64, prompt, cached int, stream bool)
	// Tokens counts what an output gave, the first one too, NextTokens the time
	// since the one before.
	Tokens(n int)
	NextTokens(gap float64)
	// Step counts the tokens of one step of the engine.
	Step(tokens int)
	// Finished counts a choice that has run to its end.
	Finished(Finished)
	// BatchFinished counts that all n answers to one prompt have.
	BatchFinished(n, longest int)
}

// Finished holds the metrics of a choice that has run to its end.
type Finished struct {
	Reason                                             string
	Stream                                             bool
	E2E, Queue, Prefill, Inference, Decode, PerToken   float64 // seconds
	PromptTokens, Computed, Output, Limit, Preemptions int
}
