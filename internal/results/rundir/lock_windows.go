package rundir

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/windows"
)

// A lock keeps others from reading what it covers here, so it covers one byte
// far behind all that a journal will ever hold.
func beyond() *windows.Overlapped { return &windows.Overlapped{OffsetHigh: 1 << 30} }

const atOnce = windows.LOCKFILE_EXCLUSIVE_LOCK | windows.LOCKFILE_FAIL_IMMEDIATELY

func lock(f *os.File) { _ = windows.LockFileEx(windows.Handle(f.Fd()), atOnce, 0, 1, 0, beyond()) }

func unlock(*os.File) {} // closing does it

// Claim takes a file that no other process has, such as a journal whose writer has
// ended. It may be removed while it is claimed, which an [os.File] would forbid.
func Claim(path string) (release func(), err error) {
	name, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return nil, fmt.Errorf("claim: %w", err)
	}
	h, err := windows.CreateFile(name, windows.GENERIC_READ,
		windows.FILE_SHARE_READ|windows.FILE_SHARE_WRITE|windows.FILE_SHARE_DELETE, nil, windows.OPEN_EXISTING, windows.FILE_ATTRIBUTE_NORMAL, 0)
	if err != nil {
		return nil, fmt.Errorf("claim: %w", &os.PathError{Op: "open", Path: path, Err: err})
	}
	if err := windows.LockFileEx(h, atOnce, 0, 1, 0, beyond()); errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		_ = windows.CloseHandle(h)
		return nil, fmt.Errorf("claim %s: %w", path, ErrLive)
	}
	return func() { _ = windows.CloseHandle(h) }, nil
}

// noFollow: creating a file that must not be there follows no link.
const noFollow = 0

// AppendOnly does nothing: Windows would neither lock nor truncate such a file.
func AppendOnly(*os.File) {}
