package measure

import (
	"fmt"
	"math"

	"pitot/internal/data/metric"
	"pitot/internal/data/record"
	"pitot/internal/data/result"
	"pitot/internal/stat"
)

// Values are divided by these to get the unit they are published in.
const (
	inMS    = 1e6
	asCount = 1
)

// part is a cohort, or a class of it, ready to be asked.
type part struct {
	requests []*Request
	sets     []*gapSet
	until    int64 // end of the records
	streamed bool  // some request asked to stream
	oneEach  bool  // events of streams without usage count as one token each
	well     int   // requests that ended well
	conf     *confidence

	definitions []Definition
	takes       takes
}

// takes are the functions that take a metric from a request, by its name.
type takes map[metric.Name]func(q *Request, until int64) (float64, State)

func takesOf(definitions []Definition) takes {
	t := takes{}
	for i := range definitions {
		if d := &definitions[i]; d.Request != nil {
			t[d.Name] = d.Request
		}
	}
	return t
}

// collect makes a sample of one metric.
func (c *part) collect(unit float64, take func(*Request) (float64, State)) sample {
	s := sample{unit: unit, conf: c.conf}
	var values list
	for _, q := range c.requests {
		x, st := take(q)
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
func ok(take func(*Request) (float64, State)) func(*Request) (float64, State) {
	return func(q *Request) (float64, State) {
		if q.outcome != record.OK {
			return 0, Excluded
		}
		return take(q)
	}
}

// summary is a metric's distribution, with the 99th percentile of the survivors
// beside it where not all survived, and the bounds that follow from the requests'
// own: requests that are unseen have no value only because merging hid it, they
// may be anywhere between their bounds, or have none.
func (c *part) summary(d *Definition) *result.Summary {
	take := func(q *Request) (float64, State) { return d.Request(q, c.until) }
	if d.answered {
		take = ok(take)
	}
	s := c.collect(d.unit(), take)
	if d.followed() {
		s.name = d.Key
	}
	if d.low != nil || d.high != nil {
		s.bounds = c.bounds(d, take)
	}
	out := s.summary()
	if out != nil && d.followed() && c.well < len(c.requests) {
		c.survivors(out, d.unit(), take)
	}
	return out
}

// survivors gives the 99th percentile of the requests that ended well.
func (c *part) survivors(out *result.Summary, unit float64, take func(*Request) (float64, State)) {
	s := c.collect(unit, ok(take))
	if few, _ := stat.Support(.99); s.n() >= few {
		if x, over := s.percentile(.99); !over {
			x /= unit
			out.P99OK = &x
		}
	}
}

// bounds are what merged arrivals leave open of a metric's percentiles, nil if
// nothing. Without a function the value itself is its bound.
func (c *part) bounds(d *Definition, take func(*Request) (float64, State)) func(p float64) (lo, hi float64) {
	open := false
	edge := func(bound func(*Request) float64, unseen func(*Request) bool) *sample {
		e := c.collect(d.unit(), func(q *Request) (float64, State) {
			x, st := take(q)
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
	low, high, seen := edge(d.low, d.unseen), edge(d.high, d.unseen), edge(d.high, nil)
	if !open {
		return nil
	}
	return func(p float64) (float64, float64) {
		a, _ := low.percentile(p)
		b, _ := high.percentile(p)
		c, _ := seen.percentile(p)
		return a, max(b, c)
	}
}

// taken is the function that takes a metric from a request: one that no request
// has is missing of all.
func (c *part) taken(name metric.Name) func(*Request) (float64, State) {
	if take := c.takes[name]; take != nil {
		return func(q *Request) (float64, State) { return take(q, c.until) }
	}
	return func(*Request) (float64, State) { return 0, Missing }
}

// metrics are all distributions over the part.
func (c *part) metrics() result.Metrics {
	m := result.Metrics{Undefined: map[string]string{}}
	for i := range c.definitions {
		d := &c.definitions[i]
		s, why := d.summary(c)
		if m.List = append(m.List, result.Distribution{Metric: d.Metric, Summary: s}); s == nil {
			m.Undefined[d.Key] = why
		}
	}
	return m
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

func (c *part) any(is func(*Request) bool) bool {
	for _, q := range c.requests {
		if is(q) {
			return true
		}
	}
	return false
}
