package predict

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"

	"pitot/internal/stats"
)

// A machine has slow phases that last longer than a step. What the regression
// of step times leaves over tells them from the jitter of single steps: the
// residuals of neighbouring steps go together. Their autocovariance falls as
// that of the engine's slow phases, an Ornstein-Uhlenbeck process: with the
// lag l as sd²·exp(−l/time).
//
// What the regression lacks goes on in the next steps too: parts of a long prompt make
// steps longer for seconds, and no column is of them. A replay without phases, on the
// twin as a fit without phases has it, leaves the same over. Only what the run's
// autocovariance has beyond the replay's is of phases.

// slowness holds what the residuals say of slow phases.
type slowness struct {
	cv, time float64  // the engine's SlowCV; SlowTime in s
	fast     float64  // standard deviation of the logarithm of what is no phase
	lacking  float64  // variance times time of what the regression lacks and lasts, s
	cvSE     float64  // standard error of the logarithm of cv
	timeSE   float64  // and of time
	seconds  float64  // that were looked at
	courses  []course // of each run
}

// stepResidual is a step's: the logarithm of measured over expected, at
// a time in seconds.
type stepResidual struct{ at, log float64 }

// stepResiduals gives those of a run in the order of time. Streams that get
// tokens from one step see the same step: their gaps count as one.
func stepResiduals(gaps []gap, c *[columns]float64) []stepResidual {
	gaps = slices.Clone(gaps)
	stats.SortStable(gaps, func(a, b gap) int { return cmp.Compare(a.to, b.to) })
	var list []stepResidual
	for i := 0; i < len(gaps); {
		first := gaps[i]
		sum, n := 0.0, 0.0
		for ; i < len(gaps) && gaps[i].to-first.to < (first.to-first.from)/2; i++ {
			expected := 0.0
			for j, v := range gaps[i].x {
				expected += v * c[j]
			}
			if expected > 0 {
				sum += math.Log((gaps[i].to - gaps[i].from) / expected)
				n++
			}
		}
		if n > 0 {
			list = append(list, stepResidual{(first.from + first.to) / 2, sum / n})
		}
	}
	stats.SortStable(list, func(a, b stepResidual) int { return cmp.Compare(a.at, b.at) })
	return list
}

// winsorise pulls values that are far from the median, by more than four
// standard deviations as the median absolute deviation has it, back to there: a
// single stall says nothing of phases.
func winsorise(list []stepResidual) {
	if len(list) == 0 {
		return
	}
	v := make([]float64, len(list))
	for i := range list {
		v[i] = list[i].log
	}
	slices.Sort(v)
	m := v[len(v)/2]
	for i := range v {
		v[i] = math.Abs(v[i] - m)
	}
	slices.Sort(v)
	far := 4 * 1.4826 * v[len(v)/2]
	for i := range list {
		list[i].log = min(max(list[i].log, m-far), m+far)
	}
}

// blocks is the number of stretches of a run that the jackknife leaves out in turn.
const blocks = 20

// covariances are the sums of products of residuals by their lag, each
// stretch of the runs apart, so that any can be left out.
type covariances struct {
	lag      []float64   // s, the mean of the bin
	products [][]float64 // [stretch][bin]
	pairs    [][]float64
	calm     []float64 // covariance in each bin without phases, nil where it is not known
	span     float64   // s, of the shortest run
	variance float64   // of single residuals
	seconds  float64   // of all runs

	times  []float64   // s, correlation times to try
	shapes [][]float64 // of each, what a variance of 1 gives each bin
}

// autocovariances bins the lags of all runs' residuals: from three steps on,
// for a chunk that is late makes its gap longer and the next one shorter, up to
// a tenth of the shortest run, in bins that grow with the lag. The mean of a run
// is that of its own phases: all covariances lack what it varies by. calm are residuals
// of replays without phases, nil for none.
func autocovariances(runs, calm [][]stepResidual) (v covariances, ok bool) {
	var between []float64
	shortest := math.Inf(1)
	for _, list := range runs {
		if len(list) < 100 {
			continue
		}
		for i := 1; i < len(list); i++ {
			between = append(between, list[i].at-list[i-1].at)
		}
		span := list[len(list)-1].at - list[0].at
		shortest = min(shortest, span)
		v.seconds += span
	}
	if len(between) == 0 {
		return v, false
	}
	slices.Sort(between)
	cell := max(1.5*between[len(between)/2], shortest/1e4)
	most := int(shortest / cell / 10)
	var edges []int
	for l := 2; l <= most; l = max(l+1, l*5/4) {
		edges = append(edges, l)
	}
	if len(edges) < 8 {
		return v, false
	}
	bins := len(edges) - 1
	v.lag = make([]float64, bins)
	for b := range bins {
		v.lag[b] = cell * float64(edges[b]+edges[b+1]-1) / 2
	}
	v.span = shortest
	v.addAll(runs, cell, edges)
	for t := v.lag[0]; t < v.span/4; t *= 1.05 {
		x := t / v.span
		lost := 2 * x * (1 - x*(1-math.Exp(-1/x))) // the variance of the mean over that at a time
		shape := make([]float64, bins)
		for b, l := range v.lag {
			shape[b] = math.Exp(-l/t) - lost
		}
		v.times, v.shapes = append(v.times, t), append(v.shapes, shape)
	}
	if calm != nil {
		w := covariances{lag: v.lag}
		w.addAll(calm, cell, edges)
		v.calm = w.means(-1)
	}
	return v, true
}

// addAll adds the products of runs' residuals up, in bins of lags that are so many cells.
func (v *covariances) addAll(runs [][]stepResidual, cell float64, edges []int) {
	bins := len(v.lag)
	n := 0.0
	for _, list := range runs {
		if len(list) < 100 {
			continue
		}
		mean := 0.0
		for _, x := range list {
			mean += x.log / float64(len(list))
		}
		cells := int((list[len(list)-1].at-list[0].at)/cell) + 1
		sums, counts := make([]float64, cells), make([]float64, cells)
		for _, x := range list {
			k := int((x.at - list[0].at) / cell)
			sums[k] += x.log - mean
			counts[k]++
			v.variance += (x.log - mean) * (x.log - mean)
			n++
		}
		products, pairs := newMatrix(blocks, bins), newMatrix(blocks, bins)
		for b := range bins {
			for l := edges[b]; l < edges[b+1]; l++ {
				for k := range cells - l {
					s := k * blocks / cells
					products[s][b] += sums[k] * sums[k+l]
					pairs[s][b] += counts[k] * counts[k+l]
				}
			}
		}
		v.products, v.pairs = append(v.products, products...), append(v.pairs, pairs...)
	}
	v.variance /= max(n, 1)
}

// means is the covariance in each bin, with one stretch left out (none if it is
// negative).
func (v *covariances) means(out int) []float64 {
	c := make([]float64, len(v.lag))
	for b := range c {
		p, n := 0.0, 0.0
		for s := range v.products {
			if s != out {
				p, n = p+v.products[s][b], n+v.pairs[s][b]
			}
		}
		if n > 0 {
			c[b] = p / n
		}
	}
	return c
}

// fitPhases finds variance and correlation time of phases, with one stretch left out (none
// if it is negative).
func (v *covariances) fitPhases(out int) (variance, time float64) {
	c := v.means(out)
	for b, x := range v.calm {
		c[b] -= x
	}
	return v.fitTo(c)
}

// fitTo finds those of a process with these covariances: for each time the variance
// follows by least squares.
func (v *covariances) fitTo(c []float64) (variance, time float64) {
	best := math.Inf(1)
	for i, shape := range v.shapes {
		gc, gg := 0.0, 0.0
		for b, g := range shape {
			gc, gg = gc+g*c[b], gg+g*g
		}
		s, e := max(gc/gg, 0), 0.0
		for b, g := range shape {
			e += (c[b] - s*g) * (c[b] - s*g)
		}
		if e < best {
			best, variance, time = e, s, v.times[i]
		}
	}
	return variance, time
}

// grains is the number of values that a correlation time has in a course of phases.
const grains = 16

// course holds how slow phases went through a run. Its factors are on the duration of steps, one
// for each grain of time from start on, in seconds.
type course struct {
	start, grain float64
	factors      []float64
}

// factorAt is the factor at a time.
func (c *course) factorAt(t float64) float64 {
	k := int((t - c.start) / c.grain)
	return c.factors[min(max(k, 0), len(c.factors)-1)]
}

// drawCourse draws a course that the slow phases of a run may have taken, given all
// residuals; its mean over the run is 1. It filters forwards as Kalman does and
// samples backwards (Carter and Kohn, Biometrika 81, 541, 1994). The
// expectation would be too smooth: its tails are shorter than the run's.
func (s *slowness) drawCourse(list []stepResidual) course {
	if len(list) == 0 {
		return course{grain: 1, factors: []float64{1}}
	}
	grain, start := s.time/grains, list[0].at
	n := int((list[len(list)-1].at-start)/grain) + 1
	sums, counts := make([]float64, n), make([]float64, n)
	mean := 0.0
	for _, r := range list {
		k := int((r.at - start) / grain)
		sums[k] += r.log
		counts[k]++
		mean += r.log / float64(len(list))
	}
	rho, prior := math.Exp(-1.0/grains), s.cv*s.cv
	noise := (1 - rho*rho) * prior
	x, v := make([]float64, n), make([]float64, n) // mean and variance, given what came before
	for k := range n {
		m, p := 0.0, prior
		if k > 0 {
			m, p = rho*x[k-1], rho*rho*v[k-1]+noise
		}
		x[k], v[k] = m, p
		if counts[k] > 0 { // without jitter too the phases may be all there is
			gain := p / (p + s.fast*s.fast/counts[k] + 2*s.lacking/grain)
			x[k], v[k] = m+gain*(sums[k]/counts[k]-mean-m), (1-gain)*p
		}
	}
	dice := rand.New(rand.NewPCG(1, 0))
	sum := 0.0
	for k := n - 1; k >= 0; k-- {
		if k < n-1 {
			g := rho * v[k] / (rho*rho*v[k] + noise)
			x[k] += g * (x[k+1] - rho*x[k])
			v[k] *= 1 - g*rho
		}
		x[k] += math.Sqrt(v[k]) * dice.NormFloat64()
		sum += math.Exp(x[k])
	}
	for k := range x {
		x[k] = math.Exp(x[k]) * float64(n) / sum
	}
	return course{start, grain, x}
}

// least is the smallest slow part that is distinguished from what the regression lacks, which
// goes on in the next steps too.
const least = 0.05

// stretchSteps is the number of steps that a stretch of [regression.solveWithin] has, about.
const stretchSteps = 60

// solveWithin gives the coefficients as what changes within short stretches of a run
// tells them, where a phase is the same: while steps are slow more requests run
// at once, so over longer times the cost of a row and the phases take a part of
// each other.
func (g *regression) solveWithin() (c [columns]float64) {
	var w regression
	var all [columns + 1]float64 // sums over all gaps: of the columns, and of the durations
	var squares [columns]float64
	for _, gaps := range g.gaps {
		took := make([]float64, len(gaps))
		for i, p := range gaps {
			took[i] = p.to - p.from
		}
		slices.Sort(took)
		if len(took) == 0 {
			continue
		}
		stretch := stretchSteps * took[len(took)/2]
		sums := map[int]*[columns + 1]float64{}
		for _, p := range gaps {
			k := int(p.from / stretch)
			if sums[k] == nil {
				sums[k] = new([columns + 1]float64)
			}
			f := 1 / p.x[colRow]
			for a := range columns {
				for b := range columns {
					w.m[a][b] += f * p.x[a] * p.x[b]
				}
				w.v[a] += f * p.x[a] * (p.to - p.from)
				squares[a] += f * p.x[a] * p.x[a]
				sums[k][a] += f * p.x[a]
			}
			sums[k][columns] += f * (p.to - p.from)
		}
		for _, k := range slices.Sorted(maps.Keys(sums)) {
			s := sums[k]
			for a := range columns {
				for b := range columns {
					w.m[a][b] -= s[a] * s[b] / s[colStep]
				}
				w.v[a] -= s[a] * s[columns] / s[colStep]
			}
			for a, x := range s {
				all[a] += x
			}
		}
	}
	for a := range columns {
		if w.m[a][a] < 1e-6*squares[a] { // nothing changes within a stretch
			w.m[a][a] = 0
		}
	}
	c = w.solve()
	c[colStep] = all[columns]
	for a := colStep + 1; a < columns; a++ {
		c[colStep] -= c[a] * all[a]
	}
	c[colStep] /= all[colStep]
	return c
}

// residualsByRun are those of the steps of each run, by the regression of all.
func (g *regression) residualsByRun() [][]stepResidual {
	c := g.solveWithin()
	runs := make([][]stepResidual, len(g.gaps))
	for i, gaps := range g.gaps {
		runs[i] = stepResiduals(gaps, &c)
		winsorise(runs[i])
	}
	return runs
}

// slowPhases looks for them in the gaps of the runs, and leaves the regression
// without them. What replays without phases leave over too is taken for none, where
// there are any.
func (g *regression) slowPhases() (s slowness) {
	g.addEquations(nil)
	runs := g.residualsByRun()
	var calm [][]stepResidual
	if g.calm != nil {
		calm = (&regression{gaps: g.calm}).residualsByRun()
	}
	v, ok := autocovariances(runs, calm)
	if !ok {
		return slowness{}
	}
	// What does not last longer than the first lags is no phase: what the
	// regression lacks of a step goes on in the next ones.
	if s = v.estimateSlowness(); s.cv < least || s.time < 2*v.lag[0] {
		return slowness{seconds: s.seconds}
	}
	for _, list := range runs {
		s.courses = append(s.courses, s.drawCourse(list))
	}
	g.addEquations(s.courses)
	return s
}

// estimateSlowness is the fit, and how sure it is: by the block jackknife (Künsch,
// Annals of Statistics 17, 1217, 1989).
func (v *covariances) estimateSlowness() slowness {
	variance, time := v.fitPhases(-1)
	s := slowness{cv: math.Sqrt(variance), time: time, seconds: v.seconds}
	rest := v.variance - variance
	if v.calm != nil {
		lacking, lasts := v.fitTo(v.calm)
		s.lacking = lacking * lasts
		rest -= lacking
	}
	s.fast = math.Sqrt(max(rest, 0))
	n := float64(len(v.products))
	var logs [2][]float64
	for out := range v.products {
		a, b := v.fitPhases(out)
		logs[0], logs[1] = append(logs[0], math.Log(max(a, 1e-12))/2), append(logs[1], math.Log(b))
	}
	se := func(l []float64) float64 {
		mean, sum := 0.0, 0.0
		for _, x := range l {
			mean += x / n
		}
		for _, x := range l {
			sum += (x - mean) * (x - mean)
		}
		return math.Sqrt(sum * (n - 1) / n)
	}
	// No less than the variance of a process of this correlation time is known
	// when all of it is seen: 2·variance²·time/seconds (Bartlett, 1946).
	bartlett := math.Sqrt(2 * s.time / s.seconds)
	s.cvSE, s.timeSE = max(se(logs[0]), bartlett/2), max(se(logs[1]), bartlett)
	return s
}

// lasting is the number of correlation times that the runs must last for the phases to be known.
const lasting = 20

// parameters are the two settings as a fit tells them.
func (s *slowness) parameters() []Fitted {
	cv, span := Fitted{Name: "slow_cv", Value: s.cv, Factor: 1}, Fitted{Name: "slow_time", Value: s.time, Unit: "s", Factor: 1}
	switch {
	case s.seconds == 0:
		cv.Reason = "the runs have too few steps to look for slow phases"
	case s.cv == 0:
		cv.Reason = fmt.Sprintf("no slow phases found: less than %.0f %%", least*100)
		cv.Identified = true
	case s.seconds < lasting*s.time:
		cv.Reason = fmt.Sprintf("only %.0f correlation times, of %d", s.seconds/s.time, lasting)
	default:
		cv.Factor, span.Factor = math.Exp(1.96*s.cvSE), math.Exp(1.96*s.timeSE)
		cv.Identified, span.Identified = cv.Factor < 2, span.Factor < 4
	}
	for _, x := range []*Fitted{&cv, &span} {
		x.Low, x.High = x.Value/x.Factor, x.Value*x.Factor
	}
	if s.cv == 0 {
		return []Fitted{cv}
	}
	span.Reason = cv.Reason
	return []Fitted{cv, span}
}
