package report

import (
	"testing"

	"pitot/internal/results/metric"
	"pitot/internal/results/result"
)

// usersRun is a sweep over users with these medians of TPOT and TTFT in ms, and output tokens/s.
func usersRun(loads map[int][3]float64) *result.Run {
	run := &result.Run{Curve: &result.Curve{Over: result.OverConcurrency}, Target: result.Target{Kind: "http"}}
	for users, x := range loads {
		p := result.Point{Stage: result.StageQuick, Load: result.Load{Concurrency: &users, Loop: "closed"}}
		p.Requests.OK, p.Requests.Due = 10, 10
		p.Throughput.OutputTokensPerS = &x[2]
		p.Metrics.SetSummary(metric.TPOT, &result.Summary{N: 10, P50: &x[0]})
		p.Metrics.SetSummary(metric.TTFT, &result.Summary{N: 10, P50: &x[1]})
		run.Points = append(run.Points, p)
	}
	return run
}

func TestUsersSentence(t *testing.T) {
	for _, c := range []struct {
		name  string
		loads map[int][3]float64
		want  string
	}{
		{"saturated", map[int][3]float64{1: {10, 50, 95}, 4: {12, 60, 300}, 16: {40, 300, 390}, 64: {160, 900, 400}}, "One user gets 100.0 tok/s, 16 users 25.0 each; about 400.0 in all"},
		{"still growing", map[int][3]float64{1: {10, 50, 95}, 4: {12, 60, 300}}, "One user gets 100.0 tok/s, 4 users 83.3 each; 300.0 tok/s with 4 users"},
		{"slow for one", map[int][3]float64{1: {100, 50, 9}, 4: {200, 60, 19}}, "One user gets 10.0 tok/s; 19.0 tok/s with 4 users"},
		{"late first token", map[int][3]float64{1: {10, 1500, 50}, 2: {10, 2500, 99}}, "One user gets 100.0 tok/s; 99.0 tok/s with 2 users"},
		{"not one user", map[int][3]float64{2: {10, 50, 50}}, ""},
	} {
		if got := usersSentence(usersRun(c.loads)); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
