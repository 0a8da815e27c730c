package experiment

import (
	"fmt"
	"math"

	"pitot/internal/experiment/decide"
	"pitot/internal/stats"
)

// How a hypothesis came out.
const (
	Held      = "held"
	Refuted   = "refuted"
	Undecided = "undecided"
)

// Tested is a hypothesis and what launches say of it.
type Tested struct {
	Row      string      `json:"row"`
	Text     string      `json:"text"`
	Outcome  string      `json:"outcome"` // "held", "refuted" or "undecided"
	Left     float64     `json:"left"`    // means over the launches: geometric, but for shares
	Right    float64     `json:"right"`
	Ratio    *float64    `json:"ratio"`    // left over right; null of shares
	Interval *[2]float64 `json:"interval"` // of the ratio, or of left less right; null: too few launches, or all alike
	Launches int         `json:"launches"`
	Why      string      `json:"why,omitempty"`
	Expected string      `json:"expected,omitempty"` // it is the twin's, for the row has none: how near that is
}

// testHypothesis holds a hypothesis against the launches: by a t interval of the logarithm of left
// over right, of each launch, or of their difference where they are shares. A hypothesis
// was written down before: each is judged by itself at the confidence asked for.
func (x *Experiment) testHypothesis(row *Row, h *Hypothesis, d *decide.Decision, blocks int) Tested {
	t := Tested{Row: row.Name, Text: h.Text, Outcome: Undecided}
	p := x.Plan
	difference := h.Left.Metric.Share()
	side := func(s Side, block int) float64 {
		if s.Row == "" {
			return s.Times
		}
		if s.Bound != "" {
			return s.Times * p.latencyBound(s.Bound, p.Row(s.Row))
		}
		for i, c := range p.Configurations() {
			if (c.Name == s.Configuration || i == 0 && s.Configuration == "") && d.IsBad(i, block-1) {
				return math.NaN()
			}
		}
		return s.Times * x.figureValue(s.Metric, s.Row, s.Configuration, block)
	}
	var ds []float64
	left, right := 0.0, 0.0
	for block := 1; block <= blocks; block++ {
		l, r := side(h.Left, block), side(h.Right, block)
		if !difference {
			l, r = math.Log(l), math.Log(r)
		}
		if d := l - r; !math.IsNaN(d) && !math.IsInf(d, 0) {
			ds = append(ds, d)
			left, right = left+l, right+r
		}
	}
	n := float64(len(ds))
	t.Launches = len(ds)
	if n == 0 {
		t.Why = "no launch has both sides, in a steady state, that counts"
		return t
	}
	t.Left, t.Right = left/n, right/n
	back := func(d float64) float64 { return d }
	if !difference {
		t.Left, t.Right = math.Exp(t.Left), math.Exp(t.Right)
		back = math.Exp
		ratio := math.Exp((left - right) / n)
		t.Ratio = &ratio
	}
	mean, sd := stats.Moments(ds)
	const same = 1e-9
	lo, hi := mean, mean
	switch {
	case n < 2:
		t.Why = fmt.Sprintf("%d of %d launches has both sides, in a steady state: one says nothing of others", len(ds), blocks)
		return t
	case sd < same:
		t.Why = "the same in every launch"
	default:
		half := stats.StudentQuantile((1+p.Stop.Confidence)/2, n-1) * sd / math.Sqrt(n)
		lo, hi = mean-half, mean+half
		t.Interval = &[2]float64{back(lo), back(hi)}
	}
	least, most := math.Inf(-1), 0.0
	switch h.Relation {
	case ">":
		least, most = 0, math.Inf(1)
	case "within":
		least, most = math.Log1p(-h.Within), math.Log1p(h.Within)
		if difference {
			least, most = -h.Within*t.Right, h.Within*t.Right
		}
	}
	switch {
	case lo > least && hi < most:
		t.Outcome = Held
	case hi <= least || lo >= most:
		t.Outcome = Refuted
	}
	return t
}

// figureValue is a metric of a row in a launch of a configuration, NaN where it is not known.
func (x *Experiment) figureValue(f Figure, row, configuration string, block int) float64 {
	p := x.Plan
	for _, c := range p.Configurations() {
		if c.Name != configuration && (configuration != "" || c.Name != Baseline) {
			continue
		}
		measured := x.finishedRun(&Part{c, p.Row(row), block})
		if measured == nil {
			return math.NaN()
		}
		if row != p.Contract.Row {
			return f.valueAt(&measured.Points[0])
		}
		climbed, ok := readClimb(measured, p.Contract.Capacity, p.Contract.Limits)
		switch {
		case ok && f.Name == "capacity":
			return climbed.Load
		case ok && climbed.wanted != nil:
			return f.valueAt(climbed.wanted)
		}
	}
	return math.NaN()
}
