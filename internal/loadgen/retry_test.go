package loadgen

import (
	"testing"

	"pitot/internal/results/record"
)

func TestCoreRetries(t *testing.T) {
	retry := func(_ int64, earlier int, e Event) (int64, bool) { return 10 + e.RetryAfter, earlier < 2 }
	fail := func(id, at, after int64) []Event {
		return []Event{{ID: id, At: at, Failed: true, Retriable: true, RetryAfter: after}}
	}
	s := script{t, NewCore(Config{Arrivals: dueAt(1, 5, 90), Window: 40, Timeout: 100, Cap: 1, Retry: retry})}
	s.want(1, nil, "start 0")
	s.want(3, fail(0, 3, 0)) // it waits and keeps its slot
	s.want(5, nil)
	s.wake(13)
	s.want(13, nil, "again 0 due 1")
	s.want(14, fail(0, 14, 15))
	s.wake(39)
	s.want(39, nil, "again 0 due 1")
	s.want(41, fail(0, 41, 0), "settle 0 due 1", "start 1 due 5 eligible 41")
	s.want(50, fail(1, 50, 80))
	s.want(90, nil)
	s.wake(140)
	s.want(140, nil, "again 1 due 5")
	s.wake(141) // its timeout counts from when it was eligible first
	s.want(141, nil, "cancel 1 timeout")
}

// What is under way between two attempts when a load is interrupted is cut, once.
func TestInterruptedBetweenAttempts(t *testing.T) {
	c := NewCore(Config{Arrivals: dueAt(1, 2), Window: 40, Retry: func(int64, int, Event) (int64, bool) { return 100, true }})
	s := script{t, c}
	s.want(2, nil, "start 0 due 1", "start 1")
	s.want(5, []Event{{ID: 0, At: 5, Failed: true, Retriable: true}})
	c.Interrupt(9)
	s.want(9, nil, "cancel 0 interrupted", "cancel 1 interrupted")
	s.want(10, []Event{{ID: 0, At: 10, Cut: true}, {ID: 1, At: 10, Failed: true, Retriable: true}}, "settle 1 due 2")
	s.over()
}

// Clients try again where no answer began and after some statuses, as
// openai-python's _should_retry (commit 000f030) does.
func TestRetriable(t *testing.T) {
	yes, no := true, false
	for _, c := range []struct {
		row  record.Row
		hint *bool
		want bool
	}{
		{record.Row{Outcome: record.OK, Status: 200}, nil, false},
		{record.Row{Outcome: record.Cut, Status: record.Unset, Error: record.ErrTimeout}, nil, false},
		{record.Row{Outcome: record.Failed, Status: record.Unset, Error: record.ErrConnect}, nil, true},
		{record.Row{Outcome: record.Failed, Status: record.Unset, Error: record.ErrClosed}, nil, true},
		{record.Row{Outcome: record.Failed, Status: record.Unset, Error: record.ErrOwnFiles}, nil, false},
		{record.Row{Outcome: record.Failed, Status: 400, Error: record.ErrBadRequest}, nil, false},
		{record.Row{Outcome: record.Failed, Status: 400, Error: record.ErrBadRequest}, &yes, true},
		{record.Row{Outcome: record.Failed, Status: 503, Error: "http_503"}, &no, false},
		{record.Row{Outcome: record.Failed, Status: 408}, nil, true},
		{record.Row{Outcome: record.Failed, Status: 409}, nil, true},
		{record.Row{Outcome: record.Failed, Status: 429}, nil, true},
		{record.Row{Outcome: record.Failed, Status: 500}, nil, true},
		{record.Row{Outcome: record.Failed, Status: 529}, nil, true},
		{record.Row{Outcome: record.Failed, Status: 200, Stream: true, Error: record.ErrReset}, nil, false},
		{record.Row{Outcome: record.Failed, Status: 200, Error: record.ErrReset}, nil, true},
		{record.Row{Outcome: record.Failed, Status: 200, Error: record.ErrEmpty}, nil, false},
	} {
		if got := isRetriable(&c.row, c.hint); got != c.want {
			t.Errorf("status %d %s: %v", c.row.Status, c.row.Error, got)
		}
	}
}
