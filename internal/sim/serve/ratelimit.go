package serve

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"pitot/internal/clock"
)

// RateLimit is the number of requests that a server answers in each period, counted from the
// period's start. The zero value sets no limit. Every answer reports the remaining requests, as
// OpenAI's do; on Anthropic's route as Anthropic's do. Requests over the limit get 429 and
// Retry-After.
type RateLimit struct {
	Requests int64
	Every    time.Duration
}

// limiter counts them.
type limiter struct {
	mu     sync.Mutex
	period int64 // that the count is of
	used   int64
}

// countRequest counts a request, and gives the headers that its answer has; false refuses it. reset
// is how long it is until the next stretch.
func (s *Server) countRequest(path string) (headers string, reset time.Duration, ok bool) {
	of := s.cfg.RateLimit
	if of.Requests <= 0 || of.Every <= 0 {
		return "", 0, true
	}
	l := &s.limiter
	l.mu.Lock()
	defer l.mu.Unlock()
	age := clock.Now() - s.start
	if p := age / int64(of.Every); p != l.period {
		l.period, l.used = p, 0
	}
	ok = l.used < of.Requests
	if ok {
		l.used++
	}
	reset = time.Duration((l.period+1)*int64(of.Every) - age)
	if strings.HasPrefix(path, "/v1/messages") {
		at := time.Now().Add(reset + time.Second - 1).UTC().Format(time.RFC3339) // whole seconds, and never too early
		return fmt.Sprintf("anthropic-ratelimit-requests-limit: %d\r\nanthropic-ratelimit-requests-remaining: %d\r\nanthropic-ratelimit-requests-reset: %s\r\n", of.Requests, of.Requests-l.used, at), reset, ok
	}
	return fmt.Sprintf("x-ratelimit-limit-requests: %d\r\nx-ratelimit-remaining-requests: %d\r\nx-ratelimit-reset-requests: %s\r\n", of.Requests, of.Requests-l.used, reset.Round(time.Millisecond)+time.Millisecond), reset, ok
}
