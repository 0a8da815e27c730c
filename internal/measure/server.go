package measure

import (
	"math"

	"pitot/internal/data/metric"
	"pitot/internal/data/record"
)

// server gathers what the server reports of itself, by the names of the samples.
type server struct {
	t0, t1  int64 // the window
	samples map[string]*signalSamples
}

// signalSamples are the samples of one name. What a counter grew by is taken from as close
// around the window as it was asked for: from the last time before it, or at its
// beginning, to the first time at its end or behind it.
type signalSamples struct {
	before, after     float64
	beforeAt, afterAt int64 // Unset: there is none

	n                int64 // within the window
	sum, least, most float64
	lowest, highest  float64 // of any time
}

// countSample takes in a sample of any time.
func (s *server) countSample(x *record.Sample) {
	if x.Source != record.SourceServer || math.IsNaN(x.Value) || math.IsInf(x.Value, 0) {
		return
	}
	if s.samples == nil {
		s.samples = map[string]*signalSamples{}
	}
	of := s.samples[x.Name]
	if of == nil {
		of = &signalSamples{beforeAt: record.Unset, afterAt: record.Unset, least: math.Inf(1), most: math.Inf(-1), lowest: x.Value, highest: x.Value}
		s.samples[x.Name] = of
	}
	of.lowest, of.highest = min(of.lowest, x.Value), max(of.highest, x.Value)
	switch {
	case x.T <= s.t0:
		if x.T >= of.beforeAt {
			of.before, of.beforeAt = x.Value, x.T
		}
	case x.T >= s.t1:
		if of.afterAt < 0 || x.T < of.afterAt {
			of.after, of.afterAt = x.Value, x.T
		}
	default:
		of.n++
		of.sum += x.Value
		of.least, of.most = min(of.least, x.Value), max(of.most, x.Value)
	}
}

// restarted says that the server's process began more than once.
func (s *server) restarted() bool {
	start := s.samples[metric.ProcessStart]
	return start != nil && start.highest-start.lowest > 1
}

// values are the metrics that follow from the samples, by their fields; nil without
// any. Counters of a server that was restarted say nothing.
func (s *server) values(signals []metric.Signal) map[string]float64 {
	var values map[string]float64
	for i := range signals {
		d := &signals[i]
		if d.Metric == nil {
			continue
		}
		x, ok := s.value(d)
		if d.Scale != 0 {
			x *= d.Scale
		}
		if !ok || math.IsNaN(x) || math.IsInf(x, 0) {
			continue
		}
		if values == nil {
			values = map[string]float64{}
		}
		values[d.Field()] = x
	}
	return values
}

// value is that of one signal, in the engine's unit.
func (s *server) value(d *metric.Signal) (float64, bool) {
	of := s.samples[d.From.Record]
	if of == nil {
		return 0, false
	}
	switch d.Combine {
	case metric.Growth:
		return s.growth(d.From.Record)
	case metric.Ratio:
		part, ok := s.growth(d.From.Record)
		whole, known := s.growth(d.Per.Record)
		return part / whole, ok && known && whole > 0
	case metric.Average:
		return of.sum / float64(of.n), of.n > 0
	case metric.Most:
		return of.most, of.n > 0
	case metric.Least:
		return of.least, of.n > 0
	}
	return 0, false
}

// total is what a counter grew by from the first time that it was asked for to the
// last: before the load and after it.
func (s *server) total(name string) (float64, bool) {
	of := s.samples[name]
	if of == nil || of.beforeAt < 0 || of.afterAt < 0 || of.after < of.before || s.restarted() {
		return 0, false
	}
	return of.highest - of.lowest, true
}

// growth is what a counter grew by around the window.
func (s *server) growth(name string) (float64, bool) {
	of := s.samples[name]
	if of == nil || of.beforeAt < 0 || of.afterAt < 0 || of.after < of.before || s.restarted() {
		return 0, false
	}
	return of.after - of.before, true
}
