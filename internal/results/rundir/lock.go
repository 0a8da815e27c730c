package rundir

import (
	"errors"
	"os"
	"path/filepath"
)

// ErrLive says that a run is still going on: its files belong to the process
// that writes them.
var ErrLive = errors.New("the run is still going on")

// LockedFile is a file that no other process claims until it is closed.
type LockedFile struct{ *os.File }

// Lock keeps other processes from finishing a journal that is being written.
// The system takes the lock back with the file, however the process ends.
func Lock(f *os.File) *LockedFile {
	lock(f)
	return &LockedFile{f}
}

// Close unlocks and closes the file.
func (f *LockedFile) Close() error {
	unlock(f.File)
	return f.File.Close()
}

// LockDir takes a run directory for this process alone, until it is released or the
// process ends, however it does. Another that has it gives [ErrLive]. What is
// locked is the plan, which every run's directory has and none changes; nothing is
// written, and whoever reads it can go on.
func LockDir(dir string) (release func(), err error) { return Claim(filepath.Join(dir, Config)) }

// CheckLive gives [ErrLive] if the journal of a run directory is still being
// written.
func CheckLive(dir string) error {
	if !hasFile(dir, Journal) {
		return nil
	}
	release, err := Claim(filepath.Join(dir, Journal))
	if err != nil {
		return err
	}
	release()
	return nil
}
