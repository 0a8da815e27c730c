package measure

import (
	"cmp"
	"fmt"
	"math"

	"pitot/internal/data/result"
	"pitot/internal/measure/judge"
	"pitot/internal/stat"
)

const (
	level   = judge.Level
	batches = judge.Batches
	// intervalResidences is how many residence times a window must have for
	// an interval: a batch is then ten of them.
	intervalResidences = 100
)

// Why a value has no interval.
const (
	oneLoad  = "one load cannot tell"
	gapsOnly = "gaps of one request depend on each other: TPOT has an interval"
	fewBatch = "too few samples for ten batches"
	censored = "some were not followed to their end"
)

// confidence says which values of a point have an interval.
type confidence struct {
	why    string // none has, because; "" if means and medians have one
	pooled Pooled // what other percentiles rest on
}

// confidence asks for balance and a window of many residence times. How wide
// the run's own intervals come out is no criterion: a run that met no slow
// period would pass it, and is the one that is wrong.
func (f *Fold) confidence(stability stat.Stability, took judge.Answers, light float64) confidence {
	c := confidence{pooled: f.setup.Pooled}
	window := f.conditions.Seconds()
	switch {
	case !f.conditions.Ended() || window < judge.Shortest || took.Mean <= 0:
		c.why = "nothing was answered in a window"
	case f.setup.Gone != nil:
		c.why = judge.WentAway
	case stability == stat.Unstable:
		c.why = "the queue grew"
	case f.setup.Settling != nil && f.setup.Settling.Why != "":
		c.why = judge.NotSettled
	case stability != stat.Stable: // a queue that may be growing stretches the mean
		c.why = f.conditions.TooShort(window/light, intervalResidences, light)
	case window < intervalResidences*took.Mean:
		c.why = f.conditions.TooShort(window/took.Mean, intervalResidences, took.Mean)
	case c.pooled.Near:
		c.why = nearSaturation
	}
	return c
}

// ofGaps is that of gaps, which are pooled over requests and have no order.
func (c *confidence) ofGaps() *confidence {
	if c.why != "" {
		return c
	}
	return &confidence{why: gapsOnly}
}

// meanInterval fills in the interval of the mean, by batch means of the
// samples as they were due.
func (s *sample) meanInterval(out *result.Summary) {
	why := s.conf.why
	if why == "" {
		if m, ok := s.inBatches(func(x float64) float64 { return x }).Mean(level); ok {
			out.CI95["mean"] = [2]float64{m.Lo / s.unit, m.Hi / s.unit}
			return
		}
		why = fewBatch
	}
	out.NoInterval["mean"] = why
}

// inBatches cuts the samples, as they were due, into batches. Without an order
// there are none.
func (s *sample) inBatches(of func(x float64) float64) *stat.Batches {
	if s.order == nil {
		return stat.NewBatches(0, batches)
	}
	b := stat.NewBatches(s.order.Len(), batches)
	for x := range s.order.All() {
		b.Add(of(x))
	}
	return b
}

// overdispersions are those of "exceeds x" for each percentile x that is known, by
// its name.
func (s *sample) overdispersions() map[string]phi {
	phis := map[string]phi{}
	if s.order == nil {
		return phis
	}
	var names []string
	var limits []float64
	var of []*stat.Batches
	for _, q := range quantiles() {
		if few, _ := stat.Support(q.p); s.n() < few {
			continue
		}
		if x, over := s.percentile(q.p); !over {
			names, limits, of = append(names, q.name), append(limits, x), append(of, stat.NewBatches(s.order.Len(), batches))
		}
	}
	for x := range s.order.All() {
		for i, limit := range limits {
			hit := 0.
			if x > limit {
				hit = 1
			}
			of[i].Add(hit)
		}
	}
	for i, b := range of {
		own, ok := b.Overdispersion()
		phis[names[i]] = phi{own, ok}
	}
	return phis
}

// phi is an over-dispersion, if there is one.
type phi struct {
	own float64
	ok  bool
}

// quantileInterval fills in the interval of a quantile. Its ranks are
// those of as many independent samples as the over-dispersion of "exceeds x"
// leaves: of the median the run's own, or the pooled one if that is larger; of
// any other only with a pooled one.
func (s *sample) quantileInterval(out *result.Summary, q quantile, of phi) {
	own, ok := of.own, of.ok
	if ok && s.name != "" {
		out.Phi[q.name] = own
	}
	pooled := s.conf.pooled.Phi[s.name+"."+q.name]
	switch {
	case s.conf.why != "":
		out.NoInterval[q.name] = s.conf.why
		return
	case q.p != .5 && pooled == 0:
		out.NoInterval[q.name] = cmp.Or(s.conf.pooled.Why, oneLoad)
		return
	case !ok:
		out.NoInterval[q.name] = fewBatch
		return
	}
	// Of ten batches φ is itself uncertain: as with a mean, t takes the place
	// of the normal quantile.
	t := stat.StudentQuantile((1+level)/2, batches-1) / stat.NormalQuantile((1+level)/2)
	n := s.n()
	effective := float64(n) / stat.PooledOverdispersion(own, pooled)
	if pooled == 0 {
		effective /= t * t
	}
	lo, hi := stat.EffectiveRankInterval(n, effective, q.p, level)
	switch {
	case lo < 1 || hi > n:
		out.NoInterval[q.name] = fmt.Sprintf("its samples say as much as %.0f independent ones: too few", effective)
	case hi > s.values.size():
		out.NoInterval[q.name] = censored
	default:
		s.values.seek(lo, hi)
		out.CI95[q.name] = [2]float64{s.values.at(lo) / s.unit, s.values.at(hi) / s.unit}
	}
}

// rateInterval is the 95 % interval of a rate whose events are counted in
// equal time blocks, scaled to the rate.
func rateInterval(rate float64, counts []float64) ([2]float64, bool) {
	m, ok := stat.BatchMeans(counts, batches, level)
	if !ok || m.Mean <= 0 {
		return [2]float64{}, false
	}
	return [2]float64{max(0, rate*m.Lo/m.Mean), rate * m.Hi / m.Mean}, true
}

// late is what was served in the second half of the window.
func (f *Fold) late(rate *float64) *result.Late {
	if rate == nil || f.conditions.Seconds() < judge.Shortest {
		return nil
	}
	blocks := make([]float64, judge.Blocks)
	for i, n := range f.output.of() {
		blocks[i] = float64(n)
	}
	all, _ := stat.Moments(blocks)
	if all <= 0 {
		return nil
	}
	half := blocks[judge.Blocks/2:]
	mean, sd := stat.Moments(half)
	l := &result.Late{OutputTokensPerS: *rate * mean / all}
	n := float64(len(half))
	if e := stat.StudentQuantile((1+level)/2, n-1) * sd / math.Sqrt(n) / mean; mean > 0 && e < 1 {
		l.CI95 = &[2]float64{l.OutputTokensPerS * (1 - e), l.OutputTokensPerS * (1 + e)}
	}
	return l
}

// rates fills in the intervals of the throughput.
func (f *Fold) rates(t *result.Throughput, c confidence) {
	if t.RequestsPerS == nil {
		return
	}
	if c.why != "" {
		t.NoInterval = c.why
		return
	}
	ends := make([]float64, judge.Blocks)
	for i, n := range f.queue.Answered() {
		ends[i] = float64(n)
	}
	t.CI95 = map[string][2]float64{}
	if v, ok := rateInterval(*t.RequestsPerS, ends); ok {
		t.CI95["requests_per_s"] = v
	}
	if t.OutputTokensPerS == nil {
		return
	}
	output := make([]float64, judge.Blocks)
	for i, n := range f.output.of() {
		output[i] = float64(n)
	}
	if v, ok := rateInterval(*t.OutputTokensPerS, output); ok {
		t.CI95["output_tokens_per_s"] = v
	}
}

// tally counts what came in each time block of the window.
type tally struct {
	events, tokens [judge.Blocks]int64
	blind          bool // some event did not tell its tokens
}

func (t *tally) add(block int, tokens int32) {
	t.events[block]++
	t.tokens[block] += int64(max(tokens, 0))
	t.blind = t.blind || tokens <= 0
}

// of is the tokens by block, or the events where their tokens are not known.
func (t *tally) of() []int64 {
	if t.blind {
		return t.events[:]
	}
	return t.tokens[:]
}

// attained fills in the interval of the share of requests that met the
// objective: batch means of the requests as they were due.
func (c *part) attained(out *result.SLO, good *judgement) {
	if out == nil || out.Attained == nil {
		return
	}
	out.NoInterval = c.conf.why
	if c.conf.why != "" {
		return
	}
	if c.conf.pooled.Phi == nil { // violations come in bursts, as what a percentile is made of does
		out.NoInterval = cmp.Or(c.conf.pooled.Why, oneLoad)
		return
	}
	m, ok := good.inBatches.Mean(level)
	switch {
	case !ok:
		out.NoInterval = fewBatch
	case m.SE == 0: // all alike, and so is what the run says of the others
		out.NoInterval = oneLoad
	default:
		out.CI95 = &[2]float64{math.Max(0, m.Lo), math.Min(1, m.Hi)}
	}
}
