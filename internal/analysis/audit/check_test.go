package audit

import (
	"math"
	"testing"
	"time"

	"pitot/internal/metrics"
	"pitot/internal/results/result"
	"pitot/internal/sim/serve"
)

func TestNumbersOfTruth(t *testing.T) {
	const ms = int64(1e6)
	var g truths
	g.addTruth(&serve.Truth{ArrivalNS: 100 * ms, EmitNS: []int64{150 * ms, 160 * ms, 175 * ms}})
	g.addTruth(&serve.Truth{ArrivalNS: 200 * ms, EmitNS: []int64{270 * ms, 280 * ms}})
	g.addTruth(&serve.Truth{ArrivalNS: 300 * ms}) // nothing was emitted
	n := g.numbers()
	if g.requests != 3 || n.TTFT.N != 2 || *n.TTFT.Mean != 60 || n.Gap.N != 3 || *n.Gap.P50 != 10 || *n.Gap.Max != 15 {
		t.Errorf("%+v %+v", n.TTFT, n.Gap)
	}
	if n.TTFT.P99 != nil || n.Gap.P99 != nil {
		t.Error("a p99 of three samples is given")
	}
	if n := new(truths).numbers(); n.TTFT != nil || n.Gap != nil {
		t.Error("nothing has numbers")
	}
}

// same gives a distribution of n times x, with the bounds of its p99.
func same(n int, x float64, bounds ...float64) *result.Summary {
	xs := make([]float64, n)
	for i := range xs {
		xs[i] = x
	}
	s := metrics.Summarize(xs)
	if len(bounds) == 2 {
		s.Bounds = map[string][2]float64{"p99": {bounds[0], bounds[1]}}
	}
	return s
}

// A p99 counts from 100 samples on, is firm from 1,000 on, and is no part of
// the worst error before.
func TestFiguresFollowTheirNumber(t *testing.T) {
	for n, want := range map[int]struct {
		known, few bool
		worst      float64
	}{99: {false, false, 0.5}, 100: {true, true, 0.5}, 999: {true, true, 0.5}, 1000: {true, false, 0.5}} {
		l := Level{Accuracy: Accuracy{Reported: Numbers{same(n, 50.5), same(n, 10)}, True: Numbers{same(n, 50), same(n, 10)}}}
		for i, f := range l.KeyFigures() {
			_, known := f.Error()
			if p99 := i%2 == 1; f.N != int64(n) || p99 && (known != want.known || f.Few != want.few) || !p99 && (!known || f.Few) {
				t.Errorf("n = %d: %+v", n, f)
			}
		}
		if w := l.LargestError(); math.Abs(w-want.worst) > 1e-9 {
			t.Errorf("n = %d: worst error %v, want %v", n, w, want.worst)
		}
		if _, known := l.IsWithinBounds(); known != want.known {
			t.Errorf("n = %d: the bounds of the p99 are judged: %v", n, known)
		}
	}
	if l := new(Level); l.LargestError() != 0 {
		t.Error("nothing has an error")
	}
}

func TestInside(t *testing.T) {
	ms := float64(Tolerance) / float64(time.Millisecond)
	for _, c := range []struct {
		true, lo, hi float64
		want         bool
	}{{11.5, 11, 12, true}, {12 + ms/2, 11, 12, true}, {12 + 2*ms, 11, 12, false}, {11 - ms/2, 11, 12, true}, {11 - 2*ms, 11, 12, false}} {
		l := Accuracy{Reported: Numbers{Gap: same(1000, c.true, c.lo, c.hi)}, True: Numbers{Gap: same(1000, c.true)}}
		if in, known := l.IsWithinBounds(); in != c.want || !known {
			t.Errorf("%v in %v to %v: %v, %v", c.true, c.lo, c.hi, in, known)
		}
	}
	l := Accuracy{Reported: Numbers{Gap: same(1000, 10)}, True: Numbers{Gap: same(1000, 10+2*ms)}}
	if in, _ := l.IsWithinBounds(); in {
		t.Error("a value without bounds is its own bound")
	}
}
