package tools

import (
	"cmp"
	"encoding/json"
	"strings"

	"pitot/internal/results/metric"
)

// GuideLLM's benchmarks.json, of report version 2 (GuideLLM 0.8.1,
// guidellm/benchmark/schemas) and of the earlier ones without a version.

func (f fields) isGuideLLM() bool {
	var list []json.RawMessage
	return f.hasKeys("benchmarks") && json.Unmarshal(f["benchmarks"], &list) == nil
}

func (f fields) guideLLM() (*Result, error) {
	var list []fields
	if err := json.Unmarshal(f["benchmarks"], &list); err != nil {
		return nil, errUnknown("benchmarks is no list of objects")
	}
	r := &Result{Tool: metric.GuideLLM, Version: f.object("metadata").textOf("guidellm_version")}
	for _, b := range list {
		m := b.object("metrics")
		if m == nil {
			return nil, errUnknown("a benchmark has no metrics")
		}
		r.Points = append(r.Points, b.guidePoint(m))
		if r.Model == "" {
			r.Model = b.guideModel(f)
		}
	}
	if len(r.Points) == 0 {
		return nil, errUnknown("no benchmark in it")
	}
	return r, nil
}

// guideModel looks where the versions keep it.
func (f fields) guideModel(report fields) string {
	for _, o := range []fields{
		f.object("config").object("backend"), f.object("benchmarker").object("backend"), f.object("worker"),
		report.object("config").object("spec").object("backend"), report.object("args"),
	} {
		for _, k := range []string{"model", "backend_model", "target_model"} {
			if s := o.textOf(k); s != "" {
				return s
			}
		}
	}
	return ""
}

func (f fields) guidePoint(m fields) ReportedPoint {
	strategy := f.object("config").object("strategy")
	if strategy == nil {
		strategy = f.object("args").object("strategy")
	}
	totals := m.object("request_totals")
	p := ReportedPoint{
		Rate: strategy.number("rate"), Seconds: f.number("duration"),
		OK: totals.number("successful"), Failed: totals.number("errored"), Incomplete: totals.number("incomplete"),
		RequestsPerS:     guideMean(m, "requests_per_second", "total"),
		InputTokensPerS:  guideMean(m, "prompt_tokens_per_second", "total"),
		OutputTokensPerS: guideMean(m, "output_tokens_per_second", "total"),
		TTFT:             guideSummary(m, nameInTool(metric.ServiceTTFT, metric.GuideLLM), 1), TPOT: guideSummary(m, "time_per_output_token_ms", 1),
		ITL: guideSummary(m, "inter_token_latency_ms", 1), E2E: guideSummary(m, nameInTool(metric.ServiceE2E, metric.GuideLLM), 1e3),
	}
	for _, k := range []string{"streams", "max_concurrency"} {
		if x := strategy.number(k); x != nil && p.Concurrency == nil {
			p.Concurrency = x
		}
	}
	kind := strategy.textOf("type_") + strategy.textOf("kind")
	p.Unlimited = strings.Contains(kind, "throughput")
	p.setMeanings("(last token − start) / tokens: it includes TTFT", "the mean gap of each request, weighted by its tokens: no single gap is kept")
	return p
}

// guideMean is the mean of a rate over all requests, or those that ended well.
func guideMean(m fields, metric, of string) *float64 {
	if x := m.object(metric).object(of).number("mean"); x != nil {
		return x
	}
	return m.object(metric).object("successful").number("mean")
}

// guideSummary is a distribution over the requests that ended well.
func guideSummary(m fields, metric string, unit float64) *Summary {
	d := m.object(metric).object("successful")
	if n := d.number("count"); n != nil && *n == 0 {
		return nil
	}
	return d.summary(unit, []string{"count", "mean", "std_dev", "min", "max"}, d.object("percentiles"), func(key string) string {
		return cmp.Or(map[string]string{"p001": "p0.1", "p01": "p1", "p05": "p5", "p999": "p99.9"}[key], key)
	})
}
