package say

import (
	"testing"
	"time"
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
		if got := Span(d); got != want {
			t.Errorf("Span(%s) = %s, want %s", text, got, want)
		}
	}
}
