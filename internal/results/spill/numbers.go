package spill

import (
	"iter"
	"math"
	"math/bits"
	"slices"

	"pitot/internal/stats"
)

// Numbers are values in the order in which they came, with their order statistics
// and moments, all exact. A value may be +Inf, of which the moments leave out, but
// no NaN.
type Numbers struct {
	values   *Column[float64]
	total    stats.Total
	min, max float64 // of all
	infinite int64

	// What was asked for before.
	sorted []float64
	counts *counts
	known  map[int64]float64 // by rank
}

// wholeSortLimit returns the number of numbers that are sorted whole. scratchLimit returns the
// largest such number, and the number of bins that they are counted in.
func (s *Store) wholeSortLimit() int64 { return int64(s.pieceBytes() / 16) }
func (s *Store) scratchLimit() int64   { return int64(s.pieceBytes() * 4) }

// NewNumbers gives none yet.
func NewNumbers(s *Store) *Numbers {
	return &Numbers{values: NewColumn[float64](s), min: math.Inf(1), max: math.Inf(-1)}
}

// Add takes in a number.
func (x *Numbers) Add(v float64) {
	x.values.Append(v)
	x.known = nil
	x.min, x.max = min(x.min, v), max(x.max, v)
	if math.IsInf(v, 1) {
		x.infinite++
	} else {
		x.total.Add(v)
	}
}

// Len returns the number of numbers.
func (x *Numbers) Len() int64 { return x.values.Len() }

// FiniteCount returns the number of finite numbers.
func (x *Numbers) FiniteCount() int64 { return x.values.Len() - x.infinite }

// FiniteTotal has the moments of the finite ones.
func (x *Numbers) FiniteTotal() *stats.Total { return &x.total }

// All yields them as they came.
func (x *Numbers) All() iter.Seq[float64] { return x.values.All() }

// Free gives back what they have of the store. Their moments stay.
func (x *Numbers) Free() {
	x.values.Free()
	x.sorted, x.counts, x.known = nil, nil, nil
}

// OrderStatistic is the order statistic of a rank from 1 to Len: that number in ascending
// order. Several are found faster together, see [Numbers.Seek].
func (x *Numbers) OrderStatistic(rank int64) float64 {
	if v, ok := x.known[rank]; ok {
		return v
	}
	x.Seek(rank)
	return x.known[rank]
}

// Seek finds the order statistics of several ranks, so that At has them.
func (x *Numbers) Seek(ranks ...int64) {
	ranks = slices.Clone(ranks)
	slices.Sort(ranks)
	if x.known == nil {
		x.known = map[int64]float64{}
	}
	for i, v := range OrderStatistics(ranks, x) {
		x.known[ranks[i]] = v
	}
}

// keyOf is a float as a whole number of the same order.
func keyOf(x float64) uint64 {
	b := math.Float64bits(x + 0) // no negative zero
	return b ^ (uint64(int64(b)>>63) | 1<<63)
}

// floatOf turns keyOf around.
func floatOf(k uint64) float64 {
	return math.Float64frombits(k ^ (uint64(int64(^k)>>63) | 1<<63))
}

// OrderStatistics are the order statistics of several sets of numbers taken together.
// Ranks count from 1 and must ascend.
//
// Of few they are sorted. Else each pass over the numbers counts them in bins of
// those stretches in which a rank lies, until few enough are left to be sorted:
// that takes less time and memory.
func OrderStatistics(ranks []int64, sets ...*Numbers) []float64 {
	out := make([]float64, len(ranks))
	if len(ranks) == 0 {
		return out
	}
	n, low, high := int64(0), math.Inf(1), math.Inf(-1)
	for _, x := range sets {
		n += x.Len()
		low, high = min(low, x.min), max(high, x.max)
	}
	if n == 0 {
		return out
	}
	x := sets[0]
	store := x.values.store
	if len(sets) == 1 && n <= store.wholeSortLimit() {
		if int64(len(x.sorted)) != n {
			x.sorted = slices.Sorted(x.All())
		}
		for i, r := range ranks {
			out[i] = x.sorted[min(max(r, 1), n)-1]
		}
		return out
	}
	s := selection{sets: sets, few: store.wholeSortLimit(), scratch: store.scratchLimit()}
	whole := stretch{lo: keyOf(low), hi: keyOf(high), n: n}
	for i, r := range ranks {
		whole.wanted = append(whole.wanted, wanted{min(max(r, 1), n), i})
	}
	for open := []stretch{whole}; len(open) > 0; {
		open = s.narrowOnce(open, out)
	}
	return out
}

// wanted is a rank within a stretch, and where its value goes.
type wanted struct {
	rank int64
	to   int
}

// stretch is the numbers whose keys lie from lo to hi.
type stretch struct {
	lo, hi uint64
	n      int64
	wanted []wanted // ascending
}

// counts are those of a stretch in bins of 2^shift keys.
type counts struct {
	lo    uint64
	shift int
	bins  []int64
	n     int64 // all
}

// binBits bounds the bins of a stretch: their counts fit in a cache.
const binBits = 14

type selection struct {
	sets         []*Numbers
	few, scratch int64
	passes       int
}

// narrowOnce makes one pass: it answers what it can and gives the stretches that are
// left, in order.
func (s *selection) narrowOnce(open []stretch, out []float64) (left []stretch) {
	var all int64
	open = slices.DeleteFunc(open, func(c stretch) bool {
		if c.lo != c.hi {
			all += c.n
			return false
		}
		for _, w := range c.wanted {
			out[w.to] = floatOf(c.lo)
		}
		return true
	})
	if len(open) == 0 {
		return nil
	}
	if s.passes++; all <= s.few || s.passes > 1 && all <= s.scratch {
		s.collectRanks(open, all, out)
		return nil
	}
	wide := max(1, min(binBits, bits.Len64(uint64(s.scratch)/uint64(len(open)))-1))
	for i, bins := range s.countBins(open, wide) {
		c := &open[i]
		below, k := int64(0), 0
		for _, w := range c.wanted {
			for k < len(bins.bins)-1 && below+bins.bins[k] < w.rank {
				below += bins.bins[k]
				k++
			}
			lo := c.lo + uint64(k)<<bins.shift
			hi := c.hi
			if last := uint64(1)<<bins.shift - 1; hi-lo > last {
				hi = lo + last
			}
			if m := len(left); m == 0 || left[m-1].lo != lo {
				left = append(left, stretch{lo: lo, hi: hi, n: bins.bins[k]})
			}
			last := &left[len(left)-1]
			last.wanted = append(last.wanted, wanted{w.rank - below, w.to})
		}
	}
	return left
}

// countBins counts the numbers of each stretch in bins.
func (s *selection) countBins(open []stretch, wide int) []counts {
	if len(open) == 1 && len(s.sets) == 1 { // perhaps all, and asked before
		if c := s.sets[0].counts; c != nil && c.n == s.sets[0].Len() && c.lo == open[0].lo && open[0].n == c.n {
			return []counts{*c}
		}
	}
	list := make([]counts, len(open))
	for i := range open {
		c := &open[i]
		shift := max(0, bits.Len64(c.hi-c.lo)-wide)
		list[i] = counts{lo: c.lo, shift: shift, bins: make([]int64, (c.hi-c.lo)>>shift+1), n: c.n}
	}
	s.eachNumber(open, func(i int, key uint64) { list[i].bins[(key-list[i].lo)>>list[i].shift]++ })
	if len(open) == 1 && len(s.sets) == 1 && open[0].n == s.sets[0].Len() {
		s.sets[0].counts = &list[0]
	}
	return list
}

// collectRanks sorts the numbers of the stretches and answers.
func (s *selection) collectRanks(open []stretch, all int64, out []float64) {
	keys := make([]uint64, all)
	parts := make([][]uint64, len(open))
	from := int64(0)
	for i := range open {
		parts[i] = keys[from : from : from+open[i].n]
		from += open[i].n
	}
	s.eachNumber(open, func(i int, key uint64) { parts[i] = append(parts[i], key) })
	for i := range open {
		if len(parts[i]) == 0 { // the file cannot be read: the store tells
			continue
		}
		slices.Sort(parts[i])
		for _, w := range open[i].wanted {
			out[w.to] = floatOf(parts[i][min(w.rank, int64(len(parts[i])))-1])
		}
	}
}

// eachNumber hands every number that lies in a stretch to do.
func (s *selection) eachNumber(open []stretch, do func(i int, key uint64)) {
	base, top := open[0].lo, open[len(open)-1].hi
	shift := max(0, bits.Len64(top-base)-indexBits)
	index := make([]int, (top-base)>>shift+1) // by the first bits of a key: the first stretch that may hold it
	for i, at := 0, 0; at < len(index); at++ {
		for i < len(open)-1 && open[i].hi < base+uint64(at)<<shift {
			i++
		}
		index[at] = i
	}
	for _, x := range s.sets {
		for values := range x.values.Pieces() {
			for _, v := range values {
				k := keyOf(v)
				if k < base || k > top {
					continue
				}
				i := index[(k-base)>>shift]
				for open[i].hi < k { // ends at the last
					i++
				}
				if k >= open[i].lo {
					do(i, k)
				}
			}
		}
	}
}

// indexBits bounds the index of stretches.
const indexBits = 12
