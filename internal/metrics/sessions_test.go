package metrics

import (
	"math"
	"math/rand/v2"
	"testing"

	"pitot/internal/results/record"
	"pitot/internal/results/result"
)

// The window is [10 s, 20 s). A conversation belongs to it that began in it, a turn that
// was due in it, whatever became of the others.
func TestSessions(t *testing.T) {
	f := NewFold(Setup{T0: 10e9, T1: 20e9, Stamps: "kernel"})
	id := int64(-1)
	type place struct {
		session     int64
		turn, turns int32
		due         float64 // s
		history     int32
		outcome     record.Outcome
		err         string
		first       bool // of its session
	}
	add := func(p place) {
		id++
		r := record.BlankRow()
		r.ID, r.Session, r.Turn, r.Turns, r.History = id, p.session, p.turn, p.turns, p.history
		r.Due = int64(p.due * 1e9)
		r.Eligible, r.Ready, r.Sent, r.Headers = r.Due, r.Due, r.Due, r.Due
		if !p.first {
			r.After = id - 1
		}
		r.PromptTokens, r.CachedTokens, r.CompletionTokens, r.Stream = p.history+100, p.history, 1, true
		r.Outcome, r.Error = p.outcome, p.err
		r.Done = r.Due + 2e9
		if p.outcome == record.OK {
			r.FirstToken = r.Due + int64(50e6) + int64(p.turn)*10e6
			r.LastToken, r.FirstEvent = r.FirstToken, r.FirstToken
			r.Finish = "stop"
		}
		f.Add(record.Frame{Rows: []record.Row{r}})
	}
	for s := range int64(3) { // finished, their last turn behind the window
		add(place{session: s, turns: 3, due: 11, first: true})
		add(place{session: s, turn: 1, turns: 3, due: 15, history: 110})
		add(place{session: s, turn: 2, turns: 3, due: 22, history: 220})
	}
	add(place{session: 3, turns: 2, due: 9, first: true}) // began before the window
	add(place{session: 3, turn: 1, turns: 2, due: 13, history: 110})
	add(place{session: 4, turns: 6, due: 12, first: true}) // ended early
	add(place{session: 4, turn: 1, turns: 6, due: 16, history: 110, outcome: record.Failed, err: record.ErrTimeout})
	add(place{session: 5, turns: 2, due: 19, first: true}) // going on
	add(place{session: 5, turn: 1, turns: 2, due: 30, history: 110, outcome: record.Cut, err: record.ErrInterrupted})
	p := f.Point()
	x := p.Sessions
	if x == nil || x.Begun != 5 || x.Finished != 3 || x.EndedEarly != 1 || x.GoingOn != 1 || x.NeverAsked != 4 {
		t.Fatalf("%+v", x)
	}
	if x.FinalS.P50 == nil || *x.FinalS.P50 != 13 || x.FinalS.P90 != nil {
		t.Errorf("the final answers came after %v s", x.FinalS)
	}
	if *x.RereadTokens != 330 || *x.PromptTokens != 630 {
		t.Errorf("%g of %g prompt tokens were said before", *x.RereadTokens, *x.PromptTokens)
	}
	want := []struct {
		from, to int64
		n        int
		p50      float64
	}{{1, 1, 5, 50}, {2, 2, 5, 60}}
	for i, w := range want {
		if g := x.ByTurn[i]; g.From != w.from || g.To != w.to || g.Requests != w.n || g.TTFT.P50 == nil || *g.TTFT.P50 != w.p50 {
			t.Errorf("by turn %d: %+v", i, g)
		}
	}
	if g := x.ByTurn[1]; g.TTFT.P90 != nil || g.CachedShare == nil || *g.CachedShare != 110./210 || g.HistoryTokens != 110 {
		t.Errorf("turn 2: %+v", g)
	}
	if len(x.ByTurn) != 2 || len(x.ByHistory) != 2 || x.ByHistory[0].From != 0 || x.ByHistory[0].To != 0 || x.ByHistory[1].From != 65 || x.ByHistory[1].To != 128 || x.ByHistory[1].Requests != 5 {
		t.Errorf("by history: %+v", x.ByHistory)
	}
}

// Requests that stand alone are in none.
func TestNoSessions(t *testing.T) {
	f := NewFold(Setup{T0: 0, T1: 20e9, Stamps: "kernel"})
	r := record.BlankRow()
	r.Due, r.Done = 1e9, 2e9
	f.Add(record.Frame{Rows: []record.Row{r}})
	if p := f.Point(); p.Sessions != (*result.Sessions)(nil) {
		t.Errorf("%+v", p.Sessions)
	}
}

// The median of values in the order of their sessions has an interval where the window is
// long enough for it, wider where neighbours are alike, and none where they are too few or
// were not followed so far.
func TestRanksInterval(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	values := func(n, alike int) (list []float64) {
		for len(list) < n {
			x := rng.Float64()
			for range alike {
				list = append(list, x+.001*rng.Float64())
			}
		}
		return list
	}
	f := &Fold{conf: confidence{ofTimeSessions: 1}}
	width := func(r result.Ranks) float64 {
		if r.P50CI95 == nil {
			return 0
		}
		return r.P50CI95[1] - r.P50CI95[0]
	}
	free, bound := width(f.rankStatistics(values(400, 1))), width(f.rankStatistics(values(400, 20)))
	if !(free > 0 && bound > 1.5*free) {
		t.Errorf("widths %g of independent values and %g of alike ones", free, bound)
	}
	if w := width(f.rankStatistics(values(12, 1))); w != 0 {
		t.Errorf("12 values have an interval of %g", w)
	}
	cut := values(400, 1)
	for i := range cut {
		if i%5 < 2 {
			cut[i] = math.Inf(1)
		}
	}
	if r := f.rankStatistics(cut); r.P50 == nil || r.P90 != nil {
		t.Errorf("of cut values %+v", r)
	} else if v := r.P50CI95; v != nil && math.IsInf(v[1], 1) {
		t.Errorf("the interval %v ends nowhere", v)
	}
	f.conf.whySessions = result.Reason{Code: result.FewRequests}
	if w := width(f.rankStatistics(values(400, 1))); w != 0 {
		t.Errorf("a short window has an interval of %g", w)
	}
}
