package measure

import (
	"math"

	"pitot/internal/record"
	"pitot/internal/slo"
)

// request is what is kept of a request of the cohort.
type request struct {
	id                               int64
	due, eligible, ready, sent       int64
	first, firstLo, answer, last     int64 // firstLo: lower bound of first
	done                             int64
	stall, stallLo, stallHi, lastGap int64 // lastGap: end of the last arrival, Unset if none

	inputPlanned, prompt    int32
	cached, planned, output int32 // output: all tokens the server counted
	visible, firstTokens    int32 // visible: those that were streamed
	chunks                  int32
	group                   int32
	outcome                 record.Outcome
	stream                  bool
	gaps                    bool // it has a gap
	between                 bool // tokens were hidden between visible ones
	hidden                  bool
	interrupted             bool // by the user, not by the server
}

// state says what a metric of a request is.
type state uint8

const (
	known    state = iota
	longer         // not followed to its end: longer than the value
	missing        // undefined for this request
	excluded       // not in the sample: a definite error
)

// latencyState is the state of a latency whose end stamp is there or not.
func (q *request) latencyState(there bool) state {
	switch q.outcome {
	case record.OK:
		if there {
			return known
		}
		return missing
	case record.Failed:
		return excluded
	}
	return longer
}

// followed is how long a request was followed from a stamp on; until is the
// end of the records, for requests that have no end of their own.
func (q *request) followed(from, until int64) float64 {
	end := q.done
	if end < 0 {
		end = until
	}
	return float64(max(0, end-from))
}

// since is an interval that ended, or how long its end was waited for. A cut
// request that got as far has a definite value.
func (q *request) since(from, to, until int64) (float64, state) {
	st := q.latencyState(to >= 0)
	switch {
	case st == excluded:
		return 0, st
	case from < 0: // never sent: nothing to count from
		return 0, missing
	case to >= 0:
		return float64(to - from), known
	case st == longer:
		return q.followed(from, until), longer
	}
	return 0, missing
}

func (q *request) ttft(from, until int64) (float64, state) {
	if !q.stream {
		return 0, missing
	}
	if q.outcome == record.OK && q.first < 0 && from >= 0 { // nothing visible came
		return q.followed(from, until), longer
	}
	return q.since(from, q.first, until)
}

func (q *request) ttfa(until int64) (float64, state) {
	if !q.stream {
		return 0, missing
	}
	if q.outcome == record.OK && q.answer < 0 { // only reasoning came
		return q.followed(q.due, until), longer
	}
	return q.since(q.due, q.answer, until)
}

// end is when the answer was there: its last token, or the body's end when
// nothing was streamed.
func (q *request) end() int64 {
	switch {
	case q.outcome != record.OK:
		return record.Unset
	case q.stream:
		return q.last
	}
	return q.done
}

func (q *request) e2e(from, until int64) (float64, state) {
	return q.since(from, q.end(), until)
}

func (q *request) generation(until int64) (float64, state) {
	if !q.stream {
		return 0, missing
	}
	if q.first < 0 {
		return 0, q.latencyState(false) // of a cut request: longer than nothing
	}
	return q.since(q.first, q.end(), until)
}

// nFirst is the number of tokens of the first event, 1 where nobody told.
func (q *request) nFirst() int32 { return max(q.firstTokens, 1) }

// tpot is (last − first) / (n − less): by the definition less is the number
// of tokens in the first event.
func (q *request) tpot(less int32, until int64) (float64, state) {
	gen, st := q.generation(until)
	n := q.visible
	if st == longer {
		n = q.planned // it cannot have become more tokens than asked for
	}
	switch {
	case st > longer:
		return 0, st
	case st == longer && (n <= less):
		return 0, longer
	case n < 0 || n <= less || q.between:
		return 0, missing
	}
	return gen / float64(n-less), st
}

func (q *request) longestGap(until int64) (float64, state) {
	st := q.latencyState(q.gaps)
	if !q.stream {
		return 0, missing
	}
	switch st {
	case known:
		return float64(q.stall), st
	case longer:
		if q.lastGap < 0 {
			return 0, st
		}
		return max(float64(q.stall), q.followed(q.lastGap, until)), st
	}
	return 0, st
}

// span is an interval between two stamps of the client's own side.
func (q *request) span(from, to int64) (float64, state) {
	if from < 0 || to < 0 {
		return 0, missing
	}
	return float64(to - from), known
}

// input is the number of prompt tokens: served, or planned where the server
// did not tell.
func (q *request) input() int32 {
	if q.prompt >= 0 {
		return q.prompt
	}
	return q.inputPlanned
}

// values are what an objective is judged on.
func (q *request) values(until int64) slo.Values {
	of := func(x float64, st state) float64 {
		switch st {
		case known:
			return x
		case longer:
			return math.Inf(1)
		}
		return math.NaN()
	}
	return slo.Values{
		OK:         q.outcome == record.OK,
		TTFT:       of(q.ttft(q.due, until)),
		TTFA:       of(q.ttfa(until)),
		TPOT:       of(q.tpot(q.nFirst(), until)),
		Stall:      of(q.longestGap(until)),
		E2E:        of(q.e2e(q.due, until)),
		Generation: of(q.generation(until)),
	}
}
