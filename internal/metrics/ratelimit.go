package metrics

import (
	"math"
	"net/http"

	"pitot/internal/results/record"
	"pitot/internal/results/result"
)

// rateLimits holds what the answers to the cohort's requests said of rate limits.
type rateLimits struct {
	requests, tokens rateLimit
	refused          int
	retryAfter       int32 // seconds, the longest of those refused, 0 if none was told
}

// rateLimit is one of them.
type rateLimit struct {
	known       result.RateLimit
	first, last int64 // the earliest and the latest time at which it was said to be whole again
}

// add counts a request of the cohort.
func (l *rateLimits) add(r *record.Row) {
	if r.Status == http.StatusTooManyRequests && r.Outcome != record.OK {
		l.refused++
		l.retryAfter = max(l.retryAfter, r.RetryAfter)
	}
	l.requests.observe(r.Headers, r.LimitRequests, r.LeftRequests, r.ResetRequests)
	l.tokens.observe(r.Headers, r.LimitTokens, r.LeftTokens, r.ResetTokens)
}

// observe takes what one answer said, whose headers came at a time; what is below 0 it did not say.
func (l *rateLimit) observe(at, limit, left, reset int64) {
	lower := func(into **int64, n int64) {
		if n >= 0 && (*into == nil || n < **into) {
			*into = &n
		}
	}
	lower(&l.known.Limit, limit)
	lower(&l.known.Least, left)
	if reset < 0 || at < 0 || reset > math.MaxInt64/4 {
		return
	}
	seconds, whole := float64(reset)/1e9, at+reset
	if l.known.Whole == nil {
		l.known.Whole, l.first, l.last = &seconds, whole, whole
		return
	}
	*l.known.Whole, l.first, l.last = max(*l.known.Whole, seconds), min(l.first, whole), max(l.last, whole)
}

// result returns what the report has of the limit. It returns nil where no answer said anything.
func (l *rateLimit) result() *result.RateLimit {
	out := l.known
	if out == (result.RateLimit{}) {
		return nil
	}
	// Where nothing is left, the time until a limit is whole is its period, whether it is
	// counted anew from time to time or refilled bit by bit: the longest of these times, if
	// the load went on for long enough to see it become whole.
	if out.Limit != nil && out.Least != nil && out.Whole != nil && *out.Least <= 0 && *out.Whole > 0 && float64(l.last-l.first)/1e9 >= *out.Whole/2 {
		allows := float64(*out.Limit) / *out.Whole
		out.AllowsPerS = &allows
	}
	return &out
}

// result returns what the report has of the limits. It returns nil where no header said anything.
func (l *rateLimits) result() *result.RateLimits {
	out := &result.RateLimits{Refused: l.refused, Requests: l.requests.result(), Tokens: l.tokens.result()}
	if l.retryAfter > 0 {
		seconds := float64(l.retryAfter)
		out.RetryAfter = &seconds
	}
	if out.Requests == nil && out.Tokens == nil && out.RetryAfter == nil {
		return nil
	}
	return out
}
