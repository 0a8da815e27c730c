package predict

import (
	"math"
	"slices"

	"pitot/internal/metrics"
	"pitot/internal/stats"
)

// The figures by which runs, recordings and replays are held against each other.
// What a latency is measure says, and what a percentile is stat.

// timing holds what is measured of one request, in seconds: when it was sent, and its latencies
// from then on. One that it does not have is negative.
type timing struct{ sent, ttft, e2e, tpot, stall float64 }

// timingOf measures a request; sent is in nanoseconds.
func timingOf(q *metrics.Request, sent int64) timing {
	const until = 0 // all have ended
	known := func(ns float64, st metrics.State) float64 {
		if st != metrics.Known {
			return -1
		}
		return ns / 1e9
	}
	return timing{
		sent: float64(sent) / 1e9,
		ttft: known(q.TTFT(metrics.Service, until)), e2e: known(q.E2E(metrics.Service, until)),
		tpot: known(q.TPOT(until)), stall: known(q.Stall(until)),
	}
}

// Series are the metrics of a run that a replay is held against, in
// milliseconds.
type Series struct {
	TTFT []float64
	TPOT []float64 // of the requests that have one
	E2E  []float64
	// Stall is the longest gap between chunks, of the requests that have gaps;
	// nothing where the recording has no chunks.
	Stall []float64
}

// ms are in a second.
const ms = 1e3

// joinTimings puts the timings of the wanted requests together: each metric of those
// that have it in the recording too.
func (r *Recording) joinTimings(of []timing, wanted func(i int) bool) (s Series) {
	for i, t := range of {
		q := &r.Requests[i]
		if !q.measured || !wanted(i) {
			continue
		}
		s.TTFT = append(s.TTFT, t.ttft*ms)
		s.E2E = append(s.E2E, t.e2e*ms)
		if t.tpot >= 0 && q.seen.tpot >= 0 {
			s.TPOT = append(s.TPOT, t.tpot*ms)
		}
		if t.stall >= 0 && q.seen.stall >= 0 {
			s.Stall = append(s.Stall, t.stall*ms)
		}
	}
	return s
}

// everyRequest wants every request, everyChunk every chunk.
func everyRequest(int) bool { return true }

func everyChunk(_, _ int64) bool { return true }

// timings are those of the recording.
func (r *Recording) timings() []timing {
	list := make([]timing, len(r.Requests))
	for i := range r.Requests {
		list[i] = r.Requests[i].seen
	}
	return list
}

// RecordedSeries gives the metrics of the recording.
func (r *Recording) RecordedSeries() Series { return r.joinTimings(r.timings(), everyRequest) }

// Quantities are the statistics of one metric that are compared, in
// milliseconds or in percent.
type Quantities struct {
	Mean float64 `json:"mean"`
	P50  float64 `json:"p50"`
	P90  float64 `json:"p90"`
	P99  float64 `json:"p99"`
}

// Metrics are those of all metrics.
type Metrics struct {
	TTFT Quantities `json:"ttft_ms"`
	TPOT Quantities `json:"tpot_ms"`
	E2E  Quantities `json:"e2e_ms"`
}

// Metrics works the statistics out.
func (s Series) Metrics() Metrics {
	return Metrics{quantities(s.TTFT), quantities(s.TPOT), quantities(s.E2E)}
}

func quantities(v []float64) Quantities {
	if len(v) == 0 {
		return Quantities{}
	}
	v = slices.Sorted(slices.Values(v))
	var sum stats.Total
	for _, x := range v {
		sum.Add(x)
	}
	return Quantities{sum.Sum() / float64(len(v)), stats.Percentile(v, 0.5), stats.Percentile(v, 0.9), stats.Percentile(v, 0.99)}
}

// with applies a function to each statistic and the same one of other metrics.
func (m Metrics) with(others Metrics, do func(own, other float64) float64) Metrics {
	each := func(a, b Quantities) Quantities {
		return Quantities{do(a.Mean, b.Mean), do(a.P50, b.P50), do(a.P90, b.P90), do(a.P99, b.P99)}
	}
	return Metrics{each(m.TTFT, others.TTFT), each(m.TPOT, others.TPOT), each(m.E2E, others.E2E)}
}

// meanMetrics is the mean of each statistic.
func meanMetrics(list []Metrics) (mean Metrics) {
	for _, m := range list {
		mean = mean.with(m, func(sum, x float64) float64 { return sum + x/float64(len(list)) })
	}
	return mean
}

// absoluteValues is each statistic without its sign.
func (m Metrics) absoluteValues() Metrics {
	return m.with(m, func(x, _ float64) float64 { return math.Abs(x) })
}

// PercentErrors gives 100·(predicted − recorded)/recorded.
func PercentErrors(predicted, recorded Metrics) Metrics {
	return predicted.with(recorded, func(p, r float64) float64 {
		if r == 0 {
			return 0
		}
		return 100 * (p - r) / r
	})
}
