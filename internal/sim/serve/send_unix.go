//go:build unix

package serve

import "syscall"

// send tries once to write p to a non-blocking socket. failed says that there
// is no use in trying again.
func send(fd uintptr, p []byte) (n int, failed bool) {
	for {
		n, err := syscall.Write(int(fd), p)
		switch err {
		case nil:
			return n, false
		case syscall.EINTR:
			continue
		case syscall.EAGAIN:
			return 0, false
		default:
			return 0, true
		}
	}
}
