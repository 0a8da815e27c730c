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
		if p.Requests.Due == 0 {
			return nil, nil, "nothing came due"
		}
		x := float64(p.Requests.Due-p.Requests.OK) / float64(p.Requests.Due)
		return &x, nil, ""
	case metric.OutputCost:
		if p.Cost == nil {
			return nil, nil, "no price was given"
		}
		return rate(p.Cost.USDPerMOutput, "")
	case metric.GoodOutputCost:
		if p.Cost == nil {
			return nil, nil, "no price was given"
		}
		return rate(p.Cost.USDPerMGoodOutput, "")
	}
	group, _, _ := strings.Cut(m.Key, ".")
	from, why := map[string]float64(nil), "of a search alone"
	switch {
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
