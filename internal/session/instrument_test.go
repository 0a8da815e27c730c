package session

import (
	"math"
	"runtime/metrics"
	"testing"
)

// One long pause is seen, also one beyond the last edge.
func TestPauses(t *testing.T) {
	h := &metrics.Float64Histogram{Counts: []uint64{0, 1000, 1, 0}, Buckets: []float64{math.Inf(-1), 0, 1e-5, .02, math.Inf(1)}}
	if got := maxPauseSum(h); math.Abs(got-.03) > 1e-12 {
		t.Errorf("%v s", got)
	}
	h.Counts[3] = 2
	if got := maxPauseSum(h); math.Abs(got-.07) > 1e-12 {
		t.Errorf("%v s with two beyond the last edge", got)
	}
}
