package compare

import (
	"encoding/json"
	"fmt"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"pitot/internal/results/metric"
	"pitot/internal/results/result"
)

// onCurveOf is a metric of a side at a load, nil if it is not on the curve.
func onCurveOf(c *Comparison, side string, load float64, name string) *CurveMetric {
	for _, k := range c.Curves {
		for _, s := range k.Sides {
			for i := range s.Loads {
				if s.Side != side || s.Loads[i].Load != load {
					continue
				}
				for m := range s.Loads[i].Metrics {
					if s.Loads[i].Metrics[m].Metric == name {
						return &s.Loads[i].Metrics[m]
					}
				}
			}
		}
	}
	return nil
}

// What a curve shows of a side is what its row says.
func TestCurveIsTheRow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string) Side {
			s := Side{Name: name}
			for i := range rapid.IntRange(1, 6).Draw(t, name+" launches") {
				var points []result.Point
				for rate := 1.0; rate <= 4; rate *= 2 {
					if rate == 2 || rapid.Bool().Draw(t, "measured") {
						points = append(points, pointAt(rate, rapid.Float64Range(1, 900).Draw(t, "x")))
					}
				}
				s.Runs = append(s.Runs, Source{fmt.Sprint(name, i), runOf(fmt.Sprint(i), points...)})
			}
			return s
		}
		c := mustCompare(t, Options{}, draw("a"), draw("b"))
		if len(c.Curves) != 1 || c.Curves[0].Over != "rate" || c.Curves[0].What != "open loop, poisson" {
			t.Fatalf("%+v", c.Curves)
		}
		compared := 0
		for _, p := range c.Pairs {
			for _, r := range p.Rows {
				for side, want := range map[string]float64{p.A: r.A, p.B: r.B} {
					m := onCurveOf(c, side, p.Load.Value(), r.Metric)
					if m == nil {
						continue // not drawn
					}
					compared++
					if m.Value == nil || math.Abs(*m.Value-want) > 1e-12*want || m.Unit != r.Unit {
						t.Fatalf("%s of %s: the curve has %v, the row %v", r.Metric, side, m.Value, want)
					}
				}
			}
		}
		if compared == 0 {
			t.Fatal("nothing was compared")
		}
	})
}

// A launch without a value leaves none for the side, and the others stay to be
// seen.
func TestCurveWithoutValues(t *testing.T) {
	a := side("a", 8, 10, 11, 12)
	b := side("b", 8, 20, 21, 22).edit(2, func(p *result.Point) {
		p.Metrics.SetSummary(metric.TTFT, &result.Summary{N: 100, Withheld: map[string]result.Reason{"p50": {Code: result.NotSettled}, "p99": {Code: result.NotSettled}}})
		p.Stability = "unstable"
	})
	c := mustCompare(t, Options{}, a, b)
	s := c.Curves[0].Sides[1]
	if s.UnstableFrom == nil || *s.UnstableFrom != 8 || s.Loads[0].Unstable != 1 {
		t.Errorf("%+v", s)
	}
	m := onCurveOf(c, "b", 8, "p99 ttft")
	if m.Value != nil || m.Why != "1 of 3 launches: the load had not settled" || len(m.Launches) != 3 || *m.Launches[0] != 40 || m.Launches[2] != nil {
		t.Errorf("%+v", m)
	}
	if m := onCurveOf(c, "b", 8, "req/s"); m.Value == nil {
		t.Errorf("what is served is known: %+v", m)
	}
	if m := onCurveOf(c, "a", 8, "goodput"); m != nil {
		t.Errorf("goodput without an SLO: %+v", m)
	}
	if _, err := json.Marshal(c); err != nil {
		t.Error(err)
	}
}

// Values that mean other things by one name are not laid over each other.
func TestCurveOfUnlikeThings(t *testing.T) {
	within := func(spec string) func(*result.Point) {
		return func(p *result.Point) {
			p.SLO, p.Goodput = &result.SLO{Spec: spec}, &result.Goodput{RequestsPerS: 0}
		}
	}
	a, b := side("a", 8, 10, 11).edit(0, within("ttft<1s")), side("b", 8, 20, 21).edit(0, within("ttft<2s"))
	for _, r := range b.Runs {
		r.Run.Target.Model = "another"
	}
	c := mustCompare(t, Options{}, a, b)
	if m := onCurveOf(c, "a", 8, "goodput"); m.Value != nil || m.Why != "the SLOs differ" {
		t.Errorf("%+v", m)
	}
	if m := onCurveOf(c, "b", 8, "p50 tpot"); m.Value != nil || m.Why == "" {
		t.Errorf("%+v", m)
	}
	b.edit(0, within("ttft<1s"))
	c = mustCompare(t, Options{Tokenizers: true}, a, b)
	if m := onCurveOf(c, "a", 8, "goodput"); m.Value == nil || *m.Value != 0 || c.Curves[0].SLO != "ttft<1s" {
		t.Errorf("nothing good is a goodput of 0: %+v", m)
	}
	if m := onCurveOf(c, "b", 8, "p50 tpot"); m.Value == nil {
		t.Errorf("%+v", m)
	}
}

// Loops of both kinds, and workloads, have curves of their own.
func TestCurvesApart(t *testing.T) {
	closed := func(p result.Point) result.Point {
		p.Load = result.Load{Loop: "closed", Concurrency: ptr(4)}
		return p
	}
	a := Side{Name: "a", Runs: []Source{{"a/1", runOf("1", pointAt(4, 10), closed(pointAt(4, 10)))}}}
	b := Side{Name: "b", Runs: []Source{{"b/1", runOf("1", pointAt(4, 11), closed(pointAt(4, 11)))}}}
	c := mustCompare(t, Options{}, a, b)
	if len(c.Curves) != 2 || c.Curves[0].Over == c.Curves[1].Over {
		t.Errorf("%+v", c.Curves)
	}
	// A search has no curve.
	found := func(name string, x float64) Side {
		r := runOf("1")
		r.Capacity = &result.Capacity{Over: "rate", SLO: "ttft<1s", Estimate: &x}
		return Side{Name: name, Runs: []Source{{name, r}}}
	}
	if c := mustCompare(t, Options{}, found("a", 10), found("b", 11)); len(c.Curves) != 0 || c.Curves == nil {
		t.Errorf("%+v", c.Curves)
	}
}

// A curve says what rests on few samples, and which limits latencies were held
// against.
func TestCurveOfFewSamples(t *testing.T) {
	held := func(limits ...result.Limit) func(*result.Point) {
		return func(p *result.Point) { p.SLO = &result.SLO{Spec: "some", Limits: limits} }
	}
	tail := result.Limit{Spec: "p99 ttft<200ms", Metric: "ttft", Limit: 200}
	a := side("a", 8, 10, 11).edit(0, held(tail))
	b := side("b", 8, 20, 21, 22).edit(0, held(tail, result.Limit{Spec: "errors<1%", Metric: "errors", Limit: .01}))
	b.edit(2, func(p *result.Point) { p.Metrics.SummaryOf(metric.TTFT).Few = []string{"p99"} })
	c := mustCompare(t, Options{}, a, b)
	for _, x := range []struct {
		side, metric string
		few          bool
	}{{"a", "p99 ttft", false}, {"b", "p99 ttft", true}, {"b", "p50 ttft", false}, {"b", "req/s", false}} {
		if m := onCurveOf(c, x.side, 8, x.metric); m.Value == nil || m.Few != x.few {
			t.Errorf("%s of %s: %+v", x.metric, x.side, m)
		}
	}
	if d := cmp.Diff([]CurveLimit{{Spec: "p99 ttft<200ms", Metric: "ttft", Limit: 200}}, c.Curves[0].Limits); d != "" {
		t.Error(d)
	}
}
