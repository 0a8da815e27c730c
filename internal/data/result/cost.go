package result

// USDOfGPUs is what GPUs cost for a time in seconds, each of them usdPerHour.
func USDOfGPUs(gpus int, usdPerHour, seconds float64) float64 {
	return float64(gpus) * usdPerHour * seconds / 3600
}

// USDPerMillion is what GPUs cost for the time in which they make a million
// tokens, of which they make tokensPerS a second. ok is false where they make none,
// or their price is not known.
func USDPerMillion(gpus int, usdPerHour, tokensPerS float64) (usd float64, ok bool) {
	if gpus <= 0 || usdPerHour <= 0 || !(tokensPerS > 0) {
		return 0, false
	}
	return USDOfGPUs(gpus, usdPerHour, 1) / tokensPerS * 1e6, true
}

// CapacityCost is what a million output tokens within the objective cost at the load of
// a search that is to be quoted, USD; nil where that is not known.
func (r *Run) CapacityCost() *float64 {
	c := r.Capacity
	if c == nil || c.Load == nil {
		return nil
	}
	if c.USDPerMGoodOutput != nil {
		return c.USDPerMGoodOutput
	}
	for i := range c.Trail {
		p := &c.Trail[len(c.Trail)-1-i]
		if p.Load == *c.Load && !p.Excluded && p.Point >= 0 && p.Point < len(r.Points) && r.Points[p.Point].Cost != nil {
			return r.Points[p.Point].Cost.USDPerMGoodOutput
		}
	}
	return nil
}
