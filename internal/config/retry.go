package config

import (
	"math"
	"strconv"
	"strings"
	"time"

	"pitot/internal/say"
)

// Retry is the policy by which clients send a failed request again. The zero value sends none
// again.
type Retry struct {
	Times int           // at most
	First time.Duration // wait before the first time; each further one doubles it
	Most  time.Duration // up to this; equal to First: it stays as it is, and nothing is drawn
}

// The rule of OpenAI's clients (openai-python src/openai/_constants.py and
// _base_client.py, commit 000f030): 0.5 s doubled up to 8 s, each less up to a quarter of
// itself; a Retry-After of up to two minutes is followed instead, and a request that is
// asked to wait longer is not sent again.
const (
	firstRetry, mostRetry = 500 * time.Millisecond, 8 * time.Second
	retryJitter           = 0.25
	mostRetryAfter        = 2 * time.Minute
	mostRetries           = 100
)

// ParseRetry reads "2", "2,exponential(500ms,8s)" or "3,constant(1s)". Every error is a
// [say.Error].
func ParseRetry(s string) (r Retry, err error) {
	const hint = "write --retry 2 for what OpenAI's clients do, or 3,exponential(500ms,8s) or 3,constant(1s)"
	times, law, lawful := strings.Cut(strings.ToLower(strings.TrimSpace(s)), ",")
	n, err := strconv.Atoi(strings.TrimSpace(times))
	if err != nil || n < 0 || n > mostRetries {
		return r, say.Errorf("%.40q is no number of retries, 0 to %d", times, mostRetries).WithHint(hint)
	}
	if n == 0 && !lawful {
		return r, nil
	}
	r = Retry{n, firstRetry, mostRetry}
	if !lawful {
		return r, nil
	}
	name, inner, open := strings.Cut(strings.TrimSpace(law), "(")
	inner, closed := strings.CutSuffix(inner, ")")
	var waits []time.Duration
	for part := range strings.SplitSeq(inner, ",") {
		if !open {
			break
		}
		d, err := time.ParseDuration(strings.TrimSpace(part))
		if err != nil || d < 0 || d > 24*time.Hour {
			return Retry{}, say.Errorf("%.40q is no time to wait", part).WithHint(hint)
		}
		waits = append(waits, d)
	}
	switch {
	case !open || !closed || n == 0:
	case name == "constant" && len(waits) == 1:
		return Retry{n, waits[0], waits[0]}, nil
	case name == "exponential" && len(waits) == 2 && waits[0] < waits[1] && waits[0] > 0:
		return Retry{n, waits[0], waits[1]}, nil
	}
	return Retry{}, say.Errorf("%.60q is no way to wait before a retry", s).WithHint(hint)
}

// String writes it so that ParseRetry reads it back.
func (r Retry) String() string {
	n := strconv.Itoa(r.Times)
	switch {
	case r.Times == 0, r.First == firstRetry && r.Most == mostRetry:
		return n
	case r.First == r.Most:
		return n + ",constant(" + r.First.String() + ")"
	}
	return n + ",exponential(" + r.First.String() + "," + r.Most.String() + ")"
}

// Wait returns the wait between an attempt and the next. earlier is the number of earlier attempts
// of the request. ok is false where it is not sent again. asked is the wait that the server
// requested, 0 if none; draw is a number in (0, 1).
func (r Retry) Wait(earlier int, asked time.Duration, draw float64) (wait time.Duration, ok bool) {
	switch {
	case earlier >= r.Times || asked > mostRetryAfter:
		return 0, false
	case asked > 0:
		return asked, true
	case r.First == r.Most:
		return r.First, true
	}
	wait = time.Duration(math.Min(float64(r.First)*math.Exp2(float64(earlier)), float64(r.Most)))
	return time.Duration(float64(wait) * (1 - retryJitter*draw)), true
}
