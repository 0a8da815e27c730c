package say

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

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

// Span writes a length of time as people do: 250 ms, 1.5 s, 90 s, 10 min,
// 1 h 30 min. From two minutes on it is to the second.
func Span(d time.Duration) string {
	if d < 0 {
		return "-" + Span(-d)
	}
	in := func(unit time.Duration, name string) string {
		return strconv.FormatFloat(float64(d)/float64(unit), 'f', -1, 64) + " " + name
	}
	switch {
	case d == 0:
		return "0 s"
	case d < time.Microsecond:
		return in(time.Nanosecond, "ns")
	case d < time.Millisecond:
		return in(time.Microsecond, "µs")
	case d < time.Second:
		return in(time.Millisecond, "ms")
	case d < 2*time.Minute && d != time.Minute:
		return in(time.Second, "s")
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
