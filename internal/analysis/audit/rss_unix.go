//go:build unix

package audit

import (
	"os"
	"runtime"
	"syscall"
)

// maxRSS is the largest resident set of a process that has ended, bytes.
func maxRSS(s *os.ProcessState) int64 {
	u, ok := s.SysUsage().(*syscall.Rusage)
	if !ok {
		return 0
	}
	if runtime.GOOS == "darwin" { // bytes there, kilobytes elsewhere
		return int64(u.Maxrss)
	}
	return int64(u.Maxrss) << 10
}
