// Package loadgen decides what is sent when, and carries it out.
//
// Every decision (due, cap, think time, timeout, drain, stop) is made by
// [Core], which has no clock, no goroutine and no socket: it is given the time
// and what ended, and answers with actions. A [World] carries actions out:
// the wall world over sockets, the virtual world over an engine.
package loadgen

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	"pitot/internal/client"
	"pitot/internal/results/record"
)

// Never is a time that does not come.
const Never = math.MaxInt64

// Config is one load on one target. Times are nanoseconds from the origin,
// the moment the load starts.
type Config struct {
	Arrivals interface{ Next() int64 } // open loop: absolute due times, ascending; nil for a closed loop
	Users    int                       // closed loop: how many wait for their answers
	Stagger  int64                     // closed loop: about what a request takes by itself, so that users begin one after the other; 0 for all at once
	Begun    int64                     // closed loop: all users have begun by then, whatever requests take; 0 for no such time
	Think    func(id int64) int64      // closed loop: a user's pause after request id, nil for none
	// Follow says what follows a request that ended: the next turn of a
	// conversation, the steps that an agent takes next, several where it does some at
	// once. item is what was asked. What comes by itself, an arrival or a user's next
	// request, is item 0, 1, 2, … of the source and begins a session; what follows has
	// items of its own. A session is over when nothing of it is under way or to come: a
	// user then goes on with what comes next. Nil for requests that stand alone.
	// [FollowOf] gives that of a source.
	Follow   func(item int64, e Event) []Ask
	Cap      int   // most requests in flight, 0 for no limit
	Warmup   int64 // the window begins here; with Settle not before the users have begun
	Settle   bool  // closed loop: the window waits for them, and for some requests' time more
	Window   int64 // its length; 0 with Requests
	Requests int64 // or: it ends at the due time of its request Requests+1
	Total    int64 // requests that are sent in all, 0 for no end of them, less for none
	Share    Share // what of it is carried out here; [Config.ForShare] makes one part of a whole load
	Timeout  int64 // how long a request is followed after it was eligible, and held after it was due; 0 for ever

	// Burst is a span of the warm-up whose requests are all due at its end, as after a pause
	// of the server; none where it is empty.
	Burst [2]int64

	// Extend is asked when all requests of the window have ended: for a later
	// end of it, or for the same if it is long enough. While that is not known
	// the load goes on. Nil for a window that stays as it is; none with Requests.
	Extend func(t0, t1 int64) (end int64, known bool)
	// GiveUp is asked in the course of the window, with the mean number of
	// requests under way in equal blocks of it so far: whether to end it at
	// once, without waiting for those that are. Nil for never.
	GiveUp func(elapsed int64, underWay []float64) bool
	Expect int64 // about how long the window will be, for GiveUp

	// Cutoff says where the window is to end earlier than it was to, 0 for nowhere: its
	// requests up to there are followed to their end, later ones are none of it. It is asked
	// again and again while the load goes on. Nil for never.
	Cutoff func() int64

	// WindowBy is when the window ends at the latest, however few requests came, and EndBy when
	// all does: the window then ended as much earlier as the longest of its requests took that
	// ended, and those before that have not are cut off. 0 for no such times.
	WindowBy, EndBy int64

	// Retry says whether a request is sent again whose attempt failed in a way that
	// clients try again, and after how long; earlier is how many attempts there were
	// before that one. To its end the request stays in flight: its due time, its slot and
	// its timeout are those of all its attempts. Nil for never.
	Retry func(id int64, earlier int, e Event) (wait int64, again bool)

	// Limits holds back what the server has said that it will refuse, by the [Room] of
	// events: such a request is eligible when there is room again.
	Limits bool

	// Gone ends the load of a target that went away: for this long every
	// connection was refused, and no request is under way that was sent before.
	// What an open loop has yet to come due in the window is then due unsent. 0
	// goes on for ever.
	Gone int64
}

const (
	// GiveUp is asked after this many parts of the window, and at each further
	// one to its end.
	firstLook, looks = 4, 8
	// lookBlocks is the number of blocks passed to GiveUp; one part holds some of them.
	lookBlocks = 12

	// leastRefused is the number of consecutive refused requests that show that a target is gone.
	// Where one server of several is down, some requests are refused now and then.
	leastRefused = 10

	// askAgain is when Extend is asked again that did not know yet.
	askAgain = int64(5 * time.Millisecond)
)

// Ask is a request to come.
type Ask struct {
	Due  int64
	Item int64 // of the source
	// Join is the number of requests of the item's session that name it before it comes. It is due
	// at the latest of the times that they give. 0 and 1 are one.
	Join int

	session *session // it belongs to, nil for one that begins by itself
	after   int64    // request that it waited for longest
}

// next stands in an [Ask] for the item that comes next by itself.
const next = -1

// Kind says what an action does.
type Kind uint8

const (
	Start   Kind = iota // send request ID
	Cancel              // stop following request ID, because of Class
	Drop                // request ID was due, but will never be sent, because of Class
	Prepare             // Item will be asked, and is not among those that come by themselves
	Forget              // session Session is over: nothing that was answered in it is handed back any more
	Again               // send request ID, whose attempt failed, once more
	Settle              // request ID ends as its attempt did: it is not sent again
)

// Action is one decision.
type Action struct {
	Kind     Kind
	ID       int64
	Item     int64 // what request ID asks: which of the source
	Session  int64 // request that its session began with, [record.Unset] where requests stand alone
	After    int64 // request whose end it waited for, [record.Unset] if it came by itself
	Due      int64
	Eligible int64
	Class    string
}

// Event says that request ID has ended, by itself or after a Cancel.
type Event struct {
	ID     int64
	At     int64
	Failed bool // with a definite error
	Cut    bool // it was no longer followed, or never sent

	Refused bool // no connection could be made

	// Retriable: it failed as clients try again. The world keeps the request until it is
	// told whether to: by Again, Settle or Cancel.
	Retriable  bool
	RetryAfter int64 // nanoseconds that the server asked to wait, 0 if it did not

	Room *client.Room // what the server lets through beside, nil where it did not tell
}

// pause is the least time between a failed request of a user and the next: a
// server that refuses at once would otherwise be asked as fast as the machine
// can.
const pause = int64(100 * time.Millisecond)

// World carries actions out.
type World interface {
	// Now is the time since the origin.
	Now() int64
	// Do carries an action out. It does not block.
	Do(Action)
	// Wait waits for events until a time has come or ctx is done. Every
	// started request gives one event.
	Wait(ctx context.Context, until int64) []Event
}

// Run carries a load out to its end. When ctx is done it stops early: what
// runs is cut, what waits is dropped, and Run returns when all have ended.
func Run(ctx context.Context, c *Core, w World) {
	for !c.Over() {
		events := w.Wait(ctx, c.NextWake())
		now := w.Now()
		if ctx.Err() != nil {
			c.Interrupt(now)
			ctx = context.WithoutCancel(ctx)
		}
		for _, a := range c.Advance(now, events) {
			w.Do(a)
		}
	}
}

// Core makes the decisions.
type Core struct {
	cfg Config
	t0  int64 // begin of the window, never while it is not known
	t1  int64 // end of the window, never while it is not known

	nextID   int64   // of this share, where requests follow one another
	nextItem int64   // of what comes by itself: the next of this share
	nextDue  int64   // open loop: of the next arrival
	later    later   // what follows requests that have ended: users' next, turns; by due time
	stagger  stagger // and those who have not begun
	cohort   int64   // requests of the cohort so far
	latest   int64   // latest due time of the cohort
	longest  int64   // that one of the cohort took that ended
	floor    int64   // nothing is due before

	waiting []pending         // due and held back by the cap, in order
	running map[int64]pending // sent
	expiry  []pending         // running ones by deadline; ended ones are passed over
	backoff []attempt         // running ones that are to be sent again, by time
	unended int               // requests of the cohort that have not ended

	backlog backlog // with GiveUp
	look    int64   // parts of the window at the next look
	asked   int64   // when Extend was last asked and did not know, 0 if it was not
	gaveUp  bool

	refused refusals // with Gone
	gone    bool     // because of them

	room  allowed // with Limits
	sends []int64 // when requests were sent, likewise

	stop     bool // interrupted
	draining bool // nothing more is sent; what runs is being cancelled
	out      []Action
}

// pending is a request between due and end.
type pending struct {
	id       int64
	item     int64
	due      int64
	eligible int64
	cohort   bool
	session  *session // nil where requests stand alone
	after    int64    // request that it followed
	earlier  int      // attempts that failed
}

// attempt is when a request is sent again.
type attempt struct{ id, at int64 }

// session holds the state of all requests that follow from one request that came by itself.
type session struct {
	first int64           // that request
	due   int64           // when it was
	left  int             // of its requests: due, sent or to come
	joins map[int64]*join // by item
}

// join is an item that waits for several requests.
type join struct {
	left  int // requests that have yet to name it
	due   int64
	after int64 // whose time that is
}

// refusals are the requests that were refused since one was not.
type refusals struct {
	from int64 // when the first of them was
	n    int
}

// NewCore gives the decisions for a load.
func NewCore(cfg Config) *Core {
	if cfg.Timeout == 0 {
		cfg.Timeout = Never
	}
	c := &Core{cfg: cfg, t0: Never, t1: Never, nextDue: Never, running: map[int64]pending{}, room: unlimitedAllowance()}
	if cfg.GiveUp != nil {
		c.look = firstLook
		c.backlog = backlog{from: cfg.Warmup, width: max(1, cfg.Expect/looks/lookBlocks)}
	}
	if cfg.Arrivals == nil {
		c.stagger = newStagger(cfg)
		c.nextItem = cfg.Share.firstItem(0)
	}
	if cfg.Arrivals != nil || cfg.Users == 0 || !cfg.Settle {
		c.openWindow(cfg.Warmup)
	}
	if cfg.Arrivals != nil {
		c.nextArrival()
	}
	return c
}

// settling is the time that the window waits after all users have begun, in residence times of a
// request.
const settling = 3

// openWindow says when the window begins.
func (c *Core) openWindow(t0 int64) {
	c.t0 = t0
	if c.cfg.Requests == 0 {
		c.t1 = t0 + c.cfg.Window
	}
	if by := c.cfg.WindowBy; by > 0 {
		c.t1 = min(c.t1, max(t0, by))
	}
}

// windowStart says when the window begins, of a load that ends before that was known.
func (c *Core) windowStart() int64 {
	if c.t0 == Never {
		c.t0 = c.cfg.Warmup
	}
	return c.t0
}

// MeasuredWindow gives the measured window. Its begin is not known before all users have
// begun, its end not before a window that counts requests has had them all; till then it is
// [Config.WindowBy] where that is set.
func (c *Core) MeasuredWindow() (t0, t1 int64) { return c.t0, c.t1 }

// IsCounting says that the end of the window is not known, for it counts requests and has not had
// them all.
func (c *Core) IsCounting() bool { return c.cfg.Requests > 0 && !c.windowFull() && !c.stop }

// BegunItems returns the number of items that came by themselves so far: those of lower numbers, of
// this share.
func (c *Core) BegunItems() int64 { return c.nextItem }

// InFlight returns the number of requests that have been sent and have not ended.
func (c *Core) InFlight() int { return len(c.running) }

// Held returns the number of requests that are due and held back by the cap.
func (c *Core) Held() int { return len(c.waiting) }

// Over says that all is done.
func (c *Core) Over() bool { return c.draining && len(c.running) == 0 }

// NextWake is when Advance will next have something to do without an event.
func (c *Core) NextWake() int64 {
	if c.draining {
		return Never
	}
	at := c.nextDueTime()
	if len(c.expiry) > 0 {
		at = min(at, c.timeoutEnd(c.expiry[0].eligible))
	}
	if len(c.waiting) > 0 {
		at = min(at, c.timeoutEnd(c.waiting[0].due))
		if c.room.left <= 0 && !c.stop && (c.cfg.Cap == 0 || len(c.running) < c.cfg.Cap) {
			at = min(at, c.room.whole)
		}
	}
	if len(c.backoff) > 0 {
		again := c.backoff[0].at
		if c.room.left <= 0 {
			again = max(again, c.room.whole)
		}
		at = min(at, again)
	}
	if c.t1 != Never && c.unended == 0 {
		again := c.t1
		if c.asked > 0 {
			again = max(again, c.asked+askAgain)
		}
		at = min(at, again)
	}
	if c.look > 0 {
		at = min(at, c.nextLook())
	}
	if by := c.cfg.EndBy; by > 0 {
		at = min(at, by)
	}
	if at == Never && len(c.running) == 0 {
		return 0 // nothing will ever be due: there is no use in waiting
	}
	return at
}

// timeoutEnd is the end of the timeout that began at a time.
func (c *Core) timeoutEnd(begin int64) int64 {
	if begin > Never-c.cfg.Timeout {
		return Never
	}
	return begin + c.cfg.Timeout
}

// nextDueTime is when the next request is.
func (c *Core) nextDueTime() int64 {
	switch {
	case c.cfg.Total != 0 && c.nextNumber() >= c.cfg.Total:
		return Never
	case c.nextIsUser():
		return max(c.stagger.next, c.floor)
	case c.nextIsArrival():
		return max(c.nextDue, c.floor)
	case c.later.len() > 0:
		return max(c.later.earliestDue(), c.floor)
	}
	return Never
}

// nextNumber is that of the next request: of its item where each comes by itself, which all
// workers count alike, else among those of this share.
func (c *Core) nextNumber() int64 {
	if c.cfg.Follow == nil {
		return c.nextItem
	}
	return c.nextID
}

// nextRequestID is the id of the next request, which no other worker's has.
func (c *Core) nextRequestID() int64 {
	if c.cfg.Follow == nil || c.cfg.Share.isWhole() {
		return c.nextNumber()
	}
	return c.nextID*int64(c.cfg.Share.Of) + int64(c.cfg.Share.Rank)
}

// nextArrival takes the next arrival of this share. Those of others pass by; where the
// window ends after so many requests they count.
func (c *Core) nextArrival() {
	for {
		c.nextDue = c.alignDue(c.cfg.Arrivals.Next())
		if c.nextDue == Never || c.cfg.Share.Includes(c.nextItem) || c.cfg.Total != 0 && c.nextNumber() >= c.cfg.Total {
			return
		}
		if c.nextItem++; c.cfg.Follow == nil {
			c.separateTies(max(c.nextDue, c.floor))
			c.inWindow(max(c.nextDue, c.floor))
		}
	}
}

// alignDue is when a request is due that would be at a time.
func (c *Core) alignDue(due int64) int64 {
	if b := c.cfg.Burst; due >= b[0] && due < b[1] {
		return b[1]
	}
	return due
}

// separateTies puts off a request that would end the window, being one more than it counts,
// and is due with or before one of those: users who all ask at once, or whose answers
// were heard of in another order than they came. It reports whether it did.
func (c *Core) separateTies(due int64) bool {
	tied := c.windowFull() && due <= c.latest
	if tied {
		c.floor = c.latest + 1
	}
	return tied
}

// inWindow says whether a request that is due is of the window's; one more than it counts
// ends it.
func (c *Core) inWindow(due int64) bool {
	switch {
	case due < c.t0 || due >= c.t1:
	case c.windowFull():
		c.t1, c.floor = due, due
	default:
		c.cohort++
		c.latest = max(c.latest, due)
		return true
	}
	return false
}

// nextIsUser says that the next request is a user's first.
func (c *Core) nextIsUser() bool {
	return c.stagger.left > 0 && (c.later.len() == 0 || c.stagger.next <= c.later.earliestDue())
}

// nextIsArrival says that the next request is an arrival.
func (c *Core) nextIsArrival() bool {
	return c.cfg.Arrivals != nil && (c.later.len() == 0 || c.nextDue <= c.later.earliestDue())
}

// Advance is given the time and what has ended since the last call, and
// says what to do. The slice is valid until the next call.
func (c *Core) Advance(now int64, events []Event) []Action {
	c.out = c.out[:0]
	slices.SortFunc(events, func(a, b Event) int {
		return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.ID, b.ID))
	})
	for _, e := range events {
		c.passTime(min(e.At, now)) // what was to happen before it comes before it
		c.finishRequest(e)
	}
	c.passTime(now)
	if c.draining {
		return c.out
	}
	c.expireFollowed(now)
	if c.cfg.Cutoff != nil {
		c.shortenWindow(c.cfg.Cutoff())
	}
	if by := c.cfg.EndBy; by > 0 && now >= by && !c.stop {
		c.endNow(now)
	}
	if c.t1 == Never && c.nextDueTime() == Never && len(c.running)+len(c.waiting) == 0 {
		c.t1 = max(now, c.windowStart()) // the arrivals ended before the count was full
	}
	if c.look > 0 && now >= c.nextLook() {
		c.checkGiveUp(now)
	}
	if c.targetGone(now) {
		c.endGoneTarget(now)
	}
	if c.stop || now >= c.t1 && c.unended == 0 && c.windowEnded(now) {
		c.stopAndCancel()
	}
	return c.out
}

// endNow ends the load, and the window as much before as the longest of its requests took that
// ended. Those that came later had no time to; one that came earlier and has not ended is of the
// window, so that a server that never answers some is not taken for one that answers all. Where
// none has ended nothing is known: the window ends before the first.
func (c *Core) endNow(now int64) {
	t1 := now - c.longest
	if c.longest == 0 {
		for _, p := range c.running {
			if p.cohort {
				t1 = min(t1, p.due)
			}
		}
		for _, p := range c.waiting {
			if p.cohort {
				t1 = min(t1, p.due)
			}
		}
	}
	c.shortenWindow(max(t1, 1))
	c.t1 = max(min(c.t1, now), c.windowStart())
	c.stop = true
}

// shortenWindow ends the window earlier.
func (c *Core) shortenWindow(t1 int64) {
	if t1 == 0 || c.t0 == Never || max(t1, c.t0) >= c.t1 {
		return
	}
	c.t1, c.look, c.latest = max(t1, c.t0), 0, min(c.latest, t1)
	leaves := func(p *pending) {
		if p.cohort && p.due >= c.t1 {
			p.cohort = false
			c.unended--
			c.cohort--
		}
	}
	for id, p := range c.running {
		leaves(&p)
		c.running[id] = p
	}
	for i := range c.waiting {
		leaves(&c.waiting[i])
	}
}

// nextLook is when GiveUp is asked next.
func (c *Core) nextLook() int64 { return c.cfg.Warmup + c.look*(c.cfg.Expect/looks) }

// checkGiveUp asks whether there is any use in going on.
func (c *Core) checkGiveUp(now int64) {
	c.backlog.passTime(now)
	if c.cfg.GiveUp(now-c.cfg.Warmup, c.backlog.blockMeans(lookBlocks)) {
		c.gaveUp = true
		c.Interrupt(now)
		return
	}
	if c.look++; c.look > looks {
		c.look = 0
	}
}

// GaveUp says that the window ended early because GiveUp returned true.
func (c *Core) GaveUp() bool { return c.gaveUp }

// targetGone says that the target has gone away. Whatever was sent before half that
// time has ended, so that no answer may still be under way.
func (c *Core) targetGone(now int64) bool {
	return c.cfg.Gone > 0 && !c.stop && c.refused.n >= leastRefused && now-c.refused.from >= c.cfg.Gone &&
		(len(c.expiry) == 0 || c.expiry[0].eligible > now-c.cfg.Gone/2)
}

// endGoneTarget ends the load of a target that has gone away.
func (c *Core) endGoneTarget(now int64) {
	c.gone, c.look = true, 0
	if c.cfg.Arrivals == nil { // users ask when they have their answers: nothing more is due
		c.Interrupt(now)
		return
	}
	c.stop = true
	for due := c.nextDueTime(); due < c.t1; due = c.nextDueTime() {
		c.admitDue(due)
	}
	if c.t1 == Never { // the arrivals ended before the count was full
		c.t1 = max(now, c.latest+1, c.windowStart())
	}
}

// TargetGone says since when a target that went away refused every connection; ok is
// false for one that did not.
func (c *Core) TargetGone() (since int64, ok bool) { return c.refused.from, c.gone }

// windowEnded says that the window has its end; otherwise it has a later one, or
// that is not known yet.
func (c *Core) windowEnded(now int64) bool {
	if c.cfg.Extend == nil {
		return true
	}
	end, known := c.cfg.Extend(c.t0, c.t1)
	if !known {
		c.asked = max(now, 1)
		return false
	}
	c.asked = 0
	if end <= c.t1 {
		return true
	}
	join := func(p *pending) {
		if p.due >= c.t1 && p.due < end && !p.cohort {
			p.cohort = true
			c.unended++
		}
	}
	for id, p := range c.running {
		join(&p)
		c.running[id] = p
	}
	for i := range c.waiting {
		join(&c.waiting[i])
	}
	c.t1 = end
	return false
}

// passTime lets time go by: requests become due, and held ones are given up.
func (c *Core) passTime(now int64) {
	c.releaseHeld(now)
	c.sendAgain(now)
	c.admitDue(now)
	for len(c.waiting) > 0 && c.timeoutEnd(c.waiting[0].due) <= now && !c.stop {
		c.recordDropped(c.waiting[0], record.ErrTimeout)
		c.waiting = c.waiting[1:]
		c.admitDue(now)
	}
}

// sendAgain sends what failed and has waited.
func (c *Core) sendAgain(now int64) {
	for !c.draining && len(c.backoff) > 0 && c.backoff[0].at <= now && c.hasRoom(now) {
		a := c.backoff[0]
		c.backoff = c.backoff[1:]
		if p, ok := c.running[a.id]; ok { // else it was cancelled meanwhile
			c.noteSent(now)
			c.out = append(c.out, p.fillAction(Action{Kind: Again, Eligible: max(a.at, min(c.room.at, now))}))
		}
	}
}

// retryFailed says whether a request that failed is sent again, and notes when.
func (c *Core) retryFailed(p pending, e Event) bool {
	if !e.Retriable {
		return false
	}
	if c.cfg.Retry != nil && !c.draining && !c.stop {
		if wait, again := c.cfg.Retry(p.id, p.earlier, e); again {
			p.earlier++
			c.running[p.id] = p
			a := attempt{p.id, e.At + wait}
			i, _ := slices.BinarySearchFunc(c.backoff, a, func(b, a attempt) int {
				return cmp.Or(cmp.Compare(b.at, a.at), cmp.Compare(b.id, a.id))
			})
			c.backoff = slices.Insert(c.backoff, i, a)
			return true
		}
	}
	c.out = append(c.out, p.fillAction(Action{Kind: Settle}))
	return false
}

// admitDue takes up every request that is due by now.
func (c *Core) admitDue(now int64) {
	for !c.draining && c.nextDueTime() <= now && c.nextDueTime() != Never {
		if c.separateTies(c.nextDueTime()) {
			continue
		}
		p := pending{id: c.nextRequestID(), item: next, due: c.nextDueTime(), after: record.Unset}
		c.nextID++
		if c.look > 0 {
			c.backlog.changeBy(p.due, 1)
		}
		arrives := false
		switch {
		case c.nextIsUser():
			c.beginUser(p.due)
		case c.nextIsArrival():
			arrives = true
		default:
			ask := c.later.pop()
			p.item, p.session = ask.Item, ask.session
			if p.session != nil {
				p.after = ask.after
			}
		}
		if p.item == next {
			p.item = c.nextItem
			if c.nextItem++; !arrives {
				c.nextItem = c.cfg.Share.firstItem(c.nextItem)
			}
			if c.cfg.Follow != nil {
				p.session = &session{first: p.id, due: p.due, left: 1}
			}
		}
		if p.cohort = c.inWindow(p.due); p.cohort {
			c.unended++
		}
		if arrives {
			c.nextArrival()
		}
		if len(c.waiting) > 0 || !c.maySend(now) {
			c.waiting = append(c.waiting, p)
			continue
		}
		c.sendEligible(p, p.due)
	}
}

// beginUser lets a user begin; the window follows the last of them.
func (c *Core) beginUser(due int64) {
	s := &c.stagger
	for len(c.expiry) > 0 { // the oldest still waits for its answer: a request takes that long at least
		if p, ok := c.running[c.expiry[0].id]; ok {
			s.took = max(s.took, due-p.due)
			break
		}
		c.expiry = c.expiry[1:]
	}
	s.begin()
	if s.left > 0 || c.t0 != Never {
		return
	}
	t0 := due + settling*s.took
	if c.cfg.Begun > 0 {
		t0 = min(t0, max(due, 2*c.cfg.Begun))
	}
	c.openWindow(max(c.cfg.Warmup, t0))
}

// windowFull says that the window has had all the requests it counts: the next that is due ends
// it, also where an interruption, which is heard of before what came due until then, had
// given it a later end.
func (c *Core) windowFull() bool {
	return c.cfg.Requests > 0 && c.cohort >= c.cfg.Requests
}

// sendEligible sends a request that was eligible at a time.
func (c *Core) sendEligible(p pending, eligible int64) {
	p.eligible = eligible
	c.noteSent(eligible)
	c.running[p.id] = p
	c.expiry = append(c.expiry, p)
	c.out = append(c.out, p.fillAction(Action{Kind: Start, Eligible: eligible}))
}

// fillAction says of an action which request it is about.
func (p *pending) fillAction(a Action) Action {
	a.ID, a.Item, a.Due, a.After, a.Session = p.id, p.item, p.due, p.after, record.Unset
	if p.session != nil {
		a.Session = p.session.first
	}
	return a
}

// finishRequest takes a request out; its slot goes to whoever waits longest, and what
// follows it is to come.
func (c *Core) finishRequest(e Event) {
	p, ok := c.running[e.ID]
	if !ok {
		return
	}
	switch {
	case c.gone:
	case !e.Refused:
		c.refused = refusals{}
	case c.refused.n == 0:
		c.refused = refusals{e.At, 1}
	default:
		c.refused.n++
	}
	if c.cfg.Limits && e.Room != nil {
		c.room.updateFrom(e.Room, c.uncountedRequests(p.eligible)-1) // itself is counted
	}
	if c.retryFailed(p, e) {
		return
	}
	delete(c.running, e.ID)
	if p.cohort {
		c.unended--
		if !e.Cut && !e.Failed {
			c.longest = max(c.longest, e.At-p.due)
		}
	}
	if c.look > 0 {
		c.backlog.changeBy(e.At, -1)
	}
	if c.draining {
		return
	}
	begun := p.due
	if p.session != nil {
		begun = p.session.due
	}
	if due, thinks := c.goOn(p, e); thinks && !e.Failed && c.cfg.Stagger > 0 {
		c.stagger.took = due - begun
	}
	c.releaseHeld(e.At)
}

// maySend says whether a request may be sent now: there is a slot, and the server has room.
func (c *Core) maySend(now int64) bool {
	return !c.stop && (c.cfg.Cap == 0 || len(c.running) < c.cfg.Cap) && c.hasRoom(now)
}

// releaseHeld sends what was held back, as far as it may be sent now.
func (c *Core) releaseHeld(now int64) {
	for len(c.waiting) > 0 && !c.draining && c.maySend(now) {
		next := c.waiting[0]
		c.waiting = c.waiting[1:]
		c.sendEligible(next, max(next.due, now))
	}
}

// goOn takes up what follows a request that ended. When its session is over a user
// thinks about the next: it says until when.
func (c *Core) goOn(p pending, e Event) (due int64, thinks bool) {
	if s := p.session; s != nil {
		c.followSession(p, e)
		if s.left--; s.left > 0 {
			return 0, false
		}
		c.out = append(c.out, Action{Kind: Forget, ID: record.Unset, Item: record.Unset, Session: s.first, After: record.Unset})
	}
	if c.cfg.Arrivals != nil {
		return 0, false
	}
	return c.scheduleThink(e), true
}

// followSession takes up what follows a request of a session.
func (c *Core) followSession(p pending, e Event) {
	s := p.session
	for _, ask := range c.cfg.Follow(p.item, e) {
		ask.Due = max(ask.Due, e.At)
		if e.Failed {
			ask.Due = max(ask.Due, e.At+pause)
		}
		ask.session, ask.after = s, p.id
		if ask.Join > 1 && !s.joinAsk(&ask) {
			continue
		}
		s.left++
		ask.Due = c.alignDue(ask.Due)
		c.later.push(ask)
		c.out = append(c.out, Action{Kind: Prepare, ID: record.Unset, Item: ask.Item, Session: s.first, After: ask.after, Due: ask.Due})
	}
}

// joinAsk says that the last of the requests that an item waits for has named it, and
// gives it the latest of their times.
func (s *session) joinAsk(ask *Ask) bool {
	j := s.joins[ask.Item]
	if j == nil {
		j = &join{left: ask.Join, due: ask.Due, after: ask.after}
		if s.joins == nil {
			s.joins = map[int64]*join{}
		}
		s.joins[ask.Item] = j
	}
	if ask.Due > j.due {
		j.due, j.after = ask.Due, ask.after
	}
	if j.left--; j.left > 0 {
		return false
	}
	delete(s.joins, ask.Item)
	ask.Due, ask.after = j.due, j.after
	return true
}

// scheduleThink puts a user's next request at the end of its think time, and says when
// that is.
func (c *Core) scheduleThink(e Event) (due int64) {
	due = e.At
	if c.cfg.Think != nil {
		due += c.cfg.Think(e.ID)
	}
	if e.Failed {
		due = max(due, e.At+pause)
	}
	c.later.push(Ask{Due: due, Item: next})
	return due
}

// expireFollowed stops following what has been followed for the whole timeout.
func (c *Core) expireFollowed(now int64) {
	for len(c.expiry) > 0 {
		p := c.expiry[0]
		if _, ok := c.running[p.id]; ok {
			if c.timeoutEnd(p.eligible) > now {
				break
			}
			c.out = append(c.out, Action{Kind: Cancel, ID: p.id, Class: record.ErrTimeout})
		}
		c.expiry = c.expiry[1:]
	}
}

// recordDropped records that a request will never be sent.
func (c *Core) recordDropped(p pending, class string) {
	if c.look > 0 {
		c.backlog.changeBy(c.timeoutEnd(p.due), -1)
	}
	if p.cohort {
		c.unended--
	}
	c.out = append(c.out, p.fillAction(Action{Kind: Drop, Class: class}))
	if !c.draining {
		c.goOn(p, Event{ID: p.id, At: c.timeoutEnd(p.due), Cut: true})
	}
}

// stopAndCancel stops sending and cancels what runs.
func (c *Core) stopAndCancel() {
	class := record.ErrInterrupted
	if c.gone {
		class = record.ErrConnect
	}
	c.draining, c.look = true, 0
	for _, p := range c.waiting {
		c.recordDropped(p, class)
	}
	c.waiting = nil
	left := make([]int64, 0, len(c.running))
	for id := range c.running {
		left = append(left, id)
	}
	slices.Sort(left)
	for _, id := range left {
		c.out = append(c.out, Action{Kind: Cancel, ID: id, Class: class})
	}
}

// Interrupt ends the window now and stops; the next Advance says how.
func (c *Core) Interrupt(now int64) {
	c.t1 = max(min(c.t1, now), c.windowStart())
	c.stop = true
}
