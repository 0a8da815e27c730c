package slo

import (
	"errors"
	"maps"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pitot/internal/results/metric"
	"pitot/internal/say"
)

func TestParse(t *testing.T) {
	const ms = time.Millisecond
	for text, want := range map[string]Spec{
		"p99 ttft<200ms, p99 tpot<50ms": {Limits: []Limit{
			{Metric: metric.TTFT, Percentile: 99, Max: 200 * ms}, {Metric: metric.TPOT, Percentile: 99, Max: 50 * ms}}},
		"ttft<200ms, tpot<50ms @99%": {SharePercent: 99, Limits: []Limit{
			{Metric: metric.TTFT, Max: 200 * ms}, {Metric: metric.TPOT, Max: 50 * ms}}},
		" P99.9 TTFT <= 0.2 S,errors<0.5%": {Limits: []Limit{
			{Metric: metric.TTFT, Percentile: 99.9, Max: 200 * ms}, {Metric: metric.Errors, MaxPercent: .5}}},
		"p50 icl<1500µs": {Limits: []Limit{{Metric: metric.ICL, Percentile: 50, Max: 1500 * time.Microsecond}}},
		"p50 icl<1500μs": {Limits: []Limit{{Metric: metric.ICL, Percentile: 50, Max: 1500 * time.Microsecond}}},
		"e2e<2s@90%, p95 stall<1s": {SharePercent: 90, Limits: []Limit{
			{Metric: metric.E2E, Max: 2 * time.Second}, {Metric: metric.Stall, Percentile: 95, Max: time.Second}}},
		"ttft<1s @100%": {SharePercent: 100, Limits: []Limit{{Metric: metric.TTFT, Max: time.Second}}},
	} {
		got, err := Parse(text)
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%q: %s", text, d)
		}
	}
}

func TestString(t *testing.T) {
	for text, want := range map[string]string{
		"P99TTFT<=0.2s":                      "p99 ttft<200ms",
		"p50 e2e<2000ms":                     "p50 e2e<2s",
		"tpot<12.5ms@99%":                    "tpot<12.5ms @99%",
		"p99.9 icl<50us":                     "p99.9 icl<50us",
		"errors<1%,ttft<1s@90%,p99 e2e<1.5s": "p99 e2e<1500ms, ttft<1s @90%, errors<1%",
		"p99 itl<1.000001ms":                 "p99 itl<1.000001ms",
		"p99 itl<0.001us":                    "p99 itl<0.001us",
	} {
		s, err := Parse(text)
		if err != nil {
			t.Errorf("%q: %v", text, err)
		} else if got := s.String(); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestParseErrors(t *testing.T) {
	for text, want := range map[string]string{
		"":                               "empty objective",
		",":                              "empty limit",
		"p99 ttft<200":                   "200ms or 200s",
		"p99 ttft<200m":                  `unknown unit "m"`,
		"p99 ttff<200ms":                 "did you mean ttft?",
		"p99 genration<2s":               "did you mean generation?",
		"p99 wibble<2s":                  "known: e2e, errors",
		"mean ttft<200ms":                "p50 or p99",
		"median ttft<200ms":              "write p50 ttft",
		"max ttft<2s":                    "write ttft<… @100%",
		"p99 latency<2s":                 "write e2e",
		"ttft<200ms":                     `"p99 ttft<200ms" or "ttft<200ms @99%"`,
		"p99 ttft<200ms @99%":            "without a limit on single requests",
		"p99 ttft<200ms, p99 ttft<100ms": "two limits on the same",
		"p99 ttft<200ms, P99.0 ttft<1s":  "two limits on the same",
		"ttft<1s @99%, tpot<1ms @90%":    "a second share",
		"itl<10ms @99%":                  "limit stall",
		"p99 ttft>200ms":                 "lower bound",
		"p99 ttft":                       "has no <",
		"p100 ttft<1s":                   "@100%",
		"p0 ttft<1s":                     "between 0 and 100",
		"p99.9.9 ttft<1s":                "between 0 and 100",
		"errors<0.01":                    "without %",
		"p99 errors<1%":                  "no percentile",
		"errors<0%":                      "above 0",
		"p99 ttft<0ms":                   "out of range",
		"p99 ttft<1e3ms":                 "unknown unit",
		"p99 ttft<-1ms":                  "no length of time",
		strings.Repeat("x", 2000):        "longer than",
	} {
		_, err := Parse(text)
		var e *say.Error
		if !errors.As(err, &e) {
			t.Errorf("%q: error %v, want a say.Error", text, err)
		} else if !strings.Contains(e.Msg+"; "+e.Hint, want) {
			t.Errorf("%q: %q does not say %q", text, e, want)
		}
	}
}

func TestNeedsStream(t *testing.T) {
	for text, want := range map[string]bool{"p99 e2e<1s, errors<1%": false, "p99 ttft<1s": true, "e2e<1s, tpot<9ms @9%": true} {
		s, err := Parse(text)
		if err != nil || s.NeedsStream() != want {
			t.Errorf("%q: %v, %v", text, s.NeedsStream(), err)
		}
	}
}

type values map[metric.Name]float64

// request is one that is judged: what is not among its values is undefined.
type request struct {
	ok     bool
	values values
	class  string
}

func (r request) Class() string { return r.class }
func (r request) OK() bool      { return r.ok }
func (r request) Value(n metric.Name) float64 {
	if x, ok := r.values[n]; ok {
		return x
	}
	return math.NaN()
}

func TestGood(t *testing.T) {
	s, err := Parse("ttft<200ms, tpot<50ms @99%, errors<1%")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		v    request
		want bool
	}{
		{"within", request{ok: true, values: values{metric.TTFT: 199e6, metric.TPOT: 49e6}}, true},
		{"at the limit is over", request{ok: true, values: values{metric.TTFT: 200e6, metric.TPOT: 49e6}}, false},
		{"undefined tpot is not over", request{ok: true, values: values{metric.TTFT: 1e6, metric.TPOT: math.NaN()}}, true},
		{"never came", request{ok: true, values: values{metric.TTFT: math.Inf(1), metric.TPOT: 1}}, false},
		{"fast error", request{values: values{metric.TTFT: 1, metric.TPOT: 1}}, false},
	} {
		if got := s.IsMetBy(c.v); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"p99 ttft<200ms, p99 tpot<50ms", "ttft<200ms, tpot<50ms @99%", "errors<1%", "p50 e2e<2s",
		"p99.9 itl<=12.25 µs,stall<1s@90%", "p99ttft<200", "mean ttft<1s", "@", "<", "p", "p99<1s", ",,", "errors<%", "p.ttft<.s",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := Parse(text)
		if err != nil {
			var e *say.Error
			if !errors.As(err, &e) || e.Msg == "" {
				t.Fatalf("%q: error %#v", text, err)
			}
			return
		}
		again, err := Parse(s.String())
		if err != nil {
			t.Fatalf("%q: %q does not parse: %v", text, s, err)
		}
		if again.String() != s.String() || len(again.Limits) != len(s.Limits) {
			t.Fatalf("%q: %q became %q", text, s, again)
		}
	})
}

// Every preset is an objective that can be searched for, under a name of its own.
func TestPresets(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range Presets() {
		s, err := Parse(" " + strings.ToUpper(p.Name))
		if err != nil || seen[p.Name] || p.Source == "" {
			t.Errorf("%s: %v", p.Name, err)
		}
		seen[p.Name] = true
		if same, err := Parse(p.Spec); err != nil || same.String() != s.String() {
			t.Errorf("%s: %s, not %s", p.Name, s, p.Spec)
		}
		if c, err := s.SplitClaims(); err != nil || len(c) == 0 {
			t.Errorf("%s: %v", p.Name, err)
		}
	}
}

func TestClaims(t *testing.T) {
	s, err := Parse("p99 ttft<200ms, tpot<50ms, e2e<9s @90%, errors<1%")
	if err != nil {
		t.Fatal(err)
	}
	claims, err := s.SplitClaims()
	if err != nil || len(claims) != 3 {
		t.Fatalf("%v, %v", claims, err)
	}
	ms := 1e6
	good := request{ok: true, values: values{metric.TTFT: 100 * ms, metric.TPOT: 20 * ms, metric.E2E: 2000 * ms}}
	late, slow, failed := good, good, good
	late.values, slow.values, failed.ok = maps.Clone(good.values), maps.Clone(good.values), false
	late.values[metric.TTFT], slow.values[metric.TPOT] = 300*ms, 60*ms
	for i, want := range map[string][4]bool{ // good, late, slow, failed
		"p99 ttft<200ms":         {false, true, false, true},
		"tpot<50ms, e2e<9s @90%": {false, false, true, true},
		"errors<1%":              {false, false, false, true},
	} {
		found := false
		for _, c := range claims {
			if c.Spec != i {
				continue
			}
			found = true
			got := [4]bool{c.ViolatedBy(good), c.ViolatedBy(late), c.ViolatedBy(slow), c.ViolatedBy(failed)}
			if got != want {
				t.Errorf("%s: %v, want %v", i, got, want)
			}
		}
		if !found {
			t.Errorf("no claim %q among %v", i, claims)
		}
	}
	for _, text := range []string{"p99 itl<50ms", "p100 ttft<1s"} {
		s, err := Parse(text)
		if err != nil {
			continue
		}
		if _, err := s.SplitClaims(); err == nil {
			t.Errorf("%s is searched for", text)
		}
	}
}
