package metrics

import (
	"iter"

	"pitot/internal/metrics/validity"
	"pitot/internal/results/metric"
	"pitot/internal/results/result"
)

// What metrics/validity is given of a point.

// gatherEvidence returns the evidence that the checks of a point rest on.
func (f *Fold) gatherEvidence(all *part, p *result.Point) *validity.Evidence {
	known, streams := all.countStreams()
	e := &validity.Evidence{
		Probe: f.probe, Queue: f.queue, Point: p, Cohort: all.times(), Until: f.end, Store: all.scratch,
		Answers: all.answerTimes(), Streamed: all.tally.streamed, Headline: all.headlineMetric(), Values: all.outline.ttft.n, Lag: all.lagPercentiles(),
		Asked: f.asked, Duplicates: f.duplicates,
		Streams: streams.requests, Counted: known.requests, Expected: f.flow.expected, Seen: f.flow.observed, ByTokenizer: f.flow.byTokenizer,
	}
	e.Served = f.servedRequests()
	if x, known := f.server.foreignShare(); known {
		e.Foreign = &x
	}
	if e.Headline == metric.E2E {
		e.Values = all.outline.e2e.n
	}
	return e
}

// headlineMetric is the metric that a point is first judged by: TTFT, or E2E when
// nothing is streamed.
func (c *part) headlineMetric() metric.Name {
	if c.tally.streamed {
		return metric.TTFT
	}
	return metric.E2E
}

// times are those of the part's requests.
func (c *part) times() iter.Seq[validity.Times] {
	return func(yield func(validity.Times) bool) {
		for q := range c.requests() {
			if !yield(validity.Times{Due: q.due, Sent: q.sent, Again: q.again, First: q.first, Last: q.last, Done: q.done}) {
				return
			}
		}
	}
}

// answerTimes returns how long the answers of the part took.
func (c *part) answerTimes() (took validity.Answers) {
	const seconds = 1e9
	if e2e := &c.outline.e2e; e2e.n > 0 {
		took.Mean = e2e.total.Sum() / float64(e2e.n) / seconds
	}
	took.Longest = c.outline.generation.top / seconds
	took.Slowest = c.outline.e2e.top / seconds
	return took
}

// lagPercentiles takes the percentiles of the headline with each request's lag and without
// it.
func (c *part) lagPercentiles() (out validity.Lag) {
	headline := c.metricFunc(c.headlineMetric())
	lagOf := func(q *Request) (float64, State) { return q.clientInterval(q.ready, q.sent) }
	samples := c.collectSamples(question{unit: inMS, take: headline}, question{unit: inMS, take: lagOf}, question{unit: inMS, take: func(q *Request) (float64, State) {
		x, st := headline(q)
		if lag, is := lagOf(q); is == Known && st == Known {
			x -= lag
		}
		return x, st
	}})
	with, lag, without := samples[0], samples[1], samples[2]
	defer func() {
		for _, s := range samples {
			s.free()
		}
	}()
	if lag.sampleSize() == 0 || with.sampleSize() == 0 {
		return out
	}
	out.Known, out.Most = true, lag.values.orderStatistic(lag.sampleSize())
	out.P99, _ = lag.percentile(.99)
	for _, of := range []string{"p50", "p99"} {
		p, _ := metric.PercentileOf(of)
		a, over := with.percentile(p.P)
		b, censored := without.percentile(p.P)
		out.Shifts = append(out.Shifts, validity.Shift{Key: p.Key, With: a, Without: b, Open: over || censored})
	}
	return out
}
