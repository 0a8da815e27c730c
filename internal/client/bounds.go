package client

import (
	"fmt"
	"pitot/internal/client/api"
	"sync/atomic"
)

// An answer is bounded by what was asked for: a broken or hostile server may send for
// ever, and must not fill this machine's memory or disk. The bounds are far above what
// an honest answer takes, so that none is lost:
// several events for each token (some servers send one for each letter),
// reasoning that the limit of tokens does not count, candidates of each token
// with their probabilities, the prompt repeated with its own.
//
// docs/reference/failures.md says the same to users.
const (
	freeEvents    = 32 << 10 // events of any answer
	eventsAToken  = 8        // and for each token that was asked for
	freeBytes     = 16 << 20 // bytes of any answer
	bytesAToken   = 4 << 10  // and for each token
	bytesAChoice  = 512      // for each candidate of a token
	bytesRepeated = 64       // for each byte of the request

	// unlimited is the assumed limit of tokens of an answer whose length is left to
	// the server: no model writes more.
	unlimited = 256 << 10
)

const (
	// maxErrorBody is the number of bytes kept of an answer that is not a success.
	maxErrorBody = 16 << 10
	// maxWhole bounds an answer that is not streamed: it is held until its end.
	maxWhole = 64 << 20
	// maxFetch bounds the answer to a request outside of the measurement.
	maxFetch = 16 << 20
	// maxHeader bounds the headers of an answer, those of interim answers
	// included.
	maxHeader = 64 << 10
)

// bounds are the limits of one answer.
type bounds struct {
	tokens  int64 // of all choices; 0 where that is left to the server
	choices int64
	events  int64
	bytes   int64 // as they came, and again when decompressed
}

// boundsOf gives the limits of the answer to a request of so many bytes.
func boundsOf(a api.Asked, request int64) bounds {
	const most = 1 << 31 // keeps every product far from overflow
	choices := min(max(a.Choices, 1), most>>16)
	candidates := min(max(a.Candidates, 0), most>>16)
	tokens := min(max(a.Tokens, 0), most)
	b := bounds{tokens: tokens * choices, choices: choices}
	if tokens == 0 {
		tokens = unlimited
	}
	b.events = freeEvents + eventsAToken*tokens*choices
	b.bytes = freeBytes + bytesRepeated*(1+candidates)*min(request, most) + min(tokens*choices, most)*(bytesAToken+bytesAChoice*candidates)
	return b
}

// isBelievable says whether so many tokens can be in an answer with so many
// bytes of text: no more than were asked for, or else no more than there are
// bytes, as no visible token is shorter than one. A sixteenth and a few more
// are let pass: some count the tokens that open or end an answer.
func (b *bounds) isBelievable(tokens, text int64) bool {
	most := max(b.tokens, text)
	return tokens <= most+most/16+16
}

// Memory bounds what all answers of a run together may hold: whole bodies and unfinished events.
// The exchanges of a run share it.
type Memory struct {
	limit int64
	used  atomic.Int64
}

// NewMemory gives a budget of so many bytes.
func NewMemory(limit int64) *Memory { return &Memory{limit: limit} }

// Used returns the number of bytes held now.
func (m *Memory) Used() int64 { return m.used.Load() }

// reserve takes n bytes of the budget, or fails if it is used up. A nil Memory is
// unlimited.
func (m *Memory) reserve(n int64) bool {
	if m == nil {
		return true
	}
	if m.used.Add(n) <= m.limit {
		return true
	}
	m.used.Add(-n)
	return false
}

// release gives n bytes back.
func (m *Memory) release(n int64) {
	if m != nil {
		m.used.Add(-n)
	}
}

// memoryError says that the budget is used up.
type memoryError struct{ limit int64 }

func (e *memoryError) Error() string {
	return fmt.Sprintf("the answers under way hold %d MiB, all that this client gives them", e.limit>>20)
}

// oversizedError is the error of an answer that exceeds one of its bounds.
func oversizedError(what string, limit int64) error {
	return &api.OversizedError{What: what, Limit: limit}
}
