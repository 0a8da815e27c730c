package session

import (
	"cmp"
	"encoding/binary"
	"iter"
	"maps"
	"math"
	"slices"

	"pitot/internal/config"
	"pitot/internal/loadgen"
	"pitot/internal/metrics"
	"pitot/internal/results/marks"
	"pitot/internal/results/record"
	"pitot/internal/results/result"
	"pitot/internal/results/spill"
	"pitot/internal/workload/arrival"
	"pitot/internal/workload/seed"
)

// A process that is killed leaves no rows of the requests that were under way.
// They were due all the same, so rows are made for them: cut when the records
// end. What is not known of them stays unset. They join the records, so that
// whoever reads the Parquet files finds every request that the result counts.

// maxID bounds the ids that are looked for.
const maxID = 1 << 30

// remains holds what the records of a point show of its requests.
type remains struct {
	dues    *spill.Sorted[known] // those that have a row, by id
	traces  map[int64]trace      // of requests without a row
	stream  bool                 // answers are streamed
	highest int64                // id seen
}

// known is when a request that has a row was due.
type known struct{ id, due int64 }

// dueRequest is a request that was due. Of one without a row that follows from the
// schedule, or is bounded by the others.
type dueRequest struct {
	known
	row bool
}

// trace holds what the chunks of one request show.
type trace struct {
	first, answer, last int64
	chunks              int32
}

// gatherRemains makes a pass over the records of one point. It gives what is left of each worker
// that is asked for, or of all together for [everyone]. The store has what may not fit into memory.
func gatherRemains(dir string, point int32, workers []int32, store *spill.Store) []*remains {
	var all []*remains
	joins := map[int32]*record.Join[trace]{}
	requests := make([]record.Join[trace], len(workers))
	for i, worker := range workers {
		m := newRemains(store)
		requests[i] = record.Join[trace]{
			Chunk: (*trace).addChunk,
			Row:   func(r *record.Row, _ *trace) { m.addRow(r) },
			Reset: func(t *trace) { *t = trace{} },
		}
		all, joins[worker] = append(all, m), &requests[i]
	}
	for f, err := range record.Frames(dir) {
		if err != nil {
			break // what can be read counts
		}
		if of := cmp.Or(joins[f.Worker], joins[everyone]); f.Point == point && of != nil {
			of.Add(&f)
		}
	}
	for i, m := range all {
		for id, t := range requests[i].Open() {
			if id >= 0 && id < maxID {
				m.traces[id] = *t
				m.highest = max(m.highest, id)
			}
		}
	}
	return all
}

func newRemains(store *spill.Store) *remains {
	return &remains{traces: map[int64]trace{}, stream: true, highest: -1, dues: spill.NewSorted(store, spill.Codec[known]{
		Key:    func(k *known) (int64, int64) { return k.id, 0 },
		Append: func(to []byte, k *known) []byte { return binary.AppendVarint(binary.AppendVarint(to, k.id), k.due) },
		Decode: func(from []byte, k *known) int {
			id, n := binary.Varint(from)
			due, more := binary.Varint(from[max(n, 0):])
			if n <= 0 || more <= 0 {
				return 0
			}
			*k = known{id, due}
			return n + more
		},
		Most: 2 * binary.MaxVarintLen64,
	})}
}

// everyone stands for all workers.
const everyone = -1

func (m *remains) addRow(r *record.Row) {
	if r.ID < 0 || r.ID >= maxID {
		return
	}
	if r.Due >= 0 {
		m.dues.Add(&known{r.ID, r.Due})
	}
	m.highest = max(m.highest, r.ID)
	if r.Outcome == record.OK {
		m.stream = r.Stream
	}
}

func (t *trace) addChunk(c *record.Chunk) {
	if t.chunks == 0 {
		t.first, t.answer = c.T, record.Unset
	}
	if t.answer < 0 && c.Kind != record.Reasoning {
		t.answer = c.T
	}
	t.last = c.T
	t.chunks++
}

// hasTrace says that chunks came of a request without a row.
func (m *remains) hasTrace(id int64) bool {
	_, ok := m.traces[id]
	return ok
}

// completeFrames are the frames of a run's records, and behind those of each point
// the rows of its requests that were under way when the run was killed.
func completeFrames(frames iter.Seq2[record.Frame, error], left map[int32][]record.Frame) iter.Seq2[record.Frame, error] {
	return func(yield func(record.Frame, error) bool) {
		points := slices.Sorted(maps.Keys(left))
		// before yields what is left of the points before one.
		before := func(point int32) bool {
			for len(points) > 0 && points[0] < point {
				of := left[points[0]]
				points = points[1:]
				for _, f := range of {
					if len(f.Rows) > 0 && !yield(f, nil) {
						return false
					}
				}
			}
			return true
		}
		for f, err := range frames {
			if err != nil { // the last: what came before it still counts
				if before(math.MaxInt32) {
					yield(f, err)
				}
				return
			}
			if len(f.Chunks)+len(f.Rows) > 0 && !before(f.Point) || !yield(f, nil) {
				return
			}
		}
		before(math.MaxInt32)
	}
}

// planOnce leaves of the marks that a journal repeats the first.
func planOnce(frames iter.Seq2[record.Frame, error]) iter.Seq2[record.Frame, error] {
	return func(yield func(record.Frame, error) bool) {
		head, points := false, map[int32]bool{}
		for f, err := range frames {
			f.Marks = slices.DeleteFunc(f.Marks, func(m record.Mark) (again bool) {
				switch m.Name {
				case marks.NameRun:
					again, head = head, true
				case marks.NamePoint:
					again, points[m.Point] = points[m.Point], true
				}
				return again
			})
			if !yield(f, err) {
				return
			}
		}
	}
}

// missingRows gives rows for requests that have none, by point: those that were under
// way when the run was killed, or lost with a worker. It sets the end of each window. Of a point
// that lost records it is not known which of them were under way: it gets none.
func (o *outline) missingRows(dir string, store *spill.Store) map[int32][]record.Frame {
	left := map[int32][]record.Frame{}
	for point, s := range o.setups {
		w, over := o.ends[point]
		// made makes rows of what is left of workers' records, with each worker's number.
		made := func(workers []int32, rows func(worker int32, m *remains) []record.Row) {
			for i, m := range gatherRemains(dir, point, workers, store) {
				f := record.Frame{Point: point, Rows: rows(workers[i], m)}
				if workers[i] != everyone {
					f.Worker = workers[i]
				}
				left[point] = append(left[point], f)
				m.dues.Free()
			}
		}
		of := max(s.Sharing, len(o.crews[point].Workers)) // one that was alone has a crew, and shared with none
		switch damaged := o.isDamaged(point); {
		case damaged && !over:
			s.T1 = max(min(s.T1, o.last[point]), s.T0)
		case over:
			s = endedSetup(s, w)
			if damaged {
				break
			}
			var gone []int32
			for i, x := range w.Workers {
				if x.Lost != nil {
					gone = append(gone, int32(i))
				}
			}
			if len(gone) > 0 {
				made(gone, func(i int32, m *remains) []record.Row {
					return m.withWorker(point, s, o.run.Seed, shareOf(s, o.run.Seed, point, int(i), len(w.Workers)), int64(w.Workers[i].Lost.SinceBegin()))
				})
			}
		case of > 0:
			var workers []int32
			for i := range of {
				workers = append(workers, int32(i))
			}
			t1 := int64(loadgen.Never)
			made(workers, func(i int32, m *remains) (rows []record.Row) {
				var end int64
				rows, end = m.underWay(point, s, o.run.Seed, o.last[point], shareOf(s, o.run.Seed, point, int(i), of))
				t1 = min(t1, end)
				return rows
			})
			s.T1 = t1
			s.Workers = crewOf(o.crews[point])
		default:
			made([]int32{everyone}, func(_ int32, m *remains) (rows []record.Row) {
				rows, s.T1 = m.underWay(point, s, o.run.Seed, o.last[point], func(int64) bool { return true })
				return rows
			})
		}
		o.setups[point] = s
	}
	return left
}

// shareOf says which ids are of one of so many workers.
func shareOf(s metrics.Setup, runSeed uint64, point int32, rank, of int) func(id int64) bool {
	if s.Load.Turns != nil {
		return func(id int64) bool { return id%int64(of) == int64(rank) }
	}
	return loadgen.Share{Rank: rank, Of: of, Seed: shareSeed(runSeed, point)}.Includes
}

// withWorker gives the rows of the requests of a window that were lost with their worker, which
// was last heard of at a time: those due by then, or of which something came, were under way;
// the others are lost with it, and nobody sent them in its place. Where requests follow answers
// what was yet to come is not known, and is none.
func (m *remains) withWorker(point int32, s metrics.Setup, runSeed uint64, mine func(id int64) bool, at int64) (rows []record.Row) {
	requests, ok := m.scheduledRequests(s, runSeed, point, s.T1, -1)
	if !ok {
		requests = m.unscheduledRequests(min(at, s.T1-1))
	}
	for q := range requests {
		if q.row || !mine(q.id) || q.due >= s.T1 && !m.hasTrace(q.id) {
			continue
		}
		r := record.BlankRow()
		r.ID, r.Point, r.Due, r.Done, r.Stream = q.id, point, q.due, max(at, q.due), m.stream
		if r.Outcome, r.Error, r.Detail = record.Unsent, record.ErrWorkerLost, "the worker that was to send it was lost before"; q.due <= at || m.hasTrace(q.id) {
			r.Outcome, r.Detail = record.Cut, "the worker that had it was lost"
			m.fillFromChunks(&r)
		}
		rows = append(rows, r)
	}
	return rows
}

// fillFromChunks puts into the row of a request what its chunks tell.
func (m *remains) fillFromChunks(r *record.Row) {
	if t, traced := m.traces[r.ID]; traced {
		r.FirstEvent, r.FirstToken, r.FirstAnswer, r.LastToken = t.first, t.first, t.answer, t.last
		r.Chunks, r.Arrivals = t.chunks, t.chunks
	}
}

// underWay gives the rows of the requests of a point that were under way when
// its records ended, and the end of the window for which all are known. Only those that are
// mine are made.
func (m *remains) underWay(point int32, s metrics.Setup, runSeed uint64, last int64, mine func(id int64) bool) (rows []record.Row, t1 int64) {
	t1 = max(min(s.T1, last), s.T0)
	requests, ok := m.scheduledRequests(s, runSeed, point, t1, -1)
	if !ok {
		requests = m.unscheduledRequests(last)
		latest := int64(record.Unset)
		for q := range requests {
			latest = max(latest, q.due)
		}
		if m.highest >= 0 {
			t1 = max(min(t1, latest+1), s.T0)
		}
	}
	// The count of requests may have been full before the records ended.
	if cohort := int64(0); s.Requests > 0 {
		for q := range requests {
			if q.due < s.T0 {
				continue
			}
			if cohort++; cohort > s.Requests {
				t1 = min(t1, q.due)
				break
			}
		}
	}
	for q := range requests {
		if q.row || !mine(q.id) || q.due >= t1 && !m.hasTrace(q.id) { // after the window it is not known whether it was asked
			continue
		}
		r := interruptedRow(q.id, point, q.due, last)
		r.Stream = m.stream
		if limit := s.Load.MaxInFlight; limit != nil && len(rows) >= *limit {
			r.Outcome = record.Unsent // first come, first served: so many were sent, the others held
		}
		if ok {
			m.fillFromChunks(&r)
		}
		rows = append(rows, r)
	}
	return rows, t1
}

// scheduledRequests yields the requests of an open loop up to a time, and at least those up
// to an id: when they were due follows from the seed. It fails when that is not
// what the rows say.
func (m *remains) scheduledRequests(s metrics.Setup, runSeed uint64, point int32, until, upTo int64) (_ iter.Seq[dueRequest], ok bool) {
	if s.Load.Rate == nil || s.Load.Turns != nil { // what follows an answer has no schedule
		return nil, false
	}
	schedule := func() (arrival.Process, error) {
		law, err := config.ReadArrivals(s.Load.Arrival)
		if err != nil {
			return nil, err
		}
		return law.NewProcess(*s.Load.Rate, arrivalSeed(runSeed, pairedWith(s.Stage, point)), s.T0)
	}
	if _, err := schedule(); err != nil {
		return nil, false
	}
	// each hands over a request and when its row says that it was due.
	each := func(do func(q dueRequest, says int64) bool) {
		a, err := schedule()
		if err != nil {
			return
		}
		id, due := int64(0), a.Next()
		more := func() bool { return (due < until || id <= upTo) && id < maxID && due != loadgen.Never }
		step := func(row bool, says int64) bool {
			goOn := do(dueRequest{known{id, due}, row}, says)
			id, due = id+1, a.Next()
			return goOn
		}
		for k := range m.dues.All() {
			for id < k.id && more() {
				if !step(false, due) {
					return
				}
			}
			if k.id == id && more() && !step(true, k.due) { // else it was recorded twice
				return
			}
		}
		for more() {
			if !step(false, due) {
				return
			}
		}
	}
	ok = true
	each(func(q dueRequest, says int64) bool {
		ok = says == q.due
		return ok
	})
	return func(yield func(dueRequest) bool) { each(func(q dueRequest, _ int64) bool { return yield(q) }) }, ok
}

// unscheduledRequests yields the requests of a load without a schedule, with when they were due
// as far as that is known: a request without a row was due at the latest when the
// next one was, and when its first token came. To take the latest makes no request
// seem to have been followed for longer than it was.
func (m *remains) unscheduledRequests(last int64) iter.Seq[dueRequest] {
	return func(yield func(dueRequest) bool) {
		from := int64(0)
		gap := func(to, next int64) bool { // yields those without a row before one
			dues := make([]int64, max(0, to-from))
			for id := to - 1; id >= from; id-- {
				if t, traced := m.traces[id]; traced {
					next = min(next, t.first)
				}
				dues[id-from] = next
			}
			for i, due := range dues {
				if !yield(dueRequest{known{from + int64(i), due}, false}) {
					return false
				}
			}
			from = max(from, to)
			return true
		}
		for k := range m.dues.All() {
			if k.id < from { // recorded twice
				continue
			}
			if !gap(k.id, k.due) || !yield(dueRequest{*k, true}) {
				return
			}
			from = k.id + 1
		}
		gap(m.highest+1, last)
	}
}

// interruptedRow is the row of a request whose end was not recorded.
func interruptedRow(id int64, point int32, due, last int64) record.Row {
	r := record.BlankRow()
	r.ID, r.Point, r.Due, r.Done = id, point, due, max(last, due)
	r.Outcome, r.Error, r.Detail = record.Cut, record.ErrInterrupted, "the run was killed while it was under way"
	return r
}

// pairedWith is the point whose lengths and due times a point has: its own, but for the warm
// one of two.
func pairedWith(stage string, point int32) int32 {
	if stage == result.StageWarm {
		return point - 1
	}
	return point
}

// arrivalSeed is the seed of a point's arrivals.
func arrivalSeed(runSeed uint64, point int32) uint64 {
	return seed.At(seed.Point(runSeed, point), seed.Arrival, 0)
}
