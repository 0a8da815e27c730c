package report

import (
	"strings"
	"testing"

	"pitot/internal/report/reporttest"
	"pitot/internal/results/result"
	"pitot/internal/stats"
)

// Whoever asked for 20 s and got 15 is told where the others went.
func TestWindowThatBeginsLateSaysSo(t *testing.T) {
	for planned, want := range map[float64]string{4: "15 s of 20 s, after 9 s of warm-up: the load settled late", 8: "15 s after 9 s of warm-up"} {
		run := reporttest.ServerRun(2000)
		p := &run.Points[0]
		p.Seconds = result.Seconds{Warmup: 9, Window: 15}
		p.Checks = []result.Check{result.NewCheck(result.CheckWarmup, 5, 9).WithDetail(map[string]float64{"planned": planned})}
		if got := strings.Join(Build(run, "").Points[0].Load, "; "); !strings.HasSuffix(got, want) {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// A server that does not keep up is not said to be in balance; cut requests are another matter.
func TestBalanceWhereTheServerDoesNotKeepUp(t *testing.T) {
	behind := result.NewCheck(result.CheckAchieved, 9, 40)
	behind.Status = result.Flag
	p := &result.Point{Stability: stats.Stable, Requests: result.Requests{Due: 60, OK: 60}, Checks: []result.Check{behind}}
	if text := stabilityText(p); text != "" {
		t.Errorf("%q", text)
	}
	p.Checks[0].Case = result.CaseCut
	if text := stabilityText(p); !strings.HasPrefix(text, "queue stable") {
		t.Errorf("%q", text)
	}
}
