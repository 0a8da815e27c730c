package measure

import (
	"math"

	"pitot/internal/data/record"
	"pitot/internal/slo"
)

// request is what is kept of a request of the cohort.
type request struct {
	Latency
	id                               int64
	eligible, ready                  int64
	firstLo                          int64 // lower bound of first
	stall, stallLo, stallHi, lastGap int64 // lastGap: end of the last arrival, Unset if none

	inputPlanned, prompt, cached int32
	chunks                       int32
	group                        int32
	gaps                         bool // it has a gap
	hidden                       bool
	marker                       bool // a token has no event: the one that ends the reasoning
	interrupted                  bool // by the user, not by the server
}

// longestGap is the request's stall.
func (q *request) longestGap(until int64) (float64, State) {
	st := q.state(q.gaps)
	if !q.stream {
		return 0, Missing
	}
	switch st {
	case Known:
		return float64(q.stall), st
	case Longer:
		if q.lastGap < 0 {
			return 0, st
		}
		return max(float64(q.stall), q.followed(q.lastGap, until)), st
	}
	return 0, st
}

// span is an interval between two stamps of the client's own side.
func (q *request) span(from, to int64) (float64, State) {
	if from < 0 || to < 0 {
		return 0, Missing
	}
	return float64(to - from), Known
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
	of := func(x float64, st State) float64 {
		switch st {
		case Known:
			return x
		case Longer:
			return math.Inf(1)
		}
		return math.NaN()
	}
	return slo.Values{
		OK:         q.outcome == record.OK,
		TTFT:       of(q.TTFT(Response, until)),
		TTFA:       of(q.TTFA(Response, until)),
		TPOT:       of(q.TPOT(until)),
		Stall:      of(q.longestGap(until)),
		E2E:        of(q.E2E(Response, until)),
		Generation: of(q.Generation(until)),
	}
}
