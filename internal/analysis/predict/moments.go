package predict

import (
	"math"
	"slices"

	"pitot/internal/sim/deploy"
	"pitot/internal/stats"
)

// A fit compares a run and a replay of it by moments: what was seen of TTFT,
// TPOT and stalls, of the TTFT of long and of short prompts and of those that
// came together, and of the gaps between chunks by what went on meanwhile. The
// same is worked out of both, so what it leaves out it leaves out of both
// (indirect inference: Gouriéroux, Monfort and Renault, Journal of Applied
// Econometrics 8, S85, 1993). Each counts by its standard error: a p99 of a
// few hundred requests, which a single slow one moves, says less than their
// middle.

// moment is the logarithm of a quantity of the run and its standard error.
type moment struct{ log, se float64 }

// comparison is a run as a fit compares replays with it.
type comparison struct {
	run     *Recording
	moments []moment
	groups  [][]int    // requests whose mean ratio of TTFT is a moment
	alike   int        // requests that share steps
	stride  int        // of the requests whose gaps are looked at
	rows    [2]float64 // edges between few, some and many requests that answer
	prompts [2]float64 // edges between little, some and much of prompts in a gap
	seen    []float64  // TTFT of each request
	// pace is the chance factor by which the server was faster or slower in the whole run. It is a
	// standard deviation of the logarithm, and all times of the run share it.
	pace float64
}

// quantilesFitted are those of TTFT, TPOT and stall that are compared, besides
// the means.
var quantilesFitted = [...]float64{.1, .25, .5, .75, .9, .99}

// leastGroup is the least number of requests or gaps in a group. few are enough for a mean and a
// median: of long prompts ten seconds have no more.
const leastGroup, few = 20, 5

// grain is the standard error that none is below: a replay is not exact.
const grain = 0.01

// served holds what a client sees of a run or of a replay.
type served struct {
	timings []timing
	times   [][]float64 // of the chunks of each request that is looked at
}

// newComparison works the moments of a run out. d is near enough to what ran to tell
// how much the ratio of single requests spreads.
func newComparison(r *Recording, d *deploy.Deployment) *comparison {
	c := &comparison{run: r, alike: max(1, int(r.meanRunning()/2))} // requests that answer at once share steps: two of them tell
	measured := 0
	for _, q := range r.Requests {
		c.seen = append(c.seen, q.seen.ttft)
		if q.measured {
			measured++
		}
	}
	c.stride = max(1, min(c.alike, measured/(3*leastGroup)))
	s := &served{r.timings(), make([][]float64, len(r.Requests))}
	for i := range r.Requests {
		if c.looksAt(i) {
			s.times[i] = r.Requests[i].times
		} else {
			s.timings[i].stall = -1
		}
	}
	c.groupByPrompt()
	gaps := c.observedGaps(s)
	c.setGapEdges(gaps)
	c.moments = c.momentsOf(s)
	for i, se := range c.ratioErrors(c.replayRun(d, 1)) {
		c.moments[len(c.moments)-len(c.groups)+i].se = se
	}
	return c
}

// looksAt says whether a request's gaps are compared.
func (c *comparison) looksAt(i int) bool {
	q := &c.run.Requests[i]
	return q.measured && len(q.times) > 1 && i%c.stride == 0
}

// replayRun is the run on a deployment's twin.
func (c *comparison) replayRun(d *deploy.Deployment, seed uint64) *served {
	s := &served{times: make([][]float64, len(c.run.Requests))}
	for i := range s.times {
		if c.looksAt(i) {
			s.times[i] = make([]float64, 0, c.run.Requests[i].Output)
		}
	}
	s.timings = c.run.serve(d, seed, func(request, at int64) bool {
		if s.times[request] == nil {
			return false
		}
		s.times[request] = append(s.times[request], float64(at)/1e9)
		return true
	})
	return s
}

// groupByPrompt sorts requests by the length of what is computed of their prompts.
func (c *comparison) groupByPrompt() {
	var by [3][]int
	var lengths []int
	computed := func(q *Recorded) int { return max(q.Input-q.cached, 1) }
	for i := range c.run.Requests {
		if q := &c.run.Requests[i]; q.measured {
			lengths = append(lengths, computed(q))
		}
	}
	if len(lengths) == 0 {
		return
	}
	slices.Sort(lengths)
	low, high := lengths[len(lengths)/3], lengths[len(lengths)*2/3]
	for i := range c.run.Requests {
		q := &c.run.Requests[i]
		if !q.measured {
			continue
		}
		k := 0
		switch n := computed(q); {
		case n > high:
			k = 2
		case n > low:
			k = 1
		}
		by[k] = append(by[k], i)
	}
	for _, g := range by {
		if len(g) >= leastGroup/2 {
			c.groups = append(c.groups, g)
		}
	}
}

// sentTimes are the times at which requests were sent, in order.
func (s *served) sentTimes() []float64 {
	list := make([]float64, len(s.timings))
	for i, t := range s.timings {
		list[i] = t.sent
	}
	return list
}

// ttftByArrival are the TTFTs of those measured requests that came alone, behind one
// other, and behind more, within a short time.
func (c *comparison) ttftByArrival(s *served) (by [3][]float64) {
	const shortly = 0.02 // s
	sents := s.sentTimes()
	for i, t := range s.timings {
		if c.run.Requests[i].measured {
			k := min(i-countBefore(sents, t.sent-shortly), 2)
			by[k] = append(by[k], t.ttft)
		}
	}
	return by
}

// seenGap is a gap between two chunks: how long, and what went on meanwhile.
type seenGap struct {
	took, rows, tokens float64
	waits              bool // a request for its first token, whose prompt may have been computed
}

// observedGaps are those of the requests that are looked at.
func (c *comparison) observedGaps(s *served) []seenGap {
	var came, firsts, lasts []float64
	var prompts []event
	for i, t := range s.timings {
		q := &c.run.Requests[i]
		if len(q.times) == 0 { // it was cut: of the run nothing is known
			continue
		}
		first := t.sent + t.ttft
		came = append(came, t.sent)
		firsts, lasts = append(firsts, first), append(lasts, t.sent+t.e2e)
		prompts = append(prompts, event{first, float64(max(q.Input-q.cached, 1))})
	}
	slices.Sort(came)
	slices.Sort(firsts)
	slices.Sort(lasts)
	slices.SortFunc(prompts, byTime)
	for i := 1; i < len(prompts); i++ {
		prompts[i].tokens += prompts[i-1].tokens
	}
	sum := func(t float64) float64 {
		if k := countBefore(firsts, math.Nextafter(t, math.Inf(1))); k > 0 {
			return prompts[k-1].tokens
		}
		return 0
	}
	var list []seenGap
	for _, times := range s.times {
		for i := 1; i < len(times); i++ {
			from, to := times[i-1], times[i]
			if to <= from {
				continue
			}
			mid, smear := (from+to)/2, min(0.5e-3, (to-from)/4) // as in the regression
			list = append(list, seenGap{
				took: to - from, rows: float64(max(countBefore(firsts, mid)-countBefore(lasts, mid), 1)),
				tokens: sum(to+smear) - sum(from+smear),
				waits:  countBefore(came, to) > countBefore(firsts, to+smear),
			})
		}
	}
	return list
}

// setGapEdges divides what goes on during gaps into three parts of equal size.
func (c *comparison) setGapEdges(gaps []seenGap) {
	var rows, prompts []float64
	for _, g := range gaps {
		switch {
		case g.tokens > 0:
			prompts = append(prompts, g.tokens)
		case !g.waits:
			rows = append(rows, g.rows)
		}
	}
	third := func(v []float64) [2]float64 {
		if len(v) == 0 {
			return [2]float64{}
		}
		slices.Sort(v)
		return [2]float64{v[len(v)/3], v[len(v)*2/3]}
	}
	c.rows, c.prompts = third(rows), third(prompts)
}

// The kinds of gaps: three of steps with answers alone, by how many; those behind
// which a request still waits; three of steps with prompts, by how much of them.
const (
	waiting  = 3
	gapKinds = 7
)

// gapKind is that of a gap.
func (c *comparison) gapKind(g *seenGap) int {
	third := func(v float64, edges [2]float64) int {
		switch {
		case v > edges[1]:
			return 2
		case v > edges[0]:
			return 1
		}
		return 0
	}
	switch {
	case g.tokens > 0:
		return waiting + 1 + third(g.tokens, c.prompts)
	case g.waits:
		return waiting
	}
	return third(g.rows, c.rows)
}

// momentsOf works the moments out; where there are too few for one it is NaN. The
// last are of the ratios of single requests to those of the run.
func (c *comparison) momentsOf(s *served) []moment {
	series := c.run.joinTimings(s.timings, everyRequest)
	var list []moment
	list = append(list, distribution(series.TTFT, 1)...)
	list = append(list, distribution(series.TPOT, float64(c.alike))...)
	shared := float64(c.alike) / float64(c.stride) // how many of those that are looked at share steps, in pairs
	list = append(list, distribution(series.Stall, shared)...)
	var kinds [gapKinds][]float64
	for _, g := range c.observedGaps(s) {
		k := c.gapKind(&g)
		kinds[k] = append(kinds[k], g.took)
	}
	for _, v := range kinds {
		slices.Sort(v)
		list = append(list, trimmedMean(v, 2*shared))
	}
	list = append(list, relativeWidth(kinds[0], 2*shared))
	for _, v := range c.ttftByArrival(s) {
		slices.Sort(v)
		list = append(list, trimmedMean(v, 2))
	}
	for _, g := range c.groups {
		sum := 0.0
		for _, i := range g {
			sum += c.ttftRatio(s, i)
		}
		list = append(list, moment{log: sum / float64(len(g))})
	}
	return list
}

// ttftRatio is the logarithm of a request's TTFT over that of the run; a single one
// that is far off counts as one that is less far off.
func (c *comparison) ttftRatio(s *served, i int) float64 {
	const most = 0.7
	return min(max(math.Log(max(s.timings[i].ttft, 1e-6)/max(c.seen[i], 1e-6)), -most), most)
}

// ratioErrors is the standard error of the mean ratio of each group.
func (c *comparison) ratioErrors(s *served) []float64 {
	out := make([]float64, len(c.groups))
	for k, g := range c.groups {
		v := make([]float64, len(g))
		for j, i := range g {
			v[j] = c.ttftRatio(s, i)
		}
		_, sd := meanSD(v)
		out[k] = sd / math.Sqrt(float64(len(v)))
	}
	return out
}

// momentResiduals returns the distance of a replay from the run, each moment in its standard
// errors, of run and replay together. A moment that the replay lacks counts as far off. What the
// run's pace moves all times by together counts as an error of each. All moments share that error.
// To weigh it as a shared one would leave the level to chance and the fit to what the twin lacks in
// shape (R. W. Peelle's puzzle, Oak Ridge 1987).
func (c *comparison) momentResiduals(got []moment) []float64 {
	out := make([]float64, 0, len(got))
	for i, m := range c.moments {
		if math.IsNaN(m.log) {
			continue
		}
		r := float64(knee)
		if !math.IsNaN(got[i].log) {
			r = (got[i].log - m.log) / c.standardError(m)
		}
		out = append(out, r)
	}
	return out
}

// standardError is the standard error of how far a replay is from a moment of the run.
func (c *comparison) standardError(m moment) float64 {
	return math.Hypot(math.Sqrt2*m.se, math.Hypot(grain, c.pace))
}

// levelSlopes are the changes of the residuals with the logarithm of all that has TTFT in it,
// and with that of all that has the time from chunk to chunk.
func (c *comparison) levelSlopes() (ttft, tpot []float64) {
	const of = 1 + len(quantilesFitted) // moments of a distribution
	for i, m := range c.moments {
		if math.IsNaN(m.log) {
			continue
		}
		level := 1 / c.standardError(m)
		switch {
		case i == 3*of+gapKinds: // a width, which no level moves
			ttft, tpot = append(ttft, 0), append(tpot, 0)
		case i < of || i > 3*of+gapKinds:
			ttft, tpot = append(ttft, level), append(tpot, 0)
		default:
			ttft, tpot = append(ttft, 0), append(tpot, level)
		}
	}
	return ttft, tpot
}

func meanSD(v []float64) (mean, sd float64) {
	for _, x := range v {
		mean += x / float64(len(v))
	}
	for _, x := range v {
		sd += (x - mean) * (x - mean)
	}
	return mean, math.Sqrt(sd / float64(max(len(v)-1, 1)))
}

var absent = moment{log: math.NaN()}

// logOf is the logarithm of what is above zero.
func logOf(x float64) float64 { return math.Log(max(x, 1e-9)) }

// distribution is the mean and the quantiles. The standard error of a quantile
// is half the distance of the order statistics one standard deviation of the
// binomial distribution below and above it. So many values are alike.
func distribution(v []float64, alike float64) []moment {
	list := make([]moment, 1+len(quantilesFitted))
	for i := range list {
		list[i] = absent
	}
	if len(v) < few {
		return list
	}
	v = slices.Sorted(slices.Values(v))
	n := float64(len(v))
	mean, sd := meanSD(v)
	list[0] = moment{logOf(mean), sd / max(mean, 1e-9) * math.Sqrt(alike/n)}
	for i, q := range quantilesFitted {
		if n < leastGroup && q != 0.5 {
			continue
		}
		d := math.Sqrt(n * q * (1 - q) * alike)
		logOfRank := func(k float64) float64 { return logOf(v[int(min(max(k, 0), n-1))]) }
		list[i+1] = moment{logOf(stats.Percentile(v, q)), (logOfRank(n*q+d) - logOfRank(n*q-d-1)) / 2}
	}
	return list
}

// trimmedMean is the mean of the middle four fifths of sorted values, of which so many
// come from one step. Its standard error is that of Tukey and McLaughlin
// (Sankhyā A 25, 331, 1963).
func trimmedMean(v []float64, alike float64) moment {
	if len(v) < leastGroup {
		return absent
	}
	cut := len(v) / 10
	mean, _ := meanSD(v[cut : len(v)-cut])
	held := slices.Clone(v)
	for i := range cut {
		held[i], held[len(v)-1-i] = v[cut], v[len(v)-1-cut]
	}
	_, sd := meanSD(held)
	return moment{logOf(mean), sd / 0.8 / mean / math.Sqrt(float64(len(v))/alike)}
}

// relativeWidth is the range of the middle 68 % of sorted values over their median; so many
// come from one step.
func relativeWidth(v []float64, alike float64) moment {
	if len(v) < 5*leastGroup {
		return absent
	}
	w := (stats.Percentile(v, .84) - stats.Percentile(v, .16)) / stats.Percentile(v, .5)
	return moment{math.Log(max(w, 1e-4)), 1 / math.Sqrt(float64(len(v))/alike)}
}
