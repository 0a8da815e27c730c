package loadgen

import (
	"slices"
	"sync"

	"pitot/internal/results/record"
	"pitot/internal/sim"
	"pitot/internal/workload"
)

// history holds the answers of sessions that go on, because the prompts of their later turns repeat
// them.
type history struct {
	mu       sync.Mutex
	sessions map[int64]map[int64]answer // by the request that the session began with, and by item
	asked    map[int64]*chained         // what was asked last, by the same
}

// answer is the answer to one item.
type answer struct {
	text   string // as a client hands it back; "" in the virtual world, which has no text
	tokens int    // visible ones, [workload.Unknown] if they were not counted
}

// newHistory is that of a source, nil where nothing in it follows anything.
func newHistory(src workload.Source) *history {
	if _, ok := src.(workload.Sessions); !ok {
		return nil
	}
	return &history{sessions: map[int64]map[int64]answer{}, asked: map[int64]*chained{}}
}

// noteAnswer keeps what an item was answered, as its row tells it.
func (h *history) noteAnswer(session, item int64, r *record.Row, text []byte) {
	if h == nil || session == record.Unset || r.Outcome != record.OK {
		return
	}
	a := answer{text: string(text), tokens: workload.Unknown}
	if r.CompletionTokens >= 0 {
		a.tokens = int(r.CompletionTokens-max(r.ReasoningTokens, 0)) / int(max(r.Choices, 1))
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	of := h.sessions[session]
	if of == nil {
		of = map[int64]answer{}
		h.sessions[session] = of
	}
	of[item] = a
}

// forget drops a session that is over.
func (h *history) forget(session int64) {
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.sessions, session)
	delete(h.asked, session)
}

// chainContent has what is asked keep what was worked out of what was asked before in its session.
func (h *history) chainContent(session int64, c sim.Content) sim.Content {
	now, ok := c.(*content)
	if h == nil || session == record.Unset || !ok {
		return c
	}
	kept := now.reuseHashes(h.asked[session])
	h.asked[session] = kept
	return kept
}

// fillRequest puts what was answered into a request, where it stands for what was served, and
// takes the difference from what was planned into its length. With text the answers
// themselves stand there: how many tokens a server makes of them when it reads them
// again it alone knows. Without it segments stand there that a twin knows its own
// answers by.
func (h *history) fillRequest(r *workload.Request, session int64, text bool) {
	if h == nil || session == record.Unset {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	of := h.sessions[session]
	longer, read := 0, false // than planned; text is read again
	messages := r.Messages
	for i := range messages {
		segments := messages[i].Segments
		if !slices.ContainsFunc(segments, func(s workload.Segment) bool { return s.Served }) {
			continue
		}
		segments = slices.Clone(segments)
		for k := range segments {
			s := &segments[k]
			a, ok := of[s.Item]
			if !s.Served || !ok {
				s.Served = false // what was planned stands in its place
				continue
			}
			if a.tokens >= 0 {
				longer += a.tokens - s.Words
			}
			if text {
				*s, read = workload.Segment{Text: a.text}, true
			} else if a.tokens >= 0 {
				s.Words = a.tokens
			}
		}
		if &messages[0] == &r.Messages[0] {
			messages = slices.Clone(messages)
		}
		messages[i].Segments = segments
	}
	r.Messages = messages
	switch {
	case read:
		r.Input = workload.Unknown
	case r.Input >= 0:
		r.Input = max(r.Input+longer, 1)
	}
	if r.History >= 0 {
		r.History = max(r.History+longer, 0)
	}
}
