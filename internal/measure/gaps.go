package measure

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
	"sort"

	"pitot/internal/data/record"
	"pitot/internal/stat"
)

// gapSet pools the gaps of many requests, four bytes each: those that brought
// the same number of tokens lie together, so that one list serves as chunk
// gaps and, divided by that number, as token gaps.
type gapSet struct {
	runs      []gapRun
	wide      []wideGap
	unseen    []unseenGaps
	cut       [trusts][]int64 // gaps that were not followed to their end: how long they were
	streams   [trusts]streams
	amortised bool // some event whose tokens are told carried several
}

// streams counts what came of one trust.
type streams struct {
	requests, tokens int64 // of those that have gaps; without usage a token an event
	arrivals, chunks int64 // of all
}

// trust says how the tokens of a stream's arrivals are known.
type trust uint8

const (
	counted trust = iota // by what the events said, or as many events as usage counted tokens, but for the marker behind reasoning
	alike                // as one for each event, if the streams that usage counted were so
	unknown              // not at all
	trusts               // how many there are
)

// trustOf says how the tokens of a stream's arrivals are known. A stream that
// was cut has no usage; where every other stream has one token in each event,
// its events are taken for one each.
func trustOf(r *record.Row, s *stream, visible int64) trust {
	switch {
	case !s.Blind || visible == s.Count || s.marker(r):
		return counted
	case r.Outcome != record.OK && r.CompletionTokens < 0:
		return alike
	}
	return unknown
}

// blockSize is how many gaps are sorted at once. A block and its copy fit in
// a core's cache, what came since the last look is sorted alone, and nothing
// is copied when a list grows. Ranks are found across blocks by bisection.
const blockSize = 1 << 16

// gapRun are the gaps before arrivals of the same number of tokens.
type gapRun struct {
	tokens int32 // events, where the events did not tell
	trust  trust
	blocks [][]uint32 // all full but the last
	sorted int        // full blocks that are sorted
}

func (r *gapRun) add(ns uint32) {
	last := len(r.blocks) - 1
	switch {
	case last < 0: // the first grows: most runs are short
		r.blocks = append(r.blocks, []uint32{ns})
	case len(r.blocks[last]) == blockSize:
		block := make([]uint32, 1, blockSize)
		block[0] = ns
		r.blocks = append(r.blocks, block)
	default:
		r.blocks[last] = append(r.blocks[last], ns)
	}
}

func (r *gapRun) len() int64 {
	if n := len(r.blocks); n > 0 {
		return int64(n-1)*blockSize + int64(len(r.blocks[n-1]))
	}
	return 0
}

// atMost counts the gaps that are at most x.
func (r *gapRun) atMost(x int64) (n int64) {
	if x >= math.MaxUint32 {
		return r.len()
	}
	for _, b := range r.blocks {
		lo, hi := 0, len(b)
		for lo < hi {
			if mid := (lo + hi) / 2; int64(b[mid]) > x {
				hi = mid
			} else {
				lo = mid + 1
			}
		}
		n += int64(lo)
	}
	return n
}

// sum is exact: at most 2⁶⁴ nanoseconds.
func (r *gapRun) sum() (sum uint64) {
	for _, b := range r.blocks {
		for _, ns := range b {
			sum += uint64(ns)
		}
	}
	return sum
}

// squares is Σ(ns − around)², summed in whole numbers so that it does not
// depend on the order of the gaps.
func (r *gapRun) squares(around float64) float64 {
	center := int64(min(around, math.MaxUint32)) // so that a square fits in 64 bits
	var high, low uint64
	for _, b := range r.blocks {
		for _, ns := range b {
			d := int64(ns) - center
			var carry uint64
			low, carry = bits.Add64(low, uint64(d*d), 0)
			high += carry
		}
	}
	rest, n := float64(center)-around, float64(r.len())
	return float64(high)*(1<<64) + float64(low) + 2*rest*(float64(r.sum())-n*float64(center)) + n*rest*rest
}

// take adds the gaps of a stream that has come to its end. marker says that a token
// without an event lies in the gap at which its reasoning ended: it took a step as
// others do, so that gap counts for one token more.
func (g *gapSet) take(s *stream, t trust, visible int64, marker bool) {
	of := &g.streams[t]
	of.arrivals += s.arrivals
	of.chunks += s.Count
	for _, u := range s.unseen {
		u.trust = t
		g.unseen = append(g.unseen, u)
	}
	if len(s.near)+len(s.wide) == 0 {
		return
	}
	of.requests++
	of.tokens += max(visible, s.Count)
	g.amortised = g.amortised || s.several && !s.Blind
	tokens := func(told, events int32) int32 {
		if s.Blind {
			return events
		}
		return told
	}
	var run *gapRun
	for i, n := range s.near {
		k := tokens(int32(n.tokens), int32(n.events))
		if marker && s.turnNear == i+1 {
			k++
		}
		if run == nil || run.tokens != k {
			run = g.run(k, t)
		}
		run.add(n.ns)
	}
	for i, w := range s.wide {
		w.tokens, w.trust = tokens(w.tokens, w.events), t
		if marker && s.turnWide == i+1 {
			w.tokens++
		}
		g.wide = append(g.wide, w)
	}
}

func (g *gapSet) run(tokens int32, t trust) *gapRun {
	for i := range g.runs {
		if g.runs[i].tokens == tokens && g.runs[i].trust == t {
			return &g.runs[i]
		}
	}
	g.runs = append(g.runs, gapRun{tokens: tokens, trust: t})
	return &g.runs[len(g.runs)-1]
}

// sort makes the set ready to be asked.
func (g *gapSet) sort(buf []uint32) {
	for i := range g.runs {
		r := &g.runs[i]
		for _, b := range r.blocks[r.sorted:] {
			stat.SortUint32(b, buf)
			if len(b) == blockSize {
				r.sorted++
			}
		}
	}
}

// gapView reads gap sets as one distribution: of chunk gaps, or of token gaps
// where every gap counts once for each of its tokens, divided by them. Token
// gaps are those up to a trust.
type gapView struct {
	perToken bool
	limit    trust
	runs     []*gapRun
	wide     []spread // sorted by ns
	total    int64
	largest  int64 // upper bound of every gap
}

// spread is a long or merged gap and the number of samples it stands for.
type spread struct{ ns, count int64 }

func newGapView(sets []*gapSet, perToken bool, limit trust) *gapView {
	v := &gapView{perToken: perToken, limit: limit}
	for _, g := range sets {
		for i := range g.runs {
			r := &g.runs[i]
			if r.trust > limit {
				continue
			}
			v.runs = append(v.runs, r)
			v.total += r.len() * v.weight(r.tokens)
			for _, b := range r.blocks {
				v.largest = max(v.largest, int64(b[len(b)-1]))
			}
		}
		for _, u := range g.unseen {
			if u.trust <= limit {
				v.largest = max(v.largest, u.hi)
			}
		}
		for _, w := range g.wide {
			if w.trust > limit {
				continue
			}
			k := v.weight(w.tokens)
			v.wide = append(v.wide, spread{(w.ns + k - 1) / k, k})
			v.total += k
			v.largest = max(v.largest, w.hi)
		}
	}
	// Merged sets come in any order; a sum of floats must not depend on it.
	slices.SortStableFunc(v.runs, func(a, b *gapRun) int {
		return cmp.Or(cmp.Compare(a.tokens, b.tokens), cmp.Compare(a.trust, b.trust))
	})
	slices.SortFunc(v.wide, func(a, b spread) int {
		switch {
		case a.ns != b.ns:
			return sign(a.ns - b.ns)
		default:
			return sign(a.count - b.count)
		}
	})
	for i := 1; i < len(v.wide); i++ { // counts become running sums
		v.wide[i].count += v.wide[i-1].count
	}
	return v
}

func sign(x int64) int {
	switch {
	case x < 0:
		return -1
	case x > 0:
		return 1
	}
	return 0
}

func (v *gapView) weight(tokens int32) int64 {
	if v.perToken {
		return int64(max(tokens, 1))
	}
	return 1
}

// near counts the samples of exact gaps that are at most x.
func (v *gapView) near(x int64) int64 {
	var n int64
	for _, r := range v.runs {
		k := v.weight(r.tokens)
		n += k * r.atMost(x*k)
	}
	return n
}

func (v *gapView) atMost(x int64) int64 {
	n := v.near(x)
	if i := sort.Search(len(v.wide), func(i int) bool { return v.wide[i].ns > x }); i > 0 {
		n += v.wide[i-1].count
	}
	return n
}

func (v *gapView) size() int64 { return v.total }

// at is the order statistic of a rank counted from 1: the smallest whole
// number of nanoseconds that so many samples do not exceed.
func (v *gapView) at(rank int64) float64 {
	return float64(smallest(v.largest, func(x int64) bool { return v.atMost(x) >= rank }))
}

// smallest is the least x in [0, top] for which ok holds, top if for none; ok
// must stay true once it is.
func smallest(top int64, ok func(int64) bool) int64 {
	lo, hi := int64(0), top
	for lo < hi {
		if mid := lo + (hi-lo)/2; ok(mid) {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	return lo
}

// moments are the sum and the sum of the squared deviations from the mean.
func (v *gapView) moments() (sum, squares float64) {
	for _, r := range v.runs {
		sum += float64(r.sum()) // k samples of ns/k
	}
	var before int64
	for _, w := range v.wide {
		sum += float64(w.ns) * float64(w.count-before)
		before = w.count
	}
	mean := sum / float64(v.total)
	for _, r := range v.runs {
		k := float64(v.weight(r.tokens))
		if v.perToken { // k·(ns/k − mean)²
			squares += r.squares(k*mean) / k
		} else {
			squares += r.squares(mean)
		}
	}
	before = 0
	for _, w := range v.wide {
		d := float64(w.ns) - mean
		squares += d * d * float64(w.count-before)
		before = w.count
	}
	return sum, max(squares, 0)
}
