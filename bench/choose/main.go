// Command choose holds what pitot choose says against pitot find: contracts are drawn,
// each is chosen for, and what an engine of the winner carries is then searched for on the
// twin with find's own machinery. It prints how often that lies within what choose said.
//
//	go run ./bench/choose                 all contracts, a line each; what is in -file is not done again
//	go run ./bench/choose -contracts 4    some of them
//	go run ./bench/choose -conversations  contracts of conversations, held against long runs on the same twin
//	go run ./bench/choose -presets        the processor time of a choice for each workload with a name
//
// Both ask the same twin: this is about what is drawn by chance and about two ways to find
// a capacity, and not about how far the twin is from a machine (that is bench/silicon).
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"pitot/internal/analysis/choose"
	"pitot/internal/report/reasons"
	"pitot/internal/results/result"
)

// contract is what is to be chosen for.
type contract struct {
	Model, GPUs, Workload, SLO string
	Rate                       float64
	Seed                       uint64
}

// draw gives the contract of a number.
func draw(i int) contract {
	rng := rand.New(rand.NewPCG(18, uint64(i)))
	pick := func(list ...string) string { return list[rng.IntN(len(list))] }
	c := contract{
		Model:    pick("llama-3.1-8b", "qwen3-8b", "qwen3-14b", "mistral-small-24b", "qwen3-32b", "llama-3.1-70b", "gpt-oss-20b", "qwen3-30b-a3b"),
		GPUs:     pick("h100,l40s", "h100:4,a100:4", "h200,b200", "h100,h200,rtxpro6000:4", "a100,l40s:4"),
		Workload: pick("chat", "code-completion", "rag", "translation", "matrix-b", "1k1k"),
		SLO: fmt.Sprintf("%s ttft<%s, %s tpot<%s", pick("p90", "p95", "p99"), pick("500ms", "1s", "2s"),
			pick("p90", "p95", "p99"), pick("30ms", "50ms", "80ms")),
		Rate: math.Round(math.Exp(math.Log(2)+rng.Float64()*math.Log(50))*10) / 10,
		Seed: uint64(i + 1),
	}
	return c
}

// outcome is a contract and what came of it.
type outcome struct {
	Contract   contract
	Choice     *choose.Choice `json:",omitempty"`
	Seconds    float64        // of a processor that the choice took
	Found      float64        // the estimate of find, 0 for none
	Interval   [2]float64     // of it
	AtLeast    float64
	Why        string // what went wrong, or why there is no estimate
	Candidates int
}

func main() {
	n := flag.Int("contracts", 40, "how many")
	from := flag.Int("from", 0, "which is the first")
	file := flag.String("file", filepath.Join(os.TempDir(), "pitot-choose.jsonl"), "results, which are gone on from")
	talks := flag.Bool("conversations", false, "contracts of conversations, against long runs, instead")
	each := flag.Bool("presets", false, "what a choice takes for each workload with a name, instead")
	flag.Parse()
	if err := bench(*from, *n, *file, *talks, *each); err != nil {
		fmt.Fprintln(os.Stderr, "choose:", err)
		os.Exit(1)
	}
}

func bench(from, n int, file string, talks, each bool) error {
	dir, err := os.MkdirTemp("", "choose")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	pitot := filepath.Join(dir, "pitot")
	if out, err := exec.Command("go", "build", "-o", pitot, "./cmd/pitot").CombinedOutput(); err != nil {
		return fmt.Errorf("build pitot: %w: %s", err, out)
	}
	if each {
		return presets(pitot)
	}
	if talks {
		return all(from, n, file+".talks", dir, drawTalk, func(o *talked) talk { return o.Contract }, printTalk, summaryTalks,
			func(_ string, t talk) talked { return tryTalk(pitot, t) })
	}
	return all(from, n, file, dir, draw, func(o *outcome) contract { return o.Contract }, print1, summary,
		func(dir string, c contract) outcome { return try(pitot, dir, c) })
}

// all tries n contracts from one on and keeps what came of each in a file; what is there is not
// done again.
func all[C comparable, O any](from, n int, file, dir string, draw func(int) C, of func(*O) C, show func(int, O), sum func([]O) error, try func(dir string, c C) O) error {
	done, err := earlier(file, of)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer f.Close()
	var list []O
	for i := from; i < from+n; i++ {
		c := draw(i)
		o, ok := done[c]
		if !ok {
			o = try(filepath.Join(dir, fmt.Sprint(i)), c)
			line, err := json.Marshal(o)
			if err != nil {
				return err
			}
			if _, err := f.Write(append(line, '\n')); err != nil {
				return err
			}
		}
		list = append(list, o)
		show(i, o)
	}
	return sum(list)
}

// earlier reads what was done before.
func earlier[C comparable, O any](file string, of func(*O) C) (map[C]O, error) {
	done := map[C]O{}
	f, err := os.Open(file)
	if os.IsNotExist(err) {
		return done, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var o O
		if json.Unmarshal(lines.Bytes(), &o) == nil { // a line that a kill cut is done again
			done[of(&o)] = o
		}
	}
	return done, lines.Err()
}

// chosen asks for a choice on one processor, and says how many seconds of it that took.
func chosen(pitot string, args ...string) (*choose.Choice, float64, error) {
	run := exec.Command(pitot, append([]string{"choose", "--format", "json"}, args...)...)
	run.Env = append(os.Environ(), "GOMAXPROCS=1")
	var out, mistake bytes.Buffer
	run.Stdout, run.Stderr = &out, &mistake
	err := run.Run() // an exit code of its own says that nothing meets the limits
	x := new(choose.Choice)
	if e := json.Unmarshal(out.Bytes(), x); e != nil {
		return nil, 0, fmt.Errorf("choose: %w: %s", err, mistake.String())
	}
	return x, (run.ProcessState.UserTime() + run.ProcessState.SystemTime()).Seconds(), nil
}

// try chooses, and searches for what an engine of the winner carries.
func try(pitot, dir string, c contract) (o outcome) {
	o.Contract = c
	var err error
	if o.Choice, o.Seconds, err = chosen(pitot, "--model", c.Model, "--gpus", c.GPUs, "--workload", c.Workload, "--slo", c.SLO, "--rate", fmt.Sprint(c.Rate), "--seed", fmt.Sprint(c.Seed)); err != nil {
		o.Why = err.Error()
		return o
	}
	o.Candidates = o.Choice.Counts.All
	if len(o.Choice.Options) == 0 {
		o.Why = "no deployment meets the limits"
		return o
	}
	find := exec.Command(pitot, "find", "sim:"+o.Choice.Options[0].Spec, "--workload", c.Workload, "--slo", c.SLO, "--seed", fmt.Sprint(1000+c.Seed), "--out", dir, "--quiet")
	_ = find.Run() // an exit code of its own says that no load meets the SLO
	data, err := os.ReadFile(filepath.Join(dir, "run.json"))
	if err != nil {
		o.Why = "find: " + err.Error()
		return o
	}
	var r result.Run
	if err := json.Unmarshal(data, &r); err != nil || r.Capacity == nil {
		o.Why = fmt.Sprintf("find: no capacity in run.json: %v", err)
		return o
	}
	if x := r.Capacity; x.Estimate != nil && x.CI95 != nil {
		o.Found, o.Interval = *x.Estimate, *x.CI95
	} else {
		o.Why = reasons.Text(x.Why)
	}
	if r.Capacity.Load != nil {
		o.AtLeast = *r.Capacity.Load
	}
	return o
}

func print1(i int, o outcome) {
	c := o.Contract
	fmt.Printf("%2d %-18s %-22s %-16s %-30s %6.1f/s  %3d candidates in %5.1f s: ", i, c.Model, c.GPUs, c.Workload, c.SLO, c.Rate, o.Candidates, o.Seconds)
	if o.Choice == nil || len(o.Choice.Options) == 0 {
		fmt.Println(o.Why)
		return
	}
	best := o.Choice.Options[0]
	fmt.Printf("%d of %s, each %.3g (%.3g to %.3g); found ", best.Engines, best.Spec, best.Capacity, best.Interval[0], best.Interval[1])
	if o.Found == 0 {
		fmt.Printf("at least %.3g: %s\n", o.AtLeast, o.Why)
		return
	}
	fmt.Printf("%.3g (%.3g to %.3g)\n", o.Found, o.Interval[0], o.Interval[1])
}

// summary says how often both agree.
func summary(list []outcome) error {
	within, both, near, refuted := 0, 0, 0, 0
	var ratios, seconds []float64
	for _, o := range list {
		if o.Choice == nil || len(o.Choice.Options) == 0 {
			continue
		}
		best := o.Choice.Options[0]
		seconds = append(seconds, o.Seconds/float64(o.Candidates)*400)
		if o.AtLeast > best.Interval[1] {
			refuted++
		}
		if o.Found == 0 {
			continue
		}
		both++
		r := o.Found / best.Capacity
		ratios = append(ratios, math.Abs(math.Log(r)))
		if o.Found >= best.Interval[0] && o.Found <= best.Interval[1] {
			within++
		}
		noise := math.Hypot(2*best.Noise/100, math.Log(o.Interval[1]/o.Interval[0])/2)
		if math.Abs(math.Log(r)) < noise {
			near++
		}
	}
	if both == 0 {
		return fmt.Errorf("no contract has both")
	}
	slices.Sort(ratios)
	slices.Sort(seconds)
	fmt.Printf("\n%d contracts, %d with a winner and an estimate of find: %d within the printed error, %d within what is drawn by chance; apart by %.1f %% in the median, %.1f %% at most; %d refuted by a verified load\n",
		len(list), both, within, near, 100*ratios[both/2], 100*ratios[both-1], refuted)
	fmt.Printf("400 candidates take %.0f s of a processor in the median, %.0f s at most (%s)\n", seconds[len(seconds)/2], seconds[len(seconds)-1], time.Now().Format(time.DateOnly))
	return nil
}
