package experiment

import (
	"math"

	"pitot/internal/experiment/decide"
	"pitot/internal/results/metric"
	"pitot/internal/results/result"
	"pitot/internal/say"
	"pitot/internal/slo"
)

// What a run says, as what is decided by.

// rungOf is a point of the contract's row as a rung of a climb: the share of its requests
// that violates each claim. Requests of which it is not known count as violating it.
func rungOf(p *result.Point, limits slo.Spec) (r decide.Rung, claims []string) {
	r.Load = p.Load.Value()
	unknown := func(x *float64) float64 {
		if x == nil {
			return 1
		}
		return 1 - *x
	}
	if p.SLO == nil {
		return r, nil
	}
	joint, others := 0.0, false
	for _, l := range p.SLO.Limits {
		v := decide.Violated{Share: unknown(l.Attained), N: p.Requests.Due}
		switch {
		case l.Metric == metric.Errors:
			v.Allowed, v.Share = l.Limit, 1
			if l.Value != nil {
				v.Share = *l.Value
			}
		case l.Percentile > 0:
			v.Allowed, others = 1-l.Percentile/100, true
		default:
			joint = max(joint, v.Share)
			continue
		}
		r.Claims, claims = append(r.Claims, v), append(claims, l.Spec)
	}
	for _, l := range limits.Limits {
		if l.IsJoint() { // all of these together are one claim
			if !others {
				joint = unknown(p.SLO.Attained)
			}
			r.Claims = append(r.Claims, decide.Violated{Share: joint, Allowed: 1 - limits.Share(), N: p.Requests.Due})
			claims = append(claims, limits.String())
			break
		}
	}
	return r, claims
}

// climbed is the result of a run of the contract's row.
type climbed struct {
	decide.Carried
	claims []string // by index
	rungs  []decide.Rung
	wanted *result.Point // at the load that is wanted
	nearby *result.Point // the highest load within the limits
}

// readClimb reads a run of the contract's row.
func readClimb(measured *result.Run, wanted float64, limits slo.Spec) (c climbed, ok bool) {
	for i := range measured.Points {
		p := &measured.Points[i]
		rung, claims := rungOf(p, limits)
		c.rungs, c.claims = append(c.rungs, rung), claims
		if rung.Load == wanted && c.wanted == nil {
			c.wanted = p
		}
	}
	if c.Carried, ok = decide.LoadAtLimits(c.rungs); !ok {
		return c, false
	}
	for i := range c.rungs {
		if r := &c.rungs[i]; r.IsWithin() && r.Load <= c.Load && (c.nearby == nil || r.Load > c.nearby.Load.Value()) {
			c.nearby = &measured.Points[i]
		}
	}
	return c, true
}

// costWithinLimits is that of a million output tokens within the limits where they are reached:
// what it is at the highest load within them, less what the load is above that. NaN where no price
// is known.
func (c *climbed) costWithinLimits() float64 {
	if c.nearby == nil || c.nearby.Cost == nil || c.nearby.Cost.USDPerMGoodOutput == nil {
		return math.NaN()
	}
	return *c.nearby.Cost.USDPerMGoodOutput * c.nearby.Load.Value() / c.Load
}

// valueAt is a figure of a point; NaN where it is not known.
func (f Figure) valueAt(p *result.Point) float64 {
	var x *float64
	if f.Statistic != "" {
		key := f.Statistic
		if known, ok := metric.PercentileOf(key); ok {
			key = known.Key
		}
		x = p.Metrics.SummaryOf(f.Metric.Name).Value(key)
	} else {
		x, _, _ = p.MetricValue(f.Metric)
	}
	if x == nil {
		return math.NaN()
	}
	return *x
}

// figuresOf are the lines of a row: of the contract's what its limits are on, of others
// the times of a request and what is served.
func (p *Plan) figuresOf(r *Row) (list []Figure) {
	add := func(name string) {
		if f, err := parseFigure(name); err == nil {
			list = append(list, f)
		}
	}
	if r.Name != p.Contract.Row {
		add("p50 ttft")
		add("p50 tpot")
		if r.Plan.Concurrency > 0 {
			add("output tok/s")
		}
		return list
	}
	for _, l := range p.Contract.Limits.All() {
		switch {
		case l.Metric == metric.Errors:
			add("errors")
		case l.Percentile > 0:
			name := "p" + say.Exact(l.Percentile)
			add(name + " " + string(l.Metric))
		default:
			add("attained")
		}
	}
	return unique(list)
}

func unique(list []Figure) (out []Figure) {
	seen := map[string]bool{}
	for _, f := range list {
		if !seen[f.Name] {
			seen[f.Name] = true
			out = append(out, f)
		}
	}
	return out
}
