package clock

import (
	"io"
	"net"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Kernel says whether this platform stamps what arrives.
const Kernel = true

// Receiver reads a TCP socket with recvmsg and gives each read the kernel's
// receive stamp. It must be used by one goroutine at a time.
type Receiver struct {
	raw     syscall.RawConn
	stamped bool // the socket has timestamping on
	read    func(fd uintptr) bool
	hdr     unix.Msghdr
	iov     unix.Iovec
	ctl     [128]byte

	// of the last read
	n     int
	left  int // bytes still queued, unknownLeft if the kernel does not say
	errno syscall.Errno
	now   time.Time
	last  int64 // the latest stamp given
	buf   []byte
}

// NewReceiver turns the kernel's receive stamps on for a TCP connection. It
// gives nil for anything that has none.
func NewReceiver(c net.Conn) *Receiver {
	tcp, ok := c.(*net.TCPConn)
	if !ok {
		return nil
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return nil
	}
	r := &Receiver{raw: raw}
	err = raw.Control(func(fd uintptr) {
		flags := unix.SOF_TIMESTAMPING_RX_SOFTWARE | unix.SOF_TIMESTAMPING_SOFTWARE
		r.stamped = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_TIMESTAMPING_NEW, flags) == nil
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_INQ, 1) // without it, Run reads once more
	})
	if err != nil || !r.stamped {
		return nil
	}
	r.hdr.Iov = &r.iov
	r.hdr.Iovlen = 1
	r.hdr.Control = &r.ctl[0]
	r.read = r.recv
	return r
}

// recv is one recvmsg; false asks the poller to wait.
func (r *Receiver) recv(fd uintptr) bool {
	r.iov.Base = &r.buf[0]
	r.iov.SetLen(len(r.buf))
	r.hdr.SetControllen(len(r.ctl))
	r.hdr.Flags = 0
	for {
		// The socket does not block, so the scheduler need not be told.
		n, _, errno := syscall.RawSyscall(syscall.SYS_RECVMSG, fd, uintptr(unsafe.Pointer(&r.hdr)), 0)
		switch errno {
		case syscall.EINTR:
			continue
		case syscall.EAGAIN:
			return false
		}
		r.now = time.Now()
		r.n, r.errno = int(n), errno
		return true
	}
}

// Read fills p and gives the time the bytes arrived: by the kernel's stamp
// where kernel is true, by this process's clock where it is false. When
// several segments were read at once the stamp is that of the last. Stamps of
// one socket never go back.
func (r *Receiver) Read(p []byte) (n int, at int64, kernel bool, err error) {
	r.buf = p
	if err := r.raw.Read(r.read); err != nil {
		return 0, Now(), false, err
	}
	at, kernel, err = r.result()
	return r.n, at, kernel, err
}

// result interprets the last recvmsg.
func (r *Receiver) result() (at int64, kernel bool, err error) {
	at, r.left = Of(r.now), unknownLeft
	switch {
	case r.errno != 0:
		r.n, err = 0, r.errno
	case r.n == 0:
		err = io.EOF
	default:
		if wall := r.control(); wall != 0 {
			if mono, ok := FromWall(r.now, wall); ok {
				at, kernel = mono, true
			}
		}
	}
	// The wall clock is set against the monotonic one anew at each read, to
	// within tens of nanoseconds: without this the rest of a segment could
	// seem to arrive before its beginning.
	at = max(at, r.last)
	r.last = at
	return at, kernel, err
}

// Run reads into p again and again and hands each read to take, until take
// returns false or an error has been handed to it. more says that bytes which
// were there at the time of the read are still queued.
//
// A plain loop over Read needs two system calls for each arrival, for the
// second one has to find out that there is nothing more. Here the kernel says
// with each read how much is left (TCP_INQ), so that the second is spared. A
// close counts as something left; only a reset that arrives together with
// data goes unseen until the socket is looked at again, see Conn.watch in
// package wire.
func (r *Receiver) Run(p []byte, take func(n int, at int64, kernel, more bool, err error) bool) {
	r.buf = p
	stopped := false
	err := r.raw.Read(func(fd uintptr) bool {
		for r.recv(fd) {
			at, kernel, err := r.result()
			more := r.left > 0
			if r.left == unknownLeft {
				more = r.n == len(p)
			}
			if stopped = !take(r.n, at, kernel, more, err) || err != nil; stopped {
				return true
			}
			if r.left == 0 {
				return false
			}
		}
		return false
	})
	if err != nil && !stopped {
		take(0, Now(), false, false, err)
	}
}

// unknownLeft says that the kernel did not tell how much is left.
const unknownLeft = -1

// control takes the stamp and the number of bytes left out of the control
// messages. A stamp is three pairs of 64-bit seconds and nanoseconds, of
// which the first is the software one; it is 0 if there is none.
func (r *Receiver) control() (stamp int64) {
	b := r.ctl[:r.hdr.Controllen]
	const head, body = unix.SizeofCmsghdr, 48
	for len(b) >= head {
		h := (*unix.Cmsghdr)(unsafe.Pointer(&b[0]))
		if h.Len < head || uint64(h.Len) > uint64(len(b)) {
			break
		}
		switch {
		case h.Level == unix.SOL_SOCKET && h.Type == unix.SO_TIMESTAMPING_NEW && h.Len >= head+body:
			ts := (*[2]int64)(unsafe.Pointer(&b[head]))
			stamp = ts[0]*1e9 + ts[1]
		case h.Level == unix.IPPROTO_TCP && h.Type == unix.TCP_INQ && h.Len >= head+4: // TCP_CM_INQ
			r.left = int(*(*int32)(unsafe.Pointer(&b[head])))
		}
		next := (int(h.Len) + 7) &^ 7
		if next >= len(b) {
			break
		}
		b = b[next:]
	}
	return stamp
}

// Prime makes the kernel stamp packets: it only starts to once a socket asks
// for stamps, a moment later, so the very first reads of a process would have
// none. Call it once before measuring; the result keeps the stamps on until
// it is closed.
func Prime() io.Closer {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return io.NopCloser(nil)
	}
	if tl, ok := l.(*net.TCPListener); ok {
		if raw, err := tl.SyscallConn(); err == nil {
			_ = raw.Control(func(fd uintptr) {
				flags := unix.SOF_TIMESTAMPING_RX_SOFTWARE | unix.SOF_TIMESTAMPING_SOFTWARE
				_ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_TIMESTAMPING_NEW, flags)
			})
		}
	}
	return l
}
