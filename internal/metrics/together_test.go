package metrics

import (
	"slices"
	"testing"

	"pitot/internal/results/record"
	"pitot/internal/results/result"
	"pitot/internal/stats"
)

// Percentiles over all points are order statistics of all requests together.
func TestTogether(t *testing.T) {
	var folds []*Fold
	var points []result.Point
	var all []float64
	for n := range 3 {
		s, frames := window(10), plain(60)
		for i := range frames {
			for k := range frames[i].Rows {
				r := &frames[i].Rows[k]
				shift := int64(1e6 * (1 + (i*7+13*n)%50))
				r.FirstToken += shift
				r.LastToken += shift
				r.Done += shift
				if r.Due >= s.T0 && r.Due < s.T1 && r.Outcome == record.OK {
					all = append(all, float64(r.FirstToken-r.Due)/1e6)
				}
			}
		}
		f := fold(s, frames...)
		folds = append(folds, f)
		points = append(points, f.Point())
	}
	slices.Sort(all)
	got := PoolPercentiles(folds, points)
	x, ok := got["ttft_ms.p99"]
	if want := stats.Percentile(all, .99); !ok || x.Value != want || x.N != int64(len(all)) || !x.Few {
		t.Errorf("%+v of %d, want %g", x, len(all), want)
	}
	if _, ok := PoolPercentiles(folds[:1], points[:1])["ttft_ms.p99"]; ok {
		t.Error("one point is no repetition")
	}
	points[1].Metrics.SetSummary("ttft", nil)
	if _, ok := PoolPercentiles(folds, points)["ttft_ms.p99"]; ok {
		t.Error("a point lacks it")
	}
}
