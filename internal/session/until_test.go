package session

import (
	"testing"

	"pitot/internal/results/metric"
	"pitot/internal/results/result"
)

// A window is doubled until the value is known well enough, and says how it
// came out. In virtual time a look takes none.
func TestUntil(t *testing.T) {
	run, dir := mustMeasure(t, "sim:fixed?ttft=50ms&itl=5ms&jitter=0.5", "--input", "16", "--output", "8", "--rate", "20", "--warmup", "1s",
		"--duration", "5s", "--until", "mean e2e +-1.5%", "--seed", "3")
	p := run.Points[0]
	u := p.Until
	if u == nil || !u.Reached || u.Looks < 3 || u.HalfWidthPercent == nil || *u.HalfWidthPercent > 1.5 || u.Spec != "mean e2e +-1.5%" {
		t.Fatalf("until %+v", u)
	}
	window := 5.
	for range u.Looks - 1 {
		window *= 2
	}
	if p.Seconds.Window != window || len(rowsOf(t, dir)[0]) < p.Requests.Due || p.Requests.Cut > 0 {
		t.Errorf("window of %v after %d looks; requests %+v", p.Seconds.Window, u.Looks, p.Requests)
	}
	again, err := Finish(dir, func(string) {})
	if err != nil || again.Points[0].Until == nil || *again.Points[0].Until.HalfWidthPercent != *u.HalfWidthPercent {
		t.Errorf("finished again: %+v, %v", again.Points[0].Until, err)
	}
	// What was looked at until it was narrow has no 95 % interval.
	if e2e, ttft := p.Metrics.SummaryOf(metric.E2E), p.Metrics.SummaryOf(metric.TTFT); len(e2e.CI95) > 0 || e2e.NoInterval["mean"].Code != result.EndedByLook || len(ttft.CI95) == 0 {
		t.Errorf("intervals %v, %v", e2e.CI95, ttft.CI95)
	}

	run, _ = mustMeasure(t, "sim:fixed?ttft=50ms&itl=5ms&jitter=0.5", "--input", "16", "--output", "8", "--rate", "20", "--warmup", "1s",
		"--duration", "20s", "--until", "p99 ttft +-0.1%", "--max-duration", "1m", "--seed", "3")
	if u := run.Points[0].Until; u == nil || u.Reached || u.Why != (result.Reason{Code: result.BudgetUsed, Seconds: 60}) || u.Looks != 3 || run.Points[0].Seconds.Window != 60 {
		t.Errorf("budget: %+v, window %v", u, run.Points[0].Seconds.Window)
	}
}

// Over sockets the load goes on while somebody looks.
func TestUntilOverSockets(t *testing.T) {
	t.Parallel()
	run, _ := mustMeasure(t, quick("mock:fixed?ttft=2ms&itl=100us", "--output", "3", "--rate", "200", "--until", "mean e2e +-80%")...)
	u := run.Points[0].Until
	if u == nil || u.Looks < 1 || run.Points[0].Requests.Cut > 0 {
		t.Fatalf("until %+v, requests %+v", u, run.Points[0].Requests)
	}
	accounted(t, run)
}

// A load far beyond what is served ends as soon as that is certain, in a
// session that asks for it.
func TestHopelessEndsEarly(t *testing.T) {
	p := planned(t, "sim:fixed?ttft=50ms&itl=5ms&slots=4", "--input", "16", "--output", "11", "--seed", "1", "--out", t.TempDir()+"/run")
	r := Runner{Command: []string{"pitot", "sweep"}}
	s, err := r.Open(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	for _, rate := range []float64{20, 80} { // 40 are served
		l := s.NewSpec()
		l.Rate, l.Warmup, l.Stage, l.GiveUp = rate, 1e9, "curve", true
		if _, err := s.Measure(t.Context(), l); err != nil {
			t.Fatal(err)
		}
	}
	run, err := s.Close(false, nil)
	if err != nil {
		t.Fatal(err)
	}
	calm, over := run.Points[0], run.Points[1]
	if calm.EndedEarly || calm.Seconds.Window != 60 || calm.Stability != "stable" {
		t.Errorf("20/s: %v, window %v, %s", calm.EndedEarly, calm.Seconds.Window, calm.Stability)
	}
	if !over.EndedEarly || over.StabilityWhy.Code != result.QueueGrew || over.Seconds.Window != 30 || over.Stability != "unstable" || over.Outcome != "unstable" {
		t.Errorf("80/s: %v, window %v, %s, %s", over.EndedEarly, over.Seconds.Window, over.Stability, over.Outcome)
	}
	if over.Requests.Errors["interrupted"] == 0 || over.Seconds.Drain > 0.01 {
		t.Errorf("what was under way was waited for: %+v, drain %v", over.Requests, over.Seconds.Drain)
	}
	accounted(t, run)
}
