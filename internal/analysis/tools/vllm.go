package tools

import "pitot/internal/results/metric"

// isVLLM also knows the results of older versions and of the Rust client.
func (f fields) isVLLM() bool {
	return f.hasKeys("request_throughput", "completed") && (f.hasKeys("num_prompts") || f.hasKeys("mean_ttft_ms") || f.hasKeys("endpoint_type"))
}

// vllmPoint reads the figures, which SGLang writes by vLLM's names and
// definitions too.
func (f fields) vllmPoint(tool string) ReportedPoint {
	figure := func(name metric.Name) *Summary { return f.flatSummary(nameInTool(name, tool)) }
	p := ReportedPoint{
		Rate: f.number("request_rate"), Unlimited: f.isUnlimited("request_rate"), Concurrency: f.number("max_concurrency"),
		Seconds: f.number("duration"), OK: f.number("completed"), Failed: f.number("failed"),
		RequestsPerS: f.number("request_throughput"), GoodPerS: f.number("request_goodput"),
		OutputTokensPerS: f.number("output_throughput"), InputTokensPerS: f.number("input_throughput"),
		InputTokens: f.number("total_input_tokens"), OutputTokens: f.number("total_output_tokens"),
		TTFT: figure(metric.ServiceTTFT), TPOT: figure(metric.TPOTn1), ITL: f.flatSummary("itl_ms"), E2E: figure(metric.ServiceE2E),
	}
	p.setMeanings("(E2E − TTFT) / (tokens − 1)", "gaps between events; of those that share a read nearly 0")
	return p
}

func (f fields) readVLLM() (*Result, error) {
	p := f.vllmPoint(metric.VLLM)
	r := &Result{Tool: metric.VLLM, Model: f.textOf("model_id"), Started: f.textOf("date"), Points: []ReportedPoint{p}}
	if !r.noteMeasuredBy(f) {
		r.Version = f.textOf("version") // by --metadata, as vLLM's own example has it
	}
	return r, nil
}

// setMeanings says what a tool means by metrics. Latencies all tools count from one time.
func (p *ReportedPoint) setMeanings(tpot, itl string) {
	const fromSent = "counted from when a request was sent, not from when it was due"
	for i, s := range []*Summary{p.TTFT, p.TPOT, p.ITL, p.E2E} {
		if s != nil {
			s.What = [...]string{fromSent, tpot, itl, fromSent}[i]
		}
	}
}
