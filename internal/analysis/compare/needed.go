package compare

import (
	"fmt"
	"math"
	"strings"

	"pitot/internal/report/reasons"
	"pitot/internal/stats"
)

// quiet is the share of comparisons without any change in which a gate of as many launches as
// [Resolution.Needed] rules all its clauses out.
const quiet = 0.95

// explainUndecided says what would decide a clause that the launches there are leave undecided;
// asked is how many clauses there are, each at all its loads.
func (o *Resolution) explainUndecided(r *Row, c Clause, asked int) {
	if !r.short.IsNone() {
		o.Why += fmt.Sprintf("; the runs are too short for intervals: %s, or %d launches a side", reasons.LongerFlag(r.short.Longer), Enough)
	} else if !r.withheld.IsNone() {
		o.Why += fmt.Sprintf("; no interval of one launch (%s): %d launches a side", reasons.Text(r.withheld), Enough)
	}
	if c.by == 0 {
		by := "5%"
		if c.metric.share {
			by = "1%"
		}
		o.Why += fmt.Sprintf("; without by it can fire, and is hardly ever ruled out: write %q", c.Spec+" by "+by)
		return
	}
	if r.test == nil || r.test.single {
		return
	}
	k, ok := r.launchesFor(c, asked)
	if !ok {
		o.Why += fmt.Sprintf("; these launches spread too much to say how many decide %s", r.size(c))
		return
	}
	if k <= min(r.launches[0], r.launches[1]) { // what was measured lies too near to the limit
		if k, ok = r.launchesAsMeasured(c); !ok {
			o.Why += fmt.Sprintf("; the change is so near to %s that no number of launches decides it", r.size(c))
			return
		}
		o.Needed = &k
		o.Why += fmt.Sprintf("; if the change is as measured, about %d launches a side decide %s", k, r.size(c))
		return
	}
	o.Needed = &k
	o.Why += fmt.Sprintf("; about %d launches a side decide %s", k, r.size(c))
}

// size is the change that a clause asks about, without its sign.
func (r *Row) size(c Clause) string { return strings.TrimLeft(r.formatAmount(c.by), "+-") }

// gateLevel is the level of the first step of Holm's correction of all that the clauses name.
func (r *Row) gateLevel() float64 { return 1 - alpha/float64(max(1, r.gateFamily)) }

// launchesFor returns how many launches a side decide a clause: a change as large is detected
// with 80 % power, and where nothing changed all clauses are ruled out in 95 of 100 comparisons.
func (r *Row) launchesFor(c Clause, asked int) (k int, ok bool) {
	t, delta, each := r.test, math.Abs(r.scale.back(c.signedChange())), 1-(1-quiet)/float64(max(1, asked))
	switch {
	case r.metric.share:
		return r.sharesNeeded(delta, each)
	case t.flat:
		for k = Enough; float64(max(1, r.gateFamily))*2/orderCount(k, k) >= alpha; k++ {
		}
		return k, true
	}
	k, ok = stats.ValuesNeeded(delta, t.sd, t.df, r.gateLevel(), power)
	of, also := stats.ValuesNeeded(delta, t.sd, t.df, stats.OneSided(level), each)
	return max(k, of, Enough), ok && also
}

// sharesNeeded is [Row.launchesFor] of shares, which spread at the limit as shares do there.
func (r *Row) sharesNeeded(delta, each float64) (k int, ok bool) {
	t := r.test
	if !(t.requests > 0) {
		return 0, false
	}
	share := min(1, max(0, (r.A+r.B)/2))
	limit := min(1-share, share) + delta
	sd := math.Sqrt(max(t.sd*t.sd, limit*(1-limit)/t.requests))
	k, ok = stats.ValuesNeeded(delta, sd, t.df, r.gateLevel(), power)
	if !ok {
		return 0, false
	}
	// Launches of no difference, with the spread that these have.
	values := func(k int) []float64 {
		xs := make([]float64, k)
		for i := range xs {
			xs[i] = share + t.sd*float64(1-2*(i%2))
		}
		return xs
	}
	// Chance moves the difference by as many standard errors as each clause is not to miss by.
	p := stats.NormalCDF(-stats.NormalQuantile(level) - stats.NormalQuantile(each))
	const most = 10_000
	for of := Enough; of <= most; of += 1 + of/20 {
		if xs := values(of); stats.ShareBelow(xs, xs, t.requests, delta) < p {
			return max(k, of, Enough), true
		}
	}
	return 0, false
}

// launchesAsMeasured returns how many launches a side decide a clause with 80 % power where the
// true change is the one that was measured.
func (r *Row) launchesAsMeasured(c Clause) (k int, ok bool) {
	t, asked := r.test, r.scale.back(c.signedChange())
	if t.flat {
		return 0, false
	}
	estimate := r.scale.back(r.Change)
	if (asked > 0) == (estimate > 0) && math.Abs(estimate) >= math.Abs(asked) {
		k, ok = stats.ValuesNeeded(estimate, t.sd, t.df, r.gateLevel(), power)
	} else {
		k, ok = stats.ValuesNeeded(asked-estimate, t.sd, t.df, stats.OneSided(level), power)
	}
	return max(k, min(r.launches[0], r.launches[1])+1), ok
}

// firesAt returns the true change at which as many launches as there are fire a clause with
// 80 % power; ok is false where their spread is not known.
func (r *Row) firesAt(c Clause) (change float64, ok bool) {
	t := r.test
	if t == nil || t.flat {
		return 0, false
	}
	least := math.Abs(r.scale.back(c.signedChange()))
	var delta float64
	if t.single {
		delta = max(least, t.d.SE*stats.NormalQuantile(1-(1-r.gateLevel())/2)) + t.d.SE*stats.NormalQuantile(power)
	} else if delta, ok = stats.FiresAt(least, t.sd, t.df, min(r.launches[0], r.launches[1]), r.gateLevel(), power); !ok {
		return 0, false
	}
	if c.better != c.metric.more {
		delta = -delta
	}
	change = r.scale.change(delta)
	return change, !math.IsInf(change, 0) && !math.IsNaN(change)
}
