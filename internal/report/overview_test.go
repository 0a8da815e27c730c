package report

import (
	"slices"
	"testing"

	"pitot/internal/report/reporttest"
	"pitot/internal/results/metric"
	"pitot/internal/results/result"
)

// The table of loads has the percentiles that the objective limits, and p99 where it limits none.
func TestLoadsShowWhatTheObjectiveLimits(t *testing.T) {
	run := reporttest.SweepRun()
	heads := func() []string {
		var o Overview
		o.addLoadTable(run)
		at := slices.Index(o.Loads.Head, "TTFT p50")
		return o.Loads.Head[at : at+4]
	}
	if got, want := heads(), []string{"TTFT p50", "p99", "TPOT p50", "p99"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	for i := range run.Points {
		run.Points[i].SLO = &result.SLO{Spec: "p95 ttft<1s, p99.9 tpot<80ms", Limits: []result.Limit{
			{Metric: metric.TTFT, Percentile: 95}, {Metric: metric.TPOT, Percentile: 99.9}, {Metric: metric.TTFT, Percentile: 90, Class: "chat"}}}
	}
	if got, want := heads(), []string{"TTFT p50", "p95", "TPOT p50", "p99.9"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := run.Points[0].Metrics.SummaryOf(metric.TTFT).Value("p95"), run.Points[0].Metrics.SummaryOf(metric.TTFT).P95; got == nil || *got != *want {
		t.Errorf("p95 is %v, not %v", got, want)
	}
}
