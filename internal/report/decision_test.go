package report

import (
	"strings"
	"testing"

	"pitot/internal/analysis/explain"
	"pitot/internal/analysis/inspect"
	"pitot/internal/results/metric"
	"pitot/internal/results/result"
	"pitot/internal/stats"
)

// The way to decide goes through the same questions always, and takes the branch of the
// cause that was found.
func TestDecision(t *testing.T) {
	point := func(rate float64, ttft, tpot result.Met, stability stats.Stability) result.Point {
		met := result.Yes
		if ttft == result.No || tpot == result.No {
			met = result.No
		}
		return result.Point{Load: result.Load{Loop: "open", Rate: &rate}, Stability: stability, SLO: &result.SLO{Met: met, Limits: []result.Limit{
			{Spec: "p90 ttft<200ms", Metric: metric.TTFT, Met: ttft}, {Spec: "p90 tpot<7ms", Metric: metric.TPOT, Met: tpot},
		}}}
	}
	with := func(p result.Point, change func(*result.Point)) result.Point { change(&p); return p }
	degraded := func(p *result.Point) { p.Outcome = result.Degraded }
	near := func(p *result.Point) { p.SLO.Near = true }
	invalid := func(p *result.Point) { p.Verdict = result.Invalid }
	refused := &inspect.Explanation{Points: []inspect.ExplainedPoint{{Limited: "the server's rate limits: they refused 3 of 9 requests"}}}
	found := func(at int, m metric.Name, c explain.Cause) *inspect.Explanation {
		return &inspect.Explanation{Points: []inspect.ExplainedPoint{{Index: at, Symptoms: []explain.Diagnosis{{
			Symptom: explain.Symptom{Metric: m, Of: "p90"}, Primary: explain.Finding{Cause: c, Confidence: explain.Likely, Confirm: "look"},
		}}}}}
	}
	for _, c := range []struct {
		name   string
		points []result.Point
		x      *inspect.Explanation
		at     string
		states string // of the steps
		taken  string
	}{
		{"all pass", []result.Point{point(1, result.Yes, result.Yes, stats.Stable), point(4, result.Yes, result.Yes, stats.Stable)}, nil, "4.00 req/s", "pass pass pass none pass", ""},
		{"the first that fails", []result.Point{point(4, result.No, result.No, stats.Unstable), point(2, result.No, result.Yes, stats.Stable), point(1, result.Yes, result.Yes, stats.Stable)},
			found(1, metric.TTFT, explain.Seats), "2.00 req/s", "miss pass pass none none", branchQueue},
		{"tokens near the bound", []result.Point{point(1, result.Yes, result.No, stats.Stable)}, found(0, metric.TPOT, explain.Bandwidth), "1.00 req/s", "pass miss pass none none", branchNear},
		{"tokens far from it", []result.Point{point(1, result.Yes, result.No, stats.Stable)}, found(0, metric.TPOT, explain.Host), "1.00 req/s", "pass miss pass none none", branchFar},
		{"a client that is late", []result.Point{point(1, result.No, result.Yes, stats.Stable)}, found(0, metric.TTFT, explain.Client), "1.00 req/s", "miss pass pass none none", branchBefore},
		{"not known", []result.Point{point(1, result.No, result.Yes, stats.Stable)}, found(0, metric.TTFT, explain.Unknown), "1.00 req/s", "miss pass pass none none", ""},
		{"nothing was found out", []result.Point{point(1, result.No, result.Yes, stats.Stable)}, nil, "1.00 req/s", "miss pass pass none none", ""},
		{"more than is served", []result.Point{point(1, result.Yes, result.Yes, stats.Unstable)}, nil, "1.00 req/s", "pass pass miss none none", ""},
		{"refused, not late", []result.Point{with(point(1, result.No, result.Yes, stats.Stable), degraded)}, refused, "1.00 req/s", "miss pass miss none none", ""},
		{"a window that is INVALID", []result.Point{with(point(1, result.No, result.Yes, stats.Stable), invalid), point(2, result.Yes, result.Yes, stats.Stable)}, nil, "2.00 req/s", "pass pass pass none pass", ""},
		{"met, and near the limit", []result.Point{with(point(1, result.Yes, result.Yes, stats.Stable), near)}, nil, "1.00 req/s", "pass pass pass none open", ""},
		{"not decided", []result.Point{point(1, result.Undecided, result.Yes, stats.Stable)}, nil, "1.00 req/s", "open pass pass none open", ""},
	} {
		d := buildDecision(&result.Run{Points: c.points}, c.x)
		if d == nil {
			t.Fatalf("%s: no way", c.name)
		}
		var states []string
		taken := ""
		for _, s := range d.Steps {
			states = append(states, s.State)
			for _, b := range s.Branches {
				if b.Taken {
					taken += b.Text
				}
			}
		}
		if got := strings.Join(states, " "); got != c.states || taken != c.taken || d.Load != c.at {
			t.Errorf("%s: at %s %s, taken %q; want at %s %s, %q", c.name, d.Load, got, taken, c.at, c.states, c.taken)
		}
	}
	cut := with(point(2, result.No, result.No, stats.Undecided), func(p *result.Point) { p.Stage = result.StageCurve }) // due nothing yet
	if d := buildDecision(&result.Run{Interrupted: true, Points: []result.Point{point(1, result.Yes, result.Yes, stats.Stable), cut}}, nil); d.Load != "1.00 req/s" {
		t.Errorf("it is decided at %s, which was interrupted", d.Load)
	}
	if buildDecision(&result.Run{Points: []result.Point{{}}}, nil) != nil {
		t.Error("a run without an objective has a way to decide")
	}
}
