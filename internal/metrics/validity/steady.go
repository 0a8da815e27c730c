package validity

import (
	"slices"

	"pitot/internal/results/metric"
	"pitot/internal/results/result"
	"pitot/internal/stats"
)

// A steady state has a mean and percentiles. Without one they are those of
// this run's length, and withheld.

// WithholdUnsteady takes from a point without a steady state what only such a state has:
// what is left is true whatever the load did.
func WithholdUnsteady(p *result.Point, c *Conditions) {
	switch set := c.Settling; {
	case p.Stability == stats.Unstable:
		if p.Outcome != result.Failing {
			p.Outcome = result.Unstable
		}
		// That a limit is met now says nothing: the queue goes on growing.
		withholdSummaries(p, fromDue, p.StabilityWhy, result.Yes)
	case set != nil && set.Why != "":
		withholdSummaries(p, needsSteadyState, result.Reason{Code: result.NotSettled}, result.Yes, result.No)
	}
	if c.GaveUp {
		endedEarly(p, c)
	}
	if c.Gone != nil {
		noteServerGone(p, c)
	}
}

// noteServerGone says since when a server was not there any more.
func noteServerGone(p *result.Point, c *Conditions) {
	since := float64(*c.Gone) / 1e9
	p.WentAway, p.Outcome = &since, result.Failing
	if p.Throughput.Why.IsNone() {
		p.Throughput.Why = result.Reason{Code: result.BoundWentAway}
	}
}

// endedEarly takes from a load that was given up what its short window would
// tell wrong: the server was still filling, and what was under way is none of
// the objective's business.
func endedEarly(p *result.Point, c *Conditions) {
	p.EndedEarly = true
	p.StabilityWhy = p.StabilityWhy.Or(result.Reason{Code: result.QueueGrew})
	withholdSummaries(p, needsSteadyState, result.Reason{Code: result.LoadEndedEarly}, result.Yes)
	p.Throughput.Why = result.Reason{Code: result.BoundEndedEarly}
	p.Goodput = nil
	if p.SLO != nil {
		p.SLO.Attained = nil
		for i := range p.SLO.Limits {
			p.SLO.Limits[i].Attained = nil
		}
		for _, c := range p.Classes {
			if c.SLO != nil {
				c.SLO.Attained = nil
			}
		}
	}
}

// summaryKeys are the values of a summary that a steady state has.
func summaryKeys() []string {
	keys := []string{metric.Mean, "sd"}
	for _, p := range metric.Percentiles() {
		keys = append(keys, p.Key)
	}
	return append(keys, "max")
}

// withholdSummary leaves of a summary what is true whatever the load did.
func withholdSummary(s *result.Summary, why result.Reason) {
	if s == nil {
		return
	}
	*s = result.Summary{N: s.N, Censored: s.Censored, Missing: s.Missing, Streams: s.Streams, Excluded: s.Excluded,
		Min: s.Min, Label: s.Label, Withheld: map[string]result.Reason{}}
	for _, k := range summaryKeys() {
		s.Withheld[k] = why
	}
}

// fromDue says that a metric counts from when a request was due: a growing queue
// is all in it.
func fromDue(m *metric.Metric) bool { return m != nil && m.FromDue }

// needsSteadyState says that a metric stands for a load only in a steady state.
func needsSteadyState(m *metric.Metric) bool { return m != nil && m.Steady }

// withholdSummaries withholds summaries of a point without a steady state, of all and
// of each class. Verdicts of the objective that are in doubt and rest on one
// of the limits concerned become undecided.
func withholdSummaries(p *result.Point, concerned func(*metric.Metric) bool, why result.Reason, doubts ...result.Met) {
	withholdAll := func(m *result.Metrics) {
		for _, d := range m.List {
			if concerned(d.Metric) {
				withholdSummary(d.Summary, why)
			}
		}
	}
	withholdAll(&p.Metrics)
	for _, c := range p.Classes {
		withholdAll(&c.Metrics)
	}
	catalogue := metric.Catalogue{}
	for _, d := range p.Metrics.List {
		catalogue = append(catalogue, d.Metric)
	}
	if p.SLO == nil {
		return
	}
	type doubt struct{ doubtful, sure bool }
	all, classes := doubt{}, map[string]doubt{}
	for i := range p.SLO.Limits {
		l := &p.SLO.Limits[i]
		of := classes[l.Class]
		if !concerned(catalogue.Find(l.Metric)) {
			of.sure = of.sure || l.Met == result.No
		} else {
			l.Value = nil
			if slices.Contains(doubts, l.Met) {
				l.Met, l.Why = result.Undecided, why
			}
			of.doubtful = true
		}
		classes[l.Class] = of
		all = doubt{all.doubtful || of.doubtful, all.sure || of.sure}
	}
	if all.doubtful && !all.sure && slices.Contains(doubts, p.SLO.Met) {
		p.SLO.Met, p.SLO.Deciding, p.SLO.Why = result.Undecided, "", why
	}
	for name, c := range p.Classes {
		if of := classes[name]; c.SLO != nil && of.doubtful && !of.sure && slices.Contains(doubts, c.SLO.Met) {
			c.SLO.Met = result.Undecided
		}
	}
}
