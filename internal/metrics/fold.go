package metrics

import (
	"errors"
	"math"

	"pitot/internal/metrics/validity"
	"pitot/internal/results/metric"
	"pitot/internal/results/record"
	"pitot/internal/results/spill"
)

// maxID bounds the ids that are remembered to notice a request recorded twice.
const maxID = 1 << 30

// Fold takes in the records of one point, in any order that has the chunks of
// a request before its row, and gives the point's result at any time. It
// keeps no chunk longer than its request is under way, and four bytes of each
// gap after that. It is not safe for concurrent use.
type Fold struct {
	setup       Setup
	conditions  validity.Conditions // those of the setup
	definitions []Definition        // of distributions
	others      []Definition        // of the window
	counts      []int64             // what requests add to those
	handing     []Definition        // whose gaps requests hand over
	gatherer    *Gatherer
	takes       takes
	streams     record.Join[Stream]

	store    *spill.Store
	queue    *validity.Queue // of any time
	cohort   *spill.Sorted[Request]
	groups   groups
	end      int64 // latest stamp seen
	lastDone int64 // when the last request of the cohort was done

	errors   map[string]int     // of the cohort: error classes
	examples map[string]example // of the cohort: error classes
	finish   map[string]int     // of the cohort: finish reasons of answers that ended well

	limits rateLimits

	retried    retries
	questions  questions // of the window, which are no part of the cohort
	server     server
	seen       idSet
	asked      int      // requests of any time
	earlier    int      // attempts at them before the last
	answered   int      // of them
	choices    int32    // the most of one answer
	talks      sessions // where requests follow one another
	duplicates int
	flow       flow
	output     tally // events and their tokens
	extent     Extent
	arrivals   validity.Arrivals
	conf       confidence
	probe      *validity.Probe
	broken     error

	lostWithWorker int // requests due in the window that are no part of the cohort, see [record.Row.LostWithWorker]
	skipped        int // events of the cohort that were no part of a response

	workers []*Fold // of each of several workers: its instrument is judged by itself
}

// example is the message of the first request of an error class.
type example struct {
	id     int64
	detail string
}

// flow counts by stamp whatever falls in the window, from any request. Tokens
// are counted in millionths, because a request's tokens are spread over its
// chunks and a sum of fractions would depend on their order.
type flow struct {
	requests           int64
	input, output      int64 // millionths of tokens
	noInput, noOutput  int64 // answers whose tokens were not counted
	lostOutput         int64 // events of requests that did not end well, likewise
	alike, other       int64 // answers with as many events as usage counted visible tokens, and all others
	expected, observed int64 // tokens by usage and by chunks or a tokenizer, where both are known
	byTokenizer        bool
	texts, generating  int64 // texts that were given a vector or a score, and requests that are answered with tokens
	noUsage            int64 // answers whose tokens a tokenizer counted, for want of a usage
	common             common
}

// NewFold begins a point, all of which stays in memory.
func NewFold(s Setup) *Fold { return NewFoldIn(nil, s) }

// NewFoldIn begins a point of which no more stays in memory than the store's
// budget, and as much again while it is asked for its result.
func NewFoldIn(store *spill.Store, s Setup) *Fold {
	all := s.Metrics
	if all == nil {
		all = Definitions()
	}
	var definitions, others, handing []Definition
	for _, d := range all {
		switch {
		case d.Of == metric.Window:
			others = append(others, d)
			continue
		case d.Gaps != nil && d.pool == nil:
			handing = append(handing, d)
		}
		definitions = append(definitions, d)
	}
	f := &Fold{
		setup:       s,
		definitions: definitions,
		others:      others,
		counts:      make([]int64, len(others)),
		handing:     handing,
		gatherer:    NewGatherer(all),
		takes:       takesOf(definitions),
		store:       store,
		cohort:      spill.NewSorted(store, RequestCodec()),
		lastDone:    s.T1,
		groups:      newGroups(store),
		errors:      map[string]int{},
		examples:    map[string]example{},
		finish:      map[string]int{},
		server:      server{t0: s.T0, t1: s.T1},
		questions:   questions{alone: s.Alone},
	}
	f.conditions = s.judgeConditions()
	f.queue, f.probe = validity.NewQueue(&f.conditions), validity.NewProbe(&f.conditions, store)
	f.streams = record.Join[Stream]{Chunk: f.chunk, Row: f.endRequest, Reset: (*Stream).Reset}
	f.workers = foldWorkers(store, &s)
	return f
}

// metricCatalogue is the metrics that are measured.
func (f *Fold) metricCatalogue() (list metric.Catalogue) {
	for i := range f.definitions {
		list = append(list, f.definitions[i].Metric)
	}
	return list
}

// Extent holds how much was recorded of a point at any time, its warm-up included.
type Extent struct {
	Requests, Events int64
	Prompt           int64 // tokens, as far as they were counted or planned
	Ended            int64 // when the load did, nanoseconds since its begin; 0 where that is not known
}

// DataExtent says how much was taken in.
func (f *Fold) DataExtent() Extent {
	e := f.extent
	e.Ended = f.setup.Ended
	return e
}

// Add takes in one frame and keeps nothing of it.
func (f *Fold) Add(fr record.Frame) {
	f.streams.Add(&fr)
	f.extent.Requests += int64(len(fr.Rows))
	f.extent.Events += int64(len(fr.Chunks))
	for i := range fr.Rows {
		f.extent.Prompt += int64(max(fr.Rows[i].PromptTokens, fr.Rows[i].InputPlanned, 0))
	}
	for i := range fr.Samples {
		f.probe.AddSample(&fr.Samples[i])
		f.server.countSample(&fr.Samples[i])
	}
	for i := range fr.Marks {
		f.probe.AddMark(&fr.Marks[i])
	}
	if w := int(fr.Worker); w < len(f.workers) {
		f.workers[w].Add(fr)
	}
}

// chunk takes in the next chunk of a request.
func (f *Fold) chunk(s *Stream, c *record.Chunk) {
	block, inside := f.conditions.BlockAt(c.T)
	if inside {
		f.output.countEvent(block, c.Tokens)
		f.arrivals.Add(c.T - f.setup.T0)
	}
	if s.Count == 0 || f.gatherer.chunks != nil { // as [Gatherer.Chunk], without its call
		f.gatherer.beforeChunk(s, c)
	}
	s.addChunk(c)
	if inside {
		s.inside++
		s.tokensIn += int64(max(c.Tokens, 0))
	}
	f.end = max(f.end, c.T)
}

// endRequest ends a request: its gaps are pooled.
func (f *Fold) endRequest(r *record.Row, s *Stream) {
	if f.seen.seenBefore(r.ID) {
		f.duplicates++
		return
	}
	if r.LostWithWorker() {
		if f.conditions.InWindow(r.Due) {
			f.lostWithWorker++
		}
		return
	}
	f.end = max(f.end, r.Due, r.Sent, r.LastToken, r.Done)
	f.server.countRow(r)
	if r.Outcome != record.Unsent {
		f.asked++
		f.earlier += int(r.Earlier)
		f.choices = max(f.choices, r.Choices)
	}
	if r.Outcome == record.OK {
		f.answered++
	}
	if f.probe.IsDamaged() && s.Count != int64(max(r.Chunks, 0)) {
		s.Reset() // what is left of its chunks has gaps that its stream had not
	}
	f.queue.Add(r)
	f.talks.add(r)
	visible := s.visibleTokens(r)
	f.flow.count(r, s, &f.conditions)
	for i := range f.others {
		if count := f.others[i].Count; count != nil {
			f.counts[i] += count(s, r, &f.conditions)
		}
	}
	switch {
	case !f.conditions.InWindow(r.Due):
	case r.Question != "":
		f.questions.addQuestion(r)
	default:
		f.addMember(r, s, visible)
	}
}

// idSet is ids that were seen. They come about in order, so all below a number
// were, and it has a bit for each of the others up to the highest.
type idSet struct {
	below int64 // a multiple of 64
	bits  []uint64
}

// seenBefore remembers an id and says whether it was there before.
func (s *idSet) seenBefore(id int64) bool {
	if id < 0 || id >= maxID {
		return false
	}
	if id < s.below {
		return true
	}
	i := int((id - s.below) / 64)
	for len(s.bits) <= i {
		s.bits = append(s.bits, 0)
	}
	word, bit := &s.bits[i], uint64(1)<<(id%64)
	was := *word & bit
	*word |= bit
	for len(s.bits) > 0 && s.bits[0] == math.MaxUint64 {
		s.bits, s.below = s.bits[1:], s.below+64
	}
	return was != 0
}

// addMember adds a request to the cohort.
func (f *Fold) addMember(r *record.Row, s *Stream, visible int64) {
	q := f.gatherer.Request(s, r)
	if r.Outcome == record.OK {
		f.countFinish(r.Finish)
	} else {
		f.errors[r.Error]++
		if e, ok := f.examples[r.Error]; r.Detail != "" && (!ok || r.ID < e.id) {
			f.examples[r.Error] = example{r.ID, r.Detail}
		}
	}
	f.skipped += int(max(r.Skipped, 0))
	f.retried.add(r)
	f.limits.add(r)
	f.probe.Row(r, s.Count)
	g := f.groups.groupOf(r)
	q.group = g.index
	g.tally.countRequest(&q)
	f.lastDone = max(f.lastDone, q.done)
	t := trustOf(r, s, visible)
	switch {
	case r.Outcome == record.OK:
		g.gaps.addStream(s, t, visible, q.marker)
	case r.Outcome == record.Cut && s.Count > 0:
		g.gaps.addStream(s, t, visible, q.marker)
		end := r.Done
		if end < 0 {
			end = q.lastGap
		}
		g.gaps.cut[t].Append(max(0, end-q.lastGap))
	}
	for i := range f.handing {
		if d := &f.handing[i]; r.Outcome == record.OK || r.Outcome == record.Cut {
			d.Gaps(s, r, g.gaps.handedOverOf(d.Name).keepGap)
		}
	}
	f.cohort.Add(&q)
}

// mostReasons is the number of finish reasons that are counted apart, and otherReasons counts all
// others. A server may make up one for each answer.
const (
	mostReasons  = 100
	otherReasons = "others"
)

// countFinish counts the finish reason of an answer.
func (f *Fold) countFinish(reason string) {
	if _, known := f.finish[reason]; !known && len(f.finish) >= mostReasons {
		reason = otherReasons
	}
	f.finish[reason]++
}

// Err says that what was put aside could not be read again: the result is wrong.
func (f *Fold) Err() error { return errors.Join(f.broken, f.store.Err()) }

// Free gives back what the point has of its store.
func (f *Fold) Free() {
	f.cohort.Free()
	f.probe.Free()
	for _, w := range f.workers {
		w.Free()
	}
	for _, g := range f.groups.list {
		g.gaps.free()
	}
}

// withEnds is a tokenizer's count of a text, with the tokens that ended its answers and
// that no text shows, as far as the server's count has them.
func withEnds(counted, usage, answers int64) int64 {
	return counted + max(0, min(usage-counted, answers))
}

// count adds a request of any time to the flow. A request counts where its
// Done lies: an answer that the server leaves open after its end mark by up to
// a second later than its last token.
func (w *flow) count(r *record.Row, s *Stream, window *validity.Conditions) {
	if r.Outcome == record.OK && window.InWindow(r.Done) {
		w.requests++
		if r.OutputPlanned == 0 {
			w.texts += int64(r.Choices)
		}
	}
	const million = 1_000_000
	reached := r.FirstToken // the prompt has been read
	if reached < 0 && r.Outcome == record.OK {
		reached = r.Done
	}
	if reached >= 0 && window.InWindow(reached) {
		switch {
		case r.PromptTokens >= 0:
			w.input += int64(r.PromptTokens) * million
		case r.InputPlanned >= 0:
			w.input += int64(r.InputPlanned) * million
		default:
			w.noInput++
		}
	}
	own := r.Question == "" // calls of tools and objects have tokens without a text, and so without an event
	if r.Outcome == record.OK && s.Count > 0 && own {
		if r.CompletionTokens >= 0 && s.visibleTokens(r) == s.Count {
			w.alike++
		} else {
			w.other++
		}
	}
	counted := s.Count > 0 && !s.Blind
	if r.NoUsage {
		w.noUsage++
	}
	switch visible := int64(r.CompletionTokens) - int64(max(r.HiddenTokens, 0)); {
	case r.Outcome != record.OK || r.CompletionTokens < 0 || r.NoUsage || !own:
	case r.Counted >= 0:
		w.expected += visible
		w.observed += withEnds(int64(r.Counted), visible, int64(max(r.Choices, 1)))
		w.byTokenizer = true
	case counted:
		w.expected += visible
		w.observed += s.Tokens
	}
	w.common.countRow(r, s, window)
	if r.OutputPlanned != 0 {
		w.generating++
	}
	switch {
	case r.OutputPlanned == 0 && s.Count == 0: // nothing is generated
	case r.CompletionTokens >= 0 && s.Count == 0: // nothing to spread over: all at the end
		end := r.LastToken
		if end < 0 {
			end = r.Done
		}
		if window.InWindow(end) {
			w.output += int64(r.CompletionTokens) * million
		}
	case r.CompletionTokens >= 0 && counted:
		w.output += int64(float64(r.CompletionTokens) * float64(s.tokensIn) / float64(s.Tokens) * million)
	case r.CompletionTokens >= 0:
		w.output += int64(float64(r.CompletionTokens) * float64(s.inside) / float64(s.Count) * million)
	case counted:
		w.output += s.tokensIn * million
	case r.Outcome == record.OK && (s.inside > 0 || s.Count == 0 && window.InWindow(r.Done)):
		w.noOutput++
	default:
		w.lostOutput += s.inside
	}
}

// oneEach says that every answer of the point that ended well, of any time,
// had exactly as many events as the server's usage counted visible tokens. Then the events
// of a request that was cut or failed, which has no usage, count as one token
// each: for the rate of output tokens and for the gaps between tokens.
func (w *flow) oneEach() bool { return w.alike > 0 && w.other == 0 }
