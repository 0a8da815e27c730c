package cli

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"pitot/internal/config"
	"pitot/internal/results/result"
)

// The worst that came out of several runs is what counts.
func TestWorse(t *testing.T) {
	order := []int{TargetFailed, Invalid, SLOMissed, Done} // worst first
	for i, a := range order {
		for j, b := range order {
			if got := worseCode(a, b); got != order[min(i, j)] {
				t.Errorf("worse(%d, %d) = %d", a, b, got)
			}
		}
	}
}

// docs/reference/exit-codes.md has a row for each code.
func TestExitCodesAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/reference/exit-codes.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, code := range []int{Done, Bug, Usage, TargetFailed, Invalid, SLOMissed, Fired, ByHand, Interrupted} {
		if !strings.Contains(string(text), fmt.Sprintf("\n| %d | ", code)) {
			t.Errorf("docs/reference/exit-codes.md has no row for %d", code)
		}
	}
}

// What ends a run decides its exit code, the first that applies.
func TestExitCode(t *testing.T) {
	missed := result.Point{Requests: result.Requests{Due: 9, OK: 8}, SLO: &result.SLO{Met: "no"}}
	undecided := result.Point{Requests: result.Requests{Due: 9, OK: 9}, SLO: &result.SLO{Met: "undecided"}}
	nothing := result.Point{Requests: result.Requests{Due: 9}, SLO: &result.SLO{Met: "no"}}
	refused := nothing
	refused.Requests.Errors, refused.RateLimits, refused.Outcome = map[string]int{"http_429": 7}, &result.RateLimits{Refused: 7}, result.Failing
	load := 12.
	asked := []result.CapacityProbe{{Stage: "verifying", Load: load}}
	for _, c := range []struct {
		run  result.Run
		want int
	}{
		{result.Run{}, Done},
		{result.Run{Points: []result.Point{refused}}, SLOMissed},
		{result.Run{Points: []result.Point{undecided}}, Invalid},
		{result.Run{Points: []result.Point{undecided, missed}}, SLOMissed},
		{result.Run{Points: []result.Point{undecided}, Curve: &result.Curve{}}, Done},
		{result.Run{Points: []result.Point{undecided}, Capacity: &result.Capacity{Load: &load}}, Done},
		{result.Run{Points: []result.Point{{}}}, Invalid}, // nothing came due
		{result.Run{Points: []result.Point{{Requests: missed.Requests}, missed}}, SLOMissed},
		{result.Run{Points: []result.Point{missed}, Verdict: result.Invalid}, Invalid},
		{result.Run{Points: []result.Point{missed}, Verdict: result.ValidWithFlags}, SLOMissed},
		{result.Run{Points: []result.Point{nothing}, Verdict: result.Invalid}, TargetFailed},
		{result.Run{Points: []result.Point{nothing, missed}}, SLOMissed},
		{result.Run{Points: []result.Point{nothing}, Interrupted: true}, Interrupted},
		{result.Run{Points: []result.Point{{Requests: missed.Requests, WentAway: &load}}}, TargetFailed},

		// A sweep goes beyond what is served; a search is asked for a load.
		{result.Run{Points: []result.Point{missed}, Curve: &result.Curve{}}, Done},
		{result.Run{Points: []result.Point{missed}, Capacity: &result.Capacity{Load: &load}}, Done},
		{result.Run{Points: []result.Point{missed}, Capacity: &result.Capacity{Trail: asked, Verified: &result.Verified{Passed: true}}}, Done},
		{result.Run{Points: []result.Point{missed}, Capacity: &result.Capacity{Bracket: &[2]*float64{&load, nil}}}, Done},
		{result.Run{Points: []result.Point{missed}, Capacity: &result.Capacity{Bracket: &[2]*float64{nil, &load}}}, Done},
		{result.Run{Points: []result.Point{missed}, Capacity: &result.Capacity{Floor: &result.Floor{}}}, SLOMissed},
		{result.Run{Points: []result.Point{missed}, Capacity: &result.Capacity{Trail: []result.CapacityProbe{{Stage: "light"}}, Verified: &result.Verified{}}}, Done},
		{result.Run{Points: []result.Point{missed}, Capacity: &result.Capacity{Trail: asked, Verified: &result.Verified{Refuted: true}}}, SLOMissed},
		{result.Run{Points: []result.Point{missed}, Capacity: &result.Capacity{Trail: asked, Verified: &result.Verified{}}}, Invalid},
		{result.Run{Points: []result.Point{missed}, Capacity: &result.Capacity{Trail: asked}}, Invalid},
		{result.Run{Points: []result.Point{missed}, Capacity: &result.Capacity{}, Verdict: result.Invalid}, Invalid},
	} {
		if got := exitCode(&c.run); got != c.want {
			t.Errorf("%+v: %d, want %d", c.run, got, c.want)
		}
	}
}

// A gate that is undecided ends with 4, and with 0 where the user says so.
func TestUndecidedGate(t *testing.T) {
	run := &result.Run{Verdict: result.Valid, Points: []result.Point{{Requests: result.Requests{Due: 9, OK: 9}, SLO: &result.SLO{Met: "undecided"}}}}
	for undecided, want := range map[string]int{config.UndecidedFail: Invalid, config.UndecidedPass: Done} {
		var stderr bytes.Buffer
		got := gatedCode(&config.Output{Undecided: undecided}, &Env{Stderr: &stderr}, run, exitCode(run))
		if got != want || (stderr.Len() > 0) != (want == Invalid) {
			t.Errorf("--undecided %s: %d, want %d; %q", undecided, got, want, stderr.String())
		}
	}
	invalid := *run
	invalid.Verdict = result.Invalid
	if got := gatedCode(&config.Output{Undecided: config.UndecidedPass}, &Env{Stderr: io.Discard}, &invalid, exitCode(&invalid)); got != Invalid {
		t.Errorf("an INVALID measurement passes: %d", got)
	}
}
