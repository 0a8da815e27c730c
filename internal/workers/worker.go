package workers

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"pitot/internal/clock"
	"pitot/internal/config"
	"pitot/internal/results/record"
	"pitot/internal/results/result"
	"pitot/internal/results/rundir"
	"pitot/internal/say"
	"pitot/internal/session"
	"pitot/internal/workers/bus"
)

// Worker is a process that sends its share of the loads of one run.
type Worker struct {
	Runner  session.Runner
	URL     string
	Token   string
	Bus     config.Bus   // what the server is shown besides, and how long a run is waited for
	Index   *int         // its place in a job, which is then its rank; nil for any
	Dir     string       // an empty directory, for its journal
	Say     func(string) // shows a line
	Environ []string     // NAME=VALUE: the target's key is read from here, or from its file

	lease time.Duration // 0 for [leaseTime]
	host  string        // its name, "" to ask for it
	now   func() int64  // the clock whose distance from the coordinator's is estimated, nil for this process's

	conn bus.Conn
	kept bus.Streams // the connection too, where its journal goes over it
	id   runID
	rank int
	keep bool   // its journal, see welcome
	home bool   // what it recorded
	call string // by which the coordinator knows it, see hello
	hand *session.Hand
	news chan struct{} // there is something to report

	beside bool          // its journal is read where it is
	rests  chan struct{} // what is reported rests on what is written of it

	busy sync.Mutex // held while a share is made ready or begins, and while the journal is closed

	mu      sync.Mutex // guards what follows
	asking  window     // that it is being asked about
	broken  string     // why the journal cannot be sent
	written int64      // bytes of it
	offset  Offset
	word    word
	report  report
	stop    context.CancelFunc // of the load that goes on, nil without one
	heard   time.Time          // of the coordinator
	taken   bool               // its place is another worker's
	reports int64
	others  time.Duration // see [session.Hand]
}

// JobIndex is the variable that tells a pod of an Indexed Job of Kubernetes which it is.
const JobIndex = "JOB_COMPLETION_INDEX"

// Note begins a line on standard error that is no error.
const Note = "note: "

// pings are the round trips by which the clock's offset is estimated before a load.
const pings = 24

// Run joins and works until the run ends. That the journal stays, and where, it says where it
// did not come home.
func (w *Worker) Run(user context.Context) (err error) {
	ctx := user
	w.news, w.rests = make(chan struct{}, 1), make(chan struct{}, 1)
	w.lease = cmp.Or(w.lease, leaseTime)
	if w.now == nil {
		w.now = clock.Now
	}
	if err := w.join(ctx); err != nil {
		return err
	}
	defer w.conn.Close()
	w.Runner.Progress = (*told)(w)
	w.hand = &session.Hand{Runner: &w.Runner, Rank: w.rank, Dir: w.Dir, Copied: w.beside, Others: func() time.Duration {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.others
	}, Self: w.journalEntry}
	if err := w.hand.Open(); err != nil {
		return err
	}
	ctx, leave := context.WithCancelCause(ctx)
	defer leave(nil)
	ended := errors.New("the run has ended")
	var home int64 // of its journal, as far as it knows
	if err := w.conn.Hear(w.id.endSubject(), func(b []byte) {
		w.mu.Lock()
		defer w.mu.Unlock()
		if ctx.Err() != nil { // it is said again when a server ends
			return
		}
		said, err := decode[ending](b)
		if err == nil && w.rank < len(said.Home) {
			home = said.Home[w.rank]
		}
		if said.Stopped {
			leave(ErrStopped)
		}
		if said.GaveUp != "" {
			leave(fmt.Errorf("the run gave up: %s", said.GaveUp))
		}
		leave(ended)
	}); err != nil {
		return err
	}
	if err := w.conn.Hear(w.id.wordSubject(), func(b []byte) {
		if said, err := decode[word](b); err == nil {
			w.noteDecision(said)
		}
	}); err != nil {
		return err
	}
	if err := w.conn.Answer(w.id.prepareSubject(w.rank), func(b []byte) []byte { return encode(w.prepare(ctx, b)) }); err != nil {
		return err
	}
	if err := w.conn.Answer(w.id.beginSubject(w.rank), func(b []byte) []byte { return encode(w.beginShare(ctx, b)) }); err != nil {
		return err
	}
	var own sync.WaitGroup
	sending, stopSending := context.WithCancel(context.WithoutCancel(ctx))
	own.Go(func() {
		if w.beside {
			w.tellJournal(sending)
		} else {
			w.sendJournal(sending)
		}
	})
	w.keepReporting(ctx, leave)
	w.busy.Lock()
	defer w.busy.Unlock()
	w.halt()
	stopSending()
	own.Wait()
	if err := w.hand.Close(); err != nil {
		return err
	}
	journal := filepath.Join(w.Dir, rundir.Journal)
	w.mu.Lock()
	w.home = home >= w.hand.Journal().WrittenBytes()
	w.mu.Unlock()
	if cause := context.Cause(ctx); errors.Is(cause, ErrStopped) && w.home {
		return fmt.Errorf("worker %d stopped: %w", w.rank, cause)
	} else if !errors.Is(cause, ended) {
		if !w.HasRecorded() {
			return fmt.Errorf("worker %d stopped: %w", w.rank, cause)
		}
		if errors.Is(cause, errAlone) && w.keep && w.handOver(user, journal, cause) {
			w.home = true
			return nil
		}
		return fmt.Errorf("worker %d stopped: %w; its journal is %s", w.rank, cause, journal)
	}
	if w.HasRecorded() && !w.home {
		return fmt.Errorf("the run ended without all that worker %d recorded, which is in %s", w.rank, journal)
	}
	return nil
}

// ErrStopped says that the run was stopped by its user.
var ErrStopped = errors.New("the run was interrupted")

// HasRecorded says that it has sent requests, whose journal is in its directory.
func (w *Worker) HasRecorded() bool { return w.hand != nil && w.hand.Journal().WrittenBytes() > 0 }

// IsHome says, when it has ended, that the run has all that it recorded.
func (w *Worker) IsHome() bool { return w.home || !w.HasRecorded() }

// join asks the coordinator, until there is one.
func (w *Worker) join(ctx context.Context) error {
	within := cmp.Or(w.Bus.JoinTimeout, joinTime)
	ctx, cancel := context.WithTimeoutCause(ctx, within, errJoin)
	defer cancel()
	waited := false
	wait := func(what string, d time.Duration) {
		if !waited {
			w.Say(fmt.Sprintf("waiting for %s at %s, up to %s (join_timeout)", what, w.URL, say.Duration(within)))
		}
		waited = true
		select {
		case <-ctx.Done():
		case <-time.After(d):
		}
	}
	if w.host == "" {
		w.host, _ = os.Hostname()
	}
	w.call = rand.Text()
	h := encode(hello{Protocol: protocol, Build: BuildID(w.Runner.Version), Nonce: w.call, Host: w.host, Dir: w.Dir, PID: os.Getpid(), CPUs: runtime.GOMAXPROCS(0), Rank: w.Index})
	var last error // why it has not joined
	for ctx.Err() == nil {
		if w.conn == nil {
			conn, err := bus.Dial(access(w.URL, w.Token, &w.Bus))
			if err != nil {
				if last = err; errors.Is(err, bus.ErrRefused) || errors.Is(err, bus.ErrClosed) {
					break
				}
				wait("a server", time.Second)
				continue
			}
			w.conn = conn
		}
		asking, cancel := context.WithTimeout(ctx, 5*time.Second)
		answer, err := w.conn.Ask(asking, joining, h)
		cancel()
		if err == nil && len(answer) == 0 {
			err = errors.New("the run that is there has its workers")
		}
		if errors.Is(err, bus.ErrClosed) {
			w.conn.Close()
			return noBus(err)
		}
		if err != nil {
			last = err
			wait("a run", 200*time.Millisecond)
			continue
		}
		got, err := decode[welcome](answer)
		if err == nil && got.Refused != "" {
			err = say.Errorf("%s", got.Refused)
		}
		if err == nil && !got.Beside {
			w.kept, err = journalStreams(w.conn)
		}
		if w.id, w.rank, w.keep, w.beside = got.Run, got.Rank, got.Keep, got.Beside; err != nil {
			w.conn.Close()
			return err
		}
		w.Say(fmt.Sprintf("joined as worker %d of %d", w.rank, got.Of))
		return nil
	}
	if w.conn != nil {
		w.conn.Close()
	}
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, errJoin) {
		return cause
	}
	if w.conn != nil {
		return say.Errorf("no run at %s took this worker within %s (%v)", w.URL, say.Duration(within), last).WithHint("the run is started with --fleet 'nats://HOST:4222?workers=N', or with listen://; join_timeout=1h waits longer")
	}
	return noBus(cmp.Or(last, context.Cause(ctx)))
}

// errJoin is the end of the time for joining.
var errJoin = errors.New("the time to join is over")

// keepReporting tells how the load goes on until the run ends. A worker that does not hear of
// the coordinator for the time of its lease stops sending, and ends; once its window has ended
// as planned, it does so after a moment.
func (w *Worker) keepReporting(ctx context.Context, leave context.CancelCauseFunc) {
	w.mu.Lock()
	w.heard = time.Now()
	w.mu.Unlock()
	tick := time.NewTicker(reportEvery)
	defer tick.Stop()
	w.sendReport(ctx)
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
			return
		case <-w.news:
		case <-tick.C:
		}
		w.sendReport(ctx)
		w.mu.Lock()
		lease, taken := w.lease, w.taken
		if w.asking != (window{}) {
			lease = min(lease, endSilence)
		}
		alone := time.Since(w.heard) > lease
		w.mu.Unlock()
		if taken {
			leave(errors.New("it was not heard of for a while, and its place was given to another worker"))
		}
		if alone {
			leave(fmt.Errorf("%w for %s", errAlone, say.Duration(lease)))
		}
	}
}

// endSilence is the time for which a worker goes on without news from the coordinator after its
// window ended as planned. The coordinator may be dead, and a server that is paid for is not loaded
// for nothing.
const endSilence = tellTime + reportEvery

// errAlone is the error with which a worker stops that does not hear of its coordinator.
var errAlone = errors.New("nothing was heard of the coordinator")

// journalEntry is the worker as its journal has it.
func (w *Worker) journalEntry() result.Worker {
	w.mu.Lock()
	defer w.mu.Unlock()
	ahead, bound, _ := w.offset.At(w.now())
	return result.Worker{Rank: w.rank, Host: w.host, CPUs: runtime.GOMAXPROCS(0), Ahead: -float64(ahead) / 1e6, AheadBound: float64(bound) / 1e6, ClockSteps: w.offset.Steps}
}

// handOver waits, when the coordinator died, for one that goes on with the run, and gives it
// the journal. It reports whether that has it.
func (w *Worker) handOver(ctx context.Context, journal string, cause error) bool {
	file, err := os.Open(journal)
	if err != nil {
		return false
	}
	defer file.Close()
	is, err := file.Stat()
	if err != nil {
		return false
	}
	taken := make(chan struct{}, 1)
	if err := w.conn.Answer(w.id.leftSubject(w.rank), func(question []byte) []byte {
		q, err := decode[leftFrom](question)
		if err == nil && q.Here {
			select {
			case taken <- struct{}{}:
			default:
			}
			return encode(left{Size: is.Size()})
		}
		out := left{Size: is.Size()}
		if err == nil {
			out.Frames, err = record.ReadSealed(file, q.From, is.Size(), pieceSize)
		}
		if err != nil {
			out.Error = err.Error()
		}
		return encode(out)
	}); err != nil {
		return false
	}
	ctx, over := context.WithCancel(ctx)
	defer over()
	if err := w.conn.Hear(w.id.endSubject(), func([]byte) { over() }); err != nil { // it was cut off, and the run ended without it
		return false
	}
	within := cmp.Or(w.Bus.JoinTimeout, joinTime)
	w.Say(fmt.Sprintf("%v: its journal waits %s for pitot … --resume", cause, say.Duration(within)))
	select {
	case <-taken:
		w.kept.Drain(tellTime) // its answer is on its way
		w.Say("its journal was collected")
		return true
	case <-time.After(within):
	case <-ctx.Done():
	}
	return false
}

// sendReport reports once.
func (w *Worker) sendReport(ctx context.Context) {
	w.mu.Lock()
	r := w.report
	w.reports++
	r.Rank, r.Nonce, r.Number, r.CPU, r.Error = w.rank, w.call, w.reports, session.ProcessorTime(), cmp.Or(r.Error, w.broken)
	if w.beside {
		r.Written = w.written
	}
	r.Ahead, r.Bound, _ = w.offset.At(w.now())
	r.Ahead, r.Steps = -r.Ahead, w.offset.Steps
	w.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, tellTime)
	defer cancel()
	began := w.now()
	answer, err := w.conn.Ask(ctx, w.id.reportSubject(), encode(r))
	ended := w.now()
	if err != nil {
		return
	}
	said, err := decode[word](answer)
	if err != nil {
		return
	}
	w.mu.Lock()
	defer w.noteDecision(said)
	defer w.mu.Unlock()
	if w.heard = time.Now(); said.Taken {
		w.taken = true
		w.signalChange()
		return
	}
	w.offset.Add(began, ended, said.Clock)
	w.others = max(w.others, said.Others)
}

// noteDecision takes in what was decided.
func (w *Worker) noteDecision(said word) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if said.Load != w.report.Load {
		return
	}
	said.End, said.Final, said.Stop = max(said.End, w.word.End), said.Final || w.word.Final, said.Stop || w.word.Stop // one may have overtaken another
	if was := w.word.Cut; was > 0 && (said.Cut == 0 || was < said.Cut) {
		said.Cut = was
	}
	w.word = said
	if said.Stop && w.stop != nil {
		w.stop()
	}
}

// signalChange says that there is something to report.
func (w *Worker) signalChange() {
	select {
	case w.news <- struct{}{}:
	default:
	}
}

// prepare makes its share of a task ready.
func (w *Worker) prepare(ctx context.Context, question []byte) prepared {
	w.busy.Lock()
	defer w.busy.Unlock()
	s, err := decode[sharing](question)
	if err = cmp.Or(err, ctx.Err()); err == nil {
		config := filepath.Join(w.Dir, rundir.Config)
		if err = os.WriteFile(config, s.Task.Config, 0o600); err == nil {
			w.halt()
			err = w.hand.Prepare(ctx, &s.Task, config, w.Environ)
		}
	}
	if err != nil {
		return prepared{Error: err.Error(), Hint: say.HintOf(err)}
	}
	w.mu.Lock()
	w.report, w.word, w.asking = report{Load: s.Load}, word{Load: s.Load}, window{}
	w.offset.Steps = 0
	w.mu.Unlock()
	for range pings {
		w.sendReport(ctx)
	}
	return prepared{}
}

// beginShare sends the share that is ready.
func (w *Worker) beginShare(ctx context.Context, question []byte) prepared {
	w.busy.Lock()
	defer w.busy.Unlock()
	s, err := decode[start](question)
	if err = cmp.Or(err, ctx.Err()); err != nil {
		return prepared{Error: err.Error()}
	}
	w.mu.Lock()
	ahead, _, known := w.offset.At(w.now())
	w.mu.Unlock()
	if !known {
		return prepared{Error: "the coordinator's clock is not known"}
	}
	loading, stop := context.WithCancel(ctx)
	w.mu.Lock()
	if w.stop = stop; w.word.Stop {
		stop()
	}
	w.mu.Unlock()
	go func() {
		defer stop()
		w.runLoad(loading, s.Origin-ahead)
	}()
	return prepared{}
}

// runLoad sends, from a reading of the clock on.
func (w *Worker) runLoad(ctx context.Context, origin int64) {
	ended, err := w.hand.Carry(ctx, origin, session.Asks{Extend: w.requestExtension, GiveUp: w.giveUp, Cutoff: w.windowCutoff})
	w.mu.Lock()
	defer w.mu.Unlock()
	w.report.Ended, w.stop = ended, nil
	if err != nil {
		w.report.Error = err.Error()
	}
	w.restOn(w.hand.Journal().WrittenBytes())
}

// halt stops a load that goes on, and waits for its end.
func (w *Worker) halt() {
	for {
		w.mu.Lock()
		on := w.stop != nil
		if on {
			w.stop()
		}
		w.mu.Unlock()
		if !on {
			w.hand.Drop()
			return
		}
		time.Sleep(time.Millisecond) // what runs is being cut
	}
}

// requestExtension asks, as [loadgen.Config] does, and does not wait for the answer.
func (w *Worker) requestExtension(t0, t1 int64) (end int64, known bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch said := &w.word; {
	case said.Cut > 0 && said.Cut <= t1:
		return t1, true
	case said.End > t1:
		return said.End, true
	case said.Final && said.End == t1:
		return t1, true
	}
	if is := (window{t0, t1}); w.asking != is {
		w.asking = is
		go w.reportThrough(w.report.Load, is)
	}
	return 0, false
}

// windowCutoff is where the window ends since another worker was lost.
func (w *Worker) windowCutoff() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.word.Cut
}

// reportThrough reports that a window is through with, and what of the journal that rests on,
// unless another is asked about by then.
func (w *Worker) reportThrough(load int64, is window) {
	_ = w.hand.Journal().Flush() // its error ends the load
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.report.Load != load || w.asking != is || w.report.Ended != nil {
		return
	}
	w.report.Asks = &is
	w.restOn(w.hand.Journal().WrittenBytes())
}

// restOn has it reported, with what rests on it, how much of the journal is written. The caller
// holds w.mu.
func (w *Worker) restOn(written int64) {
	w.report.Bytes, w.written = written, max(w.written, written)
	w.signalChange()
	select {
	case w.rests <- struct{}{}:
	default:
	}
}

// giveUp reports how many requests are under way, and gives what was decided by then.
func (w *Worker) giveUp(elapsed int64, underWay []float64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.report.Looks = append(w.report.Looks[:len(w.report.Looks):len(w.report.Looks)], look{elapsed, append([]float64(nil), underWay...)})
	w.signalChange()
	return w.word.GaveUp
}

// told is a worker that is told how its load goes on.
type told Worker

// ShowLine implements [session.Progress].
func (w *told) ShowLine(line string) { w.Say(line) }

// Update implements [session.Progress].
func (w *told) Update(s session.Status) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.report.Status = &s
}

// A piece of a journal is sent when it is as large as that, or nothing more is written.
const pieceSize = 256 << 10

// sendJournal copies what is written of the journal to the bus until ctx is done: a piece as
// soon as there is one, and what there is at each tick and when what is reported rests on it.
// Where the bus stalls only this waits: the file is the truth. What does not pass it reports,
// and the load is stopped.
func (w *Worker) sendJournal(ctx context.Context) {
	file, err := os.Open(filepath.Join(w.Dir, rundir.Journal))
	if err != nil {
		w.reportFailure(err)
		return
	}
	defer file.Close()
	tick := time.NewTicker(reportEvery)
	defer tick.Stop()
	next := unsent{file: file}
	sent := time.Now() // or there was nothing to send
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.hand.Journal().GrowthSignal():
			if w.hand.Journal().WrittenBytes()-next.at < pieceSize {
				continue
			}
		case <-w.rests:
		case <-tick.C: // what the bus did not take is sent again
		}
		for {
			frames, err := next.read(w.hand.Journal().WrittenBytes())
			if err != nil {
				w.reportFailure(err)
				return
			}
			if frames == nil {
				sent = time.Now()
				break
			}
			within, cancel := context.WithTimeout(ctx, 5*time.Second)
			err = w.kept.Put(within, w.id.journalSubject(w.rank), fmt.Sprintf("%d-%d", w.rank, next.at), frames)
			cancel()
			if err != nil {
				if time.Since(sent) > w.lease {
					w.reportFailure(err) // and go on: it may pass for what was recorded
				}
				break
			}
			next.noteTaken()
			sent = time.Now()
		}
	}
}

// unsent is the part of a journal that the bus is not known to have.
type unsent struct {
	file  io.ReaderAt
	at    int64
	piece []byte // from there on, nil before it is read
}

// read gives the next piece of what is written, nil where there is none. Until it is known to be
// taken it is the same, however much is written by then: the bus may have it, and knows it by its
// place alone, so that a longer one would be taken for it.
func (u *unsent) read(written int64) (frames []byte, err error) {
	if u.piece == nil {
		u.piece, err = record.ReadSealed(u.file, u.at, written, pieceSize)
	}
	return u.piece, err
}

// noteTaken says that the bus has it.
func (u *unsent) noteTaken() { u.at, u.piece = u.at+int64(len(u.piece)), nil }

// tellJournal has it reported how much is written of the journal, which is read where it is:
// with each report, and at once where that is a piece.
func (w *Worker) tellJournal(ctx context.Context) {
	for told := int64(0); ; {
		select {
		case <-ctx.Done():
			return
		case <-w.hand.Journal().GrowthSignal():
		}
		at := w.hand.Journal().WrittenBytes()
		w.mu.Lock()
		w.written = max(w.written, at)
		w.mu.Unlock()
		if at-told >= pieceSize {
			told = at
			w.signalChange()
		}
	}
}

// reportFailure reports that the journal cannot be sent.
func (w *Worker) reportFailure(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.broken = fmt.Sprintf("send its journal: %v", err)
	w.signalChange()
}
