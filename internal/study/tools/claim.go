package tools

// Claim is what another client said it measured, as far as the reference
// server knows the truth of it. Times are milliseconds; nil is what it did not
// say.
type Claim struct {
	Tool      string
	Requests  *float64
	MeanTTFT  *float64
	P99TTFT   *float64
	MedianITL *float64
	P99ITL    *float64
	MeanTPOT  *float64
}

// Claim gives it for the first point of a result. Where a tool keeps no gaps,
// there is no claim about them.
func (r *Result) Claim() Claim {
	c := Claim{Tool: r.Tool}
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
	if r.Tool != "guidellm" {
		c.MedianITL, c.P99ITL = p.ITL.P("p50"), p.ITL.P("p99")
	}
	return c
}
