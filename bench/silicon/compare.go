package main

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"pitot/internal/loadgen"
	"pitot/internal/results/record"
	"pitot/internal/sim/deploy"
	"pitot/internal/workload"
)

// comparison is a measured row and what the twin predicts for it.
type comparison struct {
	row
	ttftError, tpotError float64 // twin ÷ measured − 1
	why                  string  // it was not modelled
	set                  string  // further settings of the deployment
}

// compare prints bias and error of the twin over all rows that it can model.
func compare(systems string, all, chosen bool, only, set, errors string) error {
	modelled, refused, err := simulated(systems, chosen, only, set)
	if err != nil {
		return err
	}
	by := func(title string, of func(*comparison) string) {
		table(modelled, "engine, "+title, func(b *comparison) string {
			part := "chosen on"
			if held(b.system()) {
				part = "kept out "
			}
			return strings.TrimRight(strings.Join([]string{part, b.engine, b.kind(), of(b)}, " "), " ")
		})
	}
	if all {
		for _, b := range modelled {
			fmt.Printf("%-50s %s c=%-3d %5d/%-5d TTFT %8.1f → %8.1f (%+.0f %%)  TPOT %7.2f → %7.2f (%+.0f %%)\n", b.system(), b.version, b.users, b.input, b.output, b.ttft, b.ttft*(1+b.ttftError), 100*b.ttftError, b.tpot, b.tpot*(1+b.tpotError), 100*b.tpotError)
		}
		table(modelled, "system", func(b *comparison) string { return b.system() })
		by("lengths", func(b *comparison) string { return fmt.Sprintf("%5d/%d", b.input, b.output) })
		by("users", func(b *comparison) string { return fmt.Sprintf("%5d", b.users) })
	}
	by("GPU, weights", func(b *comparison) string { return b.accelerator + " " + b.dtype })
	by("all", func(*comparison) string { return "" })
	by("model", func(b *comparison) string { return b.model[strings.LastIndex(b.model, "/")+1:] + " " + b.dtype })
	if errors != "" {
		if err := writeErrors(errors, modelled); err != nil {
			return err
		}
	}
	total := map[string]int{}
	for why, n := range refused {
		total[why[:strings.Index(why, ":")]] += n
	}
	for engine, n := range counted(modelled) {
		fmt.Printf("\n%s: %d of %d rows are modelled, %.0f %%", engine, n, n+total[engine], 100*float64(n)/float64(n+total[engine]))
	}
	fmt.Println("\nnot modelled:")
	for _, why := range slices.Sorted(keys(refused)) {
		fmt.Printf("%6d %s\n", refused[why], why)
	}
	return nil
}

// simulated are the rows that the twin can model, with what it makes of them, and how many
// it cannot, by reason.
func simulated(systems string, chosen bool, only, set string) (modelled []comparison, refused map[string]int, err error) {
	rows, refused, err := read(filepath.Join(systems, "silicon_sample.csv"))
	if err != nil {
		return nil, nil, err
	}
	list := make([]comparison, 0, len(rows))
	for _, r := range rows {
		if lockstep != (r.dp > 0) || pools != (r.prefill > 0) {
			switch {
			case lockstep || pools:
			case r.dp > 0:
				refused[r.engine+": data parallel, in lock step (-lockstep compares them)"]++
			default:
				refused[r.engine+": prefill and decode on servers of their own, all alike (-pools compares them)"]++
			}
			continue
		}
		if strings.Contains(r.system(), only) && !(chosen && held(r.system())) {
			list = append(list, comparison{row: r, set: set})
		}
	}
	var group sync.WaitGroup
	next := make(chan *comparison)
	for range 2 {
		group.Go(func() {
			for b := range next {
				b.simulate()
			}
		})
	}
	for i := range list {
		next <- &list[i]
	}
	close(next)
	group.Wait()
	modelled = list[:0]
	for _, b := range list {
		if b.why != "" {
			refused[b.engine+": "+b.why]++
			continue
		}
		modelled = append(modelled, b)
	}
	return modelled, refused, nil
}

// counted is how many rows there are of each engine.
func counted(list []comparison) map[string]int {
	n := map[string]int{}
	for i := range list {
		n[list[i].engine]++
	}
	return n
}

func keys(m map[string]int) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// kind says whether a row's model has experts, and sets those apart of which
// it is not known what was measured.
func (r *row) kind() string {
	switch {
	case strings.Contains(r.model, "8B-Instruct-FP8"): // faster than the hardware computes its prompts: they may have been cached
		return "dense, unexplained"
	case strings.Contains(r.source, "gtl_job_id"): // behind a router, with an unknown number of servers
		return "dense, unexplained"
	case strings.Contains(r.model, "Llama"), strings.Contains(r.model, "Qwen3-32B"):
		return "dense"
	}
	return "MoE"
}

// table prints a line for each group of rows.
func table(list []comparison, title string, of func(*comparison) string) {
	groups := map[string][]comparison{}
	for i := range list {
		k := of(&list[i])
		groups[k] = append(groups[k], list[i])
	}
	names := make([]string, 0, len(groups))
	for k := range groups {
		names = append(names, k)
	}
	slices.Sort(names)
	fmt.Printf("\n%-60s %7s %4s  %-24s  %-24s\n", title, "systems", "rows", "TPOT bias  MAPE  80 %", "TTFT bias  median  80 %")
	for _, k := range names {
		g := groups[k]
		count := map[string]bool{}
		for i := range g {
			count[g[i].system()] = true
		}
		errors := func(of func(*comparison) float64) (bias, mean, median, p80 float64) {
			var abs []float64
			var logs float64
			for i := range g {
				e := of(&g[i])
				abs = append(abs, math.Abs(e))
				logs += math.Log1p(e)
			}
			slices.Sort(abs)
			return 100 * math.Expm1(logs/float64(len(g))), 100 * average(abs), 100 * abs[len(abs)/2], 100 * abs[len(abs)*4/5]
		}
		b1, m1, _, p1 := errors(func(b *comparison) float64 { return b.tpotError })
		b2, _, m2, p2 := errors(func(b *comparison) float64 { return b.ttftError })
		fmt.Printf("%-60s %7d %4d  %+6.1f %%  %4.1f %%  %4.1f %%  %+6.1f %%  %4.1f %%  %4.1f %%\n", k, len(count), len(g), b1, m1, p1, b2, m2, p2)
	}
}

// simulate has the twin answer the row's load, sent as its benchmark does: all
// users ask at once when it begins, ten requests each, and all of them count
// (InferenceMAX's benchmark_serving with --num-prompts 10c, AIConfigurator's
// genai_perf_runner.py with --request-count 10c after a warm-up that has ended).
func (b *comparison) simulate() {
	d, err := b.deployment()
	if err != nil {
		b.why = strings.SplitN(err.Error(), "\n", 2)[0]
		return
	}
	s := &closed{row: &b.row, varied: b.varied()}
	n := int64(10 * b.users)
	core := loadgen.NewCore(loadgen.Config{Users: b.users, Requests: n, Total: n})
	engine := d.Engine(1)
	engine.Brief()
	loadgen.Run(context.Background(), core, loadgen.NewVirtual(loadgen.VirtualConfig{Engine: engine, Source: s, Sink: s}))
	if s.n == 0 {
		b.why = "no request was answered"
		return
	}
	b.ttftError = s.ttft/s.n/b.ttft - 1
	b.tpotError = s.tpot/s.n/b.tpot - 1
}

// deployment is the row's server.
func (b *comparison) deployment() (*deploy.Deployment, error) {
	if b.accelerator == "" {
		return nil, fmt.Errorf("the accelerator is not in the catalogue")
	}
	model := b.model[strings.LastIndex(b.model, "/")+1:]
	model = strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(model, "-NVFP4"), "-FP8"), "-Instruct")
	settings, longest := "?enable_prefix_caching=false", "max_model_len"
	own := own && b.engine == "sglang"
	if own {
		settings, longest = "?engine=sglang&disable_radix_cache=true", "context_length"
	}
	if !strings.HasPrefix(model, "gpt-oss") { // they come in one type
		settings += "&dtype=" + cmp.Or(b.dtype, "bf16")
	}
	if own {
		// what it is set to is not told: its defaults
	} else if b.varied() {
		settings += b.recipe()
	} else if b.engine != "sglang" {
		// AIConfigurator asks for this budget (generator/rule_plugin/benchmark/vllm.rule).
		settings += fmt.Sprintf("&max_num_seqs=%d&max_num_batched_tokens=%d", b.users, b.users+b.input+1500)
		if b.serial() { // more than 0.9 of the memory became the default later
			settings += "&async_scheduling=false&gpu_memory_utilization=0.9"
		}
	}
	if b.dp > 0 {
		settings += fmt.Sprintf("&data_parallel_size=%d&tensor_parallel_size=%d", b.dp, b.tp)
	}
	engines := max(b.dp, b.prefill+b.decode, 1)
	if b.prefill > 0 {
		settings += fmt.Sprintf("&data_parallel_size=%d&tensor_parallel_size=%d&prefill=%d&decode=%d", engines, b.tp, b.prefill, b.decode)
	}
	if b.prefill == 0 && (b.ep || b.dp > 0 || b.divided()) {
		settings += "&enable_expert_parallel=true"
	}
	if need := b.input + b.output + 256; need > 0 {
		settings += fmt.Sprintf("&%s=%d", longest, need)
	}
	if b.set != "" {
		settings += "&" + b.set
	}
	return deploy.Parse(fmt.Sprintf("%s@%dx%s%s", strings.ToLower(model), b.tp*engines, b.accelerator, settings))
}

// serial says that a row's server planned its steps one after the other: asynchronous
// scheduling became the default with vLLM 0.14 (its pull request 27614), and
// InferenceMAX asked for it before.
func (r *row) serial() bool { return !r.varied() && r.engine == "vllm" && older(r.version, 0, 14) }

// closed is the source of a row's requests, and the sink of their times.
type closed struct {
	*row
	varied        bool // lengths are 80 to 100 % of those named (random-range-ratio 0.8)
	ttft, tpot, n float64
}

// At implements [workload.Source].
func (s *closed) At(id int64) (workload.Request, error) {
	input, output := s.input, s.output
	if s.varied {
		draw := func(k int64, n int) int {
			x := math.Mod(float64(id+1)*[]float64{0.7548776662466927, 0.5698402909980532}[k], 1)
			return int(float64(n) * (0.8 + 0.2*x))
		}
		input, output = draw(0, input), draw(1, output)
	}
	return workload.Request{ID: id, Input: input, Output: output, Exact: true, Session: workload.Unknown}, nil
}

// Chunk implements [record.Sink].
func (*closed) Chunk(record.Chunk) {}

// Done implements [record.Sink].
func (s *closed) Done(r *record.Row) {
	if r.Outcome != record.OK || r.CompletionTokens < 2 {
		return
	}
	s.n++
	s.ttft += float64(r.FirstToken-r.Due) / 1e6
	s.tpot += float64(r.LastToken-r.FirstToken) / 1e6 / float64(r.CompletionTokens-1)
}

func average(x []float64) float64 {
	sum := 0.0
	for _, v := range x {
		sum += v
	}
	return sum / float64(len(x))
}
