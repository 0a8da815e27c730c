package record

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"pitot/internal/results/rundir"
)

const (
	frameSize  = 256 << 10              // bytes of records after which a frame is closed
	frameAge   = 250 * time.Millisecond // time after which it is, so that a kill loses little
	queueLimit = 1024                   // closed frames that may wait for the disk: 256 MiB
)

// Journal is the append-only record of a run while it goes on. It is a
// [Sink]. All methods are safe for concurrent use.
//
// Records are encoded into a buffer under a lock; a goroutine writes the
// buffer out meanwhile, and another syncs what is written to the disk. After the
// first write error nothing more is taken: [Journal.Err] tells, and so does the
// journal itself, by a mark named [LostMark] at its end. Without it what is left
// would look like the journal of a run that was killed.
type Journal struct {
	mu     sync.Mutex // guards the fields below; never held during a write
	point  int32
	worker int32    // whose journal it is
	open   *batch   // takes records
	queue  []*batch // closed, in order, waiting to be written
	free   []*batch
	err    error         // why records are no longer taken
	failed chan struct{} // closed at the first error
	closed bool
	plan   []Mark        // repeated now and then
	since  time.Time     // when it was written first
	pause  time.Duration // until it is written again
	age    *time.Timer   // of the open batch, since its first record

	writing   sync.Mutex // held by the one who writes; taken before mu
	file      file
	dir       string // where it has its name, "" where it has none
	out       []byte
	frames    frameWriter  // of the end
	earlier   frameWriter  // of where the last whole frame begins
	broken    error        // the write that failed: its frame is cut short, none may follow
	before    int64        // where the last whole frame begins
	end       atomic.Int64 // and where it ends: read without writing too
	lazy      bool         // see [Journal.SyncAtEnd]
	lossNoted bool         // the journal says that records are missing

	wake    chan struct{} // for the flusher
	written chan struct{} // for the syncer
	grown   chan struct{} // see [Journal.GrowthSignal]
	stop    chan struct{}
	ended   sync.WaitGroup // both
}

// LostMark is the name of the mark that a journal ends with where further records
// could not be written.
const LostMark = "record_errors"

// ErrInterference is the error of a journal that something else deleted, moved or shortened
// while it was written.
var ErrInterference = errors.New("something else deleted, moved or shortened the journal while it was written")

// file has the methods that a journal needs of an [os.File].
type file interface {
	io.WriteCloser
	io.ReaderAt
	io.Seeker
	Stat() (os.FileInfo, error)
	Truncate(size int64) error
	Sync() error
}

// Create starts the journal of the run directory dir. A directory that
// already has records gives an error that is [fs.ErrExist]: it would
// otherwise replace them.
func Create(dir string) (*Journal, error) {
	requests := filepath.Join(dir, rundir.Requests)
	if _, err := os.Stat(requests); err == nil {
		return nil, fmt.Errorf("create journal next to %s: %w", requests, fs.ErrExist)
	}
	f, err := create(dir)
	if err != nil {
		return nil, err
	}
	return newJournal(f, dir), nil
}

// create makes the file.
func create(dir string) (*rundir.LockedFile, error) {
	opened, err := os.OpenFile(filepath.Join(dir, rundir.Journal), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return nil, fmt.Errorf("create journal: %w", err)
	}
	f := rundir.Lock(opened)
	rundir.AppendOnly(opened)
	if err := rundir.SyncDir(dir); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Reopen goes on with the records of a run that was killed or has ended: it
// writes a new journal of the frames that keep wants (it may change them), and takes further
// records behind them. The Parquet files, if that is where the records were,
// go when the journal is complete. A damaged journal stays, as [rundir.Damaged].
func Reopen(dir string, keep func(*Frame) bool) (*Journal, error) {
	path := filepath.Join(dir, rundir.Journal)
	created, err := rundir.CreateTemp(dir, rundir.Journal)
	if err != nil {
		return nil, fmt.Errorf("reopen journal: %w", err)
	}
	temp := created.Name()
	f := rundir.Lock(created) // stays with the file when that is renamed
	var frames frameWriter
	size, damaged, err := frames.copy(f, dir, keep)
	if err == nil {
		err = f.Sync()
	}
	if err == nil && damaged && hasJournal(dir) {
		_, err = rundir.KeepDamaged(dir)
	}
	if err == nil && runtime.GOOS == "windows" { // an open file cannot be renamed there
		err = f.Close()
	}
	if err == nil {
		err = rundir.PlaceFile(temp, dir, rundir.Journal)
	}
	if err == nil && runtime.GOOS == "windows" {
		if created, err = os.OpenFile(path, os.O_RDWR, 0o644); err == nil {
			f = rundir.Lock(created)
			_, err = f.Seek(size, io.SeekStart)
		}
	}
	if err == nil {
		err = rundir.SyncDir(dir)
	}
	for _, name := range fileNames() {
		if err == nil {
			if err = os.Remove(filepath.Join(dir, name)); errors.Is(err, fs.ErrNotExist) {
				err = nil
			}
		}
	}
	if err != nil {
		f.Close()
		os.Remove(temp)
		return nil, fmt.Errorf("reopen journal: %w", err)
	}
	rundir.AppendOnly(f.File)
	j := newJournal(f, dir)
	j.writing.Lock()
	defer j.writing.Unlock()
	j.before, j.frames = size, frames
	j.end.Store(size)
	return j, nil
}

// copy writes the frames of a directory that keep wants.
// damaged says that not all could be read.
func (w *frameWriter) copy(to io.Writer, dir string, keep func(*Frame) bool) (size int64, damaged bool, err error) {
	b := newBatch()
	var out []byte
	for f, err := range Frames(dir) {
		if err != nil {
			return size, damaged, err
		}
		damaged = damaged || isDamage(&f)
		if !keep(&f) {
			continue
		}
		b.reset(f.partKey())
		for i := range f.Chunks {
			b.addChunk(f.Chunks[i])
		}
		for i := range f.Rows {
			b.addRow(&f.Rows[i])
		}
		for _, s := range f.Samples {
			b.addSample(s)
		}
		for _, m := range f.Marks {
			b.addMark(m)
		}
		out = w.append(out[:0], b)
		n, err := to.Write(out)
		if size += int64(n); err != nil {
			return size, damaged, err
		}
	}
	return size, damaged, nil
}

func newJournal(f file, dir string) *Journal {
	j := &Journal{
		open:    newBatch(),
		file:    f,
		dir:     dir,
		failed:  make(chan struct{}),
		wake:    make(chan struct{}, 1),
		written: make(chan struct{}, 1),
		grown:   make(chan struct{}, 1),
		stop:    make(chan struct{}),
	}
	j.age = time.AfterFunc(frameAge, j.wakeFlusher)
	j.age.Stop()
	j.ended.Go(j.flushLoop)
	j.ended.Go(j.syncLoop)
	return j
}

func newBatch() *batch {
	// Room for the record that closes the frame, so that it does not grow.
	return &batch{chunks: make([]byte, 0, frameSize+1024)}
}

// SetPoint makes i the point of the rows and chunks that follow. Call it
// when the requests of the point before have all ended.
func (j *Journal) SetPoint(i int32) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.point = i
}

// SetWorker makes what follows the records of a worker, of several that load one point.
// Call it before the first record.
func (j *Journal) SetWorker(n int32) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.worker = n
}

// AddFrame takes the records of a frame of another journal, as those of its worker. The plan
// is this journal's own: of marks it takes those of records that are missing.
func (j *Journal) AddFrame(f *Frame) {
	j.mu.Lock()
	defer j.mu.Unlock()
	add := func(put func(*batch)) {
		if b := j.openBatch(f.partKey()); b != nil {
			put(b)
			j.sealFull()
		}
	}
	for i := range f.Chunks {
		add(func(b *batch) { b.addChunk(f.Chunks[i]) })
	}
	for i := range f.Rows {
		add(func(b *batch) { b.addRow(&f.Rows[i]) })
	}
	for _, s := range f.Samples {
		add(func(b *batch) { b.addSample(s) })
	}
	for _, m := range f.Marks {
		if m.Name == LostMark || m.Name == DamageMark {
			add(func(b *batch) { b.addMark(m) })
		}
	}
}

// Chunk takes a chunk of the current point.
func (j *Journal) Chunk(c Chunk) {
	j.mu.Lock()
	if b := j.openBatch(j.ownPart(j.point)); b != nil {
		b.addChunk(c)
		if len(b.chunks) >= frameSize {
			j.seal()
		}
	}
	j.mu.Unlock()
}

// Done takes the row of an ended request of the current point, whatever
// r.Point says: a row and its chunks are never apart.
func (j *Journal) Done(r *Row) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if b := j.openBatch(j.ownPart(j.point)); b != nil {
		b.addRow(r)
		j.sealFull()
	}
}

// AddSample takes a sample of the point it names.
func (j *Journal) AddSample(s Sample) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if b := j.openBatch(j.ownPart(s.Point)); b != nil {
		b.addSample(s)
		j.sealFull()
	}
}

// AddMark takes a mark of the point it names.
func (j *Journal) AddMark(m Mark) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if b := j.openBatch(j.ownPart(m.Point)); b != nil {
		b.addMark(m)
		j.sealFull()
	}
}

// AddPlan takes marks that say what was planned of the run and of the current point.
// Whatever else a damaged journal loses, without them nothing can be made of it: so
// they are written again after a second, two more, four more and so on, until
// another plan takes their place.
func (j *Journal) AddPlan(marks ...Mark) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.plan, j.since, j.pause = marks, time.Now(), firstPause
	j.writePlan()
}

// firstPause is after what time a plan is written again.
const firstPause = time.Second

// writePlan puts the plan into the open batch. The caller holds j.mu.
func (j *Journal) writePlan() {
	for _, m := range j.plan {
		if b := j.openBatch(j.ownPart(j.point)); b != nil {
			b.addMark(m)
		}
	}
}

// ownPart returns the part that records of this process belong to. The caller holds j.mu.
func (j *Journal) ownPart(point int32) part { return part{point, j.worker} }

// takesRecords says that records are taken. The caller holds j.mu.
func (j *Journal) takesRecords() bool {
	switch {
	case j.err != nil:
	case j.closed:
		j.err = fmt.Errorf("write journal: %w", fs.ErrClosed)
	case len(j.queue) >= queueLimit:
		j.err = errors.New("write journal: the disk does not keep up")
		j.setFailed()
	default:
		return true
	}
	return false
}

// openBatch gives the open batch for a record of a point and a worker, nil if records are no
// longer taken. The caller holds j.mu.
func (j *Journal) openBatch(of part) *batch {
	if !j.takesRecords() {
		return nil
	}
	if j.open.point != of.point || j.open.worker != of.worker {
		if j.open.size() > 0 {
			j.seal()
		}
		j.open.point, j.open.worker = of.point, of.worker
	}
	if j.open.size() == 0 {
		j.age.Reset(frameAge)
	}
	return j.open
}

func (j *Journal) sealFull() {
	if j.open.size() >= frameSize {
		j.seal()
	}
}

// planDue says that the plan is to be written again, with records of a point. The caller holds
// j.mu.
func (j *Journal) planDue(point int32) bool {
	return len(j.plan) > 0 && j.point >= 0 && point == j.point && time.Since(j.since) >= j.pause
}

// seal closes the open batch and opens another. The caller holds j.mu.
func (j *Journal) seal() {
	if j.planDue(j.open.point) {
		j.since, j.pause = j.since.Add(j.pause), 2*j.pause
		for _, m := range j.plan {
			j.open.addMark(m)
		}
	}
	j.queue = append(j.queue, j.open)
	of := part{j.open.point, j.open.worker}
	if n := len(j.free); n > 0 {
		j.open, j.free = j.free[n-1], j.free[:n-1]
	} else {
		j.open = newBatch()
	}
	j.open.reset(of)
	j.age.Stop()
	j.wakeFlusher()
}

// wakeFlusher has what there is written.
func (j *Journal) wakeFlusher() { wakeWaiter(j.wake) }

// checkEvery is the interval of checks of the file while nothing is written. Something else may
// have deleted it, or a full disk may have room for a [LostMark].
const checkEvery = time.Second

// flushLoop writes what there is when it is woken, and looks at the file now and then.
func (j *Journal) flushLoop() {
	tick := time.NewTicker(checkEvery)
	defer tick.Stop()
	for {
		select {
		case <-j.stop:
			return
		case <-tick.C:
		case <-j.wake:
		}
		j.Flush()
	}
}

// syncAge is the shortest interval between two syncs of the written data to the disk.
const syncAge = 250 * time.Millisecond

// SyncAtEnd leaves it to the system when what is written comes to the disk, until the journal is
// closed: of one whose frames are copied, as they are written, to another that is synced.
func (j *Journal) SyncAtEnd() {
	j.writing.Lock()
	defer j.writing.Unlock()
	j.lazy = true
}

// syncLoop brings what was written to the disk, so that a machine that loses its
// power loses no more than a kill does and what the disk was busy with. It has a
// goroutine of its own: where a disk takes long only it waits, while records go on
// being taken, and written as far as the system lets them.
func (j *Journal) syncLoop() {
	var last time.Time // when it did
	for {
		select {
		case <-j.stop:
			return
		case <-j.written:
		}
		if wait := syncAge - time.Since(last); wait > 0 {
			select {
			case <-j.stop:
				return
			case <-time.After(wait):
			}
		}
		if err := j.file.Sync(); err != nil {
			j.mu.Lock()
			if j.err == nil { // what the disk refused once it may have thrown away
				j.err = fmt.Errorf("sync journal: %w", err)
				j.setFailed()
			}
			j.mu.Unlock()
		}
		last = time.Now()
	}
}

// Offset writes everything taken before it and gives the place in the journal
// where what is taken from now on begins, for [FramesSince].
func (j *Journal) Offset() (int64, error) {
	err := j.Flush()
	j.writing.Lock()
	defer j.writing.Unlock()
	return j.end.Load(), err
}

// Flush writes everything taken before it and returns the journal's error.
func (j *Journal) Flush() error {
	j.writing.Lock()
	defer j.writing.Unlock()
	j.checkFile()

	j.mu.Lock()
	if j.open.size() > 0 {
		j.seal()
	}
	queue := j.queue
	j.queue = nil
	j.mu.Unlock()

	for _, b := range queue {
		if j.broken == nil {
			j.broken = j.write(b)
		}
	}

	j.mu.Lock()
	if j.err == nil && j.broken != nil {
		j.err = j.broken
		j.setFailed()
	}
	of := part{max(j.point, 0), j.worker} // a mark of no point would be of none that is judged
	lost := j.err != nil && !errors.Is(j.err, fs.ErrClosed)
	j.mu.Unlock()
	if lost && !j.lossNoted {
		j.writeLostMark(of)
	}

	j.mu.Lock()
	defer j.mu.Unlock()
	const keep = 4
	for _, b := range queue {
		if len(j.free) < keep && b.whole == nil {
			j.free = append(j.free, b)
		}
	}
	return j.err
}

// checkFile notes that the file is no longer what was written, under its name. The caller holds
// j.writing.
func (j *Journal) checkFile() {
	info, err := j.file.Stat()
	if err != nil || j.broken != nil {
		return // a disk in trouble: the next write tells
	}
	gone := info.Size() < j.end.Load()
	if j.dir != "" {
		named, err := os.Stat(filepath.Join(j.dir, rundir.Journal))
		gone = gone || err == nil && !os.SameFile(info, named) || errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
	}
	if gone {
		j.broken = ErrInterference
	}
}

// write writes one frame. The caller holds j.writing.
func (j *Journal) write(b *batch) error {
	frames := j.frames
	j.out = frames.append(j.out[:0], b)
	if _, err := j.file.Write(j.out); err != nil {
		return fmt.Errorf("write journal: %w", err)
	}
	j.before = j.end.Load()
	j.end.Store(j.before + int64(len(j.out)))
	j.earlier, j.frames = j.frames, frames
	wakeWaiter(j.grown)
	if !j.lazy {
		wakeWaiter(j.written)
	}
	return nil
}

// wakeWaiter wakes who waits for a channel, or will.
func wakeWaiter(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default: // it has been woken already
	}
}

// GrowthSignal tells one who copies the journal that it was written to, once for however often.
func (j *Journal) GrowthSignal() <-chan struct{} { return j.grown }

// writeLostMark writes the mark that says that records are missing, in the place of
// the frame that was cut short. Where a full disk has no room even for that,
// the last whole frame gives way. The caller holds j.writing.
func (j *Journal) writeLostMark(of part) {
	b := &batch{point: of.point, worker: of.worker}
	b.addMark(Mark{Point: b.point, Name: LostMark})
	for _, from := range [...]struct {
		at     int64
		frames frameWriter
	}{{j.end.Load(), j.frames}, {j.before, j.earlier}} {
		if j.file.Truncate(from.at) != nil {
			return
		}
		if _, err := j.file.Seek(from.at, io.SeekStart); err != nil {
			return
		}
		j.end.Store(from.at)
		j.frames = from.frames
		if j.write(b) == nil {
			j.lossNoted = true
			return
		}
	}
}

// Err gives the first error, from which on records were not taken.
func (j *Journal) Err() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.err
}

// Failed is closed at the first error: what is measured from then on is not worth
// going on for.
func (j *Journal) Failed() <-chan struct{} { return j.failed }

// setFailed says so. The caller holds j.mu.
func (j *Journal) setFailed() {
	select {
	case <-j.failed:
	default:
		close(j.failed)
	}
}

// Close writes what is left, brings it to the disk and closes the file. It
// returns the journal's error. A second Close does nothing.
func (j *Journal) Close() error {
	j.mu.Lock()
	again := j.closed
	j.closed = true
	j.mu.Unlock()
	if again {
		return j.Err()
	}
	close(j.stop)
	j.ended.Wait()
	_ = j.Flush()
	j.writing.Lock()
	defer j.writing.Unlock()
	err := j.Err()
	if syncErr := j.file.Sync(); err == nil && syncErr != nil {
		err = fmt.Errorf("sync journal: %w", syncErr)
	}
	if closeErr := j.file.Close(); err == nil && closeErr != nil {
		err = fmt.Errorf("close journal: %w", closeErr)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.err == nil {
		j.err = err
	}
	return err
}
