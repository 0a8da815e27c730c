package metrics

import (
	"fmt"

	"pitot/internal/metrics/validity"
	"pitot/internal/results/metric"
	"pitot/internal/results/record"
	"pitot/internal/results/result"
	"pitot/internal/results/spill"
)

// Values are divided by these to get the unit they are published in.
const (
	inMS    = 1e6
	asCount = 1
)

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

// question asks for a sample of what is taken from requests.
type question struct {
	unit float64
	take func(*Request) (float64, State)
	of   *Definition // whose sample it is, nil for none
}

// collectSamples makes a sample for each question about a part.
func (c *part) collectSamples(questions ...question) []*sample {
	return collectSamples([]*part{c}, questions)[0]
}

// collectSamples makes a sample for each part and question, in one pass over the requests.
// The first part is the whole cohort, and no request is in two others.
func collectSamples(parts []*part, questions []question) [][]*sample {
	all := parts[0]
	samples := make([][]*sample, len(parts))
	for i, c := range parts {
		for k := range questions {
			samples[i] = append(samples[i], newSample(c, &questions[k]))
		}
	}
	class := make([]int, 0) // by group: its part, other than the whole
	for i, c := range parts[1:] {
		for g, in := range c.in {
			for len(class) <= g {
				class = append(class, 0)
			}
			if in {
				class[g] = i + 1
			}
		}
	}
	for q := range all.requests() {
		own := 0
		if int(q.group) < len(class) {
			own = class[q.group]
		}
		for k := range questions {
			x, st := questions[k].take(q)
			samples[0][k].addRequest(q, x, st)
			if own > 0 {
				samples[own][k].addRequest(q, x, st)
			}
		}
	}
	return samples
}

// onlySuccessful narrows a metric to the requests that ended well, whose values are all
// known.
func onlySuccessful(take func(*Request) (float64, State)) func(*Request) (float64, State) {
	return func(q *Request) (float64, State) {
		if q.outcome != record.OK {
			return 0, Excluded
		}
		return take(q)
	}
}

// newQuestion asks for a metric's sample over a part.
func (d *Definition) newQuestion(until int64) question {
	value := func(q *Request) (float64, State) { return d.Request(q, until) }
	if d.answered {
		value = onlySuccessful(value)
	}
	return question{d.unitDivisor(), value, d}
}

// edgeQuestions ask for what merged arrivals leave open of a metric: the samples of its
// lower bounds and of its upper ones, and the latter without the requests that have
// no value only because merging hid it. Without a function the value itself is its
// bound.
func (d *Definition) edgeQuestions(until int64) []question {
	take := d.newQuestion(until).take
	edge := func(bound func(*Request) float64, unseen func(*Request) bool) question {
		return question{d.unitDivisor(), func(q *Request) (float64, State) {
			x, st := take(q)
			switch {
			case st == Missing && unseen != nil && unseen(q):
				return bound(q), Known
			case st == Known && bound != nil:
				return bound(q), st
			}
			return x, st
		}, nil}
	}
	return []question{edge(d.low, d.unseen), edge(d.high, d.unseen), edge(d.high, nil)}
}

// isOpen says that merged arrivals leave a request's value open.
func (d *Definition) isOpen(q *Request, x float64, st State) bool {
	switch st {
	case Known:
		return d.low != nil && d.low(q) != x || d.high != nil && d.high(q) != x
	case Missing:
		return d.unseen != nil && d.unseen(q)
	}
	return false
}

// metricFunc is the function that takes a metric from a request: one that no request
// has is missing of all.
func (c *part) metricFunc(name metric.Name) func(*Request) (float64, State) {
	if take := c.takes[name]; take != nil {
		return func(q *Request) (float64, State) { return take(q, c.until) }
	}
	return func(*Request) (float64, State) { return 0, Missing }
}

// together is the number of metrics that are taken from the requests in one pass. That many are in
// memory at once.
const together = 4

// metricsOf are all distributions over each of the parts. The first is the whole
// cohort.
func metricsOf(parts []*part) []result.Metrics {
	all := parts[0]
	metrics := make([]result.Metrics, len(parts))
	for i := range metrics {
		metrics[i].Undefined = map[string]result.Reason{}
		metrics[i].List = make([]result.Distribution, len(all.definitions))
	}
	setSummary := func(i, k int, s *result.Summary, why result.Reason) {
		m, d := &metrics[i], &all.definitions[k]
		if m.List[k] = (result.Distribution{Metric: d.Metric, Summary: s}); s == nil {
			m.Undefined[d.Key] = why
		}
	}
	var asked []question
	var places []int
	answer := func() {
		if len(asked) == 0 {
			return
		}
		for i, samples := range collectSamples(parts, asked) {
			for k, s := range samples {
				summary, why := asked[k].of.summarizePart(parts[i], s)
				setSummary(i, places[k], summary, why)
				s.free()
			}
		}
		asked, places = asked[:0], places[:0]
	}
	for k := range all.definitions {
		d := &all.definitions[k]
		if d.Request == nil || d.Stream && !all.tally.streamed {
			for i, c := range parts {
				s, why := d.summarizePart(c, nil)
				setSummary(i, k, s, why)
			}
			continue
		}
		if asked, places = append(asked, d.newQuestion(all.until)), append(places, k); len(asked) == together {
			answer()
		}
	}
	answer()
	return metrics
}

// gapSample is the sample of chunk gaps, or of the token gaps of those streams
// whose tokens are known.
func (c *part) gapSample(perToken bool) *sample {
	limit := unknown
	if perToken {
		limit = c.leastTrust()
	}
	v := newGapView(c.sets, perToken, limit, c.scratch)
	s := &sample{values: v, longer: spill.NewNumbers(c.scratch), unit: inMS, conf: c.conf.ofGaps()}
	var arrivals, chunks int64
	amortised := false
	for _, g := range c.sets {
		amortised = amortised || g.amortised
		for t := range limit + 1 {
			arrivals, chunks = arrivals+g.streams[t].arrivals, chunks+g.streams[t].chunks
			for ns := range g.cut[t].All() {
				s.longer.Add(float64(ns))
			}
		}
	}
	s.frees = append(s.frees, v.free, s.longer.Free)
	if l := newLadder(c.sets, v, c.scratch); l != nil {
		s.frees = append(s.frees, l.free)
		s.bounds = func(p float64) (lo, hi float64) { return l.boundsAt(p, s.longer.Len()) }
	}
	shared := chunks - arrivals
	switch {
	case perToken && (amortised || float64(shared) > validity.MergedLimit*float64(chunks)):
		s.label = "amortised"
	case !perToken && shared > 0:
		s.label = fmt.Sprintf("%.2g %% of the events shared an arrival", 100*float64(shared)/float64(chunks))
	}
	return s
}

// handedOver is the sample of what requests handed over of a metric.
func (c *part) handedOver(d *Definition) *sample {
	v := &gapView{}
	s := &sample{values: v, longer: spill.NewNumbers(c.scratch), unit: d.unitDivisor(), conf: c.conf.ofGaps()}
	s.frees = append(s.frees, s.longer.Free)
	for _, g := range c.sets {
		h := g.others[d.Name]
		if h == nil {
			continue
		}
		if h.values.Len() > 0 {
			v.wide = append(v.wide, wideRun{1, h.values}) // which stays the set's
			v.total += h.values.Len()
			v.largest = max(v.largest, h.values.Max())
		}
		for ns := range h.longer.All() {
			s.longer.Add(float64(ns))
		}
	}
	return s
}

// leastTrust is the least trust whose gaps are token gaps.
func (c *part) leastTrust() trust {
	if c.oneEach {
		return alike
	}
	return counted
}

// countStreams counts the streams with gaps, and those among them whose tokens are
// known.
func (c *part) countStreams() (known, all streams) {
	for _, g := range c.sets {
		for t, n := range g.streams {
			all.plus(n)
			if trust(t) <= c.leastTrust() {
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
