package page

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"pitot/internal/analysis/compare"
	_ "pitot/internal/rapidtest" // the same draws each time
	"pitot/internal/report"
	"pitot/internal/report/reporttest"
	"pitot/internal/results/metric"
	"pitot/internal/results/result"
	"pitot/internal/say"
	"pitot/internal/stats"
)

// comparisonPage renders a comparison's page.
func comparisonPage(t *testing.T, c *compare.Comparison) string {
	t.Helper()
	var b strings.Builder
	if err := WriteComparison(&b, report.BuildComparison(c), []string{"pitot", "compare", "a", "b"}); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// drawnIn are the charts of a page.
func drawnIn(t *testing.T, page string) map[string]chart {
	t.Helper()
	_, block, ok := strings.Cut(page, `<script type="application/json" id="data">`)
	block, _, _ = strings.Cut(block, "</script>")
	var charts map[string]chart
	if err := json.Unmarshal([]byte(strings.ReplaceAll(block, "null,", "0,")), &charts); !ok || err != nil {
		t.Fatalf("no data: %v", err)
	}
	return charts
}

// One comparison in all faces: each has the figures of the JSON.
func TestComparisonFacesAgree(t *testing.T) {
	for name, c := range reporttest.Comparisons(t) {
		t.Run(name, func(t *testing.T) {
			m := report.BuildComparison(c)
			var text, md strings.Builder
			for _, err := range []error{m.WriteTerminal(&text, report.Style{Full: true}), m.WriteMarkdown(&md)} {
				if err != nil {
					t.Fatal(err)
				}
			}
			page := comparisonPage(t, c)
			one := func(s string) string { return strings.Join(strings.Fields(s), " ") }
			faces := map[string]string{"text": one(text.String()), "markdown": one(strings.ReplaceAll(md.String(), `\`, "")), "page": readable(page)}
			between := map[string]string{"text": " ", "markdown": " | ", "page": " "}
			for i, p := range m.Pairs {
				for k, row := range p.Table.Rows {
					for face, all := range faces {
						figures := row[:min(5, len(row))] // the text shortens what is said
						if face != "text" {
							figures = row
						}
						if want := one(strings.TrimRight(strings.Join(figures, between[face]), " |")); !strings.Contains(all, want) {
							t.Errorf("%s lacks %q", face, want)
						}
					}
					if k >= len(c.Pairs[i].Rows) { // what searches found
						continue
					}
					if r := c.Pairs[i].Rows[k]; row[3] != say.RelativeChange(r.Change, r.OfShare()) || row[0] != report.MetricLabel(r.Metric)+report.NameMark(&r) {
						t.Errorf("row %v is not %+v", row, r)
					}
				}
			}
			for _, a := range m.Answers {
				for _, part := range a.More {
					for face, all := range faces {
						if !strings.Contains(all, part) {
							t.Errorf("%s lacks %q", face, part)
						}
					}
				}
				if !strings.Contains(faces["page"], report.VerdictWord(a.Word)) {
					t.Errorf("the page lacks %q", report.VerdictWord(a.Word))
				}
			}
			for _, d := range m.Differs {
				if want := d[0] + " " + strings.ReplaceAll(d[1], " | ", " "); !strings.Contains(faces["page"], want) {
					t.Errorf("the page lacks %v", want)
				}
			}
			for _, o := range m.Clauses {
				if !strings.Contains(faces["page"], o.State+" "+o.Text) {
					t.Errorf("the page lacks %v", o)
				}
			}
			// The forest plot has each row, where the row is.
			seen := 0
			for id, k := range drawnIn(t, page) {
				if !strings.HasPrefix(id, "changes") {
					continue
				}
				for _, r := range k.Rows {
					seen++
					if !slices.ContainsFunc(c.Pairs, func(p compare.Pair) bool {
						return slices.ContainsFunc(p.Rows, func(x compare.Row) bool {
							return math.Abs(100*x.Change-r.At) < 1e-6 && wordOf(&x) == r.Word && say.RelativeChange(x.Change, x.OfShare()) == r.Text && (x.CI95 == nil) == (r.Lo == nil)
						})
					}) {
						t.Errorf("%s draws %+v, which no row says", id, r)
					}
				}
			}
			rows := 0
			for _, p := range c.Pairs {
				rows += len(p.Rows)
			}
			if seen != rows {
				t.Errorf("%d of %d rows are drawn", seen, rows)
			}
		})
	}
}

// What the pages of comparisons say, and draw.
func TestComparisonPages(t *testing.T) {
	all := reporttest.Comparisons(t)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		t.Run(name, func(t *testing.T) {
			page := comparisonPage(t, all[name])
			text := regexp.MustCompile(`(?s)<(style|script)[^>]*>.*?</(style|script)>`).ReplaceAllString(page, "")
			text = regexp.MustCompile(`</(h1|h2|h3|p|li|tr|dd|caption|strong|figure|title|pre)>`).ReplaceAllString(text, "\n")
			var lines []string
			for line := range strings.Lines(text) {
				if line = readable(line); line != "" {
					lines = append(lines, line)
				}
			}
			charts := drawnIn(t, page)
			for _, id := range slices.Sorted(maps.Keys(charts)) {
				k := charts[id]
				lines = append(lines, fmt.Sprintf("[%s] %s: %s %s", id, k.Title, k.Kind, k.X.Name))
				for _, s := range k.Series {
					lines = append(lines, fmt.Sprintf("  %s %s tone %d dash %d: %.5g against %.5g", s.Kind, s.Name, s.Tone, s.Dash, s.Y, s.X))
				}
				for _, r := range k.Rows {
					lines = append(lines, fmt.Sprintf("  %s: %s %s, look %s, %d dots", r.Name, r.Text, r.Word, r.Look, len(r.Dots)))
				}
				for _, m := range k.Marks {
					lines = append(lines, fmt.Sprintf("  mark %s at %.5g", m.Name, m.At))
				}
			}
			got := strings.Join(lines, "\n") + "\n"
			reporttest.SameAsGolden(t, filepath.Join("testdata", "compare", name+".golden"), got)
		})
	}
}

// Whatever sides, servers and paths are called stays text.
func TestComparisonPageEscapes(t *testing.T) {
	const evil = `</script></style><script>alert(1)</script><img src=x onerror=alert(2)>"'` + "`${alert(3)}"
	edit := func(run *result.Run, i int) {
		run.Launch, run.Target.Spec, run.Target.Model = fmt.Sprint(evil, i), evil, evil
		run.Target.Server = map[string]string{"engine": evil, evil: evil + run.Started}
		run.Notes = map[string]string{evil: evil}
		run.Points[0].Stability = "unstable"
	}
	a, b := reporttest.LaunchSide("a", 2, 1, nil), reporttest.LaunchSide(evil, 2, 1.1, edit)
	b.Runs[0].Path = evil
	c, err := compare.Compare([]compare.Side{a, b}, compare.Options{Within: .05, Tokenizers: true})
	if err != nil {
		t.Fatal(err)
	}
	c.Warnings, c.Differences = append(c.Warnings, evil), append(c.Differences, compare.Difference{What: evil, Values: [][]string{{evil}, {evil}}})
	var w strings.Builder
	if err := WriteComparison(&w, report.BuildComparison(c), []string{"pitot", evil}); err != nil {
		t.Fatal(err)
	}
	got := w.String()
	escaped(t, got)
}

// What cannot be compared has a page that says so.
func TestComparisonPageOfNothing(t *testing.T) {
	grow := func(run *result.Run, _ int) { run.Points[0].Stability = "unstable" }
	c, err := compare.Compare([]compare.Side{reporttest.LaunchSide("a", 2, 1, grow), reporttest.LaunchSide("b", 2, 1, grow)}, compare.Options{Within: .05})
	if err != nil {
		t.Fatal(err)
	}
	got := readable(comparisonPage(t, c))
	for _, want := range []string{"b was not compared with a", "Nothing could be compared.", "unstable in b: the queue grows"} {
		if !strings.Contains(got, want) {
			t.Errorf("does not say %q: %s", want, got)
		}
	}
	// Nothing at all, as no run has it.
	var b strings.Builder
	bare := &compare.Comparison{Sides: []compare.SideInfo{{Name: "a"}, {Name: "b"}}, Verdicts: []compare.Verdict{{B: "b", Word: compare.NotCompared}}, Curves: []compare.Curve{{Over: "rate"}}}
	if err := WriteComparison(&b, report.BuildComparison(bare), nil); err != nil {
		t.Fatal(err)
	}
}

// Where a launch has no value the side has no line, and the other launches are
// there with its name.
func TestComparisonPageOfLaunches(t *testing.T) {
	edit := func(without int) func(*result.Run, int) {
		return func(run *result.Run, i int) {
			p, rate := run.Points[0], 64.
			p.Load.Rate = &rate
			run.Points = append(run.Points, p)
			if i == without {
				for k := range run.Points {
					run.Points[k].Metrics.SetSummary(metric.TTFT, &result.Summary{N: 9, Withheld: map[string]result.Reason{"p50": {Code: result.QueueGrew}, "p99": {Code: result.QueueGrew}}})
				}
			}
		}
	}
	c, err := compare.Compare([]compare.Side{reporttest.LaunchSide("a", 3, 1, edit(-1)), reporttest.LaunchSide("b", 3, 1.1, edit(1))}, compare.Options{Within: .05})
	if err != nil {
		t.Fatal(err)
	}
	page := comparisonPage(t, c)
	var got []string
	for _, s := range drawnIn(t, page)["curve1-ttft-p50"].Series {
		got = append(got, fmt.Sprintf("%s %s %v", s.Kind, s.Name, s.Aside))
	}
	if d := cmp.Diff([]string{"line a false", "dots a true", "dots b, single launches false"}, got); d != "" {
		t.Error(d)
	}
	if want := "TTFT p50, TTFT p99: no value of b at 4.5, 64: 1 of 3 launches: the queue grew"; !strings.Contains(readable(page), want) {
		t.Errorf("does not say %q", want)
	}
}

// Whatever the values are, there is a page.
func TestComparisonPageAlways(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		side := func(name string) compare.Side {
			extreme := rapid.SampledFrom([]float64{1e-300, 1e-9, 1, 1e9, 1e150, 1e300})
			s := compare.Side{Name: name}
			for i := range rapid.IntRange(1, 3).Draw(t, "launches") {
				run := reporttest.ServerRun(20_000)
				run.Launch, run.Started = fmt.Sprint(i), name
				p := &run.Points[0]
				p.Metrics.SetSummary(metric.TTFT, reporttest.SummaryAround(20_000, extreme.Draw(t, "ttft")))
				p.Metrics.SetSummary(metric.E2E, reporttest.SummaryAround(20_000, extreme.Draw(t, "e2e")))
				p.Throughput.RequestsPerS = float(extreme.Draw(t, "req/s") * float64(rapid.IntRange(0, 1).Draw(t, "any")))
				if rapid.Bool().Draw(t, "second") {
					q, rate := *p, extreme.Draw(t, "rate")
					q.Load.Rate = &rate
					q.Stability = rapid.SampledFrom([]stats.Stability{stats.Stable, stats.Unstable, stats.Undecided}).Draw(t, "stability")
					run.Points = append(run.Points, q)
				}
				s.Runs = append(s.Runs, compare.Source{Path: name, Run: run})
			}
			return s
		}
		c, err := compare.Compare([]compare.Side{side("a"), side("b")}, compare.Options{Within: .05})
		if err != nil {
			t.Fatal(err)
		}
		if err := WriteComparison(io.Discard, report.BuildComparison(c), nil); err != nil {
			t.Fatal(err)
		}
	})
}

// Capacities have a row, and no curve.
func TestComparisonPageOfSearches(t *testing.T) {
	side := func(name string, from float64) compare.Side {
		s := compare.Side{Name: name}
		for i := range 5 {
			run := reporttest.ServerRun(2000)
			x := from + float64(i)/10
			run.Launch, run.Points, run.Started = fmt.Sprint(i), nil, name
			run.Capacity = &result.Capacity{Over: "rate", SLO: "p99 ttft<200ms", Estimate: &x, CI95: &[2]float64{x - 1, x + 1}}
			s.Runs = append(s.Runs, compare.Source{Path: name, Run: run})
		}
		return s
	}
	c, err := compare.Compare([]compare.Side{side("a", 20), side("b", 30)}, compare.Options{Within: .05})
	if err != nil {
		t.Fatal(err)
	}
	page := comparisonPage(t, c)
	charts := drawnIn(t, page)
	if k := charts["changes1-1"]; len(charts) != 1 || len(k.Rows) != 1 || k.Rows[0].Name != "capacity" || k.Rows[0].Word != compare.Faster && k.Rows[0].Word != compare.Better {
		t.Errorf("%+v", charts)
	}
	if got := readable(page); !strings.Contains(got, "capacity in requests per second, p99 ttft<200ms") {
		t.Error(got)
	}
}

// Values that rest on few samples are hollow, and limits are lines on the chart of
// their percentile, as in the report of a run.
func TestComparisonPageMarksFewAndLimits(t *testing.T) {
	slo := &result.SLO{Spec: "p99 ttft<200ms, tpot<50ms @99%", Met: "yes", Limits: []result.Limit{
		{Spec: "p99 ttft<200ms", Percentile: 99, Metric: "ttft", Limit: 200}, {Spec: "tpot<50ms", Metric: "tpot", Limit: 50}, {Spec: "errors<1%", Metric: "errors", Limit: .01},
	}}
	edit := func(loads int) func(*result.Run, int) {
		return func(run *result.Run, _ int) {
			run.Points[0].SLO = slo
			run.Points[0].Metrics.SetSummary(metric.TTFT, reporttest.SummaryAround(500, 87.3)) // few for p99
			for i := 1; i < loads; i++ {
				p, rate := run.Points[0], 4.5*float64(i+1)
				p.Load.Rate = &rate
				p.Metrics.SetSummary(metric.TTFT, reporttest.SummaryAround(2000, 90))
				run.Points = append(run.Points, p)
			}
		}
	}
	charts := func(loads int) map[string]chart {
		c, err := compare.Compare([]compare.Side{reporttest.LaunchSide("a", 2, 1, edit(loads)), reporttest.LaunchSide("b", 2, 1.1, edit(loads))}, compare.Options{Within: .05})
		if err != nil {
			t.Fatal(err)
		}
		page := comparisonPage(t, c)
		if loads > 1 && strings.Count(readable(page), "Hollow: few samples.") != 1 {
			t.Error("the mark is not explained once")
		}
		return drawnIn(t, page)
	}
	of := func(k chart) (marks []string) {
		for _, m := range k.Marks {
			marks = append(marks, fmt.Sprint(m.Axis, " ", m.Name, " ", m.At))
		}
		return marks
	}
	three := charts(3)
	for id, want := range map[string]string{"curve1-ttft-p50": "[]", "curve1-ttft-p99": "[y p99 ttft<200ms 200]", "curve1-tpot-p50": "[]", "curve1-tpot-p99": "[y tpot<50ms 50]", "curve1-e2e-p99": "[]"} {
		if got := fmt.Sprint(of(three[id])); got != want {
			t.Errorf("%s: %s, want %s", id, got, want)
		}
	}
	for id, want := range map[string]string{"curve1-ttft-p99": "[0]", "curve1-ttft-p50": "[]"} {
		for _, s := range three[id].Series {
			if got := fmt.Sprint(s.Few); !s.Aside && got != want {
				t.Errorf("%s of %s: few at %s, want %s", id, s.Name, got, want)
			}
		}
	}
	one := charts(1)["curve1-ttft-p99"]
	if r := one.Rows[0]; r.Look != "t1 few" || !strings.HasPrefix(r.Text, "~") {
		t.Errorf("%+v", r)
	}
}
