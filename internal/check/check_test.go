package check

import (
	"math"
	"testing"

	"pitot/internal/twin/mock"
)

func TestNumbersOfTruth(t *testing.T) {
	const ms = int64(1e6)
	var g gaps
	g.add(&mock.Truth{ArrivalNS: 100 * ms, EmitNS: []int64{150 * ms, 160 * ms, 175 * ms}})
	g.add(&mock.Truth{ArrivalNS: 200 * ms, EmitNS: []int64{270 * ms, 280 * ms}})
	g.add(&mock.Truth{ArrivalNS: 300 * ms}) // nothing was emitted
	n := g.numbers()
	if n.Requests != 3 || n.Chunks != 5 || n.MeanTTFT != 60 || n.P99TTFT != 70 || n.MedianGap != 10 || n.P99Gap != 15 {
		t.Errorf("%+v", n)
	}
	if (&gaps{}).numbers() != (Numbers{}) {
		t.Error("nothing has numbers")
	}
}

func TestWorstAndWithin(t *testing.T) {
	l := Level{
		Said: Numbers{MeanTTFT: 50.2, P99TTFT: 60, MedianGap: 10, P99Gap: 12, P50Bounds: [2]float64{9.9, 10.1}, P99Bounds: [2]float64{11, 12}},
		True: Numbers{MeanTTFT: 50, P99TTFT: 60.5, MedianGap: 10, P99Gap: 12.05},
	}
	if w := l.Worst(); math.Abs(w-0.5) > 1e-9 {
		t.Errorf("worst error %v, want 0.5", w)
	}
	if !l.Within(0.1) || l.Within(0.01) {
		t.Error("12.05 lies within 0.1 of 11 to 12, and not within 0.01")
	}
}

func TestSpread(t *testing.T) {
	if s := spread([]float64{1, -1, 3}); s.Mean != 1 || s.P99 != 3 || s.Max != 3 {
		t.Errorf("%+v", s)
	}
	if spread(nil) != (Spread{}) {
		t.Error("nothing has a spread")
	}
}
