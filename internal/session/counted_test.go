package session

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"pitot/internal/capacity"
	"pitot/internal/config"
	"pitot/internal/slo"
)

// A counted load ends as soon as it is decided.
func TestCountEndsEarly(t *testing.T) {
	objective, _ := slo.Parse("p90 ttft<60ms")
	claims, err := objective.SplitClaims()
	if err != nil {
		t.Fatal(err)
	}
	p := config.Default()
	p.Spec, p.Out, p.Seed, p.SeedSet = "sim:llama-3.1-8b@h100", filepath.Join(t.TempDir(), "run"), 5, true
	p.Input, p.Ask.Output = lengths(t, "400"), lengths(t, "4")
	s := open(t, &p)
	hopeless := func(violations []int, _ int) bool { return violations[0] > 50 }
	m, err := s.Measure(context.Background(), pointSpec(s, PointSpec{Load: config.Load{Rate: 400, Requests: 2000, Warmup: time.Second}, Counted: true, Claims: claims, Decided: hopeless}))
	if err != nil {
		t.Fatal(err)
	}
	if w := m.window; w == nil || !w.decided || w.violations[0] != 51 || m.Extent.Requests > 2000 || !(w.meanResidence() > 0) {
		t.Errorf("%+v of %d requests", w, m.Extent.Requests)
	}
	// None of its requests ended before it did: that is no server that went away.
	late, err := slo.Parse("p90 ttft<1ms")
	if err != nil {
		t.Fatal(err)
	}
	if claims, err = late.SplitClaims(); err != nil {
		t.Fatal(err)
	}
	atOnce := func(violations []int, _ int) bool { return violations[0] > 0 }
	m, err = s.Measure(context.Background(), pointSpec(s, PointSpec{Load: config.Load{Rate: 400, Requests: 500, Warmup: time.Second}, Counted: true, Claims: claims, Decided: atOnce}))
	if err != nil {
		t.Fatal(err)
	}
	m.Requests.OK = 0 // as where all that ended were late
	looking, probe := NewSearcher(s, claims, false, unseen{}), capacity.Probe{Load: 400, Requests: 500, Blocks: capacity.Blocks, Counted: true}
	seen := looking.makeSeen(probe, m, time.Time{})
	if !seen.Partial || seen.Failed {
		t.Errorf("%+v", seen)
	}
	if x := looking.makeSeen(probe, m, time.Now().Add(-time.Hour)); x.Seconds < 3600 || x.Seconds > 3700 {
		t.Errorf("%v s of a load that ended an hour after the one before it", x.Seconds)
	}
	claims, _ = objective.SplitClaims()
	done := func(violations []int, left int) bool { return left >= 0 && left <= 5 }
	m, err = s.Measure(context.Background(), pointSpec(s, PointSpec{Load: config.Load{Rate: 10, Requests: 100, Warmup: time.Second}, Counted: true, Claims: claims, Decided: done}))
	if err != nil {
		t.Fatal(err)
	}
	if w := m.window; !w.decided || w.due-w.ended > 5 || w.due < 60 {
		t.Errorf("%+v", w)
	}
}

// unseen is a view that nobody looks at.
type unseen struct{}

func (unseen) ShowLine(string) {}
func (unseen) About(string)    {}
func (unseen) Left(float64)    {}

// A load that has only so much time keeps to it: all requests of its window have ended, and those
// that had not by then came too late to be of it.
func TestMeasureEndsInTime(t *testing.T) {
	p := config.Default()
	p.Spec, p.Out, p.Seed, p.SeedSet = "sim:llama-3.1-8b@h100?max_num_seqs=8", filepath.Join(t.TempDir(), "run"), 5, true
	p.Input, p.Ask.Output = lengths(t, "400"), lengths(t, "100")
	s := open(t, &p)
	m, err := s.Measure(context.Background(), pointSpec(s, PointSpec{Load: config.Load{Rate: 40, Requests: 2000, Warmup: time.Second}, WindowBy: 20 * time.Second, EndBy: 25 * time.Second}))
	if err != nil {
		t.Fatal(err)
	}
	if q := m.Requests; q.Due == 0 || q.OK != q.Due || q.Due > 800 || m.Seconds.Warmup+m.Seconds.Window > 20 || m.Extent.Ended != 25e9 {
		t.Errorf("%+v in %+v, ended at %v", q, m.Seconds, time.Duration(m.Extent.Ended))
	}
	m, err = s.Measure(context.Background(), pointSpec(s, PointSpec{Load: config.Load{Rate: 1, Requests: 2000, Warmup: time.Second}, WindowBy: 20 * time.Second, EndBy: 25 * time.Second}))
	if err != nil {
		t.Fatal(err)
	}
	if q := m.Requests; q.Due == 0 || q.OK != q.Due || m.Seconds.Warmup+m.Seconds.Window != 20 || m.Extent.Ended >= 25e9 {
		t.Errorf("%+v in %+v, ended at %v", q, m.Seconds, time.Duration(m.Extent.Ended))
	}
}
