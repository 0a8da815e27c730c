package serve

import (
	"fmt"
	"math/bits"
	"sync/atomic"
	"time"
)

// Started is the first line that a server writes for the program that started it.
type Started struct {
	URL   string `json:"url"`
	About string `json:"about"`
}

// Stats holds the counts of a server since its start. It is the last line for the program that
// started it.
type Stats struct {
	Requests int64 `json:"requests"` // to the generation routes
	Refused  int64 `json:"refused"`  // of them, answered with an error at once
	Active   int64 `json:"-"`        // answers under way
	Aborted  int64 `json:"aborted"`  // whose client left first
	Tokens   int64 `json:"tokens"`   // written, of answers that have ended
	Events   int64 `json:"events"`   // token events written
	Short    int64 `json:"short"`    // writes that a socket did not take at once
	Late     Late  `json:"late"`
}

// Late holds the delays with which token events were written, compared with the engine's times.
// They are the latency that a server adds to the latencies that were set. Values are upper limits,
// at most 1/16 too high.
type Late struct {
	P50 time.Duration `json:"p50_ns"`
	P99 time.Duration `json:"p99_ns"`
	Max time.Duration `json:"max_ns"`
}

func (l Late) String() string {
	ms := func(d time.Duration) float64 { return float64(d) / 1e6 }
	return fmt.Sprintf("p50 %.2f ms, p99 %.2f ms, max %.2f ms", ms(l.P50), ms(l.P99), ms(l.Max))
}

// String is the statement for the end of a run.
func (s Stats) String() string {
	return fmt.Sprintf("mock: %d requests (%d refused, %d aborted), %d tokens in %d events, %d short writes; events late by %s",
		s.Requests, s.Refused, s.Aborted, s.Tokens, s.Events, s.Short, s.Late)
}

// Stats may be called at any time.
func (s *Server) Stats() Stats {
	c := &s.stats
	return Stats{
		Requests: s.requests.Load(),
		Refused:  c.refused.Load(),
		Active:   c.active(),
		Aborted:  c.aborted.Load(),
		Tokens:   c.tokens.Load(),
		Events:   c.late.n.Load(),
		Short:    c.short.Load(),
		Late:     Late{c.late.quantile(0.50), c.late.quantile(0.99), time.Duration(c.late.most.Load())},
	}
}

type stats struct {
	begun, ended, refused, aborted, tokens, short atomic.Int64
	late                                          histogram
}

// active returns the number of answers in progress.
func (c *stats) active() int64 {
	ended := c.ended.Load() // before begun, so that it is never negative
	return c.begun.Load() - ended
}

// histogram counts durations in buckets of which 16 make a factor of two. It
// has one writer and any number of readers.
type histogram struct {
	n, most atomic.Int64
	buckets [64 * 16]atomic.Int64
}

func (h *histogram) observe(ns int64) {
	ns = max(ns, 0)
	h.buckets[bucketIndex(ns)].Add(1)
	h.n.Add(1)
	if ns > h.most.Load() {
		h.most.Store(ns)
	}
}

// bucketIndex is where ns is counted: exact below 16, then by its five leading bits.
func bucketIndex(ns int64) int {
	shift := max(bits.Len64(uint64(ns))-5, 0)
	return shift<<4 + int(ns>>shift)
}

// bucketLimit is the largest value of a bucket.
func bucketLimit(b int) int64 {
	if b < 32 {
		return int64(b)
	}
	shift := b>>4 - 1
	return (int64(b&15+16)+1)<<shift - 1
}

func (h *histogram) quantile(p float64) time.Duration {
	rank := int64(p * float64(h.n.Load()))
	for b := range h.buckets {
		if rank -= h.buckets[b].Load(); rank < 0 {
			return time.Duration(min(bucketLimit(b), h.most.Load()))
		}
	}
	return time.Duration(h.most.Load())
}
