package measure

import (
	"slices"

	"pitot/internal/data/result"
	"pitot/internal/slo"
)

// A steady state has a mean and percentiles. Without one they are those of
// this run's length, and withheld.

// notSettled is why a point has no steady state by its warm-up; the check of
// that name says more.
const notSettled = "the load had not settled"

// summaryKeys are the values of a summary that a steady state has.
func summaryKeys() []string {
	return []string{"mean", "sd", "p50", "p90", "p95", "p99", "p99_9", "max"}
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

// responses are the latencies that count from due: a growing queue is all in
// them.
func responses(m *result.Metrics) []*result.Summary {
	return []*result.Summary{m.TTFT, m.TTFA, m.E2E}
}

// latencies are all times that depend on how busy the server is.
func latencies(m *result.Metrics) []*result.Summary {
	return append(responses(m), m.TPOT, m.TPOTn1, m.ITL, m.ICL, m.Stall, m.Generation, m.Held,
		m.PrefillRate, m.DecodeRate, m.Service.TTFT, m.Service.E2E)
}

// unsteady withholds summaries of a point without a steady state, of all and
// of each class. Verdicts of the objective that are in doubt and rest on one
// of the limits concerned become undecided.
func unsteady(p *result.Point, of func(*result.Metrics) []*result.Summary, concerned func(metric string) bool, why string, doubts ...string) {
	for _, s := range of(&p.Metrics) {
		withhold(s, why)
	}
	for _, c := range p.Classes {
		for _, s := range of(&c.Metrics) {
			withhold(s, why)
		}
	}
	if p.SLO == nil {
		return
	}
	doubtful, sure := false, false
	for i := range p.SLO.Limits {
		l := &p.SLO.Limits[i]
		if !concerned(l.Metric) {
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
		p.SLO.Met, p.SLO.Why = undecided, why
	}
}

// fromDue says that a limit is on a response.
func fromDue(metric string) bool {
	return slices.Contains([]slo.Metric{slo.TTFT, slo.TTFA, slo.E2E}, slo.Metric(metric))
}

// timed says that a limit is on a time.
func timed(metric string) bool { return metric != string(slo.Errors) }
