package metrics

import (
	"math"

	"pitot/internal/results/metric"
	"pitot/internal/results/record"
	"pitot/internal/slo"
)

// OfRow is a request that has ended as an objective sees it, by its row alone: its gaps
// are not known.
func OfRow(r *record.Row) slo.Request {
	return &ended{r.Outcome == record.OK, r.Class, LatencyOf(r, &Events{})}
}

// InRow reports whether a request of [OfRow] has a value of a metric.
func InRow(name metric.Name) bool {
	switch name {
	case metric.TTFT, metric.TTFA, metric.TPOT, metric.E2E, metric.Generation:
		return true
	}
	return false
}

// ended is such a request.
type ended struct {
	ok      bool
	class   string
	latency Latency
}

// Class implements [slo.Request].
func (e *ended) Class() string { return e.class }

// OK implements [slo.Request].
func (e *ended) OK() bool { return e.ok }

// Value implements [slo.Request].
func (e *ended) Value(name metric.Name) float64 {
	x, st := 0., Missing
	switch name {
	case metric.TTFT:
		x, st = e.latency.TTFT(Response, record.Unset)
	case metric.TTFA:
		x, st = e.latency.TTFA(Response, record.Unset)
	case metric.TPOT:
		x, st = e.latency.TPOT(record.Unset)
	case metric.E2E:
		x, st = e.latency.E2E(Response, record.Unset)
	case metric.Generation:
		x, st = e.latency.Generation(record.Unset)
	}
	if st != Known {
		return math.NaN()
	}
	return x
}
