package target

import (
	"math"
	"slices"

	"pitot/internal/results/metric"
	"pitot/internal/results/result"
	"pitot/internal/sim/deploy"
	"pitot/internal/workload"
)

// A calibrated twin knows the range of loads it was fitted on. Outside of it the twin
// extrapolates: a note says so before the run, from the plan, and after it, from what
// was observed.

// wantedRange is the range of loads that the plan asks for, as far as it is known: the
// number of users, and the central 90 % of the lengths.
func wantedRange(p Wanted) (r deploy.Range) {
	if p.IsGenerated() {
		ends := func(l workload.Lengths, prefix int) [2]int {
			const tail = math.MaxUint64 / 20 // one in twenty is beyond either end
			return [2]int{l.Draw(tail), prefix + l.Draw(math.MaxUint64-tail)}
		}
		r.Input, r.Output = ends(p.Input, int(p.PrefixMean())), ends(p.Output, 0)
		if p.PrefixShare == 1 {
			r.Input[0] += int(p.PrefixMean())
		}
	}
	n := float64(p.Users)
	r.Running = [2]float64{n, n}
	return r
}

// ObservedRange is the range of the loads that points measured: the lengths as the
// server counted them, and the mean number of requests in flight.
func ObservedRange(points []result.Point) (r deploy.Range) {
	lengths := func(r *[2]int, s *result.Summary) {
		if s == nil || s.Min == nil || s.Max == nil {
			return
		}
		if lo := int(*s.Min); r[1] == 0 || lo < r[0] {
			r[0] = lo
		}
		r[1] = max(r[1], int(*s.Max))
	}
	for i := range points {
		p := &points[i]
		lengths(&r.Input, p.Metrics.SummaryOf(metric.InputTokens))
		lengths(&r.Output, p.Metrics.SummaryOf(metric.OutputTokens))
		n := 0.0
		for _, x := range p.InFlight {
			n += x / float64(len(p.InFlight))
		}
		if n > 0 && (r.Running[1] == 0 || n < r.Running[0]) {
			r.Running[0] = n
		}
		r.Running[1] = max(r.Running[1], n)
	}
	return r
}

// FitDepartures lists the quantities in which loads leave the range that the target was
// fitted on, each once in a run.
func (t *Target) FitDepartures(r deploy.Range) (notes []string) {
	if t.departures == nil {
		return nil
	}
	for _, x := range t.departures(r) {
		if !slices.Contains(t.reportedDepartures, x.Of) {
			t.reportedDepartures = append(t.reportedDepartures, x.Of)
			notes = append(notes, x.String())
		}
	}
	return notes
}
