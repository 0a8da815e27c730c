package metrics

import (
	"math"

	"pitot/internal/results/metric"
	"pitot/internal/results/record"
)

// Request holds what is kept of a request of the cohort.
type Request struct {
	Latency
	id              int64
	eligible, ready int64
	firstLo         int64 // lower bound of first
	lastGap         int64 // end of the last arrival, Unset if none
	own             [ownNumbers]int64

	inputPlanned, prompt, cached int32
	chunks                       int32
	group                        int32
	hidden                       bool
	marker                       bool // a token has no event: the one that ends the reasoning
	interrupted                  bool // its end is not known for the instrument's: the user stopped it, or its worker was lost
}

// A Gatherer makes requests of their chunks and rows, with the numbers that each
// metric keeps of one. It has no state of its own.
type Gatherer struct {
	chunks []func(*Stream, *record.Chunk)
	rows   []func(*Stream, *record.Row)
}

// NewGatherer gathers for some definitions, nil for [Definitions].
func NewGatherer(definitions []Definition) *Gatherer {
	if definitions == nil {
		definitions = Definitions()
	}
	g := &Gatherer{}
	for i := range definitions {
		if of := definitions[i].chunk; of != nil {
			g.chunks = append(g.chunks, of)
		}
		if of := definitions[i].row; of != nil {
			g.rows = append(g.rows, of)
		}
	}
	return g
}

// Chunk takes in the next chunk of a request.
func (g *Gatherer) Chunk(s *Stream, c *record.Chunk) {
	if s.Count == 0 || len(g.chunks) > 0 {
		g.beforeChunk(s, c)
	}
	s.addChunk(c)
}

// beforeChunk is asked with the first chunk of a stream, and with all where any metric
// looks at chunks.
func (g *Gatherer) beforeChunk(s *Stream, c *record.Chunk) {
	if s.Count == 0 {
		s.own = nothingOwn
	}
	for _, of := range g.chunks {
		of(s, c)
	}
}

// Request ends a stream and gives its request.
func (g *Gatherer) Request(s *Stream, r *record.Row) Request {
	s.closeLanes()
	q := Request{
		Latency: LatencyOf(r, &s.Events),
		id:      r.ID, eligible: r.Eligible, ready: r.Ready, firstLo: r.FirstToken, lastGap: record.Unset,
		inputPlanned: r.InputPlanned, prompt: r.PromptTokens, cached: r.CachedTokens, chunks: int32(s.Count),
		hidden:      r.HiddenTokens > 0,
		marker:      s.hasMarker(r),
		interrupted: r.Error == record.ErrInterrupted || r.Error == record.ErrWorkerLost,
	}
	if r.Choices > 1 { // it is told of one of them, which may have found what another computed
		q.cached = record.Unset
	}
	if r.Earlier > 0 { // the last attempt's, while it was eligible before the first
		q.ready = record.Unset
	}
	if s.Count == 0 {
		q.chunks, s.own = r.Chunks, nothingOwn
	} else if s.firstLo < s.first && q.first >= 0 {
		// FirstToken is when the first chunk's read came; the chunk may be older.
		q.firstLo = q.first - (s.first - s.firstLo)
	}
	for i := range s.lanes {
		q.lastGap = max(q.lastGap, s.lanes[i].prevT)
	}
	for _, of := range g.rows {
		of(s, r)
	}
	q.own = s.own
	return q
}

// longestGap finds a stream's stall.
func (s *Stream) longestGap(*record.Row) {
	top := int64(record.Unset)
	for i := range s.near {
		top = max(top, int64(s.near[i].ns))
	}
	least, most := max(top, 0), max(top, 0)
	for i := range s.wide {
		g := &s.wide[i]
		top, least, most = max(top, g.ns), max(least, g.lo/int64(g.parts)), max(most, g.hi)
	}
	for i := range s.unseen {
		most = max(most, s.unseen[i].hi)
	}
	s.own[stall], s.own[stallLeast], s.own[stallMost] = top, least, most
}

// Stall is the longest gap between two arrivals of one choice.
func (q *Request) Stall(until int64) (float64, State) {
	st := q.stampState(q.own[stall] >= 0)
	if !q.stream {
		return 0, Missing
	}
	switch st {
	case Known:
		return float64(q.own[stall]), st
	case Longer:
		if q.lastGap < 0 {
			return 0, st
		}
		return max(float64(q.own[stall]), q.followedTime(q.lastGap, until)), st
	}
	return 0, st
}

// clientInterval is an interval between two stamps of the client's own side.
func (q *Request) clientInterval(from, to int64) (float64, State) {
	if from < 0 || to < 0 {
		return 0, Missing
	}
	return float64(to - from), Known
}

// inputTokens is the number of prompt tokens: served, or planned where the server
// did not tell.
func (q *Request) inputTokens() int32 {
	if q.prompt >= 0 {
		return q.prompt
	}
	return q.inputPlanned
}

// tokensPerChunk returns the number of visible tokens that its events brought on average.
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

// Class implements [slo.Request].
func (j *judged) Class() string { return j.classOf(j.q) }

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
