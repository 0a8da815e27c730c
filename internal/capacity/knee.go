package capacity

import (
	"math/rand/v2"
	"slices"

	"pitot/internal/results/result"
	"pitot/internal/stats"
)

// knee is where latency begins to rise faster than throughput. It describes
// the curve; what a service can be held to is its capacity under an SLO.
type knee struct {
	Power    float64        // load of the greatest throughput ÷ latency: the knee, if Reason is empty
	Kneedle  float64        // load of the greatest bend of latency over load
	Interval stats.Interval // of 95 % of Power by resampling the points: of no level
	Reason   result.Reason  // why there is no knee
}

const (
	maxSpread   = 0.20 // of the methods, relative: beyond, there is no distinct knee
	resamples   = 500
	leastPoints = 5
	// plateau is the gain of throughput over all higher loads that is none.
	plateau = 1.03
)

// stablePoints are the points, by load, up to the last that is stable, but for those
// without a latency. A knee is looked for among them: Kneedle depends on the
// range, and one overloaded point would stretch it as far as one likes.
func stablePoints(sorted []CurvePoint) (points []CurvePoint) {
	down := func(p CurvePoint) bool { return p.IsUnstable() || p.Failing }
	end := len(sorted)
	for end > 0 && down(sorted[end-1]) {
		end--
	}
	for _, p := range sorted[:end] {
		if !down(p) && p.E2E > 0 && p.RequestsPerS > 0 {
			points = append(points, p)
		}
	}
	return points
}

func findKnee(sorted []CurvePoint) (k knee) {
	points := stablePoints(sorted)
	if len(points) < leastPoints {
		k.Reason = result.Reason{Code: result.FewLoads, Needed: leastPoints}
		return k
	}
	k.Power, k.Kneedle = knees(points)
	switch {
	case k.Power == 0 || k.Kneedle == 0:
		k.Reason = result.Reason{Code: result.NoBend}
	case max(k.Power, k.Kneedle) > (1+maxSpread)*min(k.Power, k.Kneedle):
		k.Reason = result.Reason{Code: result.KneesDiffer, Low: k.Power, High: k.Kneedle}
	default:
		k.Interval = kneeInterval(points, k.Power)
	}
	return k
}

// knees are those of both methods, 0 where one finds none. A power that is
// greatest at an end of the range has not been seen to fall.
func knees(points []CurvePoint) (power, kneedle float64) {
	var loads, done, latency []float64
	for _, p := range points {
		loads, done, latency = append(loads, p.Load), append(done, p.RequestsPerS), append(latency, p.E2E)
	}
	if i, ok := stats.PowerKnee(done, latency); ok && i > 0 && i < len(points)-1 {
		power = loads[i]
	}
	if i, ok := stats.Kneedle(loads, latency, stats.Convex, 1); ok {
		kneedle = loads[i]
	}
	return power, kneedle
}

// kneeInterval resamples the points. Where most resamples have no knee, it may
// be anywhere. The draws have a fixed seed: the same points, the same interval.
func kneeInterval(points []CurvePoint, at float64) stats.Interval {
	rng := rand.New(rand.NewPCG(1, 0x6b6e6565))
	var found []float64
	for range resamples {
		drawn := make([]bool, len(points))
		for range points {
			drawn[rng.IntN(len(points))] = true
		}
		var sample []CurvePoint
		for i, p := range points {
			if drawn[i] {
				sample = append(sample, p)
			}
		}
		if power, _ := knees(sample); power > 0 {
			found = append(found, power)
		}
	}
	if len(found) < resamples/2 {
		return stats.Interval{Lo: points[0].Load, Hi: points[len(points)-1].Load}
	}
	slices.Sort(found)
	return stats.Interval{Lo: min(at, stats.Percentile(found, 0.025)), Hi: max(at, stats.Percentile(found, 0.975))}
}

// saturationPoint is the point of the most output, of tokens where they are known:
// answers end in bursts, and a window holds the ends of many that began before
// it. An open load beyond what is served takes its time to fill the server, so of
// such a point the second half of its window counts, and of several the one that
// surely gave most: of the greatest estimate chance would have a part. It is nil
// if more load might give more: no point is unstable, and throughput still rose. What a failing
// server served is no measure of it.
func saturationPoint(sorted []CurvePoint, closed bool) *CurvePoint {
	var most, over *CurvePoint // within what is served, and beyond
	reached := false
	beyond := func(p *CurvePoint) bool { return !closed && (p.IsUnstable() || p.IsBehind()) && p.Late > 0 }
	output := func(p *CurvePoint) float64 {
		switch {
		case beyond(p):
			return p.Late
		case p.OutputTokensPerS > 0:
			return p.OutputTokensPerS
		}
		return p.RequestsPerS
	}
	surely := func(p *CurvePoint) float64 {
		if p.LateCI95 != nil {
			return p.LateCI95[0]
		}
		return 0
	}
	for i := range sorted {
		p := &sorted[i]
		if p.Failing {
			continue
		}
		reached = reached || p.IsUnstable() || p.IsBehind()
		switch {
		case p.RequestsPerS <= 0 || p.Early:
		case beyond(p):
			if over == nil || surely(p) > surely(over) {
				over = p
			}
		case most == nil || output(p) > output(most):
			most = p
		}
	}
	if over != nil && (most == nil || output(over) >= output(most)) {
		most = over
	}
	if most == nil {
		return nil
	}
	last := sorted[len(sorted)-1]
	for _, p := range sorted {
		// A quarter more users who bring nothing.
		reached = reached || closed && p.RequestsPerS > 0 && p.Load < 0.8*last.Load && most.RequestsPerS < plateau*p.RequestsPerS
	}
	if !reached {
		return nil
	}
	if most.OutputTokensPerS > 0 && most.TokensPerAnswer > 0 { // both figures speak of one thing
		by := *most
		if beyond(most) {
			by.OutputTokensPerS = most.Late
		} else {
			by.LateCI95 = nil
		}
		by.RequestsPerS = by.OutputTokensPerS / most.TokensPerAnswer
		return &by
	}
	by := *most
	by.LateCI95 = nil
	return &by
}

// paretoFronts are the Pareto fronts of the points in balance, as indices of a run:
// tokens a second of one user, and the median TTFT, against those of all.
func paretoFronts(points []CurvePoint) (speed, ttft []int) {
	speed, ttft = []int{}, []int{}
	var index []int
	var gain, slow, wait []float64
	for _, p := range points {
		if p.IsUnstable() || p.Failing || p.OutputTokensPerS <= 0 || p.TTFT <= 0 || p.TPOT <= 0 {
			continue
		}
		index, gain = append(index, p.Index), append(gain, p.OutputTokensPerS)
		slow, wait = append(slow, p.TPOT), append(wait, p.TTFT)
	}
	for _, i := range stats.Pareto(gain, slow) {
		speed = append(speed, index[i])
	}
	for _, i := range stats.Pareto(gain, wait) {
		ttft = append(ttft, index[i])
	}
	return speed, ttft
}
