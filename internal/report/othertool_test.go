package report

import (
	"slices"
	"strings"
	"testing"

	"pitot/internal/analysis/tools"
	"pitot/internal/report/reporttest"
	"pitot/internal/results/result"
)

// What a foreign file says cannot reach the terminal as it is, and what it
// does not say is a dash.
func TestForeign(t *testing.T) {
	ok, mean := 0., 52.125
	r := &tools.Result{Tool: "vllm bench serve", Model: "a\x1b[31m\nb|c", File: "f\x07.json", Notes: []string{"x\x1by"}, Points: []tools.ReportedPoint{
		{Unlimited: true, OK: &ok},
		{TTFT: &tools.Summary{Mean: &mean, Percentiles: map[string]float64{"p99": 71}, What: "counted | so"}},
	}}
	for _, markdown := range []bool{false, true} {
		var b, s strings.Builder
		if err := WriteToolResult(&b, r, markdown); err != nil {
			t.Fatal(err)
		}
		for _, c := range b.String() {
			if c != '\n' && (c < ' ' || c == 0x7f) {
				t.Fatalf("control character %q in\n%s", c, b.String())
			}
		}
		for _, want := range []string{"measured by another instrument", "as many requests as were let through", "the load is not reported", "failures not reported", "52.1", "71.0"} {
			if !strings.Contains(b.String(), want) {
				t.Errorf("no %q in\n%s", want, b.String())
			}
		}
		if strings.Contains(b.String(), "p50") {
			t.Errorf("a column that nobody filled:\n%s", b.String())
		}
		var sideBySide SideBySide
		sideBySide.AddToolResult(r)
		sideBySide.AddRun(&result.Run{Points: []result.Point{{Verdict: result.Invalid}}}, "runs/one")
		if err := sideBySide.Write(&s, markdown); err != nil || !strings.Contains(s.String(), "pitot, INVALID") || strings.Contains(s.String(), "\x1b") {
			t.Errorf("%v:\n%s", err, s.String())
		}
	}
	var alone SideBySide
	alone.AddRun(&result.Run{Points: make([]result.Point, 3)}, "runs/one")
	var s strings.Builder
	if err := alone.Write(&s, false); err != nil || s.Len() > 0 {
		t.Errorf("runs alone are laid side by side: %s", s.String())
	}
}

// Loads lie side by side in their order, whatever order they were measured in.
func TestSideBySideIsSorted(t *testing.T) {
	run := reporttest.SweepRun()
	slices.Reverse(run.Points)
	var sideBySide SideBySide
	sideBySide.AddToolResult(&tools.Result{Tool: "vllm bench serve", File: "f.json", Points: make([]tools.ReportedPoint, 1)})
	sideBySide.AddRun(run, "runs/one")
	var got []string
	for _, r := range sideBySide.rows[1:] {
		got = append(got, r[1])
	}
	if want := []string{"4.00/s", "8.40/s", "33.6/s", "47.5/s"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
