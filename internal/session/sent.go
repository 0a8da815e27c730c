package session

import (
	"pitot/internal/results/record"
	"pitot/internal/results/result"
)

// sent counts what went to the server, as the server itself counts it.
type sent struct {
	load, probes result.Traffic
	rows         bool
}

func (s *sent) countFrame(f *record.Frame) {
	to := &s.load
	if f.Point == record.Probing {
		to = &s.probes
	}
	for i := range f.Rows {
		s.rows = true
		if r := &f.Rows[i]; r.Sent >= 0 {
			countTraffic(to, r)
		}
	}
}

func countTraffic(to *result.Traffic, r *record.Row) {
	to.Requests += 1 + int64(r.Earlier)
	to.NoUsage += int64(r.Earlier)
	if r.Outcome == record.OK {
		to.OK++
	}
	if r.PromptTokens < 0 || r.CompletionTokens < 0 {
		to.NoUsage++
	}
	to.PromptTokens += int64(max(r.PromptTokens, 0))
	to.OutputTokens += int64(max(r.CompletionTokens, 0))
}

// traffic is nil where there are no records of requests.
func (s *sent) traffic() *result.Sent {
	if !s.rows {
		return nil
	}
	out := &result.Sent{Load: s.load}
	if s.probes.Requests > 0 {
		out.Probes = &s.probes
	}
	return out
}

// noteProbes takes what was asked of the target besides the load into the records.
func (s *Session) noteProbes() { s.recordProbes(s.Target.DrainProbes()) }

func (s *Session) recordProbes(list []record.Row) {
	if len(list) == 0 {
		return
	}
	s.journal.SetPoint(record.Probing)
	for i := range list {
		s.journal.Done(&list[i])
	}
}
