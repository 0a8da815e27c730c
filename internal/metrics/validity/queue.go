package validity

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
	"time"

	"pitot/internal/results/record"
	"pitot/internal/stats"
)

// visit is a request of any time as the queue of an open loop sees it: in
// flight from when it was due, wherever it waits, until it is done. Stamps are
// nanoseconds since the origin.
type visit struct {
	due, done int64 // done: Unset while it is under way
	end       int64 // of its answer, Unset if it did not end well
	outcome   record.Outcome
	hung      bool // it was given up, after the timeout
}

func visitOf(r *record.Row) visit {
	v := visit{due: r.Due, done: r.Done, end: record.Unset, outcome: r.Outcome,
		hung: r.Outcome == record.Cut && r.Error == record.ErrTimeout}
	if r.Outcome == record.OK {
		if v.end = r.LastToken; !r.Stream || v.end < 0 {
			v.end = r.Done
		}
	}
	return v
}

// span128 sums times, of which a long run has more than 63 bits hold.
type span128 struct{ high, low uint64 }

// plus adds a time that is not negative.
func (s *span128) plus(ns int64) {
	var carry uint64
	s.low, carry = bits.Add64(s.low, uint64(ns), 0)
	s.high += carry
}

func (s span128) float() float64 { return float64(s.high)*(1<<64) + float64(s.low) }

// stays is the time that requests were in flight in a stretch of time, [from, to).
// Those that have no end yet were so until the end of the records, which may not
// have come either: of them it knows how many there are and since when.
type stays struct {
	from, to int64
	ended    span128
	open     int64
	late     span128 // by how much later than from the open ones were due
}

// addVisit adds the time of a visit.
func (s *stays) addVisit(v *visit) {
	switch {
	case v.due >= s.to:
	case v.done >= 0:
		s.ended.plus(max(0, min(v.done, s.to)-max(v.due, s.from)))
	default:
		s.open++
		s.late.plus(max(v.due, s.from) - s.from)
	}
}

// totalTime is the time in nanoseconds; until is the end of the records.
func (s *stays) totalTime(until int64) float64 {
	sum := s.ended
	if end := min(until, s.to); end > s.from && s.open > 0 {
		high, low := bits.Mul64(uint64(s.open), uint64(end-s.from))
		var borrow, carry uint64
		low, borrow = bits.Sub64(low, s.late.low, 0)
		high, _ = bits.Sub64(high, s.late.high, borrow)
		sum.low, carry = bits.Add64(sum.low, low, 0)
		sum.high += high + carry
	}
	return sum.float()
}

// inFlight is the time-mean number of requests in each of equal blocks of a stretch
// of time. It sums whole nanoseconds, so that the order does not matter.
type inFlight struct {
	from  int64
	width float64
	block []stays
}

func newInFlight(from, to int64, blocks int) *inFlight {
	f := &inFlight{from: from}
	if to <= from || blocks < 1 {
		return f
	}
	f.width = float64(to-from) / float64(blocks)
	edge := func(i int) int64 { return from + int64(float64(to-from)*float64(i)/float64(blocks)) }
	for i := range blocks {
		f.block = append(f.block, stays{from: edge(i), to: edge(i + 1)})
	}
	return f
}

// addVisit adds the time of a visit to the blocks that it was in flight in.
func (f *inFlight) addVisit(v *visit) {
	if len(f.block) == 0 || v.due >= f.block[len(f.block)-1].to {
		return
	}
	for i := max(0, int(float64(v.due-f.from)/f.width)-1); i < len(f.block); i++ {
		b := &f.block[i]
		if v.done >= 0 && v.done <= b.from && b.from > v.due {
			return
		}
		b.addVisit(v)
	}
}

// blockMeans are those of the blocks; until is the end of the records.
func (f *inFlight) blockMeans(until int64) []float64 {
	means := make([]float64, len(f.block))
	for i := range f.block {
		b := &f.block[i]
		means[i] = b.totalTime(until) / float64(b.to-b.from)
	}
	return means
}

// Queue holds what the requests of any time say of the target's queue. It takes a request in when
// the request has ended, or when no one waits for it any longer.
type Queue struct {
	conditions          *Conditions
	all, served         *inFlight          // served: without those that hung
	fine                *inFlight          // all, in [stats.FineBatches]
	window              stays              // all of them
	before, after       stays              // in the window of those due before it, and behind it of those due in it
	due, answered, over [Blocks]int64      // by block: came due, ended well, ended at all
	cut                 int64              // in the window were cut off before their end
	first               [firstVisits]visit // that ended well, by when they were due
	well                int                // of them, as far as they are kept

	// Of the cohort: how long it was waited for, from due to the end of the answer or
	// for as long as anybody did; how many there are, how many of them waited for
	// their turn, and how many for a connection.
	stay                  stays
	members, held, waited int64
}

// NewQueue is a queue without requests.
func NewQueue(c *Conditions) *Queue {
	q := &Queue{conditions: c, all: &inFlight{}, served: &inFlight{}, fine: &inFlight{}}
	if c.Ended() {
		q.all, q.served = newInFlight(c.T0, c.T1, stats.BacklogBlocks), newInFlight(c.T0, c.T1, stats.BacklogBlocks)
		q.fine = newInFlight(c.T0, c.T1, stats.FineBatches)
	}
	q.window, q.before, q.after = stays{from: c.T0, to: c.T1}, stays{from: c.T0, to: c.T1}, stays{from: c.T1, to: math.MaxInt64}
	q.stay = stays{from: c.T0, to: math.MaxInt64}
	return q
}

// Add takes in a request, of any time.
func (q *Queue) Add(r *record.Row) {
	v := visitOf(r)
	q.countVisit(&v)
	if b, inside := q.conditions.BlockAt(v.due); inside {
		q.after.addVisit(&v)
		q.due[b]++
		q.addMember(&v, r)
	} else if v.due < q.conditions.T0 {
		q.before.addVisit(&v)
	}
	q.keepFirstVisit(&v)
}

// countVisit counts when a request was in flight and when it ended, whichever load it came due in.
func (q *Queue) countVisit(v *visit) {
	q.all.addVisit(v)
	q.fine.addVisit(v)
	// Those that hang until they are given up pile up for that long, and no
	// longer: that is no queue.
	if !v.hung {
		q.served.addVisit(v)
	}
	q.window.addVisit(v)
	if b, inside := q.conditions.BlockAt(v.done); inside {
		if v.end >= 0 {
			q.answered[b]++
		}
		if v.outcome == record.OK || v.outcome == record.Failed {
			q.over[b]++
		}
		if v.outcome == record.Cut {
			q.cut++
		}
	}
}

// onTime is by how much an event may be late without being called so.
const onTime = float64(time.Millisecond)

// addMember takes in a request of the cohort.
func (q *Queue) addMember(v *visit, r *record.Row) {
	q.members++
	end := v.end
	if end < 0 {
		end = v.done
	}
	q.stay.addVisit(&visit{due: v.due, done: end})
	if r.Eligible < 0 || float64(r.Eligible-r.Due) > onTime {
		q.held++
	}
	if r.Eligible >= 0 && r.Earlier == 0 && float64(r.Ready-r.Eligible) > onTime {
		q.waited++
	}
}

// Answered returns the number of requests that ended well, by block of the window.
func (q *Queue) Answered() [Blocks]int64 { return q.answered }

// MemoryShare returns how long what is in flight remembers, as a share of the window; until is
// the end of the records.
func (q *Queue) MemoryShare(until int64) float64 { return stats.SeriesMemory(q.fine.blockMeans(until)) }

// firstVisits is the number of requests that show what one takes before a queue forms.
const firstVisits = 20

// keepFirstVisit puts a visit that ended well among the first, if it is one.
func (q *Queue) keepFirstVisit(v *visit) {
	order := func(a, b *visit) int { return cmp.Or(cmp.Compare(a.due, b.due), cmp.Compare(a.end, b.end)) }
	if v.end < 0 || q.well == firstVisits && order(v, &q.first[q.well-1]) >= 0 {
		return
	}
	q.well = min(q.well+1, firstVisits)
	i := q.well - 1
	for ; i > 0 && order(v, &q.first[i-1]) < 0; i-- {
		q.first[i] = q.first[i-1]
	}
	q.first[i] = *v
}

// lightResidence is the median time that the first answers of a load took, in
// nanoseconds: they found the server empty. It is 0 if nothing was answered.
func (q *Queue) lightResidence() float64 {
	took := make([]int64, q.well)
	for i := range took {
		took[i] = q.first[i].end - q.first[i].due
	}
	slices.Sort(took)
	return float64(stats.Percentile(took, .5))
}
