package session

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"pitot/internal/loadgen"
	"pitot/internal/metrics"
	"pitot/internal/results/record"
	"pitot/internal/telemetry"
	"pitot/internal/telemetry/scrape"
)

// tap passes records on and keeps a little for the live view.
type tap struct {
	record.Sink
	chunks     atomic.Int64
	mu         sync.Mutex
	ok, failed int64
	ttft, tpot ring
	sent       reused
}

// ring keeps the latest values.
type ring struct {
	v [128]int64
	n int
}

func (r *ring) push(v int64) { r.v[r.n%len(r.v)] = v; r.n++ }

func (r *ring) median() time.Duration {
	k := min(r.n, len(r.v))
	if k == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(r.v[:k]))
	return time.Duration(s[(k-1)/2])
}

func newTap(s record.Sink) *tap { return &tap{Sink: s, sent: reused{all: true}} }

// Chunk implements [record.Sink].
func (t *tap) Chunk(c record.Chunk) {
	t.chunks.Add(1)
	t.Sink.Chunk(c)
}

// Done implements [record.Sink].
func (t *tap) Done(r *record.Row) {
	t.note(r)
	t.Sink.Done(r)
}

// note keeps a little of a request.
func (t *tap) note(r *record.Row) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch r.Outcome {
	case record.OK:
		t.ok++
		l := metrics.LatencyOf(r, new(metrics.Events)) // the row alone: it may take the first event for one token
		if ns, is := l.TTFT(metrics.Response, r.Done); is == metrics.Known {
			t.ttft.push(int64(ns))
		}
		if ns, is := l.TPOT(r.Done); is == metrics.Known {
			t.tpot.push(int64(ns))
		}
	case record.Failed:
		t.failed++
	}
	t.sent.keep(r)
}

// reporting is a world that tells how the load goes on.
type reporting struct {
	loadgen.World
	core *loadgen.Core
	tap  *tap
	told *scrape.Watch
	to   Progress
	next int64
	sent int64
}

const reportEvery = int64(250 * time.Millisecond)

// Do implements [loadgen.World].
func (r *reporting) Do(a loadgen.Action) {
	if a.Kind == loadgen.Start {
		r.sent++
	}
	r.World.Do(a)
}

// Wait implements [loadgen.World]: it wakes up now and then to report.
func (r *reporting) Wait(ctx context.Context, until int64) []loadgen.Event {
	for {
		if now := r.Now(); now >= r.next {
			r.next = now + reportEvery
			r.reportStatus(now)
		}
		events := r.World.Wait(ctx, min(until, r.next))
		if len(events) > 0 || ctx.Err() != nil || r.Now() >= until {
			return events
		}
	}
}

func (r *reporting) reportStatus(now int64) {
	t0, t1 := r.core.MeasuredWindow()
	s := Status{
		At: time.Duration(now), T0: time.Duration(t0), T1: time.Duration(t1),
		Sent: r.sent, InFlight: int64(r.core.InFlight()), Held: int64(r.core.Held()), Chunks: r.tap.chunks.Load(),
	}
	if t1 == loadgen.Never || r.core.IsCounting() && now < t1 {
		s.T1 = -1
	}
	switch {
	case now < t0:
		s.Phase = "warm-up"
	case now < t1:
		s.Phase = "measuring"
	default:
		s.Phase = "finishing"
	}
	r.tap.mu.Lock()
	s.OK, s.Failed, s.TTFT, s.TPOT = r.tap.ok, r.tap.failed, r.tap.ttft.median(), r.tap.tpot.median()
	r.tap.mu.Unlock()
	if x, ok := r.told.Latest(telemetry.Waiting); ok {
		s.Waiting = &x
	}
	if x, ok := r.told.Latest(telemetry.KVUse); ok {
		s.KVUse = &x
	}
	r.to.Update(s)
}
