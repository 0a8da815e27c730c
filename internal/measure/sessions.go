package measure

import (
	"cmp"
	"math"
	"slices"

	"pitot/internal/data/record"
	"pitot/internal/data/result"
)

// sessions keeps what is needed of requests that follow one another.
type sessions struct {
	list    []turn
	dropped bool // there were more than are kept
}

// mostSessionTurns is how many requests are kept, of 64 bytes each.
const mostSessionTurns = 4_000_000

// turn is what is kept of a request of a session.
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

// sessions is what became of the sessions that began in the window, and of the window's
// requests by where they stood in theirs; nil where requests stand alone.
func (f *Fold) sessionsOf() *result.Sessions {
	list := f.talks.list
	if len(list) == 0 || f.talks.dropped {
		return nil
	}
	slices.SortFunc(list, func(a, b turn) int { return cmp.Or(cmp.Compare(a.session, b.session), cmp.Compare(a.id, b.id)) })
	x := &result.Sessions{}
	var finals []float64 // seconds; +Inf: it had not come when the session was last followed
	var again, read float64
	for from := 0; from < len(list); {
		to := from + 1
		for to < len(list) && list[to].session == list[from].session {
			to++
		}
		of := list[from:to]
		from = to
		if !of[0].began || !f.conditions.Holds(of[0].due) {
			continue
		}
		x.Begun++
		asked, answered, early, end := len(of), 0, false, int64(0)
		history, prompts := 0., 0.
		for i := range of {
			q := &of[i]
			if q.ok {
				answered++
				end = max(end, q.done)
			} else if !q.stopped {
				early = true
			}
			history, prompts = history+float64(max(q.history, 0)), prompts+float64(max(q.prompt, 0))
		}
		planned := int(of[0].turns - of[0].turn)
		switch {
		case answered == asked && asked >= planned:
			x.Finished++
			finals = append(finals, float64(end-of[0].due)/1e9)
			again, read = again+history, read+prompts
			continue
		case early:
			x.EndedEarly++
			x.NeverAsked += max(planned-asked, 0)
		default:
			x.GoingOn++
		}
		finals = append(finals, math.Inf(1))
	}
	if n := x.Finished + x.EndedEarly; n > 0 {
		share := float64(x.EndedEarly) / float64(n)
		x.FailedShare = &share
	}
	x.FinalS.P50, x.FinalS.P90 = ranks(finals)
	if n := float64(x.Finished); n > 0 {
		again, read = again/n, read/n
		x.RereadTokens, x.PromptTokens = &again, &read
	}
	x.ByTurn = f.placed(func(q *turn) int64 { return int64(q.turn) + 1 })
	x.ByHistory = f.placed(func(q *turn) int64 { return int64(q.history) })
	return x
}

// placed groups the requests of the window by a number, in ranges that double: 1, 2, 3–4,
// 5–8 and so on, and 0 by itself.
func (f *Fold) placed(of func(*turn) int64) (out []result.Placed) {
	type group struct {
		ttft                    []float64
		cached, prompt, history float64
		told                    int
	}
	groups := map[int]*group{}
	for i := range f.talks.list {
		q := &f.talks.list[i]
		n := of(q)
		if n < 0 || !f.conditions.Holds(q.due) {
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
		p.TTFT.P50, p.TTFT.P90 = ranks(g.ttft)
		if g.told > 0 {
			share := g.cached / g.prompt
			p.CachedShare = &share
		}
		out = append(out, p)
	}
	return out
}

// ranks are the order statistics X(⌈np⌉) at a half and at nine tenths, nil where that is
// one of which no more is known than that it is longer.
func ranks(values []float64) (p50, p90 *float64) {
	slices.Sort(values)
	at := func(share float64) *float64 {
		if len(values) == 0 {
			return nil
		}
		if x := values[max(int(math.Ceil(share*float64(len(values))))-1, 0)]; !math.IsInf(x, 1) {
			return &x
		}
		return nil
	}
	return at(.5), at(.9)
}
