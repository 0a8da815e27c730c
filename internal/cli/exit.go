package cli

import (
	"fmt"

	"pitot/internal/data/record"
	"pitot/internal/data/result"
	"pitot/internal/plan"
)

// The exit code follows from how a run ended. An invalid measurement counts before
// what it says about the server: see the constants.

// exitCode is the exit code of a run.
func exitCode(run *result.Run) int {
	if run.Interrupted {
		return Interrupted
	}
	return codeOfRun(run)
}

// codeOfRun is the same, whether or not the run was interrupted.
func codeOfRun(run *result.Run) int {
	switch {
	case targetFailed(run):
		return TargetFailed
	case run.Verdict == result.Invalid:
		return Invalid
	case run.Capacity != nil && noLoadMeets(run.Capacity), missedSLO(run):
		return SLOMissed
	}
	return Done
}

// targetFailed says whether the target failed: it went away, or it answered less
// than half of what was due, at every point. A server that refuses for its rate limits
// works.
func targetFailed(run *result.Run) bool {
	failing := len(run.Points) > 0
	for _, p := range run.Points {
		if p.WentAway != nil {
			return true
		}
		if p.SLO != nil && p.SLO.Met == result.No && 2*p.RefusedByLimits() > p.Requests.Due-p.Requests.OK {
			failing = false // its rate limits refused the load, which the objective says
			continue
		}
		failing = failing && (p.Outcome == result.Failing || p.Requests.OK == 0 && p.Requests.Due > ownErrors(p.Requests))
	}
	return failing
}

// ownErrors counts the requests that failed because this client lacked something.
func ownErrors(r result.Requests) (n int) {
	for class, failed := range r.Errors {
		if record.IsOwn(class) {
			n += failed
		}
	}
	return n
}

// missedSLO says that the SLO was not met. Loads beyond the knee of a sweep, and those
// that a search tried, are meant to miss it and do not count.
func missedSLO(run *result.Run) bool {
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

// noLoadMeets says that a search ended with this: no load meets the SLO, or the one that
// was asked about was not shown to. Bounds of a capacity are an answer.
func noLoadMeets(c *result.Capacity) bool {
	return c.Floor != nil || c.Asked() != nil && (c.Verified == nil || !c.Verified.Passed)
}

// strictly gives the exit code of a run under --strict: flags fail too, unless
// something worse happened.
func strictly(o *plan.Output, e *Env, run *result.Run, code int) int {
	if !o.Strict || run == nil || run.Verdict == result.Valid || code != Done && code < Invalid || code == Interrupted {
		return code
	}
	if code != Invalid {
		fmt.Fprintln(e.Stderr, "pitot: not plainly VALID, and --strict was given")
	}
	return Invalid
}

// worseCode gives the exit code for two runs: the lower code, which is the more severe,
// but Done only if both are.
func worseCode(a, b int) int {
	if a == Done || b == Done {
		return max(a, b)
	}
	return min(a, b)
}
