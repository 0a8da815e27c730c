package compare

import (
	"math"
	"slices"

	"pitot/internal/stats"
)

// Spread holds what the launches of one side show at one load, or found as a capacity. It has a
// value for the system, and the distance between its launches.
type Spread struct {
	What     string        `json:"what"` // "open loop, poisson, 8/s"
	Launches int           `json:"launches"`
	Values   []SpreadValue `json:"values"`
	Left     []Left        `json:"left"`          // metrics without a value, and why
	Why      string        `json:"why,omitempty"` // why there is no value at all
	Notes    []string      `json:"notes"`         // what was left out
}

// SpreadValue is one metric of a [Spread].
type SpreadValue struct {
	Metric string      `json:"metric"`
	Unit   string      `json:"unit"`  // "ms", "/s", "share" or "users"
	Value  float64     `json:"value"` // mean over the launches: geometric but for shares
	CI95   *[2]float64 `json:"ci95"`  // of the mean over all launches there could be: Student's t over these; nil for fewer than two, or where all are alike
	Least  float64     `json:"least"`
	Most   float64     `json:"most"`
	Few    bool        `json:"few,omitempty"` // a percentile that rests on few samples

	// Detectable is the smallest change at which a gate on this metric alone, without by, fires with
	// 80 % power, of as many launches on the other side; nil for fewer than [Enough] launches, or where all are alike.
	Detectable *float64 `json:"detectable"`
}

// LaunchSpreads says what the launches of a side show, load by load.
func LaunchSpreads(s Side) (out []Spread) {
	m := measureSide(&s, false)
	for _, key := range m.order {
		x := m.measuredAt[key]
		d := Spread{What: m.loadTitle(key), Launches: len(x.launches), Values: []SpreadValue{}, Left: []Left{}, Notes: x.invalid}
		if d.Why = x.unusableReason(m.name); d.Why == "" {
			for _, f := range metricsOf(x, x, Options{}) {
				if (f.name == goodput || f.name == attained) && objectiveMismatch(x, x) != "" {
					continue
				}
				values, why := x.valuesByLaunch(f, m.name)
				if f.name == wrongAnswers && why != "" { // nobody asked questions
					continue
				}
				d.addFigure(f, values, why)
			}
		}
		out = append(out, d)
	}
	for _, k := range m.searchedObjectives() {
		values, why := m.capacityEstimates(k)
		d := Spread{What: "capacity, " + k.slo, Launches: len(m.searches), Values: []SpreadValue{}, Left: []Left{}, Notes: []string{}}
		d.addFigure(k.capacityFigure(), values, why)
		out = append(out, d)
	}
	return out
}

// addFigure notes a metric, or why it has no value.
func (d *Spread) addFigure(f figure, s sample, why string) {
	if why != "" {
		d.Left = append(d.Left, Left{Metric: f.name, Why: why})
		return
	}
	on, why := scaleOf(f, s, s, 0)
	if why != "" { // zeros everywhere
		on = scale{to: func(x float64) float64 { return x }, mean: func(x float64) float64 { return x }}
	}
	xs := on.transform(s.values)
	mean, sd := stats.Moments(xs)
	v := SpreadValue{Metric: f.name, Unit: f.unit, Value: on.mean(mean), Least: slices.Min(s.values), Most: slices.Max(s.values), Few: s.few}
	if f.share {
		v.Unit = "share"
	}
	if isConstant(s.values) {
		v.Value = s.values[0]
	} else if n := float64(len(xs)); n > 1 {
		half := stats.StudentQuantile(1-alpha/2, n-1) * sd / math.Sqrt(n)
		lo, hi := on.mean(mean-half), on.mean(mean+half)
		if f.share {
			lo, hi = max(lo, 0), min(hi, 1)
		}
		if !math.IsInf(hi, 0) && !math.IsNaN(lo+hi) {
			v.CI95 = &[2]float64{lo, hi}
		}
		if delta, ok := stats.DetectableDifference(sd, n-1, len(xs), level, power); ok && len(xs) >= Enough && on.change != nil {
			if x := on.change(delta); !math.IsInf(x, 0) && !math.IsNaN(x) {
				v.Detectable = &x
			}
		}
	}
	d.Values = append(d.Values, v)
}
