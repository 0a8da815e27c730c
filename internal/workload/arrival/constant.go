package arrival

import (
	"math"
	"math/bits"
)

// constant divides with a remainder: i/rate seconds are at + rest/divisor
// nanoseconds at every step, without error.
type constant struct {
	at, gap             uint64 // nanoseconds
	rest, more, divisor uint64
}

// NewConstant is a process with equal gaps: request i, from 0, is due at
// i/rate seconds, each time rounded to the nearest nanosecond from the exact
// value, so that no error adds up.
func NewConstant(rate float64) (Process, error) {
	if err := checkRate(rate); err != nil {
		return nil, err
	}
	// rate = mantissa × 2^−shift, hence a gap of 10⁹ × 2^shift / mantissa. In
	// the range of rates shift is 23 to 72: 102 bits at most, and a quotient
	// below 2⁵⁰.
	fraction, exponent := math.Frexp(rate)
	mantissa, shift := uint64(math.Ldexp(fraction, 53)), uint(53-exponent)
	hi, lo := uint64(1e9)>>(64-min(shift, 64)), uint64(1e9)<<shift
	if shift > 64 {
		hi = uint64(1e9) << (shift - 64)
	}
	gap, more := bits.Div64(hi, lo, mantissa)
	// Starting half way up rounds to nearest instead of down.
	return &constant{gap: gap, more: more, rest: mantissa / 2, divisor: mantissa}, nil
}

func (c *constant) Next() int64 {
	if c.at > math.MaxInt64 {
		return math.MaxInt64
	}
	due := int64(c.at)
	c.at += c.gap
	if c.rest += c.more; c.rest >= c.divisor {
		c.rest -= c.divisor
		c.at++
	}
	return due
}
