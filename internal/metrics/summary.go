package metrics

import (
	"math"

	"pitot/internal/results/record"
	"pitot/internal/results/result"
	"pitot/internal/results/spill"
	"pitot/internal/stats"
)

// distribution is sorted data, however it is kept. Ranks count from 1.
type distribution interface {
	size() int64
	// seek finds the values of ranks, so that orderStatistic has them.
	seek(ranks ...int64)
	orderStatistic(rank int64) float64
	moments() (sum, squares float64) // squares: of the deviations from the mean
	// mixed is the order statistic of these values and others together.
	mixed(with *spill.Numbers, rank int64) float64
}

// numbers are the finite ones of some.
type numbers struct{ *spill.Numbers }

func (x numbers) size() int64                       { return x.FiniteCount() }
func (x numbers) seek(ranks ...int64)               { x.Seek(ranks...) }
func (x numbers) orderStatistic(rank int64) float64 { return x.OrderStatistic(rank) }
func (x numbers) moments() (sum, squares float64) {
	return x.FiniteTotal().Sum(), x.FiniteTotal().Squares()
}
func (x numbers) mixed(with *spill.Numbers, rank int64) float64 {
	return spill.OrderStatistics([]int64{rank}, x.Numbers, with)[0]
}

// sample is one metric over a cohort: values, and the time for which those
// were followed that did not end. These sort above all values.
type sample struct {
	values  distribution
	longer  *spill.Numbers
	missing int64

	streams, excluded int64 // of gaps: requests that they are of, and others that have gaps too

	unit   float64 // what values are divided by
	bounds func(p float64) (lo, hi float64)
	label  string

	name  string         // of the metric, "" for one whose over-dispersion is not asked for
	order *spill.Numbers // the samples as they were due, infinite where not followed to their end; nil for gaps
	conf  *confidence    // which values have intervals

	of       *Definition
	well     *spill.Numbers // those of requests that ended well, if they are asked for
	open     bool           // merged arrivals leave a value open
	labelled bool
	frees    []func() // give back what the sample has of its store
}

// newSample is empty.
func newSample(c *part, q *question) *sample {
	order := spill.NewNumbers(c.scratch)
	s := &sample{values: numbers{order}, order: order, longer: spill.NewNumbers(c.scratch), unit: q.unit, conf: c.conf, of: q.of}
	s.frees = append(s.frees, s.order.Free, s.longer.Free)
	if d := q.of; d != nil && d.countsUnended() {
		s.name = d.Key
		if c.tally.wellCount() < c.tally.dueCount() {
			s.well = spill.NewNumbers(c.scratch)
			s.frees = append(s.frees, s.well.Free)
		}
	}
	return s
}

// addRequest takes in what a request has.
func (s *sample) addRequest(q *Request, x float64, st State) {
	switch st {
	case Known:
		s.order.Add(x)
	case Longer:
		s.longer.Add(x)
		s.order.Add(math.Inf(1))
	case Missing:
		if q.outcome == record.OK {
			s.missing++
		}
	}
	if s.of == nil {
		return
	}
	if s.well != nil && q.outcome == record.OK && st <= Longer {
		if st == Longer {
			x = math.Inf(1)
		}
		s.well.Add(x)
	}
	s.open = s.open || s.of.isOpen(q, x, st)
	s.labelled = s.labelled || s.of.labelled != nil && s.of.labelled(q)
}

// free gives back what the sample has of its store.
func (s *sample) free() {
	for _, f := range s.frees {
		f()
	}
}

// summaryOf is the summary of a metric's sample over a part, with the 99th
// percentile of the survivors next to it where not all survived, and the bounds that
// follow from the requests' own.
func (s *sample) summaryOf(c *part) *result.Summary {
	if s.open {
		edges := c.collectSamples(s.of.edgeQuestions(c.until)...)
		s.bounds = func(p float64) (lo, hi float64) {
			lo, _ = edges[0].percentile(p)
			hi, _ = edges[1].percentile(p)
			seen, _ := edges[2].percentile(p)
			return lo, max(hi, seen)
		}
		defer func() {
			for _, e := range edges {
				e.free()
			}
		}()
	}
	out := s.summarizeValues()
	if out == nil {
		return nil
	}
	if s.labelled {
		out.Label = s.of.label
	}
	if s.well != nil {
		few, _ := stats.SamplesNeeded(.99)
		if n := s.well.Len(); n >= few {
			if rank := stats.Rank(n, .99); rank <= s.well.FiniteCount() {
				x := s.well.OrderStatistic(rank) / s.unit
				out.P99OK = &x
			}
		}
	}
	return out
}

// Summarize gives the distribution of values that all are known, as a run's
// metrics are given: a percentile rests on 10/(1−p) samples, is marked few
// below that and withheld below 1/(1−p). Without any it gives nil.
func Summarize(xs []float64) *result.Summary {
	values := spill.NewNumbers(nil)
	for _, x := range xs {
		values.Add(x)
	}
	s := sample{values: numbers{values}, longer: spill.NewNumbers(nil), unit: 1, conf: &confidence{why: fewBatch}}
	return s.summarizeValues()
}

// quantile is one of the percentiles that a summary holds.
type quantile struct {
	name string
	p    float64
}

// tail is from where on a percentile is made of bursts: it rests on as many samples as
// do not resemble the one before them.
const tail = .99

func quantiles() [5]quantile {
	return [...]quantile{{"p50", .5}, {"p90", .9}, {"p95", .95}, {"p99", .99}, {"p99_9", .999}}
}

func (s *sample) sampleSize() int64 { return s.values.size() + s.longer.Len() }

// percentile is X(⌈np⌉). over means that it is only known to be above x.
func (s *sample) percentile(p float64) (x float64, over bool) {
	rank := stats.Rank(s.sampleSize(), p)
	if rank <= s.values.size() {
		return s.values.orderStatistic(rank), false
	}
	return s.values.mixed(s.longer, rank), true
}

// seek finds what a summary will ask for, in few passes.
func (s *sample) seek() {
	n, values := s.sampleSize(), s.values.size()
	if values == 0 {
		return
	}
	ranks := []int64{1, values}
	for _, q := range quantiles() {
		if few, _ := stats.SamplesNeeded(q.p); n < few {
			continue
		}
		if rank := stats.Rank(n, q.p); rank <= values {
			ranks = append(ranks, rank)
		}
		if q.p == .99 {
			i, _ := stats.LinearRank(n, q.p)
			ranks = append(ranks, min(i, values), min(i+1, values))
		}
	}
	s.values.seek(ranks...)
}

// summarizeValues gives the distribution as it is published, nil without samples.
func (s *sample) summarizeValues() *result.Summary {
	n, values := s.sampleSize(), s.values.size()
	if n == 0 {
		return nil
	}
	out := &result.Summary{
		N: n, Censored: s.longer.Len(), Missing: s.missing, Streams: s.streams, Excluded: s.excluded, Label: s.label,
		Over: map[string]float64{}, Bounds: map[string][2]float64{},
		NoInterval: map[string]result.Reason{}, Withheld: map[string]result.Reason{},
		CI95: map[string][2]float64{}, Phi: map[string]float64{},
	}
	scaled := func(x float64) *float64 { x /= s.unit; return &x }
	s.seek()
	phis, independent := s.overdispersions()
	if values > 0 {
		out.Min = scaled(s.values.orderStatistic(1))
	}
	s.setMean(out, scaled)
	for _, q := range quantiles() {
		few, full := stats.SamplesNeeded(q.p)
		if n < few {
			out.Withheld[q.name] = result.Reason{Code: result.FewShown, N: float64(n), Needed: float64(few), Firm: float64(full)}
			continue
		}
		if n < full || q.p >= tail && independent < float64(full) {
			out.Few = append(out.Few, q.name)
		}
		x, over := s.percentile(q.p)
		if over {
			out.Over[q.name] = x / s.unit
			continue
		}
		s.quantileInterval(out, q, phis[q.name])
		switch q.name {
		case "p50":
			out.P50 = scaled(x)
		case "p90":
			out.P90 = scaled(x)
		case "p95":
			out.P95 = scaled(x)
		case "p99":
			out.P99 = scaled(x)
			if i, frac := stats.LinearRank(n, q.p); i < values || i == values && frac == 0 {
				y := s.values.orderStatistic(i)
				if frac > 0 {
					y += frac * (s.values.orderStatistic(i+1) - y)
				}
				out.P99Numpy = scaled(y)
			}
		case "p99_9":
			out.P999 = scaled(x)
		}
		if s.bounds != nil {
			lo, hi := s.bounds(q.p)
			out.Bounds[q.name] = [2]float64{min(lo, x) / s.unit, max(hi, x) / s.unit}
		}
	}
	return out
}

// setMean fills in what every sample has a part in: with one that was not
// followed to its end only lower bounds are left.
func (s *sample) setMean(out *result.Summary, scaled func(float64) *float64) {
	n, values := s.sampleSize(), s.values.size()
	var sum, squares, top float64
	if values > 0 {
		sum, squares = s.values.moments()
		top = s.values.orderStatistic(values)
	}
	if cut := s.longer.Len(); cut > 0 {
		out.Over["mean"] = (sum + s.longer.FiniteTotal().Sum()) / float64(n) / s.unit
		out.Over["max"] = max(top, s.longer.OrderStatistic(cut)) / s.unit
		out.Withheld["sd"] = result.Reason{Code: result.SomeCensored, N: float64(cut), Of: float64(n)}
		return
	}
	out.Mean, out.Max = scaled(sum/float64(n)), scaled(top)
	s.meanInterval(out)
	if n > 1 {
		out.SD = scaled(math.Sqrt(squares / float64(n-1)))
	}
}
