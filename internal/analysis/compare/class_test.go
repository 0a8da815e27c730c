package compare

import (
	"testing"

	"pitot/internal/results/metric"
	"pitot/internal/results/result"
)

// A class that alone became slower is found, whatever all requests together show; its
// tests are among those that are corrected for their number, and a baseline has them too.
func TestClasses(t *testing.T) {
	parts := func(chat float64) func(*result.Point) {
		return func(p *result.Point) {
			p.Classes = map[string]result.Class{}
			x := *p.Metrics.SummaryOf(metric.TTFT).Mean
			for name, f := range map[string]float64{"chat": chat, "reports": 1} {
				p.Classes[name] = result.Class{Requests: result.Requests{Due: 10_000, OK: 9_990, Failed: 10}, Metrics: result.MetricsOf(map[metric.Name]*result.Summary{metric.TTFT: spread(f * x)}),
					SLO: &result.ClassSLO{Spec: "p99 ttft<1s", Attained: ptr(1.), Met: "yes"}}
			}
		}
	}
	values := []float64{100, 101, 99, 100.5, 99.5}
	a, b := side("a", 4, values...).edit(0, parts(1)), side("b", 4, values...).edit(0, parts(1.4))
	whole := mustCompare(t, Options{}, side("a", 4, values...), side("b", 4, values...)).Corrected
	c := mustCompare(t, Options{}, a, b)
	p := &c.Pairs[0]
	for name, want := range map[string]string{"chat: p50 ttft": Slower, "chat: p99 ttft": Slower, "reports: p50 ttft": Equivalent, "p50 ttft": Equivalent} {
		if r := p.row(name); r == nil || r.Verdict != want {
			t.Errorf("%s: %+v, want %s", name, r, want)
		}
	}
	if r := p.row("chat: p99 ttft"); r.Class != "chat" || p.row("p99 ttft").Class != "" {
		t.Errorf("classes %q and %q", r.Class, p.row("p99 ttft").Class)
	}
	if p.row("chat: errors") == nil || p.row("chat: attained") == nil || c.Corrected < whole+4 {
		t.Errorf("%d tests corrected, %d without classes; %+v", c.Corrected, whole, p.Left)
	}

	base, err := NewBaseline([]Side{a})
	if err != nil {
		t.Fatal(err)
	}
	saved, err := base.JSON()
	if err != nil {
		t.Fatal(err)
	}
	again, err := decodeBaseline("base.json", saved)
	if err != nil {
		t.Fatal(err)
	}
	if r := mustCompare(t, Options{}, Side{Name: "a", Runs: again}, b).Pairs[0].row("chat: p99 ttft"); r == nil || r.Verdict != Slower {
		t.Errorf("with a baseline: %+v", r)
	}

	b.edit(4, func(p *result.Point) { delete(p.Classes, "chat") })
	if r := mustCompare(t, Options{}, a, b).Pairs[0].row("chat: p99 ttft"); r != nil {
		t.Errorf("a class that a launch has not is compared: %+v", r)
	}
}
