package metrics

import (
	"testing"

	"pitot/internal/results/metric"
	"pitot/internal/results/record"
	"pitot/internal/results/result"
	"pitot/internal/stats"
)

// A server that went away is a failed one, whatever share it had answered. What
// it did answer keeps its latencies: those that were refused, or not sent any
// more, were not followed for any time.
func TestGone(t *testing.T) {
	frames := plain(1000)
	for id := int64(1000); id < 1200; id++ {
		fr := failed(id, id, 1, record.ErrConnect)
		if id >= 1100 {
			fr = unsent(id, id)
			fr.Rows[0].Error, fr.Rows[0].Done = record.ErrConnect, id*ms
		}
		frames = append(frames, fr)
	}
	since := 1000 * ms
	s := window(2)
	s.Gone = &since
	s.SLO = spec(t, "p50 ttft<200ms")
	p := fold(s, frames...).Point()
	if p.Outcome != result.Failing || p.WentAway == nil || *p.WentAway != 1 || p.Stability != stats.Undecided {
		t.Errorf("outcome %s, went away %v, stability %s", p.Outcome, p.WentAway, p.Stability)
	}
	if r := p.Requests; r.Due != 1200 || r.OK != 1000 || r.Failed != 100 || r.Unsent != 100 || r.Errors[record.ErrConnect] != 200 {
		t.Errorf("%+v", r)
	}
	if m := p.Metrics.SummaryOf(metric.TTFT); m.N != 1000 || m.Censored != 0 {
		t.Errorf("%d TTFT, %d censored", m.N, m.Censored)
	}
	near(t, "ttft p50", p.Metrics.SummaryOf(metric.TTFT).P50, 50)
	near(t, "attained", p.SLO.Attained, 1000./1200)
	if c := find(t, p.Checks, "server went away"); c.Status != result.Flag {
		t.Errorf("%+v", c)
	}
}
