package decide

import (
	"math"
	"slices"

	"pitot/internal/stats"
)

// Some launches are bad: another process is on the machine, a GPU is throttled, a kernel
// was tuned badly at the start. Such a launch carries a good deal less in whatever
// configuration it happens, and whoever serves with it starts it again. So it is named and
// not counted. What is bad is decided by one rule for all configurations, which is fixed
// before anything is measured: what each launch carries is its configuration's and its
// block's, with an error that is either small or, in a bad launch, anything down to a
// quarter. The fit of this mixture says of each launch how likely it is bad (Tukey, "A
// survey of sampling from contaminated distributions", 1960; by EM: Aitkin and Wilson,
// Technometrics 22, 1980). Only what is far too low is bad: a launch that carries more than
// others is none that anybody would do again.

// Bad is a launch that is not counted.
type Bad struct {
	Configuration, Block int     // of block from 0
	Less                 float64 // than its configuration and block make one expect, as a share
}

const (
	// badLeast is the least shortfall of a launch that is called bad, as ln of the load it carries.
	badLeast = 0.105 // a tenth
	// badScale is a third of how much less bad launches are thought to carry on average, as
	// ln; see badDensity.
	badScale = 0.1
	// badBefore and goodBefore are what is thought of the share of bad launches before any
	// is seen: as after so many of each.
	badBefore, goodBefore = 0.5, 9.5
	// spreadBefore is the prior spread of good launches, besides the part that few requests add to
	// it. spreadWeight is the number of launches that the prior counts for.
	spreadBefore, spreadWeight = 0.03, 4
	// badSpreads is the least number of spreads by which a bad launch is below the expected load.
	badSpreads = 3
	// badGain is the least gain in likelihood from bad launches over good ones that differ by more.
	// It is in ln for each launch. Without it the low ones of launches that differ much are taken
	// for bad. Those left are then taken for surer than they are.
	badGain = 0.4
	// badEnough is so much of all launches together that there need not be more.
	badEnough = 10
	// blocksBefore is the prior spread of blocks. A block in which most launches are bad must not
	// look like a machine that is slow for an hour.
	blocksBefore = 0.05
)

// badOf names the bad ones of launches, by configuration and block, of which logs are what
// they carry. A configuration most of whose launches look bad is none of which some are:
// all of them count, and uneven says so. looked is how far a launch is off for its
// requests being few.
func badOf(logs [][]float64, looked float64) (list []Bad, uneven []bool) {
	uneven = make([]bool, len(logs))
	best := mixture{fit: math.Inf(-1)}
	for _, from := range []start{middles, highest, steady} {
		if m := fitMixture(logs, math.Hypot(spreadBefore, looked), from); m.fit > best.fit {
			best = m
		}
	}
	if math.IsInf(best.fit, -1) {
		return nil, uneven
	}
	explained := best.isLikelier(logs)
	for i, row := range logs {
		var own []Bad
		n := 0
		for b, x := range row {
			if math.IsNaN(x) {
				continue
			}
			n++
			if r := x - best.effect[i] - best.level[b]; best.good[i][b] < 0.5 && r < -max(badLeast, badSpreads*max(best.sd, looked)) {
				own = append(own, Bad{i, b, -math.Expm1(r)})
			}
		}
		if uneven[i] = 2*len(own) > n; explained && !uneven[i] {
			list = append(list, own...)
		}
	}
	return list, uneven
}

// mixture is a fit: what a launch carries is its configuration's and its block's.
type mixture struct {
	effect, level []float64
	good          [][]float64 // how likely each launch is one
	before, sd    float64     // spread of good launches, as thought before and as found
	fit           float64     // ln of the likelihood, with what was thought before
}

// start is where a fit begins to climb. There is more than one top: of two launches that
// differ much the lower one may be bad, or neither.
type start int

const (
	middles start = iota // configurations and blocks at their medians
	highest              // and then configurations at their highest
	steady               // the same, with blocks that are all alike
)

// fitMixture climbs from a start; before is what is thought of the spread.
func fitMixture(logs [][]float64, before float64, from start) (m mixture) {
	blocks := 0
	for _, row := range logs {
		blocks = max(blocks, len(row))
	}
	m = mixture{effect: make([]float64, len(logs)), level: make([]float64, blocks), good: make([][]float64, len(logs)), before: before, fit: math.Inf(-1)}
	n := 0.0
	for i, row := range logs {
		m.good[i] = make([]float64, len(row))
		for b, x := range row {
			if !math.IsNaN(x) {
				m.good[i][b] = 1
				n++
			}
		}
	}
	if blocks < 2 || n < 4 {
		return m
	}
	m.initializeEffects(logs, from)
	share := badBefore / (badBefore + goodBefore)
	m.sd = before
	const rounds, enough = 60, 1e-6
	for range rounds {
		was := m.fit
		m.weigh(logs, share)
		if math.Abs(m.fit-was) < enough {
			break
		}
		m.updateMeans(logs)
		m.sd, share = m.goodSpread(logs)
	}
	return m
}

// initializeEffects puts configurations and blocks in place: medians are taken in turn (Tukey,
// Exploratory Data Analysis, 1977).
func (m *mixture) initializeEffects(logs [][]float64, from start) {
	left := func(i int, of func([]float64) float64) {
		var xs []float64
		for b, x := range logs[i] {
			if !math.IsNaN(x) {
				xs = append(xs, x-m.level[b])
			}
		}
		if len(xs) > 0 {
			m.effect[i] = of(xs)
		}
	}
	const turns = 3
	for range turns {
		for i := range logs {
			left(i, sortedMedian)
		}
		for b := range m.level {
			var xs []float64
			for i, row := range logs {
				if b < len(row) && !math.IsNaN(row[b]) {
					xs = append(xs, row[b]-m.effect[i])
				}
			}
			if len(xs) > 0 {
				m.level[b] = sortedMedian(xs)
			}
		}
	}
	if from == steady {
		clear(m.level)
	}
	if from != middles {
		for i := range logs {
			left(i, slices.Max)
		}
	}
}

// sortedMedian is the median, and sorts.
func sortedMedian(xs []float64) float64 {
	slices.Sort(xs)
	return (xs[(len(xs)-1)/2] + xs[len(xs)/2]) / 2
}

// weigh says how likely each launch is a good one, and how likely all of them are.
func (m *mixture) weigh(logs [][]float64, share float64) {
	sd := m.sd
	m.fit = (badBefore)*math.Log(share) + goodBefore*math.Log(1-share) - spreadWeight*(math.Log(sd)+m.before*m.before/(2*sd*sd))
	for _, x := range m.level {
		m.fit -= x * x / (2 * blocksBefore * blocksBefore)
	}
	for i, row := range logs {
		for b, x := range row {
			if math.IsNaN(x) {
				continue
			}
			r := x - m.effect[i] - m.level[b]
			good := (1 - share) * math.Exp(-r*r/(2*sd*sd)) / (sd * math.Sqrt(2*math.Pi))
			bad := share * badDensity(r)
			m.good[i][b] = good / (good + bad)
			m.fit += math.Log(good + bad)
		}
	}
}

// badDensity is that of what bad launches carry less, as ln: of the gamma distribution of
// shape 3, which leaves out what is hardly less and thins out beyond a half.
func badDensity(r float64) float64 {
	const never = 1e-12 // so that no launch is impossible
	x := -r / badScale
	if density := x * x / 2 * math.Exp(-x) / badScale; x > 0 && density > never { // infinitely far it is none
		return density
	}
	return never
}

// badBeyond returns the probability that a bad launch carries less by the given amount or more, as
// ln.
func badBeyond(less float64) float64 {
	x := max(less, 0) / badScale
	return math.Exp(-x) * (1 + x + x*x/2)
}

// updateMeans puts configurations and blocks at the means of their good launches.
func (m *mixture) updateMeans(logs [][]float64) {
	mean := func(at *float64, n int, before float64, of func(int) (w, x float64)) {
		sum, weight := 0.0, before
		for k := range n {
			if w, x := of(k); w > 0 {
				sum, weight = sum+w*x, weight+w
			}
		}
		if weight > 0 {
			*at = sum / weight
		}
	}
	const sweeps = 4 // towards the least squares; the next round goes on
	for range sweeps {
		for i, row := range logs {
			mean(&m.effect[i], len(row), 0, func(b int) (float64, float64) { return m.good[i][b], row[b] - m.level[b] })
		}
		for b := range m.level {
			mean(&m.level[b], len(logs), m.sd*m.sd/blocksBefore/blocksBefore, func(i int) (float64, float64) {
				if b >= len(logs[i]) {
					return 0, 0
				}
				return m.good[i][b], logs[i][b] - m.effect[i]
			})
		}
	}
}

// goodSpread is that of the good launches, and share how many are bad.
func (m *mixture) goodSpread(logs [][]float64) (sd, share float64) {
	squares, good, n := spreadWeight*m.before*m.before, 0.0, 0.0
	for i, row := range logs {
		for b, x := range row {
			if !math.IsNaN(x) {
				r := x - m.effect[i] - m.level[b]
				squares, good, n = squares+m.good[i][b]*r*r, good+m.good[i][b], n+1
			}
		}
	}
	df := max(good-float64(len(m.effect)+len(m.level)-1), 0)
	return math.Sqrt(squares / (df + spreadWeight)), (n - good + badBefore) / (n + badBefore + goodBefore)
}

// isLikelier says whether the launches look as if some are bad, and not only as if all differ
// by more: the ratio of the likelihoods, each with the spread that its good launches have.
func (m *mixture) isLikelier(logs [][]float64) bool {
	squares, good, n := 0.0, 0.0, 0.0
	for i, row := range logs {
		for b, x := range row {
			if !math.IsNaN(x) {
				r := x - m.effect[i] - m.level[b]
				squares, good, n = squares+m.good[i][b]*r*r, good+m.good[i][b], n+1
			}
		}
	}
	taken := float64(len(m.effect) + len(m.level) - 1)
	sd := max(m.before, math.Sqrt(squares/max(good-taken, 1)))
	all, _ := stats.FitBlocks(logs)
	return (n-taken)*math.Log(all.SD/sd)-(n-good) > min(badGain*n, badEnough)
}

// allBad returns the probability that all counted launches of a configuration are bad. bad is the
// number seen to be bad among all launches. The result is the mean of the share's power over the
// distribution of the share. Such a configuration looks worse than it is, and nothing in its
// launches tells.
func allBad(counted, bad, all int) float64 {
	if counted == 0 {
		return 1
	}
	a, ab := badBefore+float64(bad), badBefore+goodBefore+float64(all)
	p := 1.0
	for k := range counted {
		p *= (a + float64(k)) / (ab + float64(k))
	}
	return p
}

// blockTrend returns the change of the machine's speed from block to block; nil where that is not
// known.
func blockTrend(fit stats.Blocked, confidence float64) *stats.Difference {
	if d, ok := fit.Trend(confidence); ok {
		return &d
	}
	return nil
}
