package profile

import (
	"math"
	"math/bits"
	"slices"
	"sort"

	"pitot/internal/workload/seed"
)

// perOctave is the number of length buckets from one power of two to the next. Each is 19 % wide.
const perOctave = 4

// bucketOf is the bucket of a length: 0 for none, else one more than its quarter octave.
func bucketOf(x int) int {
	if x <= 0 {
		return 0
	}
	b := int(perOctave * math.Log2(float64(x)))
	for x >= bucketEdge(b+2) { // the logarithm is rounded
		b++
	}
	for x < bucketEdge(b+1) {
		b--
	}
	return b + 1
}

// bucketEdge is the least length in a bucket: the next one up where it holds none.
func bucketEdge(bucket int) int {
	if bucket <= 0 {
		return 0
	}
	return int(math.Ceil(math.Exp2(float64(bucket-1)/perOctave) - 1e-9))
}

// cell holds what a bucket of two lengths contains.
type cell struct {
	n       int
	clients []uint64 // the first few that are different
}

// grid counts requests by two lengths, in bounded memory: the buckets of all lengths there
// can be are a few thousand.
type grid struct {
	cells map[[2]int]*cell
	n     int
	// Single lengths, to find those that many have.
	first, second spikes
}

func newGrid() *grid {
	return &grid{cells: map[[2]int]*cell{}, first: spikes{}, second: spikes{}}
}

func (g *grid) add(x, y int, client uint64, clients int) {
	addToCell(g.cells, [2]int{bucketOf(x), bucketOf(y)}, 1, []uint64{client}, clients)
	g.n++
	g.first.add(x, client, clients)
	g.second.add(y, client, clients)
}

// addToCell adds requests of some clients to the cell under a key.
func addToCell[K comparable](cells map[K]*cell, key K, n int, clients []uint64, most int) {
	c := cells[key]
	if c == nil {
		c = &cell{}
		cells[key] = c
	}
	c.n += n
	c.clients = appendNew(c.clients, clients, max(most, 1))
}

// appendNew adds what is not there, as long as they are fewer than are asked for.
func appendNew(list, more []uint64, most int) []uint64 {
	for _, c := range more {
		if len(list) < most && !slices.Contains(list, c) {
			list = append(list, c)
		}
	}
	return list
}

// enough says how many must have a thing for it to be told.
type enough struct{ requests, clients int }

func (e enough) isMet(n, clients int) bool { return n >= e.requests && clients >= e.clients }

// entry is a cell with its place.
type entry struct {
	at [2]int
	*cell
}

// mergeBuckets merges cells until each rectangle has enough: it divides all there is, along either
// length, as evenly as it can, for as long as both parts have enough (Mondrian; LeFevre,
// DeWitt and Ramakrishnan, ICDE 2006). What is longer or shorter than enough others are is
// taken into the outermost bucket. There is none where all together are too few.
func (g *grid) mergeBuckets(e enough) [][5]int {
	var all []entry
	for at, c := range g.cells {
		all = append(all, entry{at, c})
	}
	slices.SortFunc(all, func(a, b entry) int { return slices.Compare(a.at[:], b.at[:]) })
	if n, clients := countEntries(all, e.clients); !e.isMet(n, clients) {
		return nil
	}
	for axis := range 2 {
		low, high := outermostBuckets(all, axis, e)
		for i := range all {
			all[i].at[axis] = min(max(all[i].at[axis], low), high)
		}
	}
	var out [][5]int
	divideEntries(all, e, func(list []entry) {
		var r [5]int
		for axis := range 2 {
			low, high := list[0].at[axis], list[0].at[axis]
			for _, x := range list {
				low, high = min(low, x.at[axis]), max(high, x.at[axis])
			}
			r[2*axis], r[2*axis+1] = bucketEdge(low), bucketEdge(high+1)
		}
		r[4], _ = countEntries(list, 0)
		out = append(out, r)
	})
	slices.SortFunc(out, func(a, b [5]int) int { return slices.Compare(a[:], b[:]) })
	return out
}

// outermostBuckets are the outermost buckets that enough are in or beyond.
func outermostBuckets(all []entry, axis int, e enough) (low, high int) {
	order := slices.Clone(all)
	slices.SortStableFunc(order, func(a, b entry) int { return a.at[axis] - b.at[axis] })
	find := func(i, step int) int {
		n, clients := 0, []uint64(nil)
		for ; ; i += step {
			n += order[i].n
			clients = appendNew(clients, order[i].clients, e.clients)
			last := i+step < 0 || i+step == len(order)
			if last || e.isMet(n, len(clients)) {
				return order[i].at[axis]
			}
		}
	}
	return find(0, 1), find(len(order)-1, -1)
}

func countEntries(list []entry, most int) (n, clients int) {
	var seen []uint64
	for _, x := range list {
		n += x.n
		seen = appendNew(seen, x.clients, most)
	}
	return n, len(seen)
}

func divideEntries(list []entry, e enough, done func([]entry)) {
	type cut struct {
		axis, at int
		lesser   int
	}
	best := cut{lesser: -1}
	for axis := range 2 {
		slices.SortStableFunc(list, func(a, b entry) int { return a.at[axis] - b.at[axis] })
		total, _ := countEntries(list, 0)
		below := 0
		for i := 1; i < len(list); i++ {
			below += list[i-1].n
			if list[i].at[axis] == list[i-1].at[axis] || min(below, total-below) < e.requests {
				continue
			}
			if m := min(below, total-below); m > best.lesser && isFeasible(list[:i], e) && isFeasible(list[i:], e) {
				best = cut{axis, i, m}
			}
		}
	}
	if best.lesser < 0 {
		done(list)
		return
	}
	slices.SortStableFunc(list, func(a, b entry) int { return a.at[best.axis] - b.at[best.axis] })
	divideEntries(slices.Clone(list[:best.at]), e, done)
	divideEntries(slices.Clone(list[best.at:]), e, done)
}

func isFeasible(list []entry, e enough) bool {
	n, clients := countEntries(list, e.clients)
	return e.isMet(n, clients)
}

// lengthBuckets are the buckets and the single lengths that stand out of them.
func (g *grid) lengthBuckets(e enough) *Lengths {
	b := g.mergeBuckets(e)
	if b == nil {
		return nil
	}
	return &Lengths{Buckets: b, Prompts: g.first.frequentLengths(e, g.n), Answers: g.second.frequentLengths(e, g.n)}
}

// spikes counts single lengths.
type spikes map[int]*cell

const (
	// mostLengths is the largest number of different lengths that are counted one by one.
	mostLengths = 1 << 15
	// spikeShare is the smallest share of the requests that a length needs to be listed. spikeOver
	// is the smallest share of its quarter octave.
	spikeShare = 0.0005
	spikeOver  = 0.01
)

func (s spikes) add(x int, client uint64, clients int) {
	if s[x] != nil || len(s) < mostLengths {
		addToCell(s, x, 1, []uint64{client}, clients)
	}
}

func (s spikes) frequentLengths(e enough, total int) (out []Spike) {
	in := map[int]int{}
	for x, c := range s {
		in[bucketOf(x)] += c.n
	}
	for x, c := range s {
		b := bucketOf(x)
		width := bucketEdge(b+1) - bucketEdge(b)
		if x < 1 || width < 2 || !e.isMet(c.n, len(c.clients)) || float64(c.n) < spikeShare*float64(total) {
			continue
		}
		if share := float64(c.n) / float64(in[b]); share > max(spikeOver, 2/float64(width)) {
			out = append(out, Spike{x, math.Round(share*1000) / 1000})
		}
	}
	slices.SortFunc(out, func(a, b Spike) int { return a.Tokens - b.Tokens })
	return out
}

// drawn draws from buckets.
type drawn struct {
	buckets [][5]int
	sums    []int
	spikes  [2]map[int][]Spike
}

func newDrawn(buckets [][5]int) *drawn {
	d := &drawn{buckets: buckets}
	sum := 0
	for _, b := range buckets {
		sum += b[4]
		d.sums = append(d.sums, sum)
	}
	return d
}

func drawnLengths(l *Lengths) *drawn {
	if l == nil {
		return nil
	}
	d := newDrawn(l.Buckets)
	for axis, list := range [][]Spike{l.Prompts, l.Answers} {
		d.spikes[axis] = map[int][]Spike{}
		for _, s := range list {
			d.spikes[axis][bucketOf(s.Tokens)] = append(d.spikes[axis][bucketOf(s.Tokens)], s)
		}
	}
	return d
}

// drawIndex finds the weight that a number stands for; sums has each with all before it.
func drawIndex(sums []int, u uint64) int {
	k, _ := bits.Mul64(u, uint64(sums[len(sums)-1]))
	return sort.SearchInts(sums, int(k)+1)
}

// drawPair gives the two lengths that a number stands for. Within a bucket the logarithm is even.
func (d *drawn) drawPair(u uint64) (x, y int) {
	r := seed.Rand(u)
	b := d.buckets[drawIndex(d.sums, r.Uint64())]
	x = d.drawWithin(0, b[0], b[1], &r)
	y = d.drawWithin(1, b[2], b[3], &r)
	return x, y
}

func (d *drawn) drawWithin(axis, from, below int, r *seed.Rand) int {
	u, v := seed.Float(r.Uint64()), seed.Float(r.Uint64())
	x := drawLogEven(from, below, u)
	for _, s := range d.spikes[axis][bucketOf(x)] {
		if s.Tokens >= from && s.Tokens < below && v < s.Share {
			return s.Tokens
		}
		v -= s.Share
	}
	return x
}

// drawLogEven is a whole number from one to below another, whose logarithm is even.
func drawLogEven(from, below int, u float64) int {
	low, high := math.Log(float64(max(from, 1))), math.Log(float64(max(below, 2)))
	return min(max(int(math.Exp(low+float64(u*(high-low)))), from), below-1)
}
