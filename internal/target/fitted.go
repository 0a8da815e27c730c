package target

import (
	"math"
	"slices"

	"pitot/internal/data/metric"
	"pitot/internal/data/result"
	"pitot/internal/twin/deploy"
	"pitot/internal/workload"
)

// A twin that was calibrated knows the loads it was fitted on. Beyond them it
// extrapolates, which is said beforehand, as far as the plan tells, and after
// the run by what was observed.

// asked is the range of the loads that are wanted, as far as it is said: users,
// and the lengths of nine in ten.
func asked(p Wanted) (r deploy.Range) {
	if p.Generated() {
		ends := func(l workload.Lengths, prefix int) [2]int {
			const tail = math.MaxUint64 / 20 // one in twenty is beyond either end
			return [2]int{l.At(tail), prefix + l.At(math.MaxUint64-tail)}
		}
		r.Input, r.Output = ends(p.Input, p.Prefix), ends(p.Output, 0)
		if p.Prefix > 0 && p.PrefixShare == 1 {
			r.Input[0] += p.Prefix
		}
	}
	n := float64(p.Users)
	r.Running = [2]float64{n, n}
	return r
}

// Observed is the range of the loads that points measured: the lengths as the
// server counted them, and the mean number of requests in flight.
func Observed(points []result.Point) (r deploy.Range) {
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
		lengths(&r.Input, p.Metrics.Of(metric.InputTokens))
		lengths(&r.Output, p.Metrics.Of(metric.OutputTokens))
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

// Beyond says in what loads leave what the target was fitted on, each quantity
// once.
func (t *Target) Beyond(r deploy.Range) (notes []string) {
	if t.outside == nil {
		return nil
	}
	for _, x := range t.outside(r) {
		if !slices.Contains(t.told, x.Of) {
			t.told = append(t.told, x.Of)
			notes = append(notes, x.String())
		}
	}
	return notes
}
