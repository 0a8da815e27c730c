package spill

import (
	"math/bits"
	"unsafe"

	"pitot/internal/stats"
)

// A Bag is whole numbers in no order, of which it counts those up to any value.
// Pieces of it are sorted, each by itself: nothing is moved when a bag grows, and
// what came since it was last asked is sorted alone.
type Bag[T uint32 | int64] struct {
	store *Store
	full  []bagPiece[T]
	open  []T
	upTo  int // how many of the open ones are sorted
	n     int64
	max   T   // 0 if there are none above
	buf   []T // for what is read of the file

	sum     uint64    // modulo 2⁶⁴
	squares [2]uint64 // modulo 2¹²⁸, the lower half first
}

// bagPiece is in memory, sorted once it is asked, or sorted in the file.
type bagPiece[T uint32 | int64] struct {
	values []T
	sorted bool

	at    int64 // in the file
	fence []T   // there: every fenced-th value and the last
}

// fenced is the number of values of a piece in the file that are read to look for one.
const fenced = 2048

// NewBag gives an empty bag.
func NewBag[T uint32 | int64](s *Store) *Bag[T] { return &Bag[T]{store: s} }

func (b *Bag[T]) size() int {
	var x T
	return int(unsafe.Sizeof(x))
}

// Add takes in a number.
func (b *Bag[T]) Add(x T) {
	b.n++
	b.max = max(b.max, x)
	b.sum += uint64(x)
	high, low := bits.Mul64(absoluteValue(x), absoluteValue(x))
	var carry uint64
	b.squares[0], carry = bits.Add64(b.squares[0], low, 0)
	b.squares[1] += high + carry
	b.open = append(b.open, x)
	if len(b.open) >= b.store.pieceValues(b.size()) {
		b.seal()
	}
}

func absoluteValue[T uint32 | int64](x T) uint64 {
	if x < 0 {
		return uint64(-x)
	}
	return uint64(x)
}

func (b *Bag[T]) seal() {
	p := bagPiece[T]{values: b.open, sorted: b.upTo == len(b.open)}
	bytes := len(b.open) * b.size()
	if kept := b.store.reserveBytes(bytes); !kept {
		sortAny(b.open, nil)
		if at, ok := b.store.write(bytesOf(b.open)); ok {
			p = bagPiece[T]{at: at}
			for i := 0; i < len(b.open); i += fenced {
				p.fence = append(p.fence, b.open[i])
			}
			p.fence = append(p.fence, b.open[len(b.open)-1])
		} else {
			p.sorted = true
			b.store.reserveBytes(bytes)
		}
	}
	b.full = append(b.full, p)
	if p.values != nil {
		b.open = make([]T, 0, len(b.open))
	} else {
		b.open = b.open[:0]
	}
	b.upTo = 0
}

// sortAny sorts numbers; buf is scratch space.
func sortAny[T uint32 | int64](xs, buf []T) {
	switch xs := any(xs).(type) {
	case []uint32:
		stats.SortUint32(xs, any(buf).([]uint32))
	case []int64:
		stats.SortInt64(xs, any(buf).([]int64))
	}
}

// sort makes the bag ready to be asked.
func (b *Bag[T]) sort() {
	var buf []T
	for i := range b.full {
		if p := &b.full[i]; !p.sorted && p.values != nil {
			if buf == nil {
				buf = make([]T, len(p.values))
			}
			sortAny(p.values, buf)
			p.sorted = true
		}
	}
	if b.upTo < len(b.open) {
		sortAny(b.open, buf)
		b.upTo = len(b.open)
	}
}

// Len returns the number of numbers.
func (b *Bag[T]) Len() int64 { return b.n }

// Max is the largest, 0 if none is above.
func (b *Bag[T]) Max() T { return b.max }

// AtMost counts those that are at most x.
func (b *Bag[T]) AtMost(x T) int64 {
	if x >= b.max && x >= 0 {
		return b.n
	}
	b.sort()
	n := upTo(b.open, x)
	for i := range b.full {
		p := &b.full[i]
		if p.values != nil {
			n += upTo(p.values, x)
			continue
		}
		all := b.store.pieceValues(b.size())
		k := int(upTo(p.fence[:len(p.fence)-1], x)) // the stretch before this fence has the last that counts
		switch {
		case k == 0:
		case p.fence[len(p.fence)-1] <= x:
			n += int64(all)
		default:
			from := (k - 1) * fenced
			if b.buf == nil {
				b.buf = make([]T, fenced)
			}
			some := b.buf[:min(fenced, all-from)]
			b.store.read(bytesOf(some), p.at+int64(from*b.size()))
			n += int64(from) + upTo(some, x)
		}
	}
	return n
}

// upTo counts the values of a sorted list that are at most x.
func upTo[T uint32 | int64](sorted []T, x T) int64 {
	lo, hi := 0, len(sorted)
	for lo < hi {
		if mid := int(uint(lo+hi) / 2); sorted[mid] > x {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	return int64(lo)
}

// Sum is the sum of all, as long as it is below 2⁶⁴.
func (b *Bag[T]) Sum() uint64 { return b.sum }

// SquaredDeviations is Σ(x − center)², as its upper and its lower half. It is exact, as
// long as it is below 2¹²⁸.
func (b *Bag[T]) SquaredDeviations(center uint64) (high, low uint64) {
	// Σx² − 2·center·Σx + n·center²; what overflows on the way cancels out.
	low, high = b.squares[0], b.squares[1]
	var borrow, carry uint64
	h, l := bits.Mul64(center, b.sum)
	h, l = h<<1|l>>63, l<<1
	low, borrow = bits.Sub64(low, l, 0)
	high, _ = bits.Sub64(high, h, borrow)
	ch, cl := bits.Mul64(center, center)
	h, l = bits.Mul64(cl, uint64(b.n))
	h += ch * uint64(b.n)
	low, carry = bits.Add64(low, l, 0)
	high, _ = bits.Add64(high, h, carry)
	return high, low
}

// All yields the numbers, in no order, many at a time. They are not to be changed,
// nor to be kept longer than until the next are yielded.
func (b *Bag[T]) All(yield func([]T) bool) {
	var buf []T
	for i := range b.full {
		values := b.full[i].values
		if values == nil {
			if buf == nil {
				buf = make([]T, b.store.pieceValues(b.size()))
			}
			values = buf
			b.store.read(bytesOf(values), b.full[i].at)
		}
		if !yield(values) {
			return
		}
	}
	if len(b.open) > 0 {
		yield(b.open)
	}
}

// Free empties the bag and gives back what it has of the store.
func (b *Bag[T]) Free() {
	for i := range b.full {
		if p := &b.full[i]; p.values != nil {
			b.store.releaseBytes(len(p.values) * b.size())
		} else {
			b.store.forget(p.at)
		}
	}
	*b = Bag[T]{store: b.store}
}
