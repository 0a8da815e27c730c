package run

import (
	"iter"
	"maps"
	"math"
	"slices"

	"pitot/internal/data/marks"
	"pitot/internal/data/record"
	"pitot/internal/load"
	"pitot/internal/measure"
	"pitot/internal/workload/arrival"
	"pitot/internal/workload/seed"
)

// A process that is killed leaves no rows of the requests that were under way.
// They were due all the same, so rows are made for them: cut when the records
// end. What is not known of them stays unset. They join the records, so that
// whoever reads the Parquet files finds every request that the result counts.

// maxID bounds the ids that are looked for.
const maxID = 1 << 30

// remains is what the records of a point tell of requests under way.
type remains struct {
	dues    []int64         // by id, Unset for those without a row
	traces  map[int64]trace // of requests without a row
	stream  bool            // answers are streamed
	highest int64           // id seen

	lostBefore int64 // rows made for lost ones when the run was finished before
}

// trace is what the chunks of one request tell.
type trace struct {
	first, answer, last int64
	chunks              int32
}

// gather makes a pass over the records of one point.
func gather(dir string, point int32) remains {
	m := remains{traces: map[int64]trace{}, stream: true, highest: -1}
	requests := record.Join[trace]{
		Chunk: (*trace).chunk,
		Row:   func(r *record.Row, _ *trace) { m.row(r) },
		Reset: func(t *trace) { *t = trace{} },
	}
	for f, err := range record.Frames(dir) {
		if err != nil {
			break // what can be read counts
		}
		if f.Point == point {
			requests.Add(&f)
		}
	}
	for id, t := range requests.Open() {
		if id >= 0 && id < maxID {
			m.traces[id] = *t
			m.highest = max(m.highest, id)
		}
	}
	return m
}

func (m *remains) row(r *record.Row) {
	if r.ID < 0 || r.ID >= maxID {
		return
	}
	for int64(len(m.dues)) <= r.ID {
		m.dues = append(m.dues, record.Unset)
	}
	m.dues[r.ID] = r.Due
	m.highest = max(m.highest, r.ID)
	if r.Outcome == record.OK {
		m.stream = r.Stream
	}
	if r.Error == record.ErrLost {
		m.lostBefore++
	}
}

func (t *trace) chunk(c *record.Chunk) {
	if t.chunks == 0 {
		t.first, t.answer = c.T, record.Unset
	}
	if t.answer < 0 && c.Kind != record.Reasoning {
		t.answer = c.T
	}
	t.last = c.T
	t.chunks++
}

// due gives the due time of the row of a request, Unset if there is none.
func (m *remains) due(id int64) int64 {
	if id < int64(len(m.dues)) {
		return m.dues[id]
	}
	return record.Unset
}

// traced says that chunks came of a request without a row.
func (m *remains) traced(id int64) bool {
	_, ok := m.traces[id]
	return ok
}

// completed are the frames of a run's records, and behind those of each point
// the rows of its requests that were under way when the run was killed.
func completed(frames iter.Seq2[record.Frame, error], left map[int32][]record.Row) iter.Seq2[record.Frame, error] {
	return func(yield func(record.Frame, error) bool) {
		points := slices.Sorted(maps.Keys(left))
		// before yields what is left of the points before one.
		before := func(point int32) bool {
			for len(points) > 0 && points[0] < point {
				f := record.Frame{Point: points[0], Rows: left[points[0]]}
				points = points[1:]
				if len(f.Rows) > 0 && !yield(f, nil) {
					return false
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

// missing gives rows for requests that have none, by point: those that were under
// way when the run was killed, and those whose own are lost. It sets the end of
// each window.
func (o *outline) missing(dir string) map[int32][]record.Row {
	rows := map[int32][]record.Row{}
	for point, s := range o.setups {
		w, over := o.ends[point]
		damaged, lost := o.damaged(point)
		switch {
		case !over:
			rows[point], s.T1 = underWay(dir, point, s, o.run.Seed, o.last[point], lost)
		case damaged:
			s = ended(s, w)
			rows[point] = lostRows(dir, point, s, o.run.Seed, o.last[point], lost)
		default:
			s = ended(s, w)
		}
		o.setups[point] = s
	}
	return rows
}

// underWay gives the rows of the requests of a point that were under way when
// its records ended, and the end of the window for which all are known. So many
// rows are known to be lost: those of the requests that were due first.
func underWay(dir string, point int32, s measure.Setup, runSeed uint64, last, lostRows int64) (rows []record.Row, t1 int64) {
	m := gather(dir, point)
	t1 = max(min(s.T1, last), s.T0)
	dues, ok := m.scheduled(s, runSeed, point, t1, -1)
	if !ok {
		dues = m.bounded(last)
		if n := len(dues); n > 0 {
			t1 = max(min(t1, slices.Max(dues)+1), s.T0)
		}
	}
	// The count of requests may have been full before the records ended.
	for i, cohort := 0, int64(0); s.Requests > 0 && i < len(dues); i++ {
		if dues[i] < s.T0 {
			continue
		}
		if cohort++; cohort > s.Requests {
			t1 = min(t1, dues[i])
			break
		}
	}
	for i, due := range dues {
		id := int64(i)
		if m.due(id) >= 0 || due >= t1 && !m.traced(id) { // behind the window nobody knows whether it was asked
			continue
		}
		if m.lostBefore++; m.lostBefore <= lostRows {
			rows = append(rows, m.lost(id, point, due))
			continue
		}
		r := interrupted(id, point, due, last)
		r.Stream = m.stream
		if limit := s.Load.MaxInFlight; limit != nil && len(rows) >= *limit {
			r.Outcome = record.Unsent // first come, first served: so many were sent, the others held
		}
		if t, traced := m.traces[id]; traced && ok {
			r.FirstEvent, r.FirstToken, r.FirstAnswer, r.LastToken = t.first, t.first, t.answer, t.last
			r.Chunks, r.Arrivals = t.chunks, t.chunks
		}
		rows = append(rows, r)
	}
	return rows, t1
}

// scheduled gives the due times of an open loop up to a time, and at least those
// up to an id: they follow from the seed. It fails when they are not those of the rows.
func (m *remains) scheduled(s measure.Setup, runSeed uint64, point int32, until, upTo int64) (dues []int64, ok bool) {
	if s.Load.Rate == nil {
		return nil, false
	}
	a, err := arrival.Parse(s.Load.Arrival, *s.Load.Rate, arrivalSeed(runSeed, point))
	if err != nil {
		return nil, false
	}
	for due := a.Next(); (due < until || int64(len(dues)) <= upTo) && len(dues) < maxID && due != load.Never; due = a.Next() {
		if known := m.due(int64(len(dues))); known >= 0 && known != due {
			return nil, false
		}
		dues = append(dues, due)
	}
	return dues, true
}

// bounded gives the due times of a load without a schedule as far as they are
// known: a request without a row was due at the latest when the next one was,
// and when its first token came. To take the latest makes no request seem to
// have been followed for longer than it was.
func (m *remains) bounded(last int64) []int64 {
	dues := make([]int64, m.highest+1)
	next := last
	for id := m.highest; id >= 0; id-- {
		if due := m.due(id); due >= 0 {
			next = due
		} else if t, traced := m.traces[id]; traced {
			next = min(next, t.first)
		}
		dues[id] = next
	}
	return dues
}

// interrupted is the row of a request whose end nobody saw.
func interrupted(id int64, point int32, due, last int64) record.Row {
	r := record.BlankRow()
	r.ID, r.Point, r.Due, r.Done = id, point, due, max(last, due)
	r.Outcome, r.Error, r.Detail = record.Cut, record.ErrInterrupted, "the run was killed while it was under way"
	return r
}

// arrivalSeed is the seed of a point's arrivals.
func arrivalSeed(runSeed uint64, point int32) uint64 {
	return seed.At(seed.Point(runSeed, point), seed.Arrival, 0)
}
