package client

import (
	"fmt"
	"testing"

	"pitot/internal/client/api"
	"pitot/internal/client/stamp"
	"pitot/internal/results/record"
)

// What providers' headers say of their limits, in the forms that they have.
func TestRateLimits(t *testing.T) {
	for head, want := range map[string]string{
		"x-ratelimit-limit-requests: 500\r\nx-ratelimit-remaining-requests: 499\r\nx-ratelimit-reset-requests: 120ms\r\nx-ratelimit-limit-tokens: 30000\r\nx-ratelimit-remaining-tokens: 29000\r\nx-ratelimit-reset-tokens: 6m0s\r\n":                 "500/499 30000/29000; 290 of 300 until 360000",
		"X-RateLimit-Limit-Requests: 60\r\nX-RateLimit-Remaining-Requests: 0\r\nX-RateLimit-Reset-Requests: 2\r\n":                                                                                                                                    "60/0 -1/-1; 0 of 60 until 2000",
		"date: Mon, 23 Nov 2026 12:00:00 GMT\r\nanthropic-ratelimit-requests-limit: 50\r\nanthropic-ratelimit-requests-remaining: 3\r\nanthropic-ratelimit-requests-reset: 2026-11-23T12:00:30Z\r\nanthropic-ratelimit-input-tokens-remaining: 7\r\n": "50/3 -1/-1; 3 of 50 until 30000",
		// Go's net/http writes Date behind all others.
		"anthropic-ratelimit-requests-limit: 50\r\nanthropic-ratelimit-requests-remaining: 3\r\nanthropic-ratelimit-requests-reset: 2026-11-23T12:00:30Z\r\ndate: Mon, 23 Nov 2026 12:00:00 GMT\r\n": "50/3 -1/-1; 3 of 50 until 30000",
		"anthropic-ratelimit-tokens-remaining: 250\r\nanthropic-ratelimit-tokens-reset: 2026-11-23T12:00:30Z\r\n":                                                                                    "-1/-1 -1/250; 2 of 0 until 1000",
		"x-ratelimit-limit-requests: many\r\nx-ratelimit-remaining-requests: -4\r\nx-ratelimit-limit: 7\r\n":                                                                                         "-1/-1 -1/-1; none",
		"x-ratelimit-remaining-requests: 0\r\nx-ratelimit-reset-requests: 2562047h47m\r\n":                                                                                                           "-1/0 -1/-1; 0 of 0 until 1000000000",
		"date: Mon, 23 Nov 2026 12:00:00 GMT\r\nx-ratelimit-remaining-requests: 0\r\nx-ratelimit-reset-requests: 9999-12-31T23:59:59Z\r\n":                                                           "-1/0 -1/-1; 0 of 0 until 1000000000",
		"server: x\r\n": "-1/-1 -1/-1; none",
	} {
		x := NewExchange(api.Chat)
		x.Sink = &kept{}
		row := record.BlankRow()
		row.InputPlanned, row.OutputPlanned = 90, 10
		x.Begin(row)
		x.MarkSent(0)
		x.Feed([]byte("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"+head+"content-length: 2\r\n\r\n{}"), stamp.Arrival{})
		r := &x.Row
		got := fmt.Sprintf("%d/%d %d/%d; none", r.LimitRequests, r.LeftRequests, r.LimitTokens, r.LeftTokens)
		if room := x.RateLimitRoom(); room != nil {
			got = fmt.Sprintf("%d/%d %d/%d; %d of %d until %d", r.LimitRequests, r.LeftRequests, r.LimitTokens, r.LeftTokens, room.Requests, room.Limit, room.Whole/1e6)
		}
		if got != want {
			t.Errorf("%q: %s, want %s", head, got, want)
		}
	}
	x := NewExchange(api.Chat)
	x.Sink = &kept{}
	x.Begin(record.BlankRow())
	x.MarkSent(0)
	x.Feed([]byte("HTTP/1.1 429 Too Many Requests\r\nretry-after: 3\r\ncontent-length: 2\r\n\r\n{}"), stamp.Arrival{})
	if room := x.RateLimitRoom(); room == nil || room.Requests != 0 || room.Whole != 3e9 {
		t.Errorf("%+v", room)
	}
}
