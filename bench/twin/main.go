// Command twin measures the twin: how fast its engine and the virtual world are, alone and with 64
// engines behind a router, what the server on the wire adds to a bare loop of writes, how late it
// emits, what idle streams take of memory, and whether the two worlds say the same of one schedule.
//
//	go run ./bench/twin [-only engine,virtual,replicas,wire,late,idle,worlds] [-rounds 3]
//
// Each part has its reference in the same run, taken in turn with it, and a
// core for each of two processes. Needs Linux, two cores, taskset, a C
// compiler, and for the idle streams that many descriptors (ulimit -Hn; with
// fewer it measures as many as there may be). A quiet machine: whatever else
// runs there is measured too.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"pitot/bench/setup"
	"pitot/internal/results/metric"
	"pitot/internal/results/result"
	"pitot/internal/results/rundir"
	"pitot/internal/sim"
	"pitot/internal/sim/deploy"
)

func main() {
	log.SetFlags(0)
	only := flag.String("only", "engine,virtual,replicas,wire,late,idle,worlds", "parts to measure")
	rounds := flag.Int("rounds", 3, "runs of each, in turn")
	be := flag.String("be", "", "be one process of a part: engine, mock, bare or pacer")
	var l load
	flag.IntVar(&l.Streams, "streams", 1000, "of a process: streams")
	flag.IntVar(&l.Tokens, "tokens", 300, "of a process: tokens of each stream")
	flag.DurationVar(&l.TTFT, "ttft", 500*time.Millisecond, "of a process: time to the first token")
	flag.DurationVar(&l.ITL, "itl", 20*time.Millisecond, "of a process: time between tokens")
	flag.StringVar(&l.Event, "event", "", "of a process: the bytes of one event")
	flag.Parse()
	switch *be {
	case "engine":
		tell(engine())
		return
	case "mock":
		tell(l.mock())
		return
	case "bare":
		tell(l.bare())
		return
	case "pacer":
		tell(l.pacer())
		return
	}
	dir, remove := setup.Dir()
	defer remove()
	self, err := os.Executable()
	if err != nil {
		log.Fatal(err)
	}
	b := &bench{dir: dir, self: self, pitot: setup.Build(dir), rounds: *rounds}
	parts := map[string]func(){
		"engine": b.engine, "virtual": b.virtual, "replicas": b.replicas, "wire": b.wire, "late": b.late, "idle": b.idle, "worlds": b.worlds,
	}
	for name := range strings.SplitSeq(*only, ",") {
		part := parts[name]
		if part == nil {
			log.Fatalf("no part %q", name)
		}
		part()
	}
}

type bench struct {
	dir, self, pitot string
	rounds           int
	took             time.Duration // processor time of the last run
}

// tell is how a process of a part gives what it measured.
func tell(v any) {
	if err := json.NewEncoder(os.Stdout).Encode(v); err != nil {
		log.Fatal(err)
	}
}

// median gives the median of x and the text of its range.
func median(x []float64, verb string) (m float64, span string) {
	s := slices.Sorted(slices.Values(x))
	return s[len(s)/2], fmt.Sprintf("("+verb+" to "+verb+" in %d rounds)", s[0], s[len(s)-1], len(s))
}

// simulated is the speed of the engine.
type simulated struct {
	TokensPerS float64 // simulated, per second of one core
	Faster     float64 // than the engine that it models
}

// engine keeps 256 requests running for two seconds.
func engine() simulated {
	d, err := deploy.Parse("llama-3.1-8b@h100")
	if err != nil {
		log.Fatal(err)
	}
	e := d.Engine(1)
	id := int64(0)
	addJob := func(now int64) {
		e.Add(now, sim.Job{ID: id, Prompt: 256, Output: 128 + int(id%257)})
		id++
	}
	for range 256 {
		addJob(0)
	}
	tokens, now := 0, int64(0)
	begin := time.Now()
	for time.Since(begin) < 2*time.Second {
		for range 1000 {
			s := e.Step(now)
			now = s.End
			for _, o := range s.Out {
				tokens += o.Tokens
				if o.Finish != "" {
					addJob(now)
				}
			}
		}
	}
	real := time.Since(begin).Seconds()
	return simulated{float64(tokens) / real, float64(now) / 1e9 / real}
}

// engine measures the engine alone on one core.
func (b *bench) engine() {
	var speed, faster []float64
	for range b.rounds {
		var s simulated
		out, err := b.process(1, []string{"-be", "engine"}).Output()
		if err != nil || json.Unmarshal(out, &s) != nil {
			log.Fatalf("engine: %v", err)
		}
		speed, faster = append(speed, s.TokensPerS/1e6), append(faster, s.Faster)
	}
	m, span := median(speed, "%.2f")
	f, _ := median(faster, "%.0f")
	fmt.Printf("engine: %.2f million simulated tokens/s at 256 running on one core %s, %.0f times the engine it models\n", m, span, f)
}

// virtual measures the whole verb in virtual time: load, records, report.
func (b *bench) virtual() {
	var ratio []float64
	for range b.rounds {
		begin := time.Now()
		p := b.run("sim:llama-3.1-8b@rtxpro6000", "--rate", "10", "--duration", "1h").Points[0]
		ratio = append(ratio, (p.Seconds.Warmup+p.Seconds.Window+p.Seconds.Drain)/time.Since(begin).Seconds())
	}
	m, span := median(ratio, "%.0f")
	fmt.Printf("virtual: an hour at 10 requests/s passes %.0f times as fast as real time %s\n", m, span)
}

// replicas measures the same of 64 engines, by the processor time of the whole process.
func (b *bench) replicas() {
	for _, router := range []string{"vllm", "round_robin", "power_of_two", "least_requests", "cache_aware"} {
		var speed []float64
		for range b.rounds {
			r := b.runWith([]string{"GOMAXPROCS=1"}, "sim:llama-3.1-8b@64xh100?tensor_parallel_size=1&data_parallel_size=64&router="+router,
				"--rate", "600", "--input", "256", "--output", "256", "--duration", "60s", "--seed", "1")
			speed = append(speed, float64(r.Sent.Load.OutputTokens)/1e6/b.took.Seconds())
		}
		m, span := median(speed, "%.2f")
		fmt.Printf("64 replicas, %s: a run of %.2f million tokens per second of one core %s\n", router, m, span)
	}
}

// run runs a measurement and gives its result.
func (b *bench) run(args ...string) result.Run { return b.runWith(nil, args...) }

// runWith does so with variables in its environment besides.
func (b *bench) runWith(environment []string, args ...string) result.Run {
	out := filepath.Join(b.dir, "run")
	os.RemoveAll(out)
	cmd := exec.Command(b.pitot, append([]string{"run", "--quiet", "--out", out}, args...)...)
	cmd.Env = append(os.Environ(), environment...)
	if output, err := cmd.CombinedOutput(); err != nil { // not VALID: the figures show it
		log.Printf("%s%v", output, err)
	}
	b.took = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	data, err := os.ReadFile(filepath.Join(out, rundir.Result))
	if err != nil {
		log.Fatal(err)
	}
	var r result.Run
	if err := json.Unmarshal(data, &r); err != nil {
		log.Fatal(err)
	}
	return r
}

// worlds runs one schedule on the wire and in virtual time. The two differ by
// the jitter of the steps, which is drawn again, and by what sockets and this
// machine add.
func (b *bench) worlds() {
	names := []string{"mean", "p50", "p90", "p95", "p99", "p99.9", "max"}
	metrics := func(p result.Point) map[string]*result.Summary {
		return map[string]*result.Summary{"TTFT": p.Metrics.SummaryOf(metric.TTFT), "TPOT": p.Metrics.SummaryOf(metric.TPOT), "E2E": p.Metrics.SummaryOf(metric.E2E)}
	}
	values := func(s *result.Summary) []*float64 {
		return []*float64{s.Mean, s.P50, s.P90, s.P95, s.P99, s.P999, s.Max}
	}
	flags := []string{"--rate", "40", "--input", "256", "--output", "64", "--duration", "30s", "--seed", "7"}
	wire, virtual := make([]map[string]*result.Summary, b.rounds), make([]map[string]*result.Summary, b.rounds)
	for i := range b.rounds {
		wire[i] = metrics(b.run(append([]string{"mock:llama-3.1-8b@h100"}, flags...)...).Points[0])
		virtual[i] = metrics(b.run(append([]string{"sim:llama-3.1-8b@h100"}, flags...)...).Points[0])
	}
	fmt.Printf("%-8s %-8s", "worlds", "ms")
	for _, n := range names {
		fmt.Printf(" %8s", n)
	}
	fmt.Println()
	for _, name := range []string{"TTFT", "TPOT", "E2E"} {
		var rows [3]string
		for k := range names {
			var w, v, d []float64
			for i := range b.rounds {
				x, y := values(wire[i][name])[k], values(virtual[i][name])[k]
				if x == nil || y == nil {
					log.Fatalf("no %s of %s", names[k], name)
				}
				w, v, d = append(w, *x), append(v, *y), append(d, 100*(*x / *y - 1))
			}
			for r, x := range [][]float64{w, v, d} {
				m, _ := median(x, "%f")
				rows[r] += fmt.Sprintf(" %8.2f", m)
			}
		}
		for r, label := range []string{"wire", "virtual", "% apart"} {
			fmt.Printf("%-8s %-8s%s\n", name, label, rows[r])
		}
	}
}
