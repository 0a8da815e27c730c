// Package workload is what is asked: contents, lengths, sessions.
//
// A Source is pure in (seed, index, earlier answers): asked twice, it gives
// the same request, so that a run can be done again and a virtual run asks
// what a real one would.
package workload

import "pitot/internal/workload/seed"

// Unknown is a length in tokens that the workload does not know.
const Unknown = -1

// Request is one thing to ask.
type Request struct {
	ID       int64
	Messages []Message // at least one
	Input    int       // planned prompt tokens, Unknown if not known
	Output   int       // tokens to ask for at most, Unknown leaves it to the server
	Ends     int       // tokens at which a simulated model ends the answer by itself, 0 where it takes Output
	Exact    bool      // hold the engine to Output tokens where it can be (ignore_eos, min_tokens)
	Class    string    // class for reports, "" for one by length
	Session  int64     // Unknown if none
	Turn     int32     // in the session, from 0
	Turns    int32     // requests that its session has in all, 0 where that is not known
	History  int       // planned tokens of the prompt that were asked or answered before in its session
	Body     []byte    // JSON object merged over the API's body, nil if none
}

// Message is one message of a chat; completion APIs send the texts of all
// messages one after the other.
type Message struct {
	Role     string // "system", "user", "assistant"
	Segments []Segment
}

// NewMessage returns a message of the given segments.
func NewMessage(role string, segments ...Segment) Message { return Message{role, segments} }

// TextMessage returns a message of literal text.
func TextMessage(role, text string) Message { return NewMessage(role, Segment{Text: text}) }

// Segment is a stretch of a prompt: literal text, or Words generated words
// that depend on Seed alone. Equal segments are equal text, so a simulated
// engine can hash them without rendering them.
type Segment struct {
	Text  string
	Seed  uint64
	Words int
	// Served says that the visible answer to Item, an earlier one of the same session,
	// stands here as the server gave it. What else the segment says is what was planned
	// for it, and stands in its place where no answer is known.
	Served bool
	Item   int64
}

// WordSegment returns generated words that are drawn from a stream of a nonce.
func WordSegment(nonce, stream, index uint64, words int) Segment {
	return Segment{Seed: seed.At(nonce, stream, index), Words: words}
}

// Source gives the requests of a point. Items 0, 1, 2, … come by themselves, as
// arrivals or as what a user asks next. Items that follow others, such as the
// turns of a conversation, have numbers of their own.
type Source interface {
	At(item int64) (Request, error)
}
