package validity

import (
	"pitot/internal/results/result"
	"pitot/internal/stats"
)

// checkLockStep flags users of a closed loop who ask together, cycle after cycle.
// They queue for each other's prompts and leave the server to itself in between:
// what is measured is that crowd, and not so many users.
func (e *Evidence) checkLockStep() (c result.Check, applies bool) {
	l := &e.pointConditions().Load
	if e.pointConditions().Open() || l.Concurrency == nil {
		return c, false
	}
	asked := func(yield func(int64) bool) {
		for q := range e.Cohort {
			if !yield(q.Due) {
				return
			}
		}
	}
	b, ok := stats.JudgeBunching(asked, e.Queue.members, e.pointConditions().T0, e.pointConditions().T1, *l.Concurrency)
	c = result.NewCheck(result.CheckLockStep, b.CV, b.Limit)
	if b.InStep() {
		c.Status = result.Flag
	}
	return c, ok
}
