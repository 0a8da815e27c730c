package page_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"pitot/internal/analysis/compare"
	"pitot/internal/capacity"
	"pitot/internal/metrics"
	"pitot/internal/metrics/validity"
	"pitot/internal/report"
	"pitot/internal/report/export"
	"pitot/internal/report/page"
	"pitot/internal/results/metric"
	"pitot/internal/results/record"
	"pitot/internal/results/result"
	"pitot/internal/results/result/resulttest"
	"pitot/internal/slo"
)

// slack is a metric that the catalogue does not have: one entry, and one function.
var slack = &metric.Metric{
	Name: "slack", Key: "slack_ms", Label: "slack", Help: "half of what an answer takes behind its first token",
	Unit: metric.Milliseconds, Better: metric.Lower, Stream: true, Steady: true, Limit: true, Show: metric.Headline, Compared: []string{"p50", "p99"},
}

func takeSlack(q *metrics.Request, until int64) (float64, metrics.State) {
	ns, is := q.Generation(until)
	return ns / 2, is
}

// hop and asked are metrics of gaps and of the window, prompts is one that the server
// tells.
func further() (definitions []metrics.Definition, signals []metric.Signal) {
	hop := &metric.Metric{Name: "hop", Key: "hop_ms", Label: "hop", Help: "gaps between arrivals", Of: metric.Gap, Unit: metric.Milliseconds, Better: metric.Lower, Stream: true, Show: metric.Row}
	asked := &metric.Metric{Name: "asked tok/s", Key: "window.asked_tokens_per_s", Label: "asked", Help: "tokens of the prompts that came due", Of: metric.Window, Unit: metric.TokensPerS}
	prompts := &metric.Metric{Name: "prompts", Key: "server.prompts", Label: "prompts", Help: "prompts that the server read", Of: metric.Server, Unit: metric.Count}
	return []metrics.Definition{
			{Metric: hop, Gaps: func(_ *metrics.Stream, r *record.Row, take func(int64, metrics.State)) {
				take(r.LastToken-r.FirstToken, metrics.Known)
			}},
			{Metric: asked, Count: func(_ *metrics.Stream, r *record.Row, window *validity.Conditions) int64 {
				if !window.InWindow(r.Due) {
					return 0
				}
				return int64(r.PromptTokens)
			}},
		}, []metric.Signal{
			{Metric: prompts, From: "prompts", Combine: metric.Growth},
		}
}

// withSlack is the catalogue with it.
func withSlack() metric.Catalogue { return append(metric.All(), slack) }

// sent is a request that is due at a time and answered with three events.
func sent(id, due, first, rest int64) record.Frame {
	r := record.BlankRow()
	r.ID, r.Stream = id, true
	r.Due, r.Eligible, r.Ready, r.Sent = due, due, due, due
	r.FirstToken, r.FirstAnswer = due+first, due+first
	r.LastToken, r.Done = due+first+rest, due+first+rest
	r.PromptTokens, r.CompletionTokens, r.Chunks, r.Arrivals, r.Finish, r.Status = 100, 3, 3, 3, "length", 200
	f := record.Frame{Rows: []record.Row{r}}
	for _, at := range []int64{r.FirstToken, r.FirstToken + rest/2, r.LastToken} {
		f.Chunks = append(f.Chunks, record.Chunk{Request: id, T: at, Earliest: at, Tokens: 1})
	}
	return f
}

// measured is a run of some points whose answers take longer by a factor.
func measured(t *testing.T, launch int, points int, factor float64) (*result.Run, *metrics.Fold) {
	t.Helper()
	grammar := slo.Grammar{Metrics: withSlack()}
	objective, err := grammar.Parse("p99 slack<5s")
	if err != nil {
		t.Fatal(err)
	}
	run := &result.Run{
		Schema: result.Schema, Command: []string{}, Started: "2026-11-20T23:48:00Z", Ended: fmt.Sprintf("2026-11-20T23:49:%02dZ", launch),
		Environment: result.Environment{Stamps: "virtual"}, Target: result.Target{Kind: "sim", Model: "m", Server: map[string]string{}},
		Workload: json.RawMessage(`{"kind":"random","sampling":{}}`), Notes: map[string]string{}, Launch: fmt.Sprint(launch), Verdict: result.Valid,
	}
	var fold *metrics.Fold
	more, signals := further()
	for k := range points {
		rate := 10 * float64(k+1)
		const seconds = 60
		n := int64(rate * seconds)
		fold = metrics.NewFold(metrics.Setup{
			T1: seconds * 1e9, Stamps: "virtual", Load: result.Load{Loop: "open", Rate: &rate, Arrival: "constant"}, Residence: 200e6, SLO: objective,
			Metrics: append(append(metrics.Definitions(), metrics.Definition{Metric: slack, Request: takeSlack}), more...), Signals: append(metric.FromSignals(), signals...),
		})
		sample := func(at int64, x float64) {
			fold.Add(record.Frame{Samples: []record.Sample{
				{T: at, Source: record.SourceServer, Name: "prompts", Value: x},
				{T: at, Source: record.SourceServer, Name: "queue_s_sum", Value: x / 1e3 * factor * (1 + .01*float64(launch))}, {T: at, Source: record.SourceServer, Name: "queue_s_count", Value: x / 7},
			}})
		}
		sample(0, 1000)
		sample(seconds*1e9, 1000+float64(n))
		chance := rand.New(rand.NewPCG(uint64(launch), uint64(k)))
		for i := range n {
			jitter := factor * (1 + .1*chance.Float64() + .01*float64(launch))
			fold.Add(sent(i, i*int64(1e9/rate), int64(50e6*jitter), int64(100e6*jitter)))
		}
		run.Points = append(run.Points, fold.Point())
	}
	return run, fold
}

// A metric is one entry and one function: it stands in run.json and its schema,
// in every report and table, in comparisons and baselines, and can be limited
// and watched.
func TestMetricIsOneEntryAndOneFunction(t *testing.T) {
	run, fold := measured(t, 1, 1, 1)
	p := &run.Points[0]
	s := p.Metrics.SummaryOf("slack")
	if s == nil || s.N != 600 || s.P50 == nil || s.P99 == nil || *s.P50 < 50 || *s.P50 > 56 {
		t.Fatalf("%+v", s)
	}
	if l := p.SLO.Limits[0]; l.Metric != "slack" || l.Value == nil || *l.Value != *s.P99 || l.Met != result.Yes {
		t.Errorf("--slo: %+v", l)
	}
	if _, err := slo.Parse("p99 slack<5s"); err == nil {
		t.Error("the catalogue has it")
	}
	want, err := slo.Grammar{Metrics: withSlack()}.ParsePrecision("p50 slack +-5%")
	if err != nil {
		t.Fatal(err)
	}
	if percent, why := fold.Precision(want); !why.IsNone() || percent <= 0 || percent > 5 {
		t.Errorf("--until: %g, %v", percent, why)
	}

	if hop := p.Metrics.SummaryOf("hop"); hop == nil || hop.N != 600 || hop.P50 == nil || *hop.P50 < 100 || *hop.P50 > 112 {
		t.Errorf("of gaps: %+v", hop)
	}
	if p.Window["asked_tokens_per_s"] != 1000 || p.Server["prompts"] != 600 || math.Abs(p.Server["queue_ms"]-7.07) > 1e-9 {
		t.Errorf("of the window: %v, of the server: %v", p.Window, p.Server)
	}

	text, err := json.MarshalIndent(run, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	contract := func(schema string) error {
		doc, err := jsonschema.UnmarshalJSON(strings.NewReader(schema))
		if err != nil {
			t.Fatal(err)
		}
		c := jsonschema.NewCompiler()
		if err := c.AddResource("run.json", doc); err != nil {
			t.Fatal(err)
		}
		compiled, err := c.Compile("run.json")
		if err != nil {
			t.Fatal(err)
		}
		v, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		return compiled.Validate(v)
	}
	more, _ := further()
	schema, err := os.ReadFile("../../results/result/schema.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := contract(resulttest.SchemaOf(string(schema), append(withSlack(), more[0].Metric))); err != nil {
		t.Errorf("schema: %v", err)
	}
	if contract(string(schema)) == nil {
		t.Error("the schema of the catalogue knows it")
	}

	faces := map[string]string{"run.json": string(text)}
	show := func(name string, write func(b *bytes.Buffer) error) {
		var b bytes.Buffer
		if err := write(&b); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		faces[name] = b.String()
	}
	model := report.Build(run, "")
	show("terminal", func(b *bytes.Buffer) error { return model.WriteTerminal(b, report.Style{Full: true}) })
	show("Markdown", func(b *bytes.Buffer) error { return model.WriteMarkdown(b) })
	show("page", func(b *bytes.Buffer) error { return page.Write(b, model, page.Extra{}) })
	show("CSV", func(b *bytes.Buffer) error { return export.CSV(b, run) })
	curve, _ := measured(t, 1, 3, 1)
	curve.Curve = &result.Curve{Over: "rate", Points: []int{0, 1, 2}, NoKnee: result.Reason{Code: result.FewLoads, Needed: 5}}
	sweep := report.Build(curve, "")
	show("page of a sweep", func(b *bytes.Buffer) error { return page.Write(b, sweep, page.Extra{}) })
	show("Markdown of a sweep", func(b *bytes.Buffer) error { return sweep.WriteMarkdown(b) })
	for name, has := range map[string]string{
		"run.json": `"slack_ms": {`, "terminal": "\nslack ", "Markdown": "| slack |", "page": "slack</th>", "CSV": "slack_ms_p99_9",
		"page of a sweep": "slack over load", "Markdown of a sweep": "slack p50",
	} {
		if !strings.Contains(faces[name], has) {
			t.Errorf("%s has no %q", name, has)
		}
	}
	for name, has := range map[string]string{
		"run.json": `"asked_tokens_per_s": 1000`, "terminal": "\nWhole load: server queue 7.07 ms on average\n", "Markdown": "- Whole load: server queue 7.07 ms on average\n", "page": "<li>Whole load: server queue 7.07 ms on average</li>",
		"CSV": ",server_prompts,window_asked_tokens_per_s\n",
	} {
		if !strings.Contains(faces[name], has) {
			t.Errorf("%s has no %q", name, has)
		}
	}

	repeated, _ := measured(t, 2, 1, 1)
	if r := capacity.SummarizeRepeats(append(repeated.Points, run.Points...)); r.Median["server.queue_ms"] == 0 || r.Median["slack_ms.p50"] == 0 || r.Spread["slack_ms.p99"] == [2]float64{} {
		t.Errorf("repeats: %+v", r)
	}

	var sides []compare.Side
	for _, x := range []struct {
		name   string
		factor float64
	}{{"before", 1}, {"after", 1.5}} {
		side := compare.Side{Name: x.name}
		for launch := range 5 {
			run, _ := measured(t, launch, 1, x.factor)
			side.Runs = append(side.Runs, compare.Source{Path: fmt.Sprint(x.name, launch), Run: run})
		}
		sides = append(sides, side)
	}
	primary, err := compare.ParsePrimary("server queue")
	if err != nil {
		t.Fatal(err)
	}
	c, err := compare.Compare(sides, compare.Options{Within: .05, Primary: primary})
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]string{}
	for _, r := range c.Pairs[0].Rows {
		rows[r.Metric] = r.Verdict
	}
	if rows["server queue"] != compare.Slower || rows["p50 slack"] != compare.Slower || rows["p99 slack"] != compare.Slower {
		t.Errorf("compare: %v", rows)
	}
	b, err := compare.NewBaseline(sides[:1])
	if err != nil {
		t.Fatal(err)
	}
	data, err := b.JSON()
	if err != nil || !bytes.Contains(data, []byte(`"slack_ms":{`)) {
		t.Errorf("baseline: %v", err)
	}
	path := filepath.Join(t.TempDir(), "baseline.json")
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
	read, err := compare.ReadSide(path)
	if err != nil {
		t.Fatal(err)
	}
	// A program without the entry keeps it under its key.
	if s := read.Runs[0].Run.Points[0].Metrics.SummaryOf("slack_ms"); s == nil || s.P50 == nil {
		t.Error("it is lost in a baseline")
	}
	if p := read.Runs[0].Run.Points[0]; p.Server["prompts"] != 600 || p.Window["asked_tokens_per_s"] != 1000 {
		t.Error("what the server told is lost in a baseline")
	}
}
