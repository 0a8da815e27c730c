package capacity

import (
	"cmp"
	"slices"

	"pitot/internal/results/metric"
	"pitot/internal/results/result"
	"pitot/internal/stats"
)

// byEqualLoad are points grouped by load, the lightest first.
func byEqualLoad(points []CurvePoint) (groups [][]CurvePoint) {
	for _, p := range byLoad(points) {
		if n := len(groups); n > 0 && groups[n-1][0].Load == p.Load {
			groups[n-1] = append(groups[n-1], p)
			continue
		}
		groups = append(groups, []CurvePoint{p})
	}
	return groups
}

// mergeLoads has each load once.
func mergeLoads(points []CurvePoint) (loads []CurvePoint) {
	for _, group := range byEqualLoad(points) {
		loads = append(loads, middleOf(group))
	}
	return loads
}

// middleOf is the medians over the repeats of a load of what is known, under
// the index of the one with the median latency. A load is stable, unstable or
// failing where more than half of them are.
func middleOf(group []CurvePoint) CurvePoint {
	if len(group) == 1 {
		return group[0]
	}
	byE2E := slices.Clone(group)
	stats.SortStable(byE2E, func(a, b CurvePoint) int { return cmp.Compare(a.E2E, b.E2E) })
	p := byE2E[len(group)/2]
	median := func(of func(*CurvePoint) float64) float64 {
		var xs []float64
		for i := range group {
			if x := of(&group[i]); x > 0 {
				xs = append(xs, x)
			}
		}
		if len(xs) == 0 {
			return 0
		}
		stats.SortFloat64(xs)
		return stats.Percentile(xs, .5)
	}
	most := func(is func(*CurvePoint) bool) bool {
		n := 0
		for i := range group {
			if is(&group[i]) {
				n++
			}
		}
		return 2*n > len(group)
	}
	p.Offered = median(func(p *CurvePoint) float64 { return p.Offered })
	p.RequestsPerS = median(func(p *CurvePoint) float64 { return p.RequestsPerS })
	p.OutputTokensPerS = median(func(p *CurvePoint) float64 { return p.OutputTokensPerS })
	p.Late = median(func(p *CurvePoint) float64 { return p.Late })
	p.TTFT = median(func(p *CurvePoint) float64 { return p.TTFT })
	p.TPOT = median(func(p *CurvePoint) float64 { return p.TPOT })
	p.E2E = median(func(p *CurvePoint) float64 { return p.E2E })
	p.Slowest = median(func(p *CurvePoint) float64 { return p.Slowest })
	p.Early = most(func(p *CurvePoint) bool { return p.Early })
	p.Failing = most(func(p *CurvePoint) bool { return p.Failing })
	p.Invalid = most(func(p *CurvePoint) bool { return p.Invalid })
	p.Stability = stats.Undecided
	for _, s := range []stats.Stability{stats.Stable, stats.Unstable} {
		if most(func(p *CurvePoint) bool { return p.Stability == s }) {
			p.Stability = s
		}
	}
	return p
}

// SummarizeRepeats says what the points of a run together show that measured one load
// several times; nil for a run of one point.
func SummarizeRepeats(points []result.Point) *result.Repeated {
	if len(points) < 2 {
		return nil
	}
	group := make([]CurvePoint, len(points))
	for i := range points {
		group[i] = PointOf(i, &points[i])
	}
	r := repeatedLoad(points, group)
	return &r
}

// repeatedLoad is a load that was measured more than once: the median of each value
// over its points, and how far they came out apart. A percentile is not
// averaged: the median is the value of one of the points.
func repeatedLoad(points []result.Point, group []CurvePoint) result.Repeated {
	r := result.Repeated{Load: group[0].Load, Median: map[string]float64{}, Spread: map[string][2]float64{}, Covers: ThisLaunch}
	values := map[string][]float64{}
	note := func(name string, x *float64) {
		if x != nil {
			values[name] = append(values[name], *x)
		}
	}
	for _, g := range group {
		r.Points = append(r.Points, g.Index)
		p := &points[g.Index]
		for _, m := range metric.All() {
			if m.HasSingleValue() && m.Show != metric.Data {
				x, _, _ := p.MetricValue(m)
				note(m.Key, x)
			}
		}
		for _, d := range p.Metrics.List {
			for _, key := range []string{"p50", "p99"} {
				if len(d.Compared) > 0 {
					note(d.Key+"."+key, d.Value(key))
				}
			}
		}
		if p.SLO != nil {
			if r.Met == nil {
				r.Met = map[result.Met]int{}
			}
			r.Met[p.SLO.Met]++
		}
	}
	for name, xs := range values {
		stats.SortFloat64(xs)
		if len(xs) == len(group) {
			r.Median[name] = stats.Percentile(xs, .5)
		}
		if len(xs) > 1 { // one is no spread
			r.Spread[name] = [2]float64{xs[0], xs[len(xs)-1]}
		}
	}
	return r
}
