package measure

import (
	"slices"

	"pitot/internal/data/metric"
	"pitot/internal/data/result"
)

// A steady state has a mean and percentiles. Without one they are those of
// this run's length, and withheld.

// notSettled is why a point has no steady state by its warm-up; the check of
// that name says more.
const notSettled = "the load had not settled"

// summaryKeys are the values of a summary that a steady state has.
func summaryKeys() []string {
	keys := []string{metric.Mean, "sd"}
	for _, p := range metric.Percentiles() {
		keys = append(keys, p.Key)
	}
	return append(keys, "max")
}

// withhold leaves of a summary what is true whatever the load did.
func withhold(s *result.Summary, why string) {
	if s == nil {
		return
	}
	*s = result.Summary{N: s.N, Censored: s.Censored, Missing: s.Missing, Streams: s.Streams, Excluded: s.Excluded,
		Min: s.Min, Label: s.Label, Withheld: map[string]string{}}
	for _, k := range summaryKeys() {
		s.Withheld[k] = why
	}
}

// fromDue says that a metric counts from when a request was due: a growing queue
// is all in it.
func fromDue(m *metric.Metric) bool { return m != nil && m.FromDue }

// steady says that a metric stands for a load only in a steady state.
func steady(m *metric.Metric) bool { return m != nil && m.Steady }

// unsteady withholds summaries of a point without a steady state, of all and
// of each class. Verdicts of the objective that are in doubt and rest on one
// of the limits concerned become undecided.
func unsteady(p *result.Point, concerned func(*metric.Metric) bool, why string, doubts ...result.Met) {
	of := func(m *result.Metrics) {
		for _, d := range m.List {
			if concerned(d.Metric) {
				withhold(d.Summary, why)
			}
		}
	}
	of(&p.Metrics)
	for _, c := range p.Classes {
		of(&c.Metrics)
	}
	catalogue := metric.Catalogue{}
	for _, d := range p.Metrics.List {
		catalogue = append(catalogue, d.Metric)
	}
	if p.SLO == nil {
		return
	}
	doubtful, sure := false, false
	for i := range p.SLO.Limits {
		l := &p.SLO.Limits[i]
		if !concerned(catalogue.Find(l.Metric)) {
			sure = sure || l.Met == no
			continue
		}
		l.Value = nil
		if slices.Contains(doubts, l.Met) {
			l.Met, l.Why = undecided, why
		}
		doubtful = true
	}
	if doubtful && !sure && slices.Contains(doubts, p.SLO.Met) {
		p.SLO.Met, p.SLO.Deciding, p.SLO.Why = undecided, "", why
	}
}
