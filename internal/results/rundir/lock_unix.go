//go:build unix

package rundir

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

func lock(f *os.File) { _ = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) }

// unlock takes effect at once. A close alone would not: a process that is being started has a
// copy of the file until it runs.
func unlock(f *os.File) { _ = unix.Flock(int(f.Fd()), unix.LOCK_UN) }

// Claim takes a file that no other process has, such as a journal whose writer has
// ended.
func Claim(path string) (release func(), err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("claim: %w", err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); errors.Is(err, unix.EWOULDBLOCK) {
		f.Close()
		return nil, fmt.Errorf("claim %s: %w", path, ErrLive)
	}
	return func() {
		unlock(f)
		f.Close()
	}, nil
}

// AppendOnly lets a file be written to at its end alone, wherever that is: if
// something else makes it shorter, no hole comes to be where it ended before.
func AppendOnly(f *os.File) {
	if flags, err := unix.FcntlInt(f.Fd(), unix.F_GETFL, 0); err == nil {
		_, _ = unix.FcntlInt(f.Fd(), unix.F_SETFL, flags|unix.O_APPEND)
	}
}

// noFollow makes an open fail on a symbolic link.
const noFollow = unix.O_NOFOLLOW
