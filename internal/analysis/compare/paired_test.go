package compare

import (
	"math"
	"math/rand/v2"
	"testing"

	"pitot/internal/results/metric"
	"pitot/internal/results/record"
	"pitot/internal/results/result"
	"pitot/internal/stats"
)

// The interval of the mean difference holds it where differences are alike for long, as those of
// two runs near saturation are; where they are not, it is hardly wider for it.
func TestPairedInterval(t *testing.T) {
	const reps, n = 400, 900
	for _, c := range []struct {
		alike float64 // correlation of neighbours
		n     int
		least float64 // share of intervals that hold the mean
		most  float64 // median half-width, in standard errors
	}{
		{0, n, .95, 3.5}, {.9, n, .93, 7}, {.97, n, .93, 12}, {0, 100, .93, 4}, {.6, 100, .93, 6},
	} {
		rng := rand.New(rand.NewPCG(4, uint64(100*c.alike)))
		held, wide := 0, 0.
		for range reps {
			x, xs := rng.NormFloat64(), make([]float64, c.n)
			for i := range xs {
				x = c.alike*x + math.Sqrt(1-c.alike*c.alike)*rng.NormFloat64()
				xs[i] = x
			}
			r := pairedRow("ttft", xs, 1.1)
			if r.CI95 == nil {
				t.Fatalf("%+v", r)
			}
			if r.CI95[0] <= 0 && 0 <= r.CI95[1] {
				held++
			}
			wide += (r.CI95[1] - r.CI95[0]) / 2 / reps
		}
		se := math.Sqrt((1 + c.alike) / (1 - c.alike) / float64(c.n))
		if share := float64(held) / reps; share < c.least || wide/se > c.most {
			t.Errorf("alike %g, %d pairs: held in %.3f, half-width %.2f standard errors", c.alike, c.n, share, wide/se)
		}
	}
	// What took long beside the window may have missed slow periods.
	if c := cautionOf([]float64{100, 100}, 20_000); math.Abs(c-1.2) > 1e-9 {
		t.Errorf("%g", c)
	}
}

// The change, the interval and the test of a pair's row are all of the pairs, and an interval that
// ends below no time at all is none the less one.
func TestPairedRow(t *testing.T) {
	for _, c := range []struct {
		a, b, mean float64 // ms
		ci         [2]float64
		change     float64
		in95       [2]float64
		word       string
	}{
		{100, 95, 5, [2]float64{2, 8}, .05, [2]float64{.02, .08}, Slower},
		{100, 105, -5, [2]float64{-8, 2}, -.05, [2]float64{-.08, .02}, Undistinguished},
		{3498, 300, -3198, [2]float64{-3598, -2798}, -3198. / 3498, [2]float64{-1, -2798. / 3498}, Faster},
		{3498, 300, -3198, [2]float64{-3490, -2906}, -3198. / 3498, [2]float64{-3490. / 3498, -2906. / 3498}, Faster},
		{100, 10, -110, [2]float64{-130, -90}, -1, [2]float64{-1, -.9}, Faster},
	} {
		mean := func(name string, x float64) Side {
			return side(name, 8, x).edit(0, func(p *result.Point) { delete(p.Metrics.SummaryOf(metric.TTFT).CI95, metric.Mean) })
		}
		x, y := measureSide(ptr(mean("a", c.a)), false), measureSide(ptr(mean("b", c.b)), false)
		p := Pair{A: "a", B: "b", Launches: [2]int{1, 1}, Paired: &Paired{Rows: []PairedRow{{Metric: "ttft", Pairs: 500, Mean: c.mean, CI95: &c.ci}}}}
		p.addPaired(x.measuredAt[x.order[0]], y.measuredAt[y.order[0]], Options{Within: .01})
		r := p.row("mean ttft")
		if r == nil || r.CI95 == nil || !r.NoInterval.IsNone() || r.P == nil {
			t.Fatalf("%+v: %+v", c, r)
		}
		for i := range 2 {
			if math.Abs(r.CI95[i]-c.in95[i]) > 1e-6 {
				t.Errorf("%+v: interval %v", c, *r.CI95)
			}
		}
		correctTests([]*Row{r})
		r.setVerdict()
		if math.Abs(r.Change-c.change) > 1e-6 || r.Verdict != c.word || math.Abs(r.A-c.a) > 1e-6 || (*r.P < .05) != (c.word != Undistinguished) {
			t.Errorf("%+v: change %g, p %g, %s", c, r.Change, *r.P, r.Verdict)
		}
	}
}

// Without an interval that can be shown a row keeps what it had, and why.
func TestNoIntervalStays(t *testing.T) {
	r := Row{NoInterval: result.Reason{Code: result.RunsHaveNone}, scale: scale{back: math.Log1p, change: math.Expm1}}
	r.testWithin(0, stats.Interval{Lo: math.NaN(), Hi: 1})
	if r.CI95 != nil || r.P != nil || r.NoInterval.Code != result.RunsHaveNone {
		t.Errorf("%+v", r)
	}
}

// Of windows that begin at unlike times the requests are paired that were due in both.
func TestCommonWindow(t *testing.T) {
	rows := func(from, to int64) map[int64]*record.Row {
		out := map[int64]*record.Row{}
		for i := from; i < to; i++ {
			out[i] = &record.Row{ID: i, Due: 1000 * i}
		}
		return out
	}
	for _, c := range []struct {
		a, b [2]int64
		n    int
		left bool
	}{
		{[2]int64{0, 100}, [2]int64{0, 100}, 100, false},
		{[2]int64{6, 124}, [2]int64{20, 129}, 104, true},
		{[2]int64{0, 100}, [2]int64{100, 200}, 0, true},
		{[2]int64{0, 0}, [2]int64{0, 9}, 0, true},
	} {
		a, b := rows(c.a[0], c.a[1]), rows(c.b[0], c.b[1])
		if left := keepCommonRequests(a, b); left != c.left || len(a) != c.n || len(b) != c.n {
			t.Errorf("%v: %d and %d left, %v", c, len(a), len(b), left)
		}
	}
}
