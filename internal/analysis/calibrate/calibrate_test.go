package calibrate

import (
	"context"
	"math"
	"testing"
	"time"

	"pitot/internal/analysis/predict"
	"pitot/internal/sim/deploy"
)

// A calibration measures each half of its loads forwards and backwards, and its twin
// predicts a load that was none of them.
func TestTwin(t *testing.T) {
	if testing.Short() {
		t.Skip("replays for seconds")
	}
	t.Parallel()
	parse := func(spec string) *deploy.Deployment {
		d, err := deploy.Parse(spec)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	known, truth := parse("qwen2.5-0.5b@l4?max_num_seqs=16"), parse("qwen2.5-0.5b@l4?max_num_seqs=16&step_overhead=4ms&row_overhead=90us&compute_efficiency=0.4")
	var loads []predict.DesignLoad
	c := Calibration{Deployment: known, Time: 56 * time.Second, Each: 3 * time.Second, Measure: func(_ context.Context, l predict.DesignLoad) ([]*predict.Recording, error) {
		loads = append(loads, l)
		n := uint64(len(loads))
		return []*predict.Recording{l.LoadFor(2, 0.5).Serve(truth.Engine(n+50), n)}, nil
	}}
	result, err := c.Run(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	fit := result.Fit
	if len(loads) != 8 || loads[0] != loads[3] || loads[1] != loads[2] || loads[4] != loads[7] || loads[5] != loads[6] {
		t.Errorf("loads %+v", loads)
	}
	l := predict.TwinLoad{Name: "other", Users: 10, Input: [2]int{200, 800}, Output: [2]int{20, 100}, Requests: 200}
	r := l.Serve(truth.Engine(77), 77)
	recorded := r.RecordedSeries().Metrics()
	before, after := predict.PercentErrors(r.Replay(known).Metrics(), recorded), predict.PercentErrors(r.Replay(fit.Fitted).Metrics(), recorded)
	t.Logf("off by %+.1f, %+.1f and %+.1f %%", after.TTFT.Mean, after.TPOT.Mean, after.E2E.Mean)
	for _, q := range [][2]float64{{before.TTFT.Mean, after.TTFT.Mean}, {before.TPOT.Mean, after.TPOT.Mean}, {before.E2E.Mean, after.E2E.Mean}} {
		if math.Abs(q[1]) > 8 || math.Abs(q[1]) > math.Abs(q[0]) {
			t.Errorf("off by %.1f %%, uncalibrated by %.1f %%", q[1], q[0])
		}
	}
}
