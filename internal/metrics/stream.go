package metrics

import (
	"math"

	"pitot/internal/results/record"
)

// Stream gathers the chunks of one request until its row comes. Its slices
// are used again for later requests. A [Gatherer] fills it.
type Stream struct {
	lanes   []lane
	further map[int32]int // places of the lanes behind the first few
	near    []nearGap
	wide    []wideGap
	unseen  []unseenGaps

	Events
	firstLo int64 // lower bound of the first arrival

	inside   int64 // events stamped in the window
	tokensIn int64 // tokens of those
	arrivals int64
	several  bool // some event that ended a gap carried more than one token

	own [ownNumbers]int64 // what single metrics keep of the request

	thought, turned    bool // reasoning has come, and something else after it
	turnNear, turnWide int  // the gap before that: its place in the list, from 1
}

// lane is one choice of a stream: gaps are measured inside a choice.
type lane struct {
	choice int32
	begun  bool // an arrival is being gathered
	prev   bool // an earlier arrival is there to measure from

	prevT, prevLo int64 // end of the previous arrival: at most, at least

	first       int64 // stamp of the first arrival
	firstTokens int64 // that it brought, an event that did not say taken for one

	begin  int64 // of this arrival, at least
	t, lo  int64 // end of this arrival: at most, at least
	events int32
	open   int32 // events known only as an interval
	exact  bool  // some event has a stamp of its own
	turn   bool  // reasoning ended with it
	tokens int64
}

// nearGap is a gap that is known exactly and short: nanoseconds, and how many
// events and tokens its arrival brought (tokens 0 if not known).
type nearGap struct {
	ns             uint32
	events, tokens uint16
}

// wideGap is any other gap before an arrival: one whose ends the kernel's
// merging left open, or a very long one.
type wideGap struct {
	ns     int64 // as stamped
	lo, hi int64 // from the previous arrival's end to this one's: at least, at most
	parts  int32 // arrivals it may have been
	events int32
	tokens int32 // 0 if not known
	trust  trust
}

// unseenGaps are those within a stream's first arrival, where merging made one
// of several events: so many at most, hi together at most.
type unseenGaps struct {
	hi    int64
	parts int64
	trust trust
}

// Reset empties it for another request.
func (s *Stream) Reset() {
	*s = Stream{lanes: s.lanes[:0], near: s.near[:0], wide: s.wide[:0], unseen: s.unseen[:0]}
}

// addChunk takes in the next chunk.
func (s *Stream) addChunk(c *record.Chunk) {
	lo := min(c.Earliest, c.T)
	if s.Count == 0 {
		s.firstLo = lo
	}
	s.Add(c.T, c.Tokens)
	tokens := int64(max(c.Tokens, 0))
	var l *lane
	if len(s.lanes) == 1 && s.lanes[0].choice == c.Choice {
		l = &s.lanes[0]
	} else {
		l = s.laneOf(c.Choice)
	}
	if !l.begun || c.T != l.t {
		s.endArrival(l)
		l.begun, l.t, l.events, l.open, l.exact, l.turn, l.tokens, l.begin = true, c.T, 0, 0, false, false, 0, lo
	}
	switch {
	case c.Kind == record.Reasoning:
		s.thought = true
	case s.thought && !s.turned:
		s.turned, l.turn = true, true
	}
	l.lo = lo
	l.events++
	l.tokens += tokens
	if lo < c.T {
		l.open++
	} else {
		l.exact = true
	}
}

// fewLanes are found faster by looking at each than by their number.
const fewLanes = 16

func (s *Stream) laneOf(choice int32) *lane {
	for i := range s.lanes[:min(len(s.lanes), fewLanes)] {
		if s.lanes[i].choice == choice {
			return &s.lanes[i]
		}
	}
	if i, ok := s.further[choice]; ok {
		return &s.lanes[i]
	}
	if len(s.lanes) >= fewLanes {
		if s.further == nil {
			s.further = map[int32]int{}
		}
		s.further[choice] = len(s.lanes)
	}
	s.lanes = append(s.lanes, lane{choice: choice})
	return &s.lanes[len(s.lanes)-1]
}

// endArrival closes the arrival that a lane is gathering.
func (s *Stream) endArrival(l *lane) {
	if !l.begun {
		return
	}
	s.arrivals++
	if l.prev {
		s.keepGap(l)
	} else if l.events > 1 && l.open > 0 {
		s.unseen = append(s.unseen, unseenGaps{hi: l.t - l.begin, parts: max(int64(l.events), l.tokens) - 1})
	}
	if !l.prev {
		l.first, l.firstTokens = l.t, max(l.tokens, int64(l.events))
	}
	l.prev, l.prevT, l.prevLo = true, l.t, l.lo
	l.begun = false
}

// keepGap keeps the gap before the arrival of a lane.
//
// Events with one exact stamp are one arrival for certain. Each event known
// only as an interval may have come alone.
func (s *Stream) keepGap(l *lane) {
	g := wideGap{
		ns:     max(0, l.t-l.prevT),
		lo:     max(0, l.lo-l.prevT),
		hi:     max(0, l.t-l.prevLo),
		parts:  l.open,
		events: l.events,
		tokens: int32(min(l.tokens, math.MaxInt32)),
	}
	if l.exact {
		g.parts++
	}
	g.lo = min(g.lo, g.ns)
	if l.tokens > int64(l.events) {
		s.several = true
	}
	if g.parts == 1 && g.lo == g.hi && g.ns <= math.MaxUint32 && g.events <= math.MaxUint16 && g.tokens <= math.MaxUint16 {
		s.near = append(s.near, nearGap{uint32(g.ns), uint16(g.events), uint16(g.tokens)})
		if l.turn {
			s.turnNear = len(s.near)
		}
		return
	}
	s.wide = append(s.wide, g)
	if l.turn {
		s.turnWide = len(s.wide)
	}
}

// eachGap hands over those between arrivals, as stamped: short ones first.
func (s *Stream) eachGap(r *record.Row, take func(ns int64, is State)) {
	for i := range s.near {
		take(int64(s.near[i].ns), Known)
	}
	last := int64(record.Unset)
	for i := range s.wide {
		take(s.wide[i].ns, Known)
	}
	if r.Outcome != record.Cut || s.Count == 0 {
		return
	}
	for i := range s.lanes {
		last = max(last, s.lanes[i].prevT)
	}
	take(max(0, r.Done-last), Longer)
}

// closeLanes closes all lanes.
func (s *Stream) closeLanes() {
	s.choices, s.spans, s.firsts = int32(len(s.lanes)), 0, 0
	for i := range s.lanes {
		l := &s.lanes[i]
		s.endArrival(l)
		s.spans += l.prevT - l.first
		s.firsts += l.firstTokens
	}
}
