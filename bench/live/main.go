// Command live holds the twin against a real engine: it fits the twin on two
// loads and predicts two others, one past saturation and one with shared
// prefixes.
//
//	go run ./bench/live -url http://127.0.0.1:8200 -spec '/path/to/model@cpu?max_num_seqs=16' [-rounds 8] [-seconds 12] [-core 1]
//
// With -calibrations N the twin is what pitot calibrate makes of the engine, N times,
// and six loads are predicted that no calibration ran.
//
// A machine is faster at one time than at another, by more than the twin is to
// be wrong. So the four loads take turns in many short runs, and each is compared
// with the twin by itself. A run during which the host of
// a virtual machine took more of the processors than -stolen is measured again:
// the twin has no host. On a machine that has other work, give the engine and this
// program real-time priority (chrt -f 1) and set kernel.sched_rt_runtime_us to -1:
// else the kernel stops them for 50 ms of each second (and from Linux 6.12 on the
// fair server does, if other work waits for a processor). The engine must take no
// other requests meanwhile; with -core the client keeps to a core that the engine
// does not use. Preemptions and prefix hits are those of the engine's /metrics.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"math"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"pitot/bench/setup"
	"pitot/internal/config"
	"pitot/internal/loadgen"
	"pitot/internal/metrics"
	"pitot/internal/results/record"
	"pitot/internal/results/rundir"
	"pitot/internal/session"
	"pitot/internal/sim"
	"pitot/internal/sim/deploy"
	"pitot/internal/stats"
)

// asked is one load.
type asked struct {
	name  string
	fit   bool // the twin is fitted on it
	flags []string
}

func loads(users int) []asked {
	return []asked{
		// Users, not a rate: at a rate a slow phase of the machine makes more
		// requests run at once, and a fit takes the one for the effect of the other.
		// Few with long prompts and many with short ones: what a row costs and what a
		// long context costs are separated only where they do not go together.
		{"few users", true, []string{"--concurrency", "3", "--input", "uniform(300,1500)", "--output", "uniform(20,120)"}},
		{"past saturation", false, []string{"--concurrency", strconv.Itoa(users), "--input", "uniform(50,400)", "--output", "uniform(20,120)"}},
		{"more users", true, []string{"--concurrency", "12", "--input", "uniform(50,500)", "--output", "uniform(20,120)"}},
		{"shared prefixes", false, []string{"--rate", "12", "--input", "200", "--prefix", "512", "--prefix-share", "0.6", "--output", "60"}},
	}
}

const warmup = 2 // seconds

func main() {
	log.SetFlags(0)
	url := flag.String("url", "http://127.0.0.1:8000", "the engine")
	spec := flag.String("spec", "", "MODEL@GPU?settings of the engine")
	rounds := flag.Int("rounds", 8, "runs of each load, in turn")
	seconds := flag.Int("seconds", 12, "window of a run")
	users := flag.Int("users", 40, "who ask without pause in the load past saturation")
	core := flag.Int("core", -1, "that the client keeps to, -1 for any")
	stolen := flag.Float64("stolen", 0.01, "share of the processors' time that the host may take during a run")
	calibrations := flag.Int("calibrations", 0, "calibrate this often, in turn with rounds of six other loads, instead of fitting two loads")
	keep := flag.String("keep", "", "directory for the runs, by default one that is removed; those that are there are not measured again")
	flag.Parse()
	if *spec == "" {
		log.Fatal("name what runs there with -spec MODEL@GPU")
	}
	dir, remove := setup.Dir()
	defer remove()
	if *keep != "" {
		dir = *keep
	}
	pitot := setup.Build(dir)
	e := engine{url: *url, spec: *spec, pitot: pitot, dir: dir, seconds: *seconds, core: *core, stolen: *stolen}
	if *calibrations > 0 {
		e.judgeCalibrations(*calibrations, *rounds)
		return
	}
	found := map[string][]measured{}
	var fitted []string
	fresh := false // some run was measured now
	for round := range *rounds {
		for _, l := range loads(*users) {
			m, isNew := e.measure(l, round)
			fresh = fresh || isNew
			found[l.name] = append(found[l.name], m)
			if l.fit {
				fitted = append(fitted, m.dir)
			}
		}
		fmt.Fprintf(os.Stderr, "round %d of %d\n", round+1, *rounds)
	}
	profile := filepath.Join(dir, "profile.yaml")
	if _, err := os.Stat(profile); err != nil || fresh {
		setup.Run(nil, pitot, append([]string{"fit", *spec, "--out", profile}, fitted...)...)
	}
	with := e.profiled(profile)
	fmt.Printf("\n%d runs of %d s of each load in turn; measured ÷ predicted: geometric mean over the runs, and its 95 %% interval\n\n", *rounds, *seconds)
	fmt.Printf("%-16s", "load")
	for _, m := range []string{"TTFT mean", "p99", "TPOT mean", "p99", "E2E mean", "p99"} {
		fmt.Printf(" %18s", m)
	}
	fmt.Printf(" %7s  a request, measured and predicted: prefix tokens hit, preemptions\n", "n")
	for _, l := range loads(*users) {
		var ratios [6][]float64                  // logarithms, of each run
		var hits, preempted, requests [2]float64 // measured and predicted
		n := 0
		for i, measured := range found[l.name] {
			var m, p series
			requests[0] += float64(m.read(measured.dir))
			s := p.predict(with, measured.dir, uint64(i))
			requests[1] += float64(p.all)
			hits[0], preempted[0] = hits[0]+measured.counts["vllm:prefix_cache_hits_total"], preempted[0]+measured.counts["vllm:num_preemptions_total"]
			hits[1], preempted[1] = hits[1]+float64(s.PrefixHits), preempted[1]+float64(s.Preemptions)
			n += len(m.of[0])
			for k := range m.of {
				stats.SortFloat64(m.of[k])
				stats.SortFloat64(p.of[k])
				a, _ := stats.Moments(m.of[k])
				b, _ := stats.Moments(p.of[k])
				ratios[2*k] = append(ratios[2*k], math.Log(a/b))
				ratios[2*k+1] = append(ratios[2*k+1], math.Log(stats.Percentile(m.of[k], 0.99)/stats.Percentile(p.of[k], 0.99)))
			}
		}
		fmt.Printf("%-16s", l.name)
		for _, r := range ratios {
			fmt.Printf(" %18s", factor(r))
		}
		// A load of users that is answered faster makes more requests: what happens is counted a
		// request.
		fmt.Printf(" %7d  hits %.1f, %.1f (of %.0f, %.0f); preemptions %.4f, %.4f (of %.0f, %.0f)\n", n,
			hits[0]/requests[0], hits[1]/requests[1], hits[0], hits[1],
			preempted[0]/requests[0], preempted[1]/requests[1], preempted[0], preempted[1])
	}
}

// engine is what is measured, and how.
type engine struct {
	url, spec  string
	pitot, dir string
	seconds    int     // of a run's window
	core       int     // that the client keeps to, -1 for any
	stolen     float64 // share of the processors that the host may take
}

// client is a command of pitot's, on its core.
func (e *engine) client(args ...string) *exec.Cmd {
	if e.core < 0 {
		return exec.Command(e.pitot, args...)
	}
	return setup.Command(e.core, append([]string{e.pitot}, args...)...)
}

// profiled is the engine with the settings of a profile.
func (e *engine) profiled(profile string) string {
	if strings.Contains(e.spec, "?") {
		return e.spec + "&profile=" + profile
	}
	return e.spec + "?profile=" + profile
}

// measure runs a load, unless its run is there from before.
func (e *engine) measure(l asked, round int) (m measured, isNew bool) {
	out := filepath.Join(e.dir, fmt.Sprintf("%s-%d", strings.ReplaceAll(l.name, " ", "-"), round))
	if c, err := kept(out); err == nil {
		return measured{dir: out, counts: c}, false
	}
	for try := 0; ; try++ {
		if err := os.RemoveAll(out); err != nil { // what was left of it
			log.Fatal(err)
		}
		seed := strconv.FormatInt(time.Now().Unix(), 10) // no prompt comes twice: it would be cached
		client := e.client(append([]string{"run", e.url, "--api", "openai-completions", "--seed", seed, "--warmup", fmt.Sprintf("%ds", warmup),
			"--duration", fmt.Sprintf("%ds", e.seconds), "--out", out, "--quiet"}, l.flags...)...)
		before, took := scrape(e.url), takenByHost()
		if output, err := client.CombinedOutput(); err != nil && !strings.Contains(string(output), "INVALID") {
			log.Fatalf("%s: %v\n%s", client, err, output)
		}
		c := scrape(e.url).minus(before)
		share := takenByHost().since(took)
		if share <= e.stolen {
			c.keep(out)
			return measured{dir: out, counts: c}, true
		}
		if try == tries {
			log.Fatalf("the host took %.1f %% of the processors in the last of %d runs: raise -stolen, or wait for a quiet time", 100*share, tries)
		}
		fmt.Fprintf(os.Stderr, "%s %d: the host took %.1f %% of the processors; again\n", l.name, round, 100*share)
	}
}

// factor writes the geometric mean of ratios and its interval: runs are the
// unit, because the machine differs from one to the next.
func factor(logs []float64) string {
	mean, sd := stats.Moments(logs)
	text := fmt.Sprintf("%.2f", math.Exp(mean))
	if n := float64(len(logs)); n > 1 {
		half := stats.StudentQuantile(0.975, n-1) * sd / math.Sqrt(n)
		text += fmt.Sprintf(" (%.2f-%.2f)", math.Exp(mean-half), math.Exp(mean+half))
	}
	return text
}

// measured is a run of the real engine.
type measured struct {
	dir    string
	counts counts
}

// tries is how often a run is measured again.
const tries = 10

// taken are clock ticks of all processors, as /proc/stat counts them: what the
// host took (steal), and all.
type taken struct{ host, all float64 }

// takenByHost reads them, nothing where there is no such file.
func takenByHost() (t taken) {
	data, err := os.ReadFile("/proc/stat")
	if err != nil {
		return t
	}
	line, _, _ := strings.Cut(string(data), "\n")
	const steal = 8 // its place behind "cpu": proc_stat(5)
	for i, field := range strings.Fields(line) {
		if x, err := strconv.ParseFloat(field, 64); err == nil {
			if t.all += x; i == steal {
				t.host = x
			}
		}
	}
	return t
}

// since is the share that the host took since a time before.
func (t taken) since(before taken) float64 {
	if t.all == before.all {
		return 0
	}
	return (t.host - before.host) / (t.all - before.all)
}

// counts are counters of the engine's.
type counts map[string]float64

func (c counts) minus(before counts) counts {
	d := counts{}
	for name, x := range c {
		d[name] = x - before[name]
	}
	return d
}

// countsFile holds a run's counts.
const countsFile = "counts.json"

func (c counts) keep(dir string) {
	data, err := json.Marshal(c)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, countsFile), data, 0o644)
	}
	if err != nil {
		log.Fatal(err)
	}
}

// kept reads the counts of a run that is there.
func kept(dir string) (c counts, err error) {
	data, err := os.ReadFile(filepath.Join(dir, countsFile))
	if err != nil {
		return nil, err
	}
	return c, json.Unmarshal(data, &c)
}

// scrape reads the counters of /metrics, without their labels.
func scrape(url string) counts {
	r, err := http.Get(url + "/metrics")
	if err != nil {
		log.Fatal(err)
	}
	defer r.Body.Close()
	c := counts{}
	lines := bufio.NewScanner(r.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		name, rest, _ := strings.Cut(lines.Text(), "{")
		if strings.HasSuffix(name, "_total") {
			if x, err := strconv.ParseFloat(rest[strings.LastIndex(rest, " ")+1:], 64); err == nil {
				c[name] += x
			}
		}
	}
	return c
}

// series are TTFT, TPOT and E2E of requests, in seconds from when each was due.
type series struct {
	of  [3][]float64
	all int // requests, those of the warm-up and those that were cut too
}

// addRequest takes a request of the window, from its row alone.
func (s *series) addRequest(r *record.Row) {
	if r.Outcome != record.OK || r.Due < warmup*1e9 {
		return
	}
	l := metrics.LatencyOf(r, new(metrics.Events))
	s.appendKnown(0)(l.TTFT(metrics.Response, r.Done))
	s.appendKnown(1)(l.TPOTn1(r.Done))
	s.appendKnown(2)(l.E2E(metrics.Response, r.Done))
}

// appendKnown adds a latency to a series, if the request has it.
func (s *series) appendKnown(i int) func(ns float64, is metrics.State) {
	return func(ns float64, is metrics.State) {
		if is == metrics.Known {
			s.of[i] = append(s.of[i], ns/1e9)
		}
	}
}

// read takes the requests of a measured run and says how many there were.
func (s *series) read(dir string) (n int) {
	for f, err := range record.Frames(dir) {
		if err != nil {
			log.Fatal(err)
		}
		if f.Point < 0 { // asked before the load
			continue
		}
		for i := range f.Rows {
			s.addRequest(&f.Rows[i])
		}
		n += len(f.Rows)
	}
	return n
}

// Chunk implements [record.Sink].
func (s *series) Chunk(record.Chunk) {}

// Done implements [record.Sink].
func (s *series) Done(r *record.Row) {
	s.all++
	s.addRequest(r)
}

// predict does a measured run again on the twin.
func (s *series) predict(spec, dir string, seed uint64) sim.Stats {
	d, err := deploy.Parse(spec)
	if err != nil {
		log.Fatal(err)
	}
	p, err := config.ReadRecorded(filepath.Join(dir, rundir.Config))
	if err != nil {
		log.Fatal(err)
	}
	src, done, err := session.OpenWorkload(&p.Ask, 0)
	if err != nil {
		log.Fatal(err)
	}
	defer done()
	cfg := loadgen.Config{Users: p.Concurrency, Warmup: int64(p.Warmup), Window: int64(p.Duration), Stagger: int64(p.Warmup) / 2}
	if p.Rate > 0 {
		cfg.Arrivals = cameDue(dir)
	}
	engine := d.Engine(seed)
	loadgen.Run(context.Background(), loadgen.NewCore(cfg), loadgen.NewVirtual(loadgen.VirtualConfig{Engine: engine, Source: src, Sink: s}))
	return engine.Stats()
}

// trace are due times, ascending.
type trace []int64

// Next implements arrival.Process.
func (t *trace) Next() int64 {
	if len(*t) == 0 {
		return loadgen.Never
	}
	at := (*t)[0]
	*t = (*t)[1:]
	return at
}

// cameDue is when the requests of a run did.
func cameDue(dir string) *trace {
	var t trace
	for f, err := range record.Frames(dir) {
		if err != nil {
			log.Fatal(err)
		}
		for i := range f.Rows {
			if f.Point < 0 { // asked before the load
				break
			}
			t = append(t, f.Rows[i].Due)
		}
	}
	slices.Sort(t)
	return &t
}
