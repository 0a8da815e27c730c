// Package seed turns one seed into as many independent numbers as a run
// needs. Every use has a stream of its own, so that a change of one setting
// never reshuffles what another one drew, and every number can be had alone,
// from its index, so that workers need no common state. It has no clock and no I/O.
//
// The numbers are part of what a seed means in a run's configuration: they
// never change.
package seed

// step is the golden ratio's fraction in 64 bits: the increment of splitmix64.
const step = 0x9e3779b97f4a7c15

// Mix is the output function of splitmix64 (Steele, Lea and Flood, "Fast
// splittable pseudorandom number generators", OOPSLA 2014): a bijection on
// 64 bits in which every input bit moves every output bit.
func Mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// At is the i-th number of one stream of a seed. For a given seed and stream
// it is a bijection of i: no two indices share a number.
func At(seed, stream, i uint64) uint64 {
	key := Mix(Mix(seed+step) + stream*step)
	return Mix(key + i*step)
}

// Rand is splitmix64 itself: its value is its state, and any value will do.
type Rand uint64

// Uint64 draws the next number.
func (r *Rand) Uint64() uint64 {
	*r += step
	return Mix(uint64(*r))
}

// Float is u as a number in (0, 1): the middle of one of 2⁵² equal cells, so
// that neither end is ever met.
func Float(u uint64) float64 { return (float64(u>>12) + 0.5) / (1 << 52) }

// Streams of a run's seed, and of a point's.
const (
	point    = 1 + iota // of the run's: the seeds of its points
	Arrival             // of a point's: when its requests are due
	Workload            // what they ask
	Nonce               // what makes its prompts differ from another point's
)

// Point is the seed of a run's i-th point.
func Point(run uint64, i int32) uint64 { return At(run, point, uint64(i)) }
