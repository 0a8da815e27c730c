package decide

import (
	"math"

	"pitot/internal/stat"
)

// Interaction is what two knobs do together beyond what each does alone, as ln of what is
// carried: the difference of the crossing from the first knob, less that of the second from
// the baseline, by blocks that have all four. Its error is the design's, of the errors of
// four launches a block. ok is false for fewer than two blocks.
func Interaction(p Problem, d Decision, first, second, both int) (out stat.Difference, ok bool) {
	logs := make([][]float64, len(p.Carries))
	for i, row := range p.Carries {
		for b, x := range row {
			if d.IsBad(i, b) {
				x = math.NaN()
			}
			logs[i] = append(logs[i], math.Log(x))
		}
	}
	fit, ok := stat.Blocks(logs)
	if !ok {
		return out, false
	}
	sum, n := 0.0, 0.0
	for b := range logs[0] {
		if x := logs[both][b] - logs[first][b] - logs[second][b] + logs[0][b]; !math.IsNaN(x) {
			sum, n = sum+x, n+1
		}
	}
	if n < 2 {
		return out, false
	}
	out = stat.Difference{Estimate: sum / n, SE: 2 * fit.SD / math.Sqrt(n), DF: fit.DF}
	out.P = 2 * stat.StudentCDF(-math.Abs(out.Estimate)/out.SE, out.DF)
	half := stat.StudentQuantile((1+p.Confidence)/2, out.DF) * out.SE
	out.Interval = stat.Interval{Lo: out.Estimate - half, Hi: out.Estimate + half}
	return out, true
}
