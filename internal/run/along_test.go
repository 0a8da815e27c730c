package run

import (
	"context"
	"math"
	"path/filepath"
	"testing"
	"time"

	"pitot/internal/plan"
	"pitot/internal/run/search"
	"pitot/internal/slo"
)

// Loads that are counted one after the other have the shares of violations that each has by
// itself after a warm-up three times as long as a search takes: a short one is enough where
// the engine comes from a load near it.
func TestCountAlong(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("simulated requests are slow under the race detector")
	}
	objective, err := slo.Parse("p90 ttft<60ms, p90 tpot<12ms")
	if err != nil {
		t.Fatal(err)
	}
	claims, err := objective.Claims()
	if err != nil {
		t.Fatal(err)
	}
	p := plan.Default()
	p.Spec, p.Out, p.Seed, p.SeedSet = "sim:llama-3.1-8b@h100", filepath.Join(t.TempDir(), "run"), 5, true
	p.Input, p.Ask.Output = lengths(t, "lognormal(400,400)"), lengths(t, "uniform(10,90)")
	s := open(t, &p)
	const (
		requests  = 400
		residence = 600 * time.Millisecond
		chains    = 12
	)
	rates := []float64{40, 43, 46, 49}
	along, alone := make([][2]float64, len(rates)), make([][2]float64, len(rates))
	var lengths []float64
	for range chains {
		loads := make([]Load, len(rates))
		for i, rate := range rates {
			loads[i] = Load{Rate: rate, Requests: requests, Warmup: 3 * residence}
		}
		loads[0].Warmup *= 2
		list, err := s.CountAlong(context.Background(), loads)
		if err != nil || len(list) != len(loads) {
			t.Fatalf("%d loads: %v", len(list), err)
		}
		for i, m := range list {
			v := m.Violations(claims, 10)
			lengths = append(lengths, float64(v.N)/requests)
			for k := range claims {
				along[i][k] += float64(v.Of[k]) / float64(v.N) / chains
			}
			if m.Index != Unrecorded || m.Extent.Requests < int64(v.N) || m.Requests.Due != v.N || m.window == nil {
				t.Errorf("%d requests of %d, index %d", m.Requests.Due, m.Extent.Requests, m.Index)
			}
			loads[i].Warmup = 30 * residence
			alone1, err := s.Count(context.Background(), loads[i])
			if err != nil {
				t.Fatal(err)
			}
			v = alone1.Violations(claims, 10)
			for k := range claims {
				alone[i][k] += float64(v.Of[k]) / float64(v.N) / chains
			}
		}
	}
	for i := range rates {
		for k, c := range claims {
			a, b := along[i][k], alone[i][k]
			t.Logf("%.0f/s, %s: %.2f %% along, %.2f %% alone", rates[i], c.Spec, 100*a, 100*b)
			if math.Abs(a-b) > 0.015+0.3*b {
				t.Errorf("%.0f/s, %s: %.3g along, %.3g alone", rates[i], c.Spec, a, b)
			}
		}
	}
	for _, x := range lengths {
		if x < 0.7 || x > 1.3 {
			t.Errorf("a window of %.2f times the requests that were asked for", x)
		}
	}
}

// A load whose window makes those behind it pointless ends the row; one that is decided ends
// by itself.
func TestCountEndsEarly(t *testing.T) {
	objective, _ := slo.Parse("p90 ttft<60ms")
	claims, err := objective.Claims()
	if err != nil {
		t.Fatal(err)
	}
	p := plan.Default()
	p.Spec, p.Out, p.Seed, p.SeedSet = "sim:llama-3.1-8b@h100", filepath.Join(t.TempDir(), "run"), 5, true
	p.Input, p.Ask.Output = lengths(t, "400"), lengths(t, "4")
	s := open(t, &p)
	hopeless := func(violations []int, _ int) bool { return violations[0] > 50 }
	loads := []Load{{Rate: 10}, {Rate: 400}, {Rate: 500}, {Rate: 600}}
	for i := range loads {
		loads[i].Requests, loads[i].Warmup, loads[i].Claims, loads[i].Decided = 1500, time.Second, claims, hopeless
	}
	list, err := s.CountAlong(context.Background(), loads)
	if err != nil || len(list) != 2 {
		t.Fatalf("%d loads: %v", len(list), err)
	}
	if v := list[1].Violations(claims, 10); v.Of[0] <= 50 {
		t.Errorf("%d violations of %d", v.Of[0], v.N)
	}
	m, err := s.Count(context.Background(), Load{Rate: 400, Requests: 2000, Warmup: time.Second, Claims: claims, Decided: hopeless})
	if err != nil {
		t.Fatal(err)
	}
	if w := m.window; w == nil || !w.decided || w.violations[0] != 51 || m.Extent.Requests > 2000 || !(w.residence() > 0) {
		t.Errorf("%+v of %d requests", w, m.Extent.Requests)
	}
	// None of its requests ended before it did: that is no server that went away.
	late, err := slo.Parse("p90 ttft<1ms")
	if err != nil {
		t.Fatal(err)
	}
	if claims, err = late.Claims(); err != nil {
		t.Fatal(err)
	}
	atOnce := func(violations []int, _ int) bool { return violations[0] > 0 }
	m, err = s.Count(context.Background(), Load{Rate: 400, Requests: 500, Warmup: time.Second, Claims: claims, Decided: atOnce})
	if err != nil {
		t.Fatal(err)
	}
	m.Requests.OK = 0 // as where all that ended were late
	looking, probe := NewSearcher(s, claims, false, unseen{}), search.Probe{Load: 400, Requests: 500, Blocks: search.Blocks, Counted: true}
	seen := looking.seen(probe, m, time.Time{})
	if !seen.Partial || seen.Failed {
		t.Errorf("%+v", seen)
	}
	if x := looking.seen(probe, m, time.Now().Add(-time.Hour)); x.Seconds < 3600 || x.Seconds > 3700 {
		t.Errorf("%v s of a load that ended an hour after the one before it", x.Seconds)
	}
	claims, _ = objective.Claims()
	done := func(violations []int, left int) bool { return left >= 0 && left <= 5 }
	m, err = s.Count(context.Background(), Load{Rate: 10, Requests: 100, Warmup: time.Second, Claims: claims, Decided: done})
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

// A load that has only so much time keeps to it: all requests of its window have ended, and those that had not
// by then came too late to be of it.
func TestMeasureEndsInTime(t *testing.T) {
	p := plan.Default()
	p.Spec, p.Out, p.Seed, p.SeedSet = "sim:llama-3.1-8b@h100?max_num_seqs=8", filepath.Join(t.TempDir(), "run"), 5, true
	p.Input, p.Ask.Output = lengths(t, "400"), lengths(t, "100")
	s := open(t, &p)
	m, err := s.Measure(context.Background(), Load{Rate: 40, Requests: 2000, Warmup: time.Second, WindowBy: 20 * time.Second, EndBy: 25 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	if q := m.Requests; q.Due == 0 || q.OK != q.Due || q.Due > 800 || m.Seconds.Warmup+m.Seconds.Window > 20 || m.Extent.Ended != 25e9 {
		t.Errorf("%+v in %+v, ended at %v", q, m.Seconds, time.Duration(m.Extent.Ended))
	}
	m, err = s.Measure(context.Background(), Load{Rate: 1, Requests: 2000, Warmup: time.Second, WindowBy: 20 * time.Second, EndBy: 25 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	if q := m.Requests; q.Due == 0 || q.OK != q.Due || m.Seconds.Warmup+m.Seconds.Window != 20 || m.Extent.Ended >= 25e9 {
		t.Errorf("%+v in %+v, ended at %v", q, m.Seconds, time.Duration(m.Extent.Ended))
	}
}
