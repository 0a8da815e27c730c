package measure

import (
	"math"

	"pitot/internal/data/metric"
	"pitot/internal/data/record"
)

// Request is what is kept of a request of the cohort.
type Request struct {
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

// RequestOf is a request as its row and what its events told make it. Its gaps are
// not known: it has no stall.
func RequestOf(r *record.Row, e *Events) Request {
	q := Request{
		Latency: LatencyOf(r, e),
		id:      r.ID, eligible: r.Eligible, ready: r.Ready, firstLo: r.FirstToken, lastGap: record.Unset,
		inputPlanned: r.InputPlanned, prompt: r.PromptTokens, cached: r.CachedTokens, chunks: int32(e.Count),
		hidden:      r.HiddenTokens > 0,
		marker:      e.marker(r),
		interrupted: r.Error == record.ErrInterrupted,
	}
	if e.Count == 0 {
		q.chunks = r.Chunks
	}
	return q
}

// longestGap is the request's stall.
func (q *Request) longestGap(until int64) (float64, State) {
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
func (q *Request) span(from, to int64) (float64, State) {
	if from < 0 || to < 0 {
		return 0, Missing
	}
	return float64(to - from), Known
}

// input is the number of prompt tokens: served, or planned where the server
// did not tell.
func (q *Request) input() int32 {
	if q.prompt >= 0 {
		return q.prompt
	}
	return q.inputPlanned
}

// tokensPerChunk is how many visible tokens its events brought on average.
func (q *Request) tokensPerChunk(int64) (float64, State) {
	if q.visible < 0 || q.chunks < 1 {
		return 0, Missing
	}
	carried := q.visible
	if q.marker {
		carried--
	}
	return float64(carried) / float64(q.chunks), Known
}

// prefillRate counts from sent: waiting for a slot or a connection is no prefill.
func (q *Request) prefillRate(until int64) (float64, State) {
	ttft, st := q.TTFT(Service, until)
	if st != Known || ttft <= 0 || q.prompt < 0 {
		return 0, Missing
	}
	return float64(q.prompt-max(q.cached, 0)) / ttft * 1e9, Known
}

func (q *Request) decodeRate(until int64) (float64, State) {
	tpot, st := q.TPOT(until)
	if st != Known || tpot <= 0 {
		return 0, Missing
	}
	return 1e9 / tpot, Known
}

// judged is a request of a part as an objective sees it.
type judged struct {
	*part
	q *Request
}

// OK implements [slo.Request].
func (j *judged) OK() bool { return j.q.outcome == record.OK }

// Value implements [slo.Request].
func (j *judged) Value(name metric.Name) float64 {
	take := j.takes[name]
	if take == nil {
		return math.NaN()
	}
	switch x, st := take(j.q, j.until); st {
	case Known:
		return x
	case Longer:
		return math.Inf(1)
	}
	return math.NaN()
}
