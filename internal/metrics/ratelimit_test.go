package metrics

import (
	"math"
	"testing"

	"pitot/internal/results/record"
)

// What limits allow in the long run is told of a limit that is counted anew from time to time and
// of one that is refilled bit by bit, and of none that was not used up or not seen to come back.
func TestWhatRateLimitsAllow(t *testing.T) {
	const limit, period, second = 20, 5, int64(1e9)
	for name, c := range map[string]struct {
		seconds int
		rate    int
		reset   func(at int64, left int64) int64
		left    func(at int64, n int) int64
		want    float64 // a second, 0: not known
	}{
		"counted anew": {30, 8, func(at, _ int64) int64 { return period*second - at%(period*second) }, func(at int64, n int) int64 { return max(limit-int64(n%40), 0) }, limit / period},
		"one period": {5, 8, func(at, _ int64) int64 { return period*second - at%(period*second) },
			func(at int64, n int) int64 { return max(limit-int64(n), 0) }, 0},
		"less than half of one": {2, 8, func(at, _ int64) int64 { return period*second - at%(period*second) }, func(at int64, n int) int64 { return 0 }, 0},
		"refilled":              {30, 8, func(_, left int64) int64 { return (limit - left) * period * second / limit }, func(at int64, n int) int64 { return max(limit-int64(n), 0) }, limit / period},
		"not used up":           {30, 2, func(_, left int64) int64 { return (limit - left) * period * second / limit }, func(at int64, n int) int64 { return limit - 3 }, 0},
		"no reset":              {30, 8, func(_, _ int64) int64 { return record.Unset }, func(at int64, n int) int64 { return 0 }, 0},
	} {
		var l rateLimits
		for n := range c.seconds * c.rate {
			r := record.BlankRow()
			r.Headers = int64(n) * second / int64(c.rate)
			r.LimitRequests, r.LeftRequests = limit, c.left(r.Headers, n)
			r.ResetRequests = c.reset(r.Headers, r.LeftRequests)
			l.add(&r)
		}
		got := l.result().Requests.AllowsPerS
		if got == nil != (c.want == 0) || got != nil && math.Abs(*got-c.want) > .1 {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
	if (&rateLimits{refused: 3}).result() != nil {
		t.Error("a 429 alone tells of no limit")
	}
	var l rateLimits
	for _, after := range []int32{record.Unset, 20, 7} {
		r := record.BlankRow()
		r.Status, r.Outcome, r.RetryAfter = 429, record.Failed, after
		l.add(&r)
	}
	if got := l.result(); got == nil || got.RetryAfter == nil || *got.RetryAfter != 20 || got.Refused != 3 {
		t.Errorf("429 with Retry-After: %+v", got)
	}
}
