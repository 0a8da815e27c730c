package clock

import (
	"io"
	"net"
	"sync"
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
	raw   syscall.RawConn
	scout *Scout  // nil: none looks at this socket early
	fd    uintptr // as the scout knows it
	read  func(fd uintptr) bool
	peek  func(fd uintptr)

	// buf is read into; the rest tells of the last read.
	buf    []byte
	n      int
	left   int // bytes still queued, unknownLeft if the kernel does not say
	at     int64
	kernel bool
	err    error
	early  []mark // of its beginning, by a scout

	queue sync.Mutex // guards what follows: a scout looks while another reads
	hdr   unix.Msghdr
	iov   unix.Iovec
	ctl   [128]byte
	off   int64  // bytes read so far
	last  int64  // the latest stamp given
	marks []mark // of bytes behind off
}

// mark says that the bytes before end, counted from the socket's first, had
// arrived by a time.
type mark struct{ end, at int64 }

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
	stamped := false
	err = raw.Control(func(fd uintptr) {
		flags := unix.SOF_TIMESTAMPING_RX_SOFTWARE | unix.SOF_TIMESTAMPING_SOFTWARE
		stamped = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_TIMESTAMPING_NEW, flags) == nil
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_INQ, 1) // without it, Run reads once more
	})
	if err != nil || !stamped {
		return nil
	}
	r.hdr.Iov = &r.iov
	r.hdr.Iovlen = 1
	r.hdr.Control = &r.ctl[0]
	r.read, r.peek = r.recv, r.mark
	return r
}

// recv reads what is there; false asks the poller to wait.
func (r *Receiver) recv(fd uintptr) bool {
	r.queue.Lock()
	defer r.queue.Unlock()
	n, errno := r.recvmsg(fd, &r.buf[0], len(r.buf), 0)
	if errno == syscall.EAGAIN {
		return false
	}
	r.n, r.left, r.kernel, r.err = n, unknownLeft, false, nil
	r.early = r.early[:0]
	now := time.Now()
	switch {
	case errno != 0:
		r.n, r.err = 0, errno
		r.at = r.forward(Of(now))
	case n == 0:
		r.err = io.EOF
		r.at = r.forward(Of(now))
	default:
		r.off += int64(n)
		for len(r.marks) > 0 && r.marks[0].end < r.off {
			r.early = append(r.early, r.marks[0])
			r.marks = append(r.marks[:0], r.marks[1:]...)
		}
		if len(r.marks) > 0 && r.marks[0].end == r.off {
			r.marks = r.marks[:0] // the read's own stamp is the same
		}
		r.at, r.kernel, r.left = r.stamp(now)
	}
	return true
}

// mark notes what is queued and when the last of it arrived, and leaves it
// there.
func (r *Receiver) mark(fd uintptr) {
	r.queue.Lock()
	defer r.queue.Unlock()
	var none [1]byte // with MSG_TRUNC nothing is copied (tcp(7))
	n, errno := r.recvmsg(fd, &none[0], 1<<30, unix.MSG_PEEK|unix.MSG_TRUNC|unix.MSG_DONTWAIT)
	if errno != 0 || n <= 0 || len(r.marks) == maxMarks {
		return
	}
	if at, kernel, _ := r.stamp(time.Now()); kernel {
		r.marks = append(r.marks, mark{r.off + int64(n), at})
	}
}

// recvmsg is one system call, begun again when a signal interrupts it.
func (r *Receiver) recvmsg(fd uintptr, p *byte, size int, flags uintptr) (int, syscall.Errno) {
	r.iov.Base = p
	r.iov.SetLen(size)
	for {
		r.hdr.SetControllen(len(r.ctl))
		r.hdr.Flags = 0
		// The socket does not block, so the scheduler need not be told.
		n, _, errno := syscall.RawSyscall(syscall.SYS_RECVMSG, fd, uintptr(unsafe.Pointer(&r.hdr)), flags)
		if errno != syscall.EINTR {
			return int(n), errno
		}
	}
}

// stamp gives the time of the last recvmsg's bytes, now where the kernel has
// none that can be right, and how much is left.
func (r *Receiver) stamp(now time.Time) (at int64, kernel bool, left int) {
	wall, left := r.control()
	if wall != 0 {
		if at, ok := FromWall(now, wall); ok {
			return r.forward(at), true, left
		}
	}
	return r.forward(Of(now)), false, left
}

// forward keeps the stamps of a socket from going back. The wall clock is set
// against the monotonic one anew at each read, to within tens of nanoseconds:
// without this the rest of a segment could seem to arrive before its
// beginning.
func (r *Receiver) forward(at int64) int64 {
	r.last = max(r.last, at)
	return r.last
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
	return r.n, r.at, r.kernel, r.err
}

// Run reads into p again and again and hands what it read to take, until take
// returns false or an error has been handed to it. more says that bytes which
// were there at the time of the read are still queued. A read of which a
// [Scout] saw the beginning arrive is handed on in as many pieces.
//
// A plain loop over Read needs two system calls for each arrival, for the
// second one has to find out that there is nothing more. Here the kernel says
// with each read how much is left (TCP_INQ), so that the second is spared. A
// close counts as something left; only a reset that arrives together with
// data goes unseen until the socket is looked at again, see Conn.watch in
// package wire.
func (r *Receiver) Run(p []byte, take func(b []byte, at int64, kernel, more bool, err error) bool) {
	r.buf = p
	stopped := false
	err := r.raw.Read(func(fd uintptr) bool {
		for {
			r.scout.look()
			if !r.recv(fd) {
				return false
			}
			b, begin := p[:r.n], r.off-int64(r.n)
			for _, m := range r.early {
				if stopped = !take(b[:m.end-begin], m.at, true, false, nil); stopped {
					return true
				}
				b, begin = b[m.end-begin:], m.end
			}
			more := r.left > 0
			if r.left == unknownLeft {
				more = r.n == len(p)
			}
			if stopped = !take(b, r.at, r.kernel, more, r.err) || r.err != nil; stopped {
				return true
			}
			if r.left == 0 {
				return false
			}
		}
	})
	if err != nil && !stopped {
		take(nil, Now(), false, false, err)
	}
}

// unknownLeft says that the kernel did not tell how much is left.
const unknownLeft = -1

// control takes the stamp and the number of bytes left out of the control
// messages. A stamp is three pairs of 64-bit seconds and nanoseconds, of
// which the first is the software one; it is 0 if there is none.
func (r *Receiver) control() (stamp int64, left int) {
	left = unknownLeft
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
			left = int(*(*int32)(unsafe.Pointer(&b[head])))
		}
		next := (int(h.Len) + 7) &^ 7
		if next >= len(b) {
			break
		}
		b = b[next:]
	}
	return stamp, left
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
