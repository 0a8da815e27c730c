package main

import (
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/parquet-go/parquet-go"
	"go.yaml.in/yaml/v3"

	"pitot/internal/sim/catalogue"
)

// tables are the directories of accelerators that the catalogue has, under the
// catalogue's names.
var tables = []struct{ directory, accelerator string }{
	{"l40s", "l40s"}, {"rtx_pro_6000_server", "rtxpro6000"}, {"b60", "b60"}, {"a100_sxm", "a100"}, {"h100_sxm", "h100"},
	{"h200_sxm", "h200"}, {"b200_sxm", "b200"}, {"b300_sxm", "b300"}, {"gb200", "gb200"}, {"gb300", "gb300"},
}

// derive prints kernels.yaml.
func derive(systems string) error {
	fmt.Print(`# Constants of formulas (kernels.go), worked out from measured kernels by
# go run ./bench/silicon derive DIR: least squares of logarithms, in which what
# lies far off counts less. The measurements are those of the wheel
# aiconfigurator-core (PyPI, Apache-2.0) and are not kept here. "of" is how many,
# "error" by how much the formula is off in the mean of |log|.

`)
	var all []catalogue.Kernels
	for _, t := range tables {
		k, err := kernels(filepath.Join(systems, "data", t.directory), t.accelerator)
		if err != nil {
			return err
		}
		all = append(all, *k)
	}
	sameChip(all)
	var n yaml.Node
	if err := n.Encode(all); err != nil {
		return err
	}
	narrow(&n, 0)
	e := yaml.NewEncoder(os.Stdout)
	e.SetIndent(2)
	return e.Encode(&n)
}

// chips are accelerators that compute alike: the same chip, with other memory.
var chips = [][]string{{"h100", "h200"}}

// sameChip gives accelerators that compute alike the geometric mean of the shares
// of the peak that their products reach: what differs is the machines that they
// were measured on. End to end they compute prompts equally fast.
func sameChip(all []catalogue.Kernels) {
	for _, chip := range chips {
		reached := map[string][]float64{}
		each := func(do func(kind string, p *catalogue.Product)) {
			for _, k := range all {
				if slices.Contains(chip, k.Accelerator) {
					for kind, p := range k.Products {
						do(kind, &p)
						k.Products[kind] = p
					}
				}
			}
		}
		each(func(kind string, p *catalogue.Product) { reached[kind] = append(reached[kind], math.Log(p.Compute)) })
		each(func(kind string, p *catalogue.Product) { p.Compute = share(math.Exp(average(reached[kind]))) })
	}
}

// narrow puts what stands deep in the tree on a line of its own each.
func narrow(n *yaml.Node, depth int) {
	if n.Kind == yaml.MappingNode && (depth == 3 || depth == 2 && !slices.ContainsFunc(n.Content, func(c *yaml.Node) bool { return c.Kind == yaml.MappingNode })) {
		n.Style = yaml.FlowStyle
	}
	for _, c := range n.Content {
		narrow(c, depth+1)
	}
}

// kernels works out the constants of one accelerator.
func kernels(directory, name string) (*catalogue.Kernels, error) {
	a, err := catalogue.FindAccelerator(name)
	if err != nil {
		return nil, err
	}
	k := &catalogue.Kernels{Accelerator: name, Products: map[string]catalogue.Product{}, Experts: map[string]catalogue.Experts{},
		Decode: map[string]catalogue.Decode{}, Prompt: map[string]catalogue.Prompt{}, Latent: map[string]catalogue.LatentDecode{}, Reduce: map[int]catalogue.Reduce{}, Exchange: map[int]catalogue.Reduce{}}
	var versions []string
	for _, part := range []struct {
		kind string
		take func(*catalogue.Kernels, *catalogue.Accelerator, *columns) error
	}{{"gemm/vllm/*/gemm_perf", products}, {"attention/vllm/*/generation_attention_perf", decode}, {"attention/vllm/*/context_attention_perf", prompt},
		{"moe/vllm/*/moe_perf", experts}, {"comm/vllm/*/custom_allreduce_perf", reduce}, {"gemm/sglang/*/gemm_perf", blocks},
		{"mla/vllm/*/mla_generation_module_perf", latent}, {"linear_attention/vllm/*/gdn_perf", delta}, {"comm/nccl/*/nccl_perf", exchange}} {
		t, version, err := newest(filepath.Join(directory, part.kind+".parquet"))
		if err != nil {
			return nil, err
		}
		if t == nil {
			continue
		}
		if err := part.take(k, &a, t); err != nil {
			return nil, fmt.Errorf("%s of %s: %w", part.kind, name, err)
		}
		versions = append(versions, part.kind[:strings.Index(part.kind, "/*")]+" "+version)
	}
	k.Source = "aiconfigurator-core 0.12.0: " + strings.Join(versions, ", ")
	return k, nil
}

// columns is a file of measurements by column.
type columns struct {
	n       int
	numbers map[string][]float64
	words   map[string][]string
}

// newest reads the file of the newest version that the pattern finds, nil where
// there is none.
func newest(pattern string) (*columns, string, error) {
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		return nil, "", err
	}
	version := func(f string) string { return filepath.Base(filepath.Dir(f)) }
	best := slices.MaxFunc(files, func(a, b string) int { return slices.Compare(numbersOf(version(a)), numbersOf(version(b))) })
	t, err := readTable(best)
	return t, version(best), err
}

// numbersOf are those of a version.
func numbersOf(version string) (list []int) {
	for part := range strings.SplitSeq(version, ".") {
		n := 0
		fmt.Sscanf(part, "%d", &n)
		list = append(list, n)
	}
	return list
}

// readTable reads a Parquet file whole.
func readTable(path string) (*columns, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	file, err := parquet.OpenFile(f, st.Size())
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	t := &columns{n: int(file.NumRows()), numbers: map[string][]float64{}, words: map[string][]string{}}
	for i, column := range file.Schema().Columns() {
		name := column[len(column)-1]
		for _, g := range file.RowGroups() {
			if err := t.read(name, g.ColumnChunks()[i]); err != nil {
				return nil, fmt.Errorf("read %s of %s: %w", name, path, err)
			}
		}
	}
	return t, nil
}

func (t *columns) read(name string, chunk parquet.ColumnChunk) error {
	pages := chunk.Pages()
	defer pages.Close()
	values := make([]parquet.Value, 1024)
	for {
		page, err := pages.ReadPage()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		r := page.Values()
		for {
			n, err := r.ReadValues(values)
			for _, v := range values[:n] {
				switch v.Kind() {
				case parquet.ByteArray:
					t.words[name] = append(t.words[name], v.String())
				case parquet.Double:
					t.numbers[name] = append(t.numbers[name], v.Double())
				case parquet.Float:
					t.numbers[name] = append(t.numbers[name], float64(v.Float()))
				default:
					t.numbers[name] = append(t.numbers[name], float64(v.Int64()))
				}
			}
			if err == io.EOF {
				break
			}
			if err != nil {
				return err
			}
		}
	}
}

// kernel is one measurement: what a formula needs of it, and how long it took.
type kernel struct {
	read, compute, move float64 // seconds at the datasheet's rates
	extra               float64
	s                   float64
}

// fastest keeps the fastest of the kernels that computed the same: engines
// choose.
type fastest map[[8]float64]kernel

func (f fastest) take(key [8]float64, k kernel) {
	if old, ok := f[key]; !ok || k.s < old.s {
		f[key] = k
	}
}

func (f fastest) list() []kernel {
	keys := make([][8]float64, 0, len(f))
	for k := range f {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b [8]float64) int { return slices.Compare(a[:], b[:]) })
	list := make([]kernel, len(keys))
	for i, k := range keys {
		list[i] = f[k]
	}
	return list
}

// typesOf gives the twin's names of the tables' data types, and the bytes of a
// weight.
var typesOf = map[string]struct {
	name  string
	bytes float64
	peak  string
}{
	"bfloat16": {"bf16", 2, "bf16"}, "fp8": {"fp8", 1, "fp8"}, "fp8_block": {"fp8_block", 1, "fp8"}, "nvfp4": {"fp4", 0.5 + 1.0/16, "fp4"},
	"int4_wo": {"int4", 0.5 + 2.0/128, "bf16"}, "w4a16_mxfp4": {"mxfp4", 0.5 + 1.0/32, "bf16"}, "w4a8_mxfp4_mxfp8": {"mxfp4", 0.5 + 1.0/32, "fp8"},
}

// products works out matrix products; those of fp8 in blocks were launched one
// by one in these tables, and what the host took is most of their time.
func products(k *catalogue.Kernels, a *catalogue.Accelerator, t *columns) error {
	return productsOf(k, a, t, func(dtype string) bool { return dtype != "fp8_block" })
}

// blocks works out those of fp8 in blocks, from tables in which they were
// launched together.
func blocks(k *catalogue.Kernels, a *catalogue.Accelerator, t *columns) error {
	return productsOf(k, a, t, func(dtype string) bool { return dtype == "fp8_block" })
}

func productsOf(k *catalogue.Kernels, a *catalogue.Accelerator, t *columns, wanted func(string) bool) error {
	bandwidth := a.BandwidthGBs * 1e9
	lists := map[string]fastest{}
	for i := range t.n {
		dtype := t.words["gemm_dtype"][i]
		to, known := typesOf[dtype]
		m, n, kk := t.numbers["m"][i], t.numbers["n"][i], t.numbers["k"][i]
		peak := a.TFLOPS[to.peak] * 1e12
		if !known || !wanted(dtype) || peak == 0 || n < 1024 || kk < 1024 || m > 8192 {
			continue
		}
		if lists[to.name] == nil {
			lists[to.name] = fastest{}
		}
		lists[to.name].take([8]float64{m, n, kk}, kernel{read: n * kk * to.bytes / bandwidth, compute: 2 * m * n * kk / peak, move: 3 * m * kk / bandwidth, s: t.numbers["latency"][i] / 1e3})
	}
	for name, f := range lists {
		quantised := name != "bf16" && name != "int4"
		start := []float64{4e-6, 0.7, 0.6}
		if quantised {
			start = append(start, 0.5)
		}
		p, of := leastSquares(f.list(), start, func(p []float64, x *kernel) float64 {
			s := p[0] + cubic(x.read/p[1], x.compute/p[2])
			if quantised {
				s += x.move / p[3]
			}
			return s
		})
		product := catalogue.Product{Floor: round(p[0] * 1e6), Bandwidth: share(p[1]), Compute: share(p[2]), Of: of}
		if quantised {
			product.Quantise = share(p[3])
		}
		k.Products[name] = product
	}
	return nil
}

// decode works out the attention of answers: heads of 128, at least four
// queries to a key, 64 tokens of context and more.
func decode(k *catalogue.Kernels, a *catalogue.Accelerator, t *columns) error {
	lists := map[string]fastest{}
	for i := range t.n {
		at := func(name string) float64 { return t.numbers[name][i] }
		if w := t.numbers["window_size"]; w != nil && w[i] != 0 || at("head_dim") != 128 || at("num_heads") < 4*at("num_key_value_heads") || at("step") < 64 || at("batch_size") > 512 {
			continue
		}
		to := typesOf[t.words["kv_cache_dtype"][i]]
		if lists[to.name] == nil {
			lists[to.name] = fastest{}
		}
		bytes := at("batch_size") * (at("step") + 1) * at("num_key_value_heads") * 128 * 2 * to.bytes
		lists[to.name].take([8]float64{at("batch_size"), at("num_heads"), at("num_key_value_heads"), at("step")},
			kernel{read: bytes / (a.BandwidthGBs * 1e9), s: at("latency") / 1e3})
	}
	for name, f := range lists {
		p, of := leastSquares(f.list(), []float64{5e-6, 0.7}, func(p []float64, x *kernel) float64 { return p[0] + x.read/p[1] })
		k.Decode[name] = catalogue.Decode{Floor: round(p[0] * 1e6), Bandwidth: share(p[1]), Of: of}
	}
	return nil
}

// prompt works out the attention of prompts: of 256 tokens and more, alone or
// some at once.
func prompt(k *catalogue.Kernels, a *catalogue.Accelerator, t *columns) error {
	lists := map[string]fastest{}
	for i := range t.n {
		at := func(name string) float64 { return t.numbers[name][i] }
		if w := t.numbers["window_size"]; w != nil && w[i] != 0 || at("head_dim") != 128 || at("isl") < 256 || at("batch_size") > 16 || at("num_heads") < 4 {
			continue
		}
		to := typesOf[t.words["kv_cache_dtype"][i]]
		if lists[to.name] == nil {
			lists[to.name] = fastest{}
		}
		width := at("num_heads") * 128
		lists[to.name].take([8]float64{at("batch_size"), at("num_heads"), at("num_key_value_heads"), at("isl")}, kernel{
			compute: 2 * width * at("batch_size") * at("isl") * at("isl") / (a.TFLOPS["bf16"] * 1e12),
			move:    4 * width * at("batch_size") * at("isl") / (a.BandwidthGBs * 1e9), s: at("latency") / 1e3})
	}
	for name, f := range lists {
		p, of := leastSquares(f.list(), []float64{8e-6, 0.5, 0.5}, func(p []float64, x *kernel) float64 { return p[0] + x.compute/p[1] + x.move/p[2] })
		k.Prompt[name] = catalogue.Prompt{Floor: round(p[0] * 1e6), Compute: share(p[1]), Bandwidth: share(p[2]), Of: of}
	}
	return nil
}

// latent works out the attention of answers over latent vectors. What was measured
// is all that such a layer of DeepSeek-V3 does before its experts, for so many heads:
// the times of its products in 16 bits are taken as known. The floor is not taken: all
// tables but that of B200 were measured with norms that no engine runs so (their
// collection_meta.yaml), and with that of B200 the others agree on the rest.
func latent(k *catalogue.Kernels, a *catalogue.Accelerator, t *columns) error {
	m, err := catalogue.FindModel("deepseek-v3")
	if err != nil {
		return err
	}
	bandwidth, peak := a.BandwidthGBs*1e9, a.TFLOPS["bf16"]*1e12
	by, ok := k.Products["bf16"]
	if !ok {
		return nil
	}
	lists := map[string]fastest{}
	for i := range t.n {
		at := func(name string) float64 { return t.numbers[name][i] }
		if t.words["gemm_type"][i] != "bfloat16" || at("tp_size") != 1 || at("step") < 64 || at("batch_size") > 512 || at("num_heads") < 8 {
			continue
		}
		to := typesOf[t.words["kv_cache_dtype"][i]]
		if lists[to.name] == nil {
			lists[to.name] = fastest{}
		}
		layer := m.AttentionKinds()[0]
		layer.Heads = int(at("num_heads"))
		products := 0.0
		for _, p := range layer.MatMuls(m.Hidden) {
			weights := float64(p.Rows) * float64(p.Columns)
			products += by.Floor*1e-6 + cubic(2*weights/(bandwidth*by.Bandwidth), 2*weights*at("batch_size")/(peak*by.Compute))
		}
		context := at("batch_size") * (at("step") + 1)
		lists[to.name].take([8]float64{at("batch_size"), at("num_heads"), at("step")}, kernel{
			read: context * float64(layer.ValuesPerToken()) * to.bytes / bandwidth, compute: context * 2 * at("num_heads") * float64(2*layer.KVRank+layer.RopeDim) / peak,
			extra: products, s: at("latency") / 1e3})
	}
	for name, f := range lists {
		p, of := leastSquares(f.list(), []float64{30e-6, 0.7, 0.5}, func(p []float64, x *kernel) float64 { return x.extra + p[0] + cubic(x.read/p[1], x.compute/p[2]) })
		if k.Accelerator != "b200" {
			p[0] = 0
		}
		k.Latent[name] = catalogue.LatentDecode{Floor: round(p[0] * 1e6), Bandwidth: share(p[1]), Compute: share(p[2]), Of: of}
	}
	return nil
}

// delta works out the gated delta rule: the convolution and the rule itself
// together, of answers and of prompts.
func delta(k *catalogue.Kernels, a *catalogue.Accelerator, t *columns) error {
	type sum struct {
		kernel
		of int
	}
	sums := map[bool]map[[8]float64]sum{true: {}, false: {}}
	for i := range t.n {
		at := func(name string) float64 { return t.numbers[name][i] }
		answers := t.words["phase"][i] == "generation"
		if at("num_tokens") > 8192 || !answers && at("num_tokens") < 256 {
			continue
		}
		key := [8]float64{at("batch_size"), at("seq_len"), at("d_model"), at("num_k_heads"), at("num_v_heads"), at("head_k_dim"), at("head_v_dim")}
		layer := catalogue.Attention{Kind: catalogue.Linear, KeyHeads: int(at("num_k_heads")), ValueHeads: int(at("num_v_heads")), KeyDim: int(at("head_k_dim")), ValueDim: int(at("head_v_dim")), Conv: int(at("d_conv"))}
		matrix, conv := layer.StateSize()
		s := sums[answers][key]
		s.read = 2 * at("batch_size") * (4*float64(matrix) + 2*float64(conv)) / (a.BandwidthGBs * 1e9)
		s.extra, s.move = at("seq_len"), 4*float64(layer.Channels())*at("num_tokens")/(a.BandwidthGBs*1e9)
		s.compute = 8 * float64(matrix) * at("num_tokens") / (a.TFLOPS["bf16"] * 1e12)
		s.s += at("latency") / 1e3
		s.of++
		sums[answers][key] = s
	}
	list := map[bool][]kernel{}
	for _, answers := range []bool{true, false} {
		both := fastest{}
		for key, s := range sums[answers] {
			if s.of == 2 {
				both[key] = s.kernel
			}
		}
		list[answers] = both.list()
	}
	if len(list[true]) == 0 || len(list[false]) == 0 {
		return nil
	}
	p, of := leastSquares(list[true], []float64{10e-6, 0.5}, func(p []float64, x *kernel) float64 { return p[0] + x.read/p[1] })
	q, also := leastSquares(list[false], []float64{10e-6, 50e-9, 0.2, 0.5}, func(p []float64, x *kernel) float64 {
		return p[0] + cubic(x.extra*p[1], x.compute/p[2]) + x.move/p[3]
	})
	k.Delta = catalogue.Delta{Floor: round(p[0] * 1e6), Bandwidth: share(p[1]), PromptFloor: round(q[0] * 1e6), Serial: round(q[1] * 1e9), Compute: share(q[2]), PromptBandwidth: share(q[3]),
		Of: catalogue.Of{Kernels: of.Kernels + also.Kernels, Error: max(of.Error, also.Error)}}
	return nil
}

// experts works out layers of experts that are not all chosen alike often.
func experts(k *catalogue.Kernels, a *catalogue.Accelerator, t *columns) error {
	bandwidth := a.BandwidthGBs * 1e9
	lists := map[string]fastest{}
	// Where activations in 8 bits were measured together with MXFP4, they are what is taken.
	narrow := slices.Contains(t.words["moe_dtype"], "w4a8_mxfp4_mxfp8")
	for i := range t.n {
		at := func(name string) float64 { return t.numbers[name][i] }
		to, known := typesOf[t.words["moe_dtype"][i]]
		peak := a.TFLOPS[to.peak] * 1e12
		if narrow && t.words["moe_dtype"][i] == "w4a16_mxfp4" {
			continue
		}
		if to.name == "mxfp4" {
			peak = a.TFLOPS["bf16"] * 1e12 // of both, so that one formula has them
		}
		if !known || peak == 0 || t.words["distribution"][i] == "balanced" || at("moe_ep_size") != 1 || at("num_tokens") > 8192 {
			continue
		}
		if lists[to.name] == nil {
			lists[to.name] = fastest{}
		}
		tokens, n, each, hidden, width := at("num_tokens"), at("num_experts"), at("topk"), at("hidden_size"), at("inter_size")/at("moe_tp_size")
		touched := n * (1 - math.Pow(1-each/n, tokens))
		skew := 0.0
		if strings.HasSuffix(t.words["distribution"][i], "1.2") {
			skew = 1
		}
		lists[to.name].take([8]float64{tokens, n, each, hidden, at("inter_size"), at("moe_tp_size"), skew}, kernel{
			read: touched * 3 * hidden * width * to.bytes / bandwidth, compute: 6 * tokens * each * hidden * width / peak,
			move: 2 * tokens * each * (2*hidden + 3*width) / bandwidth, extra: touched, s: at("latency") / 1e3})
	}
	for name, f := range lists {
		p, of := leastSquares(f.list(), []float64{30e-6, 0.6, 0.4, 0.5, 50e-9}, func(p []float64, x *kernel) float64 {
			return p[0] + x.extra*p[4] + cubic(x.read/p[1], x.compute/p[2]) + x.move/p[3]
		})
		k.Experts[name] = catalogue.Experts{Floor: round(p[0] * 1e6), PerExpert: round(p[4] * 1e6), Bandwidth: share(p[1]), Compute: share(p[2]), Activations: share(p[3]), Of: of}
	}
	return nil
}

// exchange works out how long it takes to gather tokens from all and to give sums of them
// back, by NCCL's all-gather and reduce-scatter of a message of as many bytes in all. Its
// table counts values, as that of all-reduces does.
func exchange(k *catalogue.Kernels, a *catalogue.Accelerator, t *columns) error {
	halves := map[string]map[[2]int]float64{"all_gather": {}, "reduce_scatter": {}} // s, by group and bytes
	for i := range t.n {
		of := halves[t.words["op_name"][i]]
		if of == nil || t.words["nccl_dtype"][i] != "half" || 2*t.numbers["message_size"][i] > 1<<28 {
			continue
		}
		of[[2]int{int(t.numbers["num_gpus"][i]), int(2 * t.numbers["message_size"][i])}] = t.numbers["latency"][i] / 1e3
	}
	lists := map[int]fastest{}
	for at, gather := range halves["all_gather"] {
		scatter, ok := halves["reduce_scatter"][at]
		if n := at[0]; ok && n <= 8 {
			if lists[n] == nil {
				lists[n] = fastest{}
			}
			lists[n].take([8]float64{float64(at[1])}, kernel{move: float64(at[1]), s: gather + scatter})
		}
	}
	for n, f := range lists {
		k.Exchange[n] = messages(f)
	}
	return nil
}

// messages are the constants of kernels that pass on a message, by its size.
func messages(f fastest) catalogue.Reduce {
	p, of := leastSquares(f.list(), []float64{5e-6, 1e11, 1, 2e11}, func(p []float64, x *kernel) float64 {
		return p[0] + catalogue.Message/p[1]*math.Pow(min(x.move/catalogue.Message, 1), p[2]) + max(x.move-catalogue.Message, 0)/p[3]
	})
	return catalogue.Reduce{Latency: round(p[0] * 1e6), GBs: round(p[1] / 1e9), Growth: round(p[2]), Large: round(p[3] / 1e9), Of: of}
}

// reduce works out all-reduces as vLLM's own kernels carry them out in a graph,
// or where none was measured by themselves.
func reduce(k *catalogue.Kernels, a *catalogue.Accelerator, t *columns) error {
	for _, backend := range []string{"graph", "eager"} {
		lists := map[int]fastest{}
		for i := range t.n {
			size := 2 * t.numbers["message_size"][i] // it counts values of 16 bits: NCCL's tables have the same times, and shorter ones for int8
			if !strings.HasSuffix(t.words["backend"][i], backend) || size > 1<<28 {
				continue
			}
			n := int(t.numbers["num_gpus"][i])
			if lists[n] == nil {
				lists[n] = fastest{}
			}
			lists[n].take([8]float64{size}, kernel{move: size, s: t.numbers["latency"][i] / 1e3})
		}
		for n, f := range lists {
			if _, ok := k.Reduce[n]; ok || n > 8 {
				continue
			}
			k.Reduce[n] = messages(f)
		}
	}
	return nil
}

// cubic is the 3-norm of two bounds.
func cubic(a, b float64) float64 { return math.Cbrt(a*a*a + b*b*b) }

// round keeps three digits, and nothing of what is next to nothing.
func round(x float64) float64 {
	if x < 1e-5 {
		return 0
	}
	x, _ = strconv.ParseFloat(strconv.FormatFloat(x, 'g', 3, 64), 64)
	return x
}

// share is a share of a datasheet's rate. Kernels of which the weights or the
// keys stay in the cache reach more; an engine's do not.
func share(x float64) float64 { return round(min(x, 1)) }

// leastSquares finds the positive parameters with which the formula is nearest
// to the kernels: Levenberg and Marquardt on logarithms, each residual weighted
// by 1 ÷ √(1 + (r ÷ 0.2)²) so that what lies far off counts less.
func leastSquares(list []kernel, start []float64, formula func([]float64, *kernel) float64) ([]float64, catalogue.Of) {
	n := len(start)
	logs := make([]float64, n)
	for i, v := range start {
		logs[i] = math.Log(v)
	}
	values := func(logs []float64) []float64 {
		p := make([]float64, n)
		for i, v := range logs {
			p[i] = math.Exp(v)
		}
		return p
	}
	residual := func(p []float64, x *kernel) float64 { return math.Log(formula(p, x) / x.s) }
	const knee = 0.2
	cost := func(p []float64) float64 {
		sum := 0.0
		for i := range list {
			r := residual(p, &list[i]) / knee
			sum += math.Sqrt(1+r*r) - 1
		}
		return sum
	}
	damping, best := 1e-3, cost(values(logs))
	for range 200 {
		// Normal equations of the weighted residuals.
		a := make([][]float64, n)
		for i := range a {
			a[i] = make([]float64, n+1)
		}
		p := values(logs)
		moved := make([][]float64, n)
		for j := range moved {
			l := slices.Clone(logs)
			l[j] += 1e-5
			moved[j] = values(l)
		}
		gradient := make([]float64, n)
		for i := range list {
			r := residual(p, &list[i])
			w := 1 / math.Sqrt(1+(r/knee)*(r/knee))
			for j := range gradient {
				gradient[j] = (residual(moved[j], &list[i]) - r) / 1e-5
			}
			for j := range gradient {
				for l := range gradient {
					a[j][l] += w * gradient[j] * gradient[l]
				}
				a[j][n] -= w * gradient[j] * r
			}
		}
		improved := false
		for range 12 {
			b := make([][]float64, n)
			for j := range b {
				b[j] = slices.Clone(a[j])
				b[j][j] += damping * (a[j][j] + 1e-9)
			}
			step := solve(b)
			next := slices.Clone(logs)
			for j := range next {
				next[j] = max(logs[j]+min(max(step[j], -1), 1), math.Log(1e-12))
			}
			if c := cost(values(next)); c < best*(1-1e-9) {
				logs, best, damping, improved = next, c, damping/5, true
				break
			}
			damping *= 4
		}
		if !improved {
			break
		}
	}
	p := values(logs)
	sum := 0.0
	for i := range list {
		sum += math.Abs(residual(p, &list[i]))
	}
	return p, catalogue.Of{Kernels: len(list), Error: round(sum / float64(len(list)))}
}

// solve solves linear equations, whose right sides are the last column, by
// elimination.
func solve(a [][]float64) []float64 {
	n := len(a)
	for i := range n {
		best := i
		for j := i + 1; j < n; j++ {
			if math.Abs(a[j][i]) > math.Abs(a[best][i]) {
				best = j
			}
		}
		a[i], a[best] = a[best], a[i]
		if a[i][i] == 0 {
			continue
		}
		for j := range n {
			if j == i {
				continue
			}
			f := a[j][i] / a[i][i]
			for k := i; k <= n; k++ {
				a[j][k] -= f * a[i][k]
			}
		}
	}
	x := make([]float64, n)
	for i := range x {
		if a[i][i] != 0 {
			x[i] = a[i][n] / a[i][i]
		}
	}
	return x
}
