package slo

import (
	"strings"
	"testing"

	"pitot/internal/results/metric"
)

func TestParsePrecision(t *testing.T) {
	for text, want := range map[string]Precision{
		"p99 ttft +-5%":   {metric.TTFT, 99, 5},
		" P99TTFT ± 5 % ": {metric.TTFT, 99, 5},
		"mean tpot+-0.5%": {metric.TPOT, 0, .5},
		"p99.9 e2e +-10%": {metric.E2E, 99.9, 10},
	} {
		got, err := ParsePrecision(text)
		if err != nil || got != want {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
		if again, err := ParsePrecision(got.String()); err != nil || again != got {
			t.Errorf("%q: %q parses to %+v, %v", text, got.String(), again, err)
		}
	}
	for text, want := range map[string]string{
		"":                "no +-",
		"p99 ttft":        "no +-",
		"ttft +-5%":       "names no percentile",
		"p98 ttft +-5%":   "percentile p98",
		"p99 tftt +-5%":   "unknown metric",
		"p99 itl +-5%":    "not one number per request",
		"mean errors+-5%": "not one number per request",
		"p99 ttft +-5":    "without %",
		"p99 ttft +-0%":   "share 0%",
	} {
		if _, err := ParsePrecision(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

func FuzzParsePrecision(f *testing.F) {
	for _, s := range []string{"p99 ttft +-5%", "mean tpot ± 2 %", "p99.9e2e+-10%", "+-", "p+-1%"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		p, err := ParsePrecision(s)
		if err != nil {
			return
		}
		if again, err := ParsePrecision(p.String()); err != nil || again != p {
			t.Fatalf("%q: %q parses to %+v, %v", s, p.String(), again, err)
		}
	})
}
