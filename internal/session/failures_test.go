package session

import (
	"testing"

	"pitot/internal/results/record"
	"pitot/internal/results/result"
)

// Requests that failed are said to have, and most of them why: they are not late.
func TestFailures(t *testing.T) {
	p := &result.Point{}
	p.Requests.Due, p.Requests.OK = 200, 200
	if got := describeFailures(p); got != "" {
		t.Errorf("of requests that all ended well: %q", got)
	}
	p.Requests.OK, p.Requests.Errors = 150, map[string]int{record.ErrRateLimited: 40, record.ErrTimeout: 10}
	if got, want := describeFailures(p), "; 25 % failed, most often refused with 429"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	p.Requests.Errors = map[string]int{record.ErrTimeout: 50}
	if got, want := describeFailures(p), "; 25 % failed: timeout"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	p.Requests.Errors = map[string]int{record.ErrInterrupted: 50}
	if got, want := describeFailures(p), "; ended early"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	p.Requests.Errors = map[string]int{record.ErrInterrupted: 40, record.ErrTimeout: 10}
	if got, want := describeFailures(p), "; 6.25 % failed: timeout; ended early"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
