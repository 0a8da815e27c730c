package result

import (
	"strings"

	"pitot/internal/data/metric"
)

// NoSLO is why there is no goodput.
const NoSLO = "no SLO given"

// Figure is a metric that the point has one value of, with its 95 % interval if it
// has one; or why there is no value.
func (p *Point) Figure(m *metric.Metric) (value *float64, ci95 *[2]float64, why string) {
	t := &p.Throughput
	unknown := t.Why
	if unknown == "" {
		unknown = "not known"
	}
	rate := func(x *float64, key string) (*float64, *[2]float64, string) {
		if x == nil {
			return nil, nil, unknown
		}
		if ci, ok := t.CI95[key]; ok {
			return x, &ci, ""
		}
		return x, nil, ""
	}
	switch m.Name {
	case metric.OfferedRate:
		return rate(t.DuePerS, "")
	case metric.RequestRate:
		return rate(t.RequestsPerS, "requests_per_s")
	case metric.RequestsPerMin:
		return rate(t.RPM, "")
	case metric.InputRate:
		return rate(t.InputTokensPerS, "")
	case metric.OutputRate:
		return rate(t.OutputTokensPerS, "output_tokens_per_s")
	case metric.Goodput:
		if p.Goodput == nil {
			return nil, nil, NoSLO
		}
		return &p.Goodput.RequestsPerS, nil, ""
	case metric.GoodOutputRate:
		if p.Goodput == nil {
			return nil, nil, NoSLO
		}
		return rate(p.Goodput.OutputTokensPerS, "")
	case metric.Attained:
		switch {
		case p.SLO == nil:
			return nil, nil, NoSLO
		case p.SLO.Attained == nil:
			return nil, nil, "not known"
		}
		return p.SLO.Attained, p.SLO.CI95, ""
	case metric.Errors:
		due := p.Requests.Due - p.Requests.Errors["worker_lost"] // what became of these is not known
		if due == 0 {
			return nil, nil, "nothing came due"
		}
		x := float64(due-p.Requests.OK) / float64(due)
		return &x, nil, ""
	}
	group, _, _ := strings.Cut(m.Key, ".")
	from, why := map[string]float64(nil), "of a search alone"
	switch {
	case group == "cost":
		return p.Cost.figure(m.Field(), unknown)
	case group == "energy":
		return p.Energy.figure(m.Field())
	case group == "window":
		from, why = p.Window, "not measured"
	case group == "server":
		from, why = p.Server, "the server did not tell"
	}
	if x, ok := from[m.Field()]; ok {
		return &x, nil, ""
	}
	return nil, nil, why
}

// figure is a cost by its key in run.json.
func (c *Cost) figure(key, unknown string) (value *float64, ci95 *[2]float64, why string) {
	if c == nil {
		return nil, nil, "no price was given"
	}
	switch key {
	case "usd_per_m_input":
		value = c.USDPerMInput
	case "usd_per_m_output":
		value = c.USDPerMOutput
	case "usd_per_m_tokens":
		value = c.USDPerMTokens
	case "usd_per_m_good_output":
		value = c.USDPerMGoodOutput
	case "usd_per_m_common":
		value = c.USDPerMCommon
	case "usd_per_request":
		value = c.USDPerRequest
	}
	if value == nil {
		return nil, nil, unknown
	}
	if ci, ok := c.CI95[key]; ok {
		ci95 = &ci
	}
	return value, ci95, ""
}

// figure is an energy by its key in run.json.
func (e *Energy) figure(key string) (value *float64, ci95 *[2]float64, why string) {
	if e == nil {
		return nil, nil, "no power was told"
	}
	switch key {
	case "joules_per_output_token":
		value = e.JoulesPerOutputToken
	case "joules_per_good_token":
		value = e.JoulesPerGoodToken
	case "output_tokens_per_s_per_mw":
		value = e.TokensPerSPerMW
	}
	switch {
	case value != nil:
	case e.Why != "":
		why = e.Why
	default:
		why = "the output tokens are not known"
	}
	return value, nil, why
}
