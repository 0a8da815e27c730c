package page

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pitot/internal/report"
	"pitot/internal/report/reporttest"
	"pitot/internal/results/metric"
	"pitot/internal/results/result"
)

// faces are what a run looks like in each.
func faces(t *testing.T, run *result.Run) map[string]string {
	t.Helper()
	var text, md strings.Builder
	m := report.Build(run, "runs/x")
	if err := m.WriteTerminal(&text, report.Style{Full: true}); err != nil {
		t.Fatal(err)
	}
	if err := m.WriteMarkdown(&md); err != nil {
		t.Fatal(err)
	}
	return map[string]string{"text": text.String(), "markdown": strings.ReplaceAll(md.String(), `\`, ""), "html": readable(page(t, run, Extra{}))}
}

// Beside what was asked stands what came due, and goodput beside what it is part of.
func TestLoadsSayWhatCameDue(t *testing.T) {
	run := reporttest.SweepRun()
	for face, got := range faces(t, run) {
		flat := strings.Join(strings.Fields(got), " ")
		want := []string{"due/s: came due in the window", "35.0", "queue grows"} // 33.6 were asked for
		if face != "text" {
			want = append(want, "served/s: answers that ended in it", "good/s: of those due, within the SLO")
		}
		for _, w := range want {
			if !strings.Contains(flat, w) {
				t.Errorf("%s lacks %q:\n%s", face, w, got)
			}
		}
	}
	for line := range strings.Lines(faces(t, run)["text"]) {
		if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 80 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	md := faces(t, run)["markdown"]
	if !strings.Contains(md, "| 33.6 | 35.0 | 2,000 | 33.6 | 35.0 |") {
		t.Errorf("due, served and good are not side by side:\n%s", md)
	}
	i := slices.IndexFunc(curveCharts(run), func(c *chart) bool { return c.ID == "requests" })
	var names []string
	for _, s := range curveCharts(run)[i].Series {
		names = append(names, s.Name)
	}
	if fmt.Sprint(names) != "[came due throughput goodput]" {
		t.Errorf("drawn are %v", names)
	}
}

// Markdown says each thing once, and no column is without a name where it holds
// nothing.
func TestMarkdownSaysOnce(t *testing.T) {
	run := reporttest.SweepRun()
	run.Points = run.Points[:3] // none is unstable
	run.Curve.Points = []int{0, 1, 2}
	md := faces(t, run)["markdown"]
	for _, once := range []string{"8.40 to 41.2", "45.1", "ost goodput"} {
		if n := strings.Count(md, once); n != 1 {
			t.Errorf("%d times %q:\n%s", n, once, md)
		}
	}
	if strings.Contains(md, "|  |") {
		t.Errorf("an empty head:\n%s", md)
	}
	for i := range run.Points { // nor is there a word of an objective where there is none
		run.Points[i].SLO, run.Points[i].Goodput = nil, nil
	}
	if md = faces(t, run)["markdown"]; strings.Contains(md, "SLO") || strings.Contains(md, "good") {
		t.Error(md)
	}
}

// A sweep that was stopped before its first load has a face too.
func TestNoLoads(t *testing.T) {
	run := reporttest.SweepRun()
	run.Points, run.Curve = nil, &result.Curve{Over: "rate"}
	for face, got := range faces(t, run) {
		if !strings.Contains(strings.Join(strings.Fields(got), " "), "othing was measured") {
			t.Errorf("%s:\n%s", face, got)
		}
	}
}

// The knee is drawn as wide as it is uncertain, and what is on the front has its
// load.
func TestCurveMarks(t *testing.T) {
	run := reporttest.SweepRun()
	shaded := slices.ContainsFunc(curveCharts(run)[0].Marks, func(m mark) bool { return m.At == 8.4 && m.To != nil && *m.To == 41.25 })
	if !shaded {
		t.Errorf("the knee's interval is not shaded: %+v", curveCharts(run)[0].Marks)
	}
	for _, c := range paretoCharts(run) {
		if !c.Labels {
			t.Errorf("%s: the loads are not shown", c.ID)
		}
		for _, s := range c.Series {
			if len(s.Labels) != len(s.X) || !strings.HasSuffix(s.Labels[0], "/s") {
				t.Errorf("%s: %v", c.ID, s.Labels)
			}
		}
	}
}

// No two error classes look alike.
func TestErrorClassesAreApart(t *testing.T) {
	s := &Series{Bin: 1, To: 1, End: 1, Errors: map[string]Dots{}}
	for i := range 15 {
		s.Errors[fmt.Sprint("class ", i)] = Dots{X: []float64{1}, Y: []float64{1}, Of: 1}
	}
	looks := map[[2]int]bool{}
	for _, c := range timeCharts("p1-", s) {
		if c.ID == "p1-errors" {
			for _, d := range c.Series {
				looks[[2]int{d.Tone, d.Shape}] = true
			}
		}
	}
	if len(looks) != 15 {
		t.Errorf("15 classes have %d looks", len(looks))
	}
}

// Whoever reads a run against an embedded target sees which faults were ordered.
func TestOrderedFaults(t *testing.T) {
	run := reporttest.ServerRun(2000)
	run.Target.Kind, run.Target.Settings = "mock", map[string]string{"faults": "429:4%, reset:2%,freeze:every 20s:2s", "reasoning": "0.5", "ttft": "20ms"}
	p := &run.Points[0]
	p.Outcome = "degraded"
	p.Requests = result.Requests{Due: 2000, OK: 1900, Failed: 100, Errors: map[string]int{}}
	for i := range 10 {
		p.Requests.Errors[fmt.Sprintf("class%d", i)] = 10
	}
	for face, got := range faces(t, run) {
		flat := strings.Join(strings.Fields(got), " ")
		for _, want := range []string{"429:4%, reset:2%, freeze:every 20s:2s", "aults that you requested", "reasoning 0.5", "the server was degraded: 1 % of the requests or more were not answered", "10 class7", "20 more, of 2 other classes"} {
			if !strings.Contains(flat, want) {
				t.Errorf("%s lacks %q:\n%s", face, want, got)
			}
		}
		if strings.Contains(got, "ttft 20ms") { // the engine says that
			t.Errorf("%s:\n%s", face, got)
		}
	}
	if html := faces(t, run)["html"]; !strings.Contains(html, "100 of 2,000 requests were not answered; faults were ordered.") {
		t.Error(html)
	}
	run.Target.Settings = nil
	for face, got := range faces(t, run) {
		if strings.Contains(got, "ordered") {
			t.Errorf("%s:\n%s", face, got)
		}
	}
}

// Values of the curve that rest on few samples are hollow, and limits are lines.
func TestCurveOfFewSamples(t *testing.T) {
	run := reporttest.SweepRun() // 999 samples each: one too few
	run.Points[2].Metrics.SetSummary(metric.TTFT, reporttest.SummaryAround(1000, 90))
	limits := []result.Limit{{Spec: "p99 ttft<200ms", Percentile: 99, Metric: "ttft", Limit: 200}, {Spec: "ttft<200ms", Metric: "ttft", Limit: 200}, {Spec: "p99 tpot<50ms", Percentile: 99, Metric: "tpot", Limit: 50}}
	for i := range run.Points {
		run.Points[i].SLO.Limits = limits
	}
	for _, c := range curveCharts(run) {
		if c.ID != "ttft" {
			continue
		}
		for _, s := range c.Series {
			if want := map[string]string{"p50": "[]", "p95": "[]", "p99": "[0 1 3]"}[s.Name]; fmt.Sprint(s.Few) != want {
				t.Errorf("%s: few at %v, want %s", s.Name, s.Few, want)
			}
		}
		if !strings.HasSuffix(c.Note, " Hollow: few samples.") {
			t.Errorf("%q", c.Note)
		}
		if m := c.Marks[len(c.Marks)-1]; m.Axis != "y" || m.Name != "p99 ttft<200ms, ttft<200ms" || m.At != 200 {
			t.Errorf("%+v", c.Marks)
		}
		return
	}
	t.Error("no chart")
}

// The chart of violations opens where the search measured most: from the verified load to where
// most requests violate.
func TestViolationsOpenAroundTheLimit(t *testing.T) {
	run := reporttest.SweepRun()
	run.Curve = nil
	run.Capacity = &result.Capacity{Over: result.OverRate, CI95: &[2]float64{20.9, 21.6}, Verified: &result.Verified{Load: 20, Passed: true},
		Limits: []result.CapacityLimit{{Spec: "p99 ttft<200ms", Allowed: .01}}}
	for _, x := range [][2]float64{{1, 0}, {8, 0}, {21, 2}, {22, 10}, {23, 20}, {24, 70}, {40, 1000}} {
		run.Capacity.Trail = append(run.Capacity.Trail, result.CapacityProbe{Load: x[0], Requests: 1000, Violations: []int{int(x[1])}, Point: -1})
	}
	chartOf := func() *chart { return violationsChart(run, axis{Name: "Load"}, curveMarks(run)) }
	if c := chartOf(); len(c.Shown) != 2 || c.Shown[0] > 20 || c.Shown[0] < 19 || c.Shown[1] < 24 || c.Shown[1] > 25 {
		t.Errorf("opens at %v", c.Shown)
	}
	run.Capacity.Trail[0].Violations[0] = 1 // then it is most of the axis
	if c := chartOf(); c.Shown != nil {
		t.Errorf("opens at %v", c.Shown)
	}
	run.Capacity.Limits, run.Points[0].SLO = nil, &result.SLO{Limits: []result.Limit{{Percentile: 95}, {Percentile: 95}}}
	if c := chartOf(); c.Marks[len(c.Marks)-1].Name != "allowed: 5 %" || c.Marks[len(c.Marks)-2].Axis == "y" {
		t.Errorf("%+v", c.Marks)
	}
}
