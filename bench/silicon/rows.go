package main

import (
	"encoding/csv"
	"fmt"
	"hash/fnv"
	"os"
	"strconv"
	"strings"
)

// row is one published measurement: so many users, each of whom waits for the
// answer before asking again.
type row struct {
	model, accelerator, dtype, engine, version string
	tp, users, input, output                   int
	dp                                         int     // engines in lock step that divide the experts among them, 0 for one engine
	prefill, decode                            int     // engines of a pool each, 0 where each does both
	ep                                         bool    // experts are divided among the group, not each of them
	ttft, tpot                                 float64 // ms, means
	source                                     string
}

// system is what rows share that were measured on the same server: the unit
// of keeping some out, for the rows of one tell its others.
func (r *row) system() string {
	ep := ""
	if r.ep {
		ep = " EP"
	}
	if r.dp > 0 {
		ep = fmt.Sprintf(" DP%d EP", r.dp)
	}
	if r.prefill > 0 {
		ep = fmt.Sprintf(" %dP%dD", r.prefill, r.decode)
	}
	return fmt.Sprintf("%s %s %s TP%d%s %s", r.model, r.dtype, r.accelerator, r.tp, ep, r.engine)
}

// varied says whether a row is InferenceMAX's: requests of 80 to 100 % of the
// lengths named, ten for each user, and all users begin at once.
func (r *row) varied() bool {
	return strings.Contains(r.source, "source_file=20") || strings.Contains(r.source, "db-dump") || strings.Contains(r.source, "kimi-k2.5-gap-analysis") // which repeats some of them
}

// held says whether a system is kept out of every choice of a constant: a third
// of them, by a hash of the name.
func held(system string) bool {
	h := fnv.New32a()
	h.Write([]byte(system))
	return h.Sum32()%3 == 0
}

// accelerators gives the catalogue's names of the file's systems.
var accelerators = map[string]string{
	"h100_sxm": "h100", "h200_sxm": "h200", "b200_sxm": "b200", "b300_sxm": "b300", "gb200": "gb200", "gb300": "gb300",
}

// dtypes gives the data types of weights as the twin names them.
var dtypes = map[string]string{"": "bf16", "fp8": "fp8", "fp8_block": "fp8_block", "nvfp4": "fp4", "int4_wo": "int4"}

// read gives the rows of the file that the twin may be able to model, and how
// many it leaves out, by reason.
func read(path string) (rows []row, refused map[string]int, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	lines, err := csv.NewReader(f).ReadAll()
	if err != nil {
		return nil, nil, fmt.Errorf("read %s: %w", path, err)
	}
	refused = map[string]int{}
	column := map[string]int{}
	for i, name := range lines[0] {
		column[name] = i
	}
	for _, l := range lines[1:] {
		field := func(name string) string { return l[column[name]] }
		number := func(name string) int { n, _ := strconv.Atoi(field(name)); return n }
		r := row{
			model: field("model_path"), accelerator: accelerators[field("system")], dtype: dtypes[field("gemm_quant_mode")],
			engine: field("backend"), version: field("backend_version"),
			tp: number("tp_size"), users: concurrency(field("silicon_data_source"), number("batch_size")), input: number("isl"), output: number("osl"),
			source: field("silicon_data_source"),
		}
		if r.kind() == "MoE" {
			r.dtype = dtypes[field("moe_quant_mode")]
		}
		if r.kind() == "MoE" && r.dtype == "fp8" {
			r.dtype = "fp8_block" // what these checkpoints are, whatever the column says
		}
		r.ttft, _ = strconv.ParseFloat(field("silicon_ttft_ms"), 64)
		r.tpot, _ = strconv.ParseFloat(field("silicon_tpot_ms"), 64)
		switch {
		case field("mode") != "agg":
			r.prefill, r.decode, r.tp = number("prefill_num_workers"), number("decode_num_workers"), number("decode_tp_size")
			r.users = concurrency(r.source, number("decode_batch_size")*r.decode)
			if why := unlike(number); why != "" {
				refused[r.engine+": prefill and decode on servers of their own, "+why]++
			} else {
				rows = append(rows, r)
			}
		case number("pp_size") > 1:
			refused[r.engine+": pipeline parallel"]++
		case relabelled(&r, number("attention_dp_size"), number("moe_ep_size")):
			r.ep = true
			rows = append(rows, r)
		case number("attention_dp_size") > 1 && number("attention_dp_size") == number("moe_ep_size") && r.tp == 1 && number("moe_tp_size") == 1:
			r.dp = number("attention_dp_size")
			rows = append(rows, r)
		case number("attention_dp_size") > 1 || number("moe_tp_size")*max(number("moe_ep_size"), 1) > r.tp && r.kind() == "MoE":
			refused[r.engine+": data parallel"]++
		default:
			r.ep = number("moe_ep_size") > 1
			rows = append(rows, r)
		}
	}
	return rows, refused, nil
}

// unlike says why the pools of prefill and decode are none of the twin's, which have engines
// that are all alike and compute each for itself; "" where they are.
func unlike(number func(string) int) string {
	switch {
	case number("prefill_pp_size") > 1 || number("decode_pp_size") > 1:
		return "pipeline parallel"
	case number("prefill_attention_dp_size") > 1 || number("decode_attention_dp_size") > 1:
		return "data parallel"
	case number("prefill_tp_size") != number("decode_tp_size"):
		return "on groups of different sizes"
	case number("prefill_num_workers") < 1 || number("decode_num_workers") < 1:
		return "of an unknown number"
	}
	return ""
}

// relabelled says whether a row that is written as so many data parallel groups, with
// experts over all of them, is of one group with its experts divided among it:
// InferenceMAX's TPn EPn. Of Kimi-K2.5 on B200 the file has the same 15 measurements
// under both labels; of MiniMax-M2.5 on H100 and B200 25 loads were measured under both,
// and TPOT differs by 0.4 % in the median.
func relabelled(r *row, dp, ep int) bool {
	return r.engine == "vllm" && r.varied() && dp == r.tp && ep == dp*r.tp && dp > 1
}

// concurrency is how many users a row had: the source says so, else it is the
// batch size.
func concurrency(source string, batch int) int {
	if _, after, ok := strings.Cut(source, "silicon_concurrency="); ok {
		digits, _, _ := strings.Cut(after, ";")
		if n, err := strconv.Atoi(strings.TrimSpace(digits)); err == nil {
			return n
		}
	}
	return batch
}

// older says whether a version comes before major.minor; one that is not known
// does not.
func older(version string, major, minor int) bool {
	var a, b int
	n, _ := fmt.Sscanf(version, "%d.%d", &a, &b)
	return n == 2 && (a < major || a == major && b < minor)
}
