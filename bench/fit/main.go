// Command fit judges pitot fit on engines whose parameters are known: twins
// with parameters drawn at random serve two closed loops, a calm and a busy one,
// the fit calibrates the default twin on these runs, and
//
//   - says how often the range that it gives of a parameter holds the truth, and
//     how wide it is;
//   - predicts six other loads, among them more users than the engine runs at
//     once and shared prefixes, beside what the true twin does there, and says how
//     often the error that the fit says to expect holds.
//
// With -calibrate the runs are those that pitot calibrate chooses, with -group the
// twins are of four accelerators, and their all-reduces are drawn too.
//
// The truths are twins, so it says how well the fit finds a model of its own
// kind. How well the model is of a real engine ./bench/live says.
//
// With -servers it judges pitot calibrate, on servers of several models and
// accelerators with other kernels, hosts and settings than the catalogue has, most of
// them with a step cost that the twin has no parameter for. What came of each is kept
// in a directory, so that many can be gone through in pieces. Constants of the fit were
// chosen on half of them, the others are shown apart.
//
//	go run ./bench/fit [-truths 8] [-seed 1] [-calibrate] [-group]
//	go run ./bench/fit -servers DIR [-from 0] [-to 40] [-seed 1] [-requests 1500] [-table]
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"pitot/bench/setup"
	"pitot/internal/analysis/predict"
	"pitot/internal/results/metric"
	"pitot/internal/results/result"
	"pitot/internal/results/rundir"
	"pitot/internal/sim/deploy"
)

// base is what the engine is configured with; the twin that is fitted knows it too.
var base = "llama-3.1-8b@h100?max_num_seqs=48"

// parameter is one that is drawn, and where it lies; the unit is that of the
// setting.
type parameter struct {
	name   string
	lo, hi float64
	unit   time.Duration // 0 for a plain number
}

// drawn are the parameters of a truth.
var drawn = []parameter{
	{"step_overhead", 1, 5, time.Millisecond},
	{"row_overhead", 10, 80, time.Microsecond},
	{"prefill_overhead", 100, 1500, time.Microsecond},
	{"compute_efficiency", 0.35, 0.85, 0},
	{"attention_efficiency", 0.2, 0.9, 0},
	{"prompt_attention_efficiency", 0.1, 0.7, 0},
	{"frontend_latency", 1, 15, time.Millisecond},
	{"frontend_request", 500, 4000, time.Microsecond},
	{"frontend_prompt_token", 300, 4000, time.Nanosecond},
	{"frontend_chunk", 10, 90, time.Microsecond},
	{"frontend_jitter", 0.1, 0.6, 0},
	{"frontend_contention", 0.05, 0.6, 0},
	{"step_jitter", 0.02, 0.1, 0},
}

// load is one that is fitted on or predicted.
type load struct {
	name string
	args []string
}

var lengths = []string{"--input", "uniform(100,2000)", "--output", "uniform(20,300)"}

var fittedOn = []load{
	{"calm", append([]string{"--concurrency", "2", "--duration", "300s", "--warmup", "20s"}, lengths...)},
	{"busy", append([]string{"--concurrency", "32", "--duration", "200s", "--warmup", "20s"}, lengths...)},
}

var predicted = []load{
	{"light", []string{"--rate", "1", "--duration", "600s", "--warmup", "20s", "--input", "300", "--output", "60"}},
	{"steady", append([]string{"--rate", "6", "--duration", "300s", "--warmup", "30s"}, lengths...)},
	{"short prompts", []string{"--concurrency", "40", "--duration", "120s", "--warmup", "20s", "--input", "uniform(30,200)", "--output", "uniform(20,300)"}},
	{"long prompts", []string{"--rate", "1.5", "--duration", "300s", "--warmup", "20s", "--input", "uniform(2000,4000)", "--output", "50"}},
	{"past saturation", append([]string{"--concurrency", "96", "--duration", "300s", "--warmup", "60s"}, lengths...)},
	{"shared prefixes", []string{"--concurrency", "16", "--duration", "600s", "--warmup", "30s", "--prefix", "1024", "--prefix-share", "0.7", "--input", "uniform(50,500)", "--output", "uniform(20,300)"}},
}

type bench struct {
	pitot, dir string
}

// run measures a load on a twin in virtual time.
func (b *bench) run(spec string, l load, seed uint64) (dir string, p result.Point) {
	dir = filepath.Join(b.dir, fmt.Sprintf("%s-%d", strings.ReplaceAll(l.name, " ", "-"), seed))
	os.RemoveAll(dir)
	cmd := exec.Command(b.pitot, append([]string{"run", "sim:" + spec, "--quiet", "--seed", fmt.Sprint(seed), "--out", dir}, l.args...)...)
	output, err := cmd.CombinedOutput()
	data, readErr := os.ReadFile(filepath.Join(dir, rundir.Result))
	var r result.Run
	if readErr != nil || json.Unmarshal(data, &r) != nil {
		log.Fatalf("%s%v", output, err)
	}
	return dir, r.Points[0]
}

// known adds up what a fit says of a parameter.
type known struct {
	held, determined, heldDetermined int
	factors, off                     []float64
}

// add takes one in, and says whether its range holds the truth.
func (k *known) add(p *predict.Fitted, truth float64) bool {
	in := truth >= p.Low && truth <= p.High
	k.off = append(k.off, math.Abs(math.Log(p.Value/truth)))
	k.factors = append(k.factors, p.Factor)
	if in {
		k.held++
	}
	if p.Identified {
		k.determined++
		if in {
			k.heldDetermined++
		}
	}
	return in
}

func (k *known) row(name string) {
	n := len(k.off)
	fmt.Printf("%-28s %5d/%-3d %7d/%-3d %5d/%-3d %11.2f %13.0f %%\n", name, k.held, n, k.determined, n, k.heldDetermined, k.determined, median(k.factors), 100*(math.Exp(median(k.off))-1))
}

func main() {
	log.SetFlags(0)
	truths := flag.Int("truths", 8, "how many")
	seed := flag.Uint64("seed", 1, "of the truths")
	calibrate := flag.Bool("calibrate", false, "fit on the loads that pitot calibrate chooses")
	results := flag.String("servers", "", "judge pitot calibrate, and keep what came of each server in this directory")
	from, to := flag.Int("from", 0, "the first server"), flag.Int("to", 40, "the one behind the last")
	table := flag.Bool("table", false, "with -servers: show what the directory has, and calibrate none")
	requests := flag.Int("requests", 1500, "of each load that is predicted of a server")
	group := flag.Bool("group", false, "truths of four accelerators, with all-reduces of their own")
	flag.Parse()
	if *results != "" {
		servers(*results, *from, *to, *seed, *requests, *table)
		return
	}
	if *group {
		onGroup()
	}
	dir, remove := setup.Dir()
	defer remove()
	b := bench{setup.Build(dir), dir}

	of := map[string]*known{}
	for _, p := range drawn {
		of[p.name] = &known{}
	}
	errors := map[string][]float64{}
	told, within := 0, 0 // errors to expect, and those that held
	var took []float64
	for t := range *truths {
		dice := rand.New(rand.NewPCG(*seed, uint64(t)))
		truth, value := base, map[string]float64{}
		for _, p := range drawn {
			v := p.lo + (p.hi-p.lo)*dice.Float64()
			if p.unit == 0 {
				truth += fmt.Sprintf("&%s=%.6g", p.name, v)
				value[p.name] = v
				continue
			}
			d := time.Duration(v * float64(p.unit))
			truth += fmt.Sprintf("&%s=%v", p.name, d)
			value[p.name] = d.Seconds()
		}
		profile := filepath.Join(b.dir, "profile.yaml")
		begin := time.Now()
		var fit predict.Fit
		if *calibrate {
			fit, profile = b.calibrate(truth, uint64(t+1))
		} else {
			fit = b.fit(truth, profile, uint64(10*t))
		}
		took = append(took, time.Since(begin).Seconds())
		held, determined, heldDetermined := 0, 0, 0
		for _, p := range fit.Parameters {
			k := of[p.Name]
			if k == nil {
				continue
			}
			if p.Identified {
				determined++
			}
			switch in := k.add(&p, value[p.Name]); {
			case !in:
				log.Printf("  %s is %.4g, fitted range %.4g to %.4g", p.Name, value[p.Name], p.Low, p.High)
			case p.Identified:
				heldDetermined++
				fallthrough
			default:
				held++
			}
		}
		for i, l := range predicted {
			_, is := b.run(truth, l, uint64(10*t+5+i))
			_, predicted := b.run(strings.Split(base, "?")[0]+"?profile="+profile, l, uint64(10*t+5+i))
			for _, m := range []struct {
				name string
				a, b *result.Summary
			}{{"TTFT", predicted.Metrics.SummaryOf(metric.TTFT), is.Metrics.SummaryOf(metric.TTFT)}, {"TPOT", predicted.Metrics.SummaryOf(metric.TPOT), is.Metrics.SummaryOf(metric.TPOT)}, {"E2E", predicted.Metrics.SummaryOf(metric.E2E), is.Metrics.SummaryOf(metric.E2E)}} {
				for _, q := range []struct {
					name string
					a, b *float64
				}{{"mean", m.a.Mean, m.b.Mean}, {"p99", m.a.P99, m.b.P99}} {
					if q.a != nil && q.b != nil {
						key := fmt.Sprintf("%-16s %s %-4s", l.name, m.name, q.name)
						e := 100 * (*q.a / *q.b - 1)
						errors[key] = append(errors[key], e)
						if said := expected(fit.Error, m.name); said > 0 && q.name == "mean" {
							told++
							if math.Abs(e) <= said {
								within++
							}
						}
					}
				}
			}
		}
		log.Printf("truth %d of %d: %d of %d ranges hold it, %d of %d of those that are determined", t+1, *truths, held, len(drawn), heldDetermined, determined)
	}
	fmt.Printf("%d truths, each measured and fitted in %.0f s (median)\n\n", *truths, median(took))
	fmt.Printf("%-28s %9s %11s %9s %12s %14s\n", "parameter", "in range", "determined", "in range", "range, ×÷", "off by, median")
	all := &known{}
	for _, p := range drawn {
		k := of[p.name]
		k.row(p.name)
		all.held, all.determined, all.heldDetermined = all.held+k.held, all.determined+k.determined, all.heldDetermined+k.heldDetermined
		all.factors, all.off = append(all.factors, k.factors...), append(all.off, k.off...)
	}
	all.row("all")
	fmt.Println()
	if told > 0 {
		fmt.Printf("the error to expect, of four of five, held of %d of %d means (%.0f %%)\n\n", within, told, 100*float64(within)/float64(told))
	}
	fmt.Printf("%-27s %14s %8s\n", "predicted", "mean |error|", "worst")
	for _, key := range slices.Sorted(maps.Keys(errors)) {
		sum, worst := 0.0, 0.0
		for _, e := range errors[key] {
			sum += math.Abs(e)
			if math.Abs(e) > math.Abs(worst) {
				worst = e
			}
		}
		fmt.Printf("%-27s %12.1f %% %+6.1f %%\n", key, sum/float64(len(errors[key])), worst)
	}
}

// fit measures the two loads on a truth and fits the base to them.
func (b *bench) fit(truth, profile string, seed uint64) predict.Fit {
	args := []string{"fit", base, "--out", profile, "--format", "json"}
	for i, l := range fittedOn {
		dir, _ := b.run(truth, l, seed+uint64(i))
		args = append(args, dir)
	}
	return b.fitted(args...)
}

// calibrate lets the program choose the loads, and gives the profile's file too.
func (b *bench) calibrate(truth string, seed uint64) (predict.Fit, string) {
	dir := filepath.Join(b.dir, fmt.Sprintf("calibration-%d", seed))
	return b.fitted("calibrate", "sim:"+truth, "--deployment", base, "--seed", fmt.Sprint(seed), "--out", dir, "--quiet", "--format", "json"), filepath.Join(dir, "profile.yaml")
}

// fitted runs the program and reads the fit that it prints.
func (b *bench) fitted(args ...string) (fit predict.Fit) {
	cmd := exec.Command(b.pitot, args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil || json.Unmarshal(out, &fit) != nil {
		log.Fatalf("%s: %v", args[0], err)
	}
	return fit
}

// expected is the error to expect of a metric, 0 where none was said.
func expected(e *deploy.ExpectedError, metric string) float64 {
	switch {
	case e == nil:
		return 0
	case metric == "TTFT":
		return e.TTFTPct
	case metric == "TPOT":
		return e.TPOTPct
	}
	return e.E2EPct
}

func median(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	if len(v) == 0 {
		return math.NaN()
	}
	return v[len(v)/2]
}
