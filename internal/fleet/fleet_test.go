//go:build !nofleet

package fleet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pitot/internal/data/record"
	"pitot/internal/data/result"
	"pitot/internal/plan"
	"pitot/internal/run"
	"pitot/internal/workload/arrival"
	"pitot/internal/workload/seed"
)

var version = result.Version{Version: "v1", Commit: "c", Go: "go"}

// crew is a coordinator with workers that are goroutines of this process.
type crew struct {
	*Coordinator
	leave []context.CancelFunc // of each worker, in the order of their ranks
	errs  []error
	ended sync.WaitGroup
}

func muster(t *testing.T, n int) *crew {
	t.Helper()
	c := &crew{errs: make([]error, n)}
	var err error
	if c.Coordinator, err = Listen(version, n); err != nil {
		t.Fatal(err)
	}
	c.lead = 150 * time.Millisecond
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	for i := range n {
		on, leave := context.WithCancel(context.Background())
		c.leave = append(c.leave, leave)
		w := &Worker{Runner: run.Runner{Version: version}, URL: c.URL(), Token: c.Token(), Dir: t.TempDir(), Say: func(string) {}}
		c.ended.Go(func() { c.errs[i] = w.Run(on) })
		for joined := 0; joined <= i && ctx.Err() == nil; time.Sleep(time.Millisecond) { // so that ranks are in order
			c.mu.Lock()
			joined = len(c.members)
			c.mu.Unlock()
		}
	}
	if err := c.Ready(ctx); err != nil {
		t.Fatal(err)
	}
	return c
}

// disband ends the run and gives what the workers ended with.
func (c *crew) disband() []error {
	_ = c.bye()
	c.ended.Wait()
	c.Coordinator.Close()
	return c.errs
}

// planned is the plan of a command line for the target of fixed latencies.
func planned(t *testing.T, args ...string) *plan.Plan {
	t.Helper()
	argv := append([]string{"mock:fixed", "--ttft", "5ms", "--itl", "1ms", "--output", "5", "--input", "16", "--no-scrape", "--out", filepath.Join(t.TempDir(), "run")}, args...)
	p, spec, err := plan.Decode(plan.VerbRun, argv, nil)
	if err != nil {
		t.Fatal(err)
	}
	if p.Spec == "" {
		p.Spec = spec[0]
	}
	if err := p.Check(plan.VerbRun); err != nil {
		t.Fatal(err)
	}
	return &p
}

// sent are the requests of a run, by worker.
func sent(t *testing.T, dir string) (rows []record.Row, workers map[int32]int) {
	t.Helper()
	workers = map[int32]int{}
	for f, err := range record.Frames(dir) {
		if err != nil {
			t.Fatal(err)
		}
		if f.Point >= 0 {
			rows, workers[f.Worker] = append(rows, f.Rows...), workers[f.Worker]+len(f.Rows)
		}
	}
	slices.SortFunc(rows, func(a, b record.Row) int { return int(a.ID - b.ID) })
	return rows, workers
}

// Three workers carry out one load as one run: the requests are those of one machine's
// schedule, each recorded once, and every one that was due is accounted for; the point
// says who carried it out, and how far their clocks are known to be apart.
func TestFleet(t *testing.T) {
	c := muster(t, 3)
	r := run.Runner{Version: version, Crew: c}
	p := planned(t, "--rate", "300", "--duration", "500ms", "--warmup", "100ms", "--seed", "7", "--until", "p50 ttft ±50%", "--budget", "1s")
	got, dir, err := r.Run(context.Background(), p)
	if err != nil {
		t.Fatal(err)
	}
	for i, err := range c.disband() {
		if err != nil {
			t.Errorf("worker %d: %v", i, err)
		}
	}
	point := &got.Points[0]
	law, err := arrival.ParseLaw("poisson", arrival.Files{})
	if err != nil {
		t.Fatal(err)
	}
	due, err := law.Process(300, seed.At(seed.Point(7, 0), seed.Arrival, 0), 100e6)
	if err != nil {
		t.Fatal(err)
	}
	rows, workers := sent(t, dir)
	t0, t1 := int64(point.Seconds.Warmup*1e9), int64((point.Seconds.Warmup+point.Seconds.Window)*1e9+.5)
	n := 0
	for i, at := int64(0), due.Next(); at < t1; i, at = i+1, due.Next() {
		if int(i) >= len(rows) || rows[i].ID != i || rows[i].Due != at {
			t.Fatalf("request %d is due at %d: the records have something else there", i, at)
		}
		if at >= t0 {
			n++
		}
	}
	q := point.Requests
	if q.Due != n || q.OK+q.Failed+q.Cut+q.Unsent != q.Due {
		t.Errorf("%+v, and %d were due", q, n)
	}
	if point.Until == nil {
		t.Error("--until was not looked at")
	}
	if len(workers) != 3 || workers[0]+workers[1]+workers[2] != len(rows) {
		t.Errorf("rows of workers: %v", workers)
	}
	if len(point.Workers) != 3 {
		t.Fatalf("workers %+v", point.Workers)
	}
	for i, w := range point.Workers {
		if w.Rank != i || w.Requests == 0 || w.AheadBound <= 0 || max(w.Ahead, -w.Ahead) > w.AheadBound || w.JournalBytes == 0 || w.Verdict == "" {
			t.Errorf("worker %+v", w) // the clocks are one: what they are apart is within the bound
		}
	}
	if again, err := run.Finish(dir); err != nil || len(again.Points[0].Workers) != 3 {
		t.Errorf("finished again: %v", err)
	}
}

// Users are divided, a window that counts requests has as many as it was to have, workers
// without a user have nothing to do, and a session's next point is carried out by the same
// workers.
func TestFleetOfUsers(t *testing.T) {
	c := muster(t, 3)
	defer c.disband()
	r := run.Runner{Version: version, Crew: c}
	for _, test := range []struct {
		args    []string
		due     int
		workers int
	}{
		{[]string{"--concurrency", "5", "--requests", "60", "--warmup", "50ms"}, 60, 3},
		{[]string{"--concurrency", "2", "--requests", "20", "--warmup", "0s"}, 20, 2},
		{[]string{"--rate", "400", "--max-in-flight", "2", "--requests", "40", "--warmup", "20ms"}, 40, 2},
		{[]string{"--concurrency", "4", "--turns", "3", "--requests", "40", "--warmup", "50ms"}, 40, 3},
	} {
		got, dir, err := r.Run(context.Background(), planned(t, test.args...))
		if err != nil {
			t.Errorf("%v: %v", test.args, err)
			continue
		}
		for i, point := range got.Points {
			if q := point.Requests; q.Due != test.due || q.OK != q.Due {
				t.Errorf("%v: point %d has %+v", test.args, i, q)
			}
			if len(point.Workers) != test.workers {
				t.Errorf("%v: %d workers", test.args, len(point.Workers))
			}
		}
		rows, _ := sent(t, dir)
		ids := map[string]bool{}
		for i := range rows {
			key := fmt.Sprint(rows[i].Point, rows[i].ID)
			if ids[key] {
				t.Errorf("%v: request %s is there twice", test.args, key)
			}
			ids[key] = true
		}
	}
}

// A run that is stopped keeps what was measured: all workers stop, and the window ends where
// the first did.
func TestFleetInterrupted(t *testing.T) {
	c := muster(t, 2)
	r := run.Runner{Version: version, Crew: c}
	ctx, stop := context.WithCancel(context.Background())
	s, err := r.Open(ctx, planned(t, "--rate", "200", "--duration", "1m", "--warmup", "0s"))
	if err != nil {
		t.Fatal(err)
	}
	go func() { // when both have answers
		for ctx.Err() == nil {
			c.mu.Lock()
			answered := true
			for _, m := range c.members {
				answered = answered && m.report.Status != nil && m.report.Status.OK >= 10
			}
			c.mu.Unlock()
			if answered {
				stop()
			}
			time.Sleep(5 * time.Millisecond)
		}
	}()
	err = s.Repeat(ctx)
	got, err := s.Close(true, errors.Join(err))
	if err != nil {
		t.Fatal(err)
	}
	if q := got.Points[0].Requests; !got.Interrupted || q.OK < 20 || q.OK+q.Failed+q.Cut+q.Unsent != q.Due {
		t.Errorf("interrupted %v, %+v in %.3g s", got.Interrupted, q, got.Points[0].Seconds.Window)
	}
	for i, err := range c.disband() {
		if err != nil {
			t.Errorf("worker %d: %v", i, err)
		}
	}
}

// A worker of another build is refused by name, before anything is sent.
func TestOtherBuild(t *testing.T) {
	c, err := Listen(version, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	w := &Worker{Runner: run.Runner{Version: result.Version{Version: "v2", Commit: "d", Go: "go"}}, URL: c.URL(), Token: c.Token(), Dir: t.TempDir(), Say: func(string) {}}
	if err := w.Run(context.Background()); err == nil || !strings.Contains(err.Error(), "v2 d") || !strings.Contains(err.Error(), "v1 c") {
		t.Errorf("the worker says %v", err)
	}
	if err := c.Ready(context.Background()); err == nil || !strings.Contains(err.Error(), "v2 d") {
		t.Errorf("the coordinator says %v", err)
	}
	if _, err := os.Stat(c.dir); err != nil {
		t.Error(err)
	}
}

// The key of a target is in no message.
func TestNoSecretInTask(t *testing.T) {
	p := planned(t, "--rate", "1")
	p.Headers = []string{"Authorization=Bearer sk-secret-123", "X-Team=blue"}
	task := encode(run.Task{Config: p.YAML(plan.VerbRun)})
	if strings.Contains(string(task), "sk-secret") || strings.Contains(string(p.YAML(plan.VerbRun)), "sk-secret") {
		t.Error("it is")
	}
}
