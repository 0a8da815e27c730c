package metrics

import (
	"iter"
	"math"

	"pitot/internal/metrics/validity"
	"pitot/internal/results/record"
)

// SettleWindows moves the windows of those points whose load settled later than was
// planned for, and that ask for it: their T0 and Settling. It takes a pass of
// its own over the records, for what is measured must be known while they are
// added. Frames that cannot be read end it: the pass that measures will say so.
func SettleWindows(setups map[int32]Setup, frames iter.Seq2[record.Frame, error]) {
	courses := map[int32]*validity.Course{}
	for point, s := range setups {
		if c := s.judgeConditions(); s.AutoWarmup && c.Ended() {
			courses[point] = validity.NewCourse(s.T1)
		}
	}
	if len(courses) == 0 {
		return
	}
	for f, err := range frames {
		if err != nil {
			break
		}
		if c := courses[f.Point]; c != nil {
			for i := range f.Rows {
				r := &f.Rows[i]
				ttft, tpot := ofRow(r)
				c.Add(r, ttft, tpot)
			}
		}
	}
	for point, course := range courses {
		s := setups[point]
		c := s.judgeConditions()
		set := course.FindSettling(&c, !s.SLO.IsNone())
		s.Settling = set
		switch {
		case set == nil:
		case set.Begin != s.T0:
			s.T0, s.Planned = set.Begin, 0 // the count was of another window
		case set.Drift != [2]float64{0, 0} && s.Stage == "" && c.Seconds() >= longWindow:
			set.Why = "" // halves of an hour or a day differ as the server does: its figures are of that time
		}
		setups[point] = s
	}
}

// ofRow are the TTFT and the TPOT that a row tells without its chunks, in
// nanoseconds, NaN where it tells none. Without usage a chunk is taken for a
// token: what counts here is how latencies move, not what they are.
func ofRow(r *record.Row) (ttft, tpot float64) {
	var e Events
	if n := int64(max(r.Chunks, 0)); r.CompletionTokens < 0 && n > 0 {
		e = Events{Count: n, Tokens: n, firstEvents: 1, firstTokens: 1}
	}
	l := LatencyOf(r, &e)
	known := func(x float64, st State) float64 {
		if st != Known {
			return math.NaN()
		}
		return x
	}
	return known(l.TTFT(Response, record.Unset)), known(l.TPOT(record.Unset))
}
