package say

import (
	"cmp"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	_ "pitot/internal/rapidtest" // the same draws each time
)

func TestCount(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567", -1000: "-1,000", -999: "-999"} {
		if got := Count(n); got != want {
			t.Errorf("Count(%d) = %s, want %s", n, got, want)
		}
	}
}

func TestSpan(t *testing.T) {
	for text, want := range map[string]string{
		"0s": "0 s", "20ns": "20 ns", "1500ns": "1.5 µs", "1ms": "1 ms", "12.5ms": "12.5 ms", "999ms": "999 ms", "1.5s": "1.5 s",
		"59s": "59 s", "60s": "1 min", "90s": "90 s", "2m": "2 min", "10m0.4s": "10 min", "2m5s": "2 min 5 s",
		"1h": "1 h", "1h30m": "1 h 30 min", "8760h": "8,760 h", "-90s": "-90 s",
	} {
		d, err := time.ParseDuration(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := Duration(d); got != want {
			t.Errorf("Span(%s) = %s, want %s", text, got, want)
		}
	}
}

func TestQuantity(t *testing.T) {
	for x, want := range map[float64]string{
		0: "0", 1e-9: "<0.0001", 0.00004: "<0.0001", 0.00005: "0.0001", 0.0202: "0.0202", 0.05: "0.05", 0.0994: "0.0994", 0.0996: "0.100", 0.125: "0.125", 0.9996: "1.00",
		0.5: "0.500", 1: "1.00", 8.004: "8.00", 9.994: "9.99", 9.996: "10.0", 35.64: "35.6", 99.96: "100.0", 283.04: "283.0", 999.94: "999.9",
		999.96: "1,000", 1510.4: "1,510", 1234567: "1,234,567", -3.5: "-3.50", -0.5: "-0.500", -1234: "-1,234",
		math.Inf(1): "–", math.Inf(-1): "–",
	} {
		if got := Quantity(x); got != want {
			t.Errorf("quantity(%v) = %q, want %q", x, got, want)
		}
	}
	if Quantity(math.NaN()) != "–" || Optional(nil) != "–" {
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
		a, b := read(Quantity(x)), read(Quantity(y))
		if a > b {
			t.Fatalf("%v is %s and %v is %s", x, Quantity(x), y, Quantity(y))
		}
		if math.Abs(a-x) > 0.006*x+0.00006 {
			t.Fatalf("%v is written as %s", x, Quantity(x))
		}
	})
}

func TestPercent(t *testing.T) {
	for x, want := range map[float64]string{
		0: "0 %", 1: "100 %", .5: "50 %", .123: "12.3 %", .01: "1 %", .9: "90 %", .99: "99 %",
		.0005: "0.05 %", 1e-9: "<0.001 %", .99926: "99.93 %", .9999: "99.99 %", .99999999: ">99.99 %", 1.5: "150 %",
	} {
		if got := Percent(x); got != want {
			t.Errorf("percent(%v) = %q, want %q", x, got, want)
		}
	}
}

func TestSeconds(t *testing.T) {
	for s, want := range map[float64]string{
		0: "0 s", .0125: "12.5 ms", .5: "500.0 ms", 1: "1 s", 1.25: "1.2 s", 60: "60 s", 119.9: "119.9 s",
		120: "2 min", 600: "10 min", 5400: "90 min", 7200: "2 h", 9000: "2.5 h",
	} {
		if got := Seconds(s); got != want {
			t.Errorf("seconds(%v) = %q, want %q", s, got, want)
		}
	}
}

func TestCountAndPlural(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0", 7: "7", 999: "999", 1000: "1,000", 12345: "12,345", 1234567: "1,234,567", -999: "-999", -1000: "-1,000",
		math.MaxInt64: "9,223,372,036,854,775,807", math.MinInt64: "-9,223,372,036,854,775,808",
	} {
		if got := Count(n); got != want {
			t.Errorf("count(%d) = %q, want %q", n, got, want)
		}
	}
	if Plural(1, "request") != "1 request" || Plural(0, "request") != "0 requests" || Plural(2, "class") != "2 classes" {
		t.Error("plural")
	}
}

// A value that is written beside a limit stands on the side of it that it is on.
func TestNearALimit(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{QuantityNear(200.04, 200), "200.04"}, {QuantityNear(199.96, 200), "199.96"}, {QuantityNear(200, 200), "200.0"},
		{QuantityNear(1500.4, 1500), "1500.4"}, {QuantityNear(1512.4, 1500), "1,512"}, {QuantityNear(3, 200), "3.00"},
		{PercentNear(.98996, .99), "98.996 %"}, {PercentNear(.99, .99), "99 %"}, {PercentNear(.9876, .99), "98.8 %"}, {PercentNear(1, .99), "100 %"},
	} {
		if c.got != c.want {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
	read := func(t *rapid.T, text string) float64 {
		x, err := strconv.ParseFloat(strings.ReplaceAll(strings.Trim(text, " %<>"), ",", ""), 64)
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
	rapid.Check(t, func(t *rapid.T) {
		limit := math.Round(rapid.Float64Range(0.1, 1e5).Draw(t, "limit")*100) / 100
		x := limit * (1 + rapid.Float64Range(-1e-3, 1e-3).Draw(t, "off"))
		if got := read(t, QuantityNear(x, limit)); cmp.Compare(got, limit) != cmp.Compare(x, limit) {
			t.Errorf("%v beside %v is written as %v", x, limit, got)
		}
		share := rapid.Float64Range(.9, .99999).Draw(t, "share")
		if got := read(t, PercentNear(share, .99)); cmp.Compare(got, 99) != cmp.Compare(share, .99) {
			t.Errorf("%v beside 99 %% is written as %v", share, got)
		}
	})
}

// A larger number is never written as a smaller one: what lies in an interval is
// seen to lie in it.
func TestNumbersKeepTheirOrder(t *testing.T) {
	read := func(text string) float64 {
		x, err := strconv.ParseFloat(strings.ReplaceAll(strings.Trim(text, " %<>"), ",", ""), 64)
		if err != nil {
			t.Fatal(text, err)
		}
		return x
	}
	rapid.Check(t, func(t *rapid.T) {
		x := math.Exp(rapid.Float64Range(-9, 15).Draw(t, "ln"))
		y := x * (1 + math.Exp(rapid.Float64Range(-12, 1).Draw(t, "ln more")))
		if a, b := read(Quantity(x)), read(Quantity(y)); a > b {
			t.Errorf("%v is written as %v, %v as %v", x, a, y, b)
		}
		x, y = x/1e5, y/1e5
		if a, b := read(Percent(x)), read(Percent(y)); a > b {
			t.Errorf("share %v is written as %v, %v as %v", x, a, y, b)
		}
	})
}

func TestSignificant(t *testing.T) {
	for _, c := range []struct {
		x      float64
		digits int
		want   string
	}{
		{0, 3, "0"}, {1.5, 3, "1.5"}, {0.000012345, 3, "0.0000123"}, {-12.345, 4, "-12.35"}, {99.6, 2, "100"}, {100, 2, "100"}, {999.6, 3, "1,000"},
		{1340, 3, "1,340"}, {10876.5, 4, "10,877"}, {-10876.5, 4, "-10,877"}, {123.4, 3, "123"}, {math.Inf(1), 3, Unknown},
	} {
		if got := Significant(c.x, c.digits); got != c.want {
			t.Errorf("%g with %d digits: %q, want %q", c.x, c.digits, got, c.want)
		}
	}
}
