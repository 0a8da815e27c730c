package target

import (
	"strings"
	"testing"

	"pitot/internal/results/metric"
)

// The beginning of the first process is read from whatever of a page has come.
func TestProcessStart(t *testing.T) {
	for page, want := range map[string]string{
		"":                           "",
		"process_start_time_seconds": "",
		"# TYPE process_start_time_seconds gauge\nprocess_start_time_seconds":                         "",
		"process_start_time_seconds{":                                                                 "",
		"process_start_time_seconds_total 3\n":                                                        "",
		"process_start_time_seconds 1.7e+09\nx 1\n":                                                   "1.7e+09",
		"process_start_time_seconds 1000\nprocess_start_time_seconds{a=\"b c}\"} 999 1395066363000\n": "999",
		"process_start_time_seconds NaN\nprocess_start_time_seconds 5\n":                              "5",
	} {
		if got := processStart(page); got != want {
			t.Errorf("%q: %q, want %q", page, got, want)
		}
	}
}

func FuzzProcessStart(f *testing.F) {
	f.Add("process_start_time_seconds{a=\"b\"} 1.7e9 3\nprocess_start_time_seconds")
	f.Fuzz(func(t *testing.T, page string) {
		if began := processStart(page); began != "" && !strings.Contains(page, metric.ProcessStart) {
			t.Errorf("%q", began)
		}
	})
}
