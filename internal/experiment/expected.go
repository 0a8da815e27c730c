package experiment

import (
	"fmt"
	"math"

	"pitot/internal/analysis/predict"
	"pitot/internal/results/metric"
	"pitot/internal/say"
	"pitot/internal/sim/catalogue"
	"pitot/internal/sim/deploy"
)

// What a deployment's arithmetic and its twin say before anything is measured: bounds that
// hypotheses are held against, and, of a row without a hypothesis, what the twin expects.

// Bounds that a hypothesis can name.
const (
	bandwidthBound = "bandwidth" // of a TPOT: the weights and the context are read once a step
	computeBound   = "compute"   // of a TTFT: the prompt's operations at the peak rate
)

// deployment returns the deployment of the target, nil where that is not known.
func (p *Plan) deployment() *deploy.Deployment {
	d, err := deploy.Parse(p.TwinSpec())
	if err != nil {
		return nil
	}
	return d
}

// isClosedLoop says that a row has so many users, who ask for something whose lengths are known.
func (r *Row) isClosedLoop() bool {
	return r.Plan.Concurrency > 0 && !r.Plan.Ask.Output.IsZero() && !r.Plan.Input.IsZero()
}

// latencyBound is one of a deployment in a row, in milliseconds; NaN where it has none.
func (p *Plan) latencyBound(kind string, row *Row) float64 {
	d := p.deployment()
	if d == nil || row == nil || !row.isClosedLoop() {
		return math.NaN()
	}
	in, out := row.Plan.Input.Mean()+row.Plan.PrefixMean(), row.Plan.Ask.Output.Mean()
	if kind == computeBound {
		return in * d.Bounds().PrefillToken * 1e3
	}
	return d.DecodeFloor(row.Plan.Concurrency, in+out/2) * 1e3
}

// Distance is the distance of a configuration from the hardware's bounds, at the highest load
// within the limits.
type Distance struct {
	Configuration string  `json:"configuration"`
	Load          float64 `json:"load"`          // requests per second
	Running       float64 `json:"mean_running"`  // requests at once in an engine, by Little's law
	TPOT          float64 `json:"p50_tpot_ms"`   // measured
	Floor         float64 `json:"floor_tpot_ms"` // with so many at once: weights and contexts are read once a step
	Computing     float64 `json:"share_of_peak"` // of the operations that the accelerators can do in that time
}

// boundsDistance is that of a launch of a configuration, nil where the deployment, the lengths or
// the measurement do not tell.
func (x *Experiment) boundsDistance(c Configuration, block int) *Distance {
	p := x.Plan
	row := p.ContractRow()
	measured := x.finishedRun(&Part{c, row, block})
	d, err := deploy.Parse(c.targetWith(p.TwinSpec()))
	if measured == nil || err != nil || p.TwinSpec() == "" || row.Plan.Ask.Output.IsZero() || row.Plan.Input.IsZero() {
		return nil
	}
	climbed, ok := readClimb(measured, p.Contract.Capacity, p.Contract.Limits)
	if !ok || climbed.nearby == nil {
		return nil
	}
	of := func(name string) float64 {
		f, err := parseFigure(name)
		if err != nil {
			return math.NaN()
		}
		return f.valueAt(climbed.nearby)
	}
	in, out := row.Plan.Input.Mean()+row.Plan.PrefixMean(), row.Plan.Ask.Output.Mean()
	engines := float64(max(d.DataParallel, 1))
	load := climbed.nearby.Load.Value()
	o := &Distance{Configuration: c.Name, Load: load, Running: load * of("mean e2e") / 1e3 / engines, TPOT: of("p50 tpot")}
	o.Computing = load / engines * (in + out - 1) * d.Bounds().PrefillToken
	o.Floor = d.DecodeFloor(max(int(math.Round(o.Running)), 1), in+out/2) * 1e3
	if !(o.Running > 0) || !(o.TPOT > 0) {
		return nil
	}
	return o
}

// checkBound says whether a bound that a hypothesis names is known.
func (p *Plan) checkBound(s *Side) error {
	row := p.Row(s.Row)
	switch {
	case p.deployment() == nil:
		return say.Errorf("the %s bound of the target is not known", s.Bound).WithHint("bounds are those of a model on an accelerator: a target sim:MODEL@GPU, or twin: sim:MODEL@GPU beside a URL")
	case !row.isClosedLoop():
		return say.Errorf("row %s has no %s bound", s.Row, s.Bound).WithHint("bounds are of rows with a number of users and known lengths, as A to D")
	case s.Bound == bandwidthBound && s.Metric.Metric.Name != metric.TPOT:
		return say.Errorf("the bandwidth bound is one of a tpot").WithHint("for example p50 tpot of C within 15% of the bandwidth bound")
	case s.Bound == computeBound && s.Metric.Metric.Name != metric.TTFT:
		return say.Errorf("the compute bound is one of a ttft").WithHint("for example p50 ttft of B < 2 x the compute bound")
	}
	return nil
}

// ExpectedHypotheses are the hypotheses that stand in for those of a row that has none: what the
// twin expects of it, within the error that its predictions of such systems have. Rows
// whose requests share a prefix, and the contract's, have none: the one is not what the
// twin is asked here, the other has its limits.
func (p *Plan) ExpectedHypotheses(row *Row) (list []Hypothesis, note string) {
	d := p.deployment()
	if len(row.Hypotheses) > 0 || row.Name == p.Contract.Row || d == nil || !row.isClosedLoop() || row.Plan.PrefixMean() > 0 || row.Plan.Tree != nil {
		return nil, ""
	}
	ttft, tpot := 0.0, 0.0
	switch regime, ok := catalogue.RegimeOf(d.Accelerator.Name, &d.Model, !d.Settings.AsyncScheduling); {
	case d.Fitted != nil || !ok:
		return nil, "" // how far off it is is not known here
	default:
		ttft, tpot = regime.TTFT, regime.TPOT
		note = fmt.Sprintf("the twin expects it; four of five of its predictions are as near, of %s", regime.Name)
	}
	if row.expected == nil {
		x := predict.Curve(d, row.Plan.Input, row.Plan.Ask.Output, []int{row.Plan.Concurrency})[0]
		row.expected = &x
	}
	add := func(name string, value, percent float64) {
		if !(value > 0) || !(percent > 0 && percent < 100) {
			return
		}
		text := fmt.Sprintf("%s of %s within %.0f%% of %.3gms", name, row.Name, math.Ceil(percent), value)
		if value >= 1e3 { // no exponents
			text = fmt.Sprintf("%s of %s within %.0f%% of %.0fms", name, row.Name, math.Ceil(percent), value)
		}
		if h, err := ParseHypothesis(text); err == nil {
			list = append(list, h)
		}
	}
	add("p50 ttft", row.expected.TTFT.P50, ttft)
	add("p50 tpot", row.expected.TPOT.P50, tpot)
	return list, note
}
