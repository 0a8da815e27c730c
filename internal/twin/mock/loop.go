package mock

import (
	"sync"
	"time"

	"pitot/internal/clock"
	"pitot/internal/twin"
)

// message is what connections tell the engine's goroutine.
type message struct {
	kind kind
	st   *stream
}

type kind uint8

const (
	admit   kind = iota // the stream is there; its job follows
	add                 // give its job to the engine
	abort               // its client has gone
	release             // its stall is over
	stop                // the server ends
)

// inbox is the way into the engine's goroutine; it never blocks a sender.
type inbox struct {
	mu   sync.Mutex
	in   []message
	wake chan struct{}
}

func (b *inbox) put(m ...message) {
	b.mu.Lock()
	b.in = append(b.in, m...)
	b.mu.Unlock()
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// take gives all messages; the slice of the last call is used again.
func (b *inbox) take(old []message) []message {
	b.mu.Lock()
	defer b.mu.Unlock()
	got := b.in
	b.in = old[:0]
	return got
}

// maxWait bounds one wait of an engine that has nothing to do.
const maxWait = int64(time.Hour)

// loop is the engine's goroutine: inbox, step, wait, write.
func (s *Server) loop() {
	defer close(s.stopped)
	defer s.alarm.Close()
	grain := max(int64(s.cfg.Grain), 0)
	var messages []message
	wrote := int64(-1 << 62) // when emissions were last written
	for {
		clear(messages)
		messages = s.inbox.take(messages)
		now := clock.Now()
		for _, m := range messages {
			if m.kind == stop {
				s.drop()
				return
			}
			s.handle(now, m)
		}
		step := s.cfg.Engine.Step(now)
		if step.Idle && len(step.Out) == 0 {
			until := min(max(step.End, wrote+grain), now+maxWait)
			s.alarm.Wait(until, s.inbox.wake)
			continue
		}
		for !s.alarm.Wait(step.End, nil) {
		}
		wrote = clock.Now()
		if until := s.frozen(wrote); until > wrote {
			s.alarm.Wait(until, nil)
		}
		for _, e := range step.Out {
			s.deliver(e)
		}
	}
}

func (s *Server) handle(now int64, m message) {
	st := m.st
	switch m.kind {
	case admit:
		s.jobs[st.id] = st
	case add:
		if !st.ended {
			s.cfg.Engine.Add(now, twin.Job{ID: st.id, Prompt: st.ask.prompt, Output: st.ask.output})
		}
	case abort:
		st.end(true)
	case release:
		held := st.held
		st.held, st.holding = nil, false
		for _, e := range held {
			s.deliver(e)
		}
	}
}

// deliver hands one emission to its stream, unless something goes wrong there.
func (s *Server) deliver(e twin.Emission) {
	st := s.jobs[e.ID]
	if st == nil {
		return
	}
	if !e.Role && !st.past && st.sent >= st.ask.output/2 {
		st.past = true
		for _, f := range st.faults {
			if row := faultRow(f.Name); row.when == inside && !st.ended {
				row.apply(st, f)
			}
		}
	}
	switch {
	case st.ended:
	case st.holding:
		st.held = append(st.held, e)
	default:
		st.emit(e)
	}
}

// drop ends what is still there when the server ends.
func (s *Server) drop() {
	for _, st := range s.jobs {
		st.end(true)
	}
}
