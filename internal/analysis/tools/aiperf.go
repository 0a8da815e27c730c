package tools

import (
	"encoding/json"
	"strings"

	"pitot/internal/results/metric"
)

// AIPerf's profile_export_aiperf.json, schema 1.4 (AIPerf 0.13,
// aiperf/common/models/export_models.py), and GenAI-Perf's before it.

func (f fields) isAIPerf() bool {
	return f.hasKeys("aiperf_version") || f.object("request_throughput").hasKeys("unit") || f.object("request_latency").hasKeys("unit")
}

func (f fields) readAIPerf() (*Result, error) {
	if !f.hasKeys("request_throughput") && !f.hasKeys("request_latency") && !f.hasKeys("request_count") && !f.hasKeys("error_request_count") {
		return nil, errUnknown("an export of AIPerf without the requests' metrics: they are in profile_export_aiperf.json")
	}
	scalar := func(tag string) *float64 { return f.object(tag).number("avg") }
	p := ReportedPoint{
		Seconds: scalar("benchmark_duration"), OK: scalar("request_count"), Failed: scalar("error_request_count"),
		RequestsPerS: scalar("request_throughput"), GoodPerS: scalar("goodput"), OutputTokensPerS: scalar("output_token_throughput"),
		InputTokens: scalar("total_isl"), OutputTokens: scalar("total_osl"),
		TTFT: f.aiperfSummary(nameInTool(metric.ServiceTTFT, metric.AIPerf)),
		TPOT: f.aiperfSummary(nameInTool(metric.TPOTn1, metric.AIPerf)), // one figure of each request, which it calls inter-token latency
		ITL:  f.aiperfSummary("inter_chunk_latency"), E2E: f.aiperfSummary(nameInTool(metric.ServiceE2E, metric.AIPerf)),
	}
	p.setMeanings("its inter_token_latency: (E2E − TTFT) / (tokens − 1) of each request", "its inter_chunk_latency: gaps between chunks")
	var summary []fields // an empty one says that there were none
	if p.Failed == nil && json.Unmarshal(f["error_summary"], &summary) == nil && summary != nil {
		failed := 0.
		for _, s := range summary {
			if n := s.number("count"); n != nil {
				failed += *n
			}
		}
		p.Failed = &failed
	}
	if p.OK == nil && p.E2E != nil {
		p.OK = p.E2E.N
	}
	r := &Result{Tool: metric.AIPerf, Version: f.textOf("aiperf_version"), Started: f.textOf("start_time")}
	f.aiperfConfig(r, &p)
	if v := f["is_complete"]; string(v) == "false" {
		r.Notes = append(r.Notes, "aiperf says that the run is not complete: "+f.textOf("incomplete_reason"))
	}
	if v := f["was_cancelled"]; string(v) == "true" {
		r.Notes = append(r.Notes, "aiperf says that the run was cancelled")
	}
	r.Points = []ReportedPoint{p}
	if r.noteMeasuredBy(f) {
		r.Version = ""
	}
	return r, nil
}

// aiperfSummary takes a metric to milliseconds.
func (f fields) aiperfSummary(tag string) *Summary {
	m := f.object(tag)
	unit, known := map[string]float64{"ms": 1, "s": 1e3, "sec": 1e3, "seconds": 1e3, "us": 1e-3, "ns": 1e-6}[m.textOf("unit")]
	if !known {
		return nil
	}
	return m.summary(unit, []string{"count", "avg", "std", "min", "max"}, m, strings.Clone)
}

// aiperfConfig finds the model and the load, which each version keeps
// elsewhere in its input_config.
func (f fields) aiperfConfig(r *Result, p *ReportedPoint) {
	config := f.object("input_config")
	for _, o := range []fields{config.object("endpoint"), config} {
		for _, k := range []string{"model_names", "models", "model"} {
			if s := firstText(o[k]); s != "" && r.Model == "" {
				r.Model = s
			}
		}
	}
	r.Dataset = lastObject(config["datasets"]).textOf("type")
	phase := lastObject(config["phases"])
	p.Rate = phase.number("rate")
	for _, o := range []fields{phase, config.object("loadgen"), config.object("load"), config} {
		if p.Rate == nil {
			p.Rate = o.number("request_rate")
		}
		if p.Concurrency == nil {
			p.Concurrency = o.number("concurrency")
		}
	}
}
