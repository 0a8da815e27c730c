package measure

import (
	"cmp"
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

// within is how long the visit was in flight between two times; until is the
// end of the records, for those that have no end of their own.
func (v *visit) within(from, to, until int64) int64 {
	done := v.done
	if done < 0 {
		done = until
	}
	return max(0, min(done, to)-max(v.due, from))
}

// inFlight is the time-mean number of visits in each of equal blocks of
// [from, to). It sums whole nanoseconds, so that the order does not matter.
func inFlight(visits []visit, from, to, until int64, blocks int) []float64 {
	if to <= from || blocks < 1 {
		return nil
	}
	edge := func(i int) int64 { return from + int64(float64(to-from)*float64(i)/float64(blocks)) }
	width := float64(to-from) / float64(blocks)
	sums := make([]int64, blocks)
	for k := range visits {
		v := &visits[k]
		if v.due >= to {
			continue
		}
		for i := max(0, int(float64(v.due-from)/width)-1); i < blocks; i++ {
			n := v.within(edge(i), edge(i+1), until)
			if sums[i] += n; n == 0 && edge(i) > v.due {
				break
			}
		}
	}
	means := make([]float64, blocks)
	for i, n := range sums {
		means[i] = float64(n) / float64(edge(i+1)-edge(i))
	}
	return means
}

// firstVisits is how many requests tell what one takes before a queue forms.
const firstVisits = 20

// lightResidence is the median time that the first answers of a load took, in
// nanoseconds: they found the server empty. It is 0 if nothing was answered.
func lightResidence(visits []visit) float64 {
	var well []visit
	for _, v := range visits {
		if v.end >= 0 {
			well = append(well, v)
		}
	}
	slices.SortFunc(well, func(a, b visit) int { return cmp.Or(cmp.Compare(a.due, b.due), cmp.Compare(a.end, b.end)) })
	took := make([]int64, min(len(well), firstVisits))
	for i := range took {
		took[i] = well[i].end - well[i].due
	}
	slices.Sort(took)
	return float64(stat.Percentile(took, .5))
}
