package report

import (
	"testing"

	"pitot/internal/data/record"
	"pitot/internal/data/result"
)

// Requests that were refused with 429 are given one advice, which names what can be done.
func TestRefusedAdvice(t *testing.T) {
	after := 20.
	for _, c := range []struct {
		stage   string
		limits  *result.RateLimits
		retries *result.Retries
		want    string
	}{
		{"", nil, nil, "Read the latencies as those of the requests that were served. The server refused 18 requests for its rate limits (429): ask for less than they allow, send such requests again with --retry 2, or hold them back with --respect-limits."},
		{"", &result.RateLimits{Refused: 18, RetryAfter: &after}, &result.Retries{},
			"Read the latencies as those of the requests that were served. The server refused 18 requests for its rate limits (429), with a Retry-After of up to 20 s: ask for less than they allow, or hold them back with --respect-limits."},
		{result.StageCurve, nil, nil, "Read the latencies as those of the requests that were served. The server refused 18 requests for its rate limits (429): ask for less than they allow, or send such requests again with --retry 2."},
	} {
		p := &result.Point{Stage: c.stage, RateLimits: c.limits, Retries: c.retries, Requests: result.Requests{Due: 36, OK: 18, Failed: 18, Errors: map[string]int{record.ErrRateLimited: 18}}}
		check := &result.Check{Name: result.CheckErrors, Status: result.Flag}
		if got := BuildCheckOf(&result.Run{}, p, check).Advice; got != c.want {
			t.Errorf("%s", got)
		}
	}
}
