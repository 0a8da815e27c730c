package report

import (
	"fmt"
	"strings"
	"testing"

	"pitot/internal/results/metric"
	"pitot/internal/results/result"
)

// What is said of an objective must be true of every kind of limit, whatever
// the verdict.
func TestObjectiveSaysWhatItIsOf(t *testing.T) {
	limit := func(spec string, of metric.Name, met result.Met, attained *float64) result.Limit {
		return result.Limit{Spec: spec, Metric: of, Met: met, Attained: attained}
	}
	ttft := limit("p99 ttft<200ms", "ttft", "yes", new(.97))
	joint := limit("tpot<50ms", "tpot", "no", new(.96))
	pooled := limit("p99 itl<50ms", "itl", "undecided", nil)
	errors := limit("errors<5%", "errors", "yes", new(.98))
	offline := limit("p99 ttft<1s", "ttft", "undecided", nil) // nothing was streamed
	for name, c := range map[string]struct {
		limits []result.Limit
		want   string // of all limits together, "" for nothing said
	}{
		"one":             {[]result.Limit{ttft}, ""},
		"percentiles":     {[]result.Limit{ttft, limit("p50 e2e<1s", "e2e", "yes", new(.97))}, "95.5 % of all due requests ended well within every limit"},
		"joint, errors":   {[]result.Limit{joint, errors}, "95.5 % of all due requests ended well within every limit"},
		"pooled":          {[]result.Limit{ttft, pooled}, "95.5 % of all due requests ended well within every limit but p99 itl<50ms"},
		"pooled, errors":  {[]result.Limit{pooled, errors}, "95.5 % of all due requests ended well"},
		"not streaming":   {[]result.Limit{offline, limit("p99 e2e<2s", "e2e", "yes", new(1.))}, "95.5 % of all due requests ended well within every limit but p99 ttft<1s"},
		"nothing counted": {[]result.Limit{ttft, joint}, ""},
	} {
		for _, met := range []result.Met{result.Yes, result.No, result.Undecided} {
			s := &result.SLO{Spec: "…", Met: met, Attained: new(.955), Limits: c.limits}
			if name == "nothing counted" { // nothing was due
				s.Attained = nil
			}
			o := buildObjective(&result.Point{SLO: s})
			var got string
			for _, f := range o.Facts {
				if strings.Contains(f, "of all due requests ended") {
					got = f
				}
			}
			if got != c.want {
				t.Errorf("%s, %s: %q, want %q", name, met, got, c.want)
			}
			if text := strings.Join(o.Facts, " "); strings.Contains(text, "met all") {
				t.Errorf("%s, %s: %s", name, met, text)
			}
			if want := map[result.Met]string{"yes": ": met", "no": ": NOT met", "undecided": ": undecided"}[met]; !strings.HasSuffix(o.Facts[0], want) {
				t.Errorf("%s: %s", name, o.Facts[0])
			}
		}
	}
}

// A percentile of those that were answered must not look as if it met the limit that
// failures violate.
func TestFailuresCountInPercentile(t *testing.T) {
	l := result.Limit{Spec: "p99 ttft<100ms", Percentile: 99, Metric: "ttft", Value: new(52.5), Limit: 100, Attained: new(.825), Met: "no"}
	if got := limitFacts(l, 0)[0]; got != "measured >100.0 ms with failures counted, 52.5 ms of those answered" {
		t.Error(got)
	}
	l.Value = new(140.)
	if got := limitFacts(l, 0)[0]; got != "measured 140.0 ms" {
		t.Error(got)
	}
	l.Value, l.Met, l.Attained = new(52.5), "yes", new(.999)
	if got := limitFacts(l, 0)[0]; got != "measured 52.5 ms" {
		t.Error(got)
	}
}

// A share that misses a joint limit is not rounded to the one that is asked for, in the
// facts, the table, the claim and the table of loads alike.
func TestJointShareStandsOnItsSide(t *testing.T) {
	for _, c := range []struct {
		attained  float64
		met       result.Met
		want, not string
	}{{.98996, "no", "98.996 %", "99 %"}, {.99004, "yes", "99.004 %", "99 %"}, {.995, "yes", "99.5 %", ""}} {
		limits := []result.Limit{
			{Spec: "ttft<200ms", Metric: "ttft", Limit: 200, Attained: new(c.attained), Met: c.met},
			{Spec: "tpot<50ms", Metric: "tpot", Limit: 50, Attained: new(1.), Met: "yes"},
		}
		p := &result.Point{SLO: &result.SLO{Spec: "ttft<200ms, tpot<50ms @99%", Attained: new(c.attained), Met: c.met, Limits: limits}}
		o := buildObjective(p)
		text := []string{strings.Join(o.Facts, " · "), strings.Join(o.Limits[0], " · "), fmt.Sprint(o.Table.Rows)}
		for _, s := range text {
			if !strings.Contains(s, c.want) || c.not != "" && strings.Contains(s, " "+c.not) {
				t.Errorf("%v: %s", c.attained, s)
			}
		}
	}
}

// Where goodput is above throughput it is said that they are of other requests, and a reason that
// several limits have is said once.
func TestObjectiveSaysOnce(t *testing.T) {
	few := result.Reason{Code: result.FewForClaim, N: 53, Needed: 100}
	limit := func(spec string, m metric.Name) result.Limit {
		return result.Limit{Spec: spec, Percentile: 99, Metric: m, Limit: 200, Attained: new(1.), Met: result.Undecided, Why: few}
	}
	for _, c := range []struct {
		goodput, output float64
		told            bool
	}{{515.9, 511.2, true}, {511.21, 511.2, false}, {500, 511.2, false}} {
		p := &result.Point{
			SLO:        &result.SLO{Spec: "p99 ttft<200ms, p99 tpot<200ms", Met: result.Undecided, Attained: new(1.), Limits: []result.Limit{limit("p99 ttft<200ms", "ttft"), limit("p99 tpot<200ms", "tpot")}},
			Goodput:    &result.Goodput{RequestsPerS: 4.03, OutputTokensPerS: &c.goodput},
			Throughput: result.Throughput{RequestsPerS: new(4.03), OutputTokensPerS: &c.output},
		}
		o := buildObjective(p)
		text := strings.Join(o.Facts, "\n") + fmt.Sprint(o.Limits)
		if n := strings.Count(text, "53 requests are too few"); n != 1 {
			t.Errorf("said %d times:\n%s", n, text)
		}
		if got := strings.Contains(text, "goodput is of the requests due in the window, throughput of what ended in it"); got != c.told {
			t.Errorf("goodput %v of %v: told %v", c.goodput, c.output, got)
		}
		p.SLO.Limits[1].Why.N = 40 // each has its own
		if text := fmt.Sprint(buildObjective(p).Limits); !strings.Contains(text, "53 requests") || !strings.Contains(text, "40 requests") {
			t.Errorf("%s", text)
		}
	}
}
