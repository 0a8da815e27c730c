package metrics

import (
	"slices"

	"pitot/internal/results/metric"
	"pitot/internal/results/result"
	"pitot/internal/stats"
)

// PoolPercentiles gives percentiles over the requests of several points that had one load
// each: more samples than any of them has, of metrics that every point has in a
// steady state. Points are what the folds came to.
func PoolPercentiles(folds []*Fold, points []result.Point) map[string]result.Together {
	out := map[string]result.Together{}
	if len(folds) < 2 {
		return out
	}
	scratch := folds[0].store.NewScratch()
	defer scratch.Close()
	for i := range folds[0].definitions {
		d := &folds[0].definitions[i]
		if d.Request == nil || len(d.Compared) == 0 || !hasMetricEverywhere(d.Metric, points) {
			continue
		}
		var all *sample
		for _, f := range folds {
			c := f.buildPart(f.groups.list, scratch)
			ask := d.newQuestion(c.until)
			ask.of = nil
			if all == nil {
				all = newSample(c, &ask)
			}
			for q := range c.requests() {
				x, st := ask.take(q)
				all.addRequest(q, x, st)
			}
		}
		all.seek()
		for _, p := range metric.Percentiles() {
			few, firm := stats.SamplesNeeded(p.P)
			if p.Key != "p50" && p.Key != "p99" || all.sampleSize() < few {
				continue
			}
			if x, over := all.percentile(p.P); !over {
				out[d.Key+"."+p.Key] = result.Together{Value: x / all.unit, N: all.sampleSize(), Few: all.sampleSize() < firm || fewSomewhere(d.Name, p.Key, points)}
			}
		}
		all.free()
	}
	return out
}

// fewSomewhere says that a point's own value rests on few of its samples, as where
// they depend on each other.
func fewSomewhere(name metric.Name, key string, points []result.Point) bool {
	return slices.ContainsFunc(points, func(p result.Point) bool { return slices.Contains(p.Metrics.SummaryOf(name).Few, key) })
}

// hasMetricEverywhere says that each point has the metric, and has it for its load.
func hasMetricEverywhere(m *metric.Metric, points []result.Point) bool {
	for i := range points {
		if s := points[i].Metrics.SummaryOf(m.Name); s == nil || !s.NoSteadyState().IsNone() {
			return false
		}
	}
	return true
}
