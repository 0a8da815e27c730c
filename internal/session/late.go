package session

import "pitot/internal/results/record"

// late records what a client records that is late by a fixed time. It sends each request that much
// after it was due, and reads each answer that much after it came.
type late struct {
	record.Sink
	by int64 // nanoseconds
}

// Chunk implements [record.Sink].
func (l *late) Chunk(c record.Chunk) {
	c.T, c.Earliest = c.T+l.by, c.Earliest+l.by
	l.Sink.Chunk(c)
}

// Done implements [record.Sink].
func (l *late) Done(r *record.Row) {
	x := *r
	for _, at := range []*int64{&x.Sent, &x.Headers, &x.FirstEvent, &x.FirstToken, &x.FirstAnswer, &x.LastToken, &x.Done} {
		if *at != record.Unset {
			*at += l.by
		}
	}
	l.Sink.Done(&x)
}
