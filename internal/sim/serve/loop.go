package serve

import (
	"math"
	"sync"
	"time"

	"pitot/internal/clock"
	"pitot/internal/sim"
	"pitot/internal/sim/serve/dialect"
)

// message is a message from a connection to the engine's goroutine.
type message struct {
	kind kind
	st   *stream
	page chan<- func() []byte
}

type kind uint8

const (
	admit   kind = iota // the stream is there; its jobs follow
	add                 // give its jobs to the engine
	abort               // its client has gone
	release             // its stall is over
	observe             // someone reads the metrics
	stop                // the server ends
)

// inbox is the way into the engine's goroutine; it never blocks a sender.
type inbox struct {
	mu   sync.Mutex
	in   []message
	wake chan struct{}
}

func (b *inbox) post(m ...message) {
	b.mu.Lock()
	b.in = append(b.in, m...)
	b.mu.Unlock()
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// drain gives all messages; the slice of the last call is used again.
func (b *inbox) drain(old []message) []message {
	b.mu.Lock()
	defer b.mu.Unlock()
	got := b.in
	b.in = old[:0]
	return got
}

// scale is the engine's clock: 0 at start, and factor times as fast as the
// real one.
type scale struct {
	start  int64
	factor float64
}

// engineTime is the engine's time at a real one.
func (c scale) engineTime(real int64) int64 {
	if c.factor == 1 {
		return real - c.start
	}
	return int64(float64(real-c.start) * c.factor)
}

// realTime is the first real time at which the engine's clock has come to at.
func (c scale) realTime(at int64) int64 {
	switch {
	case at == math.MaxInt64:
		return at
	case c.factor == 1:
		return c.start + at
	}
	real := c.start + int64(float64(at)/c.factor)
	for c.engineTime(real) < at {
		real++
	}
	return real
}

// maxWait bounds one wait of an engine that has nothing to do.
const maxWait = int64(time.Hour)

// runEngine is the engine's goroutine: inbox, step, wait, write.
func (s *Server) runEngine() {
	defer close(s.stopped)
	defer s.alarm.Close()
	grain := max(int64(s.cfg.Grain), 0)
	var messages []message
	wrote := int64(-1 << 62) // when emissions were last written
	for {
		clear(messages)
		messages = s.inbox.drain(messages)
		now := clock.Now()
		for _, m := range messages {
			if m.kind == stop {
				s.abortJobs()
				return
			}
			s.handle(now, m)
		}
		if s.isWedged(now) {
			s.alarm.Wait(now+maxWait, s.inbox.wake)
			continue
		}
		at := s.scale.engineTime(now)
		step := s.cfg.Engine.Step(at)
		if d, ok := s.cfg.Engine.(sim.Deserted); ok {
			s.deserted.Store(!d.Serves(at))
		}
		end := s.scale.realTime(step.End)
		if step.Idle && len(step.Out) == 0 {
			until := min(max(end, wrote+grain), now+maxWait, s.wedgeAt)
			s.alarm.Wait(until, s.inbox.wake)
			continue
		}
		for !s.alarm.Wait(end, nil) {
		}
		wrote = clock.Now()
		if until := s.freezeEnd(wrote); until > wrote {
			s.alarm.Wait(until, nil)
		}
		for _, e := range step.Out {
			if c := s.jobs[e.ID]; c != nil && e.Finish == sim.Lost {
				s.failChoice(c)
			} else if c != nil {
				s.meter.countEmission(s, c, e, wrote)
				s.deliver(c, e)
			}
		}
		s.meter.endStep()
	}
}

func (s *Server) handle(now int64, m message) {
	st := m.st
	switch m.kind {
	case admit:
		for i := range st.choices {
			c := &st.choices[i]
			s.jobs[c.job.ID] = c
		}
	case add:
		if st.ended {
			return
		}
		// Reading the request took time that a real server takes too, and that
		// the engine has in its latencies: it counts from the arrival.
		if st.arrived > 0 {
			now = min(now, st.arrived)
		}
		for i := range st.choices {
			s.cfg.Engine.Add(s.scale.engineTime(now), st.choices[i].job)
		}
	case abort:
		st.end(true)
	case release:
		st.holding = false
		for i := range st.choices {
			c := &st.choices[i]
			held := c.held
			c.held = nil
			for _, e := range held {
				if !st.ended {
					s.deliver(c, e)
				}
			}
		}
	case observe:
		m.page <- s.metricsPage()
	}
}

// deliver hands one emission to its choice, unless something goes wrong there.
func (s *Server) deliver(c *choice, e sim.Emission) {
	st := c.st
	if !e.Role && !st.past && c.sent >= c.job.Output/2 {
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
		c.held = append(c.held, e)
	default:
		st.writeEmission(c, e)
	}
}

// failChoice ends the answer of a choice whose engine has gone, as a router does: a stream
// breaks off, what has not begun is an error.
func (s *Server) failChoice(c *choice) {
	st := c.st
	if st.ended {
		return
	}
	st.noteFault("lost")
	st.last = true
	if !st.streamed || st.waits {
		r := s.dialect.Refuse(dialect.NoEngine)
		st.truth.Status, st.truth.DoneNS = r.Status, clock.Now()
		st.conn.writeReply(&r, st.last, false)
	}
	st.end(false)
}

// abortJobs ends what is still there when the server ends.
func (s *Server) abortJobs() {
	for _, c := range s.jobs {
		c.st.end(true)
	}
}
