package run

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"time"

	"pitot/internal/data/marks"
	"pitot/internal/data/record"
	"pitot/internal/data/result"
	"pitot/internal/measure"
	"pitot/internal/plan"
	"pitot/internal/run/search"
	"pitot/internal/workload"
)

// following is a plan of a mock whose loads a test chooses.
func following(t *testing.T, out string, ttft time.Duration) *plan.Plan {
	t.Helper()
	p := plan.Default()
	p.Spec, p.Out, p.Seed, p.SeedSet, p.Resume = "mock:fixed", out, 7, true, true
	p.Input, p.Ask.Output = workload.Fixed(16), workload.Fixed(8)
	p.Model = "m"
	itl := 10 * time.Millisecond
	p.Embedded.TTFT, p.Embedded.ITL, p.ScrapeInterval = &ttft, &itl, 50*time.Millisecond
	return &p
}

// inARow are loads that may follow one another.
func inARow(rates ...float64) (list []Load) {
	for i, r := range rates {
		l := Load{Rate: r, Requests: 90, Warmup: 200 * time.Millisecond, Stage: "main"}
		if i > 0 {
			l.Follows = 100 * time.Millisecond
		}
		list = append(list, l)
	}
	return list
}

// Each point of loads that follow one another has the arrivals that its own seed gives it, all of
// them, each once, and the next load's time 0 is where its window ends.
func TestLoadsFollow(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	p := following(t, dir, 40*time.Millisecond)
	p.ScrapeInterval = time.Second // longer than a window: the server is asked where a load takes over
	s := open(t, p)
	var live []result.Point
	err := s.MeasureAlong(context.Background(), inARow(150, 160, 170, 180), func(i int, m *Measured) bool {
		if m.Index != i || m.handed != (i < 3) || (m.follows > 0) != (i > 0) {
			t.Errorf("load %d: index %d, handed over %v, follows %d", i, m.Index, m.handed, m.follows)
		}
		live = append(live, m.Point)
		return true
	})
	if err != nil || len(live) != 4 {
		t.Fatalf("%d loads: %v", len(live), err)
	}
	run, err := s.Close(false, nil)
	if err != nil {
		t.Fatal(err)
	}
	o, err := read(dir)
	if err != nil {
		t.Fatal(err)
	}
	dues := map[int32][]int64{}
	for f, err := range record.Rows(dir) {
		if err != nil {
			t.Fatal(err)
		}
		for i := range f.Rows {
			dues[f.Point] = append(dues[f.Point], f.Rows[i].Due)
		}
	}
	scraped := 0 // points whose server was scraped in time: on a busy machine not each is
	for i := range int32(4) {
		setup, w := o.setups[i], o.ends[i]
		if i > 0 && setup.Follows != o.ends[i-1].T1 {
			t.Errorf("point %d began %d after the one before it, whose window ended at %d", i, setup.Follows, o.ends[i-1].T1)
		}
		law, err := plan.Arrivals(setup.Load.Arrival)
		if err != nil {
			t.Fatal(err)
		}
		a, err := law.Process(*setup.Load.Rate, arrivalSeed(p.Seed, i), setup.T0)
		if err != nil {
			t.Fatal(err)
		}
		var want []int64
		for due := a.Next(); due < w.T1; due = a.Next() {
			want = append(want, due)
		}
		got := dues[i]
		slices.Sort(got)
		if i == 3 && len(got) > len(want) { // the last goes on until its window's requests have ended
			got = got[:len(want)]
		}
		if !slices.Equal(got, want) {
			t.Errorf("point %d has %d requests, and %d came due before its window's end", i, len(got), len(want))
		}
		q := &run.Points[i]
		if q.Requests.Due != 90 || q.Requests.OK != 90 {
			t.Errorf("point %d: %+v", i, q.Requests)
		}
		for _, x := range []*result.Point{q, &live[i]} { // by Little's law, with what was left of the load before
			if k := slices.IndexFunc(x.Checks, func(c result.Check) bool { return c.Name == result.CheckLittle }); k < 0 || x.Checks[k].Status != result.Pass {
				t.Errorf("point %d: %+v", i, x.Checks)
			}
			if x, ok := x.Server["foreign_share"]; ok && x > 0 {
				t.Errorf("point %d: %v of the tokens are taken for others', %v", i, x, ok)
			}
			if x, ok := x.Server["prefill_ms"]; ok && math.Abs(x-40) > 20 {
				t.Errorf("point %d: prompts took %v ms by the server's counters", i, x)
			} else if ok {
				scraped++
			}
		}
		if a, b := q.Throughput.OutputTokensPerS, live[i].Throughput.OutputTokensPerS; a == nil || b == nil || math.Abs(*a-*b) > 1e-9 {
			t.Errorf("point %d: %v and %v", i, a, b)
		}
	}
	if scraped < 4 {
		t.Errorf("%d of 8 points know how long prompts took by the server's counters", scraped)
	}
}

// What of a load outlasts the next one and the one behind that counts in what is in flight and served under
// each of them, in the figures of each when it ends as in those of the run.
func TestLeftOfEarlierLoads(t *testing.T) {
	t.Parallel()
	p := following(t, filepath.Join(t.TempDir(), "run"), 450*time.Millisecond) // two loads and more
	s := open(t, p)
	loads := inARow(150, 160, 170, 180)
	for i := range loads {
		loads[i].Requests = 15
	}
	var live []result.Point
	if err := s.MeasureAlong(context.Background(), loads, func(_ int, m *Measured) bool {
		live = append(live, m.Point)
		return true
	}); err != nil || len(live) != 4 {
		t.Fatalf("%d loads: %v", len(live), err)
	}
	run, err := s.Close(false, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range live {
		a, err := json.Marshal(live[i].Throughput)
		if err != nil {
			t.Fatal(err)
		}
		if b, _ := json.Marshal(run.Points[i].Throughput); !bytes.Equal(a, b) {
			t.Errorf("point %d: %s when it ended, %s in the run", i, a, b)
		}
	}
	// A request takes longer than a window: what ends in one came due before. A busy machine may
	// move the ends out of some.
	if !slices.ContainsFunc(live[1:], func(p result.Point) bool { x := p.Throughput.RequestsPerS; return x != nil && *x > 0 }) {
		t.Error("no request ends in the window of a later load")
	}
}

// A load that began and is not asked for any more is no point: what was sent of it is in the records and
// counted as sent, and no later load has prompts of it.
func TestDiscarded(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "run")
	s := open(t, following(t, dir, 300*time.Millisecond)) // so that the overlap lasts
	loads := inARow(150, 160)
	loads[1].Follows *= 10
	asks := func() workload.Request {
		src, err := newSource(&s.plan.Ask, s.Target, 1)
		if err != nil {
			t.Fatal(err)
		}
		defer src.close()
		r, err := src.At(0)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	before := asks()
	if err := s.MeasureAlong(context.Background(), loads, func(int, *Measured) bool { return false }); err != nil {
		t.Fatal(err)
	}
	if after := asks(); reflect.DeepEqual(before.Messages, after.Messages) || before.Output != after.Output {
		t.Errorf("%+v is asked, and was before", after)
	}
	if _, err := s.Measure(context.Background(), loads[1]); err != nil {
		t.Fatal(err)
	}
	run, err := s.Close(false, nil)
	if err != nil {
		t.Fatal(err)
	}
	points := map[int32]int64{}
	for f, err := range record.Rows(dir) {
		if err != nil {
			t.Fatal(err)
		}
		for i := range f.Rows {
			if f.Rows[i].Sent >= 0 {
				points[f.Point]++
			}
		}
	}
	all := points[0] + points[1] + points[record.Discarded]
	if points[record.Discarded] == 0 || len(run.Points) != 2 || run.Unplanned > 0 || run.Sent.Load.Requests != all {
		t.Errorf("requests of points %v, %d points, %+v", points, len(run.Points), run.Sent.Load)
	}
}

// Prompts of a load may have been asked before that left no plan: the one before it had not ended, or handed over.
func TestOverlapped(t *testing.T) {
	setup := func(stage string) map[int32]measure.Setup { return map[int32]measure.Setup{4: {Stage: stage}} }
	for name, c := range map[string]struct {
		stage string
		end   *marks.Window
		want  bool
	}{
		"it had not ended":         {stage: search.Main, want: true},
		"it handed over":           {stage: search.Centre, end: &marks.Window{Handed: true}, want: true},
		"nothing took over":        {stage: search.Main, end: &marks.Window{}},
		"such loads never do":      {stage: search.Verifying},
		"nor those of other verbs": {},
	} {
		o := outline{setups: setup(c.stage), ends: map[int32]marks.Window{}}
		if c.end != nil {
			o.ends[4] = *c.end
		}
		if got := o.overlapped(4); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// A user who stops while the last requests of one load end and the next one warms up has the first
// of them, cut short, and nothing of the next; a session that goes on measures both.
func TestStoppedBetweenLoads(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "run")
	const takes = 300 * time.Millisecond // so that the overlap lasts
	s := open(t, following(t, dir, takes))
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	last := time.Duration(0)
	s.runner.Progress = watching(func(st Status) {
		if st.At < last { // of the second load
			cancel()
		}
		last = st.At
	})
	list := inARow(150, 160, 170)
	for i := range list {
		list[i].Follows *= 5
	}
	n := 0
	err := s.MeasureAlong(ctx, list, func(int, *Measured) bool { n++; return true })
	if !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	run, err := s.Close(true, nil)
	if err != nil || len(run.Points) != n+1 || !run.Interrupted {
		t.Fatalf("%d points, %d loads, %v", len(run.Points), n, err)
	}
	if n != 0 {
		t.Skip("the first load ended before the second was seen")
	}
	if q := run.Points[0].Requests; q.Due != 90 || q.Cut == 0 || q.OK+q.Cut != q.Due {
		t.Errorf("%+v", q)
	}
	s = open(t, following(t, dir, takes))
	if s.asked != 2 { // of the second too, which had begun
		t.Errorf("the prompts of %d points are taken to have been asked", s.asked)
	}
	if err := s.MeasureAlong(context.Background(), list, func(i int, m *Measured) bool {
		if m.Requests.OK != 90 || m.follows == 0 != (i == 0) {
			t.Errorf("load %d: %+v", i, m.Requests)
		}
		n++
		return true
	}); err != nil || n != 3 {
		t.Fatalf("%d loads: %v", n, err)
	}
	if run, err = s.Close(false, nil); err != nil || len(run.Points) != 3 {
		t.Fatal(err)
	}
	before, err := json.Marshal(run.Points)
	if err != nil {
		t.Fatal(err)
	}
	// Whoever goes on with all of them, or finishes them from their records, finds the same.
	s = open(t, following(t, dir, takes))
	n = 0
	if err := s.MeasureAlong(context.Background(), list, func(i int, m *Measured) bool {
		if m.follows == 0 != (i == 0) || m.handed != (i < 2) {
			t.Errorf("load %d follows %d", i, m.follows)
		}
		n++
		return true
	}); err != nil || n != 3 {
		t.Fatalf("%d loads: %v", n, err)
	}
	if _, err := s.Close(false, nil); err != nil {
		t.Fatal(err)
	}
	finished, err := Finish(dir, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	if after, _ := json.Marshal(finished.Points); !bytes.Equal(before, after) {
		t.Errorf("%s\n%s", before, after)
	}
}
