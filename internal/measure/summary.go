package measure

import (
	"fmt"
	"math"
	"strconv"

	"pitot/internal/data/result"
	"pitot/internal/stat"
)

// distribution is sorted data, however it is kept. Ranks count from 1.
type distribution interface {
	size() int64
	at(rank int64) float64
	moments() (sum, squares float64) // squares: of the deviations from the mean
}

// list is a distribution of requests.
type list []float64

func (l list) size() int64           { return int64(len(l)) }
func (l list) at(rank int64) float64 { return l[rank-1] }
func (l list) moments() (sum, squares float64) {
	n := float64(len(l))
	mean, sd := stat.Moments(l)
	if len(l) < 2 {
		return mean * n, 0
	}
	return mean * n, sd * sd * (n - 1)
}

// sample is one metric over a cohort: values, and the time for which those
// were followed that did not end. These sort above all values.
type sample struct {
	values  distribution
	longer  list
	missing int64
	unit    float64 // what values are divided by
	bounds  func(p float64) (lo, hi float64)
	label   string

	name  string      // of the metric, "" for one whose over-dispersion nobody asks for
	order []float64   // the samples as they were due, infinite where not followed to their end
	conf  *confidence // which values have intervals
}

// Summarize gives the distribution of values that all are known, as a run's
// metrics are given: a percentile rests on 10/(1−p) samples, is marked few
// below that and withheld below 1/(1−p). It sorts xs; without any it gives nil.
func Summarize(xs []float64) *result.Summary {
	stat.SortFloat64(xs)
	s := sample{values: list(xs), unit: 1, conf: &confidence{why: oneLoad}}
	return s.summary()
}

// quantile is one of the percentiles that a summary holds.
type quantile struct {
	name string
	p    float64
}

func quantiles() [5]quantile {
	return [...]quantile{{"p50", .5}, {"p90", .9}, {"p95", .95}, {"p99", .99}, {"p99_9", .999}}
}

func (s *sample) n() int64 { return s.values.size() + s.longer.size() }

// percentile is X(⌈np⌉). over means that it is only known to be above x.
func (s *sample) percentile(p float64) (x float64, over bool) {
	rank := stat.Rank(s.n(), p)
	if rank <= s.values.size() {
		return s.values.at(rank), false
	}
	return s.mixed(rank), true
}

// mixed is the order statistic of values and followed times together, a lower
// bound of the percentile: i of the rank smallest are followed times, for the
// least i that leaves no value out of order.
func (s *sample) mixed(rank int64) float64 {
	a, b := s.values, s.longer
	i, top := max(0, rank-a.size()), min(rank, b.size())
	for i < top {
		mid := i + (top-i)/2
		if mid == rank || a.at(rank-mid) <= b.at(mid+1) {
			top = mid
		} else {
			i = mid + 1
		}
	}
	x := math.Inf(-1)
	if rank > i {
		x = a.at(rank - i)
	}
	if i > 0 {
		x = max(x, b.at(i))
	}
	return x
}

// summary gives the distribution as it is published, nil without samples.
func (s *sample) summary() *result.Summary {
	n, values := s.n(), s.values.size()
	if n == 0 {
		return nil
	}
	out := &result.Summary{
		N: n, Censored: s.longer.size(), Missing: s.missing, Label: s.label,
		Over: map[string]float64{}, Bounds: map[string][2]float64{},
		NoInterval: map[string]string{}, Withheld: map[string]string{},
		CI95: map[string][2]float64{}, Phi: map[string]float64{},
	}
	scaled := func(x float64) *float64 { x /= s.unit; return &x }
	if values > 0 {
		out.Min = scaled(s.values.at(1))
	}
	s.mean(out, scaled)
	for _, q := range quantiles() {
		few, full := stat.Support(q.p)
		if n < few {
			out.Withheld[q.name] = fmt.Sprintf("n = %d, shown from %d on and firm from %d", n, few, full)
			continue
		}
		if n < full {
			out.Few = append(out.Few, q.name)
		}
		x, over := s.percentile(q.p)
		if over {
			// A percentile is not below one before it: all that is known is known.
			if values > 0 {
				x = max(x, s.values.at(values))
			}
			out.Over[q.name] = x / s.unit
			continue
		}
		s.quantileInterval(out, q, x)
		switch q.name {
		case "p50":
			out.P50 = scaled(x)
		case "p90":
			out.P90 = scaled(x)
		case "p95":
			out.P95 = scaled(x)
		case "p99":
			out.P99 = scaled(x)
			if i, frac := stat.LinearRank(n, q.p); i < values || i == values && frac == 0 {
				y := s.values.at(i)
				if frac > 0 {
					y += frac * (s.values.at(i+1) - y)
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

// mean fills in what every sample has a part in: with one that was not
// followed to its end only lower bounds are left.
func (s *sample) mean(out *result.Summary, scaled func(float64) *float64) {
	n, values := s.n(), s.values.size()
	var sum, squares, top float64
	if values > 0 {
		sum, squares = s.values.moments()
		top = s.values.at(values)
	}
	if cut := s.longer.size(); cut > 0 {
		for _, x := range s.longer {
			sum += x
		}
		out.Over["mean"] = sum / float64(n) / s.unit
		out.Over["max"] = max(top, s.longer[cut-1]) / s.unit
		out.Withheld["sd"] = strconv.FormatInt(cut, 10) + " of " + strconv.FormatInt(n, 10) + " were not followed to their end"
		return
	}
	out.Mean, out.Max = scaled(sum/float64(n)), scaled(top)
	s.meanInterval(out)
	if n > 1 {
		out.SD = scaled(math.Sqrt(squares / float64(n-1)))
	}
}
