package record

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"pitot/internal/data/rundir"
)

// Something else may delete, move or shorten a journal while it is written: a
// job that cleans up, a container's volume, a mistaken rm. A process would go on
// writing into a file without a name and lose all of it at its end. So the
// journal is looked at with every write. What was measured until then is saved,
// and the journal's error tells its owner to stop: a measurement that something
// interferes with is not to be trusted, however little it lost.

// InterferenceError says that something else deleted, moved or shortened the
// journal while it was written.
type InterferenceError struct {
	From string // directory it was deleted or moved from, "" if it was made shorter
	Dir  string // directory that has the records now
	Lost int64  // bytes that were cut off
	Err  error  // why the records could not be saved, nil if they are in Dir
}

func (e *InterferenceError) Error() string {
	switch {
	case e.From == "":
		return fmt.Sprintf("the journal in %s was made shorter by something else while it was written: %d bytes are gone, the rest is kept", e.Dir, e.Lost)
	case e.Err != nil:
		return fmt.Sprintf("the records in %s were deleted or moved while they were written, and cannot be saved: %v", e.From, e.Err)
	case e.From == e.Dir:
		return fmt.Sprintf("the records in %s were deleted or moved while they were written: what was measured until then is there again", e.Dir)
	}
	return fmt.Sprintf("the records in %s were deleted or moved while they were written: what was measured until then is in %s", e.From, e.Dir)
}

// Unwrap gives why the records could not be saved.
func (e *InterferenceError) Unwrap() error { return e.Err }

// inspect looks whether the file is still what was written, under its name, and
// puts right what it can. The caller holds j.writing.
func (j *Journal) inspect() {
	if j.broken != nil {
		return
	}
	info, err := j.file.Stat()
	if err != nil {
		return // a disk in trouble: the next write tells
	}
	if size, end := info.Size(), j.end.Load(); size < end {
		j.disturbed(&InterferenceError{Dir: j.dir, Lost: end - size})
		// What follows stands behind what is left. The header of the next frame counts
		// what came before it: so the loss is known exactly.
		if _, err := j.file.Seek(size, io.SeekStart); err != nil {
			j.broken = fmt.Errorf("write journal: %w", err)
			return
		}
		j.before, j.earlier = size, j.frames // a frame may be there already
		j.end.Store(size)
		j.leaveMark()
	}
	if j.dir == "" {
		return
	}
	named, err := os.Stat(filepath.Join(j.dir, rundir.Journal))
	if err == nil && os.SameFile(info, named) || err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) {
		return
	}
	e := &InterferenceError{From: j.dir}
	if e.Dir, e.Err = j.save(); e.Err != nil {
		j.broken = e
	}
	j.disturbed(e)
	if e.Err == nil {
		j.leaveMark()
	}
}

// disturbed notes the first interference.
func (j *Journal) disturbed(e *InterferenceError) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.interference == nil {
		j.interference = e
		j.fail()
	}
}

// leaveMark lets the journal itself say that it is not to be trusted, and again
// what was planned, which may have been cut off.
func (j *Journal) leaveMark() {
	j.mu.Lock()
	b := &batch{point: max(j.point, 0)} // a mark of no point would be of none that is judged
	if j.point >= 0 {                   // the plan is of the point before what is asked besides
		for _, m := range j.plan {
			b.mark(m)
		}
	}
	j.mu.Unlock()
	b.mark(Mark{Point: b.point, Name: LostMark, Data: []byte(interfered)})
	j.broken = j.write(b)
}

// interfered is the data of a [LostMark] that something else is to blame for. It is
// empty where records could not be written.
const interfered = `{"version":2,"why":"interference"}`

// Interfered says that a [LostMark] is there because something else deleted, moved
// or shortened the journal.
func Interfered(m *Mark) bool { return m.Name == LostMark && string(m.Data) == interfered }

// save copies what was written, which this process can still read, to where its
// name was, or if that cannot be, to a directory of its own among the temporary
// files. It goes on in the copy.
func (j *Journal) save() (dir string, err error) {
	dir = j.dir
	file, err := j.saveIn(dir)
	if err != nil {
		if temp, e := os.MkdirTemp("", "pitot-run-"); e == nil {
			if file, e = j.saveIn(temp); e != nil {
				os.Remove(temp)
				return "", errors.Join(err, e)
			}
			dir, err = temp, nil
		}
	}
	if err != nil {
		return "", err
	}
	j.mu.Lock()
	j.file, j.dir, file = file, dir, j.file
	j.mu.Unlock()
	_ = file.Close()
	return dir, nil
}

// saveIn makes the copy. It never replaces a run that another has begun there.
func (j *Journal) saveIn(dir string) (_ file, err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	if rundir.Look(dir) >= rundir.Measured {
		return nil, fmt.Errorf("save records in %s: %w", dir, fs.ErrExist)
	}
	f, err := create(dir)
	if err != nil {
		return nil, err
	}
	_, err = io.Copy(f, io.NewSectionReader(j.file, 0, j.end.Load()))
	if err == nil {
		err = f.Sync()
	}
	if err != nil {
		f.Close()
		os.Remove(f.Name())
		return nil, err
	}
	return f, nil
}
