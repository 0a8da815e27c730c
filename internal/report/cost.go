package report

import (
	"fmt"
	"strings"

	"pitot/internal/analysis/compare"
	"pitot/internal/results/result"
	"pitot/internal/say"
)

// addCost says what serving costs at a load and what it takes of energy, a line each.
func (m *PointModel) addCost(p *result.Point) {
	line := func(label string, parts ...string) { m.Cost = addLine(m.Cost, label, parts) }
	if c := p.Cost; c != nil && c.USDPerMOutput != nil {
		first := fmt.Sprintf("$%s per million output tokens", say.Quantity(*c.USDPerMOutput))
		if ci, ok := c.CI95["usd_per_m_output"]; ok {
			first += " (95 % " + fromTo(ci) + ")"
		}
		within := ""
		if c.USDPerMGoodOutput != nil && meetsSLO(p) {
			within = fmt.Sprintf("$%s within the SLO", say.Quantity(*c.USDPerMGoodOutput))
		}
		line("Cost", first, within, costText(c.USDPerMTokens, 1, "per million in and out"), costText(c.USDPerRequest, 1000, "per 1,000 requests"), priceText(c))
	}
	e := p.Energy
	if e == nil {
		return
	}
	idle := ""
	if e.IdleWatts != nil {
		idle = fmt.Sprintf("%s W before the load", say.Quantity(*e.IdleWatts))
	}
	gpus := "the GPUs"
	if e.GPUs != nil {
		gpus = say.Plural(*e.GPUs, "GPU")
	}
	drew := fmt.Sprintf("%s drew %s W", gpus, say.Quantity(e.Watts))
	if e.JoulesPerOutputToken == nil {
		line("Energy", drew, idle, "none by token: "+ReasonText(e.Why.Or(result.Reason{Code: result.OutputTokensBlind})))
		return
	}
	each := fmt.Sprintf("%s J per output token (%s)", say.Quantity(*e.JoulesPerOutputToken), energyError(e))
	good := ""
	if e.JoulesPerGoodToken != nil && meetsSLO(p) {
		good = fmt.Sprintf("%s J within the SLO", say.Quantity(*e.JoulesPerGoodToken))
	}
	line("Energy", each, good, fmt.Sprintf("%s tok/s per MW", say.Quantity(*e.TokensPerSPerMW)), drew, idle)
}

// energyError says how far off the energy may be, and what it follows from.
func energyError(e *result.Energy) string {
	off := say.Percent(e.Error / e.Joules)
	if e.From == result.EnergyCounter {
		return "±" + off + " at most, by the GPUs' counter"
	}
	return fmt.Sprintf("±%s at 95 %%, by %s of power", off, say.Plural(e.Samples, "sample"))
}

// costText returns the cost of n units as text. It returns "" if the price is not known.
func costText(usd *float64, n float64, of string) string {
	if usd == nil {
		return ""
	}
	return fmt.Sprintf("$%s %s", say.Quantity(n**usd), of)
}

// priceText says what is paid: "at $3.99 a GPU hour".
func priceText(c *result.Cost) (text string) {
	hour := ""
	if c.USDPerGPUHour != nil {
		hour = fmt.Sprintf("$%s a GPU hour", say.Dollars(*c.USDPerGPUHour))
	}
	switch c.Basis {
	case result.TokenPrice:
		text = "at $" + c.Price + " per million tokens in/out"
		if strings.Count(c.Price, "/") == 2 {
			text = "at $" + c.Price + " per million tokens in/cached/out"
		}
	case result.ListPrice:
		text = "at the list price of " + hour
	case result.Owned:
		text = "owned, at " + hour
		if e := c.Electricity; e != nil {
			how := "as given"
			if e.Measured {
				how = "measured"
			}
			text += fmt.Sprintf(", $%s of it electricity (%s W, %s)", say.Dollars(e.USDPerGPUHour), say.Quantity(e.WattsPerGPU), how)
		}
	default:
		text = "at " + hour
	}
	if c.Discount > 0 {
		text += ", " + say.Percent(c.Discount) + " off"
	}
	if c.CachedUnknown {
		text += "; " + compare.CachedUnknown
	}
	return text
}

// capacityCost says what the capacity costs, and what it costs with a part of it idle.
func capacityCost(run *result.Run, load func(float64) string) []string {
	usd := run.CapacityCost()
	if usd == nil {
		return nil
	}
	parts := texts{fmt.Sprintf("$%s per million output tokens within the SLO, at %s", say.Quantity(*usd), load(*run.Capacity.Load))}
	if q := run.Capacity.Cost; q != nil {
		if x := q.WithHeadroom.USDPerMGoodOutput; x != nil && q.Headroom > 0 && q.AtCapacity.Basis != result.TokenPrice {
			parts.addFormat("$%s with %s kept in reserve, at %s", say.Quantity(*x), say.Percent(q.Headroom), load(*run.Capacity.Load*(1-q.Headroom)))
		}
		parts.addText(priceText(&q.AtCapacity))
	}
	return parts
}

// costColumns returns the columns for cost and energy in the table of loads: dollars for a million
// output tokens, and joules for one. Where there is an SLO, the dollars are for tokens within it,
// at loads that met it. The table leaves out an empty column.
func costColumns(p *result.Point) []string {
	usd, joules := "", ""
	if c := p.Cost; c != nil {
		usd = say.Unknown
		switch {
		case p.SLO == nil && c.USDPerMOutput != nil:
			usd = say.Quantity(*c.USDPerMOutput)
		case p.SLO != nil && meetsSLO(p) && c.USDPerMGoodOutput != nil:
			usd = say.Quantity(*c.USDPerMGoodOutput)
		}
	}
	if e := p.Energy; e != nil {
		joules = say.Optional(e.JoulesPerOutputToken)
	}
	return []string{usd, joules}
}

// Heads of those columns.
const (
	costHead   = "$/M"
	energyHead = "J/tok"
)

// costLegend explains the column of costs.
func costLegend(run *result.Run) string {
	for i := range run.Points {
		if run.Points[i].SLO != nil {
			return costHead + ": for a million output tokens within the SLO, where it was met"
		}
	}
	return costHead + ": for a million output tokens"
}
