package compare

import (
	"math"
	"slices"

	"pitot/internal/results/result"
	"pitot/internal/stats"
)

const (
	level = 0.95
	alpha = 1 - level
	power = 0.8
	// Enough launches a side for a verdict. Corrected tests keep their level from
	// here on, near the limit of a simulated system too (bench/stat, compare); two
	// launches say next to nothing of their own spread.
	Enough = 3
	// shareMargin is the difference at which shares of the requests are still equivalent. It is an
	// absolute difference: a share of 99 % is no share of 95 %.
	shareMargin = 0.01
)

// scale is the scale that a metric is tested on. It is the logarithm, since times and rates differ
// by factors, or the plain value for shares.
type scale struct {
	in     string // what a change is in: "ratio" or "share"
	to     func(float64) float64
	change func(float64) float64 // of a difference on the scale
	mean   func(float64) float64 // back from a mean on the scale
	back   func(float64) float64 // a change onto the scale
	margin float64               // on the scale
}

func scaleOf(m figure, a, b sample, within float64) (scale, string) {
	same := func(x float64) float64 { return x }
	if m.share {
		return scale{"share", same, same, same, same, shareMargin}, ""
	}
	positive, sum := true, 0.
	for _, s := range []sample{a, b} {
		for _, x := range s.values {
			positive = positive && x > 0
		}
	}
	for _, x := range a.values {
		sum += x
	}
	if positive {
		return scale{"ratio", math.Log, math.Expm1, math.Exp, math.Log1p, math.Log1p(within)}, ""
	}
	// A zero has no logarithm: relative to the mean of A then.
	if !(sum > 0) {
		return scale{}, "zero on side " + a.side
	}
	unit := sum / float64(len(a.values))
	return scale{"ratio", func(x float64) float64 { return x / unit }, same, func(x float64) float64 { return x * unit }, same, within}, ""
}

func (s scale) transform(xs []float64) []float64 {
	out := make([]float64, len(xs))
	for i, x := range xs {
		out[i] = s.to(x)
	}
	return out
}

// changeInterval is one of a difference on the scale as one of the change, nil if no
// number is as large as its end.
func (s scale) changeInterval(v stats.Interval) *[2]float64 {
	lo, hi := s.change(v.Lo), s.change(v.Hi)
	if math.IsInf(hi, 0) || math.IsNaN(lo+hi) {
		return nil
	}
	return &[2]float64{lo, hi}
}

// test holds what launches say of a difference.
type test struct {
	d      stats.Difference // on the scale
	flat   bool             // no spread: the same in every launch
	single bool             // of one launch a side, by their own intervals
	sd     float64          // of launches, both sides pooled
	df     float64          // of sd
	// below gives the p-value, one-sided, that the change is not as large as one on
	// the scale, of its sign; nil where nothing tells.
	below func(change float64) float64

	requests float64 // of a share: how many each launch's is of, 0 where that is not known
}

// equivalenceP is the p-value of the two one-sided tests.
func (t *test) equivalenceP(margin float64) float64 { return max(t.below(margin), t.below(-margin)) }

// oneSidedTests gives the one-sided tests of a row that has a difference, or of shares that
// have none.
func (r *Row) oneSidedTests(a, b sample) func(change float64) float64 {
	if r.metric.share {
		xs, ys := a.values, b.values
		n := min(a.leastRequests(), b.leastRequests())
		if r.test.flat && !(n > 0) {
			return nil
		}
		return func(change float64) float64 {
			if math.Signbit(change) {
				return stats.ShareBelow(ys, xs, n, -change)
			}
			return stats.ShareBelow(xs, ys, n, change)
		}
	}
	if r.test.flat {
		// Every value of B lies on one side of every value of A that has changed so much. Of values
		// that are in any order one order in so many does.
		d, p := r.test.d.Estimate, 1/orderCount(len(a.values), len(b.values))
		return func(change float64) float64 {
			if math.Signbit(change) && d > change || !math.Signbit(change) && d < change {
				return p
			}
			return 1
		}
	}
	d := r.test.d
	return func(change float64) float64 {
		if math.Signbit(change) {
			return stats.StudentCDF((change-d.Estimate)/d.SE, d.DF)
		}
		return stats.StudentCDF((d.Estimate-change)/d.SE, d.DF)
	}
}

// untestedRow is a row of one metric with both values and the change alone. why says
// why there is none.
func untestedRow(m figure, a, b sample, within float64) (r Row, why string) {
	s, why := scaleOf(m, a, b, within)
	if why != "" {
		return r, why
	}
	mx, _ := stats.Moments(s.transform(a.values))
	my, _ := stats.Moments(s.transform(b.values))
	r = Row{
		Metric: m.name, Class: m.class, Unit: m.unit, ChangeIn: s.in, A: s.mean(mx), B: s.mean(my), Change: s.change(my - mx),
		Margin: [2]float64{s.change(-s.margin), s.change(s.margin)},
		Few:    a.few || b.few, Verdict: Undistinguished,
		metric: m, scale: s, launches: [2]int{len(a.values), len(b.values)},
	}
	if m.share {
		r.Unit = "share"
	}
	if x := r.A + r.B + r.Change; math.IsInf(x, 0) || math.IsNaN(x) {
		return r, "the values are out of all range"
	}
	return r, ""
}

// newRow compares one metric, without a verdict yet. why says why it cannot.
func newRow(m figure, a, b sample, within float64) (r Row, why string) {
	r, why = untestedRow(m, a, b, within)
	if why != "" {
		return r, why
	}
	s := r.scale
	xs, ys := s.transform(a.values), s.transform(b.values)
	if len(xs) < 2 || len(ys) < 2 {
		r.testSingleLaunches(a, b)
		return r, ""
	}
	_, sx := stats.Moments(xs)
	_, sy := stats.Moments(ys)
	r.test = &test{requests: min(a.leastRequests(), b.leastRequests())}
	nx, ny := float64(len(xs)), float64(len(ys))
	r.test.df = nx + ny - 2
	r.test.sd = math.Sqrt((sx*sx*(nx-1) + sy*sy*(ny-1)) / r.test.df)
	d, ok := stats.Welch(xs, ys, level)
	if !ok || isConstant(a.values) && isConstant(b.values) { // what is left of a spread is rounding
		r.A, r.B, r.Change = a.values[0], b.values[0], 0
		r.test.flat = true
		if r.A != r.B {
			r.test.d.Estimate = ys[0] - xs[0]
			r.test.d.P = min(1, 2/orderCount(len(xs), len(ys)))
			r.Change, r.P = s.change(r.test.d.Estimate), &r.test.d.P
		}
		r.test.below = r.oneSidedTests(a, b)
		r.NoInterval = result.Reason{Code: result.ValuesAlike}
		return r, ""
	}
	r.test.d, r.P, r.CI95 = d, &d.P, s.changeInterval(d.Interval)
	r.test.below = r.oneSidedTests(a, b)
	shift := stats.HodgesLehmann(xs, ys, level)
	r.Robust = new(s.change(shift.Estimate))
	if shift.Reason == "" {
		r.RobustCI95 = s.changeInterval(shift.Interval)
	}
	return r, ""
}

// orderCount is in how many ways so many values of one side and of the other can be in order, where
// those of a side are not told apart: the permutation test of values that do not spread.
func orderCount(n, m int) float64 {
	out := 1.
	for i := range m {
		out *= float64(n+i+1) / float64(i+1)
	}
	return math.Round(out)
}

func isConstant(xs []float64) bool { return slices.Min(xs) == slices.Max(xs) }

// testSingleLaunches gives the interval and the test that single launches allow: of the difference
// between these two launches, not between systems.
func (r *Row) testSingleLaunches(a, b sample) {
	if len(a.values) > 1 || len(b.values) > 1 {
		one := a.side
		if len(b.values) == 1 {
			one = b.side
		}
		r.NoInterval = result.Reason{Code: result.OneLaunchOf, Quote: one}
		return
	}
	x, y := r.scale.to(a.values[0]), r.scale.to(b.values[0])
	var xs [2][]float64 // repeats
	for i, s := range []sample{a, b} {
		for _, v := range s.repeats[0] {
			xs[i] = append(xs[i], r.scale.to(v.x))
		}
	}
	if len(xs[0]) > 1 && len(xs[1]) > 1 {
		if d, ok := stats.Welch(xs[0], xs[1], level); ok {
			r.testWithin(y-x, d.Interval)
			return
		}
	}
	var own [2]stats.Interval
	for i, s := range []sample{a, b} {
		ci := s.repeats[0][0].ci
		if len(s.repeats[0]) > 1 || ci == nil || r.scale.in == "ratio" && !(ci[0] > 0) {
			r.NoInterval = result.Reason{Code: result.RunsHaveNone}
			if r.short = shortOf(a.repeats[0], b.repeats[0]); !r.short.IsNone() {
				r.NoInterval = r.short
			} else if len(s.repeats[0]) == 1 {
				r.withheld = s.repeats[0][0].withheld
			}
			return
		}
		own[i] = stats.Interval{Lo: r.scale.to(ci[0]), Hi: r.scale.to(ci[1])}
	}
	r.testWithin(y-x, stats.IntervalOfDifference(x, y, own[0], own[1]))
}

// shortOf returns why single runs have no interval of a difference, if longer ones have: of both
// the reason that takes longer.
func shortOf(a, b []value) (why result.Reason) {
	for _, repeats := range [][]value{a, b} {
		if len(repeats) > 1 || repeats[0].ci == nil && repeats[0].shortWindowReason().IsNone() {
			return result.Reason{}
		}
		why = longerOf(why, repeats[0].shortWindowReason())
	}
	return why
}

// longerOf returns the reason that takes the longer window.
func longerOf(a, b result.Reason) result.Reason {
	if b.Longer.Seconds > a.Longer.Seconds || b.Longer.Requests > a.Longer.Requests {
		return b
	}
	return a.Or(b)
}

// TooShort returns why the runs of one launch a side are too short for a verdict on b, none
// where a longer window would not give one.
func (c *Comparison) TooShort(b string) (why result.Reason) {
	for i := range c.Pairs {
		for k := range c.Pairs[i].Rows {
			if c.Pairs[i].B == b {
				why = longerOf(why, c.Pairs[i].Rows[k].short)
			}
		}
	}
	return why
}

// testWithin tests a difference by its own 95 % interval, each half of which is taken for
// that of a normal distribution: the halves of an interval of a ratio are unlike.
func (r *Row) testWithin(difference float64, v stats.Interval) {
	ci := r.scale.changeInterval(v)
	z := stats.NormalQuantile(1 - alpha/2)
	// Standard errors; of pairs that are all alike there is none but that of rounding.
	const rounding = 1e-9
	down, up := max((difference-v.Lo)/z, rounding), max((v.Hi-difference)/z, rounding)
	if ci == nil || math.IsNaN(down+up) {
		if r.CI95 == nil {
			r.NoInterval = r.NoInterval.Or(result.Reason{Code: result.OutOfRange})
		}
		return
	}
	r.CI95, r.NoInterval = ci, result.Reason{}
	toZero := down
	if difference < 0 {
		toZero = up
	}
	d := stats.Difference{Estimate: difference, SE: toZero, DF: math.Inf(1), Interval: v}
	d.P = 2 * stats.NormalCDF(-math.Abs(difference)/toZero)
	r.P = &d.P
	r.test = &test{d: d, single: true, below: func(change float64) float64 {
		if math.Signbit(change) {
			return stats.NormalCDF((change - difference) / down)
		}
		return stats.NormalCDF((difference - change) / up)
	}}
}

// setNeeded sets how many launches a side detect a difference with 80 % power: the one seen, or
// the least that matters. The spread is known only as well as these launches tell it. The level
// is that of the first step of Holm's correction, so that it is enough whatever the others show.
func (r *Row) setNeeded() {
	if r.test == nil || r.test.flat || r.test.single {
		return
	}
	delta := max(math.Abs(r.test.d.Estimate), r.scale.margin)
	k, ok := stats.ValuesNeeded(delta, r.test.sd, r.test.df, r.familyLevel(), power)
	if !ok {
		return
	}
	if r.Change < 0 && delta > r.scale.margin {
		delta = -delta
	}
	k = max(k, Enough)
	r.Needed, r.Detects = &k, r.scale.change(delta)
}

// familyLevel is the level of the first step of Holm's correction.
func (r *Row) familyLevel() float64 { return 1 - alpha/float64(max(1, r.family)) }

// setDetectable sets the smallest change that the launches there are detect with 80 % power.
func (r *Row) setDetectable() {
	t := r.test
	if t == nil || t.flat {
		return
	}
	var delta float64
	if t.single {
		delta = t.d.SE * (stats.NormalQuantile(1-(1-r.familyLevel())/2) + stats.NormalQuantile(power))
	} else {
		var ok bool
		delta, ok = stats.DetectableDifference(t.sd, t.df, min(r.launches[0], r.launches[1]), r.familyLevel(), power)
		if !ok {
			return
		}
	}
	if x := r.scale.change(delta); !math.IsInf(x, 0) && !math.IsNaN(x) {
		r.Detectable = &x
	}
}

// isWorse says whether a change is for the worse.
func (r *Row) isWorse() bool { return (r.Change < 0) == r.metric.more }

// TooFewLaunches says whether too few starts of the servers were measured for a verdict on
// the row, however large its change.
func (r *Row) TooFewLaunches() bool { return !r.fewLaunches().IsNone() }

// fewLaunches says why there is no verdict on systems, "" if there may be one.
func (r *Row) fewLaunches() result.Reason {
	if r.test != nil && r.test.single {
		return result.Reason{} // a verdict on these two launches: see [Scope]
	}
	return fewLaunches(r.launches[0], r.launches[1])
}

// fewLaunches is why there is no verdict by as many launches, none where there are enough.
func fewLaunches(a, b int) result.Reason {
	switch {
	case a == 1 && b == 1: // that have no interval of their own
		return result.Reason{Code: result.OneLaunchEach}
	case min(a, b) >= Enough:
		return result.Reason{}
	}
	return result.Reason{Code: result.FewLaunches, N: float64(a), Of: float64(b), Needed: Enough}
}
