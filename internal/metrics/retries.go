package metrics

import (
	"pitot/internal/results/record"
	"pitot/internal/results/result"
)

// retries counts what became of the cohort's failed requests that were sent again.
type retries struct {
	attempts, sent, again, waited int64 // waited: nanoseconds, of those sent again
	firstOK, laterOK              int
	firstErrors                   map[string]int
}

// add counts a request of the cohort.
func (t *retries) add(r *record.Row) {
	n := int64(r.AttemptCount())
	t.attempts += n
	if n > 0 {
		t.sent++
	}
	if r.Earlier > 0 {
		t.again++
		t.waited += r.Backoff
	}
	switch {
	case r.Outcome == record.OK && r.Earlier == 0:
		t.firstOK++
		return
	case r.Outcome == record.OK:
		t.laterOK++
	}
	if t.firstErrors == nil {
		t.firstErrors = map[string]int{}
	}
	t.firstErrors[r.FirstError()]++
}

// result returns what the report has of the retries.
func (t *retries) result() *result.Retries {
	x := &result.Retries{Attempts: int(t.attempts), FirstOK: t.firstOK, LaterOK: t.laterOK, FirstErrors: clone(t.firstErrors)}
	if t.sent > 0 {
		each := float64(t.attempts) / float64(t.sent)
		x.Amplification = &each
	}
	if t.again > 0 {
		ms := float64(t.waited) / float64(t.again) / 1e6
		x.BackoffMS = &ms
	}
	return x
}
