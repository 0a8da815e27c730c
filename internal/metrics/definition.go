package metrics

import (
	"pitot/internal/metrics/validity"
	"pitot/internal/results/metric"
	"pitot/internal/results/record"
	"pitot/internal/results/result"
)

// Own numbers are kept of each request for a single metric: nanoseconds or counts,
// Unset where the request has none.
const (
	stall      = iota // the longest gap
	stallLeast        // between what merged arrivals leave it
	stallMost
	ownNumbers // how many there are
)

// nothingOwn are those of a request of which nothing was gathered.
var nothingOwn = func() (none [ownNumbers]int64) {
	for i := range none {
		none[i] = record.Unset
	}
	return none
}()

// Definition says how a metric of the catalogue is measured: one of requests by Request, one of
// gaps by Gaps, one of the window by Count or Window.
type Definition struct {
	*metric.Metric

	// Request takes it from a request, which may not have ended by until: in
	// nanoseconds if its unit is a time, else in its unit. What is not kept of every
	// request stands in numbers of the metric's own: row fills them when the request ends, and
	// chunk takes part in it before each chunk is added to the stream.
	Request func(q *Request, until int64) (float64, State)
	row     func(s *Stream, r *record.Row)
	chunk   func(s *Stream, c *record.Chunk)

	// Gaps hands over what a request has of a metric that is pooled over requests, in
	// whole nanoseconds: known values, and for how long one was followed that did not
	// end. It is asked of requests that ended well or were cut.
	Gaps func(s *Stream, r *record.Row, take func(ns int64, is State))
	pool func(c *part) (*sample, result.Reason) // takes the place of what Gaps hands over, or says why there is none

	// Count returns what a request of any time adds to a metric of the window, in whole units. The
	// metric is their sum a second. Window takes one from the point that is else complete; known is
	// false where there is none.
	Count  func(s *Stream, r *record.Row, window *validity.Conditions) int64
	Window func(f *Fold, p *result.Point) (x float64, known bool)

	single   bool                   // of requests with one answer: withheld where any has several
	answered bool                   // by the sample of requests that ended well alone
	low      func(*Request) float64 // lower bound of a known value that merged arrivals leave open
	high     func(*Request) float64 // upper bound
	unseen   func(*Request) bool    // a request has no value only because merging hid it
	label    string                 // what a reader must know of the summary
	labelled func(*Request) bool    // if this holds for any request
	lacks    result.ReasonCode      // why there is none where requests ended well
}

// Definitions are those of the catalogue, in its order: of all distributions, and of
// the metrics of a window that have no field of their own in run.json.
func Definitions() []Definition {
	of := map[metric.Name]Definition{
		metric.TTFT: {
			Request:  func(q *Request, until int64) (float64, State) { return q.TTFT(Response, until) },
			low:      func(q *Request) float64 { return float64(max(0, q.firstLo-q.due)) },
			label:    "to the first visible token: hidden reasoning came before",
			labelled: func(q *Request) bool { return q.hidden },
		},
		metric.ServiceTTFT: {Request: func(q *Request, until int64) (float64, State) { return q.TTFT(Service, until) }},
		metric.TTFA:        {Request: func(q *Request, until int64) (float64, State) { return q.TTFA(Response, until) }},
		metric.TPOT: {
			Request: func(q *Request, until int64) (float64, State) { return q.TPOT(until) }, lacks: result.OneToken,
			label:    "assumed: one token in the first event",
			labelled: func(q *Request) bool { return q.outcome == record.OK && q.stream && q.firstTokens < 1 },
		},
		metric.TPOTn1: {Request: func(q *Request, until int64) (float64, State) { return q.TPOTn1(until) }, single: true, lacks: result.OneToken},
		metric.ITL:    {pool: (*part).tokenGaps, lacks: result.OneArrival},
		metric.ICL:    {pool: (*part).chunkGaps, Gaps: (*Stream).eachGap, lacks: result.OneArrival},
		metric.Stall: {
			Request: (*Request).Stall, row: (*Stream).longestGap, lacks: result.OneArrival,
			low:    func(q *Request) float64 { return float64(q.own[stallLeast]) },
			high:   func(q *Request) float64 { return float64(q.own[stallMost]) },
			unseen: func(q *Request) bool { return q.own[stall] < 0 && q.own[stallMost] > 0 },
		},
		metric.E2E:        {Request: func(q *Request, until int64) (float64, State) { return q.E2E(Response, until) }},
		metric.ServiceE2E: {Request: func(q *Request, until int64) (float64, State) { return q.E2E(Service, until) }},
		metric.Generation: {Request: func(q *Request, until int64) (float64, State) { return q.Generation(until) }},

		metric.Lag:     {Request: func(q *Request, _ int64) (float64, State) { return q.clientInterval(q.ready, q.sent) }, lacks: result.NoStamps},
		metric.Held:    {Request: func(q *Request, _ int64) (float64, State) { return q.clientInterval(q.due, q.eligible) }, lacks: result.NoStamps},
		metric.Connect: {Request: func(q *Request, _ int64) (float64, State) { return q.clientInterval(q.eligible, q.ready) }, lacks: result.NoStamps},

		metric.InputTokens: {
			Request: countOf(func(q *Request) int32 { return q.inputTokens() }), answered: true, lacks: result.TokensUncounted,
			label:    "planned: the server did not count",
			labelled: func(q *Request) bool { return q.outcome == record.OK && q.prompt < 0 && q.inputPlanned >= 0 },
		},
		metric.OutputTokens:   {Request: countOf(func(q *Request) int32 { return q.output }), answered: true, lacks: result.TokensUncounted},
		metric.CachedTokens:   {Request: countOf(func(q *Request) int32 { return q.cached }), answered: true, lacks: result.TokensUncounted},
		metric.TokensPerChunk: {Request: (*Request).tokensPerChunk, answered: true, lacks: result.TokensUncounted},
		metric.PrefillRate:    {Request: (*Request).prefillRate, answered: true, lacks: result.TokensUncounted},
		metric.DecodeRate:     {Request: (*Request).decodeRate, answered: true, lacks: result.OneToken},
	}
	of[metric.CachedShare] = Definition{Window: func(f *Fold, _ *result.Point) (float64, bool) {
		cached, prompt, known := f.probe.Cached()
		if !known || prompt == 0 {
			return 0, false
		}
		return float64(cached) / float64(prompt), true
	}}
	of[metric.InputsRate] = Definition{Window: func(f *Fold, _ *result.Point) (float64, bool) {
		if f.flow.texts == 0 {
			return 0, false
		}
		return float64(f.flow.texts) / f.conditions.Seconds(), true
	}}
	of[metric.CommonRate] = Definition{Window: func(f *Fold, _ *result.Point) (float64, bool) {
		return f.flow.common.tokensPerSecond(f.conditions.Seconds())
	}}
	of[metric.CommonSpeed] = Definition{Window: func(f *Fold, _ *result.Point) (float64, bool) {
		return f.flow.common.answerSpeed()
	}}
	of[metric.ExpectedCachedShare] = Definition{Window: func(_ *Fold, p *result.Point) (float64, bool) {
		if p.PrefixCache == nil {
			return 0, false
		}
		return p.PrefixCache.Expected, true
	}}
	ofAnswers := func(which func(*result.Answers) *result.Answered) Definition {
		return Definition{Window: func(_ *Fold, p *result.Point) (float64, bool) {
			if p.Answers == nil {
				return 0, false
			}
			a := which(p.Answers)
			if a == nil || a.Share == nil {
				return 0, false
			}
			return *a.Share, true
		}}
	}
	of[metric.Wrong] = ofAnswers(func(a *result.Answers) *result.Answered { return a.Wrong })
	of[metric.Differing] = ofAnswers(func(a *result.Answers) *result.Answered { return a.Differ })
	var list []Definition
	for _, m := range metric.All() {
		if d, ok := of[m.Name]; ok {
			d.Metric = m
			list = append(list, d)
		}
	}
	return list
}

// countOf is a number of tokens, if it is known.
func countOf(n func(*Request) int32) func(*Request, int64) (float64, State) {
	return func(q *Request, _ int64) (float64, State) {
		if n := n(q); n >= 0 {
			return float64(n), Known
		}
		return 0, Missing
	}
}

// Value is the metric of one request in its unit; ok is false where it has no
// definite value.
func (d *Definition) Value(q *Request) (x float64, ok bool) {
	const until = 0 // only tells how long those were followed that have no value
	x, is := d.Request(q, until)
	return x / d.unitDivisor(), is == Known
}

// unitDivisor returns the divisor that converts values to the unit they are published in.
func (d *Definition) unitDivisor() float64 {
	if d.Unit == metric.Milliseconds {
		return inMS
	}
	return asCount
}

// countsUnended says that a request which did not end has a part in the sample: it
// counts as longer than it was followed.
func (d *Definition) countsUnended() bool { return !d.answered && !d.Client }

// summarizePart is the distribution over a part, or why there is none; of is the sample
// of its requests.
func (d *Definition) summarizePart(c *part, of *sample) (*result.Summary, result.Reason) {
	if d.Stream && c.answeredWhole() {
		return nil, result.Reason{Code: result.NotStreaming}
	}
	if d.single && c.tally.several {
		return nil, result.Reason{Code: result.SeveralAnswers}
	}
	var s *result.Summary
	var why result.Reason
	switch {
	case d.Request == nil && c.tally.streamed:
		if of, why = d.pooledSample(c); of != nil {
			s = of.summarizeValues()
			of.free()
		}
	case of != nil:
		s = of.summaryOf(c)
	}
	switch {
	case s != nil:
		return s, result.Reason{}
	case !why.IsNone():
		return nil, why
	case d.lacks == "" || d.Stream && c.tally.wellCount() == 0:
		return nil, result.Reason{Code: result.NoneEndedWell}
	}
	return nil, result.Reason{Code: d.lacks}
}

// pooledSample is the sample of a metric that is pooled over requests, or why there is
// none.
func (d *Definition) pooledSample(c *part) (*sample, result.Reason) {
	if d.pool != nil {
		return d.pool(c)
	}
	return c.handedOver(d), result.Reason{}
}

// chunkGaps are the gaps between arrivals.
func (c *part) chunkGaps() (*sample, result.Reason) { return c.gapSample(false), result.Reason{} }

// tokenGaps are the gaps between tokens, of the streams that tell theirs.
func (c *part) tokenGaps() (*sample, result.Reason) {
	if why := c.noITL(); !why.IsNone() {
		return nil, why
	}
	s := c.gapSample(true)
	known, all := c.countStreams()
	s.streams, s.excluded = known.requests, all.requests-known.requests
	return s, result.Reason{}
}

// noITL returns why there are no token gaps, none if there are: of fewer than half
// of the streams they would not be those of the run.
func (c *part) noITL() result.Reason {
	known, all := c.countStreams()
	if 2*known.requests < all.requests {
		return result.Reason{Code: result.ChunkTokensUnknown, N: float64(all.requests - known.requests), Of: float64(all.requests)}
	}
	return result.Reason{}
}
