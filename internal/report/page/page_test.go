package page

import (
	"cmp"
	"encoding/json"
	"errors"
	"html"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pitot/internal/report"
	"pitot/internal/report/export"
	"pitot/internal/report/reporttest"
	"pitot/internal/results/metric"
	"pitot/internal/results/record"
	"pitot/internal/results/result"
	"pitot/internal/say"
)

// page renders a run's page.
func page(t *testing.T, run *result.Run, with Extra) string {
	t.Helper()
	var b strings.Builder
	if err := Write(&b, report.Build(run, "runs/x"), with); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func float(x float64) *float64 { return &x }

var tag = regexp.MustCompile(`(?s)<(style|script)[^>]*>.*?</(style|script)>|<[^>]*>`)

// unbroken matches a flag, which is marked so that no line breaks in it.
var unbroken = regexp.MustCompile(`<span class="unbroken">(.*?)</span>`)

// readable is what a page says, without its marks.
func readable(page string) string {
	page = unbroken.ReplaceAllString(page, "$1")
	return strings.Join(strings.Fields(html.UnescapeString(tag.ReplaceAllString(page, " "))), " ")
}

// One model in all faces: each has the same figures, and those of run.json.
func TestFacesAgree(t *testing.T) {
	for name, run := range reporttest.Runs() {
		t.Run(name, func(t *testing.T) {
			m := report.Build(run, "runs/x")
			var text, md, sheet strings.Builder
			for _, err := range []error{m.WriteTerminal(&text, report.Style{Full: true}), m.WriteMarkdown(&md), export.CSV(&sheet, run)} {
				if err != nil {
					t.Fatal(err)
				}
			}
			faces := map[string]string{"text": text.String(), "markdown": strings.ReplaceAll(md.String(), `\`, ""), "html": readable(page(t, run, Extra{}))}
			if run.Repeats != nil { // of which the terminal has one table, and a line for each
				repeatsAgree(t, &m, faces)
				delete(faces, "text")
			}
			for i := range m.Points {
				for _, row := range m.Points[i].Latencies.Rows {
					want := map[string]string{}
					want["text"], want["html"], want["markdown"] = strings.Join(row[1:], " "), strings.Join(row[1:], " "), strings.Join(row[1:], " | ")
					for face, all := range faces {
						if !strings.Contains(strings.Join(strings.Fields(all), " "), strings.Join(strings.Fields(want[face]), " ")) {
							t.Errorf("%s lacks %s of point %d: %s", face, row[0], i, want[face])
						}
					}
				}
				for _, f := range m.Points[i].Headline {
					for face, all := range faces {
						if !strings.Contains(strings.Join(strings.Fields(all), " "), f) {
							t.Errorf("%s lacks %q", face, f)
						}
					}
				}
				if s := run.Points[i].Metrics.SummaryOf(metric.TTFT); s != nil && s.P50 != nil {
					exact, err := json.Marshal(*s.P50)
					if err != nil || !strings.Contains(sheet.String(), string(exact)) {
						t.Errorf("csv lacks the median TTFT %s of point %d: %v", exact, i, err)
					}
					if faces["html"] != "" && !strings.Contains(faces["html"], say.Quantity(*s.P50)) {
						t.Errorf("html lacks %s", say.Quantity(*s.P50))
					}
				}
			}
		})
	}
}

// repeatsAgree wants what repeats show together on every face, and the verdict of each.
func repeatsAgree(t *testing.T, m *report.Model, faces map[string]string) {
	t.Helper()
	for face, all := range faces {
		all = html.UnescapeString(strings.Join(strings.Fields(all), " "))
		for _, row := range m.Repeats.Table.Rows {
			between := map[string]string{"markdown": " | "}[face]
			if want := strings.Join(row, cmp.Or(between, " ")); !strings.Contains(all, strings.Join(strings.Fields(want), " ")) {
				t.Errorf("%s lacks %s of the repeats: %s", face, row[0], want)
			}
		}
		for _, said := range append([]string{m.Repeats.Answer}, m.Repeats.Legend...) {
			if !strings.Contains(all, said) {
				t.Errorf("%s lacks %q", face, said)
			}
		}
		for i := range m.Points {
			if p := &m.Points[i]; !strings.Contains(all, string(p.Verdict)) || !strings.Contains(strings.ToLower(all), p.Ordinal) {
				t.Errorf("%s lacks %s: %s", face, p.Ordinal, p.Verdict)
			}
		}
	}
}

// What launches show together is the same in a terminal and in Markdown.
func TestLaunchesAgree(t *testing.T) {
	m := report.BuildLaunches(reporttest.LaunchSide("side", 3, 1, nil), "side")
	var text, md strings.Builder
	if err := errors.Join(m.WriteTerminal(&text, report.Style{Full: true}), m.WriteMarkdown(&md)); err != nil || len(m.Loads) == 0 {
		t.Fatal(err, len(m.Loads))
	}
	faces := map[string]string{"text": text.String(), "markdown": strings.ReplaceAll(md.String(), `\`, "")}
	for face, all := range faces {
		all = strings.Join(strings.Fields(all), " ")
		wants := append([]string{m.Title}, m.Verdicts...)
		for _, l := range m.Loads {
			if len(l.Table.Rows) == 0 {
				t.Errorf("no table of %q", l.Answer)
			}
			wants = slices.Concat(wants, l.Answer, l.Legend, l.Notes)
			for _, row := range l.Table.Rows {
				wants = append(wants, strings.Join(row, cmp.Or(map[string]string{"markdown": " | "}[face], " ")))
			}
		}
		for _, want := range wants {
			if !strings.Contains(all, strings.Join(strings.Fields(want), " ")) {
				t.Errorf("%s lacks %q\n%s", face, want, all)
			}
		}
	}
}

// The rows of figures are about as long as each other.
func TestColumns(t *testing.T) {
	for n, want := range map[int]int{0: 0, 1: 1, 6: 6, 7: 7, 8: 8, 9: 5, 10: 5, 12: 6, 13: 7} {
		if got := columnsOf(n); got != want {
			t.Errorf("%d figures in rows of %d, want %d", n, got, want)
		}
	}
}

// Whatever servers and users say stays text.
func TestPageEscapes(t *testing.T) {
	const evil = `</script></style><script>alert(1)</script><img src=x onerror=alert(2)>"'` + "`${alert(3)}"
	run := reporttest.ServerRun(2000)
	run.Target.Model, run.Target.Spec, run.Target.API = evil, "http://"+evil, evil
	run.Target.Server = map[string]string{"engine": evil, evil: evil}
	run.Notes = map[string]string{evil: evil}
	run.Command = []string{"pitot", evil}
	run.Environment.CPU = evil
	p := &run.Points[0]
	p.Requests = result.Requests{Due: 2000, OK: 1999, Failed: 1, Errors: map[string]int{evil: 1}, Finish: map[string]int{evil: 1999}, ErrorExamples: map[string]string{evil: evil}}
	p.SLO = &result.SLO{Spec: evil, Met: "no", Attained: float(.5), Limits: []result.Limit{{Spec: evil, Metric: "ttft", Limit: 5, Met: "no", Attained: float(.5)}, {Spec: evil, Metric: "e2e", Limit: 5, Met: "no"}}}
	p.Checks[0] = result.Check{Name: evil, Status: result.Flag, Unit: evil, Case: evil}
	p.Classes = map[string]result.Class{evil: {}, "other": {}}
	s := &Series{Bin: 1, To: 1, End: 1, Due: []float64{1}, Errors: map[string]Dots{evil: {X: []float64{1}, Y: []float64{1}, Of: 1}},
		Spread: map[string]Spread{"ttft_ms": {Value: []float64{1, 2}, Share: []float64{.5, 1}, N: 2}},
		Slow:   Traces{Wanted: 1, Requests: []Trace{{Outcome: record.Failed, Error: evil, Chunks: []int64{1}}}}}
	got := page(t, run, Extra{Series: []*Series{s}, Missing: []string{evil}, Config: evil})
	escaped(t, got)
}

// escaped holds that a page shows a hostile name as text.
func escaped(t *testing.T, page string) {
	t.Helper()
	if n := strings.Count(page, "<script"); n != 2 {
		t.Errorf("%d script elements, want the data and the page's own", n)
	}
	for _, bad := range []string{"<img", "</style><", "<script>alert"} {
		if strings.Contains(page, bad) {
			t.Errorf("the page holds %s", bad)
		}
	}
	if !strings.Contains(readable(page), "alert(1)") {
		t.Error("the name is not shown")
	}
}

// A page asks nobody for anything.
func TestPageIsWhole(t *testing.T) {
	got := page(t, reporttest.ServerRun(2000), Extra{})
	if !strings.Contains(got, `default-src &#39;none&#39;`) {
		t.Error("no policy against the network")
	}
	loads := regexp.MustCompile(`(?i)(src|href|action)\s*=\s*"?(https?:)?//|@import|url\(\s*["']?https?:|fetch\(|XMLHttpRequest|WebSocket|sendBeacon|import\(`)
	if bad := loads.FindString(got); bad != "" {
		t.Errorf("the page asks the network: %s", bad)
	}
}

// Runs that went wrong have a page too.
func TestPagesOfBadRuns(t *testing.T) {
	nan := math.NaN()
	empty := &Series{Bin: 1}
	odd := &Series{Bin: 1, From: nan, To: nan, End: nan, Due: []float64{nan}, InFlight: []float64{math.Inf(1)},
		Spread: map[string]Spread{"ttft_ms": {Value: []float64{nan}, Share: []float64{1}, N: 1}}}
	none := reporttest.ServerRun(100)
	none.Points[0].Requests = result.Requests{Due: 100, Failed: 100, Errors: map[string]int{"refused": 100}}
	none.Points[0].Metrics = result.Metrics{}
	none.Points[0].Throughput = result.Throughput{Why: result.Reason{Code: result.NothingAnswered}}
	none.Points[0].Outcome = "failing"
	bare := &result.Run{Schema: result.Schema, Points: []result.Point{{}}}
	for name, c := range map[string]struct {
		run  *result.Run
		page Extra
		say  string
	}{
		"no records":  {reporttest.ServerRun(2000), Extra{Missing: []string{"the records are gone"}}, "the records are gone"},
		"no points":   {&result.Run{Schema: result.Schema}, Extra{}, "Nothing was measured"},
		"no series":   {reporttest.ServerRun(2000), Extra{Series: []*Series{empty}}, "Nothing to draw"},
		"not numbers": {reporttest.ServerRun(2000), Extra{Series: []*Series{odd}}, "Distributions"},
		"no success":  {none, Extra{Series: []*Series{empty}}, "none of 100 requests was answered"},
		"nothing":     {bare, Extra{Series: []*Series{nil}}, "no request was due"},
	} {
		t.Run(name, func(t *testing.T) {
			got := readable(page(t, c.run, c.page))
			if !strings.Contains(got, c.say) {
				t.Errorf("does not say %q: %s", c.say, got)
			}
		})
	}
}
