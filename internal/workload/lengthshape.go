package workload

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"

	"pitot/internal/say"
	"pitot/internal/stats"
)

// lengthShape holds values that are computed once for a distribution of lengths.
type lengthShape struct {
	written string // quantiles(…), as it is read back
	// Of quantiles: shares from 0 to 1 and the lengths there, in tokens.
	shares, lengths []float64
	// Of pairs: the prompt and the answer of each request, and each of the two by itself.
	rows   [][2]int
	sorted [2]column
	// Of zipf: the sum of k^−exponent over the first few k.
	sums [zipfFew]float64
}

// shapes has one of each, so that equal distributions are equal values.
var shapes sync.Map

func sharedShape(written string, make func() *lengthShape) *lengthShape {
	if s, ok := shapes.Load(written); ok {
		return s.(*lengthShape)
	}
	s, _ := shapes.LoadOrStore(written, make())
	return s.(*lengthShape)
}

// parseQuantiles reads PERCENT:TOKENS,… from 0 to 100.
func parseQuantiles(list string) (*lengthShape, error) {
	s := &lengthShape{}
	var written []string
	for pair := range strings.SplitSeq(list, ",") {
		percent, length, ok := strings.Cut(pair, ":")
		p, errP := strconv.ParseFloat(strings.TrimSpace(percent), 64)
		x, errX := strconv.ParseFloat(strings.TrimSpace(length), 64)
		n := len(s.shares)
		switch {
		case !ok || errP != nil || errX != nil:
			return nil, fmt.Errorf("%.40q is not PERCENT:TOKENS", strings.TrimSpace(pair))
		case !(p >= 0 && p <= 100):
			return nil, fmt.Errorf("%g %% is not between 0 and 100", p)
		case !(x >= 1 && x <= MaxLength):
			return nil, fmt.Errorf("%g is not between 1 and %d tokens", x, MaxLength)
		case n > 0 && p/100 <= s.shares[n-1]:
			return nil, fmt.Errorf("%g %% does not rise", p)
		case n > 0 && x < s.lengths[n-1]:
			return nil, fmt.Errorf("%g tokens at %g %% are fewer than before", x, p)
		}
		s.shares, s.lengths = append(s.shares, p/100), append(s.lengths, x)
		written = append(written, say.Exact(p+0)+":"+say.Exact(x))
	}
	if n := len(s.shares); s.shares[0] != 0 || s.shares[n-1] != 1 {
		return nil, fmt.Errorf("the shortest, at 0, and the longest, at 100, are wanted")
	}
	s.written = "quantiles(" + strings.Join(written, ",") + ")"
	return sharedShape(s.written, func() *lengthShape { return s }), nil
}

// quantile is the length at a share: between two known ones its logarithm is even,
// as lengths of real traffic spread over orders of magnitude.
func (s *lengthShape) quantile(p float64) float64 {
	i := 1
	for i < len(s.shares)-1 && p > s.shares[i] {
		i++
	}
	part := (p - s.shares[i-1]) / (s.shares[i] - s.shares[i-1])
	low, high := math.Log(s.lengths[i-1]), math.Log(s.lengths[i])
	return math.Exp(low + float64(part*(high-low)))
}

// mean is the integral of the quantiles: over each stretch (b−a)/ln(b/a).
func (s *lengthShape) mean() float64 {
	sum := 0.0
	for i := 1; i < len(s.shares); i++ {
		a, b := s.lengths[i-1], s.lengths[i]
		width := s.shares[i] - s.shares[i-1]
		if b-a < 1e-9*a {
			sum += width * a
			continue
		}
		sum += width * (b - a) / math.Log(b/a)
	}
	return sum
}

// zipfFew is the number of terms of a harmonic number that are summed directly. The formula of
// Euler and Maclaurin gives the others.
const zipfFew = 32

func zipfShape(exponent float64) *lengthShape {
	s := &lengthShape{}
	sum := 0.0
	for k := range zipfFew {
		sum += math.Pow(float64(k+1), -exponent)
		s.sums[k] = sum
	}
	return s
}

// harmonicSum is the sum of k^−exponent over k = 1…n.
func (s *lengthShape) harmonicSum(exponent, n float64) float64 {
	const m = zipfFew
	if n <= m {
		return s.sums[int(n)-1]
	}
	// The integral from m to n, the trapezium's ends, and the first correction
	// (Euler-Maclaurin); the next is below 1e-6 of a term.
	from, to := math.Pow(m, -exponent), math.Pow(n, -exponent)
	area := math.Log(n / m)
	if e := 1 - exponent; math.Abs(e) > 1e-9 {
		area = (float64(to*n) - float64(from*m)) / e
	}
	return s.sums[m-1] + area + (to-from)/2 + exponent*(from/m-to/n)/12
}

// zipfQuantile is the smallest k ≤ most whose share of the sum is p at least.
func (s *lengthShape) zipfQuantile(p, exponent, most float64) int {
	want := p * s.harmonicSum(exponent, most)
	low, high := 1, int(most)
	for low < high {
		mid := (low + high) / 2
		if s.harmonicSum(exponent, float64(mid)) >= want {
			high = mid
		} else {
			low = mid + 1
		}
	}
	return low
}

// gammaQuantile is the length x of a gamma distribution of that mean and standard
// deviation with P(k, x/θ) = p: bisection on the logarithm, from where Wilson and
// Hilferty's cube puts it.
func gammaQuantile(p, mean, sd float64) float64 {
	if sd == 0 {
		return mean
	}
	shape, scale := float64(mean/sd)*float64(mean/sd), float64(sd/mean)*sd
	if shape > 1e8 { // the normal distribution, by then
		return mean + float64(sd*math.Sqrt2*math.Erfinv(2*p-1))
	}
	if stats.IncompleteGamma(shape, 0.5/scale) >= p { // below the shortest there is
		return 0.5
	}
	c := 1 / (9 * shape)
	cube := 1 - c + float64(math.Sqrt2*math.Erfinv(2*p-1)*math.Sqrt(c))
	x := shape * cube * cube * cube
	if least := math.Exp((math.Log(p) + lgamma(shape+1)) / shape); cube <= 0 || x < least { // P(k,x) ≤ x^k/Γ(k+1)
		x = least
	}
	// Newton's steps in ln x, kept between what is known to be too small and too large.
	low, high := 0.0, math.Inf(1)
	for range 100 {
		q := stats.IncompleteGamma(shape, x)
		if q < p {
			low = x
		} else {
			high = x
		}
		density := math.Exp(float64(shape*math.Log(x)) - x - lgamma(shape)) // of ln x
		next := x * math.Exp((p-q)/density)
		if !(next > low && next < high) {
			switch {
			case math.IsInf(high, 1):
				next = 2 * x
			case low == 0:
				next = x / 2
			default:
				next = math.Sqrt(low * high)
			}
		}
		done := math.Abs(next-x) <= 1e-9*x
		if x = next; done {
			break
		}
	}
	return x * scale
}

func lgamma(x float64) float64 { v, _ := math.Lgamma(x); return v }
