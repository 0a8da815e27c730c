//go:build linux || darwin

package workers

import (
	"bytes"
	"net"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"pitot/internal/clock"
	"pitot/internal/results/record"
	"pitot/internal/results/result"
	"pitot/internal/session"
)

// cable is what lies between a worker and the bus: TCP connections that carry nothing while it
// is cut.
type cable struct {
	net.Listener
	scheme string
	to     string // HOST:PORT

	mu      sync.Mutex
	on      *sync.Cond
	cut     bool
	carried []*[]byte // all that each direction of a connection carried
}

// lay lays one to the server of a coordinator.
func lay(t *testing.T, c *Coordinator) *cable {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	scheme, to, _ := strings.Cut(c.URL(), "://")
	x := &cable{Listener: l, scheme: scheme + "://", to: to}
	x.on = sync.NewCond(&x.mu)
	t.Cleanup(func() { l.Close(); x.set(false) })
	go func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", x.to)
			if err != nil {
				near.Close()
				continue
			}
			go x.carry(near, far)
			go x.carry(far, near)
		}
	}()
	return x
}

func (x *cable) carry(from, to net.Conn) {
	defer from.Close()
	defer to.Close()
	b, carried := make([]byte, 32<<10), new([]byte)
	x.mu.Lock()
	x.carried = append(x.carried, carried)
	x.mu.Unlock()
	for {
		n, err := from.Read(b)
		x.mu.Lock()
		*carried = append(*carried, b[:n]...)
		for x.cut {
			x.on.Wait()
		}
		x.mu.Unlock()
		if n > 0 {
			if _, err := to.Write(b[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// set cuts it, or mends it.
func (x *cable) set(cut bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.cut = cut
	x.on.Broadcast()
}

// url is where a worker joins through it.
func (x *cable) url() string { return x.scheme + x.Addr().String() }

// The key of a target and a secret header are in no message, of either transport.
func TestNoSecretOnBus(t *testing.T) {
	t.Setenv("FLEET_KEY", "sk-secret-123")
	for name, made := range map[string]func(result.Version, int) (*Coordinator, error){"beside": Listen, "elsewhere": listening} {
		t.Run(name, func(t *testing.T) {
			by, err := made(version, 2)
			if err != nil {
				t.Fatal(err)
			}
			x := lay(t, by)
			c := musterAt(t, by, x.url(), "FLEET_KEY=sk-secret-123", "PITOT_HEADER=X-Team=hush-hush")
			p := planned(t, "--rate", "50", "--duration", "100ms", "--warmup", "0s", "--no-probe", "--key-env", "FLEET_KEY")
			p.Headers = []string{"X-Team=hush-hush"}
			r := session.Runner{Version: version, Crew: c}
			if _, _, err := r.Run(t.Context(), p); err != nil {
				t.Fatal(err)
			}
			c.disband()
			x.mu.Lock()
			defer x.mu.Unlock()
			reports := 0
			for _, carried := range x.carried {
				reports += bytes.Count(*carried, []byte(".report"))
				for _, secret := range []string{"sk-secret", "hush-hush"} {
					if bytes.Contains(*carried, []byte(secret)) {
						t.Errorf("a message holds %s", secret)
					}
				}
			}
			if reports < 10 {
				t.Errorf("only %d reports crossed the cable", reports)
			}
		})
	}
}

// rankOf is the rank of a process.
func (c *Coordinator) rankOf(p *exec.Cmd) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range c.members {
		if m != nil && m.hello.PID == p.Process.Pid {
			return m.rank
		}
	}
	return -1
}

// loaded waits until so much of a load is over.
func (c *Coordinator) loaded(after time.Duration) {
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		c.mu.Lock()
		on := c.origin > 0 && clock.Now()-c.origin > int64(after)
		c.mu.Unlock()
		if on {
			return
		}
	}
}

// The network between a worker and the bus is cut. Where it is mended within the lease nobody
// notices: no request waits, and every record comes home once. Where it is not, the worker stops
// by itself before the coordinator takes it for lost, which then counts what nobody sent; that
// it is mended afterwards changes nothing.
func TestPartition(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		window string
		lease  time.Duration
		cut    [2]time.Duration // from, to
		lost   bool
	}{
		{"within the lease", "1500ms", 5 * time.Second, [2]time.Duration{400 * time.Millisecond, 1100 * time.Millisecond}, false},
		{"beyond the lease", "3s", 4 * time.Second, [2]time.Duration{2700 * time.Millisecond, time.Minute}, true}, // the window may end from its half on
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			c, err := listening(version, 2)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(c.Close)
			c.lead, c.late = 150*time.Millisecond, test.lease+lostAfter-leaseTime
			x := lay(t, c)
			lease := "FLEET_TEST_LEASE=" + test.lease.String()
			far, near := spawn(t, c, x.url(), c.Token(), lease, elsewhere), spawn(t, c, c.URL(), c.Token())
			if err := c.WaitReady(bounded(t)); err != nil {
				t.Fatal(err)
			}
			rank, other := c.rankOf(far), c.rankOf(near)
			lostAt := make(chan int64, 1) // since the load began, when the coordinator knew
			go func() {
				c.loaded(test.cut[0])
				x.set(true)
				for now := int64(0); now < int64(test.cut[1]); time.Sleep(2 * time.Millisecond) {
					c.mu.Lock()
					now = clock.Now() - c.origin
					lost := c.members[rank].lost != nil
					c.mu.Unlock()
					if lost {
						lostAt <- now
						return
					}
				}
				x.set(false)
				lostAt <- -1
			}()
			r := session.Runner{Version: version, Crew: c}
			got, out, err := r.Run(bounded(t), planned(t, "--rate", "100", "--duration", test.window, "--warmup", "0s", "--seed", "7"))
			if err != nil {
				t.Fatal(err)
			}
			at := <-lostAt
			point := &got.Points[0]
			rows, _ := sent(t, out)
			for i := range rows {
				if i > 0 && rows[i].ID == rows[i-1].ID {
					t.Errorf("request %d is there twice", rows[i].ID)
				}
			}
			q := point.Requests
			if n := arrivals(t, 100, 7, point.Seconds.Window); q.OK+q.Failed+q.Cut+q.Unsent != q.Due || q.Due+q.LostWithWorker != n {
				t.Errorf("%+v, %d were due", q, n)
			}
			if !test.lost {
				if q.OK != q.Due || point.Workers[rank].Lost != nil || point.Seconds.Window != 1.5 {
					t.Errorf("%+v, %+v in %.4g s", q, point.Workers[rank], point.Seconds.Window)
				}
				for _, check := range point.Checks {
					if check.Name == result.CheckWorkers && check.Status != result.Pass {
						t.Errorf("%+v", check)
					}
				}
				return
			}
			if point.Workers[rank].Lost == nil || point.Workers[other].Lost != nil || at < 0 {
				t.Fatalf("%+v", point.Workers)
			}
			x.set(false)
			last := int64(0) // that it sent
			for f, err := range record.Frames(far.Dir) {
				if err != nil {
					break // torn
				}
				for i := range f.Rows {
					last = max(last, f.Rows[i].Sent)
				}
			}
			if last == 0 || last >= at {
				t.Errorf("the last request of a worker that was lost at %.2f s was sent at %.2f s", float64(at)/1e9, float64(last)/1e9)
			}
			for end := time.Now().Add(20 * time.Second); syscall.Kill(far.Process.Pid, 0) == nil; time.Sleep(10 * time.Millisecond) {
				if time.Now().After(end) {
					t.Fatal("it goes on")
				}
			}
		})
	}
}

// A worker whose clock is stepped is named by the check, with no figure touched: latencies are of
// its own steady clock. One that stood still is named by its lag.
func TestWorkerIsNamed(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, check string
		do          func(c *Coordinator)
	}{
		{"clock step", result.CheckClockSteps, func(c *Coordinator) { c.when(400*time.Millisecond, syscall.SIGUSR1) }},
		{"slow", result.CheckSendLag, func(c *Coordinator) {
			c.when(300*time.Millisecond, syscall.SIGSTOP)
			time.Sleep(time.Second) // longer than any other is late on a busy machine
			c.when(0, syscall.SIGCONT)
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			c, _ := processes(t, 3)
			go test.do(c)
			r := session.Runner{Version: version, Crew: c}
			got, _, err := r.Run(bounded(t), planned(t, "--rate", "100", "--duration", "2500ms", "--warmup", "0s", "--seed", "7"))
			if err != nil {
				t.Fatal(err)
			}
			point := &got.Points[0]
			k := slices.IndexFunc(point.Checks, func(k result.Check) bool { return k.Name == test.check })
			if k < 0 {
				t.Fatalf("there is no check %s", test.check)
			}
			// On a machine so busy that others lag too, no worker is named.
			others := slices.ContainsFunc(point.Workers[1:], func(w result.Worker) bool { return w.Verdict == result.Invalid })
			if k := &point.Checks[k]; k.Status == result.Pass || !others && (k.Worker == nil || *k.Worker != 0) {
				t.Errorf("%+v", k)
			}
			for rank, w := range point.Workers {
				if stepped := w.ClockSteps > 0; stepped != (rank == 0 && test.check == result.CheckClockSteps) || w.Lost != nil {
					t.Errorf("%+v", w)
				}
			}
			if q := point.Requests; q.OK != q.Due {
				t.Errorf("%+v", q)
			}
			if test.check == result.CheckClockSteps {
				if w := point.Workers[0]; w.Ahead < clockStep.Seconds()*1e3-w.AheadBound || w.Ahead > clockStep.Seconds()*1e3+w.AheadBound {
					t.Errorf("%+v", w)
				}
			}
		})
	}
}
