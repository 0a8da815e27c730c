package metrics

import "pitot/internal/results/record"

// The definitions of what a single request has. Whoever shows a latency of one
// request, a table of them or their distribution takes it from here.

// View says from when a latency counts.
type View uint8

const (
	Response View = iota // from when the request was due: what its user waits for
	Service              // from when it was sent: what the server takes
)

// State says what a latency of a request is.
type State uint8

const (
	Known    State = iota // the value
	Longer                // not followed to its end: longer than the value
	Missing               // undefined for this request
	Excluded              // in no sample: the request ended in a definite error
)

// Stamp is one event of a stream: nanoseconds since the point's origin, the
// tokens it carried, 0 if it did not say, and the choice it belongs to.
type Stamp struct {
	T              int64
	Tokens, Choice int32
}

// Events holds what the events of one request reported, as far as its tokens and latencies depend
// on it. The zero value is that of a request without any.
type Events struct {
	Count  int64 // events that carried tokens
	Tokens int64 // of all of them, as far as they reported it
	Blind  bool  // some event did not report how many tokens it carried

	choices int32 // that events belong to
	spans   int64 // of several: from the first arrival to the last of each, together
	firsts  int64 // and the tokens of their first arrivals, an event that did not report taken for one

	first, last int64 // stamps of the first arrival and of the last
	firstEvents int64 // events that share it
	firstTokens int64 // their tokens, as far as they reported it
}

// Add takes in the next event.
func (e *Events) Add(t int64, tokens int32) {
	n := int64(max(tokens, 0))
	if e.Count == 0 {
		e.first = t
	}
	if t == e.first {
		e.firstEvents++
		e.firstTokens += n
	}
	e.Count++
	e.last = t
	e.Tokens += n
	e.Blind = e.Blind || n == 0
}

// visibleTokens is n_s, the tokens that were streamed: what the server counted less
// what it never streamed; without usage what the events say; Unset if it is
// not known.
func (e *Events) visibleTokens(r *record.Row) int64 {
	switch {
	case r.CompletionTokens >= 0:
		return max(0, int64(r.CompletionTokens)-int64(max(r.HiddenTokens, 0)))
	case e.Count > 0 && !e.Blind:
		return e.Tokens
	}
	return record.Unset
}

// hasMarker says that one token of the answer has no event: the one that ends the
// reasoning, which servers count and do not send. It is taken for that where usage
// counts one token more than there were events, and reasoning went over into the
// answer behind the first token.
func (e *Events) hasMarker(r *record.Row) bool {
	return e.Count > 0 && e.Blind && r.CompletionTokens >= 0 && r.Choices <= 1 &&
		r.FirstToken >= 0 && r.FirstAnswer > r.FirstToken && r.LastToken <= e.last && e.visibleTokens(r) == e.Count+1
}

// Latency is one request as far as its latencies need it.
//
// Values are nanoseconds. Those that end in vain are as long as the request was
// followed, to its end or to until, the end of the records, if it has none.
type Latency struct {
	due, sent                 int64
	again                     int64 // how much later than the first attempt the one was sent that all this is of, 0 without another
	first, answer, last, done int64
	visible                   int32 // n_s: tokens that were streamed, Unset if not known
	firstTokens               int32 // n_first; below 1 it is not known, and taken for 1 of each choice
	planned, output           int32 // tokens asked for of a choice; all that were counted
	choices                   int32 // answers that there are
	spans                     int64 // of several: from the first token to the last of each, together
	outcome                   record.Outcome
	stream                    bool
	between                   bool // tokens were hidden between visible ones
	unreachable               bool // no connection could be made: it was refused, or never sent because the target had gone away
}

// LatencyOf makes it of a request's row and its events.
//
// n_first is what the first arrival brought: events that share its stamp are
// not apart in time, so none of their tokens may be divided by.
func LatencyOf(r *record.Row, e *Events) Latency {
	visible := e.visibleTokens(r)
	l := Latency{
		due: r.Due, sent: r.Sent, first: r.FirstToken, answer: r.FirstAnswer, last: r.LastToken, done: r.Done,
		visible: int32(visible), firstTokens: r.FirstTokens, planned: r.OutputPlanned, output: r.CompletionTokens,
		outcome: r.Outcome, stream: r.Stream, choices: max(r.Choices, 1),
		between:     r.HiddenTokens > 0 && r.FirstAnswer > r.FirstToken,
		unreachable: r.Error == record.ErrConnect,
	}
	if r.Earlier > 0 && r.FirstSent >= 0 && r.Sent >= 0 {
		l.again = r.Sent - r.FirstSent
	}
	switch {
	case l.choices > 1:
		l.firstTokens = record.Unset
		if l.spans = e.spans; e.choices != l.choices { // its events are not known: all choices as long as the request
			l.spans = int64(l.choices) * max(r.LastToken-r.FirstToken, 0)
		} else if !e.Blind || visible == e.Count {
			l.firstTokens = int32(e.firsts)
		}
	case e.Count == 0:
	case !e.Blind:
		l.firstTokens = int32(e.firstTokens)
	case visible == e.Count, e.hasMarker(r): // each event is one token
		l.firstTokens = int32(e.firstEvents)
	}
	if l.output < 0 && !e.Blind {
		l.output = int32(visible)
	}
	return l
}

// OutputTokens are all tokens of the answer: those the server counted, else
// those its events brought; Unset if they were not counted.
func (l *Latency) OutputTokens() int32 { return l.output }

// TTFT is the time to the first visible token. An answer that ended well
// without one was waited for in vain.
func (l *Latency) TTFT(v View, until int64) (float64, State) { return l.timeToToken(v, l.first, until) }

// TTFA is the time to the first token that is no reasoning.
func (l *Latency) TTFA(v View, until int64) (float64, State) {
	return l.timeToToken(v, l.answer, until)
}

// E2E is the time to the last token; of an answer that was not streamed, to
// the end of its body.
func (l *Latency) E2E(v View, until int64) (float64, State) {
	return l.intervalSince(l.startStamp(v), l.endStamp(), until)
}

// Generation is the time from the first token to the last.
func (l *Latency) Generation(until int64) (float64, State) {
	if !l.stream {
		return 0, Missing
	}
	if l.first < 0 {
		return 0, l.stampState(false) // of a cut request: longer than nothing
	}
	return l.intervalSince(l.first, l.endStamp(), until)
}

// TPOT is (last token − first token) / (n_s − n_first), nanoseconds a token.
// Nothing is divided where n_s ≤ n_first or tokens were hidden between visible
// ones. Of several choices it is the time of a token of one: what each took from its
// first token to its last, together, by the tokens behind their first ones, together.
func (l *Latency) TPOT(until int64) (float64, State) { return l.perToken(l.nFirst(), until) }

// TPOTn1 is (last token − first token) / (n_s − 1): what other tools print. A request
// with several choices has none: the tokens are those of all of them.
func (l *Latency) TPOTn1(until int64) (float64, State) {
	if l.choices > 1 {
		return 0, Missing
	}
	return l.perToken(1, until)
}

// HasSeveralAnswers says that the request has several answers.
func (l *Latency) HasSeveralAnswers() bool { return l.choices > 1 }

// startStamp is the stamp that a view counts from.
func (l *Latency) startStamp(v View) int64 {
	if v == Service {
		return l.sent
	}
	return l.due
}

// endStamp is when the answer was there, Unset if it did not end well.
func (l *Latency) endStamp() int64 {
	switch {
	case l.outcome != record.OK:
		return record.Unset
	case l.stream:
		return l.last
	}
	return l.done
}

// stampState is that of a latency whose end stamp is there or not.
func (l *Latency) stampState(there bool) State {
	switch {
	case l.outcome == record.OK && there:
		return Known
	case l.outcome == record.OK:
		return Missing
	case l.outcome == record.Failed, l.unreachable:
		return Excluded
	}
	return Longer
}

// followedTime returns how long the request was followed from a stamp on.
func (l *Latency) followedTime(from, until int64) float64 {
	end := l.done
	if end < 0 {
		end = until
	}
	return float64(max(0, end-from))
}

// intervalSince is an interval that ended, or how long its end was waited for. A cut
// request that got as far has a definite value.
func (l *Latency) intervalSince(from, to, until int64) (float64, State) {
	st := l.stampState(to >= 0)
	switch {
	case st == Excluded:
		return 0, st
	case from < 0: // never sent: nothing to count from
		return 0, Missing
	case to >= 0:
		return float64(to - from), Known
	case st == Longer:
		return l.followedTime(from, until), Longer
	}
	return 0, Missing
}

// timeToToken is the time to a token of a stream, which even an answer that ended
// well may never have brought.
func (l *Latency) timeToToken(v View, to, until int64) (float64, State) {
	from := l.startStamp(v)
	switch {
	case !l.stream:
		return 0, Missing
	case l.outcome == record.OK && to < 0 && from >= 0:
		return l.followedTime(from, until), Longer
	}
	return l.intervalSince(from, to, until)
}

// nFirst is the number of tokens of the first arrival, 1 where it is not known; of several
// choices those of all their first arrivals.
func (l *Latency) nFirst() int32 {
	if l.firstTokens >= 1 {
		return l.firstTokens
	}
	return max(l.choices, 1)
}

// perToken is the generation divided by n_s − less.
func (l *Latency) perToken(less int32, until int64) (float64, State) {
	gen, st := l.Generation(until)
	n := l.visible
	switch {
	case st == Longer:
		n = l.planned // it cannot have become more tokens than asked for
		if l.choices > 1 {
			less = 1
		}
	case l.choices > 1:
		gen = float64(l.spans)
	}
	switch {
	case st > Longer:
		return 0, st
	case st == Longer && n <= less:
		return 0, Longer
	case n < 0 || n <= less || l.between:
		return 0, Missing
	}
	return gen / float64(n-less), st
}
