package workers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pitot/internal/clock"
	"pitot/internal/config"
	"pitot/internal/results/record"
	"pitot/internal/results/result"
	"pitot/internal/results/rundir"
	"pitot/internal/session"
	"pitot/internal/target"
	"pitot/internal/workers/bus"
	"pitot/internal/workers/natsserver"
	"pitot/internal/workload/arrival"
	"pitot/internal/workload/seed"
)

var version = result.Version{Version: "v1", Commit: "c", Go: "go"}

func init() { bus.EmbedServer(natsserver.Serve) }

// crew is a coordinator with workers that are goroutines of this process.
type crew struct {
	*Coordinator
	leave []context.CancelFunc // of each worker, in the order of their ranks
	errs  []error
	ended sync.WaitGroup
}

// unhurried is longer than a busy machine keeps a process waiting, and less than a test may take.
const unhurried = 4 * time.Minute

// bounded is a context that ends before the test does.
func bounded(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), unhurried)
	t.Cleanup(cancel)
	return ctx
}

func muster(t *testing.T, n int, environ ...string) *crew {
	t.Helper()
	c, err := Listen(version, n)
	if err != nil {
		t.Fatal(err)
	}
	return musterBy(t, c, environ...)
}

// listening is a coordinator with a server of its own, whose workers' journals come over the bus.
func listening(v result.Version, size int) (*Coordinator, error) {
	return listenAt(v, size, place{Access: bus.Access{URL: "127.0.0.1:0"}, own: true}, func(string) {})
}

// musterBy has the workers of a coordinator join. None of them is lost for being late: all
// share this process, and where the machine is busy an answer may take many seconds.
func musterBy(t *testing.T, by *Coordinator, environ ...string) *crew {
	t.Helper()
	return musterAt(t, by, by.URL(), environ...)
}

// musterAt has them join at a URL.
func musterAt(t *testing.T, by *Coordinator, url string, environ ...string) *crew {
	t.Helper()
	n := by.size
	c := &crew{Coordinator: by, errs: make([]error, n)}
	c.lead, c.late = 150*time.Millisecond, unhurried
	ctx := bounded(t)
	for i := range n {
		on, leave := context.WithCancel(context.Background())
		c.leave = append(c.leave, leave)
		w := &Worker{Runner: session.Runner{Version: version}, URL: url, Token: c.Token(), Dir: t.TempDir(), Environ: environ, Say: func(string) {}, lease: unhurried}
		c.ended.Go(func() { c.errs[i] = w.Run(on) })
		for joined := 0; joined <= i && ctx.Err() == nil; time.Sleep(time.Millisecond) { // so that ranks are in order
			c.mu.Lock()
			joined = len(slices.DeleteFunc(slices.Clone(c.members), func(m *member) bool { return m == nil }))
			c.mu.Unlock()
		}
	}
	if err := c.WaitReady(ctx); err != nil {
		t.Fatal(err)
	}
	return c
}

// disband ends the run and gives what the workers ended with.
func (c *crew) disband() []error {
	_ = c.announceEnd()
	c.ended.Wait()
	c.Coordinator.Close()
	return c.errs
}

// planned is the plan of a command line for the target of fixed latencies.
func planned(t testing.TB, args ...string) *config.Plan {
	t.Helper()
	return plannedAt(t, "mock:fixed?ttft=5ms&itl=1ms", args...)
}

// plannedAt is likewise of any target.
func plannedAt(t testing.TB, at string, args ...string) *config.Plan {
	t.Helper()
	argv := append([]string{at, "--output", "5", "--input", "16", "--no-scrape", "--out", filepath.Join(t.TempDir(), "run")}, args...)
	p, spec, err := config.Decode(config.VerbRun, argv, nil)
	if err != nil {
		t.Fatal(err)
	}
	if p.Spec == "" {
		p.Spec = spec[0]
	}
	if err := p.Check(config.VerbRun); err != nil {
		t.Fatal(err)
	}
	return &p
}

// sent are the requests of a run, by worker.
func sent(t testing.TB, dir string) (rows []record.Row, workers map[int32]int) {
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
// says who carried it out, and how far their clocks are known to be apart. So it is where the
// workers' journals are read where they are, and where they come over the bus.
func TestFleet(t *testing.T) {
	t.Parallel()
	for name, made := range map[string]func(result.Version, int) (*Coordinator, error){"beside": Listen, "elsewhere": listening} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, err := made(version, 3)
			if err != nil {
				t.Fatal(err)
			}
			carriedOut(t, musterBy(t, c))
		})
	}
}

// carriedOut has a crew of three carry out a load. It is one that a process with a tenth of a
// core serves beside sending it, with the race detector: the more an open loop is behind, the
// later workers hear that it may end, and the longer it goes on.
func carriedOut(t *testing.T, c *crew) {
	const rate = 60
	r := session.Runner{Version: version, Crew: c}
	p := planned(t, "--rate", strconv.Itoa(rate), "--duration", "500ms", "--warmup", "100ms", "--seed", "7", "--until", "p50 ttft ±50%", "--max-duration", "1s")
	got, dir, err := r.Run(bounded(t), p)
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
	due, err := law.NewProcess(rate, seed.At(seed.Point(7, 0), seed.Arrival, 0), 100e6)
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
	if again, err := session.Finish(dir, func(string) {}); err != nil || len(again.Points[0].Workers) != 3 {
		t.Errorf("finished again: %v", err)
	}
}

// Users are divided, a window that counts requests has as many as it was to have, or one more
// where two are due at once, workers
// without a user have nothing to do, and a session's next point is carried out by the same
// workers.
func TestFleetOfUsers(t *testing.T) {
	t.Parallel()
	c := muster(t, 3)
	defer c.disband()
	r := session.Runner{Version: version, Crew: c}
	for _, test := range []struct {
		args    []string
		due     int
		workers int
	}{
		{[]string{"--concurrency", "5", "--requests", "30", "--warmup", "20ms"}, 30, 3},
		{[]string{"--concurrency", "2", "--requests", "20", "--warmup", "0s"}, 20, 2},
		{[]string{"--concurrency", "3", "--requests", "2", "--warmup", "0s"}, 2, 2},
		{[]string{"--rate", "400", "--max-in-flight", "2", "--requests", "40", "--warmup", "20ms"}, 40, 2},
		{[]string{"--concurrency", "4", "--turns", "3", "--requests", "40", "--warmup", "50ms"}, 40, 3},
	} {
		got, dir, err := r.Run(bounded(t), planned(t, test.args...))
		if err != nil {
			t.Errorf("%v: %v", test.args, err)
			continue
		}
		for i, point := range got.Points {
			// Users whose answers were read at once are due at once, and no window parts them.
			if q := point.Requests; q.Due < test.due || q.Due > test.due+1 || q.OK != q.Due {
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
	t.Parallel()
	c := muster(t, 2)
	r := session.Runner{Version: version, Crew: c}
	ctx, stop := context.WithCancel(bounded(t))
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
	w := &Worker{Runner: session.Runner{Version: result.Version{Version: "v2", Commit: "d", Go: "go"}}, URL: c.URL(), Token: c.Token(), Dir: t.TempDir(), Say: func(string) {}}
	if err := w.Run(bounded(t)); err == nil || !strings.Contains(err.Error(), "v2 d") || !strings.Contains(err.Error(), "v1 c") {
		t.Errorf("the worker says %v", err)
	}
	soon, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := c.WaitReady(soon); err == nil || !strings.Contains(err.Error(), "v2 d") {
		t.Errorf("the coordinator says %v", err)
	}
	if _, err := os.Stat(c.dir); err != nil {
		t.Error(err)
	}
}

// madeUpOf is a coordinator whose workers are made up.
func madeUpOf(t *testing.T, members ...*member) *Coordinator {
	t.Helper()
	c, err := Listen(version, len(members))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	for i, m := range members {
		if m != nil {
			m.rank, m.last = i, time.Now()
		}
	}
	c.members = members
	return c
}

// A worker that is connecting again while it is asked is asked again.
func TestWorkerThatConnectsAgain(t *testing.T) {
	t.Parallel()
	c := madeUpOf(t, &member{})
	worker, err := bus.Dial(bus.Access{URL: c.URL(), Token: c.Token()})
	if err != nil {
		t.Fatal(err)
	}
	defer worker.Close()
	time.AfterFunc(150*time.Millisecond, func() {
		if err := worker.Answer(c.id.prepareSubject(0), func([]byte) []byte { return encode(prepared{}) }); err != nil {
			t.Error(err)
		}
	})
	if err := c.prepare(bounded(t), c.members, nil); err != nil {
		t.Error(err)
	}
}

// A worker that had ended its load and dies before its last piece is lost all the same.
func TestLostBehindEnd(t *testing.T) {
	c := madeUpOf(t, &member{report: report{Ended: new(session.Ended), Bytes: 100}, ended: time.Now().Add(-2 * goneTime), said: "out of memory"})
	_, err := c.followLoad(t.Context(), c.members, session.Sums{})
	if lost := (*session.LostError)(nil); !errors.As(err, &lost) || !strings.Contains(err.Error(), "out of memory") {
		t.Errorf("it ends with %v", err)
	}
}

// Where all workers are lost the window ends where the last was heard of, and it says that all
// were.
func TestAllLost(t *testing.T) {
	now := clock.Now()
	c := madeUpOf(t, &member{ended: time.Now(), at: now + 3e9, said: "out of memory"}, &member{ended: time.Now(), at: now + 4e9, said: "killed"})
	c.origin = now
	got, err := c.followLoad(t.Context(), c.members, session.Sums{Enough: func(t0, t1 int64) bool { return false }})
	if lost := (*session.LostError)(nil); !errors.As(err, &lost) || lost.All != 2 || !strings.Contains(err.Error(), "all 2 workers were lost") || !strings.Contains(err.Error(), "killed") {
		t.Errorf("it ends with %v", err)
	}
	if got == nil || got.T1 != 4e9 || got.Ended != 4e9 || len(got.Workers) != 2 || got.Workers[0].Lost == nil {
		t.Errorf("%+v", got)
	}
}

// The target is asked before workers are waited for: one that is not there costs no wait, and
// where no worker comes there is no run.
func TestGathersLate(t *testing.T) {
	t.Parallel()
	c := madeUpOf(t, nil)
	c.wait = 50 * time.Millisecond
	r := session.Runner{Version: version, Crew: c}
	p := planned(t, "--rate", "10", "--duration", "100ms")
	dead := *p
	dead.Spec = "http://127.0.0.1:1"
	var gone *target.Error
	if _, _, err := r.Run(t.Context(), &dead); !errors.As(err, &gone) {
		t.Errorf("of a dead target it says %v", err)
	}
	if _, _, err := r.Run(t.Context(), p); err == nil || !strings.Contains(err.Error(), "0 of 1 worker joined: not within 50 ms") {
		t.Errorf("without workers it says %v", err)
	}
	if _, err := os.Stat(p.Out); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a directory is left: %v", err)
	}
}

// A worker of a run that its user stopped says so.
func TestStopped(t *testing.T) {
	c := muster(t, 1)
	c.NoteStopped()
	if err := c.disband()[0]; !errors.Is(err, ErrStopped) {
		t.Errorf("it ends with %v", err)
	}
}

// What the decision to give up rests on is summed over the workers that are left.
func TestLooks(t *testing.T) {
	one := &member{report: report{Looks: []look{{1, []float64{2}}, {3, []float64{4, 5}}}}}
	gone := &member{lost: new(result.Lost)}
	if all := looksOf([]*member{one, gone, one}); len(all) != 2 || all[1].UnderWay[1] != 10 {
		t.Errorf("looks %+v", all)
	}
	if all := looksOf([]*member{gone}); all != nil {
		t.Errorf("of none that is left: %+v", all)
	}
}

// A place is kept from others while there is one that nobody has, and who lost his is told.
func TestPlaceTaken(t *testing.T) {
	c := madeUpOf(t, nil, nil)
	ask := func(nonce string) (w welcome) {
		if answer := c.answerJoin(encode(hello{Protocol: protocol, Build: c.build, Nonce: nonce})); answer != nil {
			w, _ = decode[welcome](answer)
		}
		return w
	}
	told := func(nonce string, rank int) bool {
		w, err := decode[word](c.answerReport(encode(report{Rank: rank, Nonce: nonce})))
		return err == nil && w.Taken
	}
	ask("a")
	c.members[0].asked = time.Now().Add(-2 * confirmTime)
	if w := ask("b"); w.Rank != 1 || w.Of != 2 || told("b", 1) {
		t.Errorf("b has %+v", w)
	}
	if w := ask("c"); w.Rank != 0 || w.Run == "" || !told("a", 0) || told("c", 0) {
		t.Errorf("c has %+v", w)
	}
	if w := ask("d"); w.Run != "" {
		t.Errorf("d has %+v", w)
	}
}

// Workers that a pod of an Indexed Job starts do not take its index for their own.
func TestNoIndexOfOthers(t *testing.T) {
	t.Setenv(JobIndex, "1")
	for _, v := range workerEnviron() {
		if strings.HasPrefix(v, JobIndex) {
			t.Error(v)
		}
	}
}

// A load that has lost a worker ends when the records of the others are home.
func TestOthersComeHome(t *testing.T) {
	t.Parallel()
	c := madeUpOf(t, &member{report: report{Ended: new(session.Ended), Bytes: 100}}, &member{ended: time.Now()})
	var home atomic.Bool
	time.AfterFunc(50*time.Millisecond, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		home.Store(true)
		c.members[0].home = 100
	})
	_, err := c.followLoad(t.Context(), c.members, session.Sums{})
	if lost := (*session.LostError)(nil); !errors.As(err, &lost) || lost.Rank != 1 || !home.Load() || !c.word.Stop {
		t.Errorf("it ends with %v, home %v, %+v", err, home.Load(), c.word)
	}
}

// A worker whose disk is full may have taken back the last frame that it told of, to note that
// records are missing: it is lost for that reason, and what its file holds whole is taken. The
// report before may not tell of the disk yet.
func TestTakenBack(t *testing.T) {
	dir := t.TempDir()
	j, err := record.Create(dir)
	if err != nil {
		t.Fatal(err)
	}
	var ends []int64
	for i := range int64(3) {
		j.Chunk(record.Chunk{Request: i, Tokens: 1})
		if err := j.Flush(); err != nil {
			t.Fatal(err)
		}
		ends = append(ends, j.WrittenBytes())
	}
	if err := errors.Join(j.Close(), os.Truncate(filepath.Join(dir, rundir.Journal), ends[2]-1)); err != nil {
		t.Fatal(err)
	}
	c := madeUpOf(t, &member{hello: hello{Dir: dir}, home: ends[0], report: report{Written: ends[2]}})
	c.with = session.Sums{Home: func([]byte) error { return nil }}
	c.bringAll(c.members)
	c.mu.Lock()
	c.sumMembers(c.members)
	m, broken := *c.members[0], c.broken
	c.members[0].report.Error = "write journal: no space left on device"
	c.mu.Unlock()
	if broken != nil || m.lost != nil {
		t.Errorf("before it tells of its disk: %v, %+v, %d bytes are here", broken, m.lost, m.home)
	}
	_, err = c.followLoad(t.Context(), c.members, c.with)
	if lost := (*session.LostError)(nil); !errors.As(err, &lost) || !strings.Contains(err.Error(), "no space left") {
		t.Errorf("it ends with %v", err)
	}
	if home := c.members[0].home; home != ends[1] {
		t.Errorf("%d bytes are here, the whole frames have %d", home, ends[1])
	}
}

// Who asks to join again has the rank it has; ranks that are none are not looked up.
func TestJoinAgain(t *testing.T) {
	c := madeUpOf(t, nil, nil)
	ask := func(nonce string) int {
		w, err := decode[welcome](c.answerJoin(encode(hello{Protocol: protocol, Build: c.build, Nonce: nonce})))
		if err != nil || w.Refused != "" {
			t.Fatal(err, w.Refused)
		}
		return w.Rank
	}
	if a, b, again := ask("a"), ask("b"), ask("a"); a != 0 || b != 1 || again != 0 {
		t.Errorf("ranks %d, %d, %d", a, b, again)
	}
	c.answerReport(encode(report{Rank: -1}))
	c.takeFrames("x.-1", "x-0", nil)
}

// What a process said last is kept.
func TestLines(t *testing.T) {
	var l lines
	for i := range 5000 {
		fmt.Fprintf(&l, "line %d of many\n", i)
	}
	fmt.Fprintln(&l, "pitot: the end")
	if said := l.lastError(); !strings.HasSuffix(said, "; the end") {
		t.Errorf("it keeps …%s", said[max(0, len(said)-40):])
	}
}
