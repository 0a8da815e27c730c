package measure

import (
	"math"

	"pitot/internal/data/metric"
	"pitot/internal/data/result"
	"pitot/internal/measure/judge"
	"pitot/internal/stat"
)

const (
	level   = judge.Level
	batches = judge.Batches
	// intervalResidences is how many times what a request takes without a queue
	// a window must have for an interval, and intervalRequests how many requests.
	// By what it takes under this load would be to choose the runs that met no
	// slow period.
	intervalResidences, intervalRequests = 100, 300
	// intervalSessions is how many times the length of a conversation it must have, whose
	// turns are alike: the server has as many of them at once as began within that. Medians
	// of whole conversations need fewer lengths than those of requests; what both do is the
	// table of `go run ./bench/stat -only intervals-sessions`.
	intervalSessions, intervalWholeSessions = 40, 20
	// cautionSessions is by how much an interval is wider, times the length of a
	// conversation over the window: batches of requests are no whole conversations.
	cautionSessions = 40
)

// Why a value has no interval.
var (
	oneLoad  = result.Reason{Code: result.OneLoad}
	gapsOnly = result.Reason{Code: result.GapsDepend}
	fewBatch = result.Reason{Code: result.FewSamples}
	censored = result.Reason{Code: result.SomeCensored}
)

// confidence says which values of a point have an interval.
type confidence struct {
	why    result.Reason // why no value has one; none if means and medians have
	pooled Pooled        // what other percentiles rest on

	// Of whole conversations, why medians have none; and ofTime for them.
	whySessions    result.Reason
	ofTimeSessions float64

	ofTime float64 // by how much intervals are wider for what the window may have missed
	memory float64 // how long the queue remembers, as a share of the window
	missed float64 // what slow periods that the window did not meet may add to a mean wait, in nanoseconds
}

// confidence asks for many residence times without a queue, and for a queue that
// does not grow. Neither how wide the run's own intervals come out nor how long
// its requests took under the load is a criterion: a run that met no slow period
// would pass it, and is the one that is wrong.
func (f *Fold) confidence(all *part, stability stat.Stability, took judge.Answers, light float64) confidence {
	c := confidence{pooled: f.setup.Pooled}
	window := f.conditions.Seconds()
	switch {
	case !f.conditions.Ended() || window < judge.Shortest || took.Mean <= 0:
		c.why = result.Reason{Code: result.NothingAnswered}
	case f.setup.Gone != nil:
		c.why = result.Reason{Code: result.ServerWentAway}
	case f.setup.Load.Varies():
		c.why = result.Reason{Code: result.RateVaries}
	case stability == stat.Unstable:
		c.why = result.Reason{Code: result.QueueGrew}
	case f.setup.Settling != nil && f.setup.Settling.Why != "":
		c.why = result.Reason{Code: result.NotSettled}
	case !f.conditions.FewBursts().None():
		c.why = f.conditions.FewBursts()
	case window < intervalResidences*light:
		c.why = f.conditions.TooShort(window/light, intervalResidences, light)
	}
	c.whySessions = c.why
	session := f.setup.Load.SessionSeconds(light)
	short := func(lengths float64) result.Reason {
		switch n := all.tally.due(); {
		case window < lengths*session:
			return f.conditions.TooShortForSessions(int(lengths), session)
		case n < intervalRequests:
			return f.conditions.TooFew(n, intervalRequests)
		}
		return result.Reason{}
	}
	if c.why.None() {
		c.why, c.whySessions = short(intervalSessions), short(intervalWholeSessions)
	}
	if !c.whySessions.None() {
		return c
	}
	c.ofTimeSessions = stat.CautionOfTime(window/took.Mean, all.outline.variation())
	c.ofTime = max(c.ofTimeSessions, 1+cautionSessions*session/window)
	c.memory = all.outline.course.Memory()
	c.missed = 1e9 * stat.MissedWait(took.Mean, window/took.Mean, all.outline.variation())
	return c
}

// caution is by how much the interval of a series must be wider than its batches
// say.
func (c *confidence) caution(of *stat.Batches) float64 {
	return stat.Caution(c.ofTime, max(c.memory, of.Memory()))
}

// around is a value's interval, which is one of its logarithm: values are above 0
// and may be far larger than a run has shown, but not far smaller.
func around(value, half float64) [2]float64 {
	if value <= 0 || half > 20*value { // values of both signs
		return [2]float64{value - half, value + half}
	}
	return [2]float64{value * math.Exp(-half/value), value * math.Exp(half/value)}
}

// ofGaps is that of gaps, which are pooled over requests and have no order.
func (c *confidence) ofGaps() *confidence {
	if !c.why.None() {
		return c
	}
	return &confidence{why: gapsOnly}
}

// meanInterval fills in the interval of the mean, by the means of batches of the
// samples as they were due.
func (s *sample) meanInterval(out *result.Summary) {
	why := s.conf.why
	if why.None() {
		b := s.inBatches(func(x float64) float64 { return x })
		if mean, half, ok := b.Widest(level); ok {
			v := around(mean, half*s.conf.caution(b))
			if s.waits() {
				least, _ := s.percentile(stat.LeastWait)
				v[1] = max(v[1], stat.UpperOfWait(mean, half, least, s.conf.missed))
			}
			out.CI95["mean"] = [2]float64{v[0] / s.unit, v[1] / s.unit}
			return
		}
		why = fewBatch
	}
	out.NoInterval["mean"] = why
}

// waits says that a queue adds to each value as much as to how long requests take.
func (s *sample) waits() bool {
	return s.of != nil && (s.of.Name == metric.TTFT || s.of.Name == metric.E2E)
}

// inBatches cuts the samples, as they were due, into batches. Without an order
// there are none.
func (s *sample) inBatches(of func(x float64) float64) *stat.Batches {
	if s.order == nil {
		return stat.NewBatches(0, stat.FineBatches)
	}
	b := stat.NewBatches(s.order.Len(), stat.FineBatches)
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
		return phis, float64(s.n())
	}
	var names []string
	var limits []float64
	var of []*stat.Batches
	for _, q := range quantiles() {
		if few, _ := stat.Support(q.p); s.n() < few {
			continue
		}
		if x, over := s.percentile(q.p); !over {
			names, limits, of = append(names, q.name), append(limits, x), append(of, stat.NewBatches(s.order.Len(), stat.FineBatches))
		}
	}
	var alike stat.Lag
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
	if r < 2/math.Sqrt(float64(s.n())) { // what chance gives
		r = 0
	}
	for i, b := range of {
		own, ok := b.Merged(batches).Overdispersion()
		phis[names[i]] = phi{own, ok, b}
	}
	return phis, float64(s.n()) * (1 - r) / (1 + r)
}

// phi is an over-dispersion, if there is one.
type phi struct {
	own float64
	ok  bool
	of  *stat.Batches
}

// quantileInterval fills in the interval of a quantile. Its ranks are
// those of as many independent samples as the over-dispersion of "exceeds x"
// leaves: of the median the run's own as means have it, or the pooled one if that
// is larger; of any other only with a pooled one.
func (s *sample) quantileInterval(out *result.Summary, q quantile, of phi) {
	own, ok := of.own, of.ok
	if ok && s.name != "" {
		out.Phi[q.name] = own
	}
	pooled := s.conf.pooled.Phi[s.name+"."+q.name]
	switch {
	case !s.conf.why.None():
		out.NoInterval[q.name] = s.conf.why
		return
	case q.p != .5 && pooled == 0:
		out.NoInterval[q.name] = s.conf.pooled.Why.Or(oneLoad)
		return
	case !ok:
		out.NoInterval[q.name] = fewBatch
		return
	}
	n := s.n()
	effective := float64(n) / stat.PooledOverdispersion(own, pooled)
	if q.p == .5 {
		widest, ok := of.of.WidestDispersion(level)
		if !ok {
			out.NoInterval[q.name] = fewBatch
			return
		}
		caution := s.conf.caution(of.of)
		effective = float64(n) / (max(widest, pooled) * caution * caution)
	}
	lo, hi := stat.EffectiveRankInterval(n, effective, q.p, level)
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
	mean, half := stat.WidestOf(counts, level)
	if mean <= 0 {
		return [2]float64{}, false
	}
	return around(rate, rate*half/mean*caution), true
}

// late is what was served in the second half of the window.
func (f *Fold) late(rate *float64) *result.Late {
	if rate == nil || f.conditions.Seconds() < judge.Shortest {
		return nil
	}
	blocks := make([]float64, judge.Blocks)
	for i, n := range f.output.byBlock() {
		blocks[i] = float64(n)
	}
	all, _ := stat.Moments(blocks)
	if all <= 0 {
		return nil
	}
	half := blocks[judge.Blocks/2:]
	mean, widest := stat.WidestOf(half, level) // what is served at once ends in neighbouring blocks
	l := &result.Late{OutputTokensPerS: *rate * mean / all}
	if e := widest / mean; mean > 0 && e < 1 {
		l.CI95 = &[2]float64{l.OutputTokensPerS * (1 - e), l.OutputTokensPerS * (1 + e)}
	}
	return l
}

// rates fills in the intervals of the throughput. What comes in goes out: a rate
// varies less than latencies do, and that of requests less than that of their
// tokens. Of what is remembered nothing had to be added in any queue that was
// simulated, and for requests half of what the window may have missed was enough.
func (f *Fold) rates(t *result.Throughput, c confidence) {
	if t.RequestsPerS == nil {
		return
	}
	if !c.why.None() {
		t.NoInterval = c.why
		return
	}
	ends := make([]float64, judge.Blocks)
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
	output := make([]float64, judge.Blocks)
	for i, n := range f.output.byBlock() {
		output[i] = float64(n)
	}
	if v, ok := rateInterval(*t.OutputTokensPerS, output, c.ofTime); ok {
		t.CI95["output_tokens_per_s"] = v
	}
}

// tally counts what came in each time block of the window.
type tally struct {
	events, tokens [judge.Blocks]int64
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

// attained fills in the interval of the share of requests that met the
// objective: batch means of the requests as they were due.
func (c *part) attained(out *result.SLO, good *judgement) {
	if out == nil || out.Attained == nil {
		return
	}
	out.NoInterval = c.conf.why
	if !c.conf.why.None() {
		return
	}
	if c.conf.pooled.Phi == nil { // violations come in bursts, as what a percentile is made of does
		out.NoInterval = c.conf.pooled.Why.Or(oneLoad)
		return
	}
	b := good.inBatches
	mean, half, ok := b.Widest(level)
	switch {
	case !ok:
		out.NoInterval = fewBatch
	case half == 0: // all alike, and so is what the run says of the others
		out.NoInterval = oneLoad
	default:
		// Violations are what comes in bursts, and of them there is a share above 0.
		v := around(1-mean, half*c.conf.caution(b))
		out.CI95 = &[2]float64{math.Max(0, 1-v[1]), 1 - v[0]}
	}
}
