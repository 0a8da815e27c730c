package tools

import "pitot/internal/data/metric"

// isVLLM also knows the results of older versions and of the Rust client.
func (f fields) isVLLM() bool {
	return f.hasKeys("request_throughput", "completed") && (f.hasKeys("num_prompts") || f.hasKeys("mean_ttft_ms") || f.hasKeys("endpoint_type"))
}

// vllmPoint reads the figures, which SGLang writes by vLLM's names and
// definitions too.
func (f fields) vllmPoint(tool string) Point {
	figure := func(name metric.Name) *Summary { return f.flatSummary(nameInTool(name, tool)) }
	p := Point{
		Rate: f.number("request_rate"), Unlimited: f.isUnlimited("request_rate"), Concurrency: f.number("max_concurrency"),
		Seconds: f.number("duration"), OK: f.number("completed"), Failed: f.number("failed"),
		RequestsPerS: f.number("request_throughput"), GoodPerS: f.number("request_goodput"),
		OutputTokensPerS: f.number("output_throughput"), InputTokensPerS: f.number("input_throughput"),
		InputTokens: f.number("total_input_tokens"), OutputTokens: f.number("total_output_tokens"),
		TTFT: figure(metric.ServiceTTFT), TPOT: figure(metric.TPOTn1), ITL: f.flatSummary("itl_ms"), E2E: figure(metric.ServiceE2E),
	}
	p.TTFT.setMeaning(fromSent)
	p.TPOT.setMeaning("(E2E − TTFT) / (tokens − 1)")
	p.ITL.setMeaning("gaps between events; of those that share a read nearly 0")
	p.E2E.setMeaning(fromSent)
	return p
}

func (f fields) readVLLM() (*Result, error) {
	p := f.vllmPoint(metric.VLLM)
	r := &Result{Tool: metric.VLLM, Model: f.textOf("model_id"), Started: f.textOf("date"), Points: []Point{p}}
	if !r.noteMeasuredBy(f) {
		r.Version = f.textOf("version") // by --metadata, as vLLM's own example has it
	}
	return r, nil
}

// fromSent is where most tools begin to count.
const fromSent = "counted from when a request was sent, not from when it was due"

// setMeaning says what a tool means by a metric.
func (s *Summary) setMeaning(what string) {
	if s != nil {
		s.What = what
	}
}
