package result

import (
	"strings"

	"pitot/internal/results/metric"
)

// MetricValue returns a metric that the point has one value of, with its 95 % interval if it
// has one; or why there is no value.
func (p *Point) MetricValue(m *metric.Metric) (value *float64, ci95 *[2]float64, why Reason) {
	t := &p.Throughput
	unknown := t.Why.Or(Reason{Code: ValueUnknown})
	rate := func(x *float64, key string) (*float64, *[2]float64, Reason) {
		if x == nil {
			return nil, nil, unknown
		}
		if ci, ok := t.CI95[key]; ok {
			return x, &ci, Reason{}
		}
		return x, nil, Reason{}
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
			return nil, nil, Reason{Code: NoSLO}
		}
		return &p.Goodput.RequestsPerS, nil, Reason{}
	case metric.GoodOutputRate:
		if p.Goodput == nil {
			return nil, nil, Reason{Code: NoSLO}
		}
		return rate(p.Goodput.OutputTokensPerS, "")
	case metric.Attained:
		switch {
		case p.SLO == nil:
			return nil, nil, Reason{Code: NoSLO}
		case p.SLO.Attained == nil:
			return nil, nil, Reason{Code: ValueUnknown}
		}
		return p.SLO.Attained, p.SLO.CI95, Reason{}
	case metric.Errors:
		due := p.Requests.Due - p.Requests.Errors["worker_lost"] // what became of these is not known
		if due == 0 {
			return nil, nil, Reason{Code: NothingDue}
		}
		x := float64(due-p.Requests.OK) / float64(due)
		return &x, nil, Reason{}
	}
	group, _, _ := strings.Cut(m.Key, ".")
	from, code := map[string]float64(nil), SearchOnly
	switch {
	case group == "cost":
		return p.Cost.figureByKey(m.FieldName(), unknown)
	case group == "energy":
		return p.Energy.figureByKey(m.FieldName())
	case group == "window":
		from, code = p.Window, NotMeasured
	case group == "server":
		from, code = p.Server, ServerDidNotSay
	}
	if x, ok := from[m.FieldName()]; ok {
		return &x, nil, Reason{}
	}
	return nil, nil, Reason{Code: code}
}

// figureByKey returns a cost by its key in run.json.
func (c *Cost) figureByKey(key string, unknown Reason) (value *float64, ci95 *[2]float64, why Reason) {
	if c == nil {
		return nil, nil, Reason{Code: NoPrice}
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
	return value, ci95, Reason{}
}

// figureByKey returns an energy by its key in run.json.
func (e *Energy) figureByKey(key string) (value *float64, ci95 *[2]float64, why Reason) {
	if e == nil {
		return nil, nil, Reason{Code: PowerUnknown}
	}
	switch key {
	case "joules_per_output_token":
		value = e.JoulesPerOutputToken
	case "joules_per_good_token":
		value = e.JoulesPerGoodToken
	case "output_tokens_per_s_per_mw":
		value = e.TokensPerSPerMW
	}
	if value == nil {
		why = e.Why.Or(Reason{Code: OutputTokensBlind})
	}
	return value, nil, why
}
