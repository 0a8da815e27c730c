package export

import (
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"strings"

	"pitot/internal/results/result"
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
	return eachCohort(run, dir, func(c *cohort) error {
		b := newBenchmark(c, vllmOf(run, c.point))
		o := &object{w: w}
		if err := errors.Join(b.writeSGLang(o, run, detailed), o.end()); err != nil {
			return err
		}
		_, err := io.WriteString(w, "\n")
		return err
	})
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
	o.writeField("tag", valueOrNull(run.Notes["tag"]))
	o.writeField("backend", backend)
	dataset := "random-ids"
	if asked.Kind == "file" {
		dataset = "custom"
	}
	o.writeFields(
		"dataset_name", dataset,
		"request_rate", jsonNumber(b.RequestRate),
		"max_concurrency", valueOrNull(b.MaxConcurrency),
		"sharegpt_output_len", nil,
		"random_input_len", whole(asked.Input),
		"random_output_len", whole(asked.Output),
		"random_range_ratio", 1.0, // SGLang's word for lengths that do not vary
		"server_info", map[string]string{"served_model_name": b.Model, "version": run.Target.Server["version"], "measured_by": "pitot " + run.Pitot.Version, "pitot_verdict": string(b.c.point.Verdict)},
		"duration", b.duration,
		"completed", b.completed,
		"total_input_tokens", b.input,
		"total_input_text_tokens", b.input,
		"total_input_vision_tokens", 0,
		"total_output_tokens", b.output,
		"total_output_tokens_retokenized", b.output,
		"request_throughput", b.requestsPerS,
		"input_throughput", b.all-b.outputPerS,
		"output_throughput", b.outputPerS,
		"total_throughput", b.all,
	)
	b.sortGaps()
	together := 0. // seconds that requests spent in all
	for _, x := range b.e2els {
		together += x
	}
	for _, m := range []struct {
		key string
		spread
	}{{"e2e_latency_ms", spreadOf(b.e2els, 1e-3)}, {"ttft_ms", spreadOf(b.ttfts, 1e-3)}, {"tpot_ms", spreadOf(b.tpots, 1e-3)}, {"itl_ms", b.itls}} {
		o.writeFields(
			"mean_"+m.key, m.mean,
			"median_"+m.key, m.at(50),
			"std_"+m.key, m.sd,
		)
		for _, p := range []float64{90, 95, 99} {
			o.writeField("p"+percentileWord(p)+"_"+m.key, m.at(p))
		}
	}
	if b.duration > 0 {
		together /= b.duration
	}
	o.writeFields(
		"concurrency", together,
		"accept_length", nil,
		"max_output_tokens_per_s", b.maxTokensPerS,
		"max_concurrent_requests", int(b.maxConcurrent),
	)
	return o.err
}
