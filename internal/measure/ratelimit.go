package measure

import (
	"net/http"

	"pitot/internal/data/record"
	"pitot/internal/data/result"
)

// rateLimits is what the answers to the cohort's requests said of rate limits.
type rateLimits struct {
	requests, tokens result.RateLimit
	refused          int
}

// add counts a request of the cohort.
func (l *rateLimits) add(r *record.Row) {
	if r.Status == http.StatusTooManyRequests && r.Outcome != record.OK {
		l.refused++
	}
	lower := func(into **int64, n int64) {
		if n >= 0 && (*into == nil || n < **into) {
			*into = &n
		}
	}
	lower(&l.requests.Limit, r.LimitRequests)
	lower(&l.requests.Least, r.LeftRequests)
	lower(&l.tokens.Limit, r.LimitTokens)
	lower(&l.tokens.Least, r.LeftTokens)
}

// result is what is told of it, nil where no header said anything.
func (l *rateLimits) result() *result.RateLimits {
	out := &result.RateLimits{Refused: l.refused}
	if l.requests != (result.RateLimit{}) {
		out.Requests = &l.requests
	}
	if l.tokens != (result.RateLimit{}) {
		out.Tokens = &l.tokens
	}
	if out.Requests == nil && out.Tokens == nil {
		return nil
	}
	return out
}
