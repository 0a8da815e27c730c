package cli

import (
	"fmt"

	"pitot/internal/data/record"
	"pitot/internal/data/result"
	"pitot/internal/plan"
)

// How a run ends decides the exit code. What makes a measurement worth less
// comes before what is said of the server: see the constants.

// exitCode says how a run ended.
func exitCode(run *result.Run) int {
	if run.Interrupted {
		return Interrupted
	}
	return judged(run)
}

// judged says what came out of a run, interrupted or not.
func judged(run *result.Run) int {
	switch {
	case unserved(run):
		return TargetFailed
	case run.Verdict == result.Invalid:
		return Invalid
	case run.Capacity != nil && !answered(run.Capacity), missed(run):
		return SLOMissed
	}
	return Done
}

// unserved says whether the target failed: it went away, or it answered less
// than half of what was due, at every point.
func unserved(run *result.Run) bool {
	failing := len(run.Points) > 0
	for _, p := range run.Points {
		if p.WentAway != nil {
			return true
		}
		failing = failing && (p.Outcome == result.Failing || p.Requests.OK == 0 && p.Requests.Due > own(p.Requests))
	}
	return failing
}

// own counts the requests that failed for want of something of this client's.
func own(r result.Requests) (n int) {
	for class, failed := range r.Errors {
		if record.IsOwn(class) {
			n += failed
		}
	}
	return n
}

// missed says that the SLO was not met at a load. That one beyond the knee of a
// sweep is not served well, or one that a search tried, is what they are for.
func missed(run *result.Run) bool {
	if run.Curve != nil || run.Capacity != nil {
		return false
	}
	for _, p := range run.Points {
		if p.SLO != nil && p.SLO.Met == result.No {
			return true
		}
	}
	return false
}

// answered says that a search ended with a load at which the SLO holds, as it
// was verified. One without, as where the budget gave no more than a bracket,
// has not shown that it holds anywhere: whoever goes on with the load has none.
func answered(c *result.Capacity) bool {
	return c.Load != nil || c.Verified != nil && c.Verified.Passed
}

// strictly gives the exit code of a run under --strict: flags fail too. What
// makes the run worth less comes first, as ever.
func strictly(o *plan.Output, e *Env, run *result.Run, code int) int {
	if !o.Strict || run == nil || run.Verdict == result.Valid || code != Done && code < Invalid || code == Interrupted {
		return code
	}
	if code != Invalid {
		fmt.Fprintln(e.Stderr, "pitot: not plainly VALID, and --strict was given")
	}
	return Invalid
}

// worse gives the exit code of two runs: the lower, for what makes a number
// worthless comes before what is said of its value, but Done last.
func worse(a, b int) int {
	if a == Done || b == Done {
		return max(a, b)
	}
	return min(a, b)
}
