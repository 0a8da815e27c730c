package compare

import (
	"fmt"
	"math"
	"slices"

	"pitot/internal/results/metric"
	"pitot/internal/results/result"
	"pitot/internal/stats"
)

// Curve holds what the sides show over loads of one kind: of one workload, with one arrival
// process. It holds every load that a side was measured at, whether the other sides have it or not.
type Curve struct {
	What   string       `json:"what"`             // "open loop, poisson"
	Over   string       `json:"over"`             // what loads count: "rate" (req/s) or "concurrency" (users)
	SLO    string       `json:"slo,omitempty"`    // what goodput is within
	Limits []CurveLimit `json:"limits,omitempty"` // of latencies, that apply to some point
	Sides  []SideCurve  `json:"sides"`
}

// CurveLimit is a limit of an SLO.
type CurveLimit struct {
	Spec   string      `json:"spec"`   // "p99 ttft<200ms"
	Metric metric.Name `json:"metric"` // "ttft"
	Limit  float64     `json:"limit"`  // milliseconds
}

// SideCurve is one side's part of a curve.
type SideCurve struct {
	Side         string      `json:"side"`
	UnstableFrom *float64    `json:"unstable_from"` // from this load on the queue grew, in some launch at each load
	Loads        []LoadCurve `json:"loads"`         // ascending
}

// LoadCurve is one side at one load.
type LoadCurve struct {
	Load     float64       `json:"load"`
	Launches []string      `json:"launches"` // those with a point that is not INVALID
	Unstable int           `json:"unstable"` // launches in which the queue grew
	Metrics  []CurveMetric `json:"metrics"`
}

// CurveMetric is one metric of one side at one load.
type CurveMetric struct {
	Metric   string     `json:"metric"`
	Unit     string     `json:"unit"`          // "ms" or "/s"
	Value    *float64   `json:"value"`         // over all launches, as in a [Row]; null if one of them has none
	Launches []*float64 `json:"launches"`      // the median of the repeats of each, null where one of them has no value
	Few      bool       `json:"few,omitempty"` // some launch's rests on few samples
	Why      string     `json:"why,omitempty"`
}

// onCurves are the figures of a curve: the first ones, what else comparisons
// show of distributions, and what was named beforehand or is limited.
func onCurves(x *loadOfSide, o Options) (out []figure) {
	metrics := catalogueOf(x)
	for _, m := range metrics {
		switch {
		case m.Show != metric.Headline && m.HasPercentiles() && x.hasMetric(m.Name) && !(m.Instead != "" && x.hasMetric(m.Instead)):
			for _, statistic := range m.Compared {
				out = append(out, percentile(m, statistic))
			}
		case m.Show != metric.Headline:
		case m.HasPercentiles():
			for _, statistic := range []string{metric.Mean, "p50", "p99"} {
				out = append(out, percentile(m, statistic))
			}
		default:
			out = append(out, windowFigure(m))
		}
	}
	for _, m := range slices.Concat(limitedFigures(x), o.namedFigures()) {
		if m.of.HasPercentiles() {
			out = appendFigures(out, m)
		}
	}
	return out
}

// curves lays what the sides measured over each other.
func curves(sides []Side, all []*measured, o Options) []Curve {
	type kind struct{ workload, load string }
	curveKind := func(x *loadOfSide) kind {
		k := kind{x.workload, kindOf(x.load)}
		if o.Workloads {
			k.workload = ""
		}
		return k
	}
	var kinds []kind
	workloads := map[string]bool{}
	for _, m := range all {
		for _, key := range m.order {
			k := curveKind(m.measuredAt[key])
			workloads[k.workload] = true
			if !slices.Contains(kinds, k) {
				kinds = append(kinds, k)
			}
		}
	}
	out := []Curve{}
	for _, k := range kinds {
		c := Curve{What: k.load}
		points := make([][]*loadOfSide, len(all)) // of each side, by load
		for i, m := range all {
			for _, key := range m.order {
				if x := m.measuredAt[key]; curveKind(x) == k {
					points[i] = append(points[i], x)
				}
			}
		}
		first := slices.Concat(points...)[0]
		c.Over = first.load.Over()
		if len(workloads) > 1 {
			c.What += ", " + workloadName(first.source.Run)
		}
		c.fillValues(sides, points, o)
		out = append(out, c)
	}
	return out
}

// kindOf is a load in words, without how much of it.
func kindOf(l result.Load) string {
	s := l.Loop + " loop"
	if l.Rate != nil {
		s += ", " + l.Arrival
	}
	if l.Concurrency != nil && l.ThinkMS != nil {
		s += ", thinking " + number(*l.ThinkMS) + " ms"
	}
	if l.MaxInFlight != nil {
		s += fmt.Sprintf(", at most %d in flight", *l.MaxInFlight)
	}
	return s
}

// fillValues gives each side its values.
func (c *Curve) fillValues(sides []Side, points [][]*loadOfSide, o Options) {
	unlike := ""
	c.SLO, unlike = oneObjective(slices.Concat(points...))
	c.Limits = latencyLimits(slices.Concat(points...))
	for i := range sides {
		s := SideCurve{Side: sides[i].Name, Loads: []LoadCurve{}}
		tokens := ""
		if !o.Tokenizers {
			tokens = tokenizerMismatch(sides[0], sides[i])
		}
		for _, x := range points[i] {
			l := LoadCurve{Load: x.load.Value(), Launches: []string{}, Unstable: x.unstableLaunches(), Metrics: []CurveMetric{}}
			for _, launch := range x.launches {
				l.Launches = append(l.Launches, launch.id)
			}
			var same []*loadOfSide // all sides at this load
			for _, y := range slices.Concat(points...) {
				if y.load.Value() == l.Load {
					same = append(same, y)
				}
			}
			for _, m := range onCurves(x, o) {
				switch {
				case m.name == goodput && c.SLO == "" && unlike == "": // no objective was given
				case m.name == goodput && unlike != "":
					l.Metrics = append(l.Metrics, CurveMetric{Metric: m.name, Unit: m.unit, Why: unlike})
				case m.token && tokens != "":
					l.Metrics = append(l.Metrics, CurveMetric{Metric: m.name, Unit: m.unit, Why: tokens})
				default:
					l.Metrics = append(l.Metrics, x.onCurve(m, same))
				}
			}
			s.Loads = append(s.Loads, l)
		}
		for _, l := range slices.Backward(s.Loads) {
			if l.Unstable == 0 {
				break
			}
			s.UnstableFrom = &l.Load
		}
		c.Sides = append(c.Sides, s)
	}
}

// oneObjective is the SLO that all points were held against, "" if they were
// held against none, or why they are not to be laid over each other.
func oneObjective(all []*loadOfSide) (spec, why string) {
	specs := specsOf("", all...)
	switch len(specs) {
	case 0:
		return "", ""
	case 1:
		return specs[0], ""
	}
	return "", slosDiffer
}

// latencyLimits are those of latencies that points were held against, each once.
func latencyLimits(all []*loadOfSide) (out []CurveLimit) {
	for _, p := range pointsOf(all...) {
		if p.SLO == nil {
			continue
		}
		for _, limit := range p.SLO.Limits {
			line := CurveLimit{Spec: limit.Spec, Metric: limit.Metric, Limit: limit.Limit}
			if limit.Metric != metric.Errors && !slices.Contains(out, line) {
				out = append(out, line)
			}
		}
	}
	return out
}

// hasMetric says whether some point has values of a metric of requests or gaps.
func (x *loadOfSide) hasMetric(name metric.Name) bool {
	return slices.ContainsFunc(pointsOf(x), func(p *result.Point) bool { return p.Metrics.SummaryOf(name) != nil })
}

// onCurve is a metric of a side at one load, among those of all sides.
func (x *loadOfSide) onCurve(m figure, same []*loadOfSide) CurveMetric {
	out := CurveMetric{Metric: m.name, Unit: m.unit, Launches: []*float64{}}
	if len(x.launches) == 0 {
		out.Why = "every point is INVALID"
		return out
	}
	values, few, why := x.figureByLaunch(m)
	var xs []float64
	for _, v := range values {
		out.Launches = append(out.Launches, v)
		if v != nil {
			xs = append(xs, *v)
		}
	}
	if out.Why = why; why != "" {
		return out
	}
	positive := true
	for _, y := range same {
		others, _, _ := y.figureByLaunch(m)
		positive = positive && !slices.ContainsFunc(others, func(v *float64) bool { return v != nil && *v <= 0 })
	}
	value := xs[0]
	switch {
	case isConstant(xs): // without rounding
	case positive:
		logs := make([]float64, len(xs))
		for i, v := range xs {
			logs[i] = math.Log(v)
		}
		mean, _ := stats.Moments(logs)
		value = math.Exp(mean)
	default:
		value, _ = stats.Moments(xs)
	}
	out.Value, out.Few = &value, few
	return out
}

// figureByLaunch are those of each launch, whether some rest on few samples, and why one
// has none.
func (x *loadOfSide) figureByLaunch(m figure) (out []*float64, few bool, why string) {
	without := 0
	for _, l := range x.launches {
		var vs []float64
		for _, p := range l.points {
			v := m.value(p)
			few = few || v.few
			if math.IsInf(v.x, 0) || math.IsNaN(v.x) {
				v.why = "the value is out of all range"
			}
			if v.why == "" {
				vs = append(vs, v.x)
			} else if why == "" {
				why = v.why
			}
		}
		if len(vs) < len(l.points) {
			without++
			out = append(out, nil)
			continue
		}
		value := median(vs)
		out = append(out, &value)
	}
	if 0 < without && without < len(x.launches) {
		why = fmt.Sprintf("%d of %d launches: %s", without, len(x.launches), why)
	}
	return out, few, why
}
