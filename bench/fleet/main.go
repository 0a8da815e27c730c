// Command fleet holds loads that several workers carry out against one that a process does
// alone: the distributions of TTFT and E2E of one schedule, by a two-sample test, and the
// processor time per chunk of all processes of the client together.
//
//	go run ./bench/fleet [-workers 1,2,4] [-rate 100] [-duration 20s] [-target MODEL@GPU] [-rounds 3]
//	go run ./bench/fleet -bare [-pace 10ms]      against the least server there is
//	go run ./bench/fleet -full                   as many users as a core reads: chunks per second of a processor
//	go run ./bench/fleet -stall 2s               what it does to lag that the coordinator stands still
//	go run ./bench/fleet -merge 100000000        merging workers' journals of so many chunks
//	go run ./bench/fleet -cores cost,full,paced  all of it with cores of their own for clients and server
//
// -cores takes under three minutes as below. Where there is no Go it needs two programs and
// nothing else:
//
//	CGO_ENABLED=0 go build -o fleet-bench ./bench/fleet; CGO_ENABLED=0 go build ./cmd/pitot
//	./fleet-bench -cores cost,full,paced -rate 200 -duration 5s -warmup 1s -pitot ./pitot -dir DIR
//
// Processor time is that of the coordinator and its workers, from their start to their end and
// while the load goes on, held against that of one process in the same round; with several rounds
// the median of these ratios.
//
// The server is pitot mock, or a bare one, in a process of its own, whose time does not count. On
// a busy machine the test tells of the machine: the run's own checks say so.
package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"pitot/bench/ks"
	"pitot/bench/setup"
	"pitot/internal/results/metric"
	"pitot/internal/results/record"
	"pitot/internal/results/result"
	"pitot/internal/results/rundir"
	"pitot/internal/stats"
)

// measured is what a run came to.
type measured struct {
	ttft, e2e []int64 // of answered requests, by value
	lag       *result.Summary
	chunks    int64
	cpu       time.Duration
	speed     float64 // tokens a second of the window
	verdict   result.Verdict
	failed    []string // checks
}

// each is processor time per chunk, in µs.
func (m *measured) each() float64 { return float64(m.cpu.Microseconds()) / float64(m.chunks) }

var (
	workers  = flag.String("workers", "1,2,4", "numbers of workers")
	rate     = flag.Float64("rate", 100, "requests a second")
	duration = flag.Duration("duration", 20*time.Second, "of each window")
	warmup   = flag.Duration("warmup", 2*time.Second, "before it")
	target   = flag.String("target", "llama-3.1-8b@h100", "of the mock")
	bare     = flag.Bool("bare", false, "ask a bare server instead")
	pace     = flag.Duration("pace", 10*time.Millisecond, "between its tokens")
	full     = flag.Bool("full", false, "ask it by as many users as fill a core")
	users    = flag.Int("users", 64, "of them")
	rounds   = flag.Int("rounds", 1, "how often all is measured, in turn")
	stall    = flag.Duration("stall", 0, "stop the coordinator for so long in the middle of the load")
	merge    = flag.Int64("merge", 0, "merge journals of so many chunks")
	serve    = flag.Bool("serve", false, "be the bare server")
	program  = flag.String("pitot", "", "program to measure; by default this source, built")
	parts    = flag.String("cores", "", "with cores of their own for clients and server: cost, full, paced, or several")
	batch    = flag.Int("batch", 1, "with -serve: events in a write")
	scratch  = flag.String("dir", "", "where files are written for a while; by default a new directory")
)

func main() {
	log.SetFlags(0)
	flag.Parse()
	if *serve {
		bareServer(*pace, *batch)
		return
	}
	if *scratch != "" {
		if err := os.Setenv("TMPDIR", *scratch); err != nil { // the workers' journals go there too
			log.Fatal(err)
		}
	}
	dir, remove := setup.Dir()
	defer remove()
	if *merge > 0 {
		mergeJournals(dir, 4, *merge)
		return
	}
	b := bench{dir: dir, pitot: *program}
	if b.pitot == "" {
		b.pitot = setup.Build(dir)
	}
	if *parts != "" {
		b.apart(strings.Split(*parts, ","))
		return
	}
	switch {
	case *stall > 0:
		defer b.serve(*bare, *pace, 1)()
		b.stalled()
	case *full:
		defer b.serve(true, 0, 1)()
		b.filled()
	default:
		defer b.serve(*bare, *pace, 1)()
		b.alike()
	}
}

// bench is a program and a server.
type bench struct {
	dir, pitot string
	clients    []int // the cores of what is measured, nil for any
	servers    []int // and those of the server

	url    string
	bare   bool
	server *os.Process
	loaded chan struct{} // a load has begun, as the bare server sees it
}

// serve starts the server, a bare one that writes so many events at once each pace, or pitot mock;
// stop ends it.
func (b *bench) serve(bare bool, pace time.Duration, batch int) (stop func()) {
	server := exec.Command(b.pitot, "mock", *target, "--port", "0")
	if b.bare = bare; bare {
		self, err := os.Executable()
		if err != nil {
			log.Fatal(err)
		}
		server = exec.Command(self, "-serve", "-pace", pace.String(), "-batch", strconv.Itoa(batch))
		if _, err := server.StdinPipe(); err != nil { // it ends with this process
			log.Fatal(err)
		}
	}
	out, err := server.StdoutPipe()
	if err == nil {
		server.Stderr = server.Stdout
		err = startOn(server, b.servers)
	}
	if err != nil {
		log.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	lines.Scan()
	_, url, _ := strings.Cut(lines.Text(), "http://")
	b.url, b.server, b.loaded = "http://"+strings.Fields(url + " ?")[0], server.Process, make(chan struct{}, 1)
	began := b.loaded
	go func() {
		for lines.Scan() {
			if lines.Text() != loaded {
				continue
			}
			select {
			case began <- struct{}{}:
			default:
			}
		}
	}()
	return func() { _ = server.Process.Kill(); _ = server.Wait() }
}

// start starts a run.
func (b *bench) start(name string, more ...string) (c *exec.Cmd, out string) {
	out = filepath.Join(b.dir, name)
	args := append([]string{"run", b.url, "--duration", duration.String(), "--warmup", warmup.String(), "--input", "256", "--seed", "7", "--no-scrape", "--quiet", "--out", out}, more...)
	if b.bare {
		args = append(args, "--api", "openai-completions", "--model", "bare")
	}
	c = exec.Command(b.pitot, args...)
	if err := startOn(c, b.clients); err != nil {
		log.Fatal(err)
	}
	return c, out
}

// notRun is the exit code of pitot where nothing was measured.
const notRun = 2

// ended waits for a run, and reads it.
func ended(c *exec.Cmd, out string) measured {
	err := c.Wait()
	if _, e := os.Stat(filepath.Join(out, rundir.Result)); e != nil || c.ProcessState.ExitCode() == notRun {
		log.Fatalf("%v: %v", c.Args, err)
	}
	m := read(out)
	_ = os.RemoveAll(out)
	m.cpu = c.ProcessState.UserTime() + c.ProcessState.SystemTime() // with its workers', which it waited for
	return m
}

// eachFleet is called with each number of workers.
func eachFleet(do func(n int)) {
	for text := range strings.SplitSeq(*workers, ",") {
		n, err := strconv.Atoi(text)
		if err != nil {
			log.Fatal(err)
		}
		do(n)
	}
}

// alike holds what fleets measure against what one process does.
func (b *bench) alike() {
	run := func(name string, more ...string) (m measured, during float64) {
		c, out := b.start(name, append([]string{"--rate", fmt.Sprint(*rate), "--output", "uniform(16,128)"}, more...)...)
		during = math.NaN() // µs of a processor for each chunk, while it goes on
		const begun = 2500 * time.Millisecond
		if span := *warmup + *duration - begun; span >= time.Second {
			time.Sleep(begun)
			began, before := time.Now(), spentBy(c.Process.Pid)
			time.Sleep(span)
			during = float64((spentBy(c.Process.Pid) - before).Microseconds()) / time.Since(began).Seconds()
		}
		m = ended(c, out)
		return m, during / m.speed
	}
	if !b.bare {
		run("first") // which leaves the prompts in the server's cache
	}
	fmt.Printf("%-8s %8s %10s %12s %8s %12s %8s %12s %12s  %s\n", "workers", "answers", "chunks", "CPU/chunk µs", "ratio", "of load µs", "ratio", "TTFT D, p", "E2E D, p", "verdict")
	var all, loads ratios
	for round := range *rounds {
		alone, loadAlone := run(fmt.Sprint("alone", round), "--fleet", "none")
		show := func(name string, m *measured, during float64) {
			compare := func(x, y []int64) string {
				d := stats.KSDistance(x, y)
				return fmt.Sprintf("%.3f %.2f", d, ks.P(d, len(x), len(y)))
			}
			ratio := m.each() / alone.each()
			all.add(name, ratio)
			loads.add(name, during/loadAlone)
			fmt.Printf("%-8s %8d %10d %12.2f %8.2f %12.2f %8.2f %12s %12s  %s %s\n", name, len(m.ttft), m.chunks, m.each(), ratio, during, during/loadAlone, compare(m.ttft, alone.ttft), compare(m.e2e, alone.e2e), m.verdict, strings.Join(m.failed, ", "))
		}
		show("none", &alone, loadAlone)
		eachFleet(func(n int) {
			m, during := run(fmt.Sprint("fleet", n, "-", round), "--fleet", fmt.Sprint(n))
			show(fmt.Sprint(n), &m, during)
		})
		again, during := run(fmt.Sprint("again", round), "--fleet", "none")
		show("again", &again, during)
	}
	all.show("processor time per chunk")
	loads.show("processor time per chunk while the load goes on")
}

// filled has users ask as fast as they are answered: what is read in a second of a processor is
// what the clients cost where nothing waits for the server.
func (b *bench) filled() {
	fmt.Printf("%-8s %10s %14s %22s %8s\n", "workers", "chunks", "chunks/s", "chunks/s of processor", "CPU/chunk")
	var all ratios
	for round := range *rounds {
		alone := 0.0
		show := func(fleet string) {
			began := time.Now()
			m := ended(b.start(fmt.Sprint("full", fleet, "-", round), "--concurrency", fmt.Sprint(*users), "--output", "500", "--fleet", fleet))
			speed := float64(m.chunks) / m.cpu.Seconds()
			alone = cmp.Or(alone, speed)
			all.add(fleet, alone/speed)
			fmt.Printf("%-8s %10d %14.0f %22.0f %8.2f\n", fleet, m.chunks, float64(m.chunks)/time.Since(began).Seconds(), speed, alone/speed)
		}
		show("none")
		eachFleet(func(n int) { show(strconv.Itoa(n)) })
	}
	all.show("processor time per chunk")
}

// ratios are processor time per chunk over that of one process in the same round, by workers.
type ratios struct {
	names []string
	of    map[string][]float64
}

func (r *ratios) add(name string, ratio float64) {
	if r.of == nil {
		r.of = map[string][]float64{}
	}
	if r.of[name] == nil {
		r.names = append(r.names, name)
	}
	r.of[name] = append(r.of[name], ratio)
}

// show shows the median of several rounds.
func (r *ratios) show(what string) {
	if *rounds == 1 {
		return
	}
	fmt.Printf("%s over that of one process, median of %d rounds:\n", what, *rounds)
	for _, name := range r.names {
		x := slices.Sorted(slices.Values(r.of[name]))
		fmt.Printf("%-8s %.2f (%.2f to %.2f)\n", name, (x[(len(x)-1)/2]+x[len(x)/2])/2, x[0], x[len(x)-1])
	}
}

// stalled stops the coordinator in the middle of a load, as a machine does that is starved, and
// holds its workers' lag against that of a load without.
func (b *bench) stalled() {
	fmt.Printf("%-22s %10s %12s %12s  %s\n", "coordinator", "requests", "lag p50 ms", "lag p99 ms", "verdict")
	for round := range 3 {
		for _, stop := range []bool{false, true} {
			name := map[bool]string{false: "goes on", true: "stands still for " + stall.String()}[stop]
			c, out := b.start(fmt.Sprint("stall", round, stop), "--rate", fmt.Sprint(*rate), "--output", "uniform(16,128)", "--fleet", "2")
			if stop {
				time.Sleep(3*time.Second + *duration/2 - *stall/2)
				standStill(c.Process, *stall)
			}
			m := ended(c, out)
			lag := func(x *float64) string {
				if x == nil {
					return "?"
				}
				return fmt.Sprintf("%.3f", *x)
			}
			fmt.Printf("%-22s %10d %12s %12s  %s %s\n", name, len(m.ttft), lag(m.lag.P50), lag(m.lag.P99), m.verdict, strings.Join(m.failed, ", "))
		}
	}
}

// read reads a run.
func read(dir string) (m measured) {
	data, err := os.ReadFile(filepath.Join(dir, rundir.Result))
	var r result.Run
	if err == nil {
		err = json.Unmarshal(data, &r)
	}
	if err != nil || len(r.Points) != 1 {
		log.Fatal("read run: ", err)
	}
	if x := r.Points[0].Throughput.OutputTokensPerS; x != nil {
		m.speed = *x
	}
	m.verdict, m.lag = r.Points[0].Verdict, r.Points[0].Metrics.SummaryOf(metric.Lag)
	for _, c := range r.Points[0].Checks {
		if c.Status != result.Pass {
			m.failed = append(m.failed, c.Name)
		}
	}
	for f, err := range record.Frames(dir) {
		if err != nil {
			log.Fatal(err)
		}
		m.chunks += int64(len(f.Chunks))
		for i := range f.Rows {
			if q := &f.Rows[i]; q.Outcome == record.OK && f.Point == 0 {
				m.ttft, m.e2e = append(m.ttft, q.FirstToken-q.Due), append(m.e2e, q.LastToken-q.Due)
			}
		}
	}
	slices.Sort(m.ttft)
	slices.Sort(m.e2e)
	return m
}
