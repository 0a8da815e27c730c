//go:build linux || darwin

package workers

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"pitot/internal/clock"
	"pitot/internal/config"
	"pitot/internal/results/record"
	"pitot/internal/results/result"
	"pitot/internal/say"
	"pitot/internal/session"
	"pitot/internal/workers/bus"
	"pitot/internal/workload/arrival"
	"pitot/internal/workload/seed"
)

// TestMain lets the test's own program be a worker, so that one can be killed.
func TestMain(m *testing.M) {
	if at := os.Getenv("FLEET_TEST_SERVE"); at != "" { // a NATS server, as one of a user's
		dir, _ := os.Getwd()
		if _, err := bus.Serve(bus.Access{URL: at, Token: os.Getenv(config.TokenVariable)}, dir); err != nil {
			println(err.Error())
			os.Exit(1)
		}
		select {}
	}
	url := os.Getenv("FLEET_TEST_JOIN")
	dir, err := os.Getwd()
	if len(os.Args) == 4 && os.Args[1] == string(config.VerbWorker) { // as this program starts them
		url = os.Args[3]
		dir, err = os.MkdirTemp("", "")
	}
	if url == "" { // most tests wait for real time, and for little else: eight run at once, or more
		_ = flag.Set("test.parallel", strconv.Itoa(max(8, runtime.GOMAXPROCS(0))))
		os.Exit(m.Run())
	}
	if room, _ := strconv.ParseUint(os.Getenv("FLEET_TEST_ROOM"), 10, 64); room > 0 && err == nil { // as if the disk were full then
		signal.Ignore(syscall.SIGXFSZ)
		err = syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: room, Max: room})
	}
	if err == nil {
		w := &Worker{Runner: session.Runner{Version: version}, URL: url, Token: os.Getenv(config.TokenVariable), Dir: dir, Environ: os.Environ(), Say: func(string) {}}
		w.host = os.Getenv("FLEET_TEST_HOST")
		w.lease, _ = time.ParseDuration(os.Getenv("FLEET_TEST_LEASE"))
		w.now = stepped()
		err = w.Run(context.Background())
	}
	if err != nil {
		println(err.Error())
		os.Exit(1)
	}
	os.Exit(0)
}

// processes is a coordinator whose workers are processes.
func processes(t *testing.T, n int, environ ...string) (*Coordinator, []*exec.Cmd) {
	t.Helper()
	c, err := Listen(version, n)
	if slices.Contains(environ, elsewhere) {
		c, err = listening(version, n)
	}
	if err != nil {
		t.Fatal(err)
	}
	return c, join(t, c, n, c.URL(), c.Token(), environ...)
}

// join has so many processes join.
func join(t *testing.T, c *Coordinator, n int, url, token string, environ ...string) []*exec.Cmd {
	t.Helper()
	t.Cleanup(c.Close)
	c.lead = 150 * time.Millisecond
	var all []*exec.Cmd
	for range n {
		all = append(all, spawn(t, c, url, token, environ...))
	}
	if err := c.WaitReady(bounded(t)); err != nil {
		t.Fatal(err)
	}
	return all
}

// elsewhere is the environment of a process that stands for one of another machine: nobody here
// sees it end.
const elsewhere = "FLEET_TEST_HOST=elsewhere"

// spawn starts a process that joins.
func spawn(t *testing.T, c *Coordinator, url, token string, environ ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := exec.Command(self)
	p.Env = append(os.Environ(), "FLEET_TEST_JOIN="+url, config.TokenVariable+"="+token, "TMPDIR="+os.TempDir())
	p.Env, p.Dir, p.Stderr = append(p.Env, environ...), t.TempDir(), new(bytes.Buffer)
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		if _ = p.Wait(); !slices.Contains(environ, elsewhere) {
			c.gone(p.Process.Pid, "")
		}
		close(ended)
	}()
	t.Cleanup(func() {
		_ = c.announceEnd()
		_ = p.Process.Kill()
		<-ended
	})
	return p
}

// A worker that is killed leaves rows of all that it was to send: of what was under way, cut,
// and of the rest, unsent. They are its own. Where most of the window was over it ends there,
// with a flag, and the others' requests are followed to their end; else the run is INVALID. One
// that hangs is lost when it was not heard of for a while, and nobody sends in its place.
func TestKilled(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name  string
		after time.Duration
		with  syscall.Signal
		early bool
	}{
		{"late", 3500 * time.Millisecond, syscall.SIGKILL, false},
		{"early", 500 * time.Millisecond, syscall.SIGKILL, true},
		{"hangs", 500 * time.Millisecond, syscall.SIGSTOP, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel() // each waits, and little else
			c, _ := processes(t, 3)
			if test.with == syscall.SIGSTOP { // the others are not to be late by as much
				c.late = 5 * time.Second
			}
			r := session.Runner{Version: version, Crew: c}
			p := planned(t, "--rate", "100", "--duration", "4s", "--warmup", "0s", "--seed", "7")
			p.Spec = "mock:fixed?ttft=5ms&itl=60ms" // so long that every worker has a request in flight at any time
			go c.when(test.after, test.with)
			got, dir, err := r.Run(bounded(t), p)
			if lost := (*session.LostError)(nil); errors.As(err, &lost) != test.early || err != nil && !test.early {
				t.Fatalf("it ends with %v", err)
			}
			point := &got.Points[0]
			lost := point.Workers[0].Lost
			if lost == nil || lost.Early != test.early || test.early && lost.Missed == 0 || lost.At >= 4 {
				t.Fatalf("worker 0: %+v, lost: %+v", point.Workers[0], lost)
			}
			if window := point.Seconds.Window; !test.early && (window > lost.At+.001 || window < 2) {
				t.Errorf("the window has %.3g s, the worker was heard of at %.3g", window, lost.At)
			}
			want := map[bool]result.Status{false: result.Flag, true: result.Fail}[test.early]
			for _, check := range point.Checks {
				if check.Name == result.CheckWorkers && check.Status != want || check.Name == result.CheckRecording && check.Status != result.Pass {
					t.Errorf("check %+v", check)
				}
			}
			q := point.Requests
			if q.OK+q.Failed+q.Cut+q.Unsent != q.Due || test.with == syscall.SIGSTOP && q.LostWithWorker < 20 || q.Errors[record.ErrWorkerLost]+q.LostWithWorker != lost.Missed || !test.early && q.Cut != lost.Missed {
				t.Errorf("%+v, %d missed", q, lost.Missed)
			}
			if n := arrivals(t, 100, 7, point.Seconds.Window); q.Due+q.LostWithWorker != n {
				t.Errorf("%d were due, %d are there", n, q.Due+q.LostWithWorker)
			}
			made := 0
			for f, err := range record.Frames(dir) {
				if err != nil {
					t.Fatal(err)
				}
				for i := range f.Rows {
					if f.Rows[i].Error == record.ErrWorkerLost {
						if made++; f.Worker != 0 {
							t.Errorf("request %d is of worker %d", f.Rows[i].ID, f.Worker)
						}
					}
				}
			}
			if made < lost.Missed {
				t.Errorf("%d rows are made, %d in the window", made, lost.Missed)
			}
		})
	}
}

// A worker that nobody asked for and that ends between two loads does not end the session: others
// come in the place of all, which is said in a line. One that was asked for is missed.
func TestEndsBetweenLoads(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/models" {
			_, _ = w.Write([]byte(`{"data":[{"id":"m"}]}`))
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = w.Write([]byte("data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n"))
	}))
	defer server.Close()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var crews []*Local
	start := func(n int) (session.Crew, error) {
		l, err := NewLocal(version, n, [2]string{self, "pitot"})
		if err == nil {
			l.lead = 150 * time.Millisecond
			crews = append(crews, l)
			t.Cleanup(func() { l.Close() })
		}
		return l, err
	}
	kill := func(l *Local) {
		p := l.processes[1]
		if err := p.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		<-p.ended
		for missed := false; !missed; time.Sleep(time.Millisecond) {
			l.mu.Lock()
			missed = slices.ContainsFunc(l.members, func(m *member) bool { return !m.ended.IsZero() })
			l.mu.Unlock()
		}
	}
	for _, test := range []struct {
		name  string
		asked bool
	}{{"auto", false}, {"asked for", true}} {
		t.Run(test.name, func(t *testing.T) {
			crews = nil
			p, _, err := config.Decode(config.VerbRun, []string{server.URL, "--output", "60000", "--input", "16", "--no-scrape", "--model", "m", "--duration", "200ms", "--warmup", "0s",
				"--no-probe", "--rate", "10", "--out", filepath.Join(t.TempDir(), "run")}, nil)
			if err != nil {
				t.Fatal(err)
			}
			tells := new(linesTold)
			r := session.Runner{Version: version, Muster: start, Cores: 9, Progress: tells}
			if test.asked {
				crew, err := start(2)
				if err != nil {
					t.Fatal(err)
				}
				p.Workers, r.Crew, r.Muster = 2, crew, nil
			}
			ctx := bounded(t)
			s, err := r.Open(ctx, &p)
			if err != nil {
				t.Fatal(err)
			}
			first, err := s.Measure(ctx, s.NewSpec())
			if err != nil || len(first.Point.Workers) != 2 {
				t.Fatalf("%v, %+v", err, first)
			}
			kill(crews[0])
			second, err := s.Measure(ctx, s.NewSpec())
			if test.asked {
				if err == nil || !strings.Contains(err.Error(), "ended between two loads (signal: killed)") || say.HintOf(err) == "" {
					t.Errorf("it ends with %v", err)
				}
				_, _ = s.Close(true, err)
				return
			}
			if err != nil || len(second.Point.Workers) != 2 || second.Point.Workers[1].Lost != nil || len(crews) != 2 {
				t.Errorf("%v, %+v, %d crews", err, second, len(crews))
			}
			if lines := slices.DeleteFunc(tells.lines, func(l string) bool { return !strings.Contains(l, "worker") }); len(lines) != 2 || !strings.Contains(lines[1], "ended between two loads (signal: killed); others come") {
				t.Errorf("said %q", lines)
			}
			if _, err := s.Close(false, nil); err != nil {
				t.Error(err)
			}
		})
	}
}

// linesTold keeps the lines that a run shows.
type linesTold struct{ lines []string }

func (t *linesTold) ShowLine(line string)  { t.lines = append(t.lines, line) }
func (t *linesTold) Update(session.Status) {}

// A worker whose disk is full stops the run, which says which one it is; what had been recorded
// by then is kept.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	c, _ := processes(t, 2, "FLEET_TEST_ROOM=20000")
	r := session.Runner{Version: version, Crew: c}
	got, dir, err := r.Run(bounded(t), planned(t, "--rate", "300", "--duration", "20s", "--warmup", "0s", "--seed", "7"))
	if err == nil || !strings.Contains(err.Error(), "worker ") || !strings.Contains(err.Error(), "file too large") {
		t.Fatalf("it ends with %v", err)
	}
	if got == nil || got.Verdict != result.Invalid {
		t.Errorf("the run is %v", got.Verdict)
	}
	rows, _ := sent(t, dir)
	if len(rows) < 50 {
		t.Errorf("%d rows are kept", len(rows))
	}
}

// stepped is a clock that a signal steps.
func stepped() func() int64 {
	var by atomic.Int64
	steps := make(chan os.Signal, 1)
	signal.Notify(steps, syscall.SIGUSR1)
	go func() {
		for range steps {
			by.Add(int64(clockStep))
		}
	}()
	return func() int64 { return clock.Now() + by.Load() }
}

// clockStep is by how much.
const clockStep = 80 * time.Millisecond

// when sends a signal to worker 0 after so much of its load.
func (c *Coordinator) when(after time.Duration, signal syscall.Signal) {
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		c.mu.Lock()
		m := c.members[0]
		now := m.report.Status != nil && m.report.Ended == nil && clock.Now()-c.origin > int64(after)
		c.mu.Unlock()
		if now {
			_ = syscall.Kill(m.hello.PID, signal)
			return
		}
	}
}

// arrivals is how many requests of a run are due within so many seconds.
func arrivals(t *testing.T, rate float64, run uint64, seconds float64) (n int) {
	t.Helper()
	law, err := arrival.ParseLaw("poisson", arrival.Files{})
	if err != nil {
		t.Fatal(err)
	}
	process, err := law.NewProcess(rate, seed.At(seed.Point(run, 0), seed.Arrival, 0), 0)
	if err != nil {
		t.Fatal(err)
	}
	for process.Next() < int64(seconds*1e9+.5) {
		n++
	}
	return n
}

// A worker that hears nothing of its coordinator stops by itself when its lease is over, and
// keeps its journal; what it sends until then it sends as planned. Once its window has ended
// as planned, it does not wait for the end of the lease.
func TestLease(t *testing.T) {
	t.Parallel()
	t.Run("within the window", func(t *testing.T) { testLease(t, 2*time.Second, "1m") })
	t.Run("at the planned end", func(t *testing.T) { testLease(t, 30*time.Second, "3s") })
}

func testLease(t *testing.T, lease time.Duration, duration string) {
	t.Helper()
	t.Parallel()
	c, workers := processes(t, 1, "FLEET_TEST_LEASE="+lease.String())
	r := session.Runner{Version: version, Crew: c}
	ctx, stop := context.WithCancel(bounded(t))
	ended := make(chan struct{})
	go func() {
		_, _, _ = r.Run(ctx, planned(t, "--rate", "100", "--duration", duration, "--warmup", "0s"))
		close(ended)
	}()
	var silent int64 // from when on, since the load began
	for ctx.Err() == nil {
		c.mu.Lock()
		m := c.members[0]
		answered := m.report.Status != nil && m.report.Status.OK > 20
		silent = clock.Now() - c.origin
		c.mu.Unlock()
		if answered {
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	c.server.Close() // as if this process were gone
	for end := time.Now().Add(20 * time.Second); syscall.Kill(workers[0].Process.Pid, 0) == nil && time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond)
	}
	stop()
	<-ended
	if said := workers[0].Stderr.(*bytes.Buffer).String(); !strings.Contains(said, "nothing was heard of the coordinator for 2 s") {
		t.Errorf("it says %q", said)
	}
	rows, last := 0, int64(0)
	for f, err := range record.Frames(workers[0].Dir) {
		if err != nil {
			t.Fatal(err)
		}
		for i := range f.Rows {
			rows, last = rows+1, max(last, f.Rows[i].Sent)
		}
	}
	// How soon it notices on a busy machine is not asked: long before the end of its load.
	if most := silent + int64(15*time.Second); rows < 60 || last <= silent || last > most {
		t.Errorf("%d rows, the last sent at %d, silence from %d, none may be after %d", rows, last, silent, most)
	}
}

// A fleet meets at a server of the user's, which is killed in the course of the load and comes
// back: no request notices, every record comes home once, and nothing is left there.
func TestServerRestarts(t *testing.T) {
	t.Parallel()
	at, dir, token := unused(t), t.TempDir(), "a-token-of-the-cluster"
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	serve := func() *exec.Cmd {
		s := exec.Command(self)
		s.Dir, s.Env = dir, append(os.Environ(), "FLEET_TEST_SERVE="+at, config.TokenVariable+"="+token)
		if err := s.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Process.Kill(); _ = s.Wait() })
		return s
	}
	server := serve()
	access := bus.Access{URL: "nats://" + at, Token: token}
	var c *Coordinator
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if c, err = listenAt(version, 2, place{Access: access}, func(string) {}); err == nil {
			break
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
	}
	join(t, c, 2, access.URL, token)
	r := session.Runner{Version: version, Crew: c}
	restarted := make(chan struct{})
	go func() {
		defer close(restarted)
		for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
			c.mu.Lock()
			on := c.origin > 0 && clock.Now()-c.origin > 4e8
			c.mu.Unlock()
			if on {
				break
			}
		}
		_ = server.Process.Kill()
		_ = server.Wait()
		time.Sleep(300 * time.Millisecond)
		server = serve()
	}()
	got, out, err := r.Run(bounded(t), planned(t, "--rate", "100", "--duration", "1500ms", "--warmup", "0s", "--seed", "7"))
	<-restarted
	if err != nil {
		t.Fatal(err)
	}
	if q := got.Points[0].Requests; q.OK != q.Due || q.Due != arrivals(t, 100, 7, got.Points[0].Seconds.Window) {
		t.Errorf("%+v", q)
	}
	rows, _ := sent(t, out)
	for i := range rows { // behind the window each worker stops when it is told
		if rows[i].Due < 15e8 && rows[i].ID != int64(i) || i > 0 && rows[i].ID == rows[i-1].ID {
			t.Fatalf("row %d is of request %d", i, rows[i].ID)
		}
	}
	stream := c.id.streamName()
	c.Close()
	ears, err := bus.DialNATS(access)
	if err != nil {
		t.Fatal(err)
	}
	defer ears.Close()
	if stop, err := ears.Read(bounded(t), stream, func(string, string, []byte) {}, func(error) {}); err == nil {
		stop()
		t.Error("the stream is still there")
	}
}
