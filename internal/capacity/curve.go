package capacity

import (
	"cmp"
	"math"
	"slices"

	"pitot/internal/results/metric"
	"pitot/internal/results/result"
	"pitot/internal/stats"
)

// CurvePoint is one load of a curve and what it gave; times are medians in
// milliseconds. What is not known, as the latencies of an unstable point, is 0.
type CurvePoint struct {
	Index            int     // of the point in its run
	Load             float64 // requests a second, or users
	Offered          float64 // requests a second that came due, which a window of few requests may have less or more of than Load
	RequestsPerS     float64 // answers that ended
	OutputTokensPerS float64
	Late             float64     // output tokens a second in the second half of the window, 0 if not known
	LateCI95         *[2]float64 // of it
	TokensPerAnswer  float64     // mean, 0 if not known
	TokensError      float64     // half the width of the mean's 95 % interval ÷ it, of independent answers
	TTFT, TPOT, E2E  float64     // medians, ms; 0 if not known
	Slowest          float64     // E2E of the slowest, ms; 0 if not known
	Window           float64     // seconds
	Stability        stats.Stability
	Failing          bool // the server failed requests rather than served them
	Early            bool // it was ended early: what it served is a lower bound
	Invalid          bool // its measurement was: nothing rests on it
}

// IsBehind says that clearly fewer requests were served than came due. What is in
// flight at either end of the window differs by chance, and of a few requests
// that is much: it must be beyond three standard deviations of it.
func (p *CurvePoint) IsBehind() bool {
	inFlight := max(1, p.RequestsPerS*p.E2E/1e3)
	return p.RequestsPerS < servedShare*p.Offered && (p.Offered-p.RequestsPerS)*p.Window > 3*math.Sqrt(2*inFlight)
}

// IsUnstable says that the queue grew for as long as the load lasted.
func (p *CurvePoint) IsUnstable() bool { return p.Stability == stats.Unstable }

// PointOf is a run's point as one of a curve.
func PointOf(index int, p *result.Point) CurvePoint {
	c := CurvePoint{
		Index: index, Load: p.Load.Value(), Stability: p.Stability, Failing: p.Outcome == result.Failing, Early: p.EndedEarly, Window: p.Seconds.Window,
		Invalid: p.Verdict == result.Invalid,
		Offered: valueOrZero(p.Throughput.DuePerS), RequestsPerS: valueOrZero(p.Throughput.RequestsPerS), OutputTokensPerS: valueOrZero(p.Throughput.OutputTokensPerS),
		TokensPerAnswer: mean(p.Metrics.SummaryOf(metric.OutputTokens)), TokensError: relativeError(p.Metrics.SummaryOf(metric.OutputTokens)),
		TTFT: medianOf(p.Metrics.SummaryOf(metric.TTFT)), TPOT: medianOf(p.Metrics.SummaryOf(metric.TPOT)), E2E: medianOf(p.Metrics.SummaryOf(metric.E2E)),
	}
	if e := p.Metrics.SummaryOf(metric.E2E); e != nil {
		c.Slowest = valueOrZero(e.Max)
	}
	if l := p.Throughput.Late; l != nil {
		c.Late, c.LateCI95 = l.OutputTokensPerS, l.CI95
	}
	return c
}

func valueOrZero(x *float64) float64 {
	if x == nil {
		return 0
	}
	return *x
}

func mean(s *result.Summary) float64 {
	if s == nil {
		return 0
	}
	return valueOrZero(s.Mean)
}

// relativeError is half the width of the 95 % interval of a mean, ÷ it.
func relativeError(s *result.Summary) float64 {
	if s == nil || s.SD == nil || s.N < 2 || !(valueOrZero(s.Mean) > 0) {
		return 0
	}
	n := float64(s.N)
	return stats.StudentQuantile(0.975, n-1) * *s.SD / math.Sqrt(n) / *s.Mean
}

func medianOf(s *result.Summary) float64 {
	if s == nil {
		return 0
	}
	return valueOrZero(s.P50)
}

// byLoad sorts points by load; of equal loads the first measured comes first.
func byLoad(points []CurvePoint) []CurvePoint {
	sorted := slices.Clone(points)
	stats.SortStable(sorted, func(a, b CurvePoint) int { return cmp.Compare(a.Load, b.Load) })
	return sorted
}

// CurveOf says what the points of a sweep show together; nil without points.
func CurveOf(points []result.Point) *result.Curve {
	if len(points) == 0 {
		return nil
	}
	seen := make([]CurvePoint, len(points))
	for i := range points {
		seen[i] = PointOf(i, &points[i])
	}
	c := &result.Curve{Over: points[0].Load.Over(), Points: []int{}}
	for _, p := range byLoad(seen) {
		c.Points = append(c.Points, p.Index)
	}
	for _, group := range byEqualLoad(seen) {
		if len(group) > 1 {
			c.Repeats = append(c.Repeats, repeatedLoad(points, group))
		}
	}
	valid := slices.DeleteFunc(slices.Clone(seen), func(p CurvePoint) bool { return p.Invalid })
	describeShape(c, valid)
	if left := len(seen) - len(valid); left > 0 {
		all := &result.Curve{Over: c.Over}
		if describeShape(all, seen); !sameShape(c, all) {
			c.LeftOut = left
		}
	}
	c.Crossing = CrossingOf(points)
	return c
}

// describeShape says what points show of the knee, of the saturation and of where queues grow.
func describeShape(c *result.Curve, points []CurvePoint) {
	sorted := mergeLoads(points)
	for i := len(sorted) - 1; i >= 0 && sorted[i].Stability != stats.Stable; i-- { // one below a stable load was chance
		if sorted[i].IsUnstable() {
			c.UnstableFrom = &sorted[i].Load
		}
	}
	k := findKnee(sorted)
	if c.NoKnee = k.Reason; k.Reason.IsNone() {
		c.Knee = &result.Knee{
			Load: k.Power, Resampled: IntervalOrNil(k.Interval), Method: "the greatest throughput ÷ latency (power)",
			Others: map[string]*float64{"kneedle": KnownOrNil(k.Kneedle)},
		}
	}
	c.Saturation = saturationOf(sorted, result.IsClosedLoop(c.Over))
	c.Pareto.UserSpeed, c.Pareto.TTFT = paretoFronts(sorted)
}

// servedCI returns the 95 % interval of the requests a second that a saturated point served, nil
// where it is not known. Both the output and what an answer has of it are known only so well.
func (p *CurvePoint) servedCI() *[2]float64 {
	ci := p.LateCI95
	if ci == nil || p.TokensPerAnswer <= 0 || ci[0] <= 0 {
		return nil
	}
	e := math.Hypot(math.Log(ci[1]/ci[0])/2, p.TokensError)
	return &[2]float64{p.RequestsPerS * math.Exp(-e), p.RequestsPerS * math.Exp(e)}
}

// sameShape says that two curves have the same knee, saturation and load from which queues grow.
func sameShape(a, b *result.Curve) bool {
	at := func(c *result.Curve) (knee, saturated, unstable float64) {
		if c.Knee != nil {
			knee = c.Knee.Load
		}
		if c.Saturation != nil {
			saturated = c.Saturation.RequestsPerS
		}
		return knee, saturated, valueOrZero(c.UnstableFrom)
	}
	knee, saturated, unstable := at(a)
	k, s, u := at(b)
	return knee == k && saturated == s && unstable == u
}
