package metrics

import (
	"pitot/internal/cost"
	"pitot/internal/results/result"
)

// servingCost returns the cost of serving at this load. Energy gives what owned GPUs draw, as far
// as it was measured.
func (f *Fold) servingCost(p *result.Point) *result.Cost {
	rates := cost.Rates{Requests: p.Throughput.RequestsPerS, Input: p.Throughput.InputTokensPerS, Output: p.Throughput.OutputTokensPerS}
	if share, ok := p.Window["cached_share"]; ok && rates.Input != nil {
		cached := share * *rates.Input
		rates.Cached = &cached
	}
	if p.Goodput != nil {
		rates.GoodRequests, rates.GoodOutput = &p.Goodput.RequestsPerS, p.Goodput.OutputTokensPerS
	}
	price := f.setup.Price
	watts := wattsOfEach(p.Energy, f.setup.GPUs)
	bill, ok := price.Bill(f.setup.GPUs, watts, rates)
	if !ok {
		return nil
	}
	c := CostOfBill(price, bill)
	c.CachedUnknown = c.Basis == result.TokenPrice && price.Tokens.Cached != nil && rates.Cached == nil
	if common := p.Window["common_tokens_per_s"]; common > 0 {
		usd := bill.PerHour / 3600 / common * 1e6
		c.USDPerMCommon = &usd
	}
	if o := price.GPU.Owned; o.KWh > 0 {
		c.Electricity = &result.Electricity{USDPerGPUHour: o.ElectricityPerHour(watts) * (1 - price.Discount), WattsPerGPU: o.Watts, Measured: watts != nil}
		if watts != nil {
			c.Electricity.WattsPerGPU = *watts
		}
	}
	interval := func(key string, usd, rate *float64, of string) {
		ci, known := p.Throughput.CI95[of]
		if usd == nil || !known {
			return
		}
		if ends, ok := price.IntervalFromRate(*usd, *rate, ci); ok {
			if c.CI95 == nil {
				c.CI95 = map[string][2]float64{}
			}
			c.CI95[key] = ends
		}
	}
	interval("usd_per_m_output", c.USDPerMOutput, rates.Output, "output_tokens_per_s")
	interval("usd_per_request", c.USDPerRequest, rates.Requests, "requests_per_s")
	return &c
}

// CostOfBill is a bill as run.json has it.
func CostOfBill(price cost.Price, b cost.Bill) result.Cost {
	c := result.Cost{
		USDPerGPUHour: b.PerGPUHour, USDPerHour: &b.PerHour, Basis: result.Rented, Price: price.GPU.String(), Discount: price.Discount,
		USDPerMInput: b.MInput, USDPerMOutput: b.MOutput, USDPerMTokens: b.MTokens, USDPerMGoodOutput: b.MGoodOutput,
		USDPerRequest: b.Request, USDPerGoodRequest: b.GoodRequest,
	}
	switch {
	case price.Listed:
		c.Basis = result.ListPrice
	case price.GPU.IsUnknown():
		c.Basis, c.Price = result.TokenPrice, price.Tokens.String()
	case price.GPU.Owned != cost.Owned{}:
		c.Basis = result.Owned
	}
	return c
}

// BillOf is the bill that run.json has.
func BillOf(c *result.Cost) cost.Bill {
	b := cost.Bill{PerGPUHour: c.USDPerGPUHour, MInput: c.USDPerMInput, MOutput: c.USDPerMOutput, MTokens: c.USDPerMTokens,
		MGoodOutput: c.USDPerMGoodOutput, Request: c.USDPerRequest, GoodRequest: c.USDPerGoodRequest}
	if c.USDPerHour != nil {
		b.PerHour = *c.USDPerHour
	}
	return b
}
