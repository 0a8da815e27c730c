package compare

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	_ "pitot/internal/rapidtest" // the same draws each time
	"pitot/internal/report/reasons"
	"pitot/internal/results/metric"
	"pitot/internal/results/result"
	"pitot/internal/say"
	"pitot/internal/stats"
)

func ptr[T any](x T) *T { return &x }

// spread is a summary all of whose values lie around x.
func spread(x float64) *result.Summary {
	return &result.Summary{
		N: 20_000, Mean: ptr(x), P50: ptr(0.9 * x), P90: ptr(1.5 * x), P95: ptr(1.7 * x), P99: ptr(2 * x),
		CI95:       map[string][2]float64{"p50": {0.85 * x, 0.95 * x}, "mean": {0.95 * x, 1.05 * x}},
		NoInterval: map[string]result.Reason{"p99": {Code: result.FewSamples}},
		Withheld:   map[string]result.Reason{"p99_9": {Code: result.FewShown, N: 20_000, Needed: 100_000}},
	}
}

// pointAt is a point at so many requests per second with times around x.
func pointAt(rate, x float64) result.Point {
	return result.Point{
		Load:       result.Load{Loop: "open", Rate: ptr(rate), Arrival: "poisson"},
		Seconds:    result.Seconds{Window: 60},
		Requests:   result.Requests{Due: 20_000, OK: 19_900, Failed: 100},
		Throughput: result.Throughput{OutputTokensPerS: ptr(1e5 / x), RequestsPerS: ptr(1e3 / x)},
		Metrics:    result.MetricsOf(map[metric.Name]*result.Summary{metric.TTFT: spread(x), metric.TPOT: spread(x / 5), metric.E2E: spread(9 * x), metric.Stall: spread(x / 2)}),
		Stability:  "stable", Outcome: "ok", Verdict: result.Valid, Checks: []result.Check{},
	}
}

func runOf(launch string, points ...result.Point) *result.Run {
	return &result.Run{
		Schema: result.Schema, Launch: launch, Started: "2026-11-20T10:00:00Z", Command: []string{"pitot"}, Notes: map[string]string{},
		Environment: result.Environment{Stamps: "kernel", Cores: 4},
		Target:      result.Target{Spec: "http://h:8000", Kind: "http", Model: "m", Server: map[string]string{"engine": "vllm", "version": "0.10"}},
		Workload:    json.RawMessage(`{"kind":"random","input":"512","output":"64","sampling":{"temperature":0}}`),
		Points:      points, Verdict: result.Valid,
	}
}

// side has a launch for each value.
func side(name string, rate float64, xs ...float64) Side {
	s := Side{Name: name}
	for i, x := range xs {
		s.Runs = append(s.Runs, Source{fmt.Sprintf("%s/%d", name, i+1), runOf(fmt.Sprint(i+1), pointAt(rate, x))})
	}
	return s
}

// edit changes every point of the launches from n on.
func (s Side) edit(n int, change func(*result.Point)) Side {
	for _, r := range s.Runs[n:] {
		for i := range r.Run.Points {
			change(&r.Run.Points[i])
		}
	}
	return s
}

func mustCompare(t interface{ Fatal(...any) }, o Options, sides ...Side) *Comparison {
	if o.Within == 0 {
		o.Within = 0.05
	}
	c, err := Compare(sides, o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func clauses(t *testing.T, text string) []Clause {
	t.Helper()
	out, err := ParseClauses(text)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func (p *Pair) row(metric string) *Row {
	for i := range p.Rows {
		if p.Rows[i].Metric == metric {
			return &p.Rows[i]
		}
	}
	return nil
}

var (
	steady = []float64{100, 101, 99, 100.5, 99.5, 100.2}
	noisy  = []float64{100, 140, 80, 120, 70, 105}
)

func times(xs []float64, f float64) []float64 {
	out := make([]float64, len(xs))
	for i, x := range xs {
		out[i] = f * x
	}
	return out
}

func TestVerdicts(t *testing.T) {
	for name, c := range map[string]struct {
		a, b []float64
		want string
		why  string
	}{
		"slower":                {steady, times(steady, 1.3), Slower, ""},
		"faster":                {steady, times(steady, 0.7), Faster, ""},
		"equivalent":            {steady, times(steady, 1.001), Equivalent, ""},
		"real but small":        {steady, times(steady, 1.02), Equivalent, "smaller than matters"},
		"noise":                 {noisy, times(noisy, 1.1), Undistinguished, ""},
		"two launches":          {steady[:2], times(steady[:2], 10), Undistinguished, "2 launches a side, verdicts from 3 on"},
		"three launches":        {steady[:3], times(steady[:3], 2), Slower, ""},
		"one of a side":         {steady, []float64{1000}, Undistinguished, "6 against 1 launches"},
		"no launches at all":    {[]float64{100, 100, 100, 100, 100}, []float64{120, 120, 120, 120, 120}, Undistinguished, "are they launches?"},
		"the very same":         {[]float64{100, 100, 100, 100, 100}, []float64{100, 100, 100, 100, 100}, Equivalent, ""},
		"the very same, of few": {[]float64{100, 100, 100}, []float64{100, 100, 100}, Undistinguished, "no difference found: the same in every launch"},
	} {
		got := mustCompare(t, Options{}, side("a", 8, c.a...), side("b", 8, c.b...))
		r := got.Pairs[0].row("p99 ttft")
		if r.Verdict != c.want || !strings.Contains(reasons.Text(r.Why), c.why) {
			t.Errorf("%s: %s, %+v", name, r.Verdict, r.Why)
		}
		if got.Verdicts[0].Word != c.want {
			t.Errorf("%s: as a whole %s", name, got.Verdicts[0].Word)
		}
		if ratio := r.B / r.A; math.Abs(r.Change-(ratio-1)) > 1e-9 {
			t.Errorf("%s: %g to %g is no change of %g", name, r.A, r.B, r.Change)
		}
		if (r.Needed != nil) != (c.want == Undistinguished && r.CI95 != nil) {
			t.Errorf("%s: needed %v", name, r.Needed)
		}
	}
}

// Time, rate and share: what rises is not always worse.
func TestDirections(t *testing.T) {
	share := func(attained float64, ok int) func(*result.Point) {
		i := 0.
		return func(p *result.Point) {
			i++
			p.SLO = &result.SLO{Spec: "ttft<1s @99%", Attained: ptr(attained + i/1e4)}
			p.Requests = result.Requests{Due: 10_000, OK: ok - int(i), Failed: 10_000 - ok + int(i)}
		}
	}
	c := mustCompare(t, Options{}, side("a", 8, steady...).edit(0, share(0.99, 9900)), side("b", 8, times(steady, 1.3)...).edit(0, share(0.8, 9500)))
	p := &c.Pairs[0]
	for metric, want := range map[string]string{"p99 ttft": Slower, outputRate: Slower, attained: Worse, failures: Worse} {
		if r := p.row(metric); r == nil || r.Verdict != want {
			t.Errorf("%s: %+v", metric, r)
		}
	}
	if r := p.row(failures); math.Abs(r.Change-0.04) > 1e-9 || r.ChangeIn != "share" {
		t.Errorf("errors: %+v", r)
	}
	if p.row(requestRate) != nil || p.row(goodput) != nil {
		t.Error("in an open loop these are what was asked for")
	}
	back := mustCompare(t, Options{}, side("b", 8, times(steady, 1.3)...).edit(0, share(0.8, 9500)), side("a", 8, steady...).edit(0, share(0.99, 9900)))
	for metric, want := range map[string]string{"p99 ttft": Faster, outputRate: Faster, attained: Better, failures: Better} {
		if r := back.Pairs[0].row(metric); r == nil || r.Verdict != want {
			t.Errorf("%s the other way: %+v", metric, r)
		}
	}
}

// Turned around, every verdict is; and single launches never give one.
func TestSymmetry(t *testing.T) {
	opposite := map[string]string{Slower: Faster, Faster: Slower, Equivalent: Equivalent, Undistinguished: Undistinguished}
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string) []float64 {
			return rapid.SliceOfN(rapid.Float64Range(50, 200), 1, 8).Draw(t, name)
		}
		a, b := side("a", 8, draw("a")...), side("b", 8, draw("b")...)
		there, back := mustCompare(t, Options{}, a, b), mustCompare(t, Options{}, b, a)
		for i := range there.Pairs[0].Rows {
			x, y := &there.Pairs[0].Rows[i], &back.Pairs[0].Rows[i]
			if x.metric.share {
				continue
			}
			if opposite[x.Verdict] != y.Verdict {
				t.Fatalf("%s: %s, and back %s", x.Metric, x.Verdict, y.Verdict)
			}
			if math.Abs((1+x.Change)*(1+y.Change)-1) > 1e-9 {
				t.Fatalf("%s: %g, and back %g", x.Metric, x.Change, y.Change)
			}
			if x.CI95 != nil && (x.CI95[0] > x.Change || x.CI95[1] < x.Change) {
				t.Fatalf("%s: %g not in %v", x.Metric, x.Change, *x.CI95)
			}
			switch one := len(a.Runs) == 1 || len(b.Runs) == 1; {
			case one != there.Pairs[0].Within:
				t.Fatalf("within one launch: %v", there.Pairs[0].Within)
			case !one:
			case len(a.Runs) == len(b.Runs): // by the launches' own intervals, if they have any
				if (x.P != nil) != (x.CI95 != nil) || there.Pairs[0].Scope != TheseStarts {
					t.Fatalf("%s: %+v", x.Metric, x)
				}
			case x.Verdict != Undistinguished || x.P != nil:
				t.Fatalf("%s: %+v", x.Metric, x)
			}
		}
	})
}

// Whatever was measured can be written.
func TestAlwaysJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string) []float64 {
			return rapid.SliceOfN(rapid.Float64Range(0, 1e150), 1, 6).Draw(t, name)
		}
		c := mustCompare(t, Options{}, side("a", 8, draw("a")...), side("b", 8, draw("b")...))
		if _, err := json.Marshal(c); err != nil {
			t.Fatalf("%v", err)
		}
	})
}

// The order in which runs are named is nothing.
func TestOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		xs := rapid.SliceOfN(rapid.Float64Range(50, 200), 5, 7).Draw(t, "a")
		a, b := side("a", 8, xs...), side("b", 8, steady...)
		want := mustCompare(t, Options{}, a, b)
		a.Runs = rapid.Permutation(a.Runs).Draw(t, "order")
		got := mustCompare(t, Options{}, a, b)
		for i := range want.Pairs[0].Rows {
			x, y := want.Pairs[0].Rows[i], got.Pairs[0].Rows[i]
			if x.Verdict != y.Verdict || math.Abs(x.Change-y.Change) > 1e-9 {
				t.Fatalf("%+v\n%+v", x, y)
			}
		}
	})
}

// Within one launch a side the runs' own intervals are shown, and repeats give
// one where there are some.
func TestWithinLaunch(t *testing.T) {
	c := mustCompare(t, Options{}, side("a", 8, 100), side("b", 8, 150))
	r := c.Pairs[0].row("p50 ttft")
	if !c.Pairs[0].Within || r.CI95 == nil || !(r.CI95[0] > 0.3 && r.CI95[0] < 0.45 && r.CI95[1] > 0.55 && r.CI95[1] < 0.7) {
		t.Errorf("%+v", r)
	}
	if r := c.Pairs[0].row("p99 ttft"); r.CI95 != nil || r.NoInterval.IsNone() {
		t.Errorf("%+v", r)
	}
	if v := c.Verdicts[0]; v.Word != Slower || v.Scope != TheseStarts {
		t.Errorf("%+v", v)
	}
	repeated := func(name string, xs ...float64) Side {
		s := Side{Name: name}
		for i, x := range xs {
			s.Runs = append(s.Runs, Source{fmt.Sprintf("%s/%d", name, i), runOf("", pointAt(8, x))})
		}
		return s
	}
	c = mustCompare(t, Options{}, repeated("a", 100, 102, 98, 101, 99), repeated("b", 200, 203, 197, 201, 199))
	r = c.Pairs[0].row("p99 ttft")
	if r.Verdict != Slower || r.CI95 == nil || math.Abs(r.Change-1) > 1e-9 || r.CI95[1]-r.CI95[0] > 0.2 || c.Pairs[0].Scope != TheseRuns {
		t.Errorf("repeats of one launch: %+v", r)
	}
	if len(c.Warnings) == 0 || !strings.Contains(c.Warnings[0], "--launch ID") {
		t.Errorf("%q", c.Warnings)
	}
}

// A launch's value is the median of its repeats.
func TestRepeats(t *testing.T) {
	a, b := side("a", 8, steady...), side("b", 8, steady...)
	for _, r := range b.Runs {
		r.Run.Points = append(r.Run.Points, pointAt(8, 100), pointAt(8, 5000)) // one of three is far off
	}
	c := mustCompare(t, Options{}, a, b)
	if r := c.Pairs[0].row("p99 ttft"); r.Verdict != Equivalent || c.Pairs[0].Launches != [2]int{6, 6} {
		t.Errorf("%v, %+v", c.Pairs[0].Launches, r)
	}
}

// What has no value in one launch is not compared: the others would be those
// that look good.
func TestWithoutValue(t *testing.T) {
	for name, c := range map[string]struct {
		edit func(*result.Point)
		why  string
	}{
		"off the scale": {func(p *result.Point) {
			p.Metrics.SummaryOf(metric.TTFT).P99, p.Metrics.SummaryOf(metric.TTFT).Over = nil, map[string]float64{"p99": 600_000}
		}, "b, 1 of 6 launches: only known to be over 6e+05 ms"},
		"withheld": {func(p *result.Point) {
			p.Metrics.SummaryOf(metric.TTFT).P99, p.Metrics.SummaryOf(metric.TTFT).Withheld = nil, map[string]result.Reason{"p99": {Code: result.FewShown, N: 50, Needed: 100}}
		}, "b, 1 of 6 launches: n = 50, shown from 100 on"},
		"undefined": {func(p *result.Point) {
			p.Metrics.SetSummary(metric.TTFT, nil)
			p.Metrics.Undefined = map[string]result.Reason{"ttft_ms": {Code: result.NotStreaming}}
		}, "not streaming"},
		"nothing answered": {func(p *result.Point) {
			p.Metrics.SetSummary(metric.TTFT, nil)
			p.Requests = result.Requests{Due: 5, Failed: 5}
		}, "no request was answered"},
	} {
		got := mustCompare(t, Options{Clauses: clauses(t, "p99 ttft slower by 5%")}, side("a", 8, steady...), side("b", 8, steady...).edit(5, c.edit))
		p := got.Pairs[0]
		at := slices.IndexFunc(p.Left, func(l Left) bool { return l.Metric == "p99 ttft" })
		if p.row("p99 ttft") != nil || at < 0 || !strings.Contains(p.Left[at].Why, c.why) {
			t.Errorf("%s: %+v", name, p.Left)
		}
		if p.row("p99 e2e") == nil {
			t.Errorf("%s: others are compared", name)
		}
		if o := got.Clauses[0]; o.State != NotJudged || !got.NotJudged() || got.AnyFired() {
			t.Errorf("%s: %+v", name, o)
		}
	}
}

func TestUnstable(t *testing.T) {
	c := mustCompare(t, Options{Clauses: clauses(t, "p99 ttft slower by 5%")}, side("a", 8, steady...), side("b", 8, steady...).edit(4, func(p *result.Point) { p.Stability = "unstable" }))
	p := c.Pairs[0]
	if len(p.Rows) != 0 || p.Why != "unstable in 2 of 6 launches of b: the queue grows for as long as the load lasts" {
		t.Errorf("%+v", p)
	}
	if c.Verdicts[0].Word != NotCompared || len(c.Verdicts[0].Lost) != 1 || c.Clauses[0].State != NotJudged {
		t.Errorf("%+v, %+v", c.Verdicts, c.Clauses)
	}
}

// What the instrument does not vouch for is left out, and said.
func TestInvalid(t *testing.T) {
	spoilt := func(p *result.Point) { p.Verdict, p.Metrics.SummaryOf(metric.TTFT).P99 = result.Invalid, ptr(1e6) }
	c := mustCompare(t, Options{}, side("a", 8, steady...), side("b", 8, steady...).edit(5, spoilt))
	p := c.Pairs[0]
	if p.Launches != [2]int{6, 5} || p.row("p99 ttft").Verdict != Equivalent || len(p.Notes) != 1 || !strings.Contains(p.Notes[0], "launch 6 left out: INVALID") {
		t.Errorf("%+v", p)
	}
	c = mustCompare(t, Options{}, side("a", 8, steady...), side("b", 8, steady...).edit(0, spoilt))
	if p := c.Pairs[0]; len(p.Rows) != 0 || p.Why != "every point of b is INVALID" {
		t.Errorf("%+v", p)
	}
}

func TestCorrection(t *testing.T) {
	a, b := side("a", 8, noisy...), side("b", 8, times(noisy, 1.5)...)
	plain := mustCompare(t, Options{}, a, b)
	named := mustCompare(t, Options{Clauses: clauses(t, "p99 ttft slower")}, a, b)
	x, y := plain.Pairs[0].row("p99 ttft"), named.Pairs[0].row("p99 ttft")
	if *x.P != *y.P || !y.PreRegistered || x.PreRegistered || *y.PAdjusted != *y.P {
		t.Errorf("%+v\n%+v", x, y)
	}
	if plain.Corrected != named.Corrected+1 || *x.PAdjusted < float64(plain.Corrected)**x.P-1e-12 {
		t.Errorf("%d and %d tests; p = %g becomes %g", plain.Corrected, named.Corrected, *x.P, *x.PAdjusted)
	}
	if y.Verdict != Slower || x.Verdict != Unconfirmed {
		t.Errorf("named %s, among others %s", y.Verdict, x.Verdict)
	}
}

// What an SLO limits or a clause names stands in the table and in what is drawn;
// gaps stand in for those between tokens where a side has none of these.
func TestWhatIsCompared(t *testing.T) {
	itl := func(p *result.Point) { p.Metrics.SetSummary(metric.ITL, spread(20)) }
	icl := func(p *result.Point) { p.Metrics.SetSummary(metric.ICL, spread(20)) }
	limited := func(p *result.Point) {
		p.SLO = &result.SLO{Spec: "p90 ttft<300ms", Limits: []result.Limit{{Spec: "p90 ttft<300ms", Metric: metric.TTFT, Limit: 300}}}
	}
	for name, c := range map[string]struct {
		o        Options
		a, b     []func(*result.Point)
		has, not []string
	}{
		"stall always":              {Options{}, nil, nil, []string{"p99 stall"}, []string{"p99 itl", "p99 icl"}},
		"tokens":                    {Options{}, []func(*result.Point){itl, icl}, []func(*result.Point){itl, icl}, []string{"p99 itl"}, []string{"p99 icl"}},
		"events instead of tokens":  {Options{}, []func(*result.Point){itl, icl}, []func(*result.Point){icl}, []string{"p99 icl"}, []string{"p99 itl"}},
		"a clause":                  {Options{Clauses: clauses(t, "p95 itl slower")}, []func(*result.Point){itl}, []func(*result.Point){itl}, []string{"p95 itl"}, nil},
		"an SLO's own percentile":   {Options{}, []func(*result.Point){limited}, []func(*result.Point){limited}, []string{"p90 ttft"}, nil},
		"the metric it is made for": {Options{Primary: primary(t, "mean itl")}, []func(*result.Point){itl}, []func(*result.Point){itl}, []string{"mean itl"}, nil},
	} {
		a, b := side("a", 8, steady...), side("b", 8, steady...)
		for _, edit := range c.a {
			a.edit(0, edit)
		}
		for _, edit := range c.b {
			b.edit(0, edit)
		}
		got := mustCompare(t, c.o, a, b)
		var drawn []string
		for _, m := range got.Curves[0].Sides[0].Loads[0].Metrics {
			drawn = append(drawn, m.Metric)
		}
		for _, m := range c.has {
			if got.Pairs[0].row(m) == nil || !slices.Contains(drawn, m) && m != "p99 icl" {
				t.Errorf("%s: no %s in the table, or in %q", name, m, drawn)
			}
		}
		for _, m := range c.not {
			if got.Pairs[0].row(m) != nil {
				t.Errorf("%s: %s is there", name, m)
			}
		}
	}
}

func primary(t *testing.T, text string) *Primary {
	t.Helper()
	p, err := ParsePrimary(text)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// The metric that a comparison is made for is tested alone and stands first; the
// others are corrected as if it were not there.
func TestPrimary(t *testing.T) {
	a, b := side("a", 8, noisy...), side("b", 8, times(noisy, 1.5)...)
	got := mustCompare(t, Options{Primary: primary(t, "P99 TTFT")}, a, b)
	r := &got.Pairs[0].Rows[0]
	if r.Metric != "p99 ttft" || !r.Primary || !r.PreRegistered || *r.PAdjusted != *r.P || r.Verdict != Slower {
		t.Errorf("%+v", r)
	}
	if v := got.Verdicts[0]; got.Primary != "p99 ttft" || v.Primary != Slower {
		t.Errorf("%s, %+v", got.Primary, v)
	}
	for _, other := range got.Pairs[0].Rows[1:] {
		if other.Primary || other.P != nil && *other.PAdjusted <= *other.P {
			t.Errorf("%+v", other)
		}
	}
	got = mustCompare(t, Options{Primary: primary(t, "p99 itl")}, a, b)
	if v := got.Verdicts[0]; v.Primary != NotCompared || !strings.Contains(got.MissingPrimary("b"), "not measured") {
		t.Errorf("%+v, %s", v, got.MissingPrimary("b"))
	}
	for _, text := range []string{"", "itl", "p98 itl", "nonsense"} {
		if _, err := ParsePrimary(text); err == nil {
			t.Errorf("%q is a metric", text)
		}
	}
}

// Launches of one system that differ by 3 %: the metric that a comparison is made
// for is called different in 5 % of comparisons, and so is any of the others. A
// system that is 5 % slower is found more often by the metric that was named.
func TestFalseAlarmsAndPower(t *testing.T) {
	const reps = 80 // bench/stat has more
	p := primary(t, "p99 itl")
	for _, c := range []struct {
		launches                    int
		factor                      float64
		leastPrimary, mostPrimary   float64
		leastAnyOther, mostAnyOther float64
	}{
		// 5 % and 2.6 standard errors of a share of so many repetitions.
		{3, 1, 0, 0.113, 0, 0.113}, {5, 1, 0, 0.113, 0, 0.113},
		{3, 1.2, 0.95, 1, 0.9, 1}, {5, 1.05, 0.55, 1, 0, 1},
	} {
		rng := rand.New(rand.NewPCG(7, uint64(c.launches)))
		different := func(r *Row) bool { return r.P != nil && *r.PAdjusted < alpha }
		first, other, corrected := 0, 0, 0
		for range reps {
			sides := [2]Side{{Name: "a"}, {Name: "b"}}
			for i := range sides {
				for n := range c.launches {
					draw := func(x float64) float64 {
						if i == 1 {
							x *= c.factor
						}
						return x * math.Exp(0.02*rng.NormFloat64())
					}
					point := pointAt(8, draw(100))
					for _, m := range []metric.Name{metric.TTFT, metric.TPOT, metric.E2E, metric.Stall, metric.ITL} {
						point.Metrics.SetSummary(m, spread(draw(100)))
					}
					sides[i].Runs = append(sides[i].Runs, Source{fmt.Sprint(i, n), runOf(fmt.Sprint(n), point)})
				}
			}
			rows := mustCompare(t, Options{Primary: p}, sides[:]...).Pairs[0].Rows
			if different(&rows[0]) {
				first++
			}
			if slices.ContainsFunc(rows[1:], func(r Row) bool { return different(&r) }) {
				other++
			}
			if r := mustCompare(t, Options{}, sides[:]...).Pairs[0].row("p99 itl"); different(r) {
				corrected++
			}
		}
		x, y := float64(first)/reps, float64(other)/reps
		t.Logf("%d launches, B %g times as slow: primary %.3f, any other %.3f, as one of all %.3f", c.launches, c.factor, x, y, float64(corrected)/reps)
		if x < c.leastPrimary || x > c.mostPrimary || y < c.leastAnyOther || y > c.mostAnyOther || corrected > first {
			t.Errorf("%d launches, B %g times as slow: primary %.3f, any other %.3f, as one of all %.3f", c.launches, c.factor, x, y, float64(corrected)/reps)
		}
	}
}

// A gate of three clauses fires in one comparison of twenty at most where nothing
// changed, and still where one thing did.
func TestGateOfClauses(t *testing.T) {
	const reps, launches = 80, 5
	gate := clauses(t, "p99 ttft slower by 0%, p99 tpot slower by 0%, output tok/s slower by 0%")
	for _, factor := range []float64{1, 1.15} {
		rng := rand.New(rand.NewPCG(5, 5))
		fired, alone := 0, 0
		for range reps {
			sides := [2]Side{{Name: "a"}, {Name: "b"}}
			for i := range sides {
				for n := range launches {
					draw := func(x float64) float64 { return x * math.Exp(0.02*rng.NormFloat64()) }
					point := pointAt(8, draw(100))
					point.Metrics.SetSummary(metric.TPOT, spread(draw(100)))
					slow := draw(100)
					if i == 1 {
						slow *= factor
					}
					point.Metrics.SetSummary(metric.TTFT, spread(slow))
					sides[i].Runs = append(sides[i].Runs, Source{fmt.Sprint(i, n), runOf(fmt.Sprint(n), point)})
				}
			}
			c := mustCompare(t, Options{Clauses: gate}, sides[:]...)
			if c.AnyFired() {
				fired++
			}
			if slices.ContainsFunc(c.Pairs[0].Rows, func(r Row) bool { return r.PreRegistered && *r.P < alpha && r.isWorse() }) {
				alone++
			}
		}
		x, y := float64(fired)/reps, float64(alone)/reps
		t.Logf("B %g times as slow: fired %.3f, some by itself %.3f", factor, x, y)
		if factor == 1 && x > .113 || factor > 1 && x < .9 {
			t.Errorf("B %g times as slow: fired %.3f", factor, x)
		}
	}
}

func TestClauses(t *testing.T) {
	a := side("a", 8, steady...)
	slow, same, rough := side("b", 8, times(steady, 1.1)...), side("b", 8, times(steady, 1.001)...), side("b", 8, times(noisy, 1.1)...)
	for _, c := range []struct {
		spec string
		b    Side
		want string
		why  string
	}{
		{"p99 ttft slower by 5%", slow, Fired, "p99 ttft +10.0 % at open loop, poisson, 8/s"},
		{"p99 ttft slower by 20%", slow, RuledOut, "+10.0 %"},
		{"p99 ttft slower", slow, Fired, ""},
		{"p99 TTFT worse by 0.05", slow, Fired, ""},
		{"p99 ttft faster by 5%", slow, RuledOut, ""},
		{"median e2e higher by 5%", slow, Fired, ""},
		{"p95 itl slower by 5%", slow, NotJudged, "a: not measured; b: not measured, at"},
		{"tok/s slower by 5%", slow, Fired, "output tok/s -9.1 %"},
		{"tok/s lower by 5%", slow, Fired, ""},
		{"tok/s higher by 5%", slow, RuledOut, ""},
		{"req/s slower by 5%", slow, Fired, ""},
		{"errors worse by 1%", slow, RuledOut, "errors unchanged"},
		{"p99 ttft slower by 5%", same, RuledOut, ""},
		{"p99 ttft slower by 5%", rough, Undecided, "launches a side decide 5.0 %"},
		{"p99 ttft slower by 5%", side("b", 8, 1000), Undecided, "6 against 1 launches"},
		{"p99 ttft slower by 5%", side("b", 8, times(steady[:2], 9)...), Undecided, "6 against 2 launches"},
		{"capacity lower by 5%", slow, NotJudged, "no metric that both sides measured"},
		{"goodput worse by 5%", slow, NotJudged, "no SLO given, at open loop, poisson, 8/s"},
	} {
		got := mustCompare(t, Options{Clauses: clauses(t, c.spec)}, a, c.b)
		if o := got.Clauses[0]; o.State != c.want || !strings.Contains(o.Why, c.why) {
			t.Errorf("%s: %s: %s, want %s: %s", c.spec, o.State, o.Why, c.want, c.why)
		}
	}
	got := mustCompare(t, Options{Clauses: clauses(t, "errors worse by 1%, p50 tpot slower by 5%")}, a, slow)
	if len(got.Clauses) != 2 || got.Clauses[0].State != RuledOut || got.Clauses[1].State != Fired || !got.AnyFired() || got.NotJudged() {
		t.Errorf("%+v", got.Clauses)
	}
}

func TestBadClauses(t *testing.T) {
	for text, want := range map[string]string{
		"":                         "does not say slower",
		"p99 ttft":                 "does not say slower",
		"p99 ttft slower by":       "comes nothing, or by",
		"p99 ttft slower than 5%":  "comes nothing, or by",
		"p99 ttft slower by 5":     "no percentage",
		"p99 ttft slower by -5%":   "no percentage",
		"p99 ttft slower by NaN%":  "no percentage",
		"p99 ttft slower by 500%":  "no percentage",
		"ttft slower by 5%":        "which percentile",
		"p42 ttft slower by 5%":    "no such percentile",
		"p99 speed slower by 5%":   "no metric is called",
		"errors slower by 5%":      "neither slower nor faster",
		"p99 ttft slower by 5%,":   "does not say slower",
		"slower by 5%":             "no metric is called",
		"p99 ttft e2e worse by 5%": "no such percentile",
	} {
		_, err := ParseClauses(text)
		if err == nil || !strings.Contains(err.Error(), want) || say.HintOf(err) == "" {
			t.Errorf("%q: %v (%s)", text, err, say.HintOf(err))
		}
	}
}

func FuzzClauses(f *testing.F) {
	f.Add("p99 ttft slower by 5%, errors worse by 1 %")
	f.Fuzz(func(t *testing.T, text string) {
		out, err := ParseClauses(text)
		if err != nil {
			return
		}
		for _, c := range out {
			again, err := ParseClauses(c.Spec)
			if err != nil || len(again) != 1 || again[0].Spec != c.Spec || again[0].by != c.by || !(c.by >= 0 && c.by < 1) {
				t.Fatalf("%q: %+v, %v", text, again, err)
			}
		}
	})
}

func TestCapacities(t *testing.T) {
	found := func(name string, xs ...float64) Side {
		s := Side{Name: name}
		for i, x := range xs {
			r := runOf(fmt.Sprint(i))
			r.Capacity = &result.Capacity{Over: "rate", SLO: "p99 ttft<500ms", Estimate: &x, CI95: &[2]float64{0.9 * x, 1.1 * x}}
			r.Points = []result.Point{pointAt(x, 100)}
			s.Runs = append(s.Runs, Source{fmt.Sprintf("%s/%d", name, i), r})
		}
		return s
	}
	c := mustCompare(t, Options{Clauses: clauses(t, "capacity lower by 5%")}, found("a", steady...), found("b", times(steady, 0.8)...))
	r := c.Pairs[0].row(capacity)
	if len(c.Pairs) != 1 || r.Verdict != Slower || math.Abs(r.Change+0.2) > 1e-9 || c.Clauses[0].State != Fired {
		t.Errorf("%+v, %+v", c.Pairs, c.Clauses)
	}
	c = mustCompare(t, Options{}, found("a", 10), found("b", 8))
	if r := c.Pairs[0].row(capacity); r.Verdict != Slower || r.CI95 == nil || !c.Pairs[0].Within || c.Verdicts[0].Scope != TheseStarts {
		t.Errorf("%+v", r)
	}
	none := found("b", 8)
	missed := none.Runs[0].Run.Capacity
	missed.Estimate, missed.Why = nil, result.Reason{Code: result.BudgetTooSmall}
	c = mustCompare(t, Options{}, found("a", 10), none)
	if l := c.Pairs[0].Left; len(l) != 1 || !strings.Contains(l[0].Why, "b: the budget is too small") {
		t.Errorf("%+v", l)
	}
	if v := c.Verdicts[0]; v.Word != NotCompared || v.Why != "the search of b gave no capacity: pitot find --continue RUN goes on with it" {
		t.Errorf("%+v", v)
	}
	_, err := Compare([]Side{found("a", 10), side("b", 8, 100)}, Options{Within: 0.05})
	if err == nil || !strings.Contains(err.Error(), "a holds a search for a capacity and b loads that were chosen") {
		t.Errorf("%v", err)
	}
}

// Bounds are compared too: what they leave of the change holds at 95 % each. Where a
// side says nothing, nothing was compared, and that is said.
func TestBoundsOfCapacities(t *testing.T) {
	bounded := func(name string, low, high, usd float64) Side {
		r := runOf(name)
		r.Capacity = &result.Capacity{Over: "rate", SLO: "p99 ttft<500ms", Why: result.Reason{Code: result.BudgetTooSmall}}
		if low > 0 {
			r.Capacity.Load, r.Capacity.Bracket, r.Capacity.Bounds = &low, &[2]*float64{&low, &high}, &result.Bounds{Level: 0.95}
			r.Capacity.USDPerMGoodOutput = &usd
		}
		return Side{Name: name, Runs: []Source{{name, r}}}
	}
	c := mustCompare(t, Options{}, bounded("a", 1, 2, 4), bounded("b", 5, 8, 1))
	p := c.Pairs[0].Capacity
	if p == nil || *p.ChangeAtLeast != 1.5 || *p.ChangeAtMost != 7 || *p.A.AtMost != 2 || *p.B.USDPerMOutput != 1 || p.A.Level != 0.95 {
		t.Fatalf("%+v", p)
	}
	if v := c.Verdicts[0]; v.Word != Undistinguished || v.Why != "one launch each" || c.ComparedNothing() {
		t.Errorf("%+v", v)
	}
	c = mustCompare(t, Options{}, bounded("a", 1, 2, 4), bounded("b", 0, 0, 0))
	if v := c.Verdicts[0]; v.Word != NotCompared || !c.ComparedNothing() {
		t.Errorf("%+v", v)
	}
	none := bounded("b", 0, 0, 0)
	none.Runs[0].Run.Capacity.Floor = &result.Floor{Spec: "p99 ttft<500ms", Lower: 0.1}
	c = mustCompare(t, Options{}, bounded("a", 1, 2, 4), none)
	if p := c.Pairs[0].Capacity; !p.B.NoLoad || c.ComparedNothing() {
		t.Errorf("%+v", p)
	}
	// A baseline keeps what the comparison takes, the cost included.
	b, err := NewBaseline([]Side{bounded("a", 1, 2, 4)})
	if err != nil || *b.Runs[0].CapacityCost() != 4 {
		t.Errorf("%+v, %v", b, err)
	}
}

// Searches of other SLOs or other workloads are not compared.
func TestSearchesApart(t *testing.T) {
	searched := func(name, slo string, input float64) Side {
		r, x := runOf(name), 5.
		r.Workload = json.RawMessage(fmt.Sprintf(`{"input": {"mean": %v}}`, input))
		r.Capacity = &result.Capacity{Over: "rate", SLO: slo, Estimate: &x}
		return Side{Name: name, Runs: []Source{{name, r}}}
	}
	for _, c := range []struct {
		b    Side
		want string
	}{
		{searched("b", "p99 tpot<50ms", 100), "a and b were searched for different SLOs: p99 ttft<1s, and p99 tpot<50ms"},
		{searched("b", "p99 ttft<1s", 200), "a and b ask different things"},
	} {
		_, err := Compare([]Side{searched("a", "p99 ttft<1s", 100), c.b}, Options{Within: 0.05})
		if err == nil || !strings.Contains(err.Error(), c.want) || say.HintOf(err) == "" {
			t.Errorf("%v, not %q", err, c.want)
		}
	}
	if _, err := Compare([]Side{searched("a", "p99 ttft<1s", 100), searched("b", "p99 ttft<1s", 200)}, Options{Within: 0.05, Workloads: true}); err != nil {
		t.Error(err)
	}
}

// Each side against the first, and each load by itself.
func TestManySidesAndLoads(t *testing.T) {
	many := func(name string, f float64) Side {
		s := side(name, 4, times(steady, f)...)
		for i, r := range s.Runs {
			r.Run.Points = append(r.Run.Points, pointAt(8, 2*f*steady[i]))
			r.Run.Points = append(r.Run.Points, pointAt(8*f, 3*f*steady[i])) // at loads of its own
			r.Run.Points = append(r.Run.Points[1:], r.Run.Points[0])         // in any order
		}
		return s
	}
	c := mustCompare(t, Options{}, many("a", 1.01), many("b", 1.3), many("c", 1.012))
	if len(c.Pairs) != 4 || len(c.Verdicts) != 2 || c.Verdicts[0].Word != Slower || c.Verdicts[1].Word != Equivalent {
		t.Errorf("%d pairs, %+v", len(c.Pairs), c.Verdicts)
	}
	if c.Pairs[0].What != "open loop, poisson, 4/s" || c.Pairs[1].What != "open loop, poisson, 8/s" {
		t.Errorf("%s, then %s", c.Pairs[0].What, c.Pairs[1].What)
	}
	if !slices.ContainsFunc(c.Warnings, func(w string) bool { return w == "only b was measured at open loop, poisson, 10.4/s" }) {
		t.Errorf("%q", c.Warnings)
	}
}

func TestNothingInCommon(t *testing.T) {
	other := side("b", 8, steady...)
	for _, r := range other.Runs {
		r.Run.Workload = json.RawMessage(`{"kind":"random","input":"1024","output":"64","sampling":{"temperature":0,"top_p":0.9}}`)
	}
	for name, c := range map[string]struct {
		sides      []Side
		want, hint string
	}{
		"one side":   {[]Side{side("a", 8, 1)}, "a comparison needs two sides", ""},
		"loads":      {[]Side{side("a", 8, 1), side("b", 9, 1)}, "a has open loop, poisson, 8/s; b has open loop, poisson, 9/s", "--loads"},
		"workloads":  {[]Side{side("a", 8, 1), other}, "a and b ask different things: input 512 and 1024, sampling top_p none and 0.9", "--allow workloads"},
		"no point":   {[]Side{side("a", 8, 1), {Name: "b", Runs: []Source{{"b", runOf("")}}}}, "side b has no measured point", ""},
		"same names": {[]Side{side("a", 8, 1), side("a", 9, 1)}, "a and a (2) have no load in common", ""},
	} {
		_, err := Compare(c.sides, Options{Within: 0.05})
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(say.HintOf(err), c.hint) {
			t.Errorf("%s: %v (%s)", name, err, say.HintOf(err))
		}
	}
	c := mustCompare(t, Options{Workloads: true}, side("a", 8, steady...), other)
	if len(c.Pairs) != 1 || !slices.ContainsFunc(c.Differences, func(d Difference) bool { return d.What == "workload input" }) {
		t.Errorf("%d pairs, %+v", len(c.Pairs), c.Differences)
	}
}

// Servers of unlike tokenizers are compared by one that counted the answers of both, and costs
// lie side by side.
func TestCommonCounter(t *testing.T) {
	dollars := func(x float64) *float64 { return &x }
	counted := func(name, model, tokenizer string, common, usd float64) Side {
		s := side(name, 8, 100, 101, 102, 103)
		for i := range s.Runs {
			r := s.Runs[i].Run
			r.Target.Model = model
			r.Target.Server = map[string]string{"tokenizer": tokenizer}
			for k := range r.Points {
				r.Points[k].Window = map[string]float64{"common_tokens_per_s": common + float64(i), "common_speed": common / 10}
				r.Points[k].Cost = &result.Cost{Price: "1/2", USDPerMOutput: dollars(usd), USDPerMCommon: dollars(2 * usd), USDPerRequest: dollars(usd / 1000)}
			}
		}
		return s
	}
	const one, other = "o200k.tiktoken, SHA-256 aa", "llama.json, SHA-256 bb"
	a := counted("a", "x", one, 500, 1)
	p := mustCompare(t, Options{}, a, counted("b", "y", "renamed.tiktoken, SHA-256 aa", 700, 3)).Pairs[0]
	if r := p.row("common tok/s"); r == nil || r.Verdict != Faster || p.row("common speed") == nil || p.row(outputRate) != nil || !strings.Contains(strings.Join(p.Notes, " "), "SHA-256 aa") {
		t.Errorf("%+v, %q", p.row("common tok/s"), p.Notes)
	}
	if len(p.Costs) != 3 || *p.Costs[0].A != 1 || *p.Costs[0].B != 3 || *p.Costs[1].B != 6 || *p.Costs[2].A != 1 || !strings.Contains(p.Costs[0].Label, "own tokenizer") {
		t.Errorf("%+v", p.Costs)
	}
	p = mustCompare(t, Options{}, a, counted("b", "y", other, 700, 3)).Pairs[0]
	if p.row("common tok/s") != nil || len(p.Costs) != 2 || !strings.Contains(p.Left[0].Why, "--tokenizer FILE") {
		t.Errorf("%+v", p.Left)
	}
	if p = mustCompare(t, Options{}, a, counted("b", "x", one, 700, 3)).Pairs[0]; p.row("common tok/s") != nil || p.row(outputRate) == nil {
		t.Error("of one tokenizer, the servers' own counts are compared")
	}
}

func TestTokenizers(t *testing.T) {
	b := side("b", 8, steady...)
	for _, r := range b.Runs {
		r.Run.Target.Model = "other"
	}
	c := mustCompare(t, Options{Clauses: clauses(t, "tok/s slower")}, side("a", 8, steady...), b)
	if p := &c.Pairs[0]; p.row(outputRate) != nil || p.row("p50 tpot") != nil || p.row("p50 ttft") == nil || !strings.Contains(p.Left[0].Why, "--allow tokenizers") {
		t.Errorf("%+v", p.Left)
	}
	if p := mustCompare(t, Options{Tokenizers: true}, side("a", 8, steady...), b).Pairs[0]; p.row(outputRate) == nil {
		t.Error("told to, it compares them")
	}
	calibrated := func(name, perWord string) Side {
		s := side(name, 8, steady...)
		for _, r := range s.Runs {
			r.Run.Workload = json.RawMessage(`{"kind":"random","input":"512","calibration":{"tokens_per_word":` + perWord + `}}`)
		}
		return s
	}
	if p := mustCompare(t, Options{}, calibrated("a", "1"), calibrated("b", "1.3")).Pairs[0]; p.row(outputRate) != nil {
		t.Error("one name, other tokens")
	}
	if p := mustCompare(t, Options{}, calibrated("a", "1"), calibrated("b", "1.001")).Pairs[0]; p.row(outputRate) == nil {
		t.Error("the same tokens")
	}
}

// How an embedded target was set is part of what was compared: its settings come
// with the server, before the workload and the machine.
func TestSettingsDiffer(t *testing.T) {
	a, b := side("a", 4, 100), side("b", 4, 100)
	for _, s := range []Side{a, b} {
		s.Runs[0].Run.Target.Kind, s.Runs[0].Run.Target.Spec = "mock", "mock:fixed"
	}
	b.Runs[0].Run.Target.Settings = map[string]string{"faults": "503:10%", "speed": "3"}
	b.Runs[0].Run.Environment.Cores = 8
	var got []string
	for _, d := range mustCompare(t, Options{}, a, b).Differences {
		got = append(got, fmt.Sprint(d.What, d.Values))
	}
	if want := []string{"setting faults[[] [503:10%]]", "setting speed[[] [3]]", "client CPU[[, 4 cores] [, 8 cores]]"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestDifferences(t *testing.T) {
	a, b := side("a", 8, steady...), side("b", 8, steady...)
	if d := mustCompare(t, Options{}, a, b).Differences; len(d) != 0 {
		t.Errorf("%+v", d)
	}
	for i, r := range b.Runs {
		r.Run.Target.Server = map[string]string{"engine": "vllm", "version": "0.11", "process_start_time_seconds": fmt.Sprint(i)}
		r.Run.Environment.Cores = 8 + i%2
		r.Run.Notes = map[string]string{"flags": "--enforce-eager", "launch": fmt.Sprint(i)}
		r.Run.Points[0].Seconds.Window = 120
		r.Run.Points[0].Metrics.SetSummary(metric.OutputTokens, &result.Summary{N: 10, Mean: ptr(50.)})
		a.Runs[i].Run.Points[0].Metrics.SetSummary(metric.OutputTokens, &result.Summary{N: 10, Mean: ptr(64.)})
	}
	var got []string
	for _, d := range mustCompare(t, Options{}, a, b).Differences {
		got = append(got, fmt.Sprintf("%s %q %v", d.What, d.Values, d.Mixed))
	}
	want := []string{
		`server version [["0.10"] ["0.11"]] false`, `note flags [[] ["--enforce-eager"]] false`, `client CPU [[", 4 cores"] [", 8 cores" ", 9 cores"]] true`,
		`window, mean s [["60"] ["120"]] false`, `answers, mean tokens [["64"] ["50"]] false`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s", strings.Join(got, "\n"))
	}
}

func TestLaunchOf(t *testing.T) {
	for want, r := range map[string]*result.Run{
		"3":              {Launch: "3", Notes: map[string]string{"launch": "4"}},
		"4":              {Notes: map[string]string{"launch": "4"}, Target: result.Target{Server: map[string]string{started: "17.5"}}},
		"started at 5 s": {Target: result.Target{Server: map[string]string{started: "5"}}},
		"":               {},
	} {
		if got := launchOf(r); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// A verdict on one launch a side says what it holds for.
func TestScope(t *testing.T) {
	for _, c := range []struct {
		a, b string // when the server's process began
		want Scope
	}{
		{"17", "17", OneStart}, {"17", "18", TheseStarts}, {"", "", TheseRuns}, {"17", "", TheseRuns},
	} {
		a, b := side("a", 8, 100), side("b", 8, 150)
		for s, at := range map[*Side]string{&a: c.a, &b: c.b} {
			s.Runs[0].Run.Launch = ""
			s.Runs[0].Run.Target.Server = map[string]string{started: at}
		}
		got := mustCompare(t, Options{Clauses: clauses(t, "p50 ttft slower by 5%")}, a, b)
		if p, v := &got.Pairs[0], got.Verdicts[0]; p.Scope != c.want || v.Scope != c.want || v.Word != Slower {
			t.Errorf("%q, %q: scope %q, verdict %+v", c.a, c.b, p.Scope, v)
		}
		if o := got.Clauses[0]; o.State != Fired || !strings.Contains(o.Why, string(c.want)) {
			t.Errorf("%q, %q: %+v", c.a, c.b, o)
		}
	}
}

// One launch a side decides a clause where its own interval can, and only there.
func TestOneLaunchGate(t *testing.T) {
	for b, want := range map[float64]string{150: Fired, 100: RuledOut, 115: Undecided, 70: RuledOut} {
		got := mustCompare(t, Options{Clauses: clauses(t, "p50 ttft slower by 20%")}, side("a", 8, 100), side("b", 8, b))
		if o := got.Clauses[0]; o.State != want {
			t.Errorf("%g ms: %+v, want %s", b, o, want)
		}
		if r := got.Pairs[0].row("p50 ttft"); r.Detectable == nil || !(*r.Detectable > 0) {
			t.Errorf("%g ms: %+v", b, r)
		}
	}
	got := mustCompare(t, Options{Clauses: clauses(t, "p99 ttft slower by 20%")}, side("a", 8, 100), side("b", 8, 150))
	if o := got.Clauses[0]; o.State != Undecided || !strings.Contains(o.Why, "one launch each") {
		t.Errorf("without an interval: %+v", o)
	}
}

// Runs of one launch a side that are too short for intervals say so, and what gives one; other
// reasons do not.
func TestTooShort(t *testing.T) {
	short := func(seconds float64) result.Reason {
		return result.Reason{Code: result.FewResidences, N: 62, Needed: 100, Longer: result.Longer{Seconds: seconds}}
	}
	other := result.Reason{Code: result.QueueGrew}
	none := result.Reason{}
	for name, c := range map[string]struct {
		a, b   result.Reason // why there is no interval, none where there is one
		clause string
		want   string
	}{
		"both":         {short(250), short(190), "p50 tpot slower by 5%", "; the runs are too short for intervals: --duration 4m10s, or 3 launches a side"},
		"B":            {none, short(190), "mean e2e slower by 5%", "; the runs are too short for intervals: --duration 3m10s, or 3 launches a side"},
		"without by":   {short(250), none, "p50 ttft slower", "; the runs are too short for intervals: --duration 4m10s, or 3 launches a side"},
		"p99":          {short(250), short(250), "p99 tpot slower by 5%", "; the runs are too short for intervals: --duration 4m10s, or 3 launches a side"},
		"A of another": {other, short(250), "p50 tpot slower by 5%", ""},
		"others":       {other, other, "p50 tpot slower by 5%", ""},
	} {
		one := func(name string, x float64, why result.Reason) Side {
			return side(name, 8, x).edit(0, func(p *result.Point) {
				for _, m := range []metric.Name{metric.TTFT, metric.TPOT, metric.E2E} {
					if s := p.Metrics.SummaryOf(m); !why.IsNone() {
						s.CI95, s.NoInterval = nil, map[string]result.Reason{"p50": why, "mean": why, "p99": why}
					}
				}
			})
		}
		got := mustCompare(t, Options{Clauses: clauses(t, c.clause)}, one("a", 100, c.a), one("b", 240, c.b))
		o := got.Clauses[0]
		if _, after, _ := strings.Cut(o.Why, "two starts"); o.State != Undecided || c.want == "" && strings.Contains(o.Why, "short") || !strings.HasPrefix(after, c.want) {
			t.Errorf("%s: %+v", name, o)
		}
		if why := got.TooShort("b"); (c.a.Code == result.QueueGrew) != why.IsNone() || got.TooShort("a") != none {
			t.Errorf("%s: %+v", name, why)
		}
	}
}

// A side that does not keep up with a load that the other keeps up with is worse, and fires
// every clause about latencies; the other way round it is better.
func TestOverload(t *testing.T) {
	growing := func(p *result.Point) { p.Stability = "unstable" }
	failing := func(p *result.Point) { p.Outcome = result.Failing }
	left := func(deficit float64, edit func(*result.Point)) func(*result.Point) { // of the arrivals, this share was left over
		return func(p *result.Point) {
			p.Requests, p.Growth = result.Requests{Due: 1200, OK: 1200}, &result.Growth{Deficit: deficit}
			if edit != nil {
				edit(p)
			}
		}
	}
	failed := func(n int, edit func(*result.Point)) func(*result.Point) {
		return func(p *result.Point) {
			p.Requests = result.Requests{Due: 1200, OK: 1200 - n, Failed: n}
			if edit != nil {
				edit(p)
			}
		}
	}
	one := func(name string, edit func(*result.Point)) Side { return side(name, 8, 100).edit(0, edit) }
	spoil := func(s Side, edit func(*result.Point), n int) Side { return s.edit(len(s.Runs)-n, edit) } // the last n
	fine := func(name string) Side { return side(name, 8, steady[:3]...) }
	for _, c := range []struct {
		name  string
		a, b  Side
		spec  string
		state string
		word  string
	}{
		{"b is overloaded", fine("a"), spoil(fine("b"), growing, 3), "p99 ttft slower by 5%", Fired, Worse},
		{"b is overloaded, goodput", fine("a"), spoil(fine("b"), growing, 3), "output tok/s slower by 5%", Fired, Worse},
		{"b is overloaded, errors", fine("a"), spoil(fine("b"), growing, 3), "errors worse by 1%", NotJudged, Worse},
		{"b fails", fine("a"), spoil(fine("b"), failing, 3), "errors worse by 1%", Fired, Worse},
		{"b is asked to be faster", fine("a"), spoil(fine("b"), growing, 3), "p99 ttft faster by 5%", RuledOut, Worse},
		{"a is overloaded", spoil(fine("a"), growing, 3), fine("b"), "p99 ttft slower by 5%", RuledOut, Better},
		{"a is overloaded, asked", spoil(fine("a"), growing, 3), fine("b"), "p99 ttft faster by 5%", Fired, Better},
		{"some launches of b", fine("a"), spoil(fine("b"), growing, 1), "p99 ttft slower by 5%", NotJudged, NotCompared},
		{"both", spoil(fine("a"), growing, 3), spoil(fine("b"), growing, 3), "p99 ttft slower by 5%", NotJudged, NotCompared},
		{"one launch each", one("a", left(0, nil)), one("b", left(.3, growing)), "p99 ttft slower by 5%", Fired, Worse},
		{"one launch each, of b", one("a", left(.3, growing)), one("b", left(0, nil)), "p99 ttft slower by 5%", RuledOut, Better},
		{"one launch each near the limit", one("a", left(.01, nil)), one("b", left(.07, growing)), "p99 ttft slower by 5%", NotJudged, NotCompared},
		{"one launch each above the limit", one("a", left(.04, nil)), one("b", left(.2, growing)), "p99 ttft slower by 5%", NotJudged, NotCompared},
		{"an old baseline", side("a", 8, 100), one("b", left(.3, growing)), "p99 ttft slower by 5%", NotJudged, NotCompared},
		{"one launch each fails", one("a", failed(100, nil)), one("b", failed(700, failing)), "p99 ttft slower by 5%", Fired, Worse},
		{"both fail about half", one("a", failed(590, nil)), one("b", failed(610, failing)), "p50 ttft slower by 5%", Undecided, Undistinguished},
		{"two launches near the limit", side("a", 8, 100, 101).edit(0, left(.01, nil)), side("b", 8, 100, 101).edit(0, left(.07, growing)), "p99 ttft slower by 5%", NotJudged, NotCompared},
		{"an improvement has no more errors", spoil(fine("a"), growing, 3), fine("b"), "errors worse by 1%", RuledOut, Better},
		{"an improvement serves more", spoil(side("a", 8, times(steady[:3], 2)...), growing, 3), fine("b"), "p99 ttft slower by 5%", RuledOut, Better},
		{"an overloaded side may have more", fine("a"), spoil(fine("b"), growing, 3), "errors worse by 1%", NotJudged, Worse},
	} {
		got := mustCompare(t, Options{Clauses: clauses(t, c.spec)}, c.a, c.b)
		if o, v := got.Clauses[0], got.Verdicts[0]; o.State != c.state || v.Word != c.word {
			t.Errorf("%s: %+v, verdict %+v", c.name, o, v)
		}
	}
}

// With as many launches as it asks for, a gate passes where nothing changed in 95 of 100
// comparisons, and fires at a step of twice what it asks about in 80 of 100.
func TestGateOnNeededLaunches(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 11))
	draw := func(name string, n int, factor float64) Side {
		xs := make([]float64, n)
		for i := range xs {
			xs[i] = 100 * factor * math.Exp(0.02*rng.NormFloat64())
		}
		return side(name, 8, xs...)
	}
	const trials = 50
	states := map[float64]map[string]int{1: {}, 1.1: {}}
	most := 0
	for factor, of := range states {
		for range trials {
			n := 3
			var o Resolution
			for range 4 { // a gate that is still undecided asks for more
				got := mustCompare(t, Options{Clauses: clauses(t, "p99 ttft slower by 5%")}, draw("a", n, 1), draw("b", n, factor))
				o = got.Clauses[0]
				if o.State != Undecided || o.Needed == nil || *o.Needed <= n {
					break
				}
				n = *o.Needed
			}
			of[o.State]++
			most = max(most, n)
		}
	}
	if n := states[1][RuledOut]; n < trials*95/100 {
		t.Errorf("no change: %v, want %d ruled out", states[1], trials*95/100)
	}
	if n := states[1.1][Fired]; n < trials*80/100 {
		t.Errorf("a step of 10 %%: %v, want %d fired", states[1.1], trials*80/100)
	}
	t.Logf("%v, at most %d launches a side", states, most)
}

// Each clause has launches of its own: those of another threshold on its metric, or of a clause
// without one, are not its. However a clause came to be undecided, it says what decides it.
func TestLaunchesOfClauses(t *testing.T) {
	rough := []float64{100, 104, 97, 101, 98}
	alone := func(spec string, b ...float64) Resolution {
		return mustCompare(t, Options{Clauses: clauses(t, spec)}, side("a", 8, rough...), side("b", 8, b...)).Clauses[0]
	}
	one := alone("p99 ttft slower by 1%", rough...)
	got := mustCompare(t, Options{Clauses: clauses(t, "p99 ttft slower by 1%, p99 ttft slower by 20%")}, side("a", 8, rough...), side("b", 8, rough...))
	if o := got.Clauses[0]; one.Needed == nil || o.Needed == nil || *o.Needed < *one.Needed || !strings.HasSuffix(o.Why, "launches a side decide 1.0 %") {
		t.Errorf("%+v, alone %+v", o, one)
	}
	if o := alone("p99 ttft slower", rough...); o.State != Undecided || o.Needed != nil || !strings.HasSuffix(o.Why, `without by it can fire, and is hardly ever ruled out: write "p99 ttft slower by 5%"`) {
		t.Errorf("without by: %+v", o)
	}
	if o := alone("errors worse", rough...); !strings.HasSuffix(o.Why, `write "errors worse by 1%"`) {
		t.Errorf("without by: %+v", o)
	}
	// Established, and not as large as asked; called equivalent, and a clause asks for less.
	for spec, b := range map[string][]float64{"p99 ttft slower by 7%": times(rough, 1.06), "p99 ttft slower by 2%": times(rough, 1.001)} {
		if o := alone(spec, b...); o.State != Undecided || o.Needed == nil || *o.Needed <= len(rough) {
			t.Errorf("%s: %+v", spec, o)
		}
	}
	// Shares spread as shares do, whatever these launches show.
	few := func(p *result.Point) { p.Requests = result.Requests{Due: 30, OK: 30} }
	c := mustCompare(t, Options{Clauses: clauses(t, "errors worse by 1%")}, side("a", 8, rough[:3]...).edit(0, few), side("b", 8, rough[:3]...).edit(0, few))
	if o := c.Clauses[0]; o.State != Undecided || o.Needed == nil || *o.Needed < 20 {
		t.Errorf("errors of few requests: %+v", o)
	}
}

// The change at which a gate is said to fire with 80 % power makes it fire in 80 of 100
// comparisons, whatever it asks about.
func TestFiresAt(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	const spread, launches, trials = 0.02, 5, 400
	draw := func(factor float64) []float64 {
		xs := make([]float64, launches)
		for i := range xs {
			xs[i] = math.Log(factor) + spread*rng.NormFloat64()
		}
		return xs
	}
	for _, by := range []float64{0, .02, .05} {
		at, ok := stats.FiresAt(math.Log1p(by), spread, 1e6, launches, level, power)
		if !ok {
			t.Fatal("no change")
		}
		fired := 0
		for range trials {
			d, _ := stats.Welch(draw(1), draw(math.Exp(at)), level)
			if d.P < alpha && d.Estimate >= math.Log1p(by) {
				fired++
			}
		}
		if share := float64(fired) / trials; share < .74 || share > .86 { // three standard errors
			t.Errorf("by %g: fires at %.4f in %.3f", by, math.Expm1(at), share)
		}
	}
}

// Launches that do not spread at all differ, or are the same, as far as their number says: all of
// one side above all of the other are one order in so many.
func TestNoSpread(t *testing.T) {
	same := func(n int, x float64) []float64 { return slices.Repeat([]float64{x}, n) }
	for _, c := range []struct {
		n      int
		b      float64
		state  string
		needed int
	}{
		{3, 110, Undecided, 4}, {3, 100, Undecided, 4}, {4, 110, Fired, 0}, {4, 100, RuledOut, 0}, {4, 90, RuledOut, 0}, {4, 103, RuledOut, 0},
	} {
		got := mustCompare(t, Options{Clauses: clauses(t, "p99 ttft slower by 5%")}, side("a", 8, same(c.n, 100)...), side("b", 8, same(c.n, c.b)...))
		o, needed := got.Clauses[0], 0
		if o.Needed != nil {
			needed = *o.Needed
		}
		if o.State != c.state || needed != c.needed {
			t.Errorf("%d launches, %g: %+v", c.n, c.b, o)
		}
	}
}

// Runs of one process are one launch, whatever they are called.
func TestOneProcess(t *testing.T) {
	b := side("b", 8, times(steady, 1.3)...)
	for i, r := range b.Runs {
		r.Run.Target.Server = map[string]string{started: fmt.Sprint(i / 4)}
	}
	c := mustCompare(t, Options{}, side("a", 8, steady...), b)
	if p := c.Pairs[0]; p.Launches != [2]int{6, 2} || p.row("p99 ttft").Verdict != Undistinguished {
		t.Errorf("%v", p.Launches)
	}
	if w := "launch 2 of b is the same process as launch 1, and counts as that"; !slices.Contains(c.Warnings, w) {
		t.Errorf("%q", c.Warnings)
	}
}

// Zeros have no logarithm, and are compared all the same.
func TestZeros(t *testing.T) {
	idle := func(p *result.Point) { p.Throughput.OutputTokensPerS = ptr(0.) }
	c := mustCompare(t, Options{}, side("a", 8, steady...), side("b", 8, steady...).edit(0, idle))
	if r := c.Pairs[0].row(outputRate); r.Verdict != Slower || math.Abs(r.Change+1) > 1e-9 {
		t.Errorf("%+v", r)
	}
	c = mustCompare(t, Options{}, side("a", 8, steady...).edit(0, idle), side("b", 8, steady...))
	if p := &c.Pairs[0]; p.row(outputRate) != nil || !slices.ContainsFunc(p.Left, func(l Left) bool { return l.Why == "zero on side a" }) {
		t.Errorf("%+v", p.Left)
	}
}

// 5 + 5 launches of one system, all metrics together: different in 7 % at most;
// and a system that is 30 % slower is found. bench/stat has the whole table.
func TestEqualAndSlower(t *testing.T) {
	const reps = 50
	rng := rand.New(rand.NewPCG(1, 1))
	for _, c := range []struct {
		factor, least, most float64
	}{{1, 0, 0.07}, {1.3, 0.95, 1}} {
		changed, single := 0, 0
		for range reps {
			a, b := simulated("a", 1, rng), simulated("b", c.factor, rng)
			different := func(r Row) bool {
				return r.Verdict != Equivalent && r.Verdict != Undistinguished && r.Verdict != Unconfirmed
			}
			if slices.ContainsFunc(mustCompare(t, Options{}, a, b).Pairs[0].Rows, different) {
				changed++
			}
			a.Runs, b.Runs = a.Runs[:1], b.Runs[:1]
			if slices.ContainsFunc(mustCompare(t, Options{}, a, b).Pairs[0].Rows, different) {
				single++
			}
		}
		if share := float64(changed) / reps; share < c.least || share > c.most || single > 0 {
			t.Errorf("B %g times as slow: different in %.3f of comparisons, want %g to %g; from single launches in %d", c.factor, share, c.least, c.most, single)
		}
	}
}

// The interval of the mean over launches holds it in 95 % of cases.
func TestSpread(t *testing.T) {
	const reps = 400
	for _, launches := range []int{3, 5} {
		rng := rand.New(rand.NewPCG(3, uint64(launches)))
		held := 0
		for range reps {
			xs := make([]float64, launches)
			for i := range xs {
				xs[i] = 100 * math.Exp(0.1*rng.NormFloat64())
			}
			v := LaunchSpreads(side("a", 8, xs...))[0].Values[0]
			if v.Metric != "p50 ttft" || v.Least != 0.9*slices.Min(xs) || v.Value <= v.Least || v.Value >= v.Most {
				t.Fatalf("%+v of %v", v, xs)
			}
			if v.CI95[0] <= 90 && 90 <= v.CI95[1] {
				held++
			}
		}
		if held < 367 || held > 393 { // 3 standard errors
			t.Errorf("%d launches: held %d of %d times", launches, held, reps)
		}
	}
	for _, l := range LaunchSpreads(side("a", 8, 100, 101))[0].Left {
		if l.Metric == wrongAnswers {
			t.Errorf("nobody asked questions: %+v", l)
		}
	}
	if v := LaunchSpreads(side("a", 8, 100))[0].Values[0]; v.CI95 != nil || v.Value != 90 {
		t.Errorf("one launch: %+v", v)
	}
	if d := LaunchSpreads(side("a", 8, 100, 101).edit(1, func(p *result.Point) { p.Stability = "unstable" }))[0]; d.Why == "" || len(d.Values) > 0 {
		t.Errorf("%+v", d)
	}
}
