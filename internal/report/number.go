package report

import (
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"pitot/internal/data/metric"
	"pitot/internal/say"
)

// Numbers are written the same way in every face: with as many digits as
// their size deserves, thousands set apart, and "–" for what is not known.

const unknown = "–"

// count writes a whole number with its thousands set apart: 12,345.
func count[T int | int32 | int64](n T) string { return say.Count(n) }

// dollars writes a price as one is written, with at least two decimals and four
// significant digits: a cost beside it can be worked out again.
func dollars(x float64) string {
	s := strconv.FormatFloat(x, 'g', 4, 64)
	if strings.Contains(s, "e") {
		return quantity(x)
	}
	whole, cents, _ := strings.Cut(s, ".")
	return whole + "." + cents + strings.Repeat("0", max(2-len(cents), 0))
}

// quantity writes a number of any size with about three significant digits:
// 0.123, 4.56, 78.9, 123.4, 4,567.
func quantity(x float64) string {
	a := math.Abs(x)
	switch {
	case math.IsNaN(x) || math.IsInf(x, 0):
		return unknown
	case a == 0:
		return "0"
	case x > 0 && x < 0.00005:
		return "<0.0001"
	case a < 0.0995:
		return trim(strconv.FormatFloat(x, 'f', 4, 64))
	case a < 0.9995:
		return strconv.FormatFloat(x, 'f', 3, 64)
	case a < 9.995:
		return strconv.FormatFloat(x, 'f', 2, 64)
	case a < 999.95:
		return strconv.FormatFloat(x, 'f', 1, 64)
	}
	return count(int64(math.Round(x)))
}

// written is how values of a unit are written.
func written(unit metric.Unit) func(float64) string {
	switch unit {
	case metric.Share:
		return percent
	case metric.USDPerMTokens:
		return dollars
	}
	return quantity
}

// trim takes the zeros off the end of a number with a point.
func trim(s string) string { return strings.TrimRight(strings.TrimRight(s, "0"), ".") }

// optional writes a number that may not be known.
func optional(x *float64) string {
	if x == nil {
		return unknown
	}
	return quantity(*x)
}

// percent writes a share. What is not quite nothing or everything does not
// look like it.
func percent(x float64) string {
	p := x * 100
	switch {
	case p > 0 && p < 0.001:
		return "<0.001 %"
	case p < 100 && p > 99.999:
		return ">99.999 %"
	case p != 0 && math.Abs(p) < 0.1 || p < 100 && p > 99.9:
		return trim(strconv.FormatFloat(p, 'f', 3, 64)) + " %"
	}
	return trim(strconv.FormatFloat(p, 'f', 1, 64)) + " %"
}

// seconds writes a length of time.
func seconds(s float64) string {
	switch {
	case s == 0:
		return "0 s"
	case s < 1:
		return quantity(s*1e3) + " ms"
	case s < 120:
		return trim(strconv.FormatFloat(s, 'f', 1, 64)) + " s"
	case s < 7200:
		return trim(strconv.FormatFloat(s/60, 'f', 1, 64)) + " min"
	}
	return trim(strconv.FormatFloat(s/3600, 'f', 1, 64)) + " h"
}

// plural counts things: 1 request, 2 requests.
func plural(n int, thing string) string {
	switch {
	case n == 1:
		return "1 " + thing
	case strings.HasSuffix(thing, "s"):
		return count(n) + " " + thing + "es"
	}
	return count(n) + " " + thing + "s"
}

// cut shortens a text to n characters.
func cut(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return strings.TrimRight(string([]rune(s)[:n-1]), " ") + "…"
}
