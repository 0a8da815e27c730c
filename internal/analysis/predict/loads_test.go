package predict

import (
	"math"
	"testing"

	"pitot/internal/sim/deploy"
)

// A load in virtual time is as it was asked, and its replay on the same engine with
// the same chances is the same again.
func TestLoadIsServed(t *testing.T) {
	t.Parallel()
	d := parsed(t, "llama-3.1-8b@h100?max_num_seqs=16")
	l := TwinLoad{Name: "users", Users: 8, Input: [2]int{100, 200}, Output: [2]int{5, 10}, Requests: 10_000, Seconds: 3, Warmup: 1}
	r := l.Serve(d.Engine(1), 1)
	again := r.replay(d)
	for i, q := range r.Requests {
		if q.Input < 100 || q.Input > 200 || q.Output < 5 || q.Output > 10 || len(q.times) != q.Output {
			t.Fatalf("%+v", q)
		}
		if q.Arrival > 3.1 || q.measured != (q.Arrival >= 1) {
			t.Errorf("sent at %v, measured: %v", q.Arrival, q.measured)
		}
		if math.Abs(again[i].ttft-q.seen.ttft) > 1e-9 {
			t.Errorf("request %d: TTFT %v, replayed %v", i, q.seen.ttft, again[i].ttft)
		}
	}
	if n := r.meanRunning(); n < 6 || n > 8 {
		t.Errorf("%v of 8 users' requests at once", n)
	}
	l = TwinLoad{Name: "rate", Rate: 20, Input: [2]int{600, 600}, Output: [2]int{5, 5}, Requests: 1000, Prefix: 512, PrefixShare: 1}
	e := d.Engine(1)
	r = l.Serve(e, 1)
	if last := r.Requests[999].Arrival; math.Abs(last-50) > 6 {
		t.Errorf("1000 requests at 20 a second in %v s", last)
	}
	if s := e.Stats(); s.PrefixHits < 512*900 {
		t.Errorf("%d tokens of prompts that begin alike were cached", s.PrefixHits)
	}
}

func parsed(t *testing.T, spec string) *deploy.Deployment {
	t.Helper()
	d, err := deploy.Parse(spec)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// The fit without a part of the loads, by the slopes of the fit to all, predicts that
// part nearly as a fit that was made without it.
func TestFitWithoutALoad(t *testing.T) {
	if testing.Short() {
		t.Skip("replays for seconds")
	}
	t.Parallel()
	truth := parsed(t, "qwen2.5-7b@l40s?step_overhead=3ms&row_overhead=60us&compute_efficiency=0.5&frontend_request=3ms&max_num_seqs=32")
	start := parsed(t, "qwen2.5-7b@l40s?max_num_seqs=32")
	var runs []*Recording
	for i, l := range []DesignLoad{{1, 512, 64}, {4, 64, 64}, {16, 512, 32}, {8, 2048, 16}, {32, 64, 32}} {
		runs = append(runs, l.LoadFor(2.5, 0.5).Serve(truth.Engine(uint64(i)+50), uint64(i)))
	}
	shown := shownOf(runs)
	f, _, _, err := fitParameters(start, nil, shown, mostSlopes)
	if err != nil {
		t.Fatal(err)
	}
	f.addSlopes()
	const out = 2
	others := func(run int) bool { return run != out }
	apart, err := fitOf(start, shown, others)
	if err != nil {
		t.Fatal(err)
	}
	recorded := runs[out].RecordedSeries().Metrics()
	a := PercentErrors(runs[out].Replay(&f.fitToSome(others).d).Metrics(), recorded)
	b := PercentErrors(runs[out].Replay(&apart.d).Metrics(), recorded)
	t.Logf("off by %+.1f, %+.1f and %+.1f %%, of a fit apart %+.1f, %+.1f and %+.1f %%", a.TTFT.Mean, a.TPOT.Mean, a.E2E.Mean, b.TTFT.Mean, b.TPOT.Mean, b.E2E.Mean)
	for _, q := range [][2]float64{{a.TTFT.Mean, b.TTFT.Mean}, {a.TPOT.Mean, b.TPOT.Mean}, {a.E2E.Mean, b.E2E.Mean}} {
		if math.Abs(q[0]-q[1]) > 6 {
			t.Errorf("off by %.1f %%, of a fit apart by %.1f %%", q[0], q[1])
		}
	}
}

// The error to expect is that of the loads left out within what was fitted, and wider
// the further beyond a load is and the more the parameters are open that it depends on.
func TestErrorBeyond(t *testing.T) {
	d := parsed(t, "llama-3.1-8b@h100")
	if ErrorAt(d, deploy.Range{}, nil) != nil {
		t.Error("an error to expect of a deployment that is not fitted")
	}
	d.Fitted = &deploy.Range{Input: [2]int{32, 6000}, Output: [2]int{8, 192}, Running: [2]float64{0.9, 64}}
	d.FittedError = &deploy.ExpectedError{TTFTPct: 5, TPOTPct: 3, E2EPct: 4, Loads: 10}
	l := TwinLoad{Name: "load", Users: 4, Input: [2]int{100, 200}, Output: [2]int{20, 30}, Requests: 60}
	r := l.Serve(d.Engine(5), 5)
	of := func(output int, open ...map[string]float64) *deploy.ExpectedError {
		c := *d
		c.FittedOpen = open
		return ErrorAt(&c, deploy.Range{Input: [2]int{100, 200}, Output: [2]int{20, output}, Running: [2]float64{4, 4}}, func(d *deploy.Deployment) Metrics { return r.Replay(d).Metrics() })
	}
	steps := map[string]float64{"step_overhead": 1.5, "row_overhead": 0.9}
	if e := of(192, steps); *e != *d.FittedError {
		t.Errorf("within: %+v", e)
	}
	near, far, open := of(300), of(1000), of(300, steps)
	if !(near.TPOTPct > 3 && far.TPOTPct > near.TPOTPct && open.TPOTPct > near.TPOTPct && open.E2EPct > near.E2EPct) {
		t.Errorf("beyond: %+v, %+v, and open: %+v", near, far, open)
	}
	want := (1 + widening*math.Log(300./192)) * 3
	if math.Abs(near.TPOTPct-want) > 1e-9 {
		t.Errorf("%v, want %v", near.TPOTPct, want)
	}
}

// Eigenvectors of a symmetric matrix make it again.
func TestEigen(t *testing.T) {
	m := [][]float64{{4, 1, -2}, {1, 3, 0.5}, {-2, 0.5, 1}}
	values, v := eigen(m)
	for i := range m {
		for j := range m {
			x := 0.0
			for k := range values {
				x += v[i][k] * values[k] * v[j][k]
			}
			if math.Abs(x-m[i][j]) > 1e-9 {
				t.Errorf("%d,%d: %v, want %v", i, j, x, m[i][j])
			}
		}
	}
}
