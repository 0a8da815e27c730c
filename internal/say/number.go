package say

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Numbers are written the same way everywhere: with as many digits as their size
// deserves and thousands set apart.

// Unknown stands in place of a value that is not known.
const Unknown = "–"

// RoundedTime returns a time of so many seconds to the second, minute or tenth of an hour, by how
// long it is.
func RoundedTime(seconds float64) string {
	switch {
	case seconds < 120: // as a budget of 90 s is written
		return fmt.Sprintf("%.0f s", seconds)
	case seconds < 7200:
		return fmt.Sprintf("%.0f min", seconds/60)
	}
	return fmt.Sprintf("%.1f h", seconds/3600)
}

// Count writes a whole number with its thousands set apart: 12,345.
func Count[T int | int32 | int64](n T) string {
	s := strconv.FormatInt(int64(n), 10)
	neg := strings.HasPrefix(s, "-")
	s = strings.TrimPrefix(s, "-")
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	if neg {
		return "-" + s
	}
	return s
}

// Duration writes a length of time as people do: 250 ms, 1.5 s, 90 s, 10 min,
// 1 h 30 min. From two minutes on it is to the second.
func Duration(d time.Duration) string {
	if d < 0 {
		return "-" + Duration(-d)
	}
	inUnits := func(unit time.Duration, name string) string {
		return Exact(float64(d)/float64(unit)) + " " + name
	}
	switch {
	case d == 0:
		return "0 s"
	case d < time.Microsecond:
		return inUnits(time.Nanosecond, "ns")
	case d < time.Millisecond:
		return inUnits(time.Microsecond, "µs")
	case d < time.Second:
		return inUnits(time.Millisecond, "ms")
	case d < 2*time.Minute && d != time.Minute:
		return inUnits(time.Second, "s")
	}
	n := int64(d.Round(time.Second) / time.Second)
	var parts []string
	for _, p := range []struct {
		n    int64
		name string
	}{{n / 3600, "h"}, {n / 60 % 60, "min"}, {n % 60, "s"}} {
		if p.n > 0 {
			parts = append(parts, fmt.Sprintf("%s %s", Count(p.n), p.name))
		}
	}
	return strings.Join(parts, " ")
}

// Quantity writes a number of any size with about three significant digits:
// 0.123, 4.56, 78.9, 123.4, 4,567.
func Quantity(x float64) string {
	a := math.Abs(x)
	switch {
	case math.IsNaN(x) || math.IsInf(x, 0):
		return Unknown
	case a == 0:
		return "0"
	case x > 0 && x < 0.00005:
		return "<0.0001"
	case a < 0.0995:
		return Decimal(x, 4)
	case a < 0.9995:
		return strconv.FormatFloat(x, 'f', 3, 64)
	case a < 9.995:
		return strconv.FormatFloat(x, 'f', 2, 64)
	case a < 999.95:
		return strconv.FormatFloat(x, 'f', 1, 64)
	}
	return Count(int64(math.Round(x)))
}

// QuantityNear is the Quantity of x with as many more digits as it takes to stand
// on the side of a limit that x is on: 200.04 is not 200.0 where the limit is 200.
func QuantityNear(x, limit float64) string { return onSameSide(Quantity(x), x, limit) }

// PercentNear is likewise the Percent of a share next to a share that is asked for.
func PercentNear(x, limit float64) string {
	number, unit, _ := strings.Cut(Percent(x), " ")
	return onSameSide(number, x*100, limit*100) + " " + unit
}

// PercentAtMost writes an upper bound of a share: it is rounded up to two digits.
func PercentAtMost(x float64) string {
	return roundedPercent(x, func(p float64) float64 { return math.Ceil(p - 1e-9) })
}

// PercentAtLeast writes a lower bound of a share: it is rounded down to two digits.
func PercentAtLeast(x float64) string {
	return roundedPercent(x, func(p float64) float64 { return math.Floor(p + 1e-9) })
}

func roundedPercent(x float64, round func(float64) float64) string {
	if !(x > 0) || x >= 1 {
		return Percent(x)
	}
	unit := math.Pow(10, math.Floor(math.Log10(100*x))-1)
	if p := round(100*x/unit) * unit; p > 0 {
		return Decimal(p, 6) + " %"
	}
	return Percent(x)
}

func onSameSide(text string, x, limit float64) string {
	for digits := 1; digits <= 12; digits++ {
		read, err := strconv.ParseFloat(strings.ReplaceAll(text, ",", ""), 64)
		if err != nil || cmp.Compare(read, limit) == cmp.Compare(x, limit) {
			return text
		}
		text = Decimal(x, digits)
	}
	return Exact(x)
}

// Optional writes a number that may not be known.
func Optional(x *float64) string {
	if x == nil {
		return Unknown
	}
	return Quantity(*x)
}

// Decimal writes a number with at most so many digits behind the point.
func Decimal(x float64, digits int) string {
	return withoutZeros(strconv.FormatFloat(x, 'f', digits, 64))
}

// Exact writes a number with all digits that tell it from others, without an exponent:
// as a user would write it.
func Exact(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }

// withoutZeros takes the zeros off the end of a number with a point.
func withoutZeros(s string) string {
	if !strings.Contains(s, ".") {
		return s
	}
	return strings.TrimRight(strings.TrimRight(s, "0"), ".")
}

// Percent writes a share. What is not quite nothing or everything does not
// look like it.
func Percent(x float64) string {
	p := x * 100
	switch {
	case p > 0 && p < 0.001:
		return "<0.001 %"
	case p < 100 && p > 99.99:
		return ">99.99 %"
	case p != 0 && math.Abs(p) < 0.1:
		return Decimal(p, 3) + " %"
	case p < 100 && p > 99.9:
		return Decimal(p, 2) + " %"
	}
	return Decimal(p, 1) + " %"
}

// Dollars writes a price as one is written, with at least two decimals and four
// significant digits: a cost printed with it can be worked out again.
func Dollars(x float64) string {
	s := strconv.FormatFloat(x, 'g', 4, 64)
	if strings.Contains(s, "e") {
		return Quantity(x)
	}
	whole, cents, _ := strings.Cut(s, ".")
	return whole + "." + cents + strings.Repeat("0", max(2-len(cents), 0))
}

// Seconds writes a length of time that was measured, in seconds, with about three
// significant digits: 12.5 ms, 1.2 s, 90 min, 2.5 h.
func Seconds(s float64) string {
	switch {
	case s == 0:
		return "0 s"
	case s < 1:
		return Quantity(s*1e3) + " ms"
	case s < 120:
		return Decimal(s, 1) + " s"
	case s < 7200:
		return Decimal(s/60, 1) + " min"
	}
	return Decimal(s/3600, 1) + " h"
}

// Plural counts things: 1 request, 2 requests.
func Plural(n int, thing string) string {
	switch {
	case n == 1:
		return "1 " + thing
	case strings.HasSuffix(thing, "s"), strings.HasSuffix(thing, "ch"):
		return Count(n) + " " + thing + "es"
	}
	return Count(n) + " " + thing + "s"
}

// RelativeChange writes a relative change in percent, or the change of a share in points.
// Signed is the number alone.
func RelativeChange(x float64, ofShare bool) string {
	if ofShare {
		return SignedChange(x, true) + " pt"
	}
	return SignedChange(x, false) + " %"
}

// SignedChange is the number of a Change, with its sign unless it is zero.
func SignedChange(x float64, ofShare bool) string {
	digits := 1
	switch {
	case ofShare:
		digits = 2
	case math.Abs(x) >= 0.9995:
		digits = 0
	}
	text := fmt.Sprintf("%+.*f", digits, x*100)
	if !strings.ContainsAny(text, "123456789") {
		return text[1:]
	}
	return text
}

// ChangeSize is a Change without its sign and without zeros behind the point.
func ChangeSize(x float64, ofShare bool) string {
	text, unit, _ := strings.Cut(strings.TrimLeft(RelativeChange(x, ofShare), "+-"), " ")
	return withoutZeros(text) + " " + unit
}

// Significant writes a number with so many significant digits at most and thousands set apart:
// unlike %g without an exponent, however large or small it is.
func Significant(x float64, digits int) string {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return Unknown
	}
	rounded, _ := strconv.ParseFloat(strconv.FormatFloat(x, 'g', digits, 64), 64)
	if math.Abs(rounded) >= 1000 {
		return Count(int64(math.Round(x)))
	}
	if math.Abs(rounded) >= math.Pow10(digits-1) {
		return strconv.FormatFloat(math.Round(x), 'f', 0, 64)
	}
	return Exact(rounded)
}
