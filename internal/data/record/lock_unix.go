//go:build unix

package record

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// ErrLive says that a run is still going on: its journal belongs to the
// process that writes it.
var ErrLive = errors.New("the run is still going on")

// lock keeps other processes from finishing a journal that is being written.
// The kernel takes the lock back with the file, however the process ends.
func lock(f *os.File) { _ = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) }

// claim takes a file that no other process has, such as a journal whose writer has
// ended.
func claim(path string) (release func(), err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("claim: %w", err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); errors.Is(err, unix.EWOULDBLOCK) {
		f.Close()
		return nil, fmt.Errorf("claim %s: %w", path, ErrLive)
	}
	return func() { f.Close() }, nil
}
