package export

import (
	"cmp"
	"iter"
	"math"
	"slices"

	"pitot/internal/metrics"
	"pitot/internal/results/metric"
	"pitot/internal/results/record"
	"pitot/internal/results/result"
	"pitot/internal/results/spill"
)

// cohort holds what other tools know of a point: the requests due in its window, each with the gaps
// between its events. Times are nanoseconds since the point's origin.
type cohort struct {
	index    int
	point    *result.Point
	t0, t1   int64     // the window
	requests []request // where few are kept, see gathering.earliest; else they are in sorted
	gaps     []int64   // of all requests; each has a stretch of it

	n      int                    // of any request, also those that are not kept
	sorted *spill.Sorted[request] // in place of requests: they may be too many for memory
	store  *spill.Store           // of them
}

// inOrderSent yields the requests in the order in which they were sent. One is not to be
// kept longer than until the next.
func (c *cohort) inOrderSent(yield func(*request) bool) {
	if c.sorted != nil {
		c.sorted.All()(yield)
		return
	}
	for i := range c.requests {
		if !yield(&c.requests[i]) {
			return
		}
	}
}

// request holds what is kept of one request.
type request struct {
	measured                          metrics.Request // by Pitot's definitions
	id                                int64
	due, eligible, ready, sent        int64
	first, last, done                 int64
	inputPlanned, input, cached       int32
	events                            int32
	status                            int32
	from, to                          int64 // its gaps, one between each two events
	session                           int64 // below 0 where it stands alone
	turn, turns, history              int32 // of it; history in tokens
	follows                           bool  // another request of its session
	outcome                           record.Outcome
	stream                            bool
	class, finish, errorClass, detail string
}

// wasAnswered says that it was answered to its end.
func (q *request) wasAnswered() bool { return q.outcome == record.OK }

// endTime is when its answer was there.
func (q *request) endTime() int64 {
	if q.stream && q.last >= 0 {
		return q.last
	}
	return q.done
}

// inputTokens are those the server counted, else those that were planned.
func (q *request) inputTokens() int32 {
	if q.input >= 0 {
		return q.input
	}
	return max(q.inputPlanned, 0)
}

// outputTokens are those the server counted, else those of its events; known
// is false where events are all there is to count.
func (q *request) outputTokens() (n int32, known bool) {
	if n := q.measured.OutputTokens(); n >= 0 {
		return n, true
	}
	return q.events, false
}

// readCohorts gives a run's points one after the other. A cohort is valid until
// the next one. Gaps take eight bytes each and are kept once; without
// withGaps there are none.
func readCohorts(run *result.Run, dir string, withGaps bool) iter.Seq2[*cohort, error] {
	g := gathering{withGaps: withGaps}
	return g.readPoints(run, dir)
}

// eachCohort hands over a run's points one after the other, with the gaps of their requests. That
// there is none is an error.
func eachCohort(run *result.Run, dir string, take func(*cohort) error) error {
	n := 0
	for c, err := range readCohorts(run, dir, true) {
		if err == nil {
			err = take(c)
		}
		if err != nil {
			return err
		}
		n++
	}
	if n == 0 {
		return errNothing
	}
	return nil
}

func (g *gathering) readPoints(run *result.Run, dir string) iter.Seq2[*cohort, error] {
	return func(yield func(*cohort, error) bool) {
		g.run, g.at, g.gatherer = run, -1, metrics.NewGatherer(nil)
		if g.store == nil && g.earliest == 0 {
			g.store = spill.New(dir, sortMemory)
			defer g.store.Close()
		}
		frames := record.Frames(dir)
		if g.rowsAlone {
			frames = record.Rows(dir)
		}
		for f, err := range frames {
			if err != nil {
				yield(nil, unreadableError(err))
				return
			}
			if f.Point < 0 || int(f.Point) >= len(run.Points) {
				continue // of no point that there is
			}
			if int(f.Point) != g.at && len(f.Rows)+len(f.Chunks) > 0 {
				if g.at >= 0 && !g.yieldCohort(yield) {
					return
				}
				g.beginPoint(int(f.Point))
			}
			g.streams.Add(&f)
		}
		if g.at >= 0 && !g.yieldCohort(yield) {
			return
		}
		if err := g.store.Err(); err != nil { // what was put aside could not be read again
			yield(nil, &asideError{err})
		}
	}
}

// asideError is of what was put aside in a file, not of the records.
type asideError struct{ error }

func (e *asideError) Unwrap() error { return e.error }

// gathering puts the cohort of a point together.
type gathering struct {
	run        *result.Run
	withGaps   bool
	everything bool         // requests outside the window too
	rowsAlone  bool         // without the chunks, which cannot be read
	earliest   int          // keep so many at most, those that were due first; 0 for all
	store      *spill.Store // for the requests, where not only so many are kept
	at         int          // index of the point, -1 before the first
	c          cohort
	gatherer   *metrics.Gatherer
	streams    record.Join[flight]
}

// flight holds what is kept of a request until its row comes.
type flight struct {
	last   int64
	gaps   []int64
	stream metrics.Stream
}

func (g *gathering) beginPoint(point int) {
	g.at = point
	if g.c.sorted != nil {
		g.c.sorted.Free()
	}
	g.c = cohort{index: point, requests: g.c.requests[:0], gaps: g.c.gaps[:0]}
	if g.store != nil {
		g.c.sorted, g.c.store = spill.NewSorted(g.store, requestCodec()), g.store
	}
	g.streams = record.Join[flight]{Chunk: g.takeChunk, Row: g.takeRow, Reset: func(fl *flight) {
		fl.gaps, fl.last = fl.gaps[:0], 0
		fl.stream.Reset()
	}}
	if point < len(g.run.Points) {
		g.c.point = &g.run.Points[point]
		g.c.t0, g.c.t1 = windowOf(g.c.point)
		if icl := g.c.point.Metrics.SummaryOf(metric.ICL); g.withGaps && icl != nil {
			// About as many as will come: growing would hold them twice.
			g.c.gaps = slices.Grow(g.c.gaps, int(min(max(icl.N, 0), 1<<31)*51/50)+1024)
		}
	}
}

// windowOf gives a point's, as the records count time.
func windowOf(p *result.Point) (t0, t1 int64) {
	t0 = int64(math.Round(p.Seconds.Warmup * 1e9))
	return t0, t0 + int64(math.Round(p.Seconds.Window*1e9))
}

func (g *gathering) yieldCohort(yield func(*cohort, error) bool) bool {
	if g.c.point == nil { // records of a point that the result does not know
		return true
	}
	return yield(&g.c, nil)
}

// byDue orders requests by when they were due.
func byDue(a, b request) int { return cmp.Or(cmp.Compare(a.due, b.due), cmp.Compare(a.id, b.id)) }

// lostWithWorker is [record.Row.LostWithWorker].
func (q *request) lostWithWorker() bool {
	return q.outcome == record.Unsent && q.errorClass == record.ErrWorkerLost
}

// sentOrDue orders requests that were never sent among the others.
func (q *request) sentOrDue() int64 {
	if q.sent >= 0 {
		return q.sent
	}
	return q.due
}

func (g *gathering) takeChunk(fl *flight, c *record.Chunk) {
	if fl.stream.Count > 0 && g.withGaps {
		fl.gaps = append(fl.gaps, max(0, c.T-fl.last))
	}
	fl.last = c.T
	g.gatherer.Chunk(&fl.stream, c)
}

func (g *gathering) takeRow(r *record.Row, fl *flight) {
	if r.LostWithWorker() && !g.everything {
		return // no tool has a word for what was never offered
	}
	if g.everything && (r.Due >= 0 || g.earliest == 0) || r.Due >= g.c.t0 && r.Due < g.c.t1 {
		q := request{
			measured: g.gatherer.Request(&fl.stream, r),
			id:       r.ID, due: r.Due, eligible: r.Eligible, ready: r.Ready, sent: r.Sent,
			first: r.FirstToken, last: r.LastToken, done: r.Done,
			inputPlanned: r.InputPlanned, input: r.PromptTokens, cached: r.CachedTokens,
			events: int32(fl.stream.Count), status: r.Status,
			session: r.Session, turn: r.Turn, turns: r.Turns, history: r.History, follows: r.After != record.Unset,
			from: int64(len(g.c.gaps)), outcome: r.Outcome, stream: r.Stream,
			class: r.Class, finish: r.Finish, errorClass: r.Error, detail: r.Detail,
		}
		if g.rowsAlone {
			q.events = r.Chunks
		}
		if q.wasAnswered() { // of others no tool counts the gaps
			g.c.gaps = append(g.c.gaps, fl.gaps...)
		}
		q.to = int64(len(g.c.gaps))
		if g.c.n++; g.c.sorted != nil {
			g.c.sorted.Add(&q)
			return
		}
		g.c.requests = append(g.c.requests, q)
		if n := g.earliest; n > 0 && len(g.c.requests) >= 2*n {
			slices.SortFunc(g.c.requests, byDue)
			g.c.requests = g.c.requests[:n]
		}
	}
}

// errorText returns what went wrong with a request. It returns "" if nothing did.
func (q *request) errorText() string {
	switch {
	case q.wasAnswered():
		return ""
	case q.detail == "":
		return q.errorClass
	}
	return q.errorClass + ": " + q.detail
}
