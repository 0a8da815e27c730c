package metrics

import (
	"math"

	"pitot/internal/metrics/validity"
	"pitot/internal/results/metric"
	"pitot/internal/results/result"
	"pitot/internal/stats"
)

const (
	level   = validity.Level
	batches = validity.Batches
	// intervalResidences is the length of a window that an interval needs, in times that a request
	// takes without a queue. intervalRequests is the number of requests that it needs. To count the
	// time that a request takes under this load would choose the runs that met no slow period.
	intervalResidences, intervalRequests = 100, 300
	// intervalSessions is the length of a window that an interval needs for conversations whose
	// turns are alike, in lengths of a conversation. The server has as many of them at once as
	// began within that. Medians of whole conversations need fewer lengths than those of requests.
	// The table of `go run ./bench/stat -only intervals-sessions` shows what both do.
	intervalSessions, intervalWholeSessions = 40, 20
	// cautionSessions is by how much an interval is wider, times the length of a
	// conversation over the window: batches of requests are no whole conversations.
	cautionSessions = 40
)

// leastMemories is the length of a window that the interval of what waits in a queue needs, in
// times that the queue remembers.
const leastMemories = 70

// missedWait is the factor by which the interval of a mean wait reaches further upwards. Few slow
// periods have most of the wait, and a window misses some of them more often than it has too many.
const missedWait = 1.5

// Why a value has no interval.
var (
	fewBursts = result.Reason{Code: result.OneLoad} // of a p99 of TTFT, and of few requests that missed an objective
	gapsOnly  = result.Reason{Code: result.GapsDepend}
	fewBatch  = result.Reason{Code: result.FewSamples}
	censored  = result.Reason{Code: result.SomeCensored}
)

// confidence says which values of a point have an interval.
type confidence struct {
	why  result.Reason // why no value has one
	slow result.Reason // why none has that waits in the queue: all but TPOT

	// Of whole conversations, why medians have none; by how much theirs are wider for what
	// the window may have missed, and how long the queue remembers, as a share of the window.
	whySessions            result.Reason
	ofTimeSessions, memory float64

	ofTime float64 // by how much intervals of rates are wider for what the window may have missed
}

// assessConfidence asks for many residence times without a queue, and for a queue that
// does not grow. How wide the run's own intervals come out is no criterion: a run
// that met no slow period would pass it, and is the one that is wrong.
func (f *Fold) assessConfidence(all *part, stability stats.Stability, took validity.Answers, light float64) confidence {
	c := confidence{}
	window := f.conditions.Seconds()
	switch {
	case !f.conditions.Ended() || window < validity.Shortest || took.Mean <= 0:
		c.why = result.Reason{Code: result.NothingAnswered}
	case f.setup.Gone != nil:
		c.why = result.Reason{Code: result.ServerWentAway}
	case f.setup.Load.HasVaryingRate():
		c.why = result.Reason{Code: result.RateVaries}
	case stability == stats.Unstable:
		c.why = result.Reason{Code: result.QueueGrew}
	case f.setup.Settling != nil && f.setup.Settling.Why != "":
		c.why = result.Reason{Code: result.NotSettled}
	case !f.conditions.FewBursts().IsNone():
		c.why = f.conditions.FewBursts()
	case window < intervalResidences*light:
		c.why = f.conditions.TooShort(window/light, intervalResidences, light)
	}
	c.whySessions = c.why
	session := f.setup.Load.SessionSeconds(light)
	short := func(lengths float64) result.Reason {
		switch n := all.tally.dueCount(); {
		case window < lengths*session:
			return f.conditions.TooShortForSessions(int(lengths), session)
		case n < intervalRequests:
			return f.conditions.TooFew(n, intervalRequests)
		}
		return result.Reason{}
	}
	if c.why.IsNone() {
		c.why, c.whySessions = short(intervalSessions), short(intervalWholeSessions)
	}
	if !c.whySessions.IsNone() {
		return c
	}
	c.ofTimeSessions = stats.CautionOfTime(window/took.Mean, all.outline.residenceVariation())
	c.ofTime = max(c.ofTimeSessions, 1+cautionSessions*session/window)
	c.memory = all.outline.course.MemoryLength()
	if m := f.queue.MemoryShare(f.end); m*leastMemories > 1 {
		c.slow = f.conditions.TooSlow(1/m, leastMemories)
	}
	return c
}

// logInterval is a value's interval, which is one of its logarithm: values are above 0
// and may be far larger than a run has shown, but not far smaller.
func logInterval(value, half float64) [2]float64 {
	if value <= 0 || half > 20*value { // values of both signs
		return [2]float64{value - half, value + half}
	}
	return [2]float64{value * math.Exp(-half/value), value * math.Exp(half/value)}
}

// ofGaps is that of gaps, which are pooled over requests and have no order.
func (c *confidence) ofGaps() *confidence {
	if !c.why.IsNone() {
		return c
	}
	return &confidence{why: gapsOnly}
}

// meanInterval fills in the interval of the mean, by the means of batches of the
// samples as they were due.
func (s *sample) meanInterval(out *result.Summary) {
	b := s.inBatches(func(x float64) float64 { return x })
	mean, half, ok := b.WidestInterval(level)
	if why := s.noInterval(ok); !why.IsNone() {
		out.NoInterval["mean"] = why
		return
	}
	v := logInterval(mean, half)
	if s.hasQueueing() {
		v[1] = logInterval(mean, missedWait*half)[1]
	}
	out.CI95["mean"] = [2]float64{v[0] / s.unit, v[1] / s.unit}
}

// hasQueueing reports whether a queue adds to the values without bound. TPOT is bounded by how much
// a server batches.
func (s *sample) hasQueueing() bool { return s.of == nil || s.of.Name != metric.TPOT }

// noInterval returns why the sample has no intervals; enough says that it has batches.
func (s *sample) noInterval(enough bool) result.Reason {
	switch {
	case !s.conf.why.IsNone():
		return s.conf.why
	case s.hasQueueing() && !s.conf.slow.IsNone():
		return s.conf.slow
	case !enough:
		return fewBatch
	}
	return result.Reason{}
}

// inBatches cuts the samples, as they were due, into batches. Without an order
// there are none.
func (s *sample) inBatches(of func(x float64) float64) *stats.Batches {
	if s.order == nil {
		return stats.NewBatches(0, stats.FineBatches)
	}
	b := stats.NewBatches(s.order.Len(), stats.FineBatches)
	for x := range s.order.All() {
		b.Add(of(x))
	}
	return b
}

// overdispersions are those of "exceeds x" for each percentile x that is known, by
// its name; and as how many independent samples these are about by how much one is
// like the one before it.
func (s *sample) overdispersions() (phis map[string]phi, independent float64) {
	phis = map[string]phi{}
	if s.order == nil {
		return phis, float64(s.sampleSize())
	}
	var names []string
	var limits []float64
	var of []*stats.Batches
	for _, q := range quantiles() {
		if few, _ := stats.SamplesNeeded(q.p); s.sampleSize() < few {
			continue
		}
		if x, over := s.percentile(q.p); !over {
			names, limits, of = append(names, q.name), append(limits, x), append(of, stats.NewBatches(s.order.Len(), stats.FineBatches))
		}
	}
	var alike stats.Lag
	for x := range s.order.All() {
		for i, limit := range limits {
			hit := 0.
			if x > limit {
				hit = 1
			}
			of[i].Add(hit)
		}
		if x > 0 && !math.IsInf(x, 1) {
			alike.Add(math.Log(x)) // of the logarithm, or the few largest would say all
		}
	}
	r := alike.Correlation()
	if r < 2/math.Sqrt(float64(s.sampleSize())) { // what chance gives
		r = 0
	}
	for i, b := range of {
		own, ok := b.MergeTo(batches).Overdispersion()
		phis[names[i]] = phi{own, ok, b}
	}
	return phis, float64(s.sampleSize()) * (1 - r) / (1 + r)
}

// phi is an over-dispersion, if there is one.
type phi struct {
	own float64
	ok  bool
	of  *stats.Batches
}

// quantileInterval fills in the interval of a quantile. Its ranks are those of as many
// independent samples as the over-dispersion of "exceeds x" leaves.
func (s *sample) quantileInterval(out *result.Summary, q quantile, of phi) {
	if of.ok && s.name != "" {
		out.Phi[q.name] = of.own
	}
	n := s.sampleSize()
	_, full := stats.SamplesNeeded(q.p)
	widest := 1.
	if of.ok {
		widest, of.ok = of.of.WidestDispersion(level)
	}
	why := s.noInterval(of.ok && n >= full)
	if why.IsNone() && q.p >= tail && s.of != nil && s.of.Name == metric.TTFT {
		why = fewBursts
	}
	if !why.IsNone() {
		out.NoInterval[q.name] = why
		return
	}
	effective := float64(n) / widest
	lo, hi := stats.EffectiveRankInterval(n, effective, q.p, level)
	switch {
	case lo < 1 || hi > n:
		out.NoInterval[q.name] = result.Reason{Code: result.FewIndependent, N: math.Round(effective)}
	case hi > s.values.size():
		out.NoInterval[q.name] = censored
	default:
		s.values.seek(lo, hi)
		out.CI95[q.name] = [2]float64{s.values.orderStatistic(lo) / s.unit, s.values.orderStatistic(hi) / s.unit}
	}
}

// rateInterval is the 95 % interval of a rate whose events are counted in
// equal time blocks, scaled to the rate.
func rateInterval(rate float64, counts []float64, caution float64) ([2]float64, bool) {
	mean, half := stats.WidestOf(counts, level)
	if mean <= 0 {
		return [2]float64{}, false
	}
	return logInterval(rate, rate*half/mean*caution), true
}

// lateThroughput returns what was served in the second half of the window.
func (f *Fold) lateThroughput(rate *float64) *result.Late {
	if rate == nil || f.conditions.Seconds() < validity.Shortest {
		return nil
	}
	blocks := make([]float64, validity.Blocks)
	for i, n := range f.output.byBlock() {
		blocks[i] = float64(n)
	}
	all, _ := stats.Moments(blocks)
	if all <= 0 {
		return nil
	}
	half := blocks[validity.Blocks/2:]
	mean, widest := stats.WidestOf(half, level) // what is served at once ends in neighbouring blocks
	l := &result.Late{OutputTokensPerS: *rate * mean / all}
	if e := widest / mean; mean > 0 && e < 1 {
		l.CI95 = &[2]float64{l.OutputTokensPerS * (1 - e), l.OutputTokensPerS * (1 + e)}
	}
	return l
}

// setRateIntervals fills in the intervals of the throughput. What comes in goes out: a rate
// varies less than latencies do, and that of requests less than that of their
// tokens. Of what is remembered nothing had to be added in any queue that was
// simulated, and for requests half of what the window may have missed was enough.
func (f *Fold) setRateIntervals(t *result.Throughput, c confidence) {
	if t.RequestsPerS == nil {
		return
	}
	if !c.why.IsNone() {
		t.NoInterval = c.why
		return
	}
	ends := make([]float64, validity.Blocks)
	for i, n := range f.queue.Answered() {
		ends[i] = float64(n)
	}
	t.CI95 = map[string][2]float64{}
	if v, ok := rateInterval(*t.RequestsPerS, ends, 1+(c.ofTime-1)/2); ok {
		t.CI95["requests_per_s"] = v
	}
	if t.OutputTokensPerS == nil {
		return
	}
	output := make([]float64, validity.Blocks)
	for i, n := range f.output.byBlock() {
		output[i] = float64(n)
	}
	if v, ok := rateInterval(*t.OutputTokensPerS, output, c.ofTime); ok {
		t.CI95["output_tokens_per_s"] = v
	}
}

// tally counts what came in each time block of the window.
type tally struct {
	events, tokens [validity.Blocks]int64
	blind          bool // some event did not tell its tokens
}

func (t *tally) countEvent(block int, tokens int32) {
	t.events[block]++
	t.tokens[block] += int64(max(tokens, 0))
	t.blind = t.blind || tokens <= 0
}

// byBlock is the tokens by block, or the events where their tokens are not known.
func (t *tally) byBlock() []int64 {
	if t.blind {
		return t.events[:]
	}
	return t.tokens[:]
}

// setGoodInterval fills in the interval of the share of requests that met the objective, by the
// over-dispersion of the requests as they were due.
func (c *part) setGoodInterval(out *result.SLO, good *judgement) {
	if out == nil || out.Attained == nil {
		return
	}
	phi, ok := good.inBatches.WidestDispersion(level)
	switch missed := good.due - good.good; {
	case !c.conf.why.Or(c.conf.slow).IsNone():
		out.NoInterval = c.conf.why.Or(c.conf.slow)
	case !ok || missed < leastMissed: // nothing tells how they come together
		out.NoInterval = fewBursts
	default:
		v := stats.ClopperPearson(int(good.good), int(good.due), phi, level)
		out.CI95 = &[2]float64{v.Lo, v.Hi}
	}
}

// leastMissed is the least number of requests that missed an objective that shows in how large
// groups they come.
const leastMissed = 10
