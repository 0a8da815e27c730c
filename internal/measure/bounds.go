package measure

import (
	"sort"

	"pitot/internal/stat"
)

// ladder bounds the percentiles of gaps whose ends the kernel's merging left
// open.
//
// Let k events have come at unknown moments of a gap G. Then at most j of
// their own gaps reach G/j, so no gaps are larger, rank by rank, than {G/1,
// …, G/k}; and the largest is at least G/k while the others may be nothing,
// so none are smaller than {G/k, 0, …, 0}. Of chunk gaps not even the number
// is known, events may have come together: there the upper bound lets every
// gap be whichever number of gaps raises the percentile most.
type ladder struct {
	view  *gapView
	upper []int64 // the pseudo-sample of the upper bound, sorted
	whole []int64 // of chunk gaps: each merged gap undivided, sorted
	lower []int64 // the pseudo-sample of the lower bound without its zeros, sorted
	zeros int64
	near  int64 // samples that are exact

	// Gaps within first arrivals nobody saw: they may be as long as these,
	// sorted, or nothing, or none at all.
	unseen []int64
}

// newLadder gives nil when nothing was merged.
func newLadder(sets []*gapSet, v *gapView) *ladder {
	l := &ladder{view: v}
	open := false
	for _, g := range sets {
		for i := range g.runs {
			if g.runs[i].trust > v.limit {
				continue
			}
			l.near += g.runs[i].len() * v.weight(g.runs[i].tokens)
		}
		for _, u := range g.unseen {
			if u.trust > v.limit {
				continue
			}
			open = true
			for j := int64(1); j <= u.parts; j++ {
				l.unseen = append(l.unseen, (u.hi+j-1)/j)
			}
			l.zeros += u.parts
		}
		for _, w := range g.wide {
			if w.trust > v.limit {
				continue
			}
			open = open || w.parts > 1 || w.lo != w.hi
			k := v.weight(w.tokens)
			switch {
			case w.parts == 1: // one moment: its tokens share the gap alike
				for range k {
					l.upper = append(l.upper, (w.hi+k-1)/k)
					l.lower = append(l.lower, w.lo/k)
				}
			default:
				if !v.perToken {
					k = int64(w.parts)
				}
				for j := int64(1); j <= k; j++ {
					l.upper = append(l.upper, (w.hi+j-1)/j)
				}
				l.lower = append(l.lower, w.lo/k)
				l.zeros += k - 1
			}
			if !v.perToken {
				l.whole = append(l.whole, w.hi)
			}
		}
	}
	if !open {
		return nil
	}
	stat.SortInt64(l.upper, nil)
	stat.SortInt64(l.whole, nil)
	stat.SortInt64(l.lower, nil)
	stat.SortInt64(l.unseen, nil)
	return l
}

// at bounds the p-quantile, with cut gaps above everything.
func (l *ladder) at(p float64, cut int64) (lo, hi float64) {
	v := l.view
	total := l.near + int64(len(l.lower)) + l.zeros
	rank := stat.Rank(total+cut, p)
	low := smallest(v.largest, func(x int64) bool {
		return v.near(x)+l.zeros+atMost(l.lower, x) >= rank
	})
	high := smallest(v.largest, func(x int64) bool {
		near, up := v.near(x), atMost(l.upper, x)
		below := near + up
		if !v.perToken {
			below = near + atMost(l.whole, x)
		}
		above := l.near - near + int64(len(l.upper)) - up + int64(len(l.unseen)) - atMost(l.unseen, x)
		return below >= stat.Rank(below+above+cut, p)
	})
	return float64(low), float64(high)
}

// atMost counts the values of a sorted list that are at most x.
func atMost(sorted []int64, x int64) int64 {
	return int64(sort.Search(len(sorted), func(i int) bool { return sorted[i] > x }))
}
