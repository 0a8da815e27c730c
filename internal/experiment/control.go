package experiment

import (
	"math"
	"slices"

	"pitot/internal/experiment/decide"
	"pitot/internal/stats"
)

// A knob that the plan says can move some rows has the others as controls: they are
// measured in its first launch alone, and must not move. Where one does, the machine
// changed, or the knob does more than was thought.

// ControlRecord is a metric of a row that a configuration must not move.
type ControlRecord struct {
	Configuration string   `json:"configuration"`
	Row           string   `json:"row"`
	Metric        string   `json:"metric"`
	OfShare       bool     `json:"of_share"`
	Baseline      float64  `json:"baseline"` // of the same block
	Value         float64  `json:"value"`
	Change        float64  `json:"change"`
	PAdjusted     *float64 `json:"p_adjusted"` // of no change; null: nothing tells how launches differ
	Moved         bool     `json:"moved"`
}

// hardly is a change that is none worth to be told, however sure it is.
const hardly = 0.02

// isControl says that a row is one for a configuration.
func (p *Plan) isControl(c Configuration, row *Row) bool {
	if row.Name == p.Contract.Row {
		return false
	}
	for _, k := range p.Knobs {
		if k.Name == c.Knob && (k.Rows == nil || slices.Contains(k.Rows, row.Name)) {
			return false
		}
	}
	return c.Knob != ""
}

// launchesOfRow counts the launches that measure a row.
func (p *Plan) launchesOfRow(row *Row) (n float64) {
	for _, c := range p.Configurations() {
		n += p.measuredLaunches(c, row)
	}
	return n
}

// measuredLaunches counts those of a configuration.
func (p *Plan) measuredLaunches(c Configuration, row *Row) float64 {
	if p.isControl(c, row) {
		return 1
	}
	return float64(p.Launches)
}

// compareControls holds the first launch of each configuration that a row is a control of against
// the baseline's in the same block: by the spread of launches of those that are measured
// in all blocks, as far as blocks do not explain it.
func (x *Experiment) compareControls(row *Row, f Figure, values [][]float64, d *decide.Decision) (list []ControlRecord) {
	p := x.Plan
	var whole [][]float64
	of := func(i, b int) float64 {
		v := values[i][b]
		if d.IsBad(i, b) {
			return math.NaN()
		}
		if !f.Share() {
			v = math.Log(v)
		}
		if math.IsInf(v, 0) {
			return math.NaN()
		}
		return v
	}
	for i, c := range p.Configurations() {
		if !p.isControl(c, row) {
			var logs []float64
			for b := range values[i] {
				logs = append(logs, of(i, b))
			}
			whole = append(whole, logs)
		}
	}
	sd, df := 0.0, 0.0
	if fit, ok := stats.FitBlocks(whole); ok {
		sd, df = fit.SD, fit.DF
	} else if xs := withoutNaN(whole[0]); len(xs) > 1 { // the baseline alone: blocks differ in it too
		_, sd = stats.Moments(xs)
		df = float64(len(xs) - 1)
	}
	for i, c := range p.Configurations() {
		if !p.isControl(c, row) || len(values[i]) == 0 {
			continue
		}
		a, b := of(0, 0), of(i, 0)
		if math.IsNaN(a) || math.IsNaN(b) {
			continue
		}
		r := ControlRecord{Configuration: c.Name, Row: row.Name, Metric: f.Name, OfShare: f.Share(), Baseline: values[0][0], Value: values[i][0], Change: b - a}
		if !f.Share() {
			r.Change = math.Expm1(b - a)
		}
		if sd > 0 {
			r.PAdjusted = finiteValue(2 * stats.StudentCDF(-math.Abs(b-a)/(sd*math.Sqrt2), df))
		}
		list = append(list, r)
	}
	return list
}

// judgeControls corrects for their number.
func judgeControls(list []ControlRecord, confidence float64) {
	var ps []float64
	var at []int
	for i := range list {
		if list[i].PAdjusted != nil {
			ps, at = append(ps, *list[i].PAdjusted), append(at, i)
		}
	}
	for n, p := range stats.Holm(ps) {
		r := &list[at[n]]
		r.PAdjusted = finiteValue(p)
		r.Moved = p < 1-confidence && math.Abs(r.Change) >= hardly
	}
}
