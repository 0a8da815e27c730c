package report

import (
	"encoding/json"
	"html"
	"math"
	"regexp"
	"strings"
	"testing"

	"pitot/internal/data/metric"
	"pitot/internal/data/record"
	"pitot/internal/data/result"
	"pitot/internal/report/export"
)

// page renders a run's page.
func page(t *testing.T, run *result.Run, with Page) string {
	t.Helper()
	var b strings.Builder
	if err := Build(run, "runs/x").HTML(&b, with); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

var tag = regexp.MustCompile(`(?s)<(style|script)[^>]*>.*?</(style|script)>|<[^>]*>`)

// readable is what a page says, without its marks.
func readable(page string) string {
	return strings.Join(strings.Fields(html.UnescapeString(tag.ReplaceAllString(page, " "))), " ")
}

// One model in all faces: each has the same figures, and those of run.json.
func TestFacesAgree(t *testing.T) {
	for name, run := range cases() {
		t.Run(name, func(t *testing.T) {
			m := Build(run, "runs/x")
			var text, md, sheet strings.Builder
			for _, err := range []error{m.Text(&text, Style{}), m.Markdown(&md), export.CSV(&sheet, run)} {
				if err != nil {
					t.Fatal(err)
				}
			}
			faces := map[string]string{"text": text.String(), "markdown": strings.ReplaceAll(md.String(), `\`, ""), "html": readable(page(t, run, Page{}))}
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
				if s := run.Points[i].Metrics.Of(metric.TTFT); s != nil && s.P50 != nil {
					exact, err := json.Marshal(*s.P50)
					if err != nil || !strings.Contains(sheet.String(), string(exact)) {
						t.Errorf("csv lacks the median TTFT %s of point %d: %v", exact, i, err)
					}
					if faces["html"] != "" && !strings.Contains(faces["html"], cell(s, "p50")) {
						t.Errorf("html lacks %s", cell(s, "p50"))
					}
				}
			}
		})
	}
}

// Whatever servers and users say stays text.
func TestPageEscapes(t *testing.T) {
	const evil = `</script></style><script>alert(1)</script><img src=x onerror=alert(2)>"'` + "`${alert(3)}"
	run := serving(2000)
	run.Target.Model, run.Target.Spec, run.Target.API = evil, "http://"+evil, evil
	run.Target.Server = map[string]string{"engine": evil, evil: evil}
	run.Notes = map[string]string{evil: evil}
	run.Command = []string{"pitot", evil}
	run.Environment.CPU = evil
	p := &run.Points[0]
	p.Requests = result.Requests{Due: 2000, OK: 1999, Failed: 1, Errors: map[string]int{evil: 1}, Finish: map[string]int{evil: 1999}, ErrorExamples: map[string]string{evil: evil}}
	p.SLO = &result.SLO{Spec: evil, Met: "no", Attained: float(.5), Limits: []result.Limit{{Spec: evil, Metric: "ttft", Limit: 5, Met: "no", Attained: float(.5)}, {Spec: evil, Metric: "e2e", Limit: 5, Met: "no"}}}
	p.Checks[0] = result.Check{Name: evil, Status: result.Flag, Unit: evil, Case: evil, Prose: &result.Prose{Value: evil, Limit: evil, Advice: evil}}
	p.Classes = map[string]result.Class{evil: {}, "other": {}}
	s := &Series{Bin: 1, To: 1, End: 1, Due: []float64{1}, Errors: map[string]Dots{evil: {X: []float64{1}, Y: []float64{1}, Of: 1}},
		Spread: map[string]Spread{"ttft_ms": {Value: []float64{1, 2}, Share: []float64{.5, 1}, N: 2}},
		Slow:   Traces{Wanted: 1, Requests: []Trace{{Outcome: record.Failed, Error: evil, Chunks: []int64{1}}}}}
	got := page(t, run, Page{Series: []*Series{s}, Missing: []string{evil}, Config: evil})
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
	got := page(t, serving(2000), Page{})
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
	none := serving(100)
	none.Points[0].Requests = result.Requests{Due: 100, Failed: 100, Errors: map[string]int{"refused": 100}}
	none.Points[0].Metrics = result.Metrics{}
	none.Points[0].Throughput = result.Throughput{Why: "nothing was answered"}
	none.Points[0].Outcome = "failing"
	bare := &result.Run{Schema: result.Schema, Points: []result.Point{{}}}
	for name, c := range map[string]struct {
		run  *result.Run
		page Page
		say  string
	}{
		"no records":  {serving(2000), Page{Missing: []string{"the records are gone"}}, "the records are gone"},
		"no points":   {&result.Run{Schema: result.Schema}, Page{}, "Nothing was measured"},
		"no series":   {serving(2000), Page{Series: []*Series{empty}}, "Nothing to draw"},
		"not numbers": {serving(2000), Page{Series: []*Series{odd}}, "Distributions"},
		"no success":  {none, Page{Series: []*Series{empty}}, "none of 100 requests was answered"},
		"nothing":     {bare, Page{Series: []*Series{nil}}, "no request came due"},
	} {
		t.Run(name, func(t *testing.T) {
			got := readable(page(t, c.run, c.page))
			if !strings.Contains(got, c.say) {
				t.Errorf("does not say %q: %s", c.say, got)
			}
		})
	}
}

// What nobody told is not guessed.
func TestConditions(t *testing.T) {
	m := Build(serving(2000), "")
	got := map[string]Condition{}
	for _, c := range m.Conditions {
		got[c.Name] = c
	}
	for _, name := range []string{"Hardware", "GPUs", "Precision", "Engine flags", "Price"} {
		if c := got[name]; c.Known || c.Value != notKnown {
			t.Errorf("%s: %q, want %q", name, c.Value, notKnown)
		}
	}
	if c := got["Engine"]; c.Value != "vllm 0.11.2" {
		t.Errorf("engine: %q", c.Value)
	}
	run := serving(2000)
	run.Notes = map[string]string{"gpu": "H100 SXM", "precision": "fp8", "flags": "--tensor-parallel-size 2"}
	for _, c := range Build(run, "").Conditions {
		switch c.Name {
		case "Hardware", "Precision", "Engine flags":
			if !c.Known {
				t.Errorf("%s is in the notes", c.Name)
			}
		}
	}
}

// A curve that does not bend is no sweep that went wrong.
func TestClaimOfStraightCurve(t *testing.T) {
	run := serving(2000)
	second := run.Points[0]
	rate := 2 * *second.Load.Rate
	second.Load.Rate = &rate
	run.Points = append(run.Points, second)
	run.Curve = &result.Curve{Over: "rate", Points: []int{0, 1}, NoKnee: "the curve does not bend enough"}
	if got, want := Build(run, "").Claim.Sentence, "From 4.5 to 9 req/s there is neither a knee nor a saturation."; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	run.Curve.UnstableFrom = &rate
	if got, want := Build(run, "").Claim.Sentence, "From 9 req/s on the queue grows for as long as the load lasts."; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
