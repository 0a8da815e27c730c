package metrics

import (
	"errors"
	"math"

	"pitot/internal/results/result"
	"pitot/internal/slo"
	"pitot/internal/stats"
)

// Precision returns how well this point alone determines a value. It is half the width of the
// value's interval, in percent of it, or the reason why there is none. An interval of a percentile
// that rests on the run's own over-dispersion is too narrow more often than it says. To look again
// until it is narrow picks such runs. It is a rule for stopping and no 95 % interval.
func (f *Fold) Precision(want slo.Precision) (percent float64, why result.Reason) {
	p := f.Point()
	if !f.conf.why.IsNone() {
		return 0, f.conf.why
	}
	if p.Stability == stats.Unstable {
		return 0, p.StabilityWhy
	}
	scratch := f.store.NewScratch()
	defer func() { f.broken = errors.Join(f.broken, scratch.Err(), scratch.Close()) }()
	all := f.buildPart(f.groups.list, scratch)
	s := all.collectSamples(question{unit: inMS, take: all.metricFunc(want.Metric)})[0]
	n := s.sampleSize()
	var lo, hi, middle float64
	switch few, _ := stats.SamplesNeeded(want.Percentile / 100); {
	case s.longer.Len() > 0:
		return 0, censored
	case want.Percentile == 0:
		m, ok := s.inBatches(func(x float64) float64 { return x }).MergeTo(batches).Mean(level)
		if !ok {
			return 0, fewBatch
		}
		lo, hi, middle = m.Lo, m.Hi, m.Mean
	case n < few:
		return 0, result.Reason{Code: result.FewShown, N: float64(n), Needed: float64(few)}
	default:
		middle, _ = s.percentile(want.Percentile / 100)
		own, ok := s.inBatches(func(x float64) float64 {
			if x > middle {
				return 1
			}
			return 0
		}).MergeTo(batches).Overdispersion()
		if !ok {
			return 0, fewBatch
		}
		t := stats.StudentQuantile((1+level)/2, batches-1) / stats.NormalQuantile((1+level)/2)
		effective := float64(n) / stats.PooledOverdispersion(own) / (t * t)
		a, b := stats.EffectiveRankInterval(n, effective, want.Percentile/100, level)
		if a < 1 || b > n {
			return 0, result.Reason{Code: result.FewIndependent, N: math.Round(effective)}
		}
		lo, hi = s.values.orderStatistic(a), s.values.orderStatistic(b)
	}
	if middle <= 0 {
		return 0, result.Reason{Code: result.ValueIsZero}
	}
	return 100 * math.Max(hi-middle, middle-lo) / middle, result.Reason{}
}

// untilReached takes the intervals of the value that was watched: the window
// ended when one was narrow, and of all looks that is the one by chance too
// narrow.
func (f *Fold) untilReached(p *result.Point) {
	p.Until = f.setup.Until
	if p.Until == nil {
		return
	}
	want, err := slo.Grammar{Metrics: f.metricCatalogue()}.ParsePrecision(p.Until.Spec)
	if err != nil { // what wrote it can be read
		return
	}
	s := p.Metrics.SummaryOf(want.Metric)
	if s == nil {
		return
	}
	for name := range s.CI95 {
		s.NoInterval[name] = result.Reason{Code: result.EndedByLook}
	}
	clear(s.CI95)
}
