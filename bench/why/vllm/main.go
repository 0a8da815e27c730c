// Command vllm makes conditions on purpose on a real vLLM and says whether pitot explain
// names each: too few places, a KV cache that overflows, long prompts among short chats, a
// prefix cache too small for the prefixes, an API server starved of processor, other
// people's traffic, a client starved of processor, a proxy that buffers.
//
//	go run ./bench/why/vllm -serve 'vllm serve MODEL --port 8100 --max-model-len 4096' [-url http://127.0.0.1:8100] [-repeats 3] [-only NAME] [-engine 0] [-client 1] [-lift]
//
// The command of -serve starts the server in the foreground; flags of each condition are
// put behind it, and it is started anew where they differ. Its engine keeps to the core
// -engine, its API server and Pitot to -client. Needs Linux, two cores, taskset, chrt and
// renice. On a machine that has other work -lift gives the server and Pitot a priority
// above all of it (chrt -f: as root); what the kernel then keeps free for the rest, 50 ms
// of each second, shows as freezes.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"pitot/bench/setup"
	"pitot/internal/analysis/explain"
	"pitot/internal/analysis/inspect"
	"pitot/internal/results/metric"
	"pitot/internal/results/result"
)

// condition is one that is made.
type condition struct {
	name   string
	flags  string   // of the server
	asked  []string // of pitot run
	of     metric.Name
	causes []explain.Cause // right is one of them
	around func(b *bench) (target string, stop func())
}

// light flags leave the server room for everything.
const light = "--max-num-seqs 32 --max-num-batched-tokens 2048 --num-gpu-blocks-override 400 --enable-prompt-tokens-details"

// conditions are in an order that starts few servers.
var conditions = []condition{
	{name: "max_num_seqs 4", flags: "--max-num-seqs 4 --max-num-batched-tokens 2048 --num-gpu-blocks-override 400 --enable-prompt-tokens-details",
		asked: []string{"--concurrency", "16", "--input", "200", "--output", "uniform(60,140)"}, of: metric.TTFT, causes: []explain.Cause{explain.Seats}},
	{name: "KV cache overflows", flags: "--max-num-seqs 32 --max-num-batched-tokens 2048 --num-gpu-blocks-override 64 --enable-prompt-tokens-details",
		asked: []string{"--concurrency", "20", "--input", "300", "--output", "uniform(200,400)"}, of: metric.TTFT, causes: []explain.Cause{explain.KVCache}},
	{name: "prefix cache too small", flags: "--max-num-seqs 32 --max-num-batched-tokens 2048 --num-gpu-blocks-override 64 --enable-prompt-tokens-details",
		asked: []string{"--rate", "4", "--output", "24"}, of: metric.TTFT, causes: []explain.Cause{explain.PrefixCache}, around: prefixes},
	{name: "4k prompts among short chats", flags: light,
		asked: []string{"--rate", "3", "--input", "quantiles(0:60,79:120,80:3400,100:3800)", "--output", "uniform(80,120)"}, of: metric.Stall, causes: []explain.Cause{explain.Compute}},
	{name: "other clients", flags: light,
		asked: []string{"--rate", "2", "--input", "200", "--output", "uniform(40,80)"}, of: metric.TPOT, causes: []explain.Cause{explain.Foreign}, around: others},
	{name: "a proxy that buffers", flags: light,
		asked: []string{"--rate", "1.5", "--input", "200", "--output", "uniform(200,300)"}, of: metric.Stall, causes: []explain.Cause{explain.Proxy}, around: buffering},
	{name: "client starved", flags: light,
		asked: []string{"--rate", "3", "--input", "200", "--output", "uniform(40,80)"}, of: metric.TTFT, causes: []explain.Cause{explain.Client}, around: starvedClient},
	{name: "API server starved", flags: light,
		asked: []string{"--rate", "3", "--input", "300", "--output", "uniform(40,80)"}, of: metric.TTFT, causes: []explain.Cause{explain.Frontend}, around: starvedServer},
	{name: "nothing", flags: light,
		asked: []string{"--rate", "2", "--input", "200", "--output", "uniform(40,80)"}, of: metric.TTFT},
}

// bench is what a condition is made with.
type bench struct {
	url, dir       string
	pitot          string
	engine, client int
	lift           bool
	run            []string // command of a load, in front of pitot's
	extra          []string // flags of its own
	server         *exec.Cmd
	flags          string
}

func main() {
	log.SetFlags(0)
	serve := flag.String("serve", "", "command that starts the server in the foreground")
	url := flag.String("url", "http://127.0.0.1:8100", "where it answers then")
	repeats := flag.Int("repeats", 3, "of each condition")
	only := flag.String("only", "", "a regular expression: the conditions to make")
	seconds := flag.Int("seconds", 25, "window of a run")
	engine, client := flag.Int("engine", 0, "core of the server"), flag.Int("client", 1, "core of Pitot")
	lift := flag.Bool("lift", false, "a higher priority for the server and Pitot than other work of the machine")
	keep := flag.String("keep", "", "directory for the runs, by default one that is removed")
	flag.Parse()
	chosen, err := regexp.Compile(*only)
	if err != nil || *serve == "" {
		log.Fatalf("name the server's command with -serve, and conditions with -only: %v", err)
	}
	dir, remove := setup.Dir()
	defer remove()
	pitot := setup.Build(dir)
	if *keep != "" {
		dir = *keep
	}
	b := &bench{url: *url, dir: dir, pitot: pitot, engine: *engine, client: *client, lift: *lift}
	defer func() { b.stop() }()
	fmt.Println("| condition | flags of the server and of `pitot run` | named | also said | others' tokens, served against counted |")
	fmt.Println("|---|---|---|---|---|")
	right, all := 0, 0
	for i := range conditions {
		c := &conditions[i]
		if !chosen.MatchString(c.name) {
			continue
		}
		b.start(*serve, c.flags)
		var named, also []string
		good, apart := 0, 0.0
		for k := range *repeats {
			o := b.measure(c, k, *seconds)
			named, also = append(named, o.named), append(also, o.also...)
			apart = max(apart, o.apart)
			if len(c.causes) > 0 {
				all++
				if o.right {
					right++
					good++
				}
			}
		}
		slices.Sort(also)
		verdict := fmt.Sprintf("%d of %d: ", good, *repeats)
		if len(c.causes) == 0 {
			verdict = ""
		}
		fmt.Printf("| %s | `%s`; `%s` | %s%s | %s | %.2g %% |\n", c.name, c.flags, strings.Join(c.asked, " "), verdict, strings.Join(counted(named), "; "), strings.Join(counted(also), "; "), 100*apart)
	}
	b.stop()
	fmt.Printf("\n%d of %d named right\n", right, all)
}

// counted says how often each is there.
func counted(list []string) (out []string) {
	for _, x := range list {
		if slices.ContainsFunc(out, func(s string) bool { return strings.TrimRight(s, " ×0123456789") == x || s == x }) {
			continue
		}
		n := 0
		for _, y := range list {
			if x == y {
				n++
			}
		}
		if n > 1 {
			out = append(out, fmt.Sprintf("%s ×%d", x, n))
		} else {
			out = append(out, x)
		}
	}
	return out
}

// outcome is what was said of a run.
type outcome struct {
	named string
	right bool
	also  []string
	apart float64 // how far Pitot's count of tokens is from the server's
}

// measure runs a load under a condition and has it explained.
func (b *bench) measure(c *condition, k, seconds int) (o outcome) {
	b.run, b.extra = []string{"taskset", "-c", fmt.Sprint(b.client)}, nil
	if b.lift {
		b.run = append([]string{"chrt", "-f", "2"}, b.run...)
	}
	target := b.url
	if c.around != nil {
		var stop func()
		target, stop = c.around(b)
		defer stop()
	}
	out := filepath.Join(b.dir, fmt.Sprintf("%s-%d", strings.ReplaceAll(c.name, " ", "-"), k))
	if err := os.RemoveAll(out); err != nil {
		log.Fatal(err)
	}
	line := append(slices.Clone(b.run), b.pitot, "run", target, "--duration", fmt.Sprintf("%ds", seconds), "--warmup", "3s", "--seed", fmt.Sprint(k+1), "--quiet", "--out", out)
	line = append(append(line, c.asked...), b.extra...)
	cmd := exec.Command(line[0], line[1:]...)
	if said, err := cmd.CombinedOutput(); err != nil && cmd.ProcessState.ExitCode() != 4 {
		log.Fatalf("%s: %v\n%s", strings.Join(line, " "), err, said)
	}
	said, err := exec.Command(b.pitot, "explain", out, "--format", "json").Output()
	var x inspect.Explanation
	if err == nil {
		err = json.Unmarshal(said, &x)
	}
	var run result.Run
	if err == nil {
		said, err = os.ReadFile(filepath.Join(out, "run.json"))
	}
	if err == nil {
		err = json.Unmarshal(said, &run)
	}
	if err != nil || len(x.Points) == 0 {
		log.Fatalf("explain %s: %v", out, err)
	}
	p := &run.Points[0]
	for i := range x.Points[0].Symptoms {
		d := &x.Points[0].Symptoms[i]
		text := fmt.Sprintf("%s of %s", d.Primary.Cause, strings.ToUpper(string(d.Symptom.Metric)))
		if d.Symptom.Metric == c.of {
			o.right = slices.Contains(c.causes, d.Primary.Cause)
			if d.Primary.Confidence != "" {
				text += fmt.Sprintf(" (%s)", d.Primary.Confidence)
			}
			o.named = text
		} else if d.Primary.Cause != explain.Unknown {
			o.also = append(o.also, text)
		}
	}
	for i := range p.Checks {
		if x := &p.Checks[i]; x.Status != result.Pass && x.Name != "samples" && x.Name != "residence times" {
			o.also = append(o.also, string(x.Status)+" "+x.Name)
		}
		if x := &p.Checks[i]; x.Name == result.CheckServedTokens && x.Value != nil {
			o.apart = *x.Value
		}
	}
	fmt.Fprintf(os.Stderr, "%s %s, run %d: %s %v\n", time.Now().Format("15:04:05"), c.name, k+1, o.named, o.also)
	return o
}
