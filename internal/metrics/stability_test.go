package metrics_test

import (
	"testing"

	"pitot/internal/loadgen"
	"pitot/internal/metrics"
	"pitot/internal/results/metric"
	"pitot/internal/results/result"
	"pitot/internal/slo"
	"pitot/internal/workload/arrival"
)

func check(t *testing.T, p *result.Point, name string) result.Check {
	t.Helper()
	for _, c := range p.Checks {
		if c.Name == name {
			return c
		}
	}
	t.Fatalf("no check %v in %v", name, p.Checks)
	return result.Check{}
}

func objective(t *testing.T, text string) slo.Spec {
	t.Helper()
	s, err := slo.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Eight slots serve 20 requests a second; 26 leave a queue that grows by six.
// What counts from due is withheld, what the server does with a request in its
// slot is not; a limit that is met so far is not met.
func TestUnstable(t *testing.T) {
	engine := serving()
	engine.Slots = 8
	p := virtual(t, 26, 40, engine, 1, func(_ *loadgen.Config, s *metrics.Setup) { s.SLO = objective(t, "p50 e2e<100s, p50 tpot<1s") })
	g := p.Growth
	if p.Stability != "unstable" || p.Outcome != "unstable" || p.StabilityWhy.IsNone() || g == nil || g.PerS < 5 || g.PerS > 7 || g.Deficit < .19 || g.Deficit > .27 {
		t.Fatalf("%s, %s, %v, %+v", p.Stability, p.Outcome, p.StabilityWhy, g)
	}
	if n := len(p.InFlight); n != 12 || p.InFlight[n-1] < p.InFlight[0]+150 {
		t.Errorf("in flight %v", p.InFlight)
	}
	for name, s := range map[string]*result.Summary{"ttft": p.Metrics.SummaryOf(metric.TTFT), "e2e": p.Metrics.SummaryOf(metric.E2E)} {
		if s.Mean != nil || s.P50 != nil || s.P99 != nil || s.Max != nil || s.P99Numpy != nil || s.Withheld["p99"] != p.StabilityWhy || s.N == 0 || s.Min == nil {
			t.Errorf("%s: %+v", name, s)
		}
	}
	if s := p.Metrics.SummaryOf(metric.TPOT); s.P99 == nil || len(s.CI95) > 0 || s.NoInterval["p50"].IsNone() {
		t.Errorf("tpot: %+v", s)
	}
	if p.SLO.Met != "undecided" || p.SLO.Limits[0].Met != "undecided" || p.SLO.Limits[0].Value != nil || p.SLO.Limits[1].Met != "yes" || p.SLO.Limits[1].Value == nil {
		t.Errorf("%+v", p.SLO)
	}
	for _, name := range []string{"stability", "achieved rate"} {
		if c := check(t, &p, name); c.Status != "flag" {
			t.Errorf("%+v", c)
		}
	}
	if p.Verdict != result.ValidWithFlags {
		t.Error(p.Verdict)
	}
}

// after is a process before which so many requests come at once.
type after struct {
	arrival.Process
	burst int
}

func (a *after) Next() int64 {
	if a.burst > 0 {
		a.burst--
		return 0
	}
	return a.Process.Next()
}

// A queue from before the window drains into it: what ends there is more than
// this load, and no figure of a steady state.
func TestDrained(t *testing.T) {
	engine := serving()
	engine.Slots = 8
	p := virtual(t, 10, 30, engine, 1, func(cfg *loadgen.Config, s *metrics.Setup) {
		cfg.Arrivals, s.AutoWarmup = &after{cfg.Arrivals, 300}, false
	})
	if p.Stability != "undecided" || p.StabilityWhy.Code != result.QueueDrained {
		t.Errorf("%s: %v", p.Stability, p.StabilityWhy)
	}
	if c := check(t, &p, "achieved rate"); c.Status != "flag" || c.Case != result.CaseBacklog {
		t.Errorf("%+v", c)
	}
}

// Requests that a timeout cuts off are what is missing of those that end: the queue does not grow.
func TestCutIsNoQueue(t *testing.T) {
	p := virtual(t, 10, 60, serving(), 1, func(cfg *loadgen.Config, s *metrics.Setup) {
		cfg.Timeout = 3e8
	})
	if p.Stability != "stable" || p.Requests.Cut < 50 || p.Requests.OK < 50 {
		t.Fatalf("%s, %+v", p.Stability, p.Requests)
	}
	if c := check(t, &p, "achieved rate"); c.Status != "flag" || c.Case != result.CaseCut {
		t.Errorf("%+v", c)
	}
}

// What is served of an overload is read from the second half of its window.
func TestLate(t *testing.T) {
	engine := serving()
	engine.Slots = 8
	p := virtual(t, 26, 40, engine, 1, nil)
	l := p.Throughput.Late
	if l == nil || l.CI95 == nil || l.CI95[0] > l.OutputTokensPerS || l.CI95[1] < l.OutputTokensPerS {
		t.Fatalf("%+v", l)
	}
	if per := l.OutputTokensPerS / *p.Metrics.SummaryOf(metric.OutputTokens).Mean; per < 19 || per > 21 {
		t.Errorf("%.1f requests a second of 20", per)
	}
}

// An unstable queue stretches what the residence is taken from, if that is not
// known from a light load.
func TestResidenceOfALightLoad(t *testing.T) {
	engine := serving()
	engine.Slots = 8
	p := virtual(t, 26, 15, engine, 1, func(_ *loadgen.Config, s *metrics.Setup) { s.Residence = 4e8 })
	if p.Stability != "unstable" || p.Seconds.Residence != .4 {
		t.Errorf("%s after 37 residence times of %g s", p.Stability, p.Seconds.Residence)
	}
	p = virtual(t, 26, 10, engine, 1, func(_ *loadgen.Config, s *metrics.Setup) { s.Residence = 4e8 })
	if p.Stability != "undecided" || p.StabilityWhy != (result.Reason{Code: result.FewResidences, N: 25, Needed: 30, Longer: result.Longer{Seconds: 12}}) || p.Outcome != "ok" {
		t.Errorf("%s: %v", p.Stability, p.StabilityWhy)
	}
	p = virtual(t, 0, 10, engine, 1, nil)
	if p.Stability != "stable" || p.StabilityWhy.Code != result.ClosedLoop || p.Growth != nil || len(p.InFlight) != 12 {
		t.Errorf("%s: %v, %+v", p.Stability, p.StabilityWhy, p.Growth)
	}
}

// A light load rarely looks like a growing queue, although a request or two
// more at the end would be a share of its arrivals.
func TestStableLightLoads(t *testing.T) {
	if testing.Short() {
		t.Skip("simulations on one goroutine are slow under the race detector")
	}
	t.Parallel()
	alarms := map[float64]int{}
	for i := range uint64(30) {
		for _, rate := range []float64{2, 10, 50} {
			p := virtual(t, rate, 14, serving(), i, nil)
			if p.Stability != "stable" {
				alarms[rate]++
			}
		}
	}
	t.Logf("not stable in 30 runs, by rate: %v", alarms)
	for rate, n := range alarms {
		if n > 2 {
			t.Errorf("%d of 30 runs at %g/s are not stable", n, rate)
		}
	}
}

// What holds requests back is told, and who ends answers early.
func TestConditions(t *testing.T) {
	p := virtual(t, 30, 20, serving(), 3, func(c *loadgen.Config, s *metrics.Setup) {
		most := 12
		c.Cap, s.Load.MaxInFlight = most, &most
	})
	for _, name := range []string{"max in flight", "arrivals"} {
		if c := check(t, &p, name); c.Status != "flag" {
			t.Errorf("%+v", c)
		}
	}
	p = virtual(t, 30, 5, serving(), 3, nil)
	if c := check(t, &p, "residence times"); c.Status != "flag" || c.Detail["ask_seconds"] != 6 {
		t.Errorf("%+v", c)
	}
	p = virtual(t, 30, 20, serving(), 3, nil)
	for _, name := range []string{"arrivals", "residence times", "achieved rate", "Little's law", "stability", "warm-up"} {
		if c := check(t, &p, name); c.Status != "pass" {
			t.Errorf("%+v", c)
		}
	}
	if c := check(t, &p, "arrivals"); c.Detail["a2"] <= 0 {
		t.Errorf("%+v", c)
	}
}
