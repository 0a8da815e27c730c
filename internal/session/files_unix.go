//go:build unix

package session

import (
	"math"
	"syscall"
)

// fileLimit returns the number of descriptors that this process may have open.
func fileLimit() (n int, ok bool) {
	var l syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l) != nil || uint64(l.Cur) > math.MaxInt32 {
		return 0, false
	}
	return int(l.Cur), true
}
