package metrics

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"pitot/internal/results/record"
	"pitot/internal/results/result"
)

// A request that was sent again is one request: its first failure is counted of the
// requests due, its latency begins when it was due.
func TestRetries(t *testing.T) {
	setup := Setup{T1: 1e9}
	setup.Load.Loop, setup.Load.Retry = "open", "2"
	f := NewFold(setup)
	row := func(id, due int64, errors ...string) record.Row {
		r := record.BlankRow()
		r.ID, r.Due, r.Eligible, r.Stream = id, due, due, true
		for _, class := range errors {
			r.Sent, r.Done, r.Error = due+1, due+2, class
			r.NextAttempt(1000)
		}
		r.Ready, r.Sent, r.FirstToken, r.LastToken, r.Done = due+2000, due+2001, due+5000, due+5000, due+5000
		return r
	}
	rows := []record.Row{row(0, 10), row(1, 20, "http_503"), row(2, 30, "rate_limited", "http_503"), row(3, 40, "http_503"), row(4, 50, "connect"), row(5, 60)}
	rows[3].Outcome, rows[3].Error = record.Failed, "http_500"
	rows[4].Outcome, rows[4].Error, rows[4].Sent = record.Cut, record.ErrInterrupted, record.Unset
	rows[5].Outcome, rows[5].Error, rows[5].Sent = record.Unsent, record.ErrTimeout, record.Unset
	f.Add(record.Frame{Rows: rows})
	p := f.Point()
	amplification, wait := 9./5, (1000+2000+1000+1000)/4/1e6
	want := &result.Retries{Attempts: 9, Amplification: &amplification, FirstOK: 1, LaterOK: 2, BackoffMS: &wait,
		FirstErrors: map[string]int{"http_503": 2, "rate_limited": 1, "connect": 1, "timeout": 1}}
	if d := cmp.Diff(want, p.Retries); d != "" {
		t.Error(d)
	}
	if p.Requests.Due != 6 || p.Requests.OK != 3 || p.Requests.Errors["http_503"] != 0 || p.Requests.Errors["http_500"] != 1 {
		t.Errorf("%+v", p.Requests)
	}
	if m := p.Metrics.SummaryOf("ttft").Mean; m == nil || *m != 0.005 {
		t.Errorf("mean TTFT %v ms", *m)
	}
}
