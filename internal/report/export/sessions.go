package export

import (
	"io"
	"maps"
	"slices"

	"pitot/internal/metrics"
	"pitot/internal/results/record"
	"pitot/internal/results/result"
)

// session is a row of the table of sessions: what measure says of its requests, and what
// the server counted.
type session struct {
	number int64
	metrics.Session
	output, cached int64
	told           int // requests whose cached tokens are known
}

// sessionColumns are the facts of a session, by the definitions that run.json follows.
func sessionColumns() []column[session] {
	// begun is of what is known only where the records have the first request.
	begun := func(x any, s *session) any {
		if !s.Begun {
			return nil
		}
		return x
	}
	return append(ofPoint[session](), []column[session]{
		{"session", int64(0), true, "number, as in the table of requests", func(_ *cohort, s *session) any { return s.number }},
		{"in_window", false, true, "it began in the window: sessions of run.json are these", func(c *cohort, s *session) any { return s.Begun && s.Due >= c.t0 && s.Due < c.t1 }},
		{"due_s", 0., false, "of its first request, seconds since the load of the point began", func(_ *cohort, s *session) any { return begun(float64(s.Due)/1e9, s) }},
		{"outcome", "", false, "finished, ended early (a request was not answered), or going on (when the load ended)", func(_ *cohort, s *session) any { return begun(s.Outcome(), s) }},
		{"turns", int64(0), false, "requests in all", func(_ *cohort, s *session) any { return begun(int64(s.Planned), s) }},
		{"asked", int64(0), true, "requests that were due", func(_ *cohort, s *session) any { return int64(s.Asked) }},
		{"answered", int64(0), true, "requests that were answered to their end", func(_ *cohort, s *session) any { return int64(s.Answered) }},
		{"final_s", 0., false, "of a finished one: from when its first request was due to the end of the last answer", func(_ *cohort, s *session) any {
			if !s.Begun || s.Outcome() != metrics.SessionFinished {
				return nil
			}
			return float64(s.End-s.Due) / 1e9
		}},
		{"prompt_tokens", int64(0), true, "of all its prompts, by the server's count, else as planned", func(_ *cohort, s *session) any { return s.Prompt }},
		{"reread_tokens", int64(0), true, "of these, sent or received in it before", func(_ *cohort, s *session) any { return s.History }},
		{"cached_tokens", int64(0), false, "of these, from the server's prefix cache; empty if a response does not say", func(_ *cohort, s *session) any {
			if s.told == 0 || s.told < s.Answered {
				return nil
			}
			return s.cached
		}},
		{"output_tokens", int64(0), true, "of all its responses", func(_ *cohort, s *session) any { return s.output }},
	}...)
}

// sessionsOf hands over the sessions of a run, each point's in the order of their numbers.
// Requests that stand alone are in none.
func sessionsOf(run *result.Run, dir string, take func(*cohort, *session) error) error {
	var at cohort // its point, index and window
	found := map[int64]*session{}
	flush := func() error {
		for _, n := range slices.Sorted(maps.Keys(found)) {
			if err := take(&at, found[n]); err != nil {
				return err
			}
		}
		clear(found)
		return nil
	}
	err := eachRequest(run, dir, func(c *cohort, q *request) error {
		if c.index != at.index || at.point == nil {
			if err := flush(); err != nil {
				return err
			}
			at = cohort{index: c.index, point: c.point, t0: c.t0, t1: c.t1}
		}
		if q.session < 0 || q.turns < 0 {
			return nil
		}
		s := found[q.session]
		if s == nil {
			s = &session{number: q.session}
			found[q.session] = s
		}
		s.Add(metrics.Turn{
			First: !q.follows, Due: q.due, Done: q.done, Turn: q.turn, Turns: q.turns, History: q.history, Prompt: q.inputTokens(),
			OK: q.wasAnswered(), Stopped: q.errorClass == record.ErrInterrupted,
		})
		output, _ := q.outputTokens()
		s.output += int64(max(output, 0))
		if q.wasAnswered() && q.cached >= 0 {
			s.cached, s.told = s.cached+int64(q.cached), s.told+1
		}
		return nil
	})
	if totalFailure(err) != nil {
		return err
	}
	if failed := flush(); failed != nil {
		return failed
	}
	return err
}

func writeCSVSessions(w io.Writer, run *result.Run, dir string) error {
	return table[session]{sessionColumns(), sessionsOf}.csv(w, run, dir)
}

func writeParquetSessions(w io.Writer, run *result.Run, dir string) error {
	return table[session]{sessionColumns(), sessionsOf}.parquet(w, run, dir)
}
