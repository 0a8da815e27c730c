package capacity

import (
	"math"
	"slices"
	"testing"

	"pitot/internal/results/metric"
	"pitot/internal/results/result"
)

// points of an open loop: latency in ms by load, unstable where it is 0.
func points(latency func(load float64) float64, loads ...float64) (list []result.Point) {
	for _, load := range loads {
		l, e2e := load, latency(load)
		p := result.Point{Load: result.Load{Loop: "open", Rate: &l}, Stability: "stable", Outcome: "ok"}
		served, tokens := load, 100*load
		if e2e == 0 {
			p.Stability = "unstable"
			served, tokens = 16, 1600
		} else {
			ttft, tpot := e2e/10, e2e/100
			p.Metrics = result.MetricsOf(map[metric.Name]*result.Summary{metric.E2E: {P50: &e2e}, metric.TTFT: {P50: &ttft}, metric.TPOT: {P50: &tpot}})
		}
		p.Throughput.DuePerS, p.Throughput.RequestsPerS, p.Throughput.OutputTokensPerS = &l, &served, &tokens
		list = append(list, p)
	}
	return list
}

// bent is flat up to 10 and steep beyond.
func bent(load float64) float64 {
	switch {
	case load > 16:
		return 0
	case load > 10:
		return 100 + 200*(load-10)
	}
	return 100
}

func TestCurveBends(t *testing.T) {
	c := CurveOf(points(bent, 8, 1, 16, 2, 10, 32, 4, 9, 11, 12, 14))
	if c.Knee == nil || c.Knee.Load != 10 || c.Knee.Resampled == nil || !(c.Knee.Resampled[0] <= 10 && 10 <= c.Knee.Resampled[1] && c.Knee.Resampled[1] <= 16) || *c.Knee.Others["kneedle"] != 10 {
		t.Errorf("knee %+v, %v", c.Knee, c.NoKnee)
	}
	if !slices.Equal(c.Points, []int{1, 3, 6, 0, 7, 4, 8, 9, 10, 2, 5}) || c.Over != "rate" {
		t.Errorf("points %v over %s", c.Points, c.Over)
	}
	if c.UnstableFrom == nil || *c.UnstableFrom != 32 || c.Saturation == nil || c.Saturation.RequestsPerS != 16 || *c.Saturation.OutputTokensPerS != 1600 {
		t.Errorf("unstable from %v, saturation %+v", c.UnstableFrom, c.Saturation)
	}
	// Beyond 10 each load has more throughput and more latency; below, the
	// throughput alone differs; the unstable one is on no front.
	if want := []int{2, 10, 9, 8, 4}; !slices.Equal(c.Pareto.UserSpeed, want) || !slices.Equal(c.Pareto.TTFT, want) {
		t.Errorf("fronts %v, %v", c.Pareto.UserSpeed, c.Pareto.TTFT)
	}
}

// What a server served that went away is no saturation.
func TestSaturationOfAFailingServer(t *testing.T) {
	list := points(bent, 1, 2, 4, 8)
	half := 3.0
	list[3].Outcome, list[3].Throughput.RequestsPerS = "failing", &half
	if s := CurveOf(list).Saturation; s != nil {
		t.Errorf("saturates at %v", s.RequestsPerS)
	}
}

// Of a load beyond what is served the second half of the window counts, with
// its interval.
func TestSaturationOfTheSecondHalf(t *testing.T) {
	list := points(bent, 1, 2, 4, 8, 32)
	list[4].Throughput.Late = &result.Late{OutputTokensPerS: 1700, CI95: &[2]float64{1650, 1750}}
	hundred := 100.0
	list[4].Metrics.SetSummary(metric.OutputTokens, &result.Summary{Mean: &hundred})
	s := CurveOf(list).Saturation
	if s == nil || s.RequestsPerS != 17 || *s.OutputTokensPerS != 1700 || s.CI95 == nil || math.Abs(s.CI95[0]-16.5) > .02 || math.Abs(s.CI95[1]-17.5) > .02 {
		t.Errorf("%+v", s)
	}
}

func TestCurveWithoutKnee(t *testing.T) {
	loads := []float64{1, 2, 4, 6, 8, 10, 12, 14, 15, 15.5}
	for name, c := range map[string]struct {
		latency func(float64) float64
		reason  result.Reason
	}{
		"flat":     {func(float64) float64 { return 100 }, result.Reason{Code: result.NoBend}},
		"M/M/1":    {func(load float64) float64 { return 100 / (1 - load/16) }, result.Reason{Code: result.KneesDiffer, Low: 8}},
		"overload": {func(load float64) float64 { return bent(4 * load) }, result.Reason{Code: result.FewLoads}},
	} {
		got := CurveOf(points(c.latency, loads...))
		if got.Knee != nil || got.NoKnee.Code != c.reason.Code || c.reason.Low > 0 && got.NoKnee.Low != c.reason.Low {
			t.Errorf("%s: %+v, %v", name, got.Knee, got.NoKnee)
		}
		if (got.Saturation == nil) != (name != "overload") {
			t.Errorf("%s: saturation %+v", name, got.Saturation)
		}
	}
	if CurveOf(nil) != nil {
		t.Error("a curve of no points")
	}
}

// Loads climb to past the knee, and the others lie where it bends.
func TestLoads(t *testing.T) {
	l := NewLoads(LoadsConfig{Points: 12, Residence: 1, Seed: 1})
	var seen []CurvePoint
	for {
		load, ok := l.Next(seen)
		if !ok {
			break
		}
		p := points(bent, load)
		seen = append(seen, PointOf(len(seen), &p[0]))
	}
	rising, between := 0, 0
	for i, p := range seen {
		if i > 0 && p.Load == 2*seen[i-1].Load && rising == i-1 {
			rising = i
		} else if p.Load > 8 && p.Load < 32 {
			between++
		}
	}
	if len(seen) != 12 || rising < 4 || between < 4 || seen[0].Load != 1 || slices.ContainsFunc(seen, func(p CurvePoint) bool { return p.Load > 64 || math.IsNaN(p.Load) }) {
		t.Errorf("%d points, %d rising, %d between: %+v", len(seen), rising, between, seen)
	}
}

// Knee, saturation and where queues grow are those of the loads that are not INVALID, and where
// these would change them it is said.
func TestCurveNamesNoInvalidLoad(t *testing.T) {
	list := points(bent, 1, 2, 4, 8, 9, 10, 11, 12, 14, 16, 32)
	if c := CurveOf(list); c.Knee == nil || c.Saturation == nil {
		t.Fatalf("knee %+v, saturation %+v", c.Knee, c.Saturation)
	}
	for i := range list {
		if x := list[i].Load.Value(); x == 10 || x >= 16 {
			list[i].Verdict = result.Invalid
		}
	}
	c := CurveOf(list)
	valid := CurveOf(slices.DeleteFunc(slices.Clone(list), func(p result.Point) bool { return p.Verdict == result.Invalid }))
	if !sameShape(c, valid) || c.LeftOut != 3 || c.Knee != nil && c.Knee.Load == 10 || c.Saturation != nil && c.Saturation.Load >= 16 {
		t.Errorf("knee %+v (%v), saturation %+v, %d left out", c.Knee, c.NoKnee, c.Saturation, c.LeftOut)
	}
}
