package stats

import "math"

// Blocked is an additive fit of a randomised block design: each value is the effect of
// its treatment, plus that of its block, plus an error of one variance. What is common to
// a block, such as how fast a machine was that hour, is no part of a difference then.
type Blocked struct {
	SD float64 // of the errors
	DF float64 // of SD

	Levels []float64 // of the blocks, the treatments' effects taken out; their mean is 0

	values     [][]float64
	effects    []float64
	treatments float64 // of a block, on average
	alone      bool    // there is one treatment: blocks are part of the errors
}

// FitBlocks fits values by treatment and block; NaN is one that was not measured. For ratios
// of times or rates, give logarithms. Where there is one treatment alone, blocks are part of
// its errors. ok is false where nothing is left to tell the spread by.
//
// It is least squares by alternating between treatments and blocks, which converges to
// the fit of an incomplete design too (Searle, Linear Models for Unbalanced Data, 1987).
func FitBlocks(values [][]float64) (fit Blocked, ok bool) {
	treatments, blocks := len(values), 0
	for _, row := range values {
		blocks = max(blocks, len(row))
	}
	effect, level := make([]float64, treatments), make([]float64, blocks)
	known := func(t, b int) bool { return b < len(values[t]) && !math.IsNaN(values[t][b]) }
	alone := hasSingleTreatment(values)
	const sweeps, enough = 500, 1e-11
	for range sweeps {
		moved := 0.0
		for t := range values {
			moved = max(moved, shiftMean(&effect[t], blocks, func(b int) (float64, bool) {
				if !known(t, b) {
					return 0, false
				}
				return values[t][b] - level[b], true
			}))
		}
		for b := range level {
			if alone { // nothing tells a block from its error
				break
			}
			moved = max(moved, shiftMean(&level[b], treatments, func(t int) (float64, bool) {
				if !known(t, b) {
					return 0, false
				}
				return values[t][b] - effect[t], true
			}))
		}
		if moved < enough {
			break
		}
	}
	squares, n := 0.0, 0
	for t := range values {
		for b := range values[t] {
			if known(t, b) {
				d := values[t][b] - effect[t] - level[b]
				squares += d * d
				n++
			}
		}
	}
	fit = Blocked{DF: float64(n - parameterCount(treatments, blocks, known)), values: values, alone: alone}
	if alone {
		fit.DF = float64(n - 1)
	}
	if fit.DF < 1 {
		return fit, false
	}
	fit.SD = math.Sqrt(squares / fit.DF)
	fit.Levels, fit.effects = level, effect
	used, mean := 0.0, 0.0
	for b := range level {
		if fit.treatmentCount(b) > 0 {
			used, mean = used+1, mean+level[b]
		}
	}
	fit.treatments = float64(n) / used
	for b := range level {
		level[b] -= mean / used
	}
	for t := range effect {
		effect[t] += mean / used
	}
	return fit, fit.SD > 0
}

// hasSingleTreatment says that there are values of one treatment alone.
func hasSingleTreatment(values [][]float64) bool {
	n := 0
	for _, row := range values {
		for _, x := range row {
			if !math.IsNaN(x) {
				n++
				break
			}
		}
	}
	return n == 1
}

// shiftMean puts a mean in place, and says how far it moved.
func shiftMean(at *float64, n int, value func(int) (float64, bool)) float64 {
	sum, count := 0.0, 0
	for i := range n {
		if x, ok := value(i); ok {
			sum, count = sum+x, count+1
		}
	}
	if count == 0 {
		return 0
	}
	was := *at
	*at = sum / float64(count)
	return math.Abs(*at - was)
}

// parameterCount counts the parameters that the values determine: one for each treatment and block
// with a value, less one for each connected part of the design.
func parameterCount(treatments, blocks int, known func(t, b int) bool) int {
	part := make([]int, treatments+blocks)
	for i := range part {
		part[i] = i
	}
	find := func(i int) int {
		for part[i] != i {
			i = part[i]
		}
		return i
	}
	used := make([]bool, len(part))
	for t := range treatments {
		for b := range blocks {
			if known(t, b) {
				used[t], used[treatments+b] = true, true
				part[find(t)] = find(treatments + b)
			}
		}
	}
	n := 0
	for i := range part {
		if used[i] {
			n++
			if find(i) == i {
				n--
			}
		}
	}
	return n
}

// suspicious is the probability below which a pair of treatments counts as not having the spread of
// all. Its own spread is taken instead.
const suspicious = 0.05

// Difference gives treatment b less treatment a, over the blocks that have both, with a t
// interval. Its standard error is that of the whole design, unless the differences
// between these two vary by more than it explains: then it is their own. ok is false where
// fewer than two blocks have both.
func (f Blocked) Difference(a, b int, level float64) (d Difference, ok bool) {
	var ds []float64
	for i := range min(len(f.values[a]), len(f.values[b])) {
		if x := f.values[b][i] - f.values[a][i]; !math.IsNaN(x) {
			ds = append(ds, x)
		}
	}
	if len(ds) < 2 || !(f.SD > 0) {
		return Difference{}, false
	}
	mean, own := Moments(ds)
	n := float64(len(ds))
	sd, df := f.SD*math.Sqrt2, f.DF
	if ratio := own * own / (sd * sd); ratio > 1 && FisherBeyond(ratio, n-1, f.DF) < suspicious {
		sd, df = own, n-1
	}
	d = Difference{Estimate: mean, SE: sd / math.Sqrt(n), DF: df}
	d.P = 2 * StudentCDF(-math.Abs(mean)/d.SE, df)
	d.Interval = studentInterval(mean, d.SE, df, level)
	return d, true
}

// FisherBeyond is P(F > x) of Fisher's distribution with n and m degrees of freedom.
func FisherBeyond(x, n, m float64) float64 { return IncompleteBeta(m/(m+n*x), m/2, n/2) }

// Mean is that of one treatment over the blocks in which it was measured, with a t
// interval. What is common to a block is part of it: nothing is said of other blocks. Its
// standard error is that of the whole design, unless its own errors vary by more than that
// explains: then it is their own.
func (f Blocked) Mean(of int, level float64) (d Difference, ok bool) {
	var own []float64
	squares := 0.0
	for b, x := range f.values[of] {
		if !math.IsNaN(x) {
			r := x - f.effects[of] - f.Levels[b]
			own, squares = append(own, x), squares+r*r
		}
	}
	n := float64(len(own))
	if n == 0 || !(f.SD > 0) {
		return Difference{}, false
	}
	mean, _ := Moments(own)
	sd, df := f.SD, f.DF
	if itself := squares / ((n - 1) * (1 - 1/f.treatments)); n > 1 && !f.alone && itself > sd*sd && FisherBeyond(itself/(sd*sd), n-1, f.DF) < suspicious {
		sd, df = math.Sqrt(itself), n-1
	}
	d = Difference{Estimate: mean, SE: sd / math.Sqrt(n), DF: df, P: math.NaN()}
	d.Interval = studentInterval(mean, d.SE, df, level)
	return d, true
}

// Trend returns the increase from each block to the next, with a t interval. It fits a line through
// the blocks' levels. Its standard error is that of the errors, or of the blocks about the line
// where they vary by more. ok is false for fewer than four blocks, since three lie near a line by
// chance. It is also false for one treatment alone.
func (f Blocked) Trend(level float64) (d Difference, ok bool) {
	var at, ys, weights []float64
	for b, y := range f.Levels {
		if n := f.treatmentCount(b); n > 0 {
			at, ys, weights = append(at, float64(b)), append(ys, y), append(weights, n)
		}
	}
	const least = 4
	if len(ys) < least || f.alone {
		return d, false
	}
	sum, mean, top, bottom := 0.0, 0.0, 0.0, 0.0
	for i, w := range weights {
		sum, mean = sum+w, mean+w*at[i]
	}
	mean /= sum
	middle := 0.0
	for i, w := range weights {
		x := at[i] - mean
		top, bottom, middle = top+w*x*ys[i], bottom+w*x*x, middle+w*ys[i]/sum
	}
	d.Estimate = top / bottom
	squares := 0.0
	for i, w := range weights {
		r := ys[i] - middle - d.Estimate*(at[i]-mean)
		squares += w * r * r
	}
	sd, df := f.SD, f.DF
	if about := squares / float64(len(ys)-2); about > sd*sd {
		sd, df = math.Sqrt(about), float64(len(ys)-2)
	}
	d.SE, d.DF = sd/math.Sqrt(bottom), df
	d.P = 2 * StudentCDF(-math.Abs(d.Estimate)/d.SE, df)
	d.Interval = studentInterval(d.Estimate, d.SE, df, level)
	return d, true
}

// treatmentCount returns the number of treatments of a block.
func (f Blocked) treatmentCount(block int) (n float64) {
	for _, row := range f.values {
		if block < len(row) && !math.IsNaN(row[block]) {
			n++
		}
	}
	return n
}
