package capacity

import (
	"slices"
	"testing"

	"pitot/internal/results/metric"
	"pitot/internal/results/result"
	"pitot/internal/stats"
)

// Each load comes once more for each repeat, in an order of its own.
func TestLoadsRepeat(t *testing.T) {
	l := NewLoads(LoadsConfig{Given: []float64{1, 2, 3, 4, 5, 6}, Repeat: 3, Seed: 1})
	var got []float64
	for {
		load, ok := l.Next(nil)
		if !ok {
			break
		}
		got = append(got, load)
	}
	if len(got) != 18 || slices.Equal(got[:6], got[6:12]) {
		t.Fatalf("loads %v", got)
	}
	for r := range 3 {
		if round := slices.Sorted(slices.Values(got[6*r : 6*r+6])); !slices.Equal(round, []float64{1, 2, 3, 4, 5, 6}) {
			t.Errorf("repeat %d: %v", r, round)
		}
	}
}

// A curve of repeated loads is that of their medians, and says how far they
// came out apart.
func TestCurveOfRepeats(t *testing.T) {
	loads := []float64{8, 1, 16, 2, 10, 32, 4, 9, 11, 12, 14}
	once := CurveOf(points(bent, loads...))
	off := func(by float64) func(float64) float64 { return func(load float64) float64 { return by * bent(load) } }
	thrice := CurveOf(append(append(points(off(1.5), loads...), points(bent, loads...)...), points(off(0.8), loads...)...))
	if thrice.Knee.Load != once.Knee.Load || *thrice.UnstableFrom != *once.UnstableFrom {
		t.Errorf("knee %+v, unstable from %v", thrice.Knee, *thrice.UnstableFrom)
	}
	if len(thrice.Points) != 33 || len(thrice.Repeats) != 11 || thrice.Repeats[0].Covers != ThisLaunch || once.Repeats != nil {
		t.Fatalf("%d points, %d repeated loads, covers %q", len(thrice.Points), len(thrice.Repeats), thrice.Repeats[0].Covers)
	}
	r := thrice.Repeats[0]
	if r.Load != 1 || !slices.Equal(r.Points, []int{1, 12, 23}) || r.Spread["e2e_ms.p50"] != [2]float64{80, 150} || r.Median["e2e_ms.p50"] != 100 {
		t.Errorf("%+v", r)
	}
	// The front names the repeats with the median latency.
	if !slices.Equal(thrice.Pareto.TTFT, []int{2 + 11, 10 + 11, 9 + 11, 8 + 11, 4 + 11}) {
		t.Errorf("front %v", thrice.Pareto.TTFT)
	}
}

// Repeats of which nobody could tell whether they were in balance are not
// stable together.
func TestMiddleOfUndecided(t *testing.T) {
	group := []CurvePoint{{Load: 1, Stability: stats.Undecided}, {Load: 1, Stability: stats.Undecided}, {Load: 1, Stability: stats.Stable}}
	if got := middleOf(group).Stability; got != stats.Undecided {
		t.Errorf("together %s", got)
	}
	group[1].Stability = stats.Stable
	if got := middleOf(group).Stability; got != stats.Stable {
		t.Errorf("most are stable, together %s", got)
	}
}

// Of the repeats of one load a median is given where all have the value, and a
// spread where two have.
func TestRepeats(t *testing.T) {
	at := func(ttft, attained float64, met result.Met) result.Point {
		due := ttft / 10
		p := result.Point{Throughput: result.Throughput{DuePerS: &due}, Metrics: result.MetricsOf(map[metric.Name]*result.Summary{metric.TTFT: &result.Summary{P50: &ttft}}), SLO: &result.SLO{Met: met, Attained: &attained}}
		if ttft == 0 {
			p.Metrics.SetSummary(metric.TTFT, nil)
		}
		return p
	}
	if SummarizeRepeats([]result.Point{at(1, 1, "yes")}) != nil {
		t.Error("one point is repeated")
	}
	r := SummarizeRepeats([]result.Point{at(30, .99, "yes"), at(10, .9, "no"), at(20, .98, "yes"), at(40, 1, "yes")})
	if r.Median["ttft_ms.p50"] != 20 || r.Spread["ttft_ms.p50"] != [2]float64{10, 40} || r.Median["slo.attained"] != .98 {
		t.Errorf("%+v", r)
	}
	if r.Median["due_per_s"] != 2 || r.Spread["due_per_s"] != [2]float64{1, 4} {
		t.Errorf("what came due: %+v", r)
	}
	if r.Met["yes"] != 3 || r.Met["no"] != 1 || r.Met["undecided"] != 0 || !slices.Equal(r.Points, []int{0, 1, 2, 3}) {
		t.Errorf("%+v", r)
	}
	r = SummarizeRepeats([]result.Point{at(30, 1, "yes"), at(0, 1, "yes"), at(20, 1, "yes")})
	if _, known := r.Median["ttft_ms.p50"]; known || r.Spread["ttft_ms.p50"] != [2]float64{20, 30} {
		t.Errorf("%+v", r)
	}
}
