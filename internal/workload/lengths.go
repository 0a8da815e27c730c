package workload

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"pitot/internal/say"
	"pitot/internal/workload/seed"
)

// MaxLength is the longest a prompt or an answer can be asked to be, in
// tokens: more than any server takes, and few enough to be held in memory.
const MaxLength = 16 << 20

// Lengths is a distribution of lengths in tokens. The zero value is no
// distribution at all. Lengths can be compared with ==.
type Lengths struct {
	kind  lengthKind
	a, b  float64      // the numbers in the parentheses
	shape *lengthShape // what is worked out of them, one for all that are equal; nil where they say it all
}

// lengthKind is the name of a distribution.
type lengthKind string

const (
	noLength  lengthKind = ""
	fixed     lengthKind = "fixed"
	uniform   lengthKind = "uniform"
	normal    lengthKind = "normal"
	lognormal lengthKind = "lognormal"
	gamma     lengthKind = "gamma"
	zipf      lengthKind = "zipf"
	quantiles lengthKind = "quantiles"
	pairs     lengthKind = "pairs"
)

// FixedLength is n tokens each time, held to 1…MaxLength.
func FixedLength(n int) Lengths { return Lengths{kind: fixed, a: float64(min(max(n, 1), MaxLength))} }

const lengthHint = "write a number of tokens as 1024, or uniform(a,b), normal(mean,sd), lognormal(mean,sd), gamma(mean,sd), zipf(exponent,most), quantiles(0:1,50:200,100:4000) quantiles(FILE,input), or pairs(FILE,input) with pairs(FILE,output)"

// ParseLengths reads "1024", "uniform(a,b)" with both ends included, "normal(mean,sd)",
// "lognormal(mean,sd)", "gamma(mean,sd)", "zipf(exponent,most)" or "quantiles(PERCENT:TOKENS,…)",
// or "quantiles(FILE,input)" and "quantiles(FILE,output)" for those of a trace or a file of
// prompts, which are read at once. "pairs(FILE,input)" and "pairs(FILE,output)" are those of the
// same requests of it, see [Lengths.Pairs]. The mean and the standard deviation are those of the
// length itself, not of its logarithm. Of zipf a length of k tokens is as likely as k^−exponent, up
// to the most. Between two quantiles the logarithm of the length is even. Every error is a
// [say.Error].
func ParseLengths(s string) (Lengths, error) {
	fail := func(hint, format string, args ...any) (Lengths, error) {
		return Lengths{}, say.Errorf("length %.60q: %s", s, fmt.Sprintf(format, args...)).WithHint(hint)
	}
	text := strings.ToLower(strings.TrimSpace(s))
	name, inner, call := strings.Cut(text, "(")
	if !call {
		n, err := strconv.Atoi(text)
		if err != nil && !errors.Is(err, strconv.ErrRange) {
			return fail(lengthHint, "not a length")
		}
		if n < 1 || n > MaxLength {
			return fail("", "want 1 to %d tokens", MaxLength)
		}
		return FixedLength(n), nil
	}
	kind := lengthKind(strings.TrimSpace(name))
	inner, closed := strings.CutSuffix(inner, ")")
	if closed && (kind == quantiles || kind == pairs) {
		file, which, ok := columnOf(s)
		switch {
		case ok && kind == quantiles:
			return quantilesOf(file, which)
		case ok:
			return pairsOf(file, which)
		case kind == pairs:
			return fail("for example --input 'pairs(lengths.csv,input)' --output 'pairs(lengths.csv,output)'", "which file, and input or output of it?")
		}
		shape, err := parseQuantiles(inner)
		if err != nil {
			return fail("for example quantiles(0:1,50:200,90:1500,100:4000)", "%v", err)
		}
		return Lengths{kind: quantiles, shape: shape}, nil
	}
	first, second, two := strings.Cut(inner, ",")
	known := slices.Contains([]lengthKind{uniform, normal, lognormal, gamma, zipf}, kind)
	if !known || !closed || !two {
		return fail(lengthHint, "not a length")
	}
	a, errA := strconv.ParseFloat(strings.TrimSpace(first), 64)
	b, errB := strconv.ParseFloat(strings.TrimSpace(second), 64)
	if errA != nil || errB != nil || math.IsNaN(a) || math.IsNaN(b) {
		return fail(lengthHint, "%q and %q are not two numbers", first, second)
	}
	if kind == zipf {
		switch {
		case a < 0 || a > 10:
			return fail("", "the exponent is %g, want 0 to 10", a)
		case b != math.Trunc(b) || b < 1 || b > MaxLength:
			return fail("", "the most is %g, want a whole number of 1 to %d tokens", b, MaxLength)
		}
		a += 0
		return Lengths{zipf, a, b, sharedShape("zipf("+say.Exact(a)+")", func() *lengthShape { return zipfShape(a) })}, nil
	}
	if a < 1 || a > MaxLength {
		return fail("", "the first number is %g, want 1 to %d tokens", a, MaxLength)
	}
	switch {
	case kind != uniform && (b < 0 || b > MaxLength):
		return fail("", "the standard deviation is %g, want 0 to %d tokens", b, MaxLength)
	case kind == uniform && (a != math.Trunc(a) || b != math.Trunc(b)):
		return fail("", "the ends of uniform are whole numbers of tokens")
	case kind == uniform && b < a:
		return fail(fmt.Sprintf("did you mean uniform(%g,%g)?", b, a), "the ends of uniform are the wrong way round")
	case kind == uniform && b > MaxLength:
		return fail("", "the second number is %g, want at most %d tokens", b, MaxLength)
	}
	return Lengths{kind: kind, a: a, b: b + 0}, nil // + 0 makes a plain zero of -0
}

// IsZero tells that there is no distribution.
func (l Lengths) IsZero() bool { return l.kind == noLength }

// Draw is the length that a draw u, even over all 64-bit numbers, stands for:
// the quantile u/2⁶⁴, rounded to the nearest token and held to 1…MaxLength.
// The zero Lengths gives Unknown.
//
// Holding the tail of a wide normal to 1 raises its mean; String and run.json
// keep what was asked for.
func (l Lengths) Draw(u uint64) int {
	switch l.kind {
	case fixed:
		return int(l.a)
	case uniform:
		i, _ := bits.Mul64(u, uint64(l.b-l.a)+1)
		return int(l.a) + int(i)
	case normal:
		return clampTokens(l.a + float64(l.b*normalQuantile(u)))
	case lognormal:
		// Moments of the log-normal distribution, solved for its parameters:
		// σ² = ln(1 + sd²/m²), μ = ln m − σ²/2.
		ratio := l.b / l.a
		variance := math.Log1p(float64(ratio * ratio))
		mu := math.Log(l.a) - float64(variance/2)
		return clampTokens(math.Exp(mu + float64(math.Sqrt(variance)*normalQuantile(u))))
	case gamma:
		return clampTokens(gammaQuantile(seed.Float(u), l.a, l.b))
	case zipf:
		return l.shape.zipfQuantile(seed.Float(u), l.a, l.b)
	case quantiles:
		return clampTokens(l.shape.quantile(seed.Float(u)))
	case pairs:
		return l.shape.drawPair(u)[int(l.a)]
	}
	return Unknown
}

// normalQuantile is that of the standard normal distribution.
func normalQuantile(u uint64) float64 {
	return math.Sqrt2 * math.Erfinv(float64(2*seed.Float(u))-1)
}

// clampTokens holds x to what a length can be; x may be infinite.
func clampTokens(x float64) int { return int(math.Round(min(max(x, 1), MaxLength))) }

// Mean is the mean length as asked for, before it is held to 1…MaxLength; NaN
// for the zero Lengths.
func (l Lengths) Mean() float64 {
	switch l.kind {
	case noLength:
		return math.NaN()
	case uniform:
		return (l.a + l.b) / 2
	case zipf:
		return zipfShape(l.a-1).harmonicSum(l.a-1, l.b) / l.shape.harmonicSum(l.a, l.b)
	case quantiles:
		return l.shape.mean()
	case pairs:
		return l.shape.sorted[int(l.a)].mean()
	}
	return l.a
}

// SquaredCV is the squared coefficient of variation of what is drawn; NaN for the zero
// Lengths.
func (l Lengths) SquaredCV() float64 {
	const points = 1 << 12
	if l.IsZero() {
		return math.NaN()
	}
	var sum, squares float64
	for i := range points {
		x := float64(l.Quantile((float64(i) + 0.5) / points))
		sum += x
		squares += x * x
	}
	return max(0, squares*points/(sum*sum)-1)
}

// Quantile is the length that a share p of the requests does not exceed, 0 < p < 1.
func (l Lengths) Quantile(p float64) int {
	if l.kind == pairs {
		column := l.shape.sorted[int(l.a)]
		return column[min(int(max(p, 0)*float64(len(column))), len(column)-1)]
	}
	return l.Draw(uint64(min(max(p, 0), math.Nextafter(1, 0)) * (1 << 63) * 2))
}

// String writes the lengths so that ParseLengths reads them back.
func (l Lengths) String() string {
	switch l.kind {
	case noLength:
		return ""
	case fixed:
		return strconv.Itoa(int(l.a))
	case quantiles:
		return l.shape.written
	case pairs:
		return "pairs(" + l.shape.written + "," + pairColumns[int(l.a)] + ")"
	}
	return string(l.kind) + "(" + say.Exact(l.a) + "," + say.Exact(l.b) + ")"
}
