//go:build linux || darwin

package workers

import (
	"context"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"pitot/internal/clock"
	"pitot/internal/config"
	"pitot/internal/results/record"
	"pitot/internal/results/rundir"
	"pitot/internal/session"
	"pitot/internal/target"
	"pitot/internal/workers/bus"
)

// The coordinator dies in the middle of a load. Its workers go on while their lease lasts, here
// to the end of the window and behind it, and keep their journals. Whoever goes on with the run
// collects them, from this machine or from workers that wait elsewhere: the point is whole, with
// every request of the schedule once, and nothing is sent again. Likewise where the run is
// only finished.
func TestCoordinatorDies(t *testing.T) {
	t.Parallel()
	for _, test := range []string{"here", "elsewhere", "finished", "too long", "one", "one, too long"} {
		t.Run(test, func(t *testing.T) {
			t.Parallel()
			lease, window, size := "FLEET_TEST_LEASE=2500ms", time.Second, 2
			if strings.HasPrefix(test, "one") {
				size = 1
			}
			tooLong := strings.HasSuffix(test, "too long") // for the lease
			if tooLong {
				window = 10 * time.Second
			}
			var access bus.Access
			var c *Coordinator
			var workers []*exec.Cmd
			if test == "elsewhere" {
				access = server(t)
				c = meet(t, access, 2)
				workers = join(t, c, 2, access.URL, access.Token, lease, elsewhere)
			} else {
				c, workers = processes(t, size, lease)
			}
			at, err := target.Open(bounded(t), target.WantedBy(planned(t, "--rate", "1")), func(string) {}) // as a server that outlives the coordinator
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(at.Close)
			p := plannedAt(t, at.URL, "--rate", "80", "--duration", window.String(), "--warmup", "0s", "--seed", "7")
			r := session.Runner{Version: version, Crew: c}
			ctx, stop := context.WithCancel(bounded(t))
			s, err := r.Open(ctx, p)
			if err != nil {
				t.Fatal(err)
			}
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				_, err := s.Measure(ctx, curveLoad(s))
				_, _ = s.Close(true, err)
			}()
			for ctx.Err() == nil { // half of the window
				c.mu.Lock()
				half := c.origin > 0 && clock.Now()-c.origin > 5e8
				c.mu.Unlock()
				if half {
					break
				}
				time.Sleep(5 * time.Millisecond)
			}
			died := t.TempDir() // as a process leaves it that is killed now
			for _, name := range []string{rundir.Journal, rundir.Config} {
				b, err := os.ReadFile(filepath.Join(p.Out, name))
				if err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(died, name), b, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if c.stop != nil {
				c.stop()
			}
			if c.server != nil {
				c.server.Close()
			} else {
				c.conn.Close()
			}
			again := *p
			again.Out, again.Resume, again.SeedSet = died, true, false
			next := session.Runner{Version: version}
			if test == "elsewhere" {
				to := meet(t, access, 2)
				t.Cleanup(to.Close)
				next.Crew = to
			}
			if test == "finished" || tooLong {
				for _, w := range workers {
					for end := time.Now().Add(20 * time.Second); syscall.Kill(w.Process.Pid, 0) == nil; time.Sleep(10 * time.Millisecond) {
						if time.Now().After(end) {
							t.Fatal("a worker goes on")
						}
					}
				}
				got, err := session.Finish(died, func(string) {})
				if err != nil {
					t.Fatal(err)
				}
				if whole := got.Points[0].Seconds.Window == 1; whole == tooLong || got.Points[0].Requests.OK < 60 {
					t.Errorf("%+v in %.4g s", got.Points[0].Requests, got.Points[0].Seconds.Window)
				}
				if w := got.Points[0].Workers; len(w) != size || w[0].Requests == 0 || w[size-1].CPUs == 0 || w[size-1].AheadBound == 0 {
					t.Errorf("workers %+v", w)
				}
			} else {
				s, err := next.Open(bounded(t), &again)
				if err != nil {
					t.Fatal(err)
				}
				m, err := s.Measure(bounded(t), curveLoad(s))
				if err != nil {
					t.Fatal(err)
				}
				if q := m.Requests; q.OK != q.Due || q.Due != arrivals(t, 80, 7, 1) || len(m.Workers) != size || m.Workers[size-1].Requests == 0 {
					t.Errorf("%+v of %+v", q, m.Workers)
				}
				if _, err := s.Close(false, nil); err != nil {
					t.Fatal(err)
				}
			}
			stop()
			<-ended
			rows, by := sent(t, died)
			for i := range rows { // behind the window each stopped by itself
				if rows[i].Due < 1e9 && rows[i].ID != int64(i) || i > 0 && rows[i].ID == rows[i-1].ID {
					t.Fatalf("row %d is of request %d", i, rows[i].ID)
				}
			}
			if len(rows) < arrivals(t, 80, 7, 1) || by[0] == 0 || by[int32(size-1)] == 0 {
				t.Errorf("%d rows, by worker %v", len(rows), by)
			}
			is := map[int64]bool{}
			for i := range rows {
				is[rows[i].ID] = true
			}
			for _, w := range workers {
				for f := range record.Frames(w.Dir) {
					for i := range f.Rows {
						if !is[f.Rows[i].ID] {
							t.Errorf("request %d was recorded, and is not in the run", f.Rows[i].ID)
						}
					}
				}
			}
			for f, err := range record.Frames(died) {
				if err != nil {
					t.Fatal(err)
				}
				for i := range f.Rows {
					if r := &f.Rows[i]; r.Due < 1e9 && f.Point >= 0 && r.Outcome != record.OK {
						t.Errorf("request %d: %v %s", r.ID, r.Outcome, r.Error)
					}
				}
			}
			if test == "elsewhere" {
				for end := time.Now().Add(20 * time.Second); syscall.Kill(workers[0].Process.Pid, 0) == nil; time.Sleep(10 * time.Millisecond) {
					if time.Now().After(end) {
						t.Fatal("a worker whose journal was collected goes on")
					}
				}
			}
		})
	}
}

// meet is a coordinator of workers elsewhere, at a server that is being started.
func meet(t *testing.T, access bus.Access, n int) *Coordinator {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		c, err := listenAt(version, n, place{Access: access}, func(string) {})
		if err == nil {
			c.where = "pitot worker"
			return c
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
	}
}

// unused is an address that nothing has, below the ports that systems give to connections: no
// connection takes it before a server listens there, or while that is away.
func unused(t *testing.T) (addr string) {
	t.Helper()
	for range 1000 {
		addr = "127.0.0.1:" + strconv.Itoa(20_000+rand.IntN(12_000))
		if l, err := net.Listen("tcp", addr); err == nil {
			l.Close()
			return addr
		}
	}
	t.Fatal("no port is free")
	return ""
}

// server is a NATS server as one of a user's.
func server(t *testing.T) bus.Access {
	t.Helper()
	at, token := unused(t), "a-token-of-the-cluster"
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	s := exec.Command(self)
	s.Dir, s.Env = t.TempDir(), append(os.Environ(), "FLEET_TEST_SERVE="+at, config.TokenVariable+"="+token)
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Process.Kill(); _ = s.Wait() })
	return bus.Access{URL: "nats://" + strings.TrimPrefix(at, "nats://"), Token: token}
}

// curveLoad returns the plan's load as a point of a sweep.
func curveLoad(s *session.Session) session.PointSpec {
	spec := s.NewSpec()
	spec.Stage = "curve"
	return spec
}
