package predict

import (
	"testing"

	"pitot/internal/results/result"
)

func TestDisturbed(t *testing.T) {
	p := result.Point{Checks: []result.Check{
		{Name: "host", Status: "flag"},
		{Name: "send lag", Status: "pass"}, {Name: "samples", Status: "flag"},
	}}
	if got, want := disturbedChecks(&p), "host"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	p.Checks = p.Checks[1:]
	if got := disturbedChecks(&p); got != "" {
		t.Errorf("%q of an undisturbed run", got)
	}
}
