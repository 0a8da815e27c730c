package export

import (
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"strings"

	"pitot/internal/data/result"
)

// writeSGLang writes one line for each point. Its figures are vLLM's, described
// with numpy.
func writeSGLang(w io.Writer, run *result.Run, dir string) error {
	return sglangLines(w, run, dir, false)
}

func writeSGLangDetailed(w io.Writer, run *result.Run, dir string) error {
	return sglangLines(w, run, dir, true)
}

func sglangLines(w io.Writer, run *result.Run, dir string, detailed bool) error {
	n := 0
	for c, err := range readCohorts(run, dir, true) {
		if err != nil {
			return err
		}
		b := newBenchmark(c, vllmOf(run, c.point))
		o := &object{w: w}
		if err := errors.Join(b.writeSGLang(o, run, detailed), o.end()); err != nil {
			return err
		}
		if _, err := io.WriteString(w, "\n"); err != nil {
			return err
		}
		n++
	}
	if n == 0 {
		return errNothing
	}
	return nil
}

// writeSGLang writes the fields. The arrays, which come last in SGLang's own lines,
// are written first: they need the gaps in their order, which the description
// of the gaps does not keep.
func (b *Benchmark) writeSGLang(o *object, run *result.Run, detailed bool) error {
	if detailed {
		b.Detailed = true
		b.perRequest(o)
	}
	var asked struct{ Kind, Input, Output string }
	_ = json.Unmarshal(run.Workload, &asked) // what is not there is null
	whole := func(s string) any {
		if n, err := strconv.Atoi(s); err == nil {
			return n
		}
		return nil
	}
	backend := toolAlias(run, "sglang")
	if run.Target.Server["engine"] != "sglang" { // the same APIs under another name
		backend = strings.Replace(backend, "sglang-oai", "vllm", 1)
	}
	o.writeField("tag", nullableText(run.Notes["tag"]))
	o.writeField("backend", backend)
	dataset := "random-ids"
	if asked.Kind == "file" {
		dataset = "custom"
	}
	o.writeField("dataset_name", dataset)
	o.writeField("request_rate", jsonNumber(b.RequestRate))
	if b.MaxConcurrency > 0 {
		o.writeField("max_concurrency", b.MaxConcurrency)
	} else {
		o.writeField("max_concurrency", nil)
	}
	o.writeField("sharegpt_output_len", nil)
	o.writeField("random_input_len", whole(asked.Input))
	o.writeField("random_output_len", whole(asked.Output))
	o.writeField("random_range_ratio", 1.0) // SGLang's word for lengths that do not vary
	o.writeField("server_info", map[string]string{"served_model_name": b.Model, "version": run.Target.Server["version"], "measured_by": "pitot " + run.Pitot.Version, "pitot_verdict": string(b.c.point.Verdict)})
	o.writeField("duration", b.duration)
	o.writeField("completed", b.completed)
	o.writeField("total_input_tokens", b.input)
	o.writeField("total_input_text_tokens", b.input)
	o.writeField("total_input_vision_tokens", 0)
	o.writeField("total_output_tokens", b.output)
	o.writeField("total_output_tokens_retokenized", b.output)
	o.writeField("request_throughput", b.requestsPerS)
	o.writeField("input_throughput", b.all-b.outputPerS)
	o.writeField("output_throughput", b.outputPerS)
	o.writeField("total_throughput", b.all)
	b.sortGaps()
	together := 0. // seconds that requests spent in all
	for _, x := range b.e2els {
		together += x
	}
	for _, m := range []struct {
		key string
		spread
	}{{"e2e_latency_ms", spreadOf(b.e2els, 1e-3)}, {"ttft_ms", spreadOf(b.ttfts, 1e-3)}, {"tpot_ms", spreadOf(b.tpots, 1e-3)}, {"itl_ms", b.itls}} {
		o.writeField("mean_"+m.key, m.mean)
		o.writeField("median_"+m.key, m.at(50))
		o.writeField("std_"+m.key, m.sd)
		for _, p := range []float64{90, 95, 99} {
			o.writeField("p"+percentileWord(p)+"_"+m.key, m.at(p))
		}
	}
	if b.duration > 0 {
		together /= b.duration
	}
	o.writeField("concurrency", together)
	o.writeField("accept_length", nil)
	o.writeField("max_output_tokens_per_s", b.maxTokensPerS)
	o.writeField("max_concurrent_requests", int(b.maxConcurrent))
	return o.err
}
