package stat

import "math"

// Blocked is an additive fit of a randomised block design: each value is the effect of
// its treatment, plus that of its block, plus an error of one variance. What is common to
// a block, such as how fast a machine was that hour, is no part of a difference then.
type Blocked struct {
	SD float64 // of the errors
	DF float64 // of SD

	values        [][]float64
	treatments    float64 // of a block, on average
	blockVariance float64 // of the blocks' means: of a block, and of so many errors
	blockDF       float64
}

// Blocks fits values by treatment and block; NaN is one that was not measured. For ratios
// of times or rates, give logarithms. ok is false where nothing is left to tell the
// spread by.
//
// It is least squares by alternating between treatments and blocks, which converges to
// the fit of an incomplete design too (Searle, Linear Models for Unbalanced Data, 1987).
func Blocks(values [][]float64) (fit Blocked, ok bool) {
	treatments, blocks := len(values), 0
	for _, row := range values {
		blocks = max(blocks, len(row))
	}
	effect, level := make([]float64, treatments), make([]float64, blocks)
	known := func(t, b int) bool { return b < len(values[t]) && !math.IsNaN(values[t][b]) }
	const sweeps, enough = 500, 1e-11
	for range sweeps {
		moved := 0.0
		for t := range values {
			moved = max(moved, settle(&effect[t], blocks, func(b int) (float64, bool) {
				if !known(t, b) {
					return 0, false
				}
				return values[t][b] - level[b], true
			}))
		}
		for b := range level {
			moved = max(moved, settle(&level[b], treatments, func(t int) (float64, bool) {
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
	fit = Blocked{DF: float64(n - parts(treatments, blocks, known)), values: values}
	if fit.DF < 1 {
		return fit, false
	}
	fit.SD = math.Sqrt(squares / fit.DF)
	var levels []float64
	for b := range level {
		for t := range values {
			if known(t, b) {
				levels = append(levels, level[b])
				break
			}
		}
	}
	_, sd := Moments(levels)
	fit.treatments, fit.blockVariance, fit.blockDF = float64(n)/float64(len(levels)), sd*sd, float64(len(levels)-1)
	return fit, fit.SD > 0
}

// settle puts a mean in place, and says how far it moved.
func settle(at *float64, n int, value func(int) (float64, bool)) float64 {
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

// parts counts the parameters that the values determine: one for each treatment and block
// with a value, less one for each connected part of the design.
func parts(treatments, blocks int, known func(t, b int) bool) int {
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

// suspicious is how unlikely it is that a pair of treatments has the spread of all, where
// its own is taken instead.
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
	if ratio := own * own / (sd * sd); ratio > 1 && fisherBeyond(ratio, n-1, f.DF) < suspicious {
		sd, df = own, n-1
	}
	d = Difference{Estimate: mean, SE: sd / math.Sqrt(n), DF: df}
	d.P = 2 * StudentCDF(-math.Abs(mean)/d.SE, df)
	d.Interval = studentInterval(mean, d.SE, df, level)
	return d, true
}

// fisherBeyond is P(F > x) of Fisher's distribution with n and m degrees of freedom.
func fisherBeyond(x, n, m float64) float64 { return IncompleteBeta(m/(m+n*x), m/2, n/2) }

// Level is the mean of one treatment over all blocks there could be, with a t interval. Its
// values are independent, block by block, but those of other treatments in the same blocks
// are not independent of them: so their spread helps to know this one's, and the degrees
// of freedom remain those of its own values, which is on the safe side.
func (f Blocked) Level(of int, level float64) (d Difference, ok bool) {
	squares, df := 0.0, 0.0
	var own []float64
	for t, row := range f.values {
		var xs []float64
		for _, x := range row {
			if !math.IsNaN(x) {
				xs = append(xs, x)
			}
		}
		if len(xs) > 1 {
			_, sd := Moments(xs)
			squares, df = squares+sd*sd*float64(len(xs)-1), df+float64(len(xs)-1)
		}
		if t == of {
			own = xs
		}
	}
	if len(own) < 2 || !(squares > 0) {
		return Difference{}, false
	}
	mean, itself := Moments(own)
	n := float64(len(own))
	sd := math.Sqrt(squares / df)
	if ratio := itself * itself / (sd * sd); ratio > 1 && df > n-1 && fisherBeyond(ratio, n-1, df-n+1) < suspicious {
		sd = itself
	}
	d = Difference{Estimate: mean, SE: sd / math.Sqrt(n), DF: n - 1, P: math.NaN()}
	d.Interval = studentInterval(mean, d.SE, d.DF, level)
	return d, true
}

// Bound is how far the mean of a treatment over all blocks there could be lies from what
// was measured, to either side: further with a probability of at most tail for any of
// those that are asked about together, of whom there are so many. It is how far all lie
// together, by the blocks' means, and how far each lies from those, by the errors; each
// has half of the tail.
func (f Blocked) Bound(of int, tail float64, together int) float64 {
	n := 0.0
	for _, x := range f.values[of] {
		if !math.IsNaN(x) {
			n++
		}
	}
	if n < 2 || !(f.blockDF >= 1) {
		return math.Inf(1)
	}
	common := StudentQuantile(1-tail/2, f.blockDF) * math.Sqrt(f.blockVariance/(f.blockDF+1))
	own := StudentQuantile(1-tail/2/float64(together), f.DF) * f.SD * math.Sqrt(max(0, 1-1/f.treatments)/n)
	return common + own
}
