package report

import (
	"math"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestQuantity(t *testing.T) {
	for x, want := range map[float64]string{
		0: "0", 1e-9: "<0.0001", 0.00004: "<0.0001", 0.00005: "0.0001", 0.0202: "0.0202", 0.05: "0.05", 0.0994: "0.0994", 0.0996: "0.100", 0.125: "0.125", 0.9996: "1.00",
		0.5: "0.500", 1: "1.00", 8.004: "8.00", 9.994: "9.99", 9.996: "10.0", 35.64: "35.6", 99.96: "100.0", 283.04: "283.0", 999.94: "999.9",
		999.96: "1,000", 1510.4: "1,510", 1234567: "1,234,567", -3.5: "-3.50", -0.5: "-0.500", -1234: "-1,234",
		math.Inf(1): "–", math.Inf(-1): "–",
	} {
		if got := quantity(x); got != want {
			t.Errorf("quantity(%v) = %q, want %q", x, got, want)
		}
	}
	if quantity(math.NaN()) != "–" || optional(nil) != "–" {
		t.Error("what is not known is not a dash")
	}
}

// Larger numbers are never written as smaller ones, and keep their size.
func TestQuantityKeepsOrder(t *testing.T) {
	read := func(s string) (x float64) {
		point := -1
		for _, c := range s {
			switch {
			case c == '<':
				return 0
			case c == '.':
				point = 0
			case c >= '0' && c <= '9':
				x = x*10 + float64(c-'0')
				if point >= 0 {
					point++
				}
			}
		}
		return x / math.Pow10(max(point, 0))
	}
	rapid.Check(t, func(t *rapid.T) {
		x := rapid.Float64Range(0, 1e12).Draw(t, "x")
		x *= math.Pow(10, -float64(rapid.IntRange(0, 14).Draw(t, "places")))
		y := x * (1 + rapid.Float64Range(0, 2).Draw(t, "more"))
		a, b := read(quantity(x)), read(quantity(y))
		if a > b {
			t.Fatalf("%v is %s and %v is %s", x, quantity(x), y, quantity(y))
		}
		if math.Abs(a-x) > 0.006*x+0.00006 {
			t.Fatalf("%v is written as %s", x, quantity(x))
		}
	})
}

func TestPercent(t *testing.T) {
	for x, want := range map[float64]string{
		0: "0 %", 1: "100 %", .5: "50 %", .123: "12.3 %", .01: "1 %", .9: "90 %", .99: "99 %",
		.0005: "0.05 %", 1e-9: "<0.001 %", .99926: "99.926 %", .9999: "99.99 %", .99999999: ">99.999 %", 1.5: "150 %",
	} {
		if got := percent(x); got != want {
			t.Errorf("percent(%v) = %q, want %q", x, got, want)
		}
	}
}

func TestSeconds(t *testing.T) {
	for s, want := range map[float64]string{
		0: "0 s", .0125: "12.5 ms", .5: "500.0 ms", 1: "1 s", 1.25: "1.2 s", 60: "60 s", 119.9: "119.9 s",
		120: "2 min", 600: "10 min", 5400: "90 min", 7200: "2 h", 9000: "2.5 h",
	} {
		if got := seconds(s); got != want {
			t.Errorf("seconds(%v) = %q, want %q", s, got, want)
		}
	}
}

func TestCount(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0", 7: "7", 999: "999", 1000: "1,000", 12345: "12,345", 1234567: "1,234,567", -999: "-999", -1000: "-1,000",
		math.MaxInt64: "9,223,372,036,854,775,807", math.MinInt64: "-9,223,372,036,854,775,808",
	} {
		if got := count(n); got != want {
			t.Errorf("count(%d) = %q, want %q", n, got, want)
		}
	}
	if plural(1, "request") != "1 request" || plural(0, "request") != "0 requests" || plural(2, "class") != "2 classes" {
		t.Error("plural")
	}
}

func TestCut(t *testing.T) {
	for _, c := range []struct {
		s    string
		n    int
		want string
	}{{"abc", 3, "abc"}, {"abcd", 3, "ab…"}, {"äöü€", 3, "äö…"}, {"ab cd", 4, "ab…"}, {"", 1, ""}} {
		if got := cut(c.s, c.n); got != c.want {
			t.Errorf("cut(%q, %d) = %q, want %q", c.s, c.n, got, c.want)
		}
	}
}

// What a server says is one printable line, whatever it says.
func TestPlain(t *testing.T) {
	if got := plain(" a\x1b[31m\tb\r\nc\x00\xff\u202e  d "); got != "a [31m b c � d" {
		t.Errorf("%q", got)
	}
}

// Lines keep to their width, nothing is lost, and a number stays with its unit.
func TestFill(t *testing.T) {
	for _, c := range []struct {
		items []string
		want  []string
	}{
		{[]string{"one two", "three"}, []string{"one two · three"}},
		{[]string{"one two three", "four five six"}, []string{"one two three", "four five six"}},
		{[]string{"one two three four five six"}, []string{"one two three four", "five six"}},
		{[]string{"measured a value 35 ms"}, []string{"measured a value", "35 ms"}},
		{[]string{"https://example.com/a/b/c"}, []string{"https://example.com/", "a/b/c"}},
		{[]string{""}, nil},
	} {
		got := fill(20, c.items...)
		if len(got) != len(c.want) {
			t.Errorf("%q: %q", c.items, got)
			continue
		}
		for i := range got {
			if got[i] != c.want[i] {
				t.Errorf("%q: %q, want %q", c.items, got, c.want)
			}
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		items := rapid.SliceOf(rapid.StringMatching(`[a-zä0-9 ]{0,40}`)).Draw(t, "items")
		width := rapid.IntRange(8, 60).Draw(t, "width")
		letters := func(list []string) (s string) {
			for _, x := range list {
				for _, r := range x {
					if r != ' ' && r != '·' {
						s += string(r)
					}
				}
			}
			return s
		}
		lines := fill(width, items...)
		if letters(lines) != letters(items) {
			t.Fatalf("%q became %q", items, lines)
		}
		for _, l := range lines {
			if utf8.RuneCountInString(l) > width || l == "" {
				t.Fatalf("%q in %d columns", l, width)
			}
		}
	})
}
