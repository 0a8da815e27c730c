// Package record holds what happened: the row of a request and the chunk of
// a stream, the append-only journal they are written to while a run goes on,
// and the Parquet files they end in.
//
// Times are integer nanoseconds since the origin of their point (the moment
// its load started). [Unset] marks a stamp that never came.
package record

import "strings"

// Unset is a stamp that never came, or a count that was not reported.
const Unset = -1

// Probing is the point of the requests that were sent to find out what a target is
// and takes, before any load or between loads. They are of no point: they were never
// due, and no metric counts them. Their times count from the first of their session.
const Probing int32 = -1

// ProbeClass is the class of these requests.
const ProbeClass = "probe"

// Outcome says how the following of a request ended. For the cohort of a
// window, due = ok + failed + cut + unsent.
type Outcome uint8

const (
	OK     Outcome = iota // answered to its end
	Failed                // a definite error: refused, broken or answered with an error
	Cut                   // sent, but no longer followed: timeout or interruption
	Unsent                // due, but never sent
)

// String gives the word used in files and reports.
func (o Outcome) String() string { return [...]string{"ok", "failed", "cut", "unsent"}[o&3] }

// Row is one request, from when it was due to when it ended.
//
// held = Eligible − Due (waiting for a turn or a slot), connect = Ready −
// Eligible (waiting for a connection), lag = Sent − Ready (the instrument's
// own delay, the only one of the three that is).
type Row struct {
	ID      int64  // position in the schedule of its point, from 0
	Point   int32  // index of the point in its run, or Probing
	Session int64  // session it belongs to, Unset if none
	Turn    int32  // turn in the session, from 0
	Turns   int32  // requests that its session has in all, Unset where that is not known
	After   int64  // request whose end it waited for: the time it was due counts from there; Unset if it came by itself
	History int32  // tokens of its prompt that were asked or answered before in its session, Unset where that is not known
	Class   string // class given by the workload, "" if none

	Due         int64 // intended start
	Eligible    int64 // a slot or turn was free
	Ready       int64 // a connection was there
	Sent        int64 // just before the request's first byte was written
	Headers     int64 // end of the response headers
	FirstEvent  int64 // first event of the stream, tokens or not
	FirstToken  int64 // first non-empty content, reasoning, refusal or tool-call delta
	FirstAnswer int64 // first such delta that is not reasoning
	LastToken   int64 // the later of the last non-empty delta and the event with finish_reason
	// Done is the end of the exchange: its connection is free, its user may
	// think about the next request. A server that leaves its answer open after
	// the end mark is waited for, at most a second; no latency counts that.
	Done int64

	DNS     int64 // duration of the name look-up for this request's connection, Unset if reused
	Connect int64 // duration of connect
	TLS     int64 // duration of the TLS handshake
	Reused  bool  // the connection had carried a request before
	Retried int32 // times it was sent again because a reused connection turned out closed

	// A request whose attempt failed is sent again where the load has retries, as users'
	// clients do (not the Retried above, of which the server knew nothing). It stays one
	// request and one row: the stamps up to Eligible are of the request, Ready and
	// all that follow of its last attempt, and this is what went before.
	Earlier       int32  // attempts before the last
	EarlierErrors string // their error classes in order, joined by commas
	FirstSent     int64  // when the first of them was sent, Unset without one or where it never was
	Backoff       int64  // nanoseconds that were waited between attempts, in all

	InputPlanned     int32 // tokens, Unset if the workload does not know
	OutputPlanned    int32 // tokens asked for, Unset if left to the server
	PromptTokens     int32 // usage.prompt_tokens
	CachedTokens     int32 // usage.prompt_tokens_details.cached_tokens
	CompletionTokens int32 // usage.completion_tokens
	ReasoningTokens  int32 // usage.completion_tokens_details.reasoning_tokens
	HiddenTokens     int32 // reasoning tokens that were counted but never streamed
	FirstTokens      int32 // tokens in the first token's event, Unset if only assumed to be 1
	// Counted is the number of tokens that the user's tokenizer finds in the streamed text. It is
	// Unset without such a tokenizer. Where the server reported no usage, CompletionTokens is this
	// number and NoUsage is set.
	Counted int32
	NoUsage bool

	// Of a question whose answer is checked (--check-answers).
	Question  string // its name, "numbers/7", "" for the workload's own requests
	Wrong     bool   // the answer came to its end and is not right
	DiffersAt int32  // tokens of a greedy answer before the first that the same prompt alone did not have, Unset where all are alike

	Stream   bool  // asked to stream
	Chunks   int32 // events that carried tokens
	Arrivals int32 // reads (or stamps) that carried tokens; < Chunks where events shared one
	// Merged counts the chunks stored as an interval because a later event shared their read;
	// chunks of different choices that did are one step's, which came at once. The last chunk of a
	// stream that has ended is not counted: usage and the end mark often come with it, which is the
	// server's doing and no sign of slow reads.
	Merged      int32
	Skipped     int32  // events that were no part of the response: heartbeats, and any after the end mark
	UserStamps  int32  // reads without a kernel stamp, where kernel stamps were asked for
	Choices     int32  // distinct choice indices seen
	BytesOut    int64  // bytes of the request
	BytesIn     int64  // bytes of the response, headers included
	TextBytes   int64  // bytes of text in the deltas
	Retransmits int32  // TCP segments sent again on its connection while it ran
	Finish      string // finish_reason of choice 0
	Status      int32  // HTTP status, Unset if none came
	RetryAfter  int32  // seconds, from the Retry-After header, Unset if none

	// What the headers of the answer said of rate limits, Unset where nothing.
	LimitRequests, LeftRequests int64
	LimitTokens, LeftTokens     int64
	ResetRequests, ResetTokens  int64 // nanoseconds after Headers at which they are whole again

	Outcome Outcome
	Error   string // error class, "" when OK
	Detail  string // the message of the server or the system, cut to 300 bytes, secrets removed
}

// BlankRow is a row of which nothing is known yet: no stamp has come, no count
// was reported, and it belongs to no session.
func BlankRow() Row {
	const u = Unset
	return Row{
		Session: u, Turns: u, After: u, History: u,
		Due: u, Eligible: u, Ready: u, Sent: u, Headers: u, FirstEvent: u, FirstToken: u, FirstAnswer: u, LastToken: u, Done: u,
		DNS: u, Connect: u, TLS: u, FirstSent: u,
		InputPlanned: u, OutputPlanned: u, PromptTokens: u, CachedTokens: u, CompletionTokens: u, ReasoningTokens: u, FirstTokens: u, Counted: u, DiffersAt: u,
		Status: u, RetryAfter: u, LimitRequests: u, LeftRequests: u, LimitTokens: u, LeftTokens: u, ResetRequests: u, ResetTokens: u,
	}
}

// NextAttempt makes the row of a failed attempt that of the next, after so many
// nanoseconds of waiting.
func (r *Row) NextAttempt(waited int64) {
	next := BlankRow()
	next.ID, next.Point, next.Session, next.Turn, next.Turns, next.After, next.History, next.Class =
		r.ID, r.Point, r.Session, r.Turn, r.Turns, r.After, r.History, r.Class
	next.Due, next.Eligible, next.Stream, next.Question = r.Due, r.Eligible, r.Stream, r.Question
	next.InputPlanned, next.OutputPlanned = r.InputPlanned, r.OutputPlanned
	next.Earlier, next.Backoff, next.FirstSent = r.Earlier+1, r.Backoff+waited, r.FirstSent
	if next.EarlierErrors = r.Error; r.Earlier > 0 {
		next.EarlierErrors = r.EarlierErrors + "," + r.Error
	} else {
		next.FirstSent = r.Sent
	}
	*r = next
}

// AttemptCount returns the number of times that the request was sent, or that the connection for it
// was refused. It is 0 where it never came to that.
func (r *Row) AttemptCount() int32 {
	if r.Outcome == Unsent || r.Outcome == Cut && r.Sent < 0 {
		return r.Earlier
	}
	return r.Earlier + 1
}

// LostWithWorker says that its worker was lost before it is known to have sent the request: so
// nothing is, and it is none that was offered to the server.
func (r *Row) LostWithWorker() bool { return r.Outcome == Unsent && r.Error == ErrWorkerLost }

// FirstError is the error class of the first attempt, "" where it was answered.
func (r *Row) FirstError() string {
	if r.Earlier > 0 {
		first, _, _ := strings.Cut(r.EarlierErrors, ",")
		return first
	}
	return r.Error
}

// Chunk is one event that carried tokens.
//
// Where the kernel merged segments, only the last of the events that came in
// one read has a stamp of its own; the others arrived somewhere in
// (Earliest, T]. Everywhere else Earliest == T. The last events of a read that
// are of different choices are taken for those of one step, written at once: they
// share the stamp of the last.
type Chunk struct {
	Request  int64 // Row.ID
	T        int64 // arrival (of the read that completed it)
	Earliest int64 // lower bound of the arrival, == T when it is known exactly
	Tokens   int32 // tokens it carried, 0 if not known
	Bytes    int32 // bytes of text it carried
	Choice   int32 // choice index
	Kind     Kind  // what the text was
}

// Kind is the kind of a chunk's text.
type Kind uint8

const (
	Answer Kind = iota
	Reasoning
	ToolCall
	Refusal
)

// String gives the word used in files and reports.
func (k Kind) String() string { return [...]string{"answer", "reasoning", "tool_call", "refusal"}[k&3] }

// Sample is one reading of a gauge or counter: of the client itself
// (Source "client"), the server or a GPU.
type Sample struct {
	Point  int32
	T      int64
	Source string
	Name   string
	Value  float64
}

// Mark is a fact about a point that is needed to finish a run from its
// journal alone: its load and window at the start, its end, what the
// instrument noticed. Data is JSON; Name says which type it decodes to.
type Mark struct {
	Point int32
	T     int64
	Name  string
	Data  []byte
}

// Sink takes records while a run goes on. It is safe for concurrent use and
// keeps nothing it is handed. All chunks of a request come before its Done.
type Sink interface {
	Chunk(Chunk)
	Done(*Row)
}

// Frame is one batch of records of one point, as flushed. Every chunk of a
// request is in the frame of its row or in an earlier one; inside a frame
// chunks come before rows.
type Frame struct {
	Point int32
	// Worker is the process that recorded it, where several load one point, from 0.
	// Each counts its requests by itself: an id is one of its point and its worker.
	Worker  int32
	Chunks  []Chunk
	Rows    []Row
	Samples []Sample
	Marks   []Mark
}

// In Parquet the number of a worker is in the upper bits of an id, so that ids are
// unique within a point and its requests are joined to their chunks by nothing else.
// Those of worker 0 are as they are.
const workerShift = 40

// globalID is an id of a worker's own among those of all workers.
func globalID(worker int32, id int64) int64 { return id + int64(worker)<<workerShift }

// splitID is the worker of a global id, and the id that it gave itself.
func splitID(global int64) (worker int32, id int64) {
	if global < 0 { // none that was ever written
		return 0, global
	}
	return int32(global >> workerShift), global & (1<<workerShift - 1)
}

// part identifies the load and the worker that a frame has records of. Within one part ids are
// unique.
type part struct{ point, worker int32 }

func (f *Frame) partKey() part { return part{f.Point, f.Worker} }

// less orders parts by point, then by worker.
func (p part) less(q part) bool {
	return p.point < q.point || p.point == q.point && p.worker < q.worker
}
