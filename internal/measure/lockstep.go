package measure

import (
	"fmt"

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
	c = result.Check{Name: "lock-step", Status: pass,
		Value:  fmt.Sprintf("requests in an eighth of a cycle vary by %.0f %%", 100*b.CV),
		Limit:  fmt.Sprintf("≤ %.0f %%", 100*b.Limit),
		Advice: "Users ask together and wait for each other: let answers differ in length, as --output 'uniform(96,160)', leave --warmup to itself, or ask at a --rate."}
	if b.InStep() {
		c.Status = flag
	}
	return c, ok
}
