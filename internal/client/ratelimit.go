package client

import (
	"math"
	"strconv"
	"strings"
	"time"

	"pitot/internal/results/record"
)

// allowance is one rate limit as the headers of an answer tell it: OpenAI's x-ratelimit-*,
// which most gateways have too, and Anthropic's anthropic-ratelimit-*.
type allowance struct {
	limit, left int64  // requests or tokens; Unset where it is not said
	reset       int64  // nanoseconds until it is whole again, Unset likewise
	resetAt     string // the time of day it is told as in place of that, "" where it is not
}

var unlimitedAllowance = allowance{record.Unset, record.Unset, record.Unset, ""}

// rateHeader takes a header about rate limits, and leaves others.
func (r *response) rateHeader(name, value string) {
	name, openai := strings.CutPrefix(name, "x-ratelimit-")
	if !openai {
		var anthropic bool
		if name, anthropic = strings.CutPrefix(name, "anthropic-ratelimit-"); !anthropic {
			return
		}
		// requests-limit in place of limit-requests. Those of input and output tokens apart
		// stand beside the one that binds.
		of, what, _ := strings.Cut(name, "-")
		name = what + "-" + of
	}
	what, of, _ := strings.Cut(name, "-")
	var a *allowance
	switch of {
	case "requests":
		a = &r.requests
	case "tokens":
		a = &r.tokens
	default:
		return
	}
	n := int64(record.Unset)
	if x, err := strconv.ParseFloat(value, 64); err == nil && x >= 0 && x < 1<<53 {
		n = int64(x)
	}
	switch what {
	case "limit":
		a.limit = n
	case "remaining":
		a.left = n
	case "reset":
		a.reset, a.resetAt = untilReset(value)
	}
}

// longestReset bounds what is added to times, in nanoseconds: 11 days.
const longestReset = int64(1e15)

// untilReset reads when a limit is whole again: 6m0s, 250ms, 30 (seconds), or a time of day,
// which is given as it stands: the Date that it is held against may come behind it.
func untilReset(value string) (after int64, at string) {
	if x, err := strconv.ParseFloat(value, 64); err == nil && x >= 0 && x < 1e6 { // of more seconds than longestReset it may be a time of day
		return int64(math.Ceil(x * 1e9)), ""
	}
	if d, err := time.ParseDuration(value); err == nil && d >= 0 {
		return min(int64(d), longestReset), ""
	}
	return record.Unset, value
}

// resolveReset makes a time of day the time after the Date of the answer, when all headers are
// read.
func (a *allowance) resolveReset(date string) {
	if a.resetAt == "" {
		return
	}
	at, err := time.Parse(time.RFC3339, a.resetAt)
	now, wrong := time.Parse(time.RFC1123, date)
	if err == nil && wrong == nil {
		a.reset = min(max(int64(at.Sub(now)), 0), longestReset)
	}
}

// Room holds what a server still lets through beyond the requests sent, as an answer stated it.
type Room struct {
	Requests int64 // that may still be sent
	Limit    int64 // that may be when it is whole again, 0 where that is not known
	At       int64 // when the request was sent that was told so, relative to the origin
	Whole    int64 // when it is whole again, likewise
}

// unsaidReset is the wait for a limit whose reset time the server does not give.
const unsaidReset = int64(time.Second)

// RateLimitRoom says how many more requests like this one the server lets through, nil where it
// does not tell.
func (x *Exchange) RateLimitRoom() *Room {
	h, r := &x.http, &x.Row
	if !h.headersDone() || r.Headers < 0 {
		return nil
	}
	room := &Room{Requests: math.MaxInt64, At: r.Sent}
	least := func(a allowance, each int64) {
		if a.left < 0 || each <= 0 {
			return
		}
		if n := a.left / each; n < room.Requests {
			room.Requests, room.Limit, room.Whole = n, max(a.limit, 0)/each, r.Headers+max(a.reset, 0)
			if a.reset < 0 {
				room.Whole = r.Headers + unsaidReset
			}
		}
	}
	least(h.requests, 1)
	least(h.tokens, int64(max(r.PromptTokens, r.InputPlanned, 0))+int64(max(r.CompletionTokens, r.OutputPlanned, 0)))
	if h.status == 429 {
		after, _ := x.RetryHints()
		if after <= 0 {
			after = max(room.Whole-r.Headers, unsaidReset)
		}
		room.Requests, room.Whole = 0, r.Headers+after
	}
	if room.Requests == math.MaxInt64 {
		return nil
	}
	return room
}
