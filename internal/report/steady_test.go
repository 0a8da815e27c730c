package report

import (
	"strings"
	"testing"

	"pitot/internal/report/reporttest"
	"pitot/internal/results/result"
	"pitot/internal/stats"
)

// A load that settles late shortens the measured time, and a note says by how much.
func TestWindowThatBeginsLateSaysSo(t *testing.T) {
	for planned, want := range map[float64]string{4: "The load settled 5 s late: 15 s were measured, not 20 s.", 8: ""} {
		run := reporttest.ServerRun(2000)
		p := &run.Points[0]
		p.Seconds = result.Seconds{Warmup: 9, Window: 15}
		p.Checks = []result.Check{result.NewCheck(result.CheckWarmup, 5, 9).WithDetail(map[string]float64{"planned": planned})}
		m, got := Build(run, ""), ""
		for _, n := range m.runNotes() {
			if strings.Contains(n.Text, "settled") {
				got = n.Text
			}
		}
		if got != want {
			t.Errorf("%q, want %q", got, want)
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
