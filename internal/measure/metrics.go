package measure

import (
	"fmt"
	"math"

	"pitot/internal/data/record"
	"pitot/internal/data/result"
	"pitot/internal/slo"
	"pitot/internal/stat"
)

// Values are divided by these to get the unit they are published in.
const (
	inMS    = 1e6
	asCount = 1
)

// part is a cohort, or a class of it, ready to be asked.
type part struct {
	requests []*request
	sets     []*gapSet
	until    int64 // end of the records
	streamed bool  // some request asked to stream
	oneEach  bool  // events of streams without usage count as one token each
	well     int   // requests that ended well
	conf     *confidence
}

// collect makes a sample of one metric.
func (c *part) collect(unit float64, metric func(*request) (float64, State)) sample {
	s := sample{unit: unit, conf: c.conf}
	var values list
	for _, q := range c.requests {
		x, st := metric(q)
		switch st {
		case Known:
			values = append(values, x)
			s.order = append(s.order, x)
		case Longer:
			s.longer = append(s.longer, x)
			s.order = append(s.order, math.Inf(1))
		case Missing:
			if q.outcome == record.OK {
				s.missing++
			}
		}
	}
	stat.SortFloat64(values)
	stat.SortFloat64(s.longer)
	s.values = values
	return s
}

// ok narrows a metric to the requests that ended well, whose values are all
// known.
func ok(metric func(*request) (float64, State)) func(*request) (float64, State) {
	return func(q *request) (float64, State) {
		if q.outcome != record.OK {
			return 0, Excluded
		}
		return metric(q)
	}
}

// summary is a sample's, with the 99th percentile of the survivors beside it
// where not all survived.
func (c *part) summary(name string, unit float64, metric func(*request) (float64, State)) *result.Summary {
	s := c.collect(unit, metric)
	s.name = name
	return c.survivors(s.summary(), unit, metric)
}

func (c *part) survivors(out *result.Summary, unit float64, metric func(*request) (float64, State)) *result.Summary {
	if out == nil || c.well == len(c.requests) {
		return out
	}
	s := c.collect(unit, ok(metric))
	if few, _ := stat.Support(.99); s.n() >= few {
		if x, over := s.percentile(.99); !over {
			x /= unit
			out.P99OK = &x
		}
	}
	return out
}

// latency is the metric of an objective that single requests have.
func (c *part) latency(m slo.Metric) func(*request) (float64, State) {
	switch m {
	case slo.TTFT:
		return func(q *request) (float64, State) { return q.TTFT(Response, c.until) }
	case slo.TTFA:
		return func(q *request) (float64, State) { return q.TTFA(Response, c.until) }
	case slo.TPOT:
		return func(q *request) (float64, State) { return q.TPOT(c.until) }
	case slo.Stall:
		return func(q *request) (float64, State) { return q.longestGap(c.until) }
	case slo.E2E:
		return func(q *request) (float64, State) { return q.E2E(Response, c.until) }
	case slo.Generation:
		return func(q *request) (float64, State) { return q.Generation(c.until) }
	}
	return func(*request) (float64, State) { return 0, Missing }
}

// metrics are all distributions over the part.
func (c *part) metrics() result.Metrics {
	m := result.Metrics{Undefined: map[string]string{}}
	m.E2E = c.summary("e2e_ms", inMS, c.latency(slo.E2E))
	m.Service.E2E = c.summary("service.e2e_ms", inMS, func(q *request) (float64, State) { return q.E2E(Service, c.until) })
	m.Lag = c.summaryAll(inMS, func(q *request) (float64, State) { return q.span(q.ready, q.sent) })
	m.Held = c.summaryAll(inMS, func(q *request) (float64, State) { return q.span(q.due, q.eligible) })
	m.Connect = c.summaryAll(inMS, func(q *request) (float64, State) { return q.span(q.eligible, q.ready) })
	c.counts(&m)
	if c.streamed {
		c.streaming(&m)
	}
	c.explain(&m)
	return m
}

// summaryAll is for what requests have however they ended.
func (c *part) summaryAll(unit float64, metric func(*request) (float64, State)) *result.Summary {
	s := c.collect(unit, metric)
	return s.summary()
}

// counts are the distributions of tokens.
func (c *part) counts(m *result.Metrics) {
	tokens := func(of func(*request) int32) func(*request) (float64, State) {
		return ok(func(q *request) (float64, State) {
			if n := of(q); n >= 0 {
				return float64(n), Known
			}
			return 0, Missing
		})
	}
	m.InputTokens = c.summaryAll(asCount, tokens((*request).input))
	m.OutputTokens = c.summaryAll(asCount, tokens(func(q *request) int32 { return q.output }))
	m.CachedTokens = c.summaryAll(asCount, tokens(func(q *request) int32 { return q.cached }))
	if m.InputTokens != nil && c.any(func(q *request) bool { return q.outcome == record.OK && q.prompt < 0 && q.inputPlanned >= 0 }) {
		m.InputTokens.Label = "planned: the server did not count"
	}
}

// streaming are the metrics that only a stream has.
func (c *part) streaming(m *result.Metrics) {
	hidden := c.any(func(q *request) bool { return q.hidden })
	assumed := c.any(func(q *request) bool { return q.outcome == record.OK && q.stream && q.firstTokens < 1 })

	m.TTFT = c.bounded("ttft_ms", c.latency(slo.TTFT),
		func(q *request) float64 { return float64(max(0, q.firstLo-q.due)) }, nil, nil)
	if m.TTFT != nil && hidden {
		m.TTFT.Label = "to the first visible token: hidden reasoning came before"
	}
	m.Service.TTFT = c.summary("service.ttft_ms", inMS, func(q *request) (float64, State) { return q.TTFT(Service, c.until) })
	m.TTFA = c.summary("ttfa_ms", inMS, c.latency(slo.TTFA))
	m.Generation = c.summary("generation_ms", inMS, c.latency(slo.Generation))
	m.TPOT = c.summary("tpot_ms", inMS, c.latency(slo.TPOT))
	if m.TPOT != nil && assumed {
		m.TPOT.Label = "assumed: one token in the first event"
	}
	m.TPOTn1 = c.summary("tpot_n1_ms", inMS, func(q *request) (float64, State) { return q.TPOTn1(c.until) })
	m.Stall = c.bounded("stall_ms", c.latency(slo.Stall),
		func(q *request) float64 { return float64(q.stallLo) },
		func(q *request) float64 { return float64(q.stallHi) },
		func(q *request) bool { return !q.gaps && q.stallHi > 0 })

	m.TokensPerChunk = c.summaryAll(asCount, ok(func(q *request) (float64, State) {
		if q.visible < 0 || q.chunks < 1 {
			return 0, Missing
		}
		carried := q.visible
		if q.marker {
			carried--
		}
		return float64(carried) / float64(q.chunks), Known
	}))
	// From sent on: waiting for a slot or a connection is no prefill.
	m.PrefillRate = c.summaryAll(asCount, ok(func(q *request) (float64, State) {
		ttft, st := q.TTFT(Service, c.until)
		if st != Known || ttft <= 0 || q.prompt < 0 {
			return 0, Missing
		}
		return float64(q.prompt-max(q.cached, 0)) / ttft * 1e9, Known
	}))
	m.DecodeRate = c.summaryAll(asCount, ok(func(q *request) (float64, State) {
		tpot, st := q.TPOT(c.until)
		if st != Known || tpot <= 0 {
			return 0, Missing
		}
		return 1e9 / tpot, Known
	}))
	icl := c.gaps(false)
	m.ICL = icl.summary()
	if why := c.noITL(); why != "" {
		m.Undefined["itl_ms"] = why
		return
	}
	itl := c.gaps(true)
	if m.ITL = itl.summary(); m.ITL != nil {
		known, all := c.pool()
		m.ITL.Streams, m.ITL.Excluded = known.requests, all.requests-known.requests
	}
}

// bounded is a summary with the bounds that follow from the requests' own;
// without a function the value itself is that bound. Requests for which unseen
// holds have no value only because merging hid it: they may be anywhere
// between their bounds, or have none.
func (c *part) bounded(name string, metric func(*request) (float64, State), lo, hi func(*request) float64, unseen func(*request) bool) *result.Summary {
	s := c.collect(inMS, metric)
	s.name = name
	open := false
	edge := func(bound func(*request) float64, unseen func(*request) bool) *sample {
		e := c.collect(inMS, func(q *request) (float64, State) {
			x, st := metric(q)
			if st == Missing && unseen != nil && unseen(q) {
				open = true
				return bound(q), Known
			}
			if st != Known || bound == nil {
				return x, st
			}
			b := bound(q)
			open = open || b != x
			return b, st
		})
		return &e
	}
	low, high, seen := edge(lo, unseen), edge(hi, unseen), edge(hi, nil)
	if open {
		s.bounds = func(p float64) (float64, float64) {
			a, _ := low.percentile(p)
			b, _ := high.percentile(p)
			c, _ := seen.percentile(p)
			return a, max(b, c)
		}
	}
	return c.survivors(s.summary(), inMS, metric)
}

// gaps is the sample of chunk gaps, or of the token gaps of those streams
// whose tokens are known.
func (c *part) gaps(perToken bool) sample {
	limit := unknown
	if perToken {
		limit = c.trusted()
	}
	v := newGapView(c.sets, perToken, limit)
	s := sample{values: v, unit: inMS, conf: c.conf.ofGaps()}
	var arrivals, chunks int64
	amortised := false
	for _, g := range c.sets {
		amortised = amortised || g.amortised
		for t := range limit + 1 {
			arrivals, chunks = arrivals+g.streams[t].arrivals, chunks+g.streams[t].chunks
			for _, ns := range g.cut[t] {
				s.longer = append(s.longer, float64(ns))
			}
		}
	}
	stat.SortFloat64(s.longer)
	if l := newLadder(c.sets, v); l != nil {
		s.bounds = func(p float64) (lo, hi float64) { return l.at(p, s.longer.size()) }
	}
	shared := chunks - arrivals
	switch {
	case perToken && (amortised || float64(shared) > mergedLimit*float64(chunks)):
		s.label = "amortised"
	case !perToken && shared > 0:
		s.label = fmt.Sprintf("%.2g %% of the events shared an arrival", 100*float64(shared)/float64(chunks))
	}
	return s
}

// trusted is the least trust whose gaps are token gaps.
func (c *part) trusted() trust {
	if c.oneEach {
		return alike
	}
	return counted
}

// pool counts the streams with gaps, and those among them whose tokens are
// known.
func (c *part) pool() (known, all streams) {
	for _, g := range c.sets {
		for t, n := range g.streams {
			all.plus(n)
			if trust(t) <= c.trusted() {
				known.plus(n)
			}
		}
	}
	return known, all
}

func (s *streams) plus(n streams) {
	s.requests += n.requests
	s.tokens += n.tokens
	s.arrivals += n.arrivals
	s.chunks += n.chunks
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

func (c *part) any(is func(*request) bool) bool {
	for _, q := range c.requests {
		if is(q) {
			return true
		}
	}
	return false
}

// explain gives a reason for every metric that is not there.
func (c *part) explain(m *result.Metrics) {
	why := func(there *result.Summary, name, reason string) {
		if there == nil && m.Undefined[name] == "" {
			m.Undefined[name] = reason
		}
	}
	nothing := "no request ended well or was cut"
	uncounted := "the server did not count these tokens"
	why(m.E2E, "e2e_ms", nothing)
	why(m.Service.E2E, "service.e2e_ms", nothing)
	for name, s := range map[string]*result.Summary{"lag_ms": m.Lag, "held_ms": m.Held, "connect_ms": m.Connect} {
		why(s, name, "no request has the stamps")
	}
	for name, s := range map[string]*result.Summary{
		"input_tokens": m.InputTokens, "output_tokens": m.OutputTokens, "cached_tokens": m.CachedTokens} {
		why(s, name, uncounted)
	}
	stream := map[string]*result.Summary{"ttft_ms": m.TTFT, "ttfa_ms": m.TTFA, "tpot_ms": m.TPOT, "tpot_n1_ms": m.TPOTn1,
		"itl_ms": m.ITL, "icl_ms": m.ICL, "stall_ms": m.Stall, "generation_ms": m.Generation, "service.ttft_ms": m.Service.TTFT,
		"tokens_per_chunk": m.TokensPerChunk, "prefill_tokens_per_s": m.PrefillRate, "decode_tokens_per_s": m.DecodeRate}
	for name, s := range stream {
		reason := nothing
		switch {
		case !c.streamed && len(c.requests) > 0:
			reason = "not streaming"
		case c.well == 0:
		case name == "itl_ms", name == "icl_ms", name == "stall_ms":
			reason = "no answer came in two arrivals or more"
		case name == "tpot_ms", name == "tpot_n1_ms", name == "decode_tokens_per_s":
			reason = "no answer has more counted tokens than its first event"
		case name == "tokens_per_chunk", name == "prefill_tokens_per_s":
			reason = uncounted
		}
		why(s, name, reason)
	}
}
