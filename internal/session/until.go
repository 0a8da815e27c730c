package session

import (
	"fmt"
	"iter"

	"pitot/internal/metrics"
	"pitot/internal/report/reasons"
	"pitot/internal/results/record"
	"pitot/internal/results/result"
	"pitot/internal/results/spill"
	"pitot/internal/slo"
	"pitot/internal/stats"
)

// looker looks at a window when its requests have ended, and makes it longer:
// by half, where the load had not settled, and to the double, until a value is
// known well enough. Only doublings are looked at, and what the budget allows at
// last: each look is another chance to stop on a run that came out narrow.
type looker struct {
	want    slo.Precision // none for none
	longest int64         // that a window may be
	inTime  bool          // looks take no time: the world is virtual

	// records are those of the point so far, as often as they are asked for.
	records func() (iter.Seq2[record.Frame, error], error)
	rows    iter.Seq2[record.Frame, error] // the same without chunks, after records was called; nil: they cost nothing
	store   func() *spill.Store            // for what may not fit into memory; nil gives none
	index   int32
	setup   metrics.Setup
	say     func(string)

	unquiet int  // looks at which the load had not settled
	grown   bool // the queue grew at the last look
	looks   int
	last    glance
	looking chan glance // under way, nil for none
}

// mostUnquiet is the largest number of times that a window is extended for the load to settle.
const mostUnquiet = 2

// glance holds the observations so far, and the resulting end of the window.
type glance struct {
	end     int64
	unquiet bool // the load had not settled, and may yet
	grown   bool // the queue grew
	percent float64
	why     result.Reason
	err     error
}

// newLooker is called before the point's first record.
func (s *Session) newLooker(want slo.Precision, index int32, setup metrics.Setup) (*looker, error) {
	offset, err := s.journal.Offset()
	return &looker{
		want: want, longest: int64(s.plan.MaxDuration), inTime: s.Target.Kind == "sim",
		records: func() (iter.Seq2[record.Frame, error], error) {
			err := s.journal.Flush()
			return record.FramesSince(s.Dir, offset), err
		},
		rows:  record.RowsSince(s.Dir, offset),
		store: func() *spill.Store { return newStore(s.Dir) },
		index: index, setup: setup, say: s.runner.showLine,
	}, err
}

// extendWindow implements loadgen.Config.Extend.
func (l *looker) extendWindow(t0, t1 int64) (end int64, known bool) {
	if l.looking == nil { // a look reads it
		l.setup.T0 = t0
	}
	if l.inTime {
		return l.noteLook(l.lookAtWindow(t1)), true
	}
	if l.looking == nil { // while the load goes on
		l.looking = make(chan glance, 1)
		go func(to chan<- glance) { to <- l.lookAtWindow(t1) }(l.looking)
		return 0, false
	}
	select {
	case seen := <-l.looking:
		l.looking = nil
		return l.noteLook(seen), true
	default:
		return 0, false
	}
}

// lookAtWindow measures the window that ended at t1, and says where it is to end.
func (l *looker) lookAtWindow(t1 int64) (seen glance) {
	defer func() {
		if seen.err != nil {
			seen.why = result.Reason{Code: result.RecordsUnreadable}
		}
	}()
	seen.end = t1
	frames, err := l.records()
	if seen.err = err; err != nil {
		return seen
	}
	setup := l.setup
	setup.T1 = t1
	setups := map[int32]metrics.Setup{l.index: setup}
	rows := frames
	if l.rows != nil {
		rows = l.rows
	}
	metrics.SettleWindows(setups, rows)
	set := setups[l.index].Settling
	quiet := set == nil || set.Why == "" || l.unquiet == mostUnquiet
	if quiet && l.want.IsNone() {
		return seen
	}
	var store *spill.Store
	if l.store != nil {
		store = l.store()
	}
	defer store.Close()
	fold := metrics.NewFoldIn(store, setups[l.index])
	for f, err := range frames {
		if err != nil {
			seen.err = fmt.Errorf("read records: %w", err)
			return seen
		}
		if f.Point == l.index {
			fold.Add(f)
		}
	}
	window := t1 - l.setup.T0
	unstable := fold.Point().Stability == stats.Unstable // no window is long enough
	if !quiet && !unstable && (l.want.IsNone() || 3*window/2 <= l.longest) {
		seen.end, seen.unquiet = l.setup.T0+3*window/2, true
		return seen
	}
	if l.want.IsNone() {
		return seen
	}
	seen.grown = unstable
	seen.percent, seen.why = fold.Precision(l.want)
	switch {
	case seen.why.IsNone() && seen.percent <= l.want.Percent:
	case unstable && l.grown: // grew at two looks in a row: that is not noise
	case window >= l.longest:
		seen.why = seen.why.Or(result.Reason{Code: result.BudgetUsed, Seconds: float64(l.longest) / 1e9})
	default:
		seen.end = l.setup.T0 + min(2*window, l.longest)
	}
	return seen
}

// noteLook records how a look came out, says it, and gives the end of the window.
func (l *looker) noteLook(seen glance) (end int64) {
	if seen.unquiet {
		l.unquiet++
		l.say("the load has not settled: the window becomes 1.5 times as long")
		return seen.end
	}
	if l.want.IsNone() {
		if seen.err != nil {
			l.say("note: whether the load had settled is not known: " + seen.err.Error())
		}
		return seen.end
	}
	l.looks++
	l.last, l.grown = seen, seen.grown
	line := fmt.Sprintf("look %d: %s", l.looks, l.want)
	switch {
	case seen.err != nil:
		line += ": " + seen.err.Error()
	case seen.percent > 0:
		line += fmt.Sprintf(" is ±%.3g %%", seen.percent)
	default:
		line += " is not known: " + reasons.Text(seen.why)
	}
	l.say(line)
	return seen.end
}

// untilResult returns the outcome of the stopping rule, nil if there was none.
func (l *looker) untilResult() *result.Until {
	if l.want.IsNone() {
		return nil
	}
	u := &result.Until{Spec: l.want.String(), Looks: l.looks, Why: l.last.why}
	if l.looks == 0 {
		u.Why = result.Reason{Code: result.StoppedFirst}
	}
	if p := l.last.percent; p > 0 {
		u.HalfWidthPercent, u.Reached = &p, p <= l.want.Percent
	}
	return u
}
