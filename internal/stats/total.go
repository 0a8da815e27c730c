package stats

import (
	"math"
	"math/big"
	"math/bits"
)

// A Total sums numbers and their squares without rounding, so that what comes
// of it does not depend on the order in which they came. The zero value is
// empty. It takes finite numbers.
//
// A float is a whole number times a power of two. Those of one power are added
// up in as many bits as it takes (Kulisch's accumulator, kept sparse).
type Total struct {
	n    int64
	from int // the power of two that bins[0] is for, plus 1075
	bins []totalBin
}

// totalBin sums the mantissas m that belong to one power of two.
type totalBin struct {
	hi, lo  uint64    // Σm, two's complement
	squares [3]uint64 // Σm², the lowest 64 bits first
}

// Add takes in a number.
func (t *Total) Add(x float64) {
	t.n++
	b := math.Float64bits(x)
	m, power := b&(1<<52-1), int(b>>52&0x7ff)
	if power > 0 {
		m |= 1 << 52
	} else {
		power = 1 // subnormal
	}
	if i := power - t.from; i < 0 || i >= len(t.bins) {
		if m == 0 {
			return
		}
		t.widenBins(power)
	}
	bin := &t.bins[power-t.from]
	var carry uint64
	if b>>63 == 0 {
		bin.lo, carry = bits.Add64(bin.lo, m, 0)
		bin.hi += carry
	} else {
		bin.lo, carry = bits.Sub64(bin.lo, m, 0)
		bin.hi -= carry
	}
	high, low := bits.Mul64(m, m)
	s := &bin.squares
	s[0], carry = bits.Add64(s[0], low, 0)
	s[1], carry = bits.Add64(s[1], high, carry)
	s[2] += carry
}

// widenBins makes a bin for a power of two.
func (t *Total) widenBins(power int) {
	if len(t.bins) == 0 {
		t.from, t.bins = power, make([]totalBin, 1, 16)
		return
	}
	from, to := min(t.from, power), max(t.from+len(t.bins), power+1)
	bins := make([]totalBin, to-from)
	copy(bins[t.from-from:], t.bins)
	t.from, t.bins = from, bins
}

// N returns the number of numbers.
func (t *Total) N() int64 { return t.n }

// Sum is the sum, rounded once.
func (t *Total) Sum() float64 {
	sum, _ := t.exactSums()
	return scaleToFloat(new(big.Rat).SetInt(sum), t.from-1075)
}

// Mean is the mean; without numbers NaN.
func (t *Total) Mean() float64 {
	if t.n == 0 {
		return math.NaN()
	}
	return t.Sum() / float64(t.n)
}

// Squares is the sum of the squared deviations from the mean, rounded once.
func (t *Total) Squares() float64 {
	if t.n == 0 {
		return 0
	}
	sum, squares := t.exactSums()
	n := big.NewInt(t.n)
	// Σ(x − mean)² = (n·Σx² − (Σx)²) / n
	squares.Mul(squares, n).Sub(squares, sum.Mul(sum, sum))
	return scaleToFloat(new(big.Rat).SetFrac(squares, n), 2*(t.from-1075))
}

// exactSums gives Σx and Σx² as whole numbers of 2^(from−1075) and of its square.
func (t *Total) exactSums() (sum, squares *big.Int) {
	sum, squares = new(big.Int), new(big.Int)
	var part, word big.Int
	join := func(words ...uint64) *big.Int { // the highest first
		part.SetInt64(0)
		for _, w := range words {
			part.Lsh(&part, 64).Or(&part, word.SetUint64(w))
		}
		return &part
	}
	for i := range t.bins {
		b := &t.bins[i]
		if b.hi>>63 == 0 {
			sum.Add(sum, part.Lsh(join(b.hi, b.lo), uint(i)))
		} else {
			lo, borrow := bits.Sub64(0, b.lo, 0)
			hi, _ := bits.Sub64(0, b.hi, borrow)
			sum.Sub(sum, part.Lsh(join(hi, lo), uint(i)))
		}
		squares.Add(squares, part.Lsh(join(b.squares[2], b.squares[1], b.squares[0]), uint(2*i)))
	}
	return sum, squares
}

// scaleToFloat is x·2^power as the nearest float.
func scaleToFloat(x *big.Rat, power int) float64 {
	unit := new(big.Int).Lsh(big.NewInt(1), uint(max(power, -power)))
	if power >= 0 {
		x.Mul(x, new(big.Rat).SetInt(unit))
	} else {
		x.Quo(x, new(big.Rat).SetInt(unit))
	}
	f, _ := x.Float64()
	return f
}
