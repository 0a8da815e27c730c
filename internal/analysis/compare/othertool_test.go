package compare

import (
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"pitot/internal/analysis/tools"
	"pitot/internal/results/metric"
	"pitot/internal/results/result"
	"pitot/internal/say"
)

const vllm = "vllm bench serve"

// toolPoint is what another tool says of 1,000 requests with times around x.
func toolPoint(x float64) tools.ReportedPoint {
	around := func(x float64) *tools.Summary {
		return &tools.Summary{What: "as it means it", Mean: ptr(x), Percentiles: map[string]float64{"p50": 0.9 * x, "p99": 2 * x}}
	}
	return tools.ReportedPoint{
		OK: ptr(990.), Failed: ptr(10.), RequestsPerS: ptr(1e3 / x), OutputTokensPerS: ptr(1e5 / x),
		TTFT: around(x), TPOT: around(x / 5), ITL: around(x / 5), E2E: around(9 * x),
	}
}

func atRate(rate, x float64) tools.ReportedPoint {
	p := toolPoint(x)
	p.Rate = &rate
	return p
}

// other is a side of one file of a tool, vLLM's unless it is named. Without a
// point its one does not say its load.
func other(name, tool string, points ...tools.ReportedPoint) Side {
	if tool == "" {
		tool = vllm
	}
	if len(points) == 0 {
		points = []tools.ReportedPoint{toolPoint(100)}
	}
	return Side{Name: name, Others: []*tools.Result{{Tool: tool, Version: "0.32", File: name + ".json", Points: points}}}
}

// served adds to runs what other tools measure alike.
func (s Side) served() Side {
	return s.edit(0, func(p *result.Point) {
		x := *p.Metrics.SummaryOf(metric.TTFT).Mean
		p.Metrics.SetSummary(metric.ServiceTTFT, spread(x-1))
		p.Metrics.SetSummary(metric.ServiceE2E, spread(9*x-1))
		p.Metrics.SetSummary(metric.TPOTn1, spread(x/5+1))
	})
}

func rowNames(p *Pair) (out []string) {
	for _, r := range p.Rows {
		out = append(out, r.Metric)
	}
	return out
}

func why(p *Pair, metric string) string {
	for _, l := range p.Left {
		if l.Metric == metric {
			return l.Why
		}
	}
	return ""
}

// What both define alike is laid side by side, and nothing of it is tested.
func TestOtherTool(t *testing.T) {
	old, runs := other("old", "", atRate(8, 100)), side("new", 8, times(steady, 2)...).served()
	named := clauses(t, "p99 ttft slower by 5%, req/s lower, errors worse, capacity lower")
	for _, sides := range [][]Side{{old, runs}, {runs, old}} {
		c := mustCompare(t, Options{Clauses: named}, sides...)
		p := &c.Pairs[0]
		want := []string{"mean service ttft", "p50 service ttft", "p99 service ttft", "mean tpot_n1", "p50 tpot_n1", "p99 tpot_n1", "mean service e2e", "p50 service e2e", "p99 service e2e", "req/s", "output tok/s", "errors"}
		if d := cmp.Diff(want, rowNames(p)); d != "" || len(c.Pairs) != 1 {
			t.Errorf("%s", d)
		}
		for _, r := range p.Rows {
			if r.Verdict != OtherInstrument || r.CI95 != nil || r.P != nil || r.Instruments == nil || r.NoInterval.IsNone() || r.Why.IsNone() || r.Needed != nil {
				t.Errorf("%s: %+v", r.Metric, r)
			}
		}
		if r := p.row("mean service ttft"); sides[0].Name == "old" && (r.A != 100 || math.Abs(r.B-199) > 2 || math.Abs(r.Change-(r.B/r.A-1)) > 1e-9) {
			t.Errorf("%+v", r)
		}
		if got := p.Instruments; !slices.Contains(got[:], vllm) || !slices.Contains(got[:], Pitot) || !p.HasOtherInstrument() || *p.Load.Rate != 8 || p.What != "open loop, poisson, 8/s" {
			t.Errorf("%+v", p)
		}
		if !strings.HasPrefix(c.Warnings[0], "old (vllm bench serve 0.32) was measured by another instrument: its error is not known") {
			t.Errorf("%q", c.Warnings)
		}
		for _, o := range c.Clauses {
			if o.State != NotJudged || !strings.Contains(o.Why, "old was measured by vllm bench serve, whose files do not have its error") {
				t.Errorf("%+v", o)
			}
		}
		if !c.NotJudged() || c.Verdicts[0].Word != OtherInstrument || c.Verdicts[0].Why == "" || c.Corrected != 0 {
			t.Errorf("%+v", c.Verdicts)
		}
		if why(p, "itl") != "vllm bench serve means as it means it" {
			t.Errorf("%+v", p.Left)
		}
	}
}

// A third side of another tool changes nothing between the others, but that a
// condition on all of them cannot be judged.
func TestOtherToolTwo(t *testing.T) {
	a, b := side("a", 8, steady...).served(), side("b", 8, times(steady, 1.3)...).served()
	o := Options{Clauses: clauses(t, "errors worse by 1%, p99 ttft slower by 5%")}
	two, three := mustCompare(t, o, a, b), mustCompare(t, o, a, b, other("old", "", atRate(8, 100)))
	if d := cmp.Diff(two.Pairs, three.Pairs[:1], cmpopts.IgnoreUnexported(Pair{}, Row{}, Left{})); d != "" || len(three.Pairs) != 2 {
		t.Error(d)
	}
	if two.Corrected != three.Corrected || three.Verdicts[0].Word != Slower || three.Verdicts[1].Word != OtherInstrument {
		t.Errorf("%+v", three.Verdicts)
	}
	if two.Clauses[0].State != RuledOut || three.Clauses[0].State != NotJudged || three.Clauses[1].State != Fired {
		t.Errorf("%+v", three.Clauses)
	}
	if len(three.Differences) == 0 || three.Differences[0].What != "instrument" || len(three.Differences[0].Values) != 3 {
		t.Errorf("%+v", three.Differences)
	}
}

// Files are launches at most: many of them are no sample.
func TestManyFiles(t *testing.T) {
	many := func(name string, f float64) Side {
		s := Side{Name: name}
		for i, x := range times(steady, f) {
			r := other(fmt.Sprint(name, i), "", atRate(8, x), atRate(8, x)).Others[0]
			s.Others = append(s.Others, r)
		}
		return s
	}
	o := Options{Clauses: clauses(t, "req/s lower by 1%")}
	for _, c := range []*Comparison{mustCompare(t, o, many("a", 1), many("b", 2)), mustCompare(t, o, side("a", 8, steady...).served(), many("b", 2))} {
		p := &c.Pairs[0]
		if r := p.row("req/s"); p.Launches != [2]int{6, 6} || r.Verdict != OtherInstrument || r.CI95 != nil || math.Abs(r.Change+0.5) > 1e-9 || c.Clauses[0].State != NotJudged {
			t.Errorf("%+v, %+v", r, c.Clauses)
		}
	}
}

// What tools mean by a name decides.
func TestMeanings(t *testing.T) {
	runs := side("runs", 8, 100).served()
	vllms, guide := other("v", "", atRate(8, 100)), other("g", "guidellm", atRate(8, 100))
	guide.Others[0].Points[0].TPOT.What, guide.Others[0].Points[0].ITL.What = "it includes TTFT", "the mean of a request"
	sglang := other("s", "sglang bench_serving", atRate(8, 100))
	silent := other("q", "", atRate(8, 100))
	silent.Others[0].Points[0].E2E = nil
	for name, c := range map[string]struct {
		a, b Side
		row  string
		left map[string]string
	}{
		"GuideLLM's TPOT":    {runs, guide, "mean service ttft", map[string]string{"tpot": "guidellm means it includes TTFT", "itl": "guidellm means the mean of a request"}},
		"of GuideLLM's own":  {guide, other("h", "guidellm", guide.Others[0].Points...), "p99 tpot", nil},
		"of vLLM's own":      {vllms, silent, "p99 itl", map[string]string{"service e2e": "q does not have it"}},
		"alike in two tools": {vllms, sglang, "p99 itl", nil},
		"not alike":          {guide, vllms, "p99 service e2e", map[string]string{"tpot": "guidellm means it includes TTFT", "itl": "guidellm means the mean of a request; vllm bench serve means as it means it"}},
	} {
		p := &mustCompare(t, Options{}, c.a, c.b).Pairs[0]
		if p.row(c.row) == nil {
			t.Errorf("%s: no %s in %q", name, c.row, rowNames(p))
		}
		for metric, want := range c.left {
			if got := why(p, metric); got != want {
				t.Errorf("%s: %s: %q, want %q", name, metric, got, want)
			}
		}
		if c.left == nil && len(p.Left) > 0 {
			t.Errorf("%s: %+v", name, p.Left)
		}
	}
}

// Loads are paired by what a file tells, and refused where they differ.
func TestAskedLoads(t *testing.T) {
	users := func(n float64, ok float64) tools.ReportedPoint {
		p := toolPoint(100)
		p.Concurrency, p.OK, p.Failed = &n, &ok, ptr(0.)
		return p
	}
	capped := atRate(8, 100)
	capped.Concurrency = ptr(4.)
	flood := func(ok float64) tools.ReportedPoint {
		p := toolPoint(100)
		p.Unlimited, p.OK, p.Failed = true, &ok, ptr(0.)
		return p
	}
	closed := func(n, due int, think *float64) Side {
		return side("b", 8, 100).served().edit(0, func(p *result.Point) {
			p.Load, p.Requests = result.Load{Loop: "closed", Concurrency: &n, ThinkMS: think}, result.Requests{Due: due, OK: due}
		})
	}
	for name, c := range map[string]struct {
		a, b       Side
		want, note string // of the pair, or of the error and its hint
	}{
		"users":              {other("a", "", users(4, 500)), closed(4, 900, nil), "closed loop, 4 users", "no verdict"},
		"others' users":      {other("a", "", users(4, 500)), other("b", "aiperf", users(4, 500)), "closed loop, 4 users", "no verdict"},
		"all at once":        {other("a", "", flood(50)), closed(50, 50, nil), "closed loop, 50 users", "no verdict"},
		"as users":           {other("a", "", flood(50)), other("b", "", users(50, 50)), "all 50 requests at once", "no verdict"},
		"not as many":        {other("a", "", flood(50)), other("b", "", flood(60)), "no load in common: a has all 50 requests at once; b has all 60 requests at once", "--concurrency 50 --requests 50"},
		"not at once":        {other("a", "", flood(50)), closed(50, 900, nil), "no load in common", "--concurrency 50 --requests 50"},
		"with pauses":        {other("a", "", users(4, 500)), closed(4, 900, ptr(5.)), "thinking 5 ms", "--concurrency 4"},
		"a limit":            {other("a", "", capped), side("b", 8, 100).served(), "open loop, poisson, 8/s", "a has at most 4 in flight, b has no limit in flight"},
		"another rate":       {other("a", "", atRate(9, 100)), side("b", 8, 100).served(), "a has open loop, 9/s; b has open loop, poisson, 8/s", "--rate 9"},
		"not told":           {other("a", ""), side("b", 8, 100).served(), "open loop, poisson, 8/s", "a does not say its load: whether it was the same is not known"},
		"told by nobody":     {other("a", ""), other("b", "aiperf"), "a load that is not reported", "b does not say its load"},
		"two not told":       {other("a", "", toolPoint(100), toolPoint(90)), side("b", 8, 100).served(), "a has a load that is not reported, a load that is not reported; b has", "pitot report"},
		"told and not told":  {other("a", "", toolPoint(100)), other("b", "", atRate(8, 1), atRate(9, 1)), "no load in common", "--rate 8"},
		"many with some one": {other("a", "", atRate(9, 1), atRate(8, 1), users(4, 500)), side("b", 8, 100).served(), "open loop, poisson, 8/s", "no verdict"},
	} {
		got, err := Compare([]Side{c.a, c.b}, Options{Within: 0.05})
		if err != nil {
			if !strings.Contains(err.Error(), c.want) || !strings.Contains(say.HintOf(err), c.note) {
				t.Errorf("%s: %v (%s)", name, err, say.HintOf(err))
			}
			continue
		}
		p := &got.Pairs[0]
		if p.What != c.want || len(got.Pairs) != 1 || !slices.ContainsFunc(p.Notes, func(n string) bool { return strings.Contains(n, c.note) }) {
			t.Errorf("%s: %q, %q", name, p.What, p.Notes)
		}
		if name == "many with some one" && !slices.Contains(got.Warnings, "only a was measured at open loop, 9/s; closed loop, 4 users") {
			t.Errorf("%q", got.Warnings)
		}
	}
	search := runOf("1")
	search.Capacity = &result.Capacity{Over: "rate", SLO: "p99 ttft<1s", Estimate: ptr(8.)}
	_, err := Compare([]Side{other("a", "", atRate(8, 1)), {Name: "b", Runs: []Source{{"b", search}}}}, Options{Within: 0.05})
	if err == nil || !strings.Contains(err.Error(), "a has points, and b has the capacity under p99 ttft<1s") {
		t.Errorf("%v", err)
	}
}

// What the numbers of a file do not support is withheld, as Pitot's own are.
func TestOtherToolWithout(t *testing.T) {
	runs := side("b", 8, 100).served()
	few := atRate(8, 100)
	few.OK, few.Failed = ptr(60.), nil
	p := &mustCompare(t, Options{}, other("a", "sglang bench_serving", few), runs).Pairs[0]
	if got := why(p, "p99 service ttft"); got != "a: n = 60, shown from 100 on" {
		t.Errorf("%q", got)
	}
	if r := p.row("p50 service ttft"); r == nil || r.Few {
		t.Errorf("%+v", r)
	}
	if got := why(p, failures); got != "a: not reported" {
		t.Errorf("%q", got)
	}
	some := atRate(8, 100)
	some.OK, some.Incomplete, some.GoodPerS = ptr(600.), ptr(3.), ptr(2.)
	p = &mustCompare(t, Options{}, other("a", "", some), runs).Pairs[0]
	if r := p.row("p99 service ttft"); r == nil || !r.Few {
		t.Errorf("%+v", r)
	}
	if why(p, failures) != "a: the tool itself cut requests off" || why(p, goodput) != "a does not have the limits" {
		t.Errorf("%+v", p.Left)
	}
	nothing := atRate(8, 100)
	nothing.TTFT, nothing.TPOT, nothing.ITL, nothing.E2E, nothing.OK, nothing.RequestsPerS = nil, nil, nil, nil, ptr(0.), ptr(0.)
	p = &mustCompare(t, Options{}, other("a", "", nothing), runs).Pairs[0]
	if got := rowNames(p); !slices.Equal(got, []string{outputRate, failures}) || why(p, requestRate) != "zero on side a" {
		t.Errorf("%q, %+v", got, p.Left)
	}
	c := mustCompare(t, Options{}, other("a", "", atRate(8, 100)), side("b", 8, 100).served().edit(0, func(p *result.Point) { p.Stability = "unstable" }))
	if p := c.Pairs[0]; len(p.Rows) > 0 || !strings.HasPrefix(p.Why, "unstable in b") || c.Verdicts[0].Word != NotCompared {
		t.Errorf("%+v", p)
	}
	c = mustCompare(t, Options{}, other("a", "", atRate(8, 100)), side("b", 8, 100)) // of an old baseline
	if got := why(&c.Pairs[0], "p50 service ttft"); !strings.Contains(got, "not kept") {
		t.Errorf("%q", got)
	}
}

// What Pitot wrote in a tool's format says so, with its verdict.
func TestByPitot(t *testing.T) {
	own := other("own", "", atRate(8, 100))
	own.Others[0].By, own.Others[0].Points[0].Verdict = "pitot 1.0", result.Valid
	c := mustCompare(t, Options{}, own, other("old", "", atRate(8, 100)))
	if c.Warnings[1] != "own holds what pitot 1.0 VALID measured, by the definitions of vllm bench serve: name the run itself for verdicts" || c.Pairs[0].Instruments != [2]string{"pitot as " + vllm, vllm} {
		t.Errorf("%q, %q", c.Warnings, c.Pairs[0].Instruments)
	}
	own.Others[0].Points[0].Verdict = result.Invalid
	c = mustCompare(t, Options{}, own, side("b", 8, 100).served())
	if p := c.Pairs[0]; p.Why != "every point of own is INVALID" || len(p.Rows) > 0 {
		t.Errorf("%+v", p)
	}
}

func TestOtherToolTokens(t *testing.T) {
	old := other("old", "", atRate(8, 100))
	old.Others[0].Model = "another"
	p := &mustCompare(t, Options{}, old, side("new", 8, 100).served()).Pairs[0]
	if p.row(outputRate) != nil || p.row("mean tpot_n1") != nil || !strings.Contains(why(p, "tpot_n1"), "another and m: tokens may not be the same") {
		t.Errorf("%q, %+v", rowNames(p), p.Left)
	}
	if p := &mustCompare(t, Options{Tokenizers: true}, old, side("new", 8, 100).served()).Pairs[0]; p.row(outputRate) == nil || p.row("mean tpot_n1") == nil {
		t.Errorf("%+v", p.Left)
	}
}

// Only what a file tells can differ.
func TestOtherToolDifferences(t *testing.T) {
	old, runs := other("old", "", atRate(8, 100)), side("new", 8, 100).served()
	old.Others[0].Dataset, old.Others[0].Points[0].OutputTokens = "sharegpt", ptr(990*50.)
	runs.Runs[0].Run.Points[0].Metrics.SetSummary(metric.OutputTokens, &result.Summary{N: 10, Mean: ptr(64.)})
	var got []string
	for _, d := range mustCompare(t, Options{}, old, runs).Differences {
		got = append(got, fmt.Sprintf("%s %q", d.What, d.Values))
	}
	want := []string{`instrument [["vllm bench serve 0.32"] ["pitot"]]`, `workload [["sharegpt"] ["512 tokens in, 64 out"]]`, `answers, mean tokens [["50"] ["64"]]`, `requests a load, mean [["1000"] ["20000"]]`}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

const (
	vllmFile   = `{"num_prompts":10,"request_rate":8,"completed":10,"failed":0,"request_throughput":4,"output_throughput":40,"mean_ttft_ms":52.1,"median_ttft_ms":50,"p99_ttft_ms":71}`
	vllmSecond = `{"num_prompts":10,"request_rate":8,"completed":10,"failed":0,"request_throughput":5,"output_throughput":50,"mean_ttft_ms":42.1}`
	sglangFile = `{"dataset_name":"random","request_rate":8,"completed":10,"request_throughput":4,"mean_ttft_ms":52.1}`
)

func TestReadOthers(t *testing.T) {
	write(t, map[string]string{
		"old.json": vllmFile, "copy.json": vllmFile, "second.json": vllmSecond, "old/1.json": vllmFile, "old/2.jsonl": vllmSecond, "old/log.txt": "x",
		"some/1.json": vllmFile, "some/half.json": vllmFile[:50], "bad/half.json": vllmFile[:50], "new/run.json": runJSON(t, "1"),
		"mixed/run/run.json": runJSON(t, "1"), "mixed/export.json": vllmFile, "tools/1.json": vllmFile, "tools/2.json": sglangFile, "sglang.jsonl": sglangFile,
		"by.json": strings.Replace(vllmFile, "{", `{"measured_by":"pitot 1","pitot_verdict":"VALID",`, 1), "run.json": `{"points": [`,
	})
	for arg, want := range map[string]string{
		"old.json": "old.json: old.json", "old": "old: old/1.json old/2.jsonl", "a=old.json,second.json": "a: old.json second.json", "b=old/1.json,second.json": "b: old/1.json second.json",
		"some": "some: some/1.json", "mixed": "mixed:", "./old/": "old: old/1.json old/2.jsonl",
	} {
		s, err := ReadSide(arg)
		got := s.Name + ":"
		for _, r := range s.Others {
			got += " " + filepath.ToSlash(r.File)
		}
		if err != nil || got != want {
			t.Errorf("%s: %s, %v", arg, got, err)
		}
		if (arg == "some") != (len(s.left) == 1) || (arg == "mixed") != (len(s.Runs) == 1) {
			t.Errorf("%s: %q, %d runs", arg, s.left, len(s.Runs))
		}
	}
	for arg, want := range map[string][2]string{
		"a=old.json,new":          {"side a mixes instruments: new is a run of Pitot, old.json is of vllm bench serve", "pitot compare new old.json"},
		"a=old.json,sglang.jsonl": {"side a mixes instruments: old.json is of vllm bench serve, sglang.jsonl of sglang bench_serving", "a side of each"},
		"a=old.json,by.json":      {"side a mixes instruments", "a side of each"},
		"tools":                   {"side tools mixes instruments", "a side of each"},
		"a=old.json,./old.json":   {"side a names old.json twice", "counts once"},
		"a=old.json,copy.json":    {"side a names copy.json twice", "counts once"},
		"bad":                     {"bad holds no run, and no result of another tool: read result bad/half.json: it is cut off", "stopped"},
		"run.json":                {"run.json is damaged", "pitot report"},
	} {
		_, err := ReadSide(arg)
		if err == nil || !strings.Contains(filepath.ToSlash(err.Error()), want[0]) || !strings.Contains(filepath.ToSlash(say.HintOf(err)), want[1]) {
			t.Errorf("%s: %v (%s)", arg, err, say.HintOf(err))
		}
	}
	read := func(arg string) Side {
		s, err := ReadSide(arg)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	if _, err := NewBaseline([]Side{read("new"), read("old")}); err == nil || !strings.Contains(err.Error(), "old was measured by vllm bench serve: a baseline holds runs of Pitot") || say.HintOf(err) == "" {
		t.Errorf("%v", err)
	}
	c := mustCompare(t, Options{}, read("some"), read("a=copy.json"))
	if !slices.Contains(c.Warnings, "some and a have a result in common") || !slices.ContainsFunc(c.Warnings, func(w string) bool { return strings.HasPrefix(w, "left out of some: ") }) {
		t.Errorf("%q", c.Warnings)
	}
}

// Whatever files say, it can be laid side by side and written.
func TestOtherToolAlways(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		number := func(name string) *float64 {
			return rapid.Ptr(rapid.OneOf(rapid.Float64(), rapid.Float64Range(0, 10), rapid.Just(0.)), true).Draw(t, name)
		}
		summary := func(name string) *tools.Summary {
			if !rapid.Bool().Draw(t, name) {
				return nil
			}
			s := &tools.Summary{What: rapid.String().Draw(t, name), Mean: number(name), N: number(name), Percentiles: map[string]float64{}}
			if x := number(name); x != nil {
				s.Percentiles["p99"] = *x
			}
			return s
		}
		draw := func(name string) Side {
			s := other(name, rapid.SampledFrom([]string{vllm, "guidellm", "aiperf"}).Draw(t, name))
			s.Others[0].Points = nil
			for range rapid.IntRange(1, 4).Draw(t, name) {
				s.Others[0].Points = append(s.Others[0].Points, tools.ReportedPoint{
					Rate: number(name), Concurrency: number(name), Unlimited: rapid.Bool().Draw(t, name), OK: number(name), Failed: number(name), Incomplete: number(name),
					RequestsPerS: number(name), OutputTokensPerS: number(name), GoodPerS: number(name), OutputTokens: number(name), TTFT: summary(name), TPOT: summary(name), ITL: summary(name), E2E: summary(name),
				})
			}
			return s
		}
		a, b := draw("a"), draw("b")
		if rapid.Bool().Draw(t, "a run") {
			b = side("b", 8, 100).served()
		}
		o := Options{Within: 0.05}
		for _, sides := range [][]Side{{a, b}, {b, a}, {a, a}} {
			c, err := Compare(sides, o)
			if err != nil {
				if say.HintOf(err) == "" {
					t.Fatal(err)
				}
				continue
			}
			if _, err := json.Marshal(c); err != nil {
				t.Fatal(err)
			}
			for _, p := range c.Pairs {
				for _, r := range p.Rows {
					if r.Verdict != OtherInstrument || r.CI95 != nil {
						t.Fatalf("%+v", r)
					}
				}
			}
		}
	})
}

// Sides that are named after like paths get the shortest tails that tell them
// apart.
func TestDistinct(t *testing.T) {
	for arg, want := range map[string]string{
		"before after":           "before after",
		"runs/a/1 runs/b/1":      "a/1 b/1",
		"a/x/1 b/x/1 c/2":        "a/x/1 b/x/1 2",
		"1 b/1":                  "1 b/1",
		"/runs/a/1 runs/a/1":     "/runs/a/1 runs/a/1",
		"runs/a/1 runs/a/1":      "1 1 (2)",
		"a/1 b/1 a/1":            "a/1 b/1 a/1 (2)",
		"a/run.json b/run.json":  "a/run.json b/run.json",
		"x=a/1 x=b/1":            "x x (2)",
		"1=a/1 b/1":              "1 b/1",
		"a/1 b/1 a/1=c":          "a/1 b/1 a/1 (2)",
		"x=1 x x=3 d/x e/x x=15": "x x (2) x (3) d/x e/x x (4)",
	} {
		var sides []Side
		for part := range strings.FieldsSeq(arg) {
			name, _, named := strings.Cut(part, "=")
			s := Side{Name: name}
			if !named {
				s = Side{Name: filepath.Base(part), path: part}
			}
			sides = append(sides, s)
		}
		var got []string
		for _, s := range distinctNames(sides) {
			got = append(got, s.Name)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %s, want %s", arg, strings.Join(got, " "), want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		path := rapid.StringMatching(`(/?[ab]/)?([ab]/){0,2}[12]`)
		var sides []Side
		for _, p := range rapid.SliceOfN(path, 2, 5).Draw(t, "paths") {
			s := Side{Name: filepath.Base(p), path: p}
			if rapid.Bool().Draw(t, "named") {
				s = Side{Name: p}
			}
			sides = append(sides, s)
		}
		seen := map[string]bool{}
		for i, s := range distinctNames(sides) {
			if seen[s.Name] || !strings.Contains(s.Name, filepath.Base(sides[i].Name)) {
				t.Fatalf("%+v", distinctNames(sides))
			}
			seen[s.Name] = true
		}
	})
}
