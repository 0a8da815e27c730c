package loadgen

import (
	"math"
	"sort"
	"time"

	"pitot/internal/client"
)

// allowed holds the number of requests that a server lets through, from the last report in its
// answers.
type allowed struct {
	left  int64 // requests that may still be sent before it is whole again
	limit int64 // requests that may be then, 0 where that is not known
	at    int64 // when the request was sent whose answer said so, or it became whole
	whole int64 // when it is whole again
}

// unlimitedAllowance returns the allowance of a server that has reported no limit.
func unlimitedAllowance() allowed {
	return allowed{left: math.MaxInt64 / 2, at: math.MinInt64, whole: Never}
}

// updateFrom takes what an answer said, of which so many others take a part. What was said before
// it became whole is no news.
func (a *allowed) updateFrom(r *client.Room, others int64) {
	if r.At >= a.at {
		*a = allowed{r.Requests - others, r.Limit, r.At, r.Whole}
	}
}

// hasRoom says whether the server lets one more request through. What was used up is whole
// again when its time has come, less what was sent just before and may be counted then.
func (c *Core) hasRoom(now int64) bool {
	a := &c.room
	if a.left > 0 {
		return true
	}
	if now < a.whole {
		return false
	}
	if a.limit <= 0 {
		*a = allowed{math.MaxInt64 / 2, 0, a.whole, Never}
		return true
	}
	*a = allowed{a.limit, a.limit, a.whole, a.whole + max(a.whole-a.at, int64(time.Second))}
	a.left -= c.uncountedRequests(now)
	return a.left > 0
}

// reordered is the maximum time between two requests that a server may take up in another order.
// Each request comes on a connection of its own.
const reordered = int64(100 * time.Millisecond)

// uncountedRequests returns the number of requests that the server may not have counted when it
// answered a request sent at the given time. They are the requests sent after that, and about then.
func (c *Core) uncountedRequests(at int64) int64 {
	i := sort.Search(len(c.sends), func(i int) bool { return c.sends[i] > at-reordered })
	return int64(len(c.sends) - i)
}

// mostSends bounds how many times of sending are kept.
const mostSends = 1 << 16

// noteSent notes when a request was sent.
func (c *Core) noteSent(at int64) {
	if c.room.left--; !c.cfg.Limits {
		return
	}
	if c.sends = append(c.sends, at); len(c.sends) > mostSends {
		c.sends = append(c.sends[:0], c.sends[mostSends/2:]...)
	}
}
