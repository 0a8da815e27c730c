package metrics

import (
	"cmp"
	"encoding/binary"
	"iter"
	"slices"

	"pitot/internal/results/record"
	"pitot/internal/results/result"
	"pitot/internal/results/spill"
	"pitot/internal/stats"
)

// The cohort of a point may be more than memory holds. It is kept in the order in
// which its requests were due, and read again for what is asked of it, with as many
// questions answered in one pass as memory allows.

// part is a cohort, or a class of it, ready to be asked.
type part struct {
	cohort *spill.Sorted[Request]
	in     []bool  // by group: whether it belongs to the part; nil for all
	groups *groups // of the cohort
	tally  requestTally
	sets   []*gapSet
	until  int64             // end of the records
	stop   result.ReasonCode // what interrupted requests

	questions *questions // of the window, which are in no part

	oneEach bool // events of streams without usage count as one token each
	conf    *confidence
	scratch *spill.Store

	definitions []Definition
	takes       takes
	outline     outline
}

// outline holds what is known of some latencies before they are summed up: known values, and for
// how long others were waited for.
type outline struct {
	ttft, e2e, generation extent
	// course is the course of TTFT, of E2E where nothing streams: what a queue
	// does shows in it.
	course *stats.Batches
}

// extent holds the number of values, their sum and the largest.
type extent struct {
	n     int64
	total stats.Total
	top   float64
}

func (e *extent) include(x float64, st State) {
	if st <= Longer {
		e.n++
		e.total.Add(x)
		e.top = max(e.top, x)
	}
}

// makeOutline makes the outline, in a pass of its own.
func (c *part) makeOutline() {
	o := &c.outline
	o.course = stats.NewBatches(c.tally.dueCount(), stats.FineBatches)
	for q := range c.requests() {
		o.ttft.include(q.TTFT(Response, c.until))
		o.e2e.include(q.E2E(Response, c.until))
		o.generation.include(q.Generation(c.until))
		x, st := q.E2E(Response, c.until)
		so := &o.e2e
		if c.tally.streamed {
			x, st = q.TTFT(Response, c.until)
			so = &o.ttft
		}
		if st > Longer { // it has none: that of the others so far
			x = 0
			if so.n > 0 {
				x = so.total.Sum() / float64(so.n)
			}
		}
		o.course.Add(x)
	}
}

// residenceVariation is the squared coefficient of variation of residence times.
func (o *outline) residenceVariation() float64 {
	n := float64(o.e2e.n)
	if mean := o.e2e.total.Sum() / n; n > 1 && mean > 0 {
		return o.e2e.total.Squares() / (n - 1) / (mean * mean)
	}
	return 0
}

// requestTally counts requests.
type requestTally struct {
	n           int64
	outcomes    [4]int64 // by how they ended
	interrupted int64
	streamed    bool // some request asked to stream
	several     bool // some request has several answers
}

func (t *requestTally) countRequest(q *Request) {
	t.n++
	if int(q.outcome) < len(t.outcomes) { // else it is damaged, and the accounting says so
		t.outcomes[q.outcome]++
	}
	t.streamed = t.streamed || q.stream
	t.several = t.several || q.HasSeveralAnswers()
	if q.interrupted {
		t.interrupted++
	}
}

func (t *requestTally) plus(other *requestTally) {
	t.n += other.n
	for i, n := range other.outcomes {
		t.outcomes[i] += n
	}
	t.interrupted += other.interrupted
	t.streamed = t.streamed || other.streamed
	t.several = t.several || other.several
}

// answeredWhole says that there are answers and none of them was streamed: where no request
// ended well it is not known how the server answers.
func (c *part) answeredWhole() bool { return !c.tally.streamed && c.tally.wellCount() > 0 }

// dueCount returns the number of requests, and well returns the number of them that ended well.
func (t *requestTally) dueCount() int64  { return t.n }
func (t *requestTally) wellCount() int64 { return t.outcomes[record.OK] }

// buildPart is the requests and gaps of some groups, which are taken in the order of
// their names: sums of floats may depend on it.
func (f *Fold) buildPart(list []*group, scratch *spill.Store) *part {
	list = slices.Clone(list)
	slices.SortFunc(list, func(a, b *group) int {
		return cmp.Or(cmp.Compare(a.key.name, b.key.name), cmp.Compare(a.key.bucket, b.key.bucket))
	})
	c := &part{questions: &f.questions, cohort: f.cohort, groups: &f.groups, until: f.end, stop: f.stopReason(), conf: &f.conf, oneEach: f.flow.oneEach(), definitions: f.definitions, takes: f.takes, scratch: scratch}
	if len(list) < len(f.groups.list) {
		c.in = make([]bool, len(f.groups.list))
	}
	for _, g := range list {
		c.sets = append(c.sets, g.gaps)
		c.tally.plus(&g.tally)
		if c.in != nil {
			c.in[g.index] = true
		}
	}
	return c
}

// stopReason returns what requests were interrupted by.
func (f *Fold) stopReason() result.ReasonCode {
	switch lost := f.errors[record.ErrWorkerLost] > 0; {
	case lost && f.errors[record.ErrInterrupted] > 0:
		return result.CutAtEither
	case lost:
		return result.CutAtLostWorker
	}
	return result.CutAtInterrupt
}

// classOf is the class that the workload gave a request, "" for none.
func (c *part) classOf(q *Request) string { return c.groups.list[q.group].key.name }

// requests yields them in the order in which they were due. One is not to be kept
// longer than until the next.
func (c *part) requests() iter.Seq[*Request] {
	if c.in == nil {
		return c.cohort.All()
	}
	return func(yield func(*Request) bool) {
		for q := range c.cohort.All() {
			if c.in[q.group] && !yield(q) {
				return
			}
		}
	}
}

// countOutcomes counts requests by how they ended.
func (c *part) countOutcomes() result.Requests {
	t := &c.tally
	return result.Requests{Due: int(t.dueCount()), OK: int(t.outcomes[record.OK]), Failed: int(t.outcomes[record.Failed]),
		Cut: int(t.outcomes[record.Cut]), Unsent: int(t.outcomes[record.Unsent]), Errors: map[string]int{}, Finish: map[string]int{}}
}

// RequestCodec returns the codec that stores requests in a file, sorted by when they were due. It
// stores each stamp as the difference from an earlier one that it is close to.
func RequestCodec() spill.Codec[Request] {
	return spill.Codec[Request]{
		Key:    func(q *Request) (int64, int64) { return q.due, q.id },
		Append: appendRequest,
		Decode: decodeRequest,
		Most:   requestNumbers * binary.MaxVarintLen64,
	}
}

// requestNumbers is the number of numbers that a request consists of.
const requestNumbers = 24 + ownNumbers

func appendRequest(to []byte, q *Request) []byte {
	flags := int64(q.outcome)
	for i, is := range q.flagPointers() {
		if *is {
			flags |= 256 << i
		}
	}
	for _, x := range [...]int64{
		q.due, q.id, q.eligible - q.due, q.ready - q.eligible, q.sent - q.ready, q.first - q.sent, q.firstLo - q.first, q.answer - q.first,
		q.last - q.first, q.done - q.last, q.lastGap - q.last,
		int64(q.visible), int64(q.firstTokens), int64(q.planned), int64(q.output) - int64(q.visible), int64(q.inputPlanned),
		int64(q.prompt) - int64(q.inputPlanned), int64(q.cached), int64(q.chunks) - int64(q.visible), int64(q.group), flags, q.again,
		int64(q.choices) - 1, q.spans,
	} {
		to = binary.AppendVarint(to, x)
	}
	last := int64(0)
	for _, x := range q.own { // those of one metric are often alike
		to = binary.AppendVarint(to, x-last)
		last = x
	}
	return to
}

func decodeRequest(from []byte, q *Request) int {
	var x [requestNumbers]int64
	at := 0
	for i := range x {
		if at < len(from) && from[at] < 0x80 { // most numbers are small
			x[i] = int64(from[at]>>1) ^ -int64(from[at]&1)
			at++
			continue
		}
		v, n := binary.Varint(from[min(at, len(from)):])
		if n <= 0 {
			return 0
		}
		x[i] = v
		at += n
	}
	q.due, q.id = x[0], x[1]
	q.eligible = q.due + x[2]
	q.ready = q.eligible + x[3]
	q.sent = q.ready + x[4]
	q.first = q.sent + x[5]
	q.firstLo, q.answer, q.last = q.first+x[6], q.first+x[7], q.first+x[8]
	q.done, q.lastGap = q.last+x[9], q.last+x[10]
	q.visible, q.firstTokens, q.planned, q.output = int32(x[11]), int32(x[12]), int32(x[13]), int32(x[11]+x[14])
	q.inputPlanned, q.prompt, q.cached = int32(x[15]), int32(x[15]+x[16]), int32(x[17])
	q.chunks, q.group = int32(x[11]+x[18]), int32(x[19])
	q.outcome, q.again = record.Outcome(x[20]), x[21]
	q.choices, q.spans = int32(x[22]+1), x[23]
	for i, is := range q.flagPointers() {
		*is = x[20]&(256<<i) != 0
	}
	last := int64(0)
	for i := range q.own {
		last += x[requestNumbers-ownNumbers+i]
		q.own[i] = last
	}
	return at
}

// flagPointers returns pointers to the properties that a request has or lacks.
func (q *Request) flagPointers() [6]*bool {
	return [...]*bool{&q.stream, &q.between, &q.unreachable, &q.hidden, &q.marker, &q.interrupted}
}
