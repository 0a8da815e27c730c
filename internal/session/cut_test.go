package session

import (
	"iter"
	"testing"

	"pitot/internal/metrics"
	"pitot/internal/results/record"
)

// Of a window that was cut short what had time to end counts.
func TestEndedBy(t *testing.T) {
	row := func(due, done int64) record.Row {
		r := record.Row{Due: due, Done: done}
		if r.Outcome = record.OK; done == 1000 {
			r.Outcome, r.Error = record.Cut, record.ErrInterrupted
		}
		return r
	}
	for _, c := range []struct {
		name string
		rows []record.Row
		want int64
	}{
		{"as much before as any took", []record.Row{row(50, 990), row(100, 300), row(900, 950), row(960, 1000)}, 800},
		{"one that never ends is one of them", []record.Row{row(100, 300), row(500, 1000), row(960, 1000)}, 800},
		{"nothing ended", []record.Row{row(20, 1000), row(110, 1000)}, 100},
		{"nothing had time to", []record.Row{row(100, 999), row(110, 1000)}, 101},
		{"all of it had", []record.Row{row(100, 103)}, 997},
	} {
		frames := iter.Seq2[record.Frame, error](func(yield func(record.Frame, error) bool) { yield(record.Frame{Rows: c.rows}, nil) })
		if got := endedBy(&metrics.Setup{T0: 100, T1: 1000, Ended: 1000}, frames); got != c.want {
			t.Errorf("%s: up to %d, want %d", c.name, got, c.want)
		}
	}
}
