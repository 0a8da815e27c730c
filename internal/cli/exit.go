package cli

import (
	"fmt"
	"slices"

	"pitot/internal/config"
	"pitot/internal/results/record"
	"pitot/internal/results/result"
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
	case gateUndecided(run), windowEmpty(run):
		return Invalid
	}
	return Done
}

// definiteCode returns the exit code of a run that is shown again: it is no gate, so what is
// undecided does not fail.
func definiteCode(run *result.Run) int {
	if code := codeOfRun(run); code != Invalid || run.Verdict == result.Invalid || !gateUndecided(run) {
		return code
	}
	return Done
}

// gateUndecided reports whether the run had to answer whether a load meets the SLO, and
// could not: too few requests, or a limit that another run may meet or miss.
func gateUndecided(run *result.Run) bool {
	if c := run.Capacity; c != nil {
		return c.Asked() != nil && c.AskedMet() == result.Undecided
	}
	return run.Curve == nil && slices.ContainsFunc(run.Points, func(p result.Point) bool {
		return p.SLO != nil && (p.SLO.Met == result.Undecided || p.SLO.Near)
	})
}

// windowEmpty reports whether a run, which is no search, has a point in which no request
// came due: it measured nothing.
func windowEmpty(run *result.Run) bool {
	return run.Curve == nil && run.Capacity == nil && slices.ContainsFunc(run.Points, func(p result.Point) bool {
		return p.Requests.Due == 0
	})
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
		if p.SLO != nil && p.SLO.Met == result.No && !p.SLO.Near {
			return true
		}
	}
	return false
}

// noLoadMeets reports whether a search found that no load meets the SLO, or that the load
// of --at does not. Bounds of a capacity are an answer.
func noLoadMeets(c *result.Capacity) bool {
	return c.Floor != nil || c.AskedMet() == result.No
}

// gatedCode returns the exit code of a run under --undecided and --strict, and says on
// standard error what these made of it.
func gatedCode(o *config.Output, e *Env, run *result.Run, code int) int {
	if run != nil && code == Invalid && run.Verdict != result.Invalid && gateUndecided(run) {
		if code = undecidedCode(o.Undecided); code != Done {
			fmt.Fprintln(e.Stderr, "pitot: no verdict on the SLO: "+undecidedHint)
		}
	}
	return strictExitCode(o, e, run, code)
}

// undecidedCode returns the exit code of a gate that is undecided.
func undecidedCode(undecided string) int {
	if undecided == config.UndecidedPass {
		return Done
	}
	return Invalid
}

// undecidedHint says what --undecided does.
const undecidedHint = "it is undecided, exit code 4; --undecided pass makes that 0"

// strictExitCode returns the exit code of a run under --strict: flags fail too, unless
// something worse happened.
func strictExitCode(o *config.Output, e *Env, run *result.Run, code int) int {
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
