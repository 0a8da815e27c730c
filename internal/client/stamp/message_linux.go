package stamp

import (
	"pitot/internal/clock"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// message is one recvmsg call's arguments and results, used again and again
// so that a read allocates nothing.
type message struct {
	hdr unix.Msghdr
	iov unix.Iovec
	ctl [128]byte
}

// receive is one system call, begun again when a signal interrupts it. The
// socket must not block, so the scheduler need not know.
func (m *message) receive(fd uintptr, p *byte, size int, flags uintptr) (int, syscall.Errno) {
	m.iov.Base = p
	m.iov.SetLen(size)
	m.hdr.Iov, m.hdr.Iovlen, m.hdr.Control = &m.iov, 1, &m.ctl[0]
	for {
		m.hdr.SetControllen(len(m.ctl))
		m.hdr.Flags = 0
		n, _, errno := syscall.RawSyscall(syscall.SYS_RECVMSG, fd, uintptr(unsafe.Pointer(&m.hdr)), flags)
		if errno != syscall.EINTR {
			return int(n), errno
		}
	}
}

// stamp takes the kernel's stamp, wall-clock nanoseconds, out of the control
// messages: three pairs of 64-bit seconds and nanoseconds, of which the first
// is the software one. It is 0 if there is none.
func (m *message) stamp() int64 {
	const head, body = unix.SizeofCmsghdr, 48
	for b := m.ctl[:m.hdr.Controllen]; len(b) >= head+body; {
		h := (*unix.Cmsghdr)(unsafe.Pointer(&b[0]))
		if h.Level == unix.SOL_SOCKET && h.Type == unix.SO_TIMESTAMPING_NEW && h.Len >= head+body {
			ts := (*[2]int64)(unsafe.Pointer(&b[head]))
			return ts[0]*1e9 + ts[1]
		}
		next := (int(h.Len) + 7) &^ 7
		if next < head || next >= len(b) {
			break
		}
		b = b[next:]
	}
	return 0
}

// askForStamps turns the kernel's receive stamps on for a socket.
func askForStamps(fd uintptr) error {
	flags := unix.SOF_TIMESTAMPING_RX_SOFTWARE | unix.SOF_TIMESTAMPING_SOFTWARE
	return unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_TIMESTAMPING_NEW, flags)
}

// stamps are the times of one socket's reads. They never go back: the wall
// clock is set against the monotonic one again at each reading of both, to
// within tens of nanoseconds, so that without this the rest of a segment could
// seem to arrive before its beginning.
type stamps struct{ last int64 }

// timeOf gives the arrival of a kernel stamp (0 for none), or the present where it
// cannot be right. now is a recent reading of the clocks.
func (s *stamps) timeOf(stamp int64, now time.Time) (a Arrival) {
	if stamp != 0 {
		a.Time, a.Kernel = clock.FromWall(now, stamp)
		if !a.Kernel { // now may be from before the bytes came
			a.Time, a.Kernel = clock.FromWall(time.Now(), stamp)
		}
	}
	if !a.Kernel {
		a.Time = clock.Now()
	}
	s.last = max(s.last, a.Time)
	a.Time = s.last
	return a
}
