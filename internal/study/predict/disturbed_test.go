package predict

import (
	"testing"

	"pitot/internal/data/result"
)

func TestDisturbed(t *testing.T) {
	p := result.Point{Checks: []result.Check{
		{Name: "host", Status: "flag", Value: "other processes held 90 % of the cores"},
		{Name: "send lag", Status: "pass", Value: "p99 0.1 ms"}, {Name: "samples", Status: "flag", Value: "32"},
	}}
	if got, want := disturbed(&p), "host: other processes held 90 % of the cores"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	p.Checks = p.Checks[1:]
	if got := disturbed(&p); got != "" {
		t.Errorf("%q of an undisturbed run", got)
	}
}
