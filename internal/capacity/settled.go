package capacity

import (
	"math"
	"slices"

	"pitot/internal/stats"
)

const (
	// settling is the number of relaxation times that a queue gets to settle. After them 2 % of
	// what it began without is missing. It was tried on 41 servers of the design half of `go run
	// ./bench/stat -only width` and more like them. Intervals of 10,000 requests hold in 95.7 %
	// without it. With 2, 3 and 4 they hold in 97.4, 97.8 and 98.2 %. The median half-width is
	// 14.8, 14.4, 14.9 and 15.4 %.
	settling = 4
	// mostIdle is the idle share of a server from which queues hardly form, so that they need not
	// settle.
	mostIdle = 0.5
	// fewestWaits is the smallest number of windows that shows what a server carries.
	fewestWaits = 3
)

// settledUpTo is the highest load at which a queue that began empty has settled by the time of the
// windows that are fitted. Near what a server carries it takes the longer the nearer, and up to
// then fewer requests wait than will: where limits are reached at 0.95 of that, windows behind ten
// residence times showed a fiftieth of the violations of the long run. So they bound the capacity
// from above, and from below no further than here, whatever the curve through them. It is infinite
// where no window shows what the server carries.
//
// The backlog is one of Brownian motion that falls by μ(1 − ρ) a second, with a variance of μ(c² of
// gaps + c² of lengths), and its relaxation time is 2 variance ÷ fall² (Abate and Whitt, "Transient
// behavior of regulated Brownian motion, I: starting at the origin", Advances in Applied
// Probability 19, 1987).
func (f *search) settledUpTo(estimate float64) float64 {
	if f.cfg.Closed || f.cfg.Count || f.cfg.Sessions != (Sessions{}) || f.cfg.Traffic.Cycle > 0 {
		return math.Inf(1)
	}
	carried, lasted := f.carriedRate(estimate), f.medianLoadTime()
	if math.IsInf(carried, 1) || lasted == 0 {
		return math.Inf(1)
	}
	idle := math.Sqrt(settling * 2 * (f.cfg.Traffic.Gaps + f.cfg.Traffic.Lengths) / (carried * lasted))
	return carried * (1 - min(idle, mostIdle))
}

// carriedRate returns the number of requests a second that a server carries, by their waits at
// higher loads. Where λ come and μ are carried, one that comes t after the load began waits (λ ÷ μ
// − 1)t. It is infinite where too few windows show a queue that grew.
func (f *search) carriedRate(estimate float64) float64 {
	usual := f.residence
	for _, s := range f.ofLaunch() {
		if f.supportsBounds(&s) && s.Load <= estimate {
			usual = max(usual, s.Seen.Residence)
		}
	}
	var by []float64
	for _, s := range f.ofLaunch() {
		if waits := s.Seen.Residence - usual; f.supportsBounds(&s) && s.Load > estimate && waits > usual {
			by = append(by, s.Load/(1+waits/f.lastedIn(&s)))
		}
	}
	if len(by) < fewestWaits {
		return math.Inf(1)
	}
	stats.SortFloat64(by)
	return stats.Percentile(by, 0.5)
}

// medianLoadTime returns the median time that a main load has lasted when its requests come, in
// seconds; 0 without any.
func (f *search) medianLoadTime() float64 {
	var all []float64
	for _, s := range f.ofLaunch() {
		if f.supportsBounds(&s) && s.Stage == Main {
			all = append(all, f.lastedIn(&s))
		}
	}
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return all[len(all)/2]
}

// lastedIn is that of a window, on average. Of earlier searches it is not known how long they
// warmed up: no less than a bracket.
func (f *search) lastedIn(s *Step) float64 {
	warmup := s.Residences * s.Probe.Residence
	if warmup == 0 {
		warmup = bracketWarmup * f.residence
	}
	return warmup + float64(s.Seen.N)/s.Load/2
}
