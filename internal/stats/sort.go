package stats

import (
	"math"
	"slices"
)

// radixFrom is the length from which counting digits beats comparing:
// below it, clearing the counters costs more than the sort.
const radixFrom = 1 << 12

const (
	digitBits = 11 // three passes for 32 bits; 2,048 counters stay in the L1 cache
	digits    = 1 << digitBits
)

// SortUint32 sorts a ascending. buf is scratch space; when it is shorter than
// a, new space is allocated.
func SortUint32(a, buf []uint32) {
	if len(a) < radixFrom {
		slices.Sort(a)
		return
	}
	radixSort(a, resizeBuffer(buf, len(a)), 0, 3)
}

// SortInt64 sorts a ascending. buf is scratch space; when it is shorter than
// a, new space is allocated.
func SortInt64(a, buf []int64) {
	if len(a) < radixFrom {
		slices.Sort(a)
		return
	}
	radixSort(a, resizeBuffer(buf, len(a)), 1<<63, 6)
}

// SortFloat64 sorts a ascending; it must hold no NaN. Floats compare like
// integers once the bits of the negative ones are turned around.
func SortFloat64(a []float64) {
	if len(a) < radixFrom {
		slices.Sort(a)
		return
	}
	keys := make([]int64, len(a))
	for i, x := range a {
		keys[i] = orderedBits(int64(math.Float64bits(x)))
	}
	SortInt64(keys, nil)
	for i, k := range keys {
		a[i] = math.Float64frombits(uint64(orderedBits(k)))
	}
}

// orderedBits maps a float's bits to an integer of the same order, and back.
func orderedBits(bits int64) int64 { return bits ^ (bits >> 63 & math.MaxInt64) }

func resizeBuffer[T any](buf []T, n int) []T {
	if len(buf) < n {
		return make([]T, n)
	}
	return buf[:n]
}

// radixSort sorts by digits, the least significant first, between a and b. All
// digits are counted in one pass, and a digit that is the same everywhere
// costs nothing more. flip turns the sign bit, so that negative numbers come
// first.
func radixSort[T uint32 | int64](a, b []T, flip uint64, passes int) {
	var counts [6][digits]uint32
	for _, v := range a {
		k := uint64(v) ^ flip
		for d := range passes {
			counts[d][k>>(d*digitBits)&(digits-1)]++
		}
	}
	from, to := a, b
	for d := range passes {
		c, shift := &counts[d], d*digitBits
		if c[(uint64(from[0])^flip)>>shift&(digits-1)] == uint32(len(a)) {
			continue
		}
		var at uint32
		for i, n := range c {
			c[i] = at
			at += n
		}
		for _, v := range from {
			i := (uint64(v) ^ flip) >> shift & (digits - 1)
			to[c[i]] = v
			c[i]++
		}
		from, to = to, from
	}
	if &from[0] != &a[0] {
		copy(a, from)
	}
}
