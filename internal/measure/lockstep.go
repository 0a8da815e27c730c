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
	asked := make([]int64, len(all.requests))
	for i, q := range all.requests {
		asked[i] = q.due
	}
	b, ok := stat.JudgeBunching(asked, f.setup.T0, f.setup.T1, *l.Concurrency)
	c = result.NewCheck(result.CheckLockStep, b.CV, b.Limit)
	if b.InStep() {
		c.Status = result.Flag
	}
	return c, ok
}
