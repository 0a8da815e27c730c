package telemetry

import (
	"cmp"
	"math"
	"slices"
)

// Samples gathers what sources told of one load, in any order, for what it says of a
// stretch of time. The zero value has none.
type Samples struct {
	series map[series]*track
}

// series is one signal as one source tells it.
type series struct {
	source string
	signal Signal
}

// track is its samples.
type track struct {
	points []Sample
	sorted bool
}

// Sample is a value and when it was, in nanoseconds since the load began.
type Sample struct {
	T     int64
	Value float64
}

// Add takes in a sample. One that is no number is left out. A signal that is not in the
// vocabulary, as of a later program's records, is taken for a gauge and for a counter:
// a sum over its sources.
func (s *Samples) Add(source string, signal Signal, t int64, value float64) {
	if !isNumber(value) {
		return
	}
	if s.series == nil {
		s.series = map[series]*track{}
	}
	key := series{source, signal}
	of := s.series[key]
	if of == nil {
		of = &track{}
		s.series[key] = of
	}
	of.points = append(of.points, Sample{t, value})
	of.sorted = false
}

// sortedSamples puts the samples in the order of their times.
func (t *track) sortedSamples() []Sample {
	if !t.sorted {
		slices.SortStableFunc(t.points, func(a, b Sample) int { return cmp.Compare(a.T, b.T) })
		t.sorted = true
	}
	return t.points
}

// Window holds the signals over a stretch of time. It has the distributions of gauges, the growth
// of counters and the values of facts. A signal without data is missing, which differs from 0.
type Window struct {
	T0, T1   int64 // nanoseconds since the load began
	Gauges   map[Signal]Distribution
	Counters map[Signal]float64
	Facts    map[Signal]float64
	Restarts []string // sources whose process began anew: their counters are left out
	Sources  []string // that told anything
}

// Distribution is that of a gauge's samples within a window.
type Distribution struct {
	N                        int
	Mean, Min, P50, P95, Max float64
}

// Seconds returns the length of the window in seconds.
func (w *Window) Seconds() float64 { return float64(w.T1-w.T0) / 1e9 }

// Gauge returns the distribution of a gauge, and false if the window has no sample of it.
func (w *Window) Gauge(s Signal) (Distribution, bool) {
	d, ok := w.Gauges[s]
	return d, ok
}

// Growth returns the growth of a counter, and false where that is not known.
func (w *Window) Growth(s Signal) (float64, bool) {
	x, ok := w.Counters[s]
	return x, ok
}

// Rate returns the growth of a counter per second.
func (w *Window) Rate(s Signal) (float64, bool) {
	x, ok := w.Counters[s]
	return x / w.Seconds(), ok && w.T1 > w.T0
}

// Ratio returns the growth of one counter for each unit that another grew. For a sum and a count
// this is the mean. It is not known where the other did not grow.
func (w *Window) Ratio(part, whole Signal) (float64, bool) {
	a, ok := w.Counters[part]
	b, known := w.Counters[whole]
	return a / b, ok && known && b > 0
}

// Fact is a value that does not change.
func (w *Window) Fact(s Signal) (float64, bool) {
	x, ok := w.Facts[s]
	return x, ok
}

// WindowOf returns the samples of [t0, t1) as a window. Gauges use the samples within it. The
// growth of a counter is interpolated to both ends, between the samples around each. A counter
// without a sample within reach of both ends is not known. Nothing is extrapolated beyond the first
// sample and the last.
func (s *Samples) WindowOf(t0, t1 int64) Window {
	w := Window{T0: t0, T1: t1}
	restarted := map[string]bool{}
	sources := map[string]bool{}
	bySignal := map[Signal][]string{}
	for key, of := range s.series {
		sources[key.source] = true
		bySignal[key.signal] = append(bySignal[key.signal], key.source)
		if key.signal == ProcessStart && hasRestarted(of.points) {
			restarted[key.source] = true
		}
	}
	w.Sources = sortedKeys(sources)
	w.Restarts = sortedKeys(restarted)
	for signal, of := range bySignal {
		slices.Sort(of) // sums do not depend on the order of a map
		d, known := LookUpDefinition(signal)
		if !known || d.Kind == Gauge {
			if x, ok := s.gaugeDistribution(d, of, t0, t1); ok {
				putValue(&w.Gauges, signal, x)
			}
		}
		if !known || d.Kind == Counter {
			if x, ok := s.counterGrowth(d, of, t0, t1, restarted); ok {
				putValue(&w.Counters, signal, x)
			}
		}
		if d.Kind == Fact {
			if x, ok := s.factValue(d, of); ok {
				putValue(&w.Facts, signal, x)
			}
		}
	}
	return w
}

func putValue[T any](m *map[Signal]T, s Signal, x T) {
	if *m == nil {
		*m = map[Signal]T{}
	}
	(*m)[s] = x
}

func sortedKeys(set map[string]bool) (list []string) {
	for name := range set {
		list = append(list, name)
	}
	slices.Sort(list)
	return list
}

// hasRestarted says that a process began more than once. Its start is written with a
// precision of a fraction of a second, which may differ between two workers.
func hasRestarted(points []Sample) bool {
	if len(points) == 0 {
		return false
	}
	least, most := points[0].Value, points[0].Value
	for _, p := range points {
		least, most = min(least, p.Value), max(most, p.Value)
	}
	return most-least > 1
}

// samplesWithin are the samples of [t0, t1).
func (t *track) samplesWithin(t0, t1 int64) []Sample {
	all := t.sortedSamples()
	from, _ := slices.BinarySearchFunc(all, t0, func(p Sample, at int64) int { return cmp.Compare(p.T, at) })
	to, _ := slices.BinarySearchFunc(all, t1, func(p Sample, at int64) int { return cmp.Compare(p.T, at) })
	return all[from:max(from, to)]
}

// SamplesBetween are the samples of a signal within [t0, t1), over all sources, as one series:
// at the times of the source that tells most often, with the others as they were last
// told.
func (s *Samples) SamplesBetween(signal Signal, t0, t1 int64) []Sample {
	var of []string
	for key := range s.series {
		if key.signal == signal {
			of = append(of, key.source)
		}
	}
	slices.Sort(of)
	if len(of) == 0 {
		return nil
	}
	d, _ := LookUpDefinition(signal)
	return s.mergeSources(d, of, t0, t1)
}

// mergeSources returns the samples of several sources as one series.
func (s *Samples) mergeSources(d Definition, of []string, t0, t1 int64) []Sample {
	most := s.series[series{of[0], d.Signal}]
	for _, source := range of[1:] {
		if one := s.series[series{source, d.Signal}]; len(one.samplesWithin(t0, t1)) > len(most.samplesWithin(t0, t1)) {
			most = one
		}
	}
	own := most.samplesWithin(t0, t1)
	if len(of) == 1 {
		return own
	}
	out := make([]Sample, 0, len(own))
	values := make([]float64, 0, len(of))
	for _, p := range own {
		values = values[:0]
		for _, source := range of {
			if x, ok := s.series[series{source, d.Signal}].latestValue(p.T); ok {
				values = append(values, x)
			}
		}
		out = append(out, Sample{p.T, d.Across.combine(values)})
	}
	return out
}

// latestValue returns the last value up to a time.
func (t *track) latestValue(at int64) (float64, bool) {
	all := t.sortedSamples()
	i, _ := slices.BinarySearchFunc(all, at+1, func(p Sample, at int64) int { return cmp.Compare(p.T, at) })
	if i == 0 {
		return 0, false
	}
	return all[i-1].Value, true
}

// combine makes one value of several, of which there is at least one.
func (a Across) combine(values []float64) float64 {
	switch a {
	case Highest:
		return slices.Max(values)
	case Lowest:
		return slices.Min(values)
	}
	sum := 0.0
	for _, x := range values {
		sum += x
	}
	if a == Mean {
		return sum / float64(len(values))
	}
	return sum
}

// gaugeDistribution returns the distribution of a gauge.
func (s *Samples) gaugeDistribution(d Definition, of []string, t0, t1 int64) (out Distribution, ok bool) {
	points := s.mergeSources(d, of, t0, t1)
	if len(points) == 0 {
		return out, false
	}
	values := make([]float64, len(points))
	sum := 0.0
	for i, p := range points {
		values[i] = p.Value
		sum += p.Value
	}
	slices.Sort(values)
	n := len(values)
	rank := func(p float64) float64 { return values[min(n-1, max(0, int(math.Ceil(p*float64(n)))-1))] } // X(⌈np⌉)
	out = Distribution{N: n, Mean: sum / float64(n), Min: values[0], P50: rank(.5), P95: rank(.95), Max: values[n-1]}
	return out, !math.IsInf(out.Mean, 0)
}

// counterGrowth returns the growth of a counter, over all sources that know it.
func (s *Samples) counterGrowth(d Definition, of []string, t0, t1 int64, restarted map[string]bool) (float64, bool) {
	var grown []float64
	for _, source := range of {
		if restarted[source] {
			return 0, false // what the others grew by is not the whole
		}
		x, ok := s.series[series{source, d.Signal}].growthWithin(t0, t1)
		if !ok {
			return 0, false
		}
		grown = append(grown, x)
	}
	x := d.Across.combine(grown)
	return x, !math.IsInf(x, 0)
}

// growthWithin returns the growth of a counter within [t0, t1).
func (t *track) growthWithin(t0, t1 int64) (float64, bool) {
	all := t.sortedSamples()
	for i := 1; i < len(all); i++ {
		if all[i].Value < all[i-1].Value && all[i].T > t0 && all[i-1].T < t1 { // it began anew
			return 0, false
		}
	}
	from, ok := interpolate(all, t0)
	to, known := interpolate(all, t1)
	return to - from, ok && known && to >= from
}

// GrowthBounds are the least and the most that a counter can have grown by within
// [t0, t1), since it never falls. A source may tell what it collected a while before, so
// that at an end the counter had at least what was told last, and at most what was told
// after the next telling that is more than that: only this was surely collected later.
// Where no more was told, it may have grown by as much as it ever did from one telling to
// the next. n is how many times within the window it was told to have grown.
func (s *Samples) GrowthBounds(signal Signal, t0, t1 int64) (least, most float64, n int) {
	for key, of := range s.series {
		if key.signal != signal || len(of.points) == 0 {
			continue
		}
		from, fromMost := of.counterRange(t0)
		to, toMost := of.counterRange(t1)
		least, most = least+max(0, to-fromMost), most+toMost-from
		for i, inside := 1, of.samplesWithin(t0, t1); i < len(inside); i++ {
			if inside[i].Value > inside[i-1].Value {
				n++
			}
		}
	}
	return least, most, n
}

// counterRange returns the least and the greatest value that a counter can have had at a time.
func (t *track) counterRange(at int64) (least, most float64) {
	all := t.sortedSamples()
	i, _ := slices.BinarySearchFunc(all, at+1, func(p Sample, at int64) int { return cmp.Compare(p.T, at) })
	least = all[max(0, i-1)].Value
	step := 0.
	for i := 1; i < len(all); i++ {
		step = max(step, all[i].Value-all[i-1].Value)
	}
	next := all[min(i, len(all)-1)].Value
	for ; i < len(all); i++ {
		if all[i].Value > next {
			return least, all[i].Value
		}
	}
	return least, next + step
}

// slack is the largest distance outside a counter's samples at which it still has a value, in
// nanoseconds. A load is sampled just before its time 0 and just after its end. So an end of a
// window may lie a moment beyond the samples.
const slack = int64(50e6)

// interpolate returns the value of a counter at a time, on the line between the samples around it.
func interpolate(all []Sample, at int64) (float64, bool) {
	n := len(all)
	i, exact := slices.BinarySearchFunc(all, at, func(p Sample, at int64) int { return cmp.Compare(p.T, at) })
	switch {
	case n == 0:
		return 0, false
	case exact:
		for i+1 < n && all[i+1].T == at {
			i++
		}
		return all[i].Value, true
	case i == 0:
		return all[0].Value, all[0].T-at <= slack
	case i == n:
		return all[n-1].Value, at-all[n-1].T <= slack
	}
	a, b := all[i-1], all[i]
	return a.Value + (b.Value-a.Value)*float64(at-a.T)/float64(b.T-a.T), true
}

// TotalGrowth returns the growth of a counter over a load that ended at a time. It counts from
// before the load to after it, where nothing of it was in progress.
func (s *Samples) TotalGrowth(signal Signal, over int64) (float64, bool) {
	d, _ := LookUpDefinition(signal)
	var of []string
	restarted := map[string]bool{}
	for key, t := range s.series {
		switch {
		case key.signal == signal:
			of = append(of, key.source)
		case key.signal == ProcessStart && hasRestarted(t.points):
			restarted[key.source] = true
		}
	}
	slices.Sort(of)
	if len(of) == 0 {
		return 0, false
	}
	var grown []float64
	for _, source := range of {
		t := s.series[series{source, signal}]
		all := t.sortedSamples()
		first, last := all[0].T, all[len(all)-1].T
		x, ok := t.growthWithin(first, last)
		if !ok || first == last || first > slack || last < over || restarted[source] {
			return 0, false
		}
		grown = append(grown, x)
	}
	x := d.Across.combine(grown)
	return x, !math.IsInf(x, 0)
}

// SampledGrowth returns the growth of a counter between two times within [t0, t1), and these times.
// They are the first and the last at which all its sources gave a value. It returns false where
// there are no two.
func (s *Samples) SampledGrowth(signal Signal, t0, t1 int64) (from, to int64, grown float64, known bool) {
	d, _ := LookUpDefinition(signal)
	var of []string
	from, to = t0, t1
	restarted := map[string]bool{}
	for key, t := range s.series {
		if key.signal == ProcessStart && hasRestarted(t.points) {
			restarted[key.source] = true
		}
		if key.signal != signal {
			continue
		}
		inside := t.samplesWithin(t0, t1)
		if len(inside) < 2 {
			return 0, 0, 0, false
		}
		of = append(of, key.source)
		from, to = max(from, inside[0].T), min(to, inside[len(inside)-1].T)
	}
	if len(of) == 0 || to <= from {
		return 0, 0, 0, false
	}
	slices.Sort(of)
	grown, known = s.counterGrowth(d, of, from, to, restarted)
	return from, to, grown, known
}

// factValue is a value that does not change: as it was told last.
func (s *Samples) factValue(d Definition, of []string) (float64, bool) {
	var values []float64
	for _, source := range of {
		if all := s.series[series{source, d.Signal}].sortedSamples(); len(all) > 0 {
			values = append(values, all[len(all)-1].Value)
		}
	}
	if len(values) == 0 {
		return 0, false
	}
	x := d.Across.combine(values)
	return x, !math.IsInf(x, 0)
}

// CombineSources makes one value of a signal of what several sources say; false where none
// does.
func CombineSources(signal Signal, values []float64) (float64, bool) {
	if len(values) == 0 {
		return 0, false
	}
	d, _ := LookUpDefinition(signal)
	return d.Across.combine(values), true
}
