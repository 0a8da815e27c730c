package run

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"pitot/internal/clock"
	"pitot/internal/data/record"
	"pitot/internal/load"
	"pitot/internal/measure"
	"pitot/internal/plan"
	"pitot/internal/say"
	"pitot/internal/telemetry/scrape"
)

// A server takes long to come to the state that a load brings it to, and begins all over where it
// was emptied. So loads near each other follow one another: where the window of one ends the next
// begins, and what is left of the one ends while the other warms up. Each is a point like any
// other, with arrivals, prompts and records of its own; those of a point come to the journal when
// the one before it has ended.

// MeasureAlong measures loads of a plan one after the other, each as soon as the one before it has
// had its window where that can be (see Load.Follows), else as [Session.Measure] does. seen takes
// what each showed, in order, and says whether to go on; what was begun by then is discarded.
func (s *Session) MeasureAlong(ctx context.Context, loads []Load, seen func(i int, m *Measured) (more bool)) error {
	took := time.Duration(0) // by what was measured last
	for i := 0; i < len(loads); {
		for k := range loads[i:] { // those that are left begin later than the first did
			l := &loads[i+k]
			by, end := l.by(took)
			l.WindowBy, l.EndBy = time.Duration(by), time.Duration(end)
		}
		began := time.Now()
		if left := loads[i:]; !s.has() && len(left) > 1 && s.follows(left) {
			n, more, err := s.chained(ctx, left, func(k int, m *Measured) bool { return seen(i+k, m) })
			if err != nil || !more {
				return err
			}
			i, took = i+n, time.Since(began)
			continue
		}
		if l := &loads[i]; i > 0 && l.WindowBy > 0 && l.WindowBy <= l.Warmup {
			return nil // it does not follow, and there is no time left for a whole warm-up
		}
		had := s.has()
		m, err := s.Measure(ctx, loads[i])
		if err == nil {
			err = ctx.Err()
		}
		if err != nil || !seen(i, m) {
			return err
		}
		if took = time.Since(began); had {
			took = seconds(m.Seconds.Warmup + m.Seconds.Window)
		}
		i++
	}
	return nil
}

// by is when a load's window and all of it end at the latest, that begins so much later than
// these times are counted from; 0 for no such times.
func (l *Load) by(later time.Duration) (window, end int64) {
	if l.WindowBy != 0 {
		window = max(1, int64(l.WindowBy-later))
	}
	if l.EndBy != 0 {
		end = max(1, int64(l.EndBy-later))
	}
	return window, end
}

// follows says that loads can follow one another without a pause: open loops on a server, each of
// whose requests stands alone, which one process sends, and before which nothing is asked.
func (s *Session) follows(loads []Load) bool {
	if !s.followed() {
		return false
	}
	p := s.plan
	for i := range loads {
		l := &loads[i]
		hard := l.of(p.Load)
		if l.Rate == 0 || l.Requests == 0 || l.GiveUp || i > 0 && l.Follows == 0 || hard.Exactly || s.sending(&hard).Workers > 0 {
			return false
		}
	}
	return true
}

// followed says that the session's can.
func (s *Session) followed() bool { return Follows(s.plan) && s.runner.Crew == nil }

// Follows says that loads of a plan follow one another where one process sends them.
func Follows(p *plan.Plan) bool {
	alone := p.Closed() || p.Conversing() || p.Mix != nil || p.MaxInFlight > 0 || p.Respect || !p.Verifying().None()
	shared := p.Cache != "" && p.Cache != plan.CacheCold || p.Reused() > 0 // which is asked for before a load
	return p.Kind() != plan.KindSim && !alone && !shared
}

// link is a load of a chain.
type link struct {
	index  int32
	at     int // in the list of loads
	what   Load
	load   plan.Load
	src    source
	setup  measure.Setup
	cfg    load.Config
	tap    *tap
	turn   *turn
	wall   *load.Wall
	conns  int
	core   *load.Core
	c      carried
	before []*turn       // of the loads before it; none: it began on an empty server
	next   *link         // that took over from it; set by its own pacer
	asked  chan struct{} // closed when the server was asked where it took over
	ended  chan struct{} // closed when the load has
}

// chain is loads under way that follow one another.
type chain struct {
	s     *Session
	ctx   context.Context
	loads []Load
	base  int32 // index of the first
	light int64
	told  *scrape.Watch
	ready []chan *link // by load: when it is prepared; nil where that failed

	origin int64 // clock reading of the first load's time 0
	left   []leftover

	preparing sync.WaitGroup
	mu        sync.Mutex
	alive     []*link    // that take samples
	showing   sync.Mutex // held by the one who shows
	newest    int32      // index of the load that the live view shows
}

// chained measures some of the loads, at least one: until one of them could not follow at once.
func (s *Session) chained(ctx context.Context, loads []Load, seen func(i int, m *Measured) bool) (n int, more bool, err error) {
	if err := s.writable(); err != nil {
		return 0, false, err
	}
	outer := ctx
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go func() { // a load that leaves no trace is not worth going on with
		select {
		case <-s.journal.Failed():
			stop()
		case <-ctx.Done():
		}
	}()
	c := &chain{s: s, ctx: ctx, loads: loads, base: s.next, light: s.light, ready: make([]chan *link, len(loads))}
	for i := range c.ready {
		c.ready[i] = make(chan *link, 1)
	}
	defer func() { // what was prepared, and not begun
		stop()
		c.preparing.Wait()
		for _, r := range c.ready {
			select {
			case k := <-r:
				k.close()
			default:
			}
		}
	}()
	s.noteProbes()
	k, err := c.prepare(0)
	if err != nil {
		return 0, false, err
	}
	if err := s.connect(ctx, k.wall, k.conns); err != nil {
		k.close()
		return 0, false, cmp.Or(outer.Err(), err)
	}
	c.told = scrape.Begin(ctx, s.Target.Sources, s.plan.ScrapeInterval, k.index, c.sample)
	k.wall.Begin(5 * time.Millisecond)
	c.origin = k.wall.Origin()
	if err := k.turn.take(func() { s.begins(k.index, &k.setup) }); err != nil {
		k.close()
		return 0, false, &RecordsError{Err: err}
	}
	c.begin(k)
	c.told.Start(ctx, c.origin)
	endTold := sync.OnceFunc(func() { c.told.End(outer) })
	defer func() {
		endTold()
		for _, sentence := range c.told.Sentences() {
			s.runner.showLine("note: " + sentence)
		}
	}()
	defer func() { // those that nobody asks for any more
		stop()
		for ; k != nil; k = k.next {
			<-k.ended
			c.leaves(k)
			if !k.turn.taken {
				s.discard(k.turn)
			}
			k.close()
		}
	}()
	for {
		s.next++
		<-k.ended
		switch { // with a sample behind its window, which it is judged by
		case k.next != nil:
			<-k.next.asked
		case !k.c.window.Handed:
			endTold()
		}
		c.leaves(k)
		m, err := c.conclude(k)
		if err != nil {
			return n, false, err
		}
		if err := outer.Err(); err != nil {
			return n, false, err
		}
		n++
		c.showing.Lock()
		more = seen(k.at, m)
		c.showing.Unlock()
		if !more || k.c.window.Gone != nil || k.next == nil {
			return n, more, nil
		}
		done := k
		k = k.next
		done.close()
		if err := k.turn.take(func() { s.begins(k.index, &k.setup) }); err != nil {
			return n, false, &RecordsError{Err: err}
		}
	}
}

// prepare makes a load ready to begin.
func (c *chain) prepare(at int) (k *link, err error) {
	s, what := c.s, c.loads[at]
	p, t := s.plan, s.Target
	if at > 0 {
		what.Warmup = what.Follows
	}
	k = &link{index: c.base + int32(at), at: at, what: what, load: what.of(p.Load), ended: make(chan struct{})}
	if k.src, err = newSource(&p.Ask, t, k.index); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			k.src.close()
		}
	}()
	if k.cfg, err = schedule(p, &k.load, t, &k.src, k.index); err != nil {
		return nil, err
	}
	align(&p.Ask, &k.src, k.cfg.Arrivals)
	if err = k.src.arrive(&p.Ask, &k.load, arrivalSeed(p.Seed, k.index), k.cfg.Warmup); err != nil {
		return nil, err
	}
	k.setup = plannedPoint(p, t, &k.load, &k.src, &k.cfg, what, c.light)
	k.setup.Seeded = k.setup.Seeded || k.index < s.asked && t.Kind == "http"
	k.cfg.HandOver = func(t1 int64) bool { return c.handOver(k, t1) }
	k.turn = &turn{journal: s.journal, point: k.index, kept: keptRecords{point: k.index}}
	if what.Decided != nil {
		k.turn.seen = what.watched(k.cfg.Warmup, load.Never)
	}
	k.tap = newTap(k.turn)
	k.wall, k.conns, err = s.wallOf(c.ctx, &k.load, k.src, k.tap, k.index, load.Share{})
	return k, err
}

func (k *link) close() {
	k.wall.Close()
	k.turn.kept.remove()
	k.src.close()
}

// begin carries a load out whose time 0 is set, from then on.
func (c *chain) begin(k *link) {
	k.setup.Began = time.Now().Add(time.Duration(k.wall.Origin() - clock.Now()))
	k.cfg.WindowBy, k.cfg.EndBy = k.what.by(time.Duration(k.wall.Origin() - c.origin))
	k.core = load.NewCore(k.cfg)
	c.mu.Lock()
	c.alive = append(c.alive, k)
	c.mu.Unlock()
	if at := k.at + 1; at < len(c.loads) {
		c.preparing.Go(func() { // under the warm-up, and not under the window before it
			if !c.reached(k) {
				return
			}
			if next, err := c.prepare(at); err == nil {
				c.ready[at] <- next
			}
		})
	}
	if len(k.before) > 0 {
		k.asked = make(chan struct{})
		c.preparing.Go(func() { // what counters grew by is known of both windows
			defer close(k.asked)
			if c.reached(k) {
				c.told.AskNow()
			}
		})
		c.preparing.Go(func() {
			if c.reached(k) {
				_ = k.wall.Open(c.ctx, k.conns) // if it fails, the requests that need one will say so
			}
		})
	}
	go c.carry(k)
}

// reached waits for a load's time 0; false where the chain ends before it.
func (c *chain) reached(k *link) bool {
	wait := time.NewTimer(time.Duration(max(0, k.wall.Origin()-clock.Now())))
	defer wait.Stop()
	select {
	case <-wait.C:
		return true
	case <-c.ctx.Done():
		return false
	}
}

// handOver has the next load begin where a window ends, if it is prepared, and false if none does. It
// is called by the load's pacer.
func (c *chain) handOver(k *link, t1 int64) bool {
	if k.at+1 == len(c.loads) || c.ctx.Err() != nil || c.pointless(k) {
		return false
	}
	next := &c.loads[k.at+1]
	if by, _ := next.by(time.Duration(k.wall.Origin() + t1 - c.origin)); by > 0 && by <= int64(next.Follows) {
		return false // there is no time left for it
	}
	select {
	case k.next = <-c.ready[k.at+1]:
	default:
		return false
	}
	k.next.before, k.next.setup.Follows = append(slices.Clip(k.before), k.turn), t1
	k.next.wall.BeginAt(k.wall.Origin() + t1)
	c.begin(k.next)
	return true
}

// pointless says that by the requests that have ended so far heavier loads tell nothing more.
func (c *chain) pointless(k *link) bool {
	return slices.ContainsFunc(append(slices.Clip(k.before), k.turn), func(t *turn) bool { return t.seen != nil && t.decided() })
}

// carry carries a load out to its end.
func (c *chain) carry(k *link) {
	defer close(k.ended)
	var world load.World = k.wall
	if to := c.s.runner.Progress; to != nil {
		world = &reporting{World: world, core: k.core, tap: k.tap, told: c.told, to: &viewed{Progress: to, chain: c, index: k.index}}
	}
	k.c = carried{told: c.told, items: &itemized{World: world, items: map[int64]int64{}}}
	stop := watchInstrument(k.turn.Sample, k.index, k.wall.Origin(), nil).stop
	load.Run(c.ctx, k.core, k.c.items)
	stop()
	k.c.ended(k.core, &k.setup, k.wall.Now())
}

// sample gives what the server tells to every load that is under way, in its own time.
func (c *chain) sample(x record.Sample) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.alive) == 0 {
		return
	}
	at := c.origin + x.T
	for _, k := range c.alive {
		if x.Point, x.T = k.index, at-k.wall.Origin(); x.T >= 0 {
			k.turn.Sample(x)
		}
	}
}

// leaves has a load take no more samples.
func (c *chain) leaves(k *link) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.alive = slices.DeleteFunc(c.alive, func(x *link) bool { return x == k })
}

// discard keeps what was sent of a load that is no point, and has no other load ask the same.
func (s *Session) discard(t *turn) {
	s.plan.Ask.Draw++
	frames, err := t.kept.records()
	if err != nil {
		return // of what was sent no figure follows but how much it was
	}
	s.journal.SetPoint(record.Discarded)
	for f := range frames {
		for i := range f.Rows {
			s.journal.Done(&f.Rows[i])
		}
	}
}

// leftover is a request that was under way when the load after its own began.
type leftover struct {
	row   record.Row
	began int64 // clock reading of its own load's time 0
}

// conclude measures a load that has ended. Its records are read once: what was left of it when the next
// load began is kept for those behind it.
func (c *chain) conclude(k *link) (*Measured, error) {
	s, began := c.s, k.wall.Origin()
	if n, why := k.wall.Uncounted(); n > 0 {
		s.runner.showLine(fmt.Sprintf("note: %s without a count of tokens: %v", say.Plural(n, "answer"), why))
	}
	s.markEnd(k.index, &k.setup, &k.c, k.tap, k.src)
	setup := ended(k.setup, k.c.window)
	if err := s.journal.Flush(); err != nil {
		return nil, &RecordsError{Err: err}
	}
	fold := measure.NewFoldIn(s.memory(), setup)
	for i := range c.left {
		fold.Guest(&c.left[i].row, began-c.left[i].began)
	}
	c.left = slices.DeleteFunc(c.left, func(x leftover) bool { return x.began+x.row.Done <= began+setup.T1 })
	for f, err := range record.Since(s.Dir, k.turn.from) {
		if err != nil {
			return nil, fmt.Errorf("read records: %w", err)
		}
		if f.Point != k.index {
			continue
		}
		fold.Add(f)
		for i := range f.Rows {
			if k.next != nil && f.Rows[i].Done > setup.T1 {
				c.left = append(c.left, leftover{f.Rows[i], began})
			}
		}
	}
	m := s.measured(fold, k.index)
	m.handed, m.follows = k.c.window.Handed, k.setup.Follows
	return m, nil
}

// turn is the journal for one of several loads under way: what is recorded of it is kept until the
// load before it has ended.
type turn struct {
	mu      sync.Mutex
	journal *record.Journal
	point   int32
	taken   bool
	from    int64 // where its records begin in the journal
	kept    keptRecords
	samples []record.Sample
	seen    *windowSeen // of a load that may make those behind it pointless
}

// take gives the load its turn; plan writes down what was planned of it. The load may be under way:
// what was kept of it is written without holding up who records, until little is left.
func (t *turn) take(plan func()) (err error) {
	if t.from, err = t.journal.Offset(); err != nil {
		return err
	}
	t.journal.SetPoint(t.point)
	plan()
	for last := false; !last; {
		t.mu.Lock()
		kept, samples := t.kept, t.samples
		t.kept, t.samples = keptRecords{point: t.point}, nil
		if last = kept.journal == nil && kept.size < fewKept; !last {
			t.mu.Unlock()
		}
		err := t.write(&kept, samples)
		if last {
			t.taken = err == nil
			t.mu.Unlock()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// fewKept is how many bytes of records are written in well under a millisecond.
const fewKept = 64 << 10

// write puts what was kept in the journal.
func (t *turn) write(kept *keptRecords, samples []record.Sample) error {
	defer kept.remove()
	frames, err := kept.records()
	if err != nil {
		return err
	}
	for f, err := range frames {
		if err != nil {
			return err
		}
		t.journal.Take(&f)
	}
	for _, x := range samples {
		t.journal.Sample(x)
	}
	return nil
}

// Chunk implements [record.Sink].
func (t *turn) Chunk(c record.Chunk) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.taken {
		t.journal.Chunk(c)
		return
	}
	t.kept.Chunk(c)
}

// Done implements [record.Sink].
func (t *turn) Done(r *record.Row) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.seen != nil {
		t.seen.end(r)
	}
	if t.taken {
		t.journal.Done(r)
		return
	}
	t.kept.Done(r)
}

// Sample takes a sample of the point.
func (t *turn) Sample(x record.Sample) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.taken {
		t.journal.Sample(x)
		return
	}
	t.samples = append(t.samples, x)
}

// decided says that loads behind this one are of no use.
func (t *turn) decided() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.seen.decide(t.seen.violations, t.seen.left())
}

// viewed has the live view show the newest of the loads under way.
type viewed struct {
	Progress
	chain *chain
	index int32
}

// Update implements [Progress]. It never waits: a pacer calls it.
func (s *viewed) Update(x Status) {
	if !s.chain.showing.TryLock() {
		return
	}
	defer s.chain.showing.Unlock()
	if s.index < s.chain.newest {
		return
	}
	s.chain.newest = s.index
	s.Progress.Update(x)
}
