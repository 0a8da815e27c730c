package measure

import (
	"cmp"
	"fmt"
	"slices"

	"pitot/internal/data/record"
	"pitot/internal/data/result"
	"pitot/internal/stat"
)

// Point is the result of all that was added so far. More can be added after.
func (f *Fold) Point() result.Point {
	buf := make([]uint32, blockSize) // scratch for sorting
	for _, g := range f.groups.list {
		g.gaps.sort(buf)
	}
	all := f.part(f.groups.list, true)
	p := result.Point{
		Stage:      f.setup.Stage,
		Load:       f.setup.Load,
		Seconds:    f.seconds(),
		Requests:   all.account(),
		Throughput: f.throughput(len(all.requests)),
	}
	took := f.residences(all)
	p.Seconds.Residence = took.light
	f.stability(&p, took)
	f.conf = f.confidence(p.Stability, took)
	f.rates(&p.Throughput, f.conf)
	p.Throughput.Late = f.late(p.Throughput.OutputTokensPerS)
	p.Metrics = all.metrics()
	p.Requests.Errors, p.Requests.Finish = clone(f.errors), clone(f.finish)
	for class, e := range f.examples {
		if p.Requests.ErrorExamples == nil {
			p.Requests.ErrorExamples = map[string]string{}
		}
		p.Requests.ErrorExamples[class] = e.detail
	}
	objective, good := all.objective(f.setup.SLO)
	all.attained(objective, f.setup.SLO)
	p.SLO = objective
	if objective != nil {
		p.Goodput = f.goodput(good)
	}
	p.Cost = f.cost(&p)
	p.Outcome = outcome(lost(p.Requests))
	p.Classes = f.classes()
	switch set := f.setup.Settling; {
	case p.Stability == stat.Unstable:
		if p.Outcome != result.Failing {
			p.Outcome = result.Unstable
		}
		// That a limit is met now says nothing: the queue goes on growing.
		unsteady(&p, fromDue, p.StabilityWhy, yes)
	case set != nil && set.Why != "":
		unsteady(&p, steady, notSettled, yes, no)
	}
	p.Standstills = f.standstills(all.requests)
	f.untilReached(&p)
	if f.setup.GaveUp {
		f.endedEarly(&p)
	}
	if f.setup.Gone != nil {
		f.gone(&p)
	}
	p.Checks = f.checks(all, &p)
	p.Verdict = Verdict(p.Checks)
	return p
}

func clone(m map[string]int) map[string]int {
	out := make(map[string]int, len(m))
	for k, v := range m {
		out[k] = v
	}
	return out
}

// part is the requests and gaps of some groups. Requests are in the order in
// which they were due, and groups in that of their names, whichever came first:
// sums of floats depend on it.
func (f *Fold) part(list []*group, all bool) *part {
	list = slices.Clone(list)
	slices.SortFunc(list, func(a, b *group) int {
		return cmp.Or(cmp.Compare(a.key.name, b.key.name), cmp.Compare(a.key.bucket, b.key.bucket))
	})
	c := &part{until: f.end, conf: &f.conf, oneEach: f.flow.oneEach(), definitions: f.definitions, takes: f.takes}
	in := make([]bool, len(f.groups.list))
	n := 0
	for _, g := range list {
		c.sets = append(c.sets, &g.gaps)
		in[g.index] = true
		n += g.n
	}
	c.requests = make([]*Request, 0, n)
	for i := range f.cohort {
		if q := &f.cohort[i]; all || in[q.group] {
			c.requests = append(c.requests, q)
			c.streamed = c.streamed || q.stream
			if q.outcome == record.OK {
				c.well++
			}
		}
	}
	slices.SortFunc(c.requests, func(a, b *Request) int { return cmp.Or(cmp.Compare(a.due, b.due), cmp.Compare(a.id, b.id)) })
	return c
}

// account counts requests by how they ended.
func (c *part) account() result.Requests {
	r := result.Requests{Due: len(c.requests), Errors: map[string]int{}, Finish: map[string]int{}}
	for _, q := range c.requests {
		switch q.outcome {
		case record.OK:
			r.OK++
		case record.Failed:
			r.Failed++
		case record.Cut:
			r.Cut++
		case record.Unsent:
			r.Unsent++
		}
	}
	return r
}

func (f *Fold) seconds() result.Seconds {
	last := f.setup.T1
	for i := range f.cohort {
		last = max(last, f.cohort[i].done)
	}
	return result.Seconds{
		Warmup: float64(f.setup.T0) / 1e9,
		Window: f.setup.seconds(),
		Drain:  float64(last-f.setup.T1) / 1e9,
	}
}

// shortest is the least window, in seconds, that rates are given for: no timer
// keeps due times to less than a millisecond. With --requests a window ends at
// the due time of the next request, and that is at once where more users than
// requests begin together.
const shortest = 1e-3

func (f *Fold) throughput(due int) result.Throughput {
	s, w := f.setup.seconds(), &f.flow
	switch {
	case s <= 0:
		return result.Throughput{Why: "the window is empty"}
	case s < shortest:
		return result.Throughput{Why: fmt.Sprintf("the window of %.3g ms is too short for a rate", s*1e3)}
	}
	per := func(n float64) *float64 { x := n / s; return &x }
	t := result.Throughput{DuePerS: per(float64(due)), RequestsPerS: per(float64(w.requests)), RPM: per(60 * float64(w.requests))}
	rate := func(millionths int64) *float64 { x := float64(millionths) / 1e6 / s; return &x }
	if w.noInput == 0 {
		t.InputTokensPerS = rate(w.input)
	}
	output, uncounted := w.output, w.lostOutput
	if w.oneEach() {
		output, uncounted = output+1e6*uncounted, 0
	}
	if w.noOutput == 0 {
		t.OutputTokensPerS = rate(output)
	}
	switch {
	case w.noOutput > 0:
		t.Why = "nobody counted the output tokens of some answers"
	case w.noInput > 0:
		t.Why = "nobody counted the input tokens of some requests"
	case uncounted > 0:
		t.Why = "a lower bound: output of requests that did not end well was not counted"
	}
	if n := f.setup.GPUs; n > 0 {
		t.PerGPU = &result.PerGPU{GPUs: n, RequestsPerS: *t.RequestsPerS / float64(n)}
		if t.OutputTokensPerS != nil {
			x := *t.OutputTokensPerS / float64(n)
			t.PerGPU.OutputTokensPerS = &x
		}
	}
	return t
}

// goodput is what the good requests of the cohort amount to, per second of
// the window.
func (f *Fold) goodput(good []*Request) *result.Goodput {
	s := f.setup.seconds()
	if s < shortest {
		return nil
	}
	g := &result.Goodput{RequestsPerS: float64(len(good)) / s}
	var tokens int64
	for _, q := range good {
		if q.output < 0 {
			return g
		}
		tokens += int64(q.output)
	}
	x := float64(tokens) / s
	g.OutputTokensPerS = &x
	return g
}

// cost is the price of the GPUs for the time a million tokens take.
func (f *Fold) cost(p *result.Point) *result.Cost {
	if f.setup.GPUs <= 0 || f.setup.GPUPrice <= 0 {
		return nil
	}
	per := func(rate *float64) *float64 {
		if rate == nil || *rate <= 0 {
			return nil
		}
		x := float64(f.setup.GPUs) * f.setup.GPUPrice / 3600 / *rate * 1e6
		return &x
	}
	c := &result.Cost{USDPerGPUHour: f.setup.GPUPrice, USDPerMOutput: per(p.Throughput.OutputTokensPerS)}
	if p.Goodput != nil {
		c.USDPerMGoodOutput = per(p.Goodput.OutputTokensPerS)
	}
	return c
}

func (f *Fold) classes() map[string]result.Class {
	list := f.groups.classes()
	if list == nil {
		return nil
	}
	out := map[string]result.Class{}
	for _, cl := range list {
		c := f.part(cl.groups, false)
		out[cl.name] = result.Class{Requests: c.account(), Metrics: c.metrics()}
	}
	return out
}

// lost counts the requests that were not answered, of all but those that the
// user's interruption or the client itself took from the server.
func lost(r result.Requests) (n, of int) {
	of = r.Due - r.Errors[record.ErrInterrupted]
	for class, failed := range r.Errors {
		if record.IsOwn(class) {
			of -= failed
		}
	}
	return of - r.OK, of
}

// outcome is the server's side: what share of the requests it answered.
func outcome(lost, of int) result.Outcome {
	switch {
	case of > 0 && 2*lost >= of:
		return result.Failing
	case of > 0 && 100*lost >= of:
		return result.Degraded
	}
	return result.OK
}
