package measure

import (
	"cmp"
	"math"
	"math/bits"
	"slices"

	"pitot/internal/data/record"
	"pitot/internal/stat"
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

// add takes in a time that is not negative.
func (s *span128) add(ns int64) {
	var carry uint64
	s.low, carry = bits.Add64(s.low, uint64(ns), 0)
	s.high += carry
}

func (s span128) float() float64 { return float64(s.high)*(1<<64) + float64(s.low) }

// stays is the time that visits were in flight in a stretch of time, [from, to).
// Those that have no end yet were so until the end of the records, which may not
// have come either: of them it knows how many there are and since when.
type stays struct {
	from, to int64
	ended    span128
	open     int64
	late     span128 // by how much later than from the open ones were due
}

// add takes in a visit.
func (s *stays) add(v *visit) {
	switch {
	case v.due >= s.to:
	case v.done >= 0:
		s.ended.add(max(0, min(v.done, s.to)-max(v.due, s.from)))
	default:
		s.open++
		s.late.add(max(v.due, s.from) - s.from)
	}
}

// sum is the time in nanoseconds; until is the end of the records.
func (s *stays) sum(until int64) float64 {
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

// inFlight is the time-mean number of visits in each of equal blocks of a stretch
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

// add takes in a visit.
func (f *inFlight) add(v *visit) {
	if len(f.block) == 0 || v.due >= f.block[len(f.block)-1].to {
		return
	}
	for i := max(0, int(float64(v.due-f.from)/f.width)-1); i < len(f.block); i++ {
		b := &f.block[i]
		if v.done >= 0 && v.done <= b.from && b.from > v.due {
			return
		}
		b.add(v)
	}
}

// means are those of the blocks; until is the end of the records.
func (f *inFlight) means(until int64) []float64 {
	means := make([]float64, len(f.block))
	for i := range f.block {
		b := &f.block[i]
		means[i] = b.sum(until) / float64(b.to-b.from)
	}
	return means
}

// visits is what the requests of any time tell of the queue.
type visits struct {
	all, served         *inFlight          // served: without those that hung
	window              stays              // all of them
	before, after       stays              // in the window of those due before it, and behind it of those due in it
	due, answered, over [rateBlocks]int64  // by block: came due, ended well, ended at all
	first               [firstVisits]visit // that ended well, by when they were due
	well                int                // of them, as far as they are kept
}

func newVisits(s *Setup) visits {
	v := visits{all: &inFlight{}, served: &inFlight{}}
	if s.ended() {
		v.all, v.served = newInFlight(s.T0, s.T1, stat.BacklogBlocks), newInFlight(s.T0, s.T1, stat.BacklogBlocks)
	}
	v.window, v.before, v.after = stays{from: s.T0, to: s.T1}, stays{from: s.T0, to: s.T1}, stays{from: s.T1, to: math.MaxInt64}
	return v
}

// add takes in a visit.
func (w *visits) add(v *visit, s *Setup) {
	w.all.add(v)
	// Those that hang until they are given up pile up for that long, and no
	// longer: that is no queue.
	if !v.hung {
		w.served.add(v)
	}
	w.window.add(v)
	if b, inside := s.blockOf(v.due); inside {
		w.after.add(v)
		w.due[b]++
	} else if v.due < s.T0 {
		w.before.add(v)
	}
	if b, inside := s.blockOf(v.done); inside {
		if v.end >= 0 {
			w.answered[b]++
		}
		if v.outcome == record.OK || v.outcome == record.Failed {
			w.over[b]++
		}
	}
	w.keep(v)
}

// firstVisits is how many requests tell what one takes before a queue forms.
const firstVisits = 20

// keep puts a visit that ended well among the first, if it is one.
func (w *visits) keep(v *visit) {
	order := func(a, b *visit) int { return cmp.Or(cmp.Compare(a.due, b.due), cmp.Compare(a.end, b.end)) }
	if v.end < 0 || w.well == firstVisits && order(v, &w.first[w.well-1]) >= 0 {
		return
	}
	w.well = min(w.well+1, firstVisits)
	i := w.well - 1
	for ; i > 0 && order(v, &w.first[i-1]) < 0; i-- {
		w.first[i] = w.first[i-1]
	}
	w.first[i] = *v
}

// light is the median time that the first answers of a load took, in
// nanoseconds: they found the server empty. It is 0 if nothing was answered.
func (w *visits) light() float64 {
	took := make([]int64, w.well)
	for i := range took {
		took[i] = w.first[i].end - w.first[i].due
	}
	slices.Sort(took)
	return float64(stat.Percentile(took, .5))
}
