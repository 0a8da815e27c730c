package workers

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"pitot/internal/clock"
	"pitot/internal/config"
	"pitot/internal/loadgen"
	"pitot/internal/results/marks"
	"pitot/internal/results/result"
	"pitot/internal/say"
	"pitot/internal/session"
	"pitot/internal/workers/bus"
)

const (
	// reportEvery is the interval at which a worker reports its load and sends its records. Each
	// report wakes processes, whose processor the load may need.
	reportEvery = time.Second
	// leaseTime is the time for which a worker goes on without news from the coordinator.
	leaseTime = 10 * time.Second
	// tellTime is the time that a worker waits for the answer to a report.
	tellTime = time.Second
	// lostAfter is when the coordinator takes a worker for lost that it does not hear of:
	// later than that one stops by itself, so that none sends any more. It may have had the
	// answer to its last report late, and looks at its lease between two others.
	lostAfter = leaseTime + 2*tellTime + reportEvery + time.Second
	// homeTime is the time for which an ended load may go on without any records coming home. It
	// also applies to a load that was to end.
	homeTime = lostAfter
	// goneTime is the time for which records in the stream may still arrive after their process
	// ended.
	goneTime = time.Second
	// prepareTime is the time that a worker has to make its share ready.
	prepareTime = 2 * time.Minute
	// againTime is the time that a worker has to connect again after its connection was lost.
	againTime = 2 * time.Second
	// leadTime is the time between the order to begin a load and its start. It lets all workers
	// know in time. A worker that does not know is late with its first requests, and its lag says
	// so.
	leadTime = 500 * time.Millisecond
	// lookEvery is the interval at which a load is checked where there is no news.
	lookEvery = time.Second
	// startTime is the time that workers have to say that they know.
	startTime = 10 * time.Second
)

// Coordinator has loads carried out by workers that have joined it. It implements [session.Crew].
type Coordinator struct {
	server bus.Server // nil for one of the user's own
	conn   bus.Conn
	kept   bus.Streams // the connection too, where journals come over it
	say    func(line string)
	build  string
	id     runID
	origin int64 // of the present load, on this process's clock
	size   int
	host   string
	beside bool          // see [place]
	lead   time.Duration // see [leadTime]
	late   time.Duration // see [lostAfter]
	dir    string        // of the server's streams, and of the workers' journals where it has started them
	stop   func()        // reading of journals
	wait   time.Duration // for workers to join, 0 for those of this process
	where  string        // the command by which they do

	home sync.Mutex    // held while records are taken, which a disk may hold up; never waited for with mu held
	told chan struct{} // workers may have told of records

	mu      sync.Mutex // guards what follows
	members []*member  // by rank, nil of those that have not joined
	turned  []string   // why workers were refused
	gaveUp  string     // why nothing is measured, empty otherwise
	stopped bool       // the user stopped the run
	notes   []string   // of the present load
	news    chan struct{}
	loads   int64 // that were begun
	word    word
	with    session.Sums
	taking  bool  // records are being taken
	broken  error // the journals cannot be taken
}

var _ session.Crew = (*Coordinator)(nil)

// member is a worker as the coordinator knows it.
type member struct {
	rank  int
	hello hello
	asked time.Time // when it asked to join
	last  time.Time // heard of
	home  int64     // bytes of its journal that are here
	ended time.Time // when its process had, zero before
	said  string    // by a process that has ended
	cpu   time.Duration

	own       ownFile // its journal, where that is read where it is written; guarded by the coordinator's home
	collected bool    // all that it left there is here

	carried bool // it took part in a load
	dead    bool // it was lost, and takes part in nothing more

	// Of the present load:
	report report
	at     int64        // reading of this process's clock when it was heard of
	lost   *result.Lost // times are since the load began
}

// confirmTime is the time for which the place of a worker is kept that does not take it. The worker
// may have joined another run on the same server.
const confirmTime = 5 * time.Second

// place is where a coordinator and its workers meet.
type place struct {
	bus.Access
	own    bool   // this process starts the NATS server
	where  string // the command by which workers join, "" where they are started here
	beside bool   // the workers are processes of this machine: a local hub is enough, and their journals are read where they write them
}

// Listen returns a coordinator of workers of this machine, which join at a local hub.
func Listen(v result.Version, size int) (*Coordinator, error) {
	return listenAt(v, size, place{beside: true}, func(string) {})
}

// listenAt returns a coordinator at a local hub, at an embedded server or at the user's own.
func listenAt(v result.Version, size int, at place, say func(line string)) (_ *Coordinator, err error) {
	c := &Coordinator{
		build: BuildID(v), size: size, beside: at.beside, where: at.where, lead: leadTime, late: lostAfter, id: runID(strings.ToLower(rand.Text()[:10])), say: say,
		members: make([]*member, size), news: make(chan struct{}, 1), told: make(chan struct{}, 1),
	}
	defer func() {
		if err != nil {
			c.Close()
		}
	}()
	c.host, _ = os.Hostname()
	if c.dir, err = os.MkdirTemp("", "pitot-fleet-"); err != nil {
		return nil, fmt.Errorf("make a place for journals: %w", err)
	}
	switch {
	case at.beside:
		c.server, err = bus.ListenLocal()
	case at.own:
		c.server, err = bus.Serve(at.Access, c.dir)
	}
	if err != nil {
		return nil, err
	}
	if c.server != nil {
		c.conn, err = c.server.Dial()
	} else {
		c.conn, err = bus.Dial(at.Access)
	}
	if err != nil {
		return nil, err
	}
	if !c.beside {
		if c.kept, err = journalStreams(c.conn); err != nil {
			return nil, err
		}
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err = c.kept.Keep(ctx, c.id.streamName(), c.id.journalSubjects()); err != nil {
			return nil, err
		}
		if c.stop, err = c.kept.Read(ctx, c.id.streamName(), c.takeFrames, c.noteUnpurged); err != nil {
			return nil, err
		}
	}
	if err = c.conn.Answer(c.id.reportSubject(), c.answerReport); err != nil {
		return nil, err
	}
	return c, c.conn.Answer(joining, c.answerJoin)
}

// journalStreams returns a connection as one that journals can cross.
func journalStreams(c bus.Conn) (bus.Streams, error) {
	s, ok := c.(bus.Streams)
	if !ok {
		return nil, errors.New("no journals cross a local connection")
	}
	return s, nil
}

// whoReaches says who can connect to an address that this machine listens at.
func whoReaches(address string) string {
	host, _, _ := net.SplitHostPort(address)
	if ip := net.ParseIP(host); host == "localhost" || ip != nil && ip.IsLoopback() {
		return "any user of this machine"
	}
	return "other machines"
}

// NewRemote makes a coordinator of workers that join from elsewhere: at the user's own server, or
// at one in this process that listens for them. token is what is shown there, or asked for.
func NewRemote(v result.Version, p *config.Fleet, token string, tell func(line string)) (*Coordinator, error) {
	own, shown, b := p.NATS == "", "", &p.Bus
	if own && !bus.HasServer() {
		return nil, say.Errorf("--fleet listen:// needs a NATS server, and this program has none").WithHint(fmt.Sprintf("run pitot-fleet, the same program with a server in it; or name a server: --fleet 'nats://HOST:4222?workers=%d'", p.Workers))
	}
	at := access(p.NATS, token, b)
	if own {
		if at.URL = p.Listen; token == "" {
			return nil, say.Errorf("listen://%s is open to %s, and has no token", p.Listen, whoReaches(p.Listen)).WithHint("openssl rand -hex 16 > fleet.token, then token_file=fleet.token here and on the workers' machines")
		}
		scheme := "nats"
		if b.Cert != "" {
			scheme = "tls"
		}
		host, port, _ := net.SplitHostPort(p.Listen)
		if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
			if host, _ = os.Hostname(); host == "" {
				host = "HOST"
			}
		}
		shown = scheme + "://" + net.JoinHostPort(host, port)
	} else {
		shown = p.NATS
	}
	show := ""
	switch {
	case b.TokenFile != "":
		shown = say.ShellLine([]string{shown + "?token_file=" + b.TokenFile})
	case token != "":
		show = ", with " + config.TokenVariable + " in its environment"
	}
	c, err := listenAt(v, p.Workers, place{Access: at, own: own, where: "pitot worker --join " + shown + show}, tell)
	if err != nil {
		return nil, noBus(err)
	}
	c.wait = b.JoinTimeout
	return c, nil
}

// Gather implements [session.Crew]: it waits until all workers are there.
func (c *Coordinator) Gather(ctx context.Context) error {
	if c.wait == 0 { // they are there, or this is asked again
		return nil
	}
	c.say(fmt.Sprintf("waiting for %s, up to %s (join_timeout): %s", say.Plural(c.size, "worker"), say.Duration(c.wait), c.where))
	ctx, cancel := context.WithTimeoutCause(ctx, c.wait, errors.New("not within "+say.Duration(c.wait)))
	defer cancel()
	if err := c.WaitReady(ctx); err != nil {
		c.mu.Lock()
		c.gaveUp = err.Error()
		c.mu.Unlock()
		return err
	}
	c.wait = 0
	return nil
}

// Who implements [session.Crew].
func (c *Coordinator) Who() marks.Crew {
	c.mu.Lock()
	defer c.mu.Unlock()
	who := marks.Crew{Run: string(c.id)}
	for _, m := range c.members {
		who.Workers = append(who.Workers, marks.Member{Worker: m.describe(), Dir: m.hello.Dir})
	}
	return who
}

// NoteStopped says that the user stopped the run, which its workers are told at its end.
func (c *Coordinator) NoteStopped() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stopped = true
}

// access returns the credentials for a server.
func access(url, token string, b *config.Bus) bus.Access {
	return bus.Access{URL: url, Token: token, Nkey: b.NkeyFile, CA: b.CA, Cert: b.Cert, Key: b.Key}
}

// noBus says what to do where there is no connection to a server.
func noBus(err error) error {
	hint := "is the server there, with JetStream, and reached from here?"
	switch {
	case errors.Is(err, bus.ErrClosed):
		hint = "pitot run URL --fleet N starts the workers of this machine by itself"
	case errors.Is(err, bus.ErrRefused):
		hint = "a server shows and asks for what token_file, nkey_file, ca and cert of the URL name: the same on all machines"
	}
	return say.Errorf("%v", err).WithHint(hint)
}

// URL is where workers join, and Token what they have to show.
func (c *Coordinator) URL() string   { return c.server.URL() }
func (c *Coordinator) Token() string { return c.server.Token() }

// Size implements [session.Crew].
func (c *Coordinator) Size() int { return c.size }

// Close lets the workers go and ends the server, or deletes what was kept there for the run.
func (c *Coordinator) Close() {
	if c.conn != nil {
		_ = c.announceEnd()
	}
	if c.stop != nil {
		c.stop()
	}
	if c.conn != nil {
		if c.server == nil && c.kept != nil {
			ctx, cancel := context.WithTimeout(context.Background(), endTime)
			_ = c.kept.Forget(ctx, c.id.streamName()) // a server that is gone has deleted or will keep it
			cancel()
		}
		c.conn.Close()
	}
	if c.server != nil {
		c.server.Close()
	}
	c.mu.Lock()
	for _, m := range c.members {
		if m != nil && m.own.file != nil {
			_ = m.own.file.Close()
		}
	}
	c.mu.Unlock()
	if c.dir != "" {
		_ = os.RemoveAll(c.dir)
	}
}

// announceEnd tells the workers that the run has ended, and what of each one's journal is here; one
// that does not hear it misses the server.
func (c *Coordinator) announceEnd() error {
	c.mu.Lock()
	home := make([]int64, len(c.members))
	for i, m := range c.members {
		if m != nil {
			home[i] = m.home
		}
	}
	said := ending{home, c.gaveUp, c.stopped}
	c.mu.Unlock()
	return c.conn.Tell(c.id.endSubject(), encode(said))
}

// answerJoin answers a worker that asks to. Where there is no place for it nobody answers: it may
// be for another run on the same server.
func (c *Coordinator) answerJoin(question []byte) []byte {
	h, err := decode[hello](question)
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.signalNews()
	if err != nil {
		return encode(welcome{Refused: err.Error()})
	}
	if h.Protocol != protocol || h.Build != c.build {
		refused := otherBuild(h.Build, c.build).Error()
		c.turned = append(c.turned, refused)
		return encode(welcome{Refused: refused + " (" + c.host + ")"})
	}
	if rank := slices.IndexFunc(c.members, h.isFrom); rank >= 0 { // it did not hear the answer
		c.members[rank].asked = time.Now()
		return encode(welcome{Run: c.id, Rank: rank, Of: c.size, Keep: c.where != "", Beside: c.beside})
	}
	rank := slices.Index(c.members, nil)
	if rank < 0 {
		rank = slices.IndexFunc(c.members, isFree)
	}
	if h.Rank != nil {
		if rank = *h.Rank; rank < 0 || rank >= c.size {
			return encode(welcome{Refused: fmt.Sprintf("it is to be worker %d of a fleet of %d", rank, c.size)})
		}
		if !isFree(c.members[rank]) {
			return nil
		}
	}
	if rank < 0 {
		return nil
	}
	c.members[rank] = &member{rank: rank, hello: h, asked: time.Now()}
	return encode(welcome{Run: c.id, Rank: rank, Of: c.size, Keep: c.where != "", Beside: c.beside})
}

// isFree says that a place is: nobody has it, or nobody took it.
func isFree(m *member) bool {
	return m == nil || m.last.IsZero() && m.ended.IsZero() && time.Since(m.asked) > confirmTime
}

// signalNews says that there is news.
func (c *Coordinator) signalNews() {
	wakeWaiter(c.news)
	wakeWaiter(c.told)
}

// wakeWaiter wakes who waits for a channel, or will.
func wakeWaiter(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default: // it has been woken already
	}
}

// WaitReady waits until all workers are there, and says who has joined. One that was refused ends
// it where the workers are this process's own.
func (c *Coordinator) WaitReady(ctx context.Context) error {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	here, told := map[*member]bool{}, 0
	for {
		var lines []string
		c.mu.Lock()
		for _, m := range c.members {
			if m != nil && !m.last.IsZero() && !here[m] {
				here[m] = true
				lines = append(lines, fmt.Sprintf("worker %d joined (%d of %d): %s, %s", m.rank, len(here), c.size, m.hello.Host, say.Plural(m.hello.CPUs, "core")))
			}
		}
		refused := c.turned
		c.mu.Unlock()
		for _, line := range lines {
			c.say(line)
		}
		for ; told < len(refused); told++ {
			c.say("note: " + refused[told])
		}
		if len(here) == c.size {
			return nil
		}
		select {
		case <-ctx.Done():
			missing := fmt.Sprintf("%d of %s joined: %v", len(here), say.Plural(c.size, "worker"), context.Cause(ctx))
			if len(refused) > 0 {
				return say.Errorf("%s; %s", missing, refused[len(refused)-1]).WithHint(say.HintOf(otherBuild("", "")))
			}
			return say.Errorf("%s", missing).WithHint("each worker says where it was started why it does not join")
		case <-c.news:
		case <-tick.C:
		}
	}
}

// isFrom says whether a worker is the one that asks.
func (h hello) isFrom(m *member) bool { return m != nil && h.Nonce != "" && m.hello.Nonce == h.Nonce }

// gone says that a process of this machine has ended, and what it said last.
func (c *Coordinator) gone(pid int, said string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range c.members {
		if m != nil && m.hello.PID == pid && m.ended.IsZero() {
			m.ended, m.said = time.Now(), said
		}
	}
	c.signalNews()
}

// answerReport takes in a report, and answers with what is decided.
func (c *Coordinator) answerReport(question []byte) []byte {
	r, err := decode[report](question)
	c.mu.Lock()
	defer c.mu.Unlock()
	m := c.memberOfRank(r.Rank)
	if err == nil && (m == nil || m.hello.Nonce != r.Nonce) {
		return encode(word{Taken: true})
	}
	if err == nil {
		m.last, m.at, m.cpu = time.Now(), clock.Now(), max(m.cpu, r.CPU)
		if r.Load == c.word.Load && r.Number > m.report.Number {
			m.report = r
		}
		c.signalNews()
	}
	w := c.word
	w.Clock, w.Others = clock.Now(), c.otherProcessorTime(r.Rank)
	return encode(w)
}

// memberOfRank is the worker of a rank, nil for none. The caller holds c.mu.
func (c *Coordinator) memberOfRank(rank int) *member {
	if rank < 0 || rank >= len(c.members) {
		return nil
	}
	return c.members[rank]
}

// otherProcessorTime is the processor time of the run's processes on a worker's machine but its
// own. The caller holds c.mu.
func (c *Coordinator) otherProcessorTime(rank int) (cpu time.Duration) {
	asks := c.memberOfRank(rank)
	if asks == nil {
		return 0
	}
	host := asks.hello.Host
	if host == c.host {
		cpu = session.ProcessorTime()
	}
	for _, m := range c.members {
		if m != nil && m != asks && m.hello.Host == host {
			cpu += m.cpu
		}
	}
	return cpu
}

// noteUnpurged notes that the server does not delete what was taken.
func (c *Coordinator) noteUnpurged(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.notes = append(c.notes, fmt.Sprintf("the NATS server does not delete what was taken from the stream %s, which goes on growing there: %v", c.id.streamName(), err))
}

// Carry implements [session.Crew].
func (c *Coordinator) Carry(ctx context.Context, t *session.Task, with session.Sums) (*session.Carried, error) {
	c.mu.Lock()
	members := c.members[:t.Workers]
	c.loads++
	number := c.loads
	c.word, c.with, c.broken = word{Load: number}, with, nil
	for _, m := range members {
		if err := m.absenceError(); err != nil {
			c.mu.Unlock()
			return nil, &session.AbsentError{Err: err}
		}
		m.lost, m.at = nil, clock.Now()
		m.report = report{Rank: m.rank, Number: m.report.Number, Load: number}
	}
	c.mu.Unlock()
	defer func() {
		c.home.Lock() // what is being taken is
		defer c.home.Unlock()
		c.mu.Lock()
		c.with = session.Sums{}
		c.mu.Unlock()
	}()
	if err := c.prepare(ctx, members, encode(sharing{number, *t})); err != nil {
		return nil, &session.AbsentError{Err: err}
	}
	origin := clock.Now() + int64(c.lead)
	asked := make(chan []error, 1)
	go func() {
		asked <- c.askEach(context.WithoutCancel(ctx), members, startTime, encode(start{origin}), c.id.beginSubject)
	}()
	c.mu.Lock()
	c.origin = origin
	for _, m := range members {
		m.carried = true
	}
	c.mu.Unlock()
	with.Begun(origin) // what workers send that have begun is of a load that has, whatever others answer
	for i, err := range <-asked {
		if err != nil {
			c.mu.Lock()
			members[i].markLost(origin, fmt.Sprintf("it did not begin: %v", err))
			c.mu.Unlock()
		}
	}
	return c.followLoad(ctx, members, with)
}

// absenceError says why a worker takes part in no more loads, nil where it does. The caller holds
// the coordinator's mutex.
func (m *member) absenceError() error {
	why, hint := "was lost in a load before", "what was measured is kept; a sweep or find goes on with it by --resume"
	switch {
	case m.dead:
	case m.ended.IsZero():
		return nil
	case m.carried:
		why = fmt.Sprintf("ended between two loads (%s)", cmp.Or(m.said, "it said nothing"))
	default:
		why, hint = fmt.Sprintf("ended before its first load (%s)", cmp.Or(m.said, "it said nothing")), "nothing of this load was sent: start again"
	}
	return say.Errorf("worker %d on %s %s", m.rank, m.hello.Host, why).WithHint(hint)
}

// prepare has workers make their shares ready.
func (c *Coordinator) prepare(ctx context.Context, members []*member, task []byte) error {
	return c.askWorkers(ctx, members, prepareTime, task, c.id.prepareSubject)
}

// askWorkers asks workers at once, and gives the first error.
func (c *Coordinator) askWorkers(ctx context.Context, members []*member, within time.Duration, question []byte, subject func(rank int) string) error {
	for _, err := range c.askEach(ctx, members, within, question, subject) {
		if err != nil {
			return err
		}
	}
	return nil
}

// askEach asks workers at once, and gives what came of each.
func (c *Coordinator) askEach(ctx context.Context, members []*member, within time.Duration, question []byte, subject func(rank int) string) []error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	failed := make([]error, len(members))
	var all sync.WaitGroup
	for i, m := range members {
		all.Go(func() {
			answer, err := c.conn.Ask(ctx, subject(m.rank), question)
			for until := time.Now().Add(againTime); errors.Is(err, bus.ErrNobody) && time.Now().Before(until) && ctx.Err() == nil; {
				time.Sleep(100 * time.Millisecond)
				answer, err = c.conn.Ask(ctx, subject(m.rank), question)
			}
			if err != nil {
				failed[i] = fmt.Errorf("worker %d: %w", m.rank, err)
				return
			}
			p, err := decode[prepared](answer)
			if err == nil && p.Error != "" {
				err = say.Errorf("worker %d: %s", m.rank, p.Error).WithHint(p.Hint)
			}
			failed[i] = err
		})
	}
	all.Wait()
	return failed
}

// followLoad follows a load to its end. What fails, or has failed, stops it: what the other
// workers had recorded by then still comes home.
func (c *Coordinator) followLoad(ctx context.Context, members []*member, with session.Sums) (*session.Carried, error) {
	var failed error
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	if c.beside {
		defer c.bringHome(members)()
	}
	looked, shown := 0, time.Time{}
	done := ctx.Done()
	var came arrived // by when
	moved := time.Now()
	for {
		c.mu.Lock()
		was := c.word
		s := c.sumMembers(members)
		failed = cmp.Or(failed, c.broken)
		cut := was.Cut
		for _, m := range members {
			if m.lost == nil || m.dead {
				continue
			}
			m.dead = true
			at := int64(m.lost.SinceBegin())
			if m.lost.Early = with.Enough == nil || !with.Enough(int64(s.status.T0), at); m.lost.Early {
				failed = cmp.Or[error](failed, lostError(m, m.lost.Why))
			} else if cut == 0 || at < cut {
				cut = at
			}
		}
		broken := c.broken != nil
		c.mu.Unlock()
		if s.came != came || s.taking || !was.Stop && !s.through {
			came, moved = s.came, time.Now()
		}
		next := was
		next.Cut = cut
		switch {
		case s.through && (s.ended || broken):
			if lost := (*session.LostError)(nil); failed != nil && !errors.As(failed, &lost) {
				return nil, failed
			}
			out := c.loadResult(&s, members, was)
			if out.Ended == none { // whenever the last one was lost
				failed = allLost(members)
				out.Ended = out.T1
			}
			return out, failed
		case time.Since(moved) > homeTime:
			return nil, cmp.Or[error](failed, lostError(s.missing, fmt.Sprintf("its records did not come for %s", say.Duration(homeTime))))
		case failed != nil:
			next.Stop = true
		case was.Stop:
		case s.asks && s.home && s.t1 > was.End: // not all have that end yet
			next.End = s.t1
			if s.alike {
				next.End, next.Final = extendWindow(with, s.t0, s.t1, was.End)
			}
		case s.asks && s.home && s.alike && !was.Final:
			next.End, next.Final = extendWindow(with, s.t0, s.t1, was.End)
		}
		if k := len(s.looks); k > looked && with.GiveUp != nil && !next.Stop {
			looked = k
			if with.GiveUp(s.looks[k-1].Elapsed, s.looks[k-1].UnderWay) {
				next.Stop, next.GaveUp = true, true
			}
		}
		if ctx.Err() != nil {
			next.Stop, done = true, nil
		}
		if next != was {
			c.announceDecision(next)
		}
		if with.Update != nil && time.Since(shown) > reportEvery/2 {
			shown = time.Now()
			with.Update(s.status)
		}
		select {
		case <-done:
		case <-c.news:
		case <-tick.C:
			wakeWaiter(c.told) // a file may be longer by now than it was
		}
	}
}

// announceDecision tells all what was decided.
func (c *Coordinator) announceDecision(w word) {
	c.mu.Lock()
	c.word = w
	c.mu.Unlock()
	_ = c.conn.Tell(c.id.wordSubject(), encode(w)) // who misses it has it with the next answer
}

// extendWindow asks for the end of a window that all workers are through with; where that is not
// known yet it stays as it was decided.
func extendWindow(with session.Sums, t0, t1, was int64) (end int64, final bool) {
	if with.Extend == nil {
		return t1, true
	}
	end, known := with.Extend(t0, t1)
	if !known {
		return was, false
	}
	return max(end, t1), end <= t1
}

// sum is the combined state of the workers of a load.
type sum struct {
	// Of those that are not lost:
	through bool    // all have ended
	ended   bool    // and their records are here
	missing *member // one of which that is not so, nil for none
	came    arrived
	taking  bool // records are being taken, which the disk may hold up

	asks   bool // all are through with the windows they have, or have ended
	alike  bool // these end at the same time
	home   bool // all records are here that they rest on
	t0, t1 int64
	looks  []look
	status session.Status
}

// arrived holds the amount of records that have come home.
type arrived struct {
	workers int // that have ended
	bytes   int64
}

// sumMembers sums up. The caller holds c.mu.
func (c *Coordinator) sumMembers(members []*member) (s sum) {
	s = sum{taking: c.taking, through: true, asks: true, alike: true, home: true, t0: math.MinInt64, t1: math.MinInt64}
	first := int64(math.MinInt64)
	var ttft, tpot []time.Duration
	for _, m := range members {
		if m.lost != nil {
			s.came.bytes += m.home
			continue
		}
		r := &m.report
		w := r.Asks
		if r.Ended != nil {
			w = &window{r.Ended.T0, r.Ended.T1}
		}
		if w == nil {
			s.asks = false
		} else {
			if r.Ended == nil {
				s.alike = s.alike && (first == math.MinInt64 || w.T1 == first)
				first = w.T1
			}
			s.t0, s.t1 = max(s.t0, w.T0), max(s.t1, w.T1)
		}
		s.home = s.home && m.home >= r.Bytes
		if x := r.Status; x != nil {
			addStatus(&s.status, x)
			ttft, tpot = append(ttft, x.TTFT), append(tpot, x.TPOT)
		}
		whole := r.Ended != nil && r.Error == "" && m.home >= r.Bytes
		switch {
		case m.hasStopped() && c.beside && !m.collected: // what it left comes first
		case r.Error != "": // its disk may be full
			m.markLost(c.origin, r.Error)
		case whole:
		case !m.ended.IsZero() && (r.Ended == nil || time.Since(m.ended) > goneTime):
			why := "its process ended"
			if m.said != "" {
				why += ": " + m.said
			}
			m.markLost(c.origin, why)
		case time.Since(m.last) > c.late:
			m.markLost(c.origin, fmt.Sprintf("not heard of for %s", say.Duration(c.late)))
		}
		s.came.bytes += m.home
		if r.Ended != nil {
			s.came.workers++
		}
		if !whole && m.lost == nil {
			s.missing = m
			s.through = s.through && r.Ended != nil
		}
	}
	s.ended = s.through && s.missing == nil
	s.status.TTFT, s.status.TPOT = medianDuration(ttft), medianDuration(tpot)
	s.looks = looksOf(members)
	return s
}

// looksOf sums the looks that all have told of that are not lost.
func looksOf(members []*member) (all []look) {
	for k := 0; ; k++ {
		l, left := look{}, false
		for _, m := range members {
			if m.lost != nil {
				continue
			}
			if k >= len(m.report.Looks) {
				return all
			}
			left = true
			l.Elapsed = max(l.Elapsed, m.report.Looks[k].Elapsed)
			for i, x := range m.report.Looks[k].UnderWay {
				if i == len(l.UnderWay) {
					l.UnderWay = append(l.UnderWay, 0)
				}
				l.UnderWay[i] += x
			}
		}
		if !left {
			return all
		}
		all = append(all, l)
	}
}

// describe returns the worker as the result of its load has it. The caller holds c.mu.
func (m *member) describe() result.Worker {
	return result.Worker{
		Rank: m.rank, Host: m.hello.Host, CPUs: m.hello.CPUs, JournalBytes: m.home, ClockSteps: m.report.Steps, Lost: m.lost,
		Ahead: float64(m.report.Ahead) / 1e6, AheadBound: float64(m.report.Bound) / 1e6,
	}
}

// markLost notes that a worker is lost. The caller holds c.mu.
func (m *member) markLost(origin int64, why string) {
	m.lost = &result.Lost{At: float64(max(0, m.at-origin)) / 1e9, Why: why}
}

// lostError says that a worker is.
func lostError(m *member, why string) error {
	return &session.LostError{Rank: m.rank, Host: m.hello.Host, Why: why}
}

// addStatus adds how one worker stands.
func addStatus(s, x *session.Status) {
	s.Phase = cmp.Or(s.Phase, x.Phase)
	s.At, s.T0 = max(s.At, x.At), max(s.T0, x.T0)
	if s.T1 = max(s.T1, x.T1); x.T1 < 0 {
		s.T1 = x.T1
	}
	s.Sent, s.OK, s.Failed = s.Sent+x.Sent, s.OK+x.OK, s.Failed+x.Failed
	s.InFlight, s.Held, s.Chunks = s.InFlight+x.InFlight, s.Held+x.Held, s.Chunks+x.Chunks
}

// medianDuration is the median.
func medianDuration(x []time.Duration) time.Duration {
	if len(x) == 0 {
		return 0
	}
	slices.Sort(x)
	return x[(len(x)-1)/2]
}

// allLost says that none is left.
func allLost(members []*member) error {
	last := slices.MaxFunc(members, func(a, b *member) int { return cmp.Compare(a.lost.At, b.lost.At) })
	return &session.LostError{Rank: last.rank, Host: last.hello.Host, Why: last.lost.Why, All: len(members)}
}

// none is when the last worker ended of a load of which all were lost.
const none = math.MinInt64

// loadResult returns the course of the load over all workers. Where all were lost the window ends
// at the last report.
func (c *Coordinator) loadResult(s *sum, members []*member, w word) *session.Carried {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := &session.Carried{T0: s.t0, T1: s.t1, GaveUp: w.GaveUp, Ended: none, Notes: c.notes}
	c.notes = nil
	gone, ended := 0, 0
	for _, m := range members {
		out.Workers = append(out.Workers, m.describe())
		e := m.report.Ended
		if m.lost != nil || e == nil {
			out.Spent = append(out.Spent, session.Spent{})
			continue
		}
		out.Spent = append(out.Spent, e.Spent)
		ended++
		out.Ended, out.Begun = max(out.Ended, e.Ended), max(out.Begun, e.Begun)
		if w.Stop { // they did not stop at the same moment: all of them sent until the first did
			out.T1 = max(min(out.T1, e.T1), out.T0)
		}
		if e.Gone != nil {
			if gone++; out.Gone == nil || *e.Gone > *out.Gone {
				out.Gone = e.Gone
			}
		}
		for _, note := range e.Notes {
			out.Notes = append(out.Notes, fmt.Sprintf("worker %d: %s", m.rank, note))
		}
	}
	for _, m := range members {
		if ended == 0 {
			out.T1 = max(out.T1, int64(m.lost.SinceBegin()))
		}
	}
	if gone > 0 && gone < ended {
		out.Notes, out.Gone = append(out.Notes, fmt.Sprintf("%d of %s were refused every connection for a while and stopped sending", gone, say.Plural(len(members), "worker"))), nil
	}
	if out.T1 == loadgen.Never {
		out.T1 = out.Ended
	}
	if w.Cut > 0 {
		out.T1 = min(out.T1, max(w.Cut, out.T0))
	}
	return out
}
