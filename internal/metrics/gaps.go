package metrics

import (
	"cmp"
	"math"
	"slices"

	"pitot/internal/results/metric"
	"pitot/internal/results/record"
	"pitot/internal/results/spill"
)

// gapSet pools the gaps of many requests, four bytes each: those that brought
// the same number of tokens lie together, so that one list serves as chunk
// gaps and, divided by that number, as token gaps.
type gapSet struct {
	store     *spill.Store
	runs      []gapRun
	wide      *spill.Column[wideGap]
	unseen    *spill.Column[unseenGaps]
	cut       [trusts]*spill.Column[int64] // gaps that were not followed to their end: how long they were
	streams   [trusts]streams
	amortised bool // some event whose tokens are known carried several
	others    map[metric.Name]*handedOver
}

// handedOver holds the values that requests handed over of another metric that is pooled over them.
type handedOver struct {
	values *spill.Bag[int64]
	longer *spill.Column[int64] // not followed to their end
}

// handedOverOf returns what is handed over of a metric.
func (g *gapSet) handedOverOf(name metric.Name) *handedOver {
	h := g.others[name]
	if h == nil {
		h = &handedOver{spill.NewBag[int64](g.store), spill.NewColumn[int64](g.store)}
		if g.others == nil {
			g.others = map[metric.Name]*handedOver{}
		}
		g.others[name] = h
	}
	return h
}

// keepGap takes in one value.
func (h *handedOver) keepGap(ns int64, is State) {
	switch ns = max(ns, 0); is {
	case Known:
		h.values.Add(ns)
	case Longer:
		h.longer.Append(ns)
	}
}

func newGapSet(s *spill.Store) *gapSet {
	g := &gapSet{store: s, wide: spill.NewColumn[wideGap](s), unseen: spill.NewColumn[unseenGaps](s)}
	for t := range g.cut {
		g.cut[t] = spill.NewColumn[int64](s)
	}
	return g
}

// free gives back what the set has of its store.
func (g *gapSet) free() {
	for i := range g.runs {
		g.runs[i].gaps.Free()
	}
	g.wide.Free()
	g.unseen.Free()
	for _, c := range g.cut {
		c.Free()
	}
	for _, h := range g.others {
		h.values.Free()
		h.longer.Free()
	}
}

// streams counts what came of one trust.
type streams struct {
	requests, tokens int64 // of those that have gaps; without usage a token an event
	arrivals, chunks int64 // of all
}

// trust says how the tokens of a stream's arrivals are known.
type trust uint8

const (
	counted trust = iota // by what the events reported, or as many events as usage counted tokens, but for the marker behind reasoning
	alike                // as one for each event, if the streams that usage counted were so
	unknown              // not at all
	trusts               // how many there are
)

// trustOf says how the tokens of a stream's arrivals are known. A stream that
// was cut has no usage; where every other stream has one token in each event,
// its events are taken for one each.
func trustOf(r *record.Row, s *Stream, visible int64) trust {
	switch {
	case !s.Blind || visible == s.Count || s.hasMarker(r):
		return counted
	case r.Outcome != record.OK && r.CompletionTokens < 0:
		return alike
	}
	return unknown
}

// gapRun are the gaps before arrivals of the same number of tokens.
type gapRun struct {
	tokens int32 // events, where the events did not tell
	trust  trust
	gaps   *spill.Bag[uint32]
}

// atMost counts the gaps that are at most x.
func (r *gapRun) atMost(x int64) (n int64) {
	if x < 0 {
		return 0
	}
	return r.gaps.AtMost(uint32(min(x, math.MaxUint32)))
}

// squaredDeviations is Σ(x − around)², summed in whole numbers so that it does not depend
// on the order of the gaps.
func squaredDeviations[T uint32 | int64](b *spill.Bag[T], around float64) float64 {
	center := uint64(around)
	high, low := b.SquaredDeviations(center)
	rest, n := float64(center)-around, float64(b.Len())
	return float64(high)*(1<<64) + float64(low) + 2*rest*(float64(b.Sum())-n*float64(center)) + n*rest*rest
}

// addStream adds the gaps of a stream that has come to its end. marker says that a token
// without an event lies in the gap at which its reasoning ended: it took a step as
// others do, so that gap counts for one token more.
func (g *gapSet) addStream(s *Stream, t trust, visible int64, marker bool) {
	of := &g.streams[t]
	of.arrivals += s.arrivals
	of.chunks += s.Count
	for _, u := range s.unseen {
		u.trust = t
		g.unseen.Append(u)
	}
	if len(s.near)+len(s.wide) == 0 {
		return
	}
	of.requests++
	of.tokens += max(visible, s.Count)
	g.amortised = g.amortised || s.several && !s.Blind
	tokens := func(reported, events int32) int32 {
		if s.Blind {
			return events
		}
		return reported
	}
	var run *gapRun
	for i, n := range s.near {
		k := tokens(int32(n.tokens), int32(n.events))
		if marker && s.turnNear == i+1 {
			k++
		}
		if run == nil || run.tokens != k {
			run = g.findRun(k, t)
		}
		run.gaps.Add(n.ns)
	}
	for i, w := range s.wide {
		w.tokens, w.trust = tokens(w.tokens, w.events), t
		if marker && s.turnWide == i+1 {
			w.tokens++
		}
		g.wide.Append(w)
	}
}

func (g *gapSet) findRun(tokens int32, t trust) *gapRun {
	for i := range g.runs {
		if g.runs[i].tokens == tokens && g.runs[i].trust == t {
			return &g.runs[i]
		}
	}
	g.runs = append(g.runs, gapRun{tokens, t, spill.NewBag[uint32](g.store)})
	return &g.runs[len(g.runs)-1]
}

// gapView reads gap sets as one distribution: of chunk gaps, or of token gaps
// where every gap counts once for each of its tokens, divided by them. Token
// gaps are those up to a trust.
type gapView struct {
	perToken bool
	limit    trust
	runs     []*gapRun
	wide     []wideRun
	total    int64
	largest  int64 // upper bound of every gap
}

// wideRun are long or merged gaps, each of which stands for as many samples.
type wideRun struct {
	samples int64
	ns      *spill.Bag[int64] // of each sample
}

func newGapView(sets []*gapSet, perToken bool, limit trust, scratch *spill.Store) *gapView {
	v := &gapView{perToken: perToken, limit: limit}
	for _, g := range sets {
		for i := range g.runs {
			r := &g.runs[i]
			if r.trust > limit {
				continue
			}
			v.runs = append(v.runs, r)
			v.total += r.gaps.Len() * v.runWeight(r.tokens)
			v.largest = max(v.largest, int64(r.gaps.Max()))
		}
		for u := range g.unseen.All() {
			if u.trust <= limit {
				v.largest = max(v.largest, u.hi)
			}
		}
		for w := range g.wide.All() {
			if w.trust > limit {
				continue
			}
			k := v.runWeight(w.tokens)
			v.wideRun(k, scratch).ns.Add((w.ns + k - 1) / k)
			v.total += k
			v.largest = max(v.largest, w.hi)
		}
	}
	// Merged sets come in any order; a sum of floats must not depend on it.
	slices.SortStableFunc(v.runs, func(a, b *gapRun) int {
		return cmp.Or(cmp.Compare(a.tokens, b.tokens), cmp.Compare(a.trust, b.trust))
	})
	slices.SortFunc(v.wide, func(a, b wideRun) int { return cmp.Compare(a.samples, b.samples) })
	return v
}

func (v *gapView) wideRun(samples int64, scratch *spill.Store) *wideRun {
	for i := range v.wide {
		if v.wide[i].samples == samples {
			return &v.wide[i]
		}
	}
	v.wide = append(v.wide, wideRun{samples, spill.NewBag[int64](scratch)})
	return &v.wide[len(v.wide)-1]
}

// free gives back what the view has of the scratch.
func (v *gapView) free() {
	for _, w := range v.wide {
		w.ns.Free()
	}
}

func (v *gapView) runWeight(tokens int32) int64 {
	if v.perToken {
		return int64(max(tokens, 1))
	}
	return 1
}

// countExactUpTo counts the samples of exact gaps that are at most x.
func (v *gapView) countExactUpTo(x int64) int64 {
	var n int64
	for _, r := range v.runs {
		k := v.runWeight(r.tokens)
		n += k * r.atMost(x*k)
	}
	return n
}

func (v *gapView) atMost(x int64) int64 {
	n := v.countExactUpTo(x)
	for _, w := range v.wide {
		n += w.samples * w.ns.AtMost(x)
	}
	return n
}

func (v *gapView) size() int64 { return v.total }

func (v *gapView) seek(...int64) {}

// orderStatistic is the order statistic of a rank counted from 1: the smallest whole
// number of nanoseconds that so many samples do not exceed.
func (v *gapView) orderStatistic(rank int64) float64 {
	return float64(searchSmallest(v.largest, func(x int64) bool { return v.atMost(x) >= rank }))
}

// mixed implements [distribution]: i of the rank smallest are of the others, for
// the least i that leaves no value out of order.
func (v *gapView) mixed(with *spill.Numbers, rank int64) float64 {
	i, top := max(0, rank-v.size()), min(rank, with.Len())
	for i < top {
		mid := i + (top-i)/2
		if mid == rank || v.orderStatistic(rank-mid) <= with.OrderStatistic(mid+1) {
			top = mid
		} else {
			i = mid + 1
		}
	}
	x := math.Inf(-1)
	if rank > i {
		x = v.orderStatistic(rank - i)
	}
	if i > 0 {
		x = max(x, with.OrderStatistic(i))
	}
	return x
}

// searchSmallest is the least x in [0, top] for which ok holds, top if for none; ok
// must stay true once it is.
func searchSmallest(top int64, ok func(int64) bool) int64 {
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
		sum += float64(r.gaps.Sum()) // k samples of ns/k
	}
	for _, w := range v.wide {
		sum += float64(w.ns.Sum()) * float64(w.samples)
	}
	mean := sum / float64(v.total)
	for _, r := range v.runs {
		k := float64(v.runWeight(r.tokens))
		if v.perToken { // k·(ns/k − mean)²
			squares += squaredDeviations(r.gaps, k*mean) / k
		} else {
			squares += squaredDeviations(r.gaps, mean)
		}
	}
	for _, w := range v.wide {
		squares += float64(w.samples) * squaredDeviations(w.ns, mean)
	}
	return sum, max(squares, 0)
}
