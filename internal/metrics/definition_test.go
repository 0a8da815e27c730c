package metrics

import (
	"maps"
	"slices"
	"testing"

	"pitot/internal/metrics/validity"
	"pitot/internal/results/metric"
	"pitot/internal/results/record"
	"pitot/internal/results/result"
	"pitot/internal/results/spill"
	"pitot/internal/slo"
)

// Each metric of the catalogue is measured, in one way.
func TestEveryMetricIsDefined(t *testing.T) {
	list := Definitions()
	for _, m := range metric.All() {
		i := slices.IndexFunc(list, func(d Definition) bool { return d.Metric == m })
		var d Definition
		if i >= 0 {
			d = list[i]
		}
		ways := 0
		for _, of := range []metric.Of{metric.Request, metric.Gap, metric.Window} {
			if has := map[metric.Of]bool{
				metric.Request: d.Request != nil, metric.Gap: d.Gaps != nil || d.pool != nil, metric.Window: (d.Count != nil) != (d.Window != nil),
			}[of]; has {
				ways++
				if m.Of != of {
					t.Errorf("%s, of a %s, has a function of a %s", m.Name, m.Of, of)
				}
			}
		}
		// Rates that run.json has fields for are no definitions.
		if want := m.HasPercentiles() || i >= 0; (ways == 1) != want {
			t.Errorf("%s, of a %s, is measured in %d ways", m.Name, m.Of, ways)
		}
	}
}

// additional are metrics as an entry and a function make them: of requests, with a
// number that chunks give, of gaps, and of the window in both ways.
func additional() []Definition {
	second := Definition{
		Metric:  &metric.Metric{Name: "second", Key: "second_ms", Unit: metric.Milliseconds, Stream: true, Steady: true, Limit: true},
		Request: func(q *Request, until int64) (float64, State) { return q.intervalSince(q.first, q.own[stall], until) },
		chunk: func(s *Stream, c *record.Chunk) {
			if s.Count > 0 && c.T > s.first && s.own[stall] < 0 {
				s.own[stall] = c.T
			}
		},
		lacks: result.OneArrival,
	}
	gap := Definition{
		Metric: &metric.Metric{Name: "step", Key: "step_ms", Of: metric.Gap, Unit: metric.Milliseconds, Stream: true, Steady: true},
		Gaps:   (*Stream).eachGap,
	}
	cached := Definition{
		Metric: &metric.Metric{Name: "cached tok/s", Key: "window.cached_tokens_per_s", Of: metric.Window, Unit: metric.TokensPerS},
		Count: func(_ *Stream, r *record.Row, window *validity.Conditions) int64 {
			if window.InWindow(r.FirstToken) {
				return int64(max(r.CachedTokens, 0))
			}
			return 0
		},
	}
	asked := Definition{
		Metric: &metric.Metric{Name: "asked", Key: "window.asked", Of: metric.Window, Unit: metric.Tokens},
		Window: func(f *Fold, _ *result.Point) (float64, bool) { return float64(f.asked), true },
	}
	none := Definition{
		Metric: &metric.Metric{Name: "none", Key: "window.none", Of: metric.Window, Unit: metric.Tokens},
		Window: func(*Fold, *result.Point) (float64, bool) { return 0, false },
	}
	return []Definition{second, gap, cached, asked, none}
}

// A metric that a definition gathers by itself has its values, whether they are kept
// in memory or in a file, and limits; so have those of gaps and of the window.
func TestAdditionalMetrics(t *testing.T) {
	for _, memory := range []int64{0, 1} {
		setup := window(1)
		setup.Metrics = append(Definitions(), additional()...)
		setup.Metrics = slices.DeleteFunc(setup.Metrics, func(d Definition) bool { return d.Name == metric.Stall }) // whose number is borrowed
		objective, err := slo.Grammar{Metrics: NewFold(setup).metricCatalogue()}.Parse("p60 second<21ms")
		if err != nil {
			t.Fatal(err)
		}
		setup.SLO = objective
		var store *spill.Store
		if memory > 0 {
			store = spill.New(t.TempDir(), memory)
		}
		f := NewFoldIn(store, setup)
		for id := range int64(400) {
			due := id * 2
			first, events := due+50, []int64{due + 50, due + 50, due + 60 + id%2*20, due + 200}
			r := blankRow(id, due)
			r.FirstToken, r.FirstAnswer, r.LastToken, r.Done = first*ms, first*ms, (due+200)*ms, (due+200)*ms
			r.CompletionTokens, r.PromptTokens, r.CachedTokens, r.Chunks = 4, 100, 10, 4
			if id%4 == 3 { // cut before its second arrival
				events = events[:2]
				r.Outcome, r.Error, r.LastToken, r.CompletionTokens, r.Chunks = record.Cut, record.ErrTimeout, record.Unset, record.Unset, 2
			}
			fr := record.Frame{Rows: []record.Row{r}}
			for _, at := range events {
				fr.Chunks = append(fr.Chunks, record.Chunk{Request: id, T: at * ms, Earliest: at * ms, Tokens: 1})
			}
			f.Add(fr)
		}
		p := f.Point()
		second := p.Metrics.SummaryOf("second")
		if second == nil || second.N != 400 || second.Censored != 100 || *second.Min != 10 || *second.P50 != 10 || second.Over["max"] != 150 {
			t.Errorf("second: %+v", second)
		}
		if l := p.SLO.Limits[0]; l.Met != no || l.Value == nil || *l.Value != 30 || *l.Attained != .5 {
			t.Errorf("its limit: %+v", l)
		}
		step, icl := p.Metrics.SummaryOf("step"), p.Metrics.SummaryOf(metric.ICL)
		if step.N != icl.N || step.Censored != icl.Censored || *step.P50 != *icl.P50 || step.Over["p90"] != icl.Over["p90"] || step.Over["mean"] != icl.Over["mean"] || *step.Min != *icl.Min {
			t.Errorf("step %+v, icl %+v", step, icl)
		}
		if want := map[string]float64{"cached_tokens_per_s": 4000, "asked": 400, "cached_share": 0.1}; !maps.Equal(p.Window, want) {
			t.Errorf("window: %v, want %v", p.Window, want)
		}
		f.Free()
		if err := f.Err(); err != nil {
			t.Fatal(err)
		}
		if store != nil {
			store.Close()
		}
	}
}
