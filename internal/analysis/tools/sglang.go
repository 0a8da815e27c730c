package tools

import "pitot/internal/results/metric"

// The JSON line of SGLang's bench_serving, as SGLang 0.5.23 writes it
// (sglang/benchmark/serving.py). Its definitions are vLLM's.

func (f fields) isSGLang() bool {
	return f.hasKeys("request_throughput", "completed") && (f.hasKeys("dataset_name") || f.hasKeys("mean_e2e_latency_ms"))
}

func (f fields) readSGLang() (*Result, error) {
	p := f.vllmPoint(metric.SGLang) // it tells no number of failures
	info := f.object("server_info")
	r := &Result{Tool: metric.SGLang, Version: info.textOf("version"), Model: info.textOf("served_model_name"), Dataset: f.textOf("dataset_name"), Points: []ReportedPoint{p}}
	r.noteMeasuredBy(info)
	return r, nil
}
