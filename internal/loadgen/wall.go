package loadgen

import (
	"context"
	"strconv"
	"sync"
	"time"

	"pitot/internal/client"
	"pitot/internal/client/api"
	"pitot/internal/client/stamp"
	"pitot/internal/clock"
	"pitot/internal/results/record"
	"pitot/internal/workload"
)

// Wall is the real world: sockets, goroutines and the machine's clock. The
// goroutine that calls Do and Wait is the pacer, and writes the requests
// itself; each connection has a reader.
type Wall struct {
	cfg     WallConfig
	origin  int64
	alarm   clock.Alarm
	wake    chan struct{}
	made    chan *flight           // requests prepared ahead, in order
	follow  map[int64]chan *flight // by item: those that do not come by themselves; of who calls Do alone
	stop    context.CancelFunc
	ctx     context.Context
	own     sync.WaitGroup // goroutines of no request: preparing, opening ahead
	bodies  sync.Pool      // *[]byte, of requests that are being prepared
	history *history       // nil where nothing follows anything
	count   chan *flight   // ended, to be counted

	mu      sync.Mutex
	events  []Event
	idle    []*client.Conn
	opening int // being opened ahead
	flights map[int64]*flight
	free    []*flight
}

// WallConfig holds the configuration of the wall world.
type WallConfig struct {
	Dialer  *client.Dialer
	API     api.API
	Route   string // path of the requests
	Options api.Options
	Headers []api.Header
	Secret  string         // key, kept out of records
	Memory  *client.Memory // what all answers together may hold, nil for no end of it
	Source  workload.Source
	Sink    record.Sink
	Point   int32
	Share   Share       // what of the items that come by themselves is asked here
	Ahead   int         // requests to prepare ahead
	Spare   int         // idle connections to keep ahead of need
	Nonce   string      // of this point, in front of each request's id
	Alarm   clock.Alarm // nil for the platform's best
	Retry   bool        // requests are sent again, where the core says so
	Count   *Counter    // counts the tokens of answers, nil for none
	Check   Checker     // checks the answers to some items, nil for none
}

// Checker knows of some items what their answers have to be.
type Checker interface {
	// Question names the question that an item is, "" for one whose answer is not checked.
	Question(item int64) string
	// Check looks at the answer to a question that came to its end and puts what it finds
	// into its row. text is the first choice's answer, spelt that of all chunks in turn. It
	// keeps nothing that it is handed.
	Check(item int64, r *record.Row, chunks []record.Chunk, text, spelt []byte)
}

// flight is a request with its exchange and, once sent, its connection.
type flight struct {
	x             *client.Exchange
	id            int64
	item, session int64
	err           error // it could not be built
	conn          *client.Conn
	class         string
	cancel        context.CancelFunc // of the connection being made for it
	failed        bool               // its attempt has, and it waits for what is decided
	eligible      int64              // when the attempt was to be sent
}

// NewWall prepares a world. Open connects; the load's origin is set by Begin.
func NewWall(ctx context.Context, cfg WallConfig) *Wall {
	w := &Wall{cfg: cfg, alarm: cfg.Alarm, wake: make(chan struct{}, 1), flights: map[int64]*flight{}, follow: map[int64]chan *flight{}, history: newHistory(cfg.Source)}
	if w.alarm == nil {
		w.alarm = clock.NewAlarm()
	}
	w.ctx, w.stop = context.WithCancel(ctx)
	w.made = make(chan *flight, max(cfg.Ahead, 1))
	w.own.Go(w.renderAhead)
	if cfg.Count != nil || cfg.Check != nil {
		w.count = make(chan *flight, 1024)
		w.own.Go(w.countAnswers)
	}
	return w
}

// renderAhead prepares requests in order, as far ahead as made has room.
func (w *Wall) renderAhead() {
	for item := w.cfg.Share.firstItem(0); ; item = w.cfg.Share.firstItem(item + 1) {
		f := w.buildFlight(item, record.Unset)
		select {
		case w.made <- f:
		case <-w.ctx.Done():
			return
		}
	}
}

// buildFlight renders an item of the source, all but its id and its stamps; session is whose
// answers it may repeat.
func (w *Wall) buildFlight(item, session int64) *flight {
	f := w.newFlight()
	body, _ := w.bodies.Get().(*[]byte)
	if body == nil {
		body = new([]byte)
	}
	defer w.bodies.Put(body)
	*body = (*body)[:0]
	req, err := w.cfg.Source.At(item)
	if err != nil {
		req = workload.Request{Session: workload.Unknown, Input: workload.Unknown, Output: workload.Unknown}
	} else {
		w.history.fillRequest(&req, session, true)
		*body, err = w.cfg.API.Body(*body, &req, w.cfg.Options)
	}
	f.err = err
	row := record.BlankRow()
	row.Point, row.Stream = w.cfg.Point, w.cfg.Options.Stream
	setRequestPlace(&row, &req)
	if w.cfg.Check != nil {
		row.Question = w.cfg.Check.Question(item)
	}
	f.x.Keep = w.history != nil || row.Question != ""
	f.x.Spell = w.cfg.Count != nil || row.Question != ""
	f.x.Asked = w.cfg.API.Asked(&req, w.cfg.Options)
	f.x.Begin(row)
	headers := append(w.cfg.Headers[:len(w.cfg.Headers):len(w.cfg.Headers)],
		api.Header{Name: "X-Request-Id", Value: w.cfg.Nonce + "-" + strconv.FormatInt(item, 10)})
	if req.Session != workload.Unknown { // for a router that keeps the turns of a conversation together
		headers = append(headers, api.Header{Name: "X-Session-Id", Value: w.cfg.Nonce + "-" + strconv.FormatInt(req.Session, 10)})
	}
	f.x.Request = append(client.AppendHead(f.x.Request[:0], "POST", w.cfg.Dialer.Endpoint.Host, w.cfg.Route, headers, len(*body)), *body...)
	return f
}

// newFlight gives a flight, used before if there is one.
func (w *Wall) newFlight() *flight {
	w.mu.Lock()
	defer w.mu.Unlock()
	if n := len(w.free); n > 0 {
		f := w.free[n-1]
		w.free = w.free[:n-1]
		*f = flight{x: f.x}
		return f
	}
	x := client.NewExchange(w.cfg.API)
	x.Sink, x.Kernel = w.cfg.Sink, w.cfg.Dialer.Stamps && stamp.Kernel
	x.Secret, x.Memory = w.cfg.Secret, w.cfg.Memory
	return &flight{x: x}
}

// Open makes n connections ahead, a few at a time, until ctx is done. It
// gives the first error, and tries no more after it.
func (w *Wall) Open(ctx context.Context, n int) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(w.ctx, func() { cancel(context.Cause(w.ctx)) })()
	var wg sync.WaitGroup
	gate := make(chan struct{}, opensAtOnce)
	for i := range n {
		if ctx.Err() != nil {
			break
		}
		gate <- struct{}{}
		wg.Go(func() {
			defer func() { <-gate }()
			if err := w.openConn(ctx); err != nil {
				cancel(err) // the first call counts
			}
		})
		if i == 0 { // one is enough to find out that no server is there
			wg.Wait()
		}
	}
	wg.Wait()
	return context.Cause(ctx)
}

const opensAtOnce = 32

// openConn makes one connection and puts it with the idle ones.
func (w *Wall) openConn(ctx context.Context) error {
	c, err := w.cfg.Dialer.Connect(ctx)
	if err != nil {
		return err
	}
	c.StartReading(w.ended)
	w.mu.Lock()
	closed := w.ctx.Err()
	if closed == nil {
		w.idle = append(w.idle, c)
	}
	w.mu.Unlock()
	if closed != nil {
		c.Abort()
	}
	return closed
}

// WaitPrepared waits until n requests are ready to go, or ctx is done.
func (w *Wall) WaitPrepared(ctx context.Context, n int) {
	for len(w.made) < min(n, cap(w.made)) && w.ctx.Err() == nil && ctx.Err() == nil {
		time.Sleep(time.Millisecond)
	}
}

// Ahead returns the maximum number of requests prepared ahead.
func (w *Wall) Ahead() int { return cap(w.made) }

// Begin sets the origin: the load's time 0 is a moment from now.
func (w *Wall) Begin(in time.Duration) { w.origin = clock.Now() + int64(in) }

// BeginAt sets it to a reading of the clock.
func (w *Wall) BeginAt(origin int64) { w.origin = origin }

// Origin is the clock reading of time 0.
func (w *Wall) Origin() int64 { return w.origin }

// UncountedAnswers returns the number of answers that the tokenizer gave up on, and the error of
// the first.
func (w *Wall) UncountedAnswers() (answers int, why error) { return w.cfg.Count.GaveUp() }

// Now implements [World].
func (w *Wall) Now() int64 { return clock.Now() - w.origin }

// Do implements [World].
func (w *Wall) Do(a Action) {
	switch a.Kind {
	case Start:
		w.startRequest(a)
	case Cancel:
		w.mu.Lock()
		f := w.flights[a.ID]
		var c *client.Conn
		between := f != nil && f.failed
		switch {
		case between:
			f.failed = false
		case f != nil:
			f.x.RequestAbandon(a.Class)
			f.class, c = a.Class, f.conn
			if f.cancel != nil {
				f.cancel()
			}
		}
		w.mu.Unlock()
		if between {
			giveUp(&f.x.Row, w.Now(), a.Class)
			w.settleAttempt(f)
		}
		if c != nil { // not under the lock: it waits for the reader, which may be in ended
			c.Abort()
		}
	case Again:
		if f := w.takeReleased(a.ID); f != nil {
			f.x.PrepareRetry(a.Eligible - f.x.Row.Done)
			w.launchAttempt(f, a.Eligible)
		}
	case Settle:
		if f := w.takeReleased(a.ID); f != nil {
			w.settleAttempt(f)
		}
	case Prepare:
		w.prepareFlight(a)
	case Forget:
		w.history.forget(a.Session)
	case Drop:
		f := w.takePrepared(a)
		f.x.Row.Due, f.x.Row.Eligible, f.x.Row.Ready = a.Due, record.Unset, record.Unset
		f.x.Row.Outcome, f.x.Row.Error, f.x.Row.Done = record.Unsent, a.Class, max(w.Now(), a.Due)
		w.cfg.Sink.Done(&f.x.Row)
		w.recycle(f)
	}
}

// prepareFlight renders an item that does not come by itself, while its user thinks.
func (w *Wall) prepareFlight(a Action) {
	done := make(chan *flight, 1)
	w.follow[a.Item] = done
	w.own.Go(func() { done <- w.buildFlight(a.Item, a.Session) })
}

// takePrepared gives the request that an action is about. Core asks for every item
// that comes by itself once and in order, and for none once the world is closed.
func (w *Wall) takePrepared(a Action) *flight {
	done, follows := w.follow[a.Item]
	if !follows {
		done = w.made
	}
	delete(w.follow, a.Item)
	f := <-done
	f.id, f.item, f.session = a.ID, a.Item, a.Session
	f.x.Row.ID, f.x.Row.After = a.ID, a.After
	return f
}

// startRequest sends a request on an idle connection, or opens one for it.
func (w *Wall) startRequest(a Action) {
	f := w.takePrepared(a)
	f.x.Origin = w.origin
	r := &f.x.Row
	r.Due, r.Eligible, r.Ready = a.Due, a.Eligible, a.Eligible
	if f.err != nil {
		f.x.Refuse(clock.Now(), f.err)
		r.Error = record.ErrBug // the request's fault, not the server's
		w.finishAttempt(f)
		return
	}
	w.launchAttempt(f, a.Eligible)
}

// takeReleased gives a request whose attempt failed and that waited for what is decided of it;
// nil if it was cancelled meanwhile.
func (w *Wall) takeReleased(id int64) *flight {
	w.mu.Lock()
	defer w.mu.Unlock()
	f := w.flights[id]
	if f == nil || !f.failed {
		return nil
	}
	f.failed = false
	return f
}

// launchAttempt sends an attempt that was to be sent at a time.
func (w *Wall) launchAttempt(f *flight, eligible int64) {
	f.eligible, f.x.Row.Ready = eligible, eligible
	w.mu.Lock()
	w.flights[f.id] = f
	c := w.takeConnection()
	more := c != nil && len(w.idle)+w.opening < w.cfg.Spare
	if more {
		w.opening++
	}
	if c != nil {
		f.conn = c
	}
	w.mu.Unlock()
	if c == nil {
		go w.connect(f)
	} else {
		w.send(f, c)
	}
	if more {
		w.own.Go(func() {
			_ = w.openConn(w.ctx) // if it fails, the request that needs it will say so
			w.mu.Lock()
			w.opening--
			w.mu.Unlock()
		})
	}
}

// takeConnection takes the connection used last: it is the least likely to be closed by
// an idle timeout.
func (w *Wall) takeConnection() *client.Conn {
	for n := len(w.idle); n > 0; n = len(w.idle) {
		c := w.idle[n-1]
		w.idle = w.idle[:n-1]
		if c.IsAlive() {
			return c
		}
	}
	return nil
}

// connect opens a connection for a request that found none.
func (w *Wall) connect(f *flight) {
	begun := clock.Now()
	ctx, cancel := context.WithCancel(w.ctx)
	defer cancel()
	w.mu.Lock()
	f.cancel = cancel
	if f.class != "" { // cancelled before it came to this
		cancel()
	}
	w.mu.Unlock()
	c, err := w.cfg.Dialer.Connect(ctx)
	if err != nil {
		f.x.Refuse(clock.Now(), err)
		w.finishAttempt(f)
		return
	}
	c.StartReading(w.ended) // before others can find it: it is not to be aborted meanwhile
	w.mu.Lock()
	f.conn, f.cancel = c, nil
	cancelled := f.class != ""
	w.mu.Unlock()
	if cancelled {
		c.Abort()
	}
	// What it took to connect; how late that began is the instrument's lag.
	f.x.Row.Ready = f.eligible + clock.Now() - begun
	w.send(f, c)
}

// send writes the request.
func (w *Wall) send(f *flight, c *client.Conn) {
	r := &f.x.Row
	r.Reused = c.Uses > 0
	if !r.Reused {
		r.DNS, r.Connect, r.TLS = c.Times.DNS, c.Times.Connect, c.Times.TLS
	}
	f.x.Owner = f
	c.Send(f.x)
}

// ended is called by a connection when its exchange has.
func (w *Wall) ended(c *client.Conn, x *client.Exchange, reusable bool) {
	f := x.Owner.(*flight)
	if x.IsStale() && w.ctx.Err() == nil {
		x.ResetForResend()
		w.mu.Lock()
		f.conn = nil
		w.mu.Unlock()
		go w.connect(f)
		return
	}
	x.Row.Retransmits = c.Retransmits()
	w.mu.Lock()
	f.conn = nil
	if reusable && f.class == "" { // else a Cancel that came too late is about to close it
		w.idle = append(w.idle, c)
	}
	w.mu.Unlock()
	w.finishAttempt(f)
}

// finishAttempt ends an attempt: the request with it, unless it may be sent again.
func (w *Wall) finishAttempt(f *flight) {
	if w.cfg.Retry && f.err == nil {
		after, hint := f.x.RetryHints()
		if w.mu.Lock(); f.class == "" && isRetriable(&f.x.Row, hint) {
			f.failed = true
			w.events = append(w.events, failedEvent(&f.x.Row, after, f.x.RateLimitRoom()))
			w.mu.Unlock()
			w.notify()
			return
		}
		w.mu.Unlock()
	}
	w.settleAttempt(f)
}

// settleAttempt has an attempt counted, where there is a tokenizer, checked, where its answer is
// known, and recorded. That takes time that the goroutine of a socket does not have.
func (w *Wall) settleAttempt(f *flight) {
	select {
	case w.count <- f:
	default:
		w.record(f)
	}
}

// countAnswers counts and records what has ended.
func (w *Wall) countAnswers() {
	for {
		select {
		case f := <-w.count:
			w.record(f)
		case <-w.ctx.Done():
			for len(w.count) > 0 {
				w.record(<-w.count)
			}
			return
		}
	}
}

// record records a request that has ended and tells the pacer.
func (w *Wall) record(f *flight) {
	if f.x.Spell {
		r := &f.x.Row
		chunks, text := f.x.TakeSpelt()
		switch {
		case w.cfg.Count == nil:
		case len(chunks) == 0:
			w.cfg.Count.Whole(r, f.x.TextPieces(), text)
		default:
			w.cfg.Count.Count(r, chunks, text)
		}
		if r.Question != "" && r.Outcome == record.OK {
			w.cfg.Check.Check(f.item, r, chunks, f.x.Text(), text)
		}
		for _, c := range chunks {
			w.cfg.Sink.Chunk(c)
		}
	}
	w.history.noteAnswer(f.session, f.item, &f.x.Row, f.x.Text())
	room := f.x.RateLimitRoom()
	f.x.Release()
	w.cfg.Sink.Done(&f.x.Row)
	w.mu.Lock()
	w.events = append(w.events, Event{ID: f.id, At: f.x.Row.Done, Failed: f.x.Row.Outcome == record.Failed, Cut: f.x.Row.Outcome == record.Cut, Refused: f.x.Row.Error == record.ErrConnect, Room: room})
	delete(w.flights, f.id)
	w.free = append(w.free, f)
	w.mu.Unlock()
	w.notify()
}

// notify wakes the pacer.
func (w *Wall) notify() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// recycle takes back a request that was never sent.
func (w *Wall) recycle(f *flight) {
	w.mu.Lock()
	w.free = append(w.free, f)
	w.mu.Unlock()
}

// Wait implements [World].
func (w *Wall) Wait(ctx context.Context, until int64) []Event {
	stop := context.AfterFunc(ctx, w.notify)
	defer stop()
	for {
		if events := w.takeEvents(); len(events) > 0 || ctx.Err() != nil {
			return events
		}
		at := int64(Never)
		if w.origin <= 0 || until < Never-w.origin {
			at = until + w.origin
		}
		if w.alarm.Wait(at, w.wake) {
			return w.takeEvents()
		}
	}
}

func (w *Wall) takeEvents() []Event {
	w.mu.Lock()
	defer w.mu.Unlock()
	events := w.events
	w.events = nil
	return events
}

// Close closes every connection and ends the preparation of requests: when it
// returns, the source is no longer asked.
func (w *Wall) Close() {
	w.stop()
	w.own.Wait()
	for len(w.count) > 0 { // ended since
		w.record(<-w.count)
	}
	w.alarm.Close()
	w.mu.Lock()
	idle := w.idle
	w.idle = nil
	w.mu.Unlock()
	for _, c := range idle {
		c.Abort()
	}
}
