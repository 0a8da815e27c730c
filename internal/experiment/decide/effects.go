package decide

import (
	"math"

	"pitot/internal/stats"
)

// Line is one metric of one row: what launches measured of it.
type Line struct {
	Values [][]float64 // by configuration and block; NaN where it was not measured
	Share  bool        // of requests: changes are differences, and not ratios
}

// Effect is the effect of a configuration on a line, against the baseline.
type Effect struct {
	Line, Configuration int
	Baseline, Value     float64 // means over the launches that both have; geometric unless of shares
	Change              float64 // ratio less 1, or the difference of shares
	Interval            *[2]float64
	Adjusted            float64 // p of no change, corrected for all effects and looks; 1 where there is none
	Same                bool    // every launch has the same value on both sides
	Launches            int     // blocks that have both
}

// EstimateEffects works out what each configuration does to each line. What was given up is taken
// as it stood when it was, with the errors that that look may make. Launches that are bad
// do not count here either.
func EstimateEffects(lines []Line, d Decision, p Problem) (list []Effect) {
	var ps []float64
	var at []int
	for n, line := range lines {
		values := make([][]float64, len(line.Values))
		for i, row := range line.Values {
			most := len(row)
			if left := d.Of[i].Left; left > 0 {
				most = min(most, left)
			}
			values[i] = make([]float64, most)
			for b, x := range row[:most] {
				switch values[i][b] = x; {
				case d.IsBad(i, b):
					values[i][b] = math.NaN()
				case !line.Share:
					values[i][b] = math.Log(x)
				}
			}
		}
		fit, ok := stats.FitBlocks(values)
		for i := 1; i < len(values); i++ {
			e := Effect{Line: n, Configuration: i, Adjusted: 1}
			if !e.fillMeans(values[0], values[i], line.Share) {
				continue
			}
			if c, known := fit.Difference(0, i, p.Confidence); ok && known && !e.Same {
				lo, hi := c.Lo, c.Hi
				if !line.Share {
					lo, hi = math.Expm1(lo), math.Expm1(hi)
				}
				e.Interval = &[2]float64{lo, hi}
				block := d.Blocks
				if left := d.Of[i].Left; left > 0 {
					block = left
				}
				if share := p.errorShare(block); share > 0 {
					ps, at = append(ps, min(1, (c.P+d.allBad(i)+d.allBad(0))/share)), append(at, len(list))
				}
			}
			list = append(list, e)
		}
	}
	for n, x := range stats.Holm(ps) {
		list[at[n]].Adjusted = min(1, x/(1-capacityPart))
	}
	return list
}

// fillMeans gives the means of both sides over the blocks that have both.
func (e *Effect) fillMeans(base, other []float64, share bool) bool {
	a, b, same := 0.0, 0.0, true
	for i := range min(len(base), len(other)) {
		if math.IsNaN(base[i]) || math.IsNaN(other[i]) || math.IsInf(base[i], 0) || math.IsInf(other[i], 0) {
			continue
		}
		e.Launches++
		a, b = a+base[i], b+other[i]
		same = same && base[i] == other[i]
	}
	if e.Launches == 0 {
		return false
	}
	n := float64(e.Launches)
	a, b = a/n, b/n
	e.Same = same
	e.Baseline, e.Value, e.Change = a, b, b-a
	if !share {
		e.Baseline, e.Value, e.Change = math.Exp(a), math.Exp(b), math.Expm1(b-a)
	}
	return true
}
