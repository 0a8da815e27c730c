package metrics

import (
	"cmp"
	"math"
	"slices"

	"pitot/internal/results/record"
	"pitot/internal/results/result"
	"pitot/internal/stats"
)

// sessions keeps what is needed of requests that follow one another.
type sessions struct {
	list    []turn
	dropped bool // there were more than are kept
}

// mostSessionTurns is the number of requests that are kept at most, of 64 bytes each.
const mostSessionTurns = 4_000_000

// turn holds what is kept of a request of a session.
type turn struct {
	session                  int64
	due, first, done         int64
	id                       int64
	turn, turns              int32
	history, prompt, cached  int32
	ok, began, stopped, live bool // live: it streams
}

func (s *sessions) add(r *record.Row) {
	if r.Session < 0 || r.Turns < 0 {
		return
	}
	if len(s.list) == mostSessionTurns {
		s.dropped = true
		return
	}
	prompt := r.PromptTokens
	if prompt < 0 {
		prompt = r.InputPlanned
	}
	s.list = append(s.list, turn{
		session: r.Session, due: r.Due, first: r.FirstToken, done: r.Done, id: r.ID, turn: r.Turn, turns: r.Turns,
		history: r.History, prompt: prompt, cached: r.CachedTokens,
		ok: r.Outcome == record.OK, began: r.After == record.Unset, stopped: r.Error == record.ErrInterrupted, live: r.Stream,
	})
}

// Session holds what its requests say of a session. They are added in any order.
type Session struct {
	Begun    bool  // its first request is among them
	Due      int64 // of the first
	End      int64 // of the last answer
	Planned  int   // requests that it has in all
	Asked    int
	Answered int
	History  int64 // tokens of the prompts that were asked or answered in it before
	Prompt   int64 // tokens of the prompts

	failed bool // a request was not answered, and not for the end of the load
}

// Turn is a request of a session. A length is below 0 where it is not known.
type Turn struct {
	First           bool // it came by itself, the others after it
	Due, Done       int64
	Turn, Turns     int32
	History, Prompt int32
	OK              bool
	Stopped         bool // the load ended before it did
}

// Add takes in a request.
func (s *Session) Add(q Turn) {
	if q.First {
		s.Begun, s.Due, s.Planned = true, q.Due, int(q.Turns-q.Turn)
	}
	s.Asked++
	switch {
	case q.OK:
		s.Answered++
		s.End = max(s.End, q.Done)
	case !q.Stopped:
		s.failed = true
	}
	s.History, s.Prompt = s.History+int64(max(q.History, 0)), s.Prompt+int64(max(q.Prompt, 0))
}

func (s *Session) add(q *turn) {
	s.Add(Turn{First: q.began, Due: q.due, Done: q.done, Turn: q.turn, Turns: q.turns, History: q.history, Prompt: q.prompt, OK: q.ok, Stopped: q.stopped})
}

// How sessions end.
const (
	SessionFinished   = "finished"    // all its requests were answered
	SessionEndedEarly = "ended early" // one was not, and so the next was never asked
	SessionGoingOn    = "going on"    // when the load ended
)

// Outcome returns how a session that has begun ended.
func (s *Session) Outcome() string {
	switch {
	case s.Answered == s.Asked && s.Asked >= s.Planned:
		return SessionFinished
	case s.failed:
		return SessionEndedEarly
	}
	return SessionGoingOn
}

// NeverAsked returns the number of requests that were never made of a session that ended early.
func (s *Session) NeverAsked() int { return max(s.Planned-s.Asked, 0) }

// sessionsOf returns the results of the sessions that began in the window, and of the window's
// requests by their position in their sessions. It returns nil where requests stand alone.
func (f *Fold) sessionsOf() *result.Sessions {
	list := f.talks.list
	if len(list) == 0 || f.talks.dropped {
		return nil
	}
	slices.SortFunc(list, func(a, b turn) int { return cmp.Or(cmp.Compare(a.session, b.session), cmp.Compare(a.id, b.id)) })
	x := &result.Sessions{}
	var early []float64  // of those that came to an end: 1 where early
	var finals []float64 // seconds; +Inf: it had not come when the session was last followed
	var again, read float64
	for from := 0; from < len(list); {
		one := Session{}
		to := from
		for ; to < len(list) && list[to].session == list[from].session; to++ {
			one.add(&list[to])
		}
		from = to
		if !one.Begun || !f.conditions.InWindow(one.Due) {
			continue
		}
		x.Begun++
		switch one.Outcome() {
		case SessionFinished:
			x.Finished++
			early = append(early, 0)
			finals = append(finals, float64(one.End-one.Due)/1e9)
			again, read = again+float64(one.History), read+float64(one.Prompt)
			continue
		case SessionEndedEarly:
			x.EndedEarly++
			early = append(early, 1)
			x.NeverAsked += one.NeverAsked()
		default:
			x.GoingOn++
		}
		finals = append(finals, math.Inf(1))
	}
	if n := x.Finished + x.EndedEarly; n > 0 {
		share := float64(x.EndedEarly) / float64(n)
		x.FailedShare = &share
		if phi, ok := stats.DispersionOf(early, level); ok && f.conf.whySessions.IsNone() {
			caution := f.sessionCaution()
			v := stats.ClopperPearson(x.EndedEarly, n, phi*caution*caution, level)
			x.FailedShareCI95 = &[2]float64{v.Lo, v.Hi}
		}
	}
	x.FinalS = f.rankStatistics(finals)
	if n := float64(x.Finished); n > 0 {
		again, read = again/n, read/n
		x.RereadTokens, x.PromptTokens = &again, &read
	}
	x.ByTurn = f.groupByPlace(func(q *turn) int64 { return int64(q.turn) + 1 })
	x.ByHistory = f.groupByPlace(func(q *turn) int64 { return int64(q.history) })
	return x
}

// groupByPlace groups the requests of the window by a number, in ranges that double: 1, 2, 3–4,
// 5–8 and so on, and 0 by itself.
func (f *Fold) groupByPlace(of func(*turn) int64) (out []result.Placed) {
	type group struct {
		ttft                    []float64
		cached, prompt, history float64
		told                    int
	}
	groups := map[int]*group{}
	for i := range f.talks.list {
		q := &f.talks.list[i]
		n := of(q)
		if n < 0 || !f.conditions.InWindow(q.due) {
			continue
		}
		k := -1 // of 0
		if n > 0 {
			k = int(math.Ceil(math.Log2(float64(n))))
		}
		g := groups[k]
		if g == nil {
			g = &group{}
			groups[k] = g
		}
		ttft := math.Inf(1)
		if q.ok && q.live && q.first >= 0 {
			ttft = float64(q.first-q.due) / 1e6
		}
		g.ttft = append(g.ttft, ttft)
		g.history += float64(max(q.history, 0))
		if q.ok && q.cached >= 0 && q.prompt > 0 {
			g.told++
			g.cached, g.prompt = g.cached+float64(q.cached), g.prompt+float64(q.prompt)
		}
	}
	out = []result.Placed{}
	keys := make([]int, 0, len(groups))
	for k := range groups {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for _, k := range keys {
		g := groups[k]
		p := result.Placed{Requests: len(g.ttft), HistoryTokens: g.history / float64(len(g.ttft))}
		if k >= 0 {
			p.From, p.To = int64(1)<<k/2+1, int64(1)<<k
		}
		if k == 0 {
			p.From = 1
		}
		p.TTFT = f.rankStatistics(g.ttft)
		if g.told > 0 {
			share := g.cached / g.prompt
			p.CachedShare = &share
		}
		out = append(out, p)
	}
	return out
}

// sessionCaution is by how much intervals of whole sessions must be wider than they say.
func (f *Fold) sessionCaution() float64 {
	return stats.WideningFactor(f.conf.ofTimeSessions, f.conf.memory)
}

// rankStatistics are the order statistics X(⌈np⌉) at a half and at nine tenths of values that stand
// in the order of their sessions, with the interval of the median.
func (f *Fold) rankStatistics(values []float64) (r result.Ranks) {
	n := int64(len(values))
	if n == 0 {
		return r
	}
	sorted := slices.Clone(values)
	stats.SortFloat64(sorted)
	at := func(rank int64) *float64 { // nil where no more is known than that it is longer
		if x := sorted[rank-1]; !math.IsInf(x, 1) {
			return &x
		}
		return nil
	}
	rank := func(share float64) int64 { return max(int64(math.Ceil(share*float64(n))), 1) }
	r.P50, r.P90 = at(rank(.5)), at(rank(.9))
	if !f.conf.whySessions.IsNone() || r.P50 == nil {
		return r
	}
	phi, ok := stats.DispersionOf(stats.MarkExceeding(values, *r.P50), level)
	if !ok {
		return r
	}
	caution := f.sessionCaution()
	lo, hi := stats.EffectiveRankInterval(n, float64(n)/(phi*caution*caution), .5, level)
	if lo < 1 || hi > n {
		return r
	}
	if low, high := at(lo), at(hi); high != nil {
		r.P50CI95 = &[2]float64{*low, *high}
	}
	return r
}
