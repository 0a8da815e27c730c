package metrics

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"pitot/internal/results/metric"
	"pitot/internal/results/record"
	"pitot/internal/results/result"
	"pitot/internal/stats"
)

// balanced is the point of a queue's load over 150 residence times, that of a
// light load being known.
func balanced(utilisation float64, seed uint64, edit func(*Setup)) result.Point {
	s := Setup{T0: 20e9, T1: 170e9, Residence: 1e9, Load: result.Load{Loop: "open"}}
	if edit != nil {
		edit(&s)
	}
	return fold(s, record.Frame{Rows: queued(utilisation, 175, 0, seed)}).Point()
}

// At a moderate load the 95 % intervals of means, medians and rates hold the
// truth about as often as they say.
func TestIntervalsHoldTheTruth(t *testing.T) {
	if testing.Short() {
		t.Skip("a simulation on one goroutine, which the race detector only slows down")
	}
	t.Parallel()
	const utilisation, runs = .5, 10
	long := queued(utilisation, 10_000, 0, 7)
	var e2e []float64
	for _, r := range long {
		e2e = append(e2e, float64(r.LastToken-r.Due)/1e6)
	}
	mean, _ := stats.Moments(e2e)
	slices.Sort(e2e)
	truth := map[string]float64{"mean": mean, "p50": stats.Percentile(e2e, .5), "p99": stats.Percentile(e2e, .99)}
	const rate, goal = 32 * utilisation, .9
	limit := stats.Percentile(e2e, goal)

	held, shown := map[string]int{}, map[string]int{}
	count := func(key string, v [2]float64, ok bool, truth float64) {
		if ok {
			shown[key]++
			if v[0] <= truth && truth <= v[1] {
				held[key]++
			}
		}
	}
	objective := spec(t, fmt.Sprintf("p90 e2e<%.2fms", limit))
	for i := range runs {
		p := balanced(utilisation, uint64(i), func(s *Setup) { s.SLO = objective })
		for key, x := range truth {
			v, ok := p.Metrics.SummaryOf(metric.E2E).CI95[key]
			count(key, v, ok, x)
		}
		v, ok := p.Throughput.CI95["requests_per_s"]
		count("rate", v, ok, rate)
		if p.SLO.CI95 != nil {
			count("attained", *p.SLO.CI95, true, goal)
		}
	}
	for key, n := range shown {
		share := float64(held[key]) / float64(n)
		t.Logf("%s: shown in %d of %d, holds in %.1f %%", key, n, runs, 100*share)
		if n < runs/2 || share < .85 {
			t.Errorf("%s: shown in %d of %d, holds in %.1f %%", key, n, runs, 100*share)
		}
	}
	if len(shown) != 5 {
		t.Errorf("intervals of %v", shown)
	}
}

// Without balance over many residence times there is a reason in the place of
// each interval, and it says what would give one.
func TestNoInterval(t *testing.T) {
	short := balanced(.5, 1, func(s *Setup) { s.T1 = s.T0 + 50e9 })
	for _, why := range []result.Reason{short.Metrics.SummaryOf(metric.E2E).NoInterval["mean"], short.Metrics.SummaryOf(metric.E2E).NoInterval["p99"], short.Metrics.SummaryOf(metric.TTFT).NoInterval["p50"], short.Throughput.NoInterval} {
		if why.Code != result.FewResidences || why.Needed != 100 || why.Longer.Seconds < 60 || why.Longer.Seconds >= 120 {
			t.Errorf("50 residence times: %v", why)
		}
	}
	if short.Throughput.CI95 != nil || len(short.Metrics.SummaryOf(metric.E2E).CI95) > 0 {
		t.Error("an interval after 50 residence times")
	}
	long := balanced(.3, 2, func(s *Setup) { s.T0, s.T1 = 5e9, 174e9 })
	ttft := long.Metrics.SummaryOf(metric.TTFT)
	if v, x := ttft.CI95["mean"], *ttft.Mean; math.Abs(math.Log(v[1]/x)/math.Log(x/v[0])-1.5) > 1e-9 {
		t.Errorf("a mean wait of %v: %v, want half as much again upwards", x, v)
	}
	if why := ttft.NoInterval["p99"]; why.Code != result.OneLoad || ttft.NoInterval["p95"].Code == result.OneLoad {
		t.Errorf("p99 of TTFT: %v; p95: %v", why, ttft.NoInterval["p95"])
	}
	near := balanced(.95, 1, nil)
	for _, why := range []result.Reason{near.Metrics.SummaryOf(metric.E2E).NoInterval["mean"], near.Metrics.SummaryOf(metric.TTFT).NoInterval["p50"]} {
		if why.Code != result.SlowQueue || why.N >= 70 || why.Needed != 70 || why.Longer.Seconds <= 150 {
			t.Errorf("near saturation: %v", why)
		}
	}
	counted := balanced(.5, 1, func(s *Setup) { s.T1, s.Requests = s.T0+50e9, 800 })
	if why := counted.Throughput.NoInterval; why.Longer.Requests < 100 {
		t.Errorf("a window that counts requests: %v", why)
	}
}
