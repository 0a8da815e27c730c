package metrics

import (
	"pitot/internal/results/spill"
	"pitot/internal/stats"
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
	upper *spill.Bag[int64] // the pseudo-sample of the upper bound
	whole *spill.Bag[int64] // of chunk gaps: each merged gap undivided
	lower *spill.Bag[int64] // the pseudo-sample of the lower bound without its zeros
	zeros int64
	near  int64 // samples that are exact

	// Gaps within first arrivals, which were not seen: they may be as long as these, or
	// nothing, or none at all.
	unseen *spill.Bag[int64]
}

// newLadder gives nil when nothing was merged.
func newLadder(sets []*gapSet, v *gapView, scratch *spill.Store) *ladder {
	if !hasMergedGap(sets, v.limit) {
		return nil
	}
	bag := func() *spill.Bag[int64] { return spill.NewBag[int64](scratch) }
	l := &ladder{view: v, upper: bag(), whole: bag(), lower: bag(), unseen: bag()}
	for _, g := range sets {
		for i := range g.runs {
			if g.runs[i].trust > v.limit {
				continue
			}
			l.near += g.runs[i].gaps.Len() * v.runWeight(g.runs[i].tokens)
		}
		for u := range g.unseen.All() {
			if u.trust > v.limit {
				continue
			}
			for j := int64(1); j <= u.parts; j++ {
				l.unseen.Add((u.hi + j - 1) / j)
			}
			l.zeros += u.parts
		}
		for w := range g.wide.All() {
			if w.trust > v.limit {
				continue
			}
			k := v.runWeight(w.tokens)
			switch {
			case w.parts == 1: // one moment: its tokens share the gap alike
				for range k {
					l.upper.Add((w.hi + k - 1) / k)
					l.lower.Add(w.lo / k)
				}
			default:
				if !v.perToken {
					k = int64(w.parts)
				}
				for j := int64(1); j <= k; j++ {
					l.upper.Add((w.hi + j - 1) / j)
				}
				l.lower.Add(w.lo / k)
				l.zeros += k - 1
			}
			if !v.perToken {
				l.whole.Add(w.hi)
			}
		}
	}
	return l
}

// hasMergedGap says that the ends of some gap up to a trust are open.
func hasMergedGap(sets []*gapSet, limit trust) bool {
	for _, g := range sets {
		for u := range g.unseen.All() {
			if u.trust <= limit {
				return true
			}
		}
		for w := range g.wide.All() {
			if w.trust <= limit && (w.parts > 1 || w.lo != w.hi) {
				return true
			}
		}
	}
	return false
}

// free gives back what the ladder has of the scratch.
func (l *ladder) free() {
	for _, b := range []*spill.Bag[int64]{l.upper, l.whole, l.lower, l.unseen} {
		b.Free()
	}
}

// boundsAt bounds the p-quantile, with cut gaps above everything.
func (l *ladder) boundsAt(p float64, cut int64) (lo, hi float64) {
	v := l.view
	total := l.near + l.lower.Len() + l.zeros
	rank := stats.Rank(total+cut, p)
	low := searchSmallest(v.largest, func(x int64) bool {
		return v.countExactUpTo(x)+l.zeros+l.lower.AtMost(x) >= rank
	})
	high := searchSmallest(v.largest, func(x int64) bool {
		near, up := v.countExactUpTo(x), l.upper.AtMost(x)
		below := near + up
		if !v.perToken {
			below = near + l.whole.AtMost(x)
		}
		above := l.near - near + l.upper.Len() - up + l.unseen.Len() - l.unseen.AtMost(x)
		return below >= stats.Rank(below+above+cut, p)
	})
	return float64(low), float64(high)
}
