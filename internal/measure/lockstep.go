package measure

import (
	"pitot/internal/data/result"
	"pitot/internal/stat"
)

// checkLockStep flags users of a closed loop who ask together, cycle after cycle.
// They queue for each other's prompts and leave the server to itself in between:
// what is measured is that crowd, and not so many users.
func (f *Fold) checkLockStep(all *part) (c result.Check, applies bool) {
	l := &f.setup.Load
	if f.setup.open() || l.Concurrency == nil {
		return c, false
	}
	asked := func(yield func(int64) bool) {
		for q := range all.requests() {
			if !yield(q.due) {
				return
			}
		}
	}
	b, ok := stat.JudgeBunching(asked, all.tally.due(), f.setup.T0, f.setup.T1, *l.Concurrency)
	c = result.NewCheck(result.CheckLockStep, b.CV, b.Limit)
	if b.InStep() {
		c.Status = result.Flag
	}
	return c, ok
}
