package session

import (
	"pitot/internal/loadgen"
	"pitot/internal/metrics"
	"pitot/internal/results/marks"
	"pitot/internal/results/record"
	"pitot/internal/results/result"
)

// writeMark writes a mark.
func writeMark(j *record.Journal, name string, point int32, data []byte) {
	j.AddMark(record.Mark{Point: point, Name: name, Data: data})
}

// readSetup returns the setup of a point as its mark has it.
func readSetup(data []byte) (metrics.Setup, error) {
	s := metrics.Setup{T1: loadgen.Never}
	err := marks.Decode(marks.NamePoint, data, &s)
	return s, err
}

// endedSetup returns a setup with what is known at the end of its window.
func endedSetup(s metrics.Setup, w marks.Window) metrics.Setup {
	if w.T0 != nil {
		s.T0 = *w.T0
	}
	s.T1, s.Ended, s.GaveUp, s.Gone, s.Until = max(w.T1, s.T0), w.Ended, w.GaveUp, w.Gone, w.Until
	s.PlannedHits, s.Missing, s.Reuse, s.Workers = w.PlannedHits, w.Missing, w.PrefixCache, w.Workers
	return s
}

// crewOf returns the workers of a point whose coordinator did not see its end.
func crewOf(c marks.Crew) (workers []result.Worker) {
	for _, m := range c.Workers {
		workers = append(workers, m.Worker)
	}
	return workers
}
