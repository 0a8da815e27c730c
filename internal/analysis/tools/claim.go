package tools

import (
	"pitot/internal/analysis/audit"
	"pitot/internal/results/metric"
)

// Claim returns what a result says of its first point, for comparison with the truth. Where a tool
// keeps no gaps, there is no claim about them.
func (r *Result) Claim() audit.ClientReport {
	c := audit.ClientReport{Tool: r.Tool}
	if len(r.Points) == 0 {
		return c
	}
	mean := func(s *Summary) *float64 {
		if s == nil {
			return nil
		}
		return s.Mean
	}
	p := r.Points[0]
	c.Requests, c.MeanTTFT, c.P99TTFT, c.MeanTPOT = p.OK, mean(p.TTFT), p.TTFT.P("p99"), mean(p.TPOT)
	if r.Tool != metric.GuideLLM {
		c.MedianITL, c.P99ITL = p.ITL.P("p50"), p.ITL.P("p99")
	}
	return c
}
