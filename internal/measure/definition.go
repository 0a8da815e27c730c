package measure

import (
	"fmt"

	"pitot/internal/data/metric"
	"pitot/internal/data/record"
	"pitot/internal/data/result"
)

// Definition is how a metric of the catalogue is measured: Request or gaps takes
// it.
type Definition struct {
	*metric.Metric

	// Request takes it from a request, which may not have ended by until: in
	// nanoseconds if its unit is a time, else in its unit.
	Request func(q *Request, until int64) (float64, State)

	ofGaps   bool                                    // Request needs the request's gaps
	answered bool                                    // by the sample of requests that ended well alone
	gaps     func(c *part) (*result.Summary, string) // takes it from the gaps, or says why there is none
	low      func(*Request) float64                  // lower bound of a known value that merged arrivals leave open
	high     func(*Request) float64                  // upper bound
	unseen   func(*Request) bool                     // a request has no value only because merging hid it
	label    string                                  // what a reader must know of the summary
	labelled func(*Request) bool                     // if this holds for any request
	lacks    string                                  // why there is none where requests ended well
}

const (
	uncounted  = "the server did not count these tokens"
	oneArrival = "no answer came in two arrivals or more"
	oneToken   = "no answer has more counted tokens than its first event"
	unstamped  = "no request has the stamps"
)

// Definitions are those of the catalogue's distributions, in its order.
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
			Request: func(q *Request, until int64) (float64, State) { return q.TPOT(until) }, lacks: oneToken,
			label:    "assumed: one token in the first event",
			labelled: func(q *Request) bool { return q.outcome == record.OK && q.stream && q.firstTokens < 1 },
		},
		metric.TPOTn1: {Request: func(q *Request, until int64) (float64, State) { return q.TPOTn1(until) }, lacks: oneToken},
		metric.ITL:    {gaps: (*part).tokenGaps, lacks: oneArrival},
		metric.ICL: {gaps: func(c *part) (*result.Summary, string) {
			s := c.gaps(false)
			defer s.free()
			return s.summary(), ""
		}, lacks: oneArrival},
		metric.Stall: {
			Request: (*Request).longestGap, ofGaps: true, lacks: oneArrival,
			low:    func(q *Request) float64 { return float64(q.stallLo) },
			high:   func(q *Request) float64 { return float64(q.stallHi) },
			unseen: func(q *Request) bool { return !q.gaps && q.stallHi > 0 },
		},
		metric.E2E:        {Request: func(q *Request, until int64) (float64, State) { return q.E2E(Response, until) }},
		metric.ServiceE2E: {Request: func(q *Request, until int64) (float64, State) { return q.E2E(Service, until) }},
		metric.Generation: {Request: func(q *Request, until int64) (float64, State) { return q.Generation(until) }},

		metric.Lag:     {Request: func(q *Request, _ int64) (float64, State) { return q.span(q.ready, q.sent) }, lacks: unstamped},
		metric.Held:    {Request: func(q *Request, _ int64) (float64, State) { return q.span(q.due, q.eligible) }, lacks: unstamped},
		metric.Connect: {Request: func(q *Request, _ int64) (float64, State) { return q.span(q.eligible, q.ready) }, lacks: unstamped},

		metric.InputTokens: {
			Request: countOf(func(q *Request) int32 { return q.input() }), answered: true, lacks: uncounted,
			label:    "planned: the server did not count",
			labelled: func(q *Request) bool { return q.outcome == record.OK && q.prompt < 0 && q.inputPlanned >= 0 },
		},
		metric.OutputTokens:   {Request: countOf(func(q *Request) int32 { return q.output }), answered: true, lacks: uncounted},
		metric.CachedTokens:   {Request: countOf(func(q *Request) int32 { return q.cached }), answered: true, lacks: uncounted},
		metric.TokensPerChunk: {Request: (*Request).tokensPerChunk, answered: true, lacks: uncounted},
		metric.PrefillRate:    {Request: (*Request).prefillRate, answered: true, lacks: uncounted},
		metric.DecodeRate:     {Request: (*Request).decodeRate, answered: true, lacks: oneToken},
	}
	var list []Definition
	for _, m := range metric.All().Distributions() {
		d := of[m.Name]
		d.Metric = m
		list = append(list, d)
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

// OfRow says that a request's row and its events tell the metric, without its gaps:
// that [RequestOf] has it.
func (d *Definition) OfRow() bool { return d.Request != nil && !d.ofGaps }

// Value is the metric of one request in its unit; ok is false where it has no
// definite value.
func (d *Definition) Value(q *Request) (x float64, ok bool) {
	const until = 0 // only tells how long those were followed that have no value
	x, is := d.Request(q, until)
	return x / d.unit(), is == Known
}

// unit is what values are divided by to get the unit they are published in.
func (d *Definition) unit() float64 {
	if d.Unit == metric.Milliseconds {
		return inMS
	}
	return asCount
}

// followed says that a request which did not end has a part in the sample: it
// counts as longer than it was followed.
func (d *Definition) followed() bool { return !d.answered && !d.Client }

// summary is the distribution over a part, or why there is none; of is the sample
// of its requests.
func (d *Definition) summary(c *part, of *sample) (*result.Summary, string) {
	if d.Stream && !c.tally.streamed && c.tally.due() > 0 {
		return nil, notStreaming
	}
	var s *result.Summary
	why := ""
	switch {
	case d.gaps != nil && c.tally.streamed:
		s, why = d.gaps(c)
	case of != nil:
		s = of.summaryOf(c)
	}
	switch {
	case s != nil:
		return s, ""
	case why != "":
		return nil, why
	case d.lacks == "" || d.Stream && c.tally.well() == 0:
		return nil, "no request ended well or was cut"
	}
	return nil, d.lacks
}

// tokenGaps are the gaps between tokens, of the streams that tell theirs.
func (c *part) tokenGaps() (*result.Summary, string) {
	if why := c.noITL(); why != "" {
		return nil, why
	}
	s := c.gaps(true)
	defer s.free()
	out := s.summary()
	if out != nil {
		known, all := c.pool()
		out.Streams, out.Excluded = known.requests, all.requests-known.requests
	}
	return out, ""
}

// noITL says why there are no token gaps, "" if there are: of fewer than half
// of the streams they would not be those of the run.
func (c *part) noITL() string {
	known, all := c.pool()
	if 2*known.requests < all.requests {
		return fmt.Sprintf("the tokens in a chunk are not known for %d of %d streams: see icl and stall", all.requests-known.requests, all.requests)
	}
	return ""
}
